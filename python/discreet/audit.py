"""Holds what a mechanism promises against its exact law on small neighbouring histograms.

The laws come from the mechanism's own thresholds and tails (`discreet.laws`), so that a wrong predicate, scale
or threshold shows as a violation; that its samplers follow their laws is tested elsewhere.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.conversion import cdp_delta
from discreet.laws import joint_law
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.optimal_selection import OptimalSelection
from discreet.mechanisms.thresholds import ThresholdMechanism
from discreet.mechanisms.truncated_geometric import TruncatedGeometric
from discreet.privacy import Guarantee, require_whole

__all__ = ["Audit", "Divergence", "Finding", "all_novel", "audit", "examine", "hockey_stick", "neighbours", "renyi"]

SLACK = 1e-14
"""What rounding may add to a divergence, beside a part in 10^9 of it: a violation is larger."""
_ORDERS = (1.5, 2.0, 4.0, 16.0)
_EXACT = 1e-12
_EPSILONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The worst of one pair: `delta` was found at `epsilon` where at most `allowed` is promised."""

    epsilon: float
    delta: float
    allowed: float
    first: Mapping[str, int]
    second: Mapping[str, int]

    @property
    def ratio(self) -> float:
        """The delta found over the one promised; above one is a violation."""
        return self.delta / self.allowed if self.allowed else math.inf if self.delta > SLACK else 0.0

    @property
    def violates(self) -> bool:
        """Whether more was found than is promised, beyond rounding."""
        return self.delta > self.allowed * (1 + 1e-9) + SLACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence(Finding):
    """The worst Renyi divergence of one pair: `delta` and `allowed` are divergences over the order `epsilon`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found: the violations, and how much of its promise the mechanism uses at most."""

    mechanism: str
    pairs: int
    violations: tuple[Finding, ...]
    tightest: Finding

    def __str__(self) -> str:
        verdict = f"{len(self.violations):,} VIOLATIONS" if self.violations else "no violation"
        worst = self.violations[0] if self.violations else self.tightest
        return (
            f"{self.mechanism}\n{self.pairs:,} neighbouring pairs: {verdict}. "
            f"At worst delta {worst.delta:.6g} at epsilon {worst.epsilon:g}, {worst.ratio:.4g} of the "
            f"{worst.allowed:.6g} that is promised, between {dict(worst.first)} and {dict(worst.second)}."
        )


def audit(mechanism: Mechanism, *, pairs: int = 1000, seed: int = 0) -> Audit:
    """Examines so many neighbouring pairs of small histograms, made from `seed` around the mechanism's thresholds.

    Raises ParameterError for a mechanism whose exact law is not known, or has more outcomes than can be
    enumerated, and for fewer pairs than one.
    """
    pairs = require_whole("pairs", pairs, 1)
    tightest: Finding | None = None
    violations = []
    novel = all_novel(mechanism)
    if novel is not None and novel.delta > novel.allowed * (1 + 1e-9):
        violations.append(novel)
    for first, second in neighbours(mechanism, pairs, seed):
        found = examine(mechanism, first, second)
        if found.violates:
            violations.append(found)
        if tightest is None or found.ratio > tightest.ratio:
            tightest = found
    assert tightest is not None
    violations.sort(key=lambda finding: -finding.ratio)
    return Audit(mechanism=repr(mechanism), pairs=pairs, violations=tuple(violations), tightest=tightest)


def examine(mechanism: Mechanism, first: Mapping[str, int], second: Mapping[str, int]) -> Finding:
    """The worst ratio of what is found to what is promised, over both directions and several epsilons."""
    p, q = joint_law(mechanism, first, second)
    worst = None
    for epsilon, allowed in _promises(mechanism.guarantee):
        delta = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        found = Finding(epsilon=epsilon, delta=delta, allowed=allowed, first=first, second=second)
        if worst is None or found.ratio > worst.ratio:
            worst = found
    assert worst is not None
    if isinstance(mechanism, ThresholdMechanism) and not isinstance(mechanism, TruncatedGeometric):
        shared = all(first.get(label, 0) for label in second)
        rho = mechanism.guarantee.rho
        for order in _ORDERS if shared else ():
            divergence = renyi(p, q, order) / order
            if divergence > rho * (1 + 1e-9) + SLACK:
                return Divergence(epsilon=order, delta=divergence, allowed=rho, first=first, second=second)
    return worst


def all_novel(mechanism: Mechanism) -> Finding | None:
    """The worst pair of a mechanism that decides item by item: a user alone, with l0 items that nobody else has.

    Any of them that is seen gives the user away: 1 - (1 - p)^l0 is to be at most delta.
    """
    protected = mechanism.protects
    if not isinstance(mechanism, ThresholdMechanism | OptimalSelection) or protected.l0 is None:
        return None
    chance = mechanism.release_chance(protected.linf)
    seen = -math.expm1(protected.l0 * math.log1p(-min(chance, 1 - 1e-16)))
    guarantee = mechanism.guarantee
    allowed = guarantee.delta if guarantee.dp is None else min(guarantee.delta, guarantee.dp[1])
    second = {"each of l0 items": protected.linf}
    return Finding(epsilon=math.inf, delta=seen * (1 - 1e-9), allowed=allowed, first={}, second=second)


def renyi(p: NDArray[np.float64], q: NDArray[np.float64], order: float) -> float:
    """A lower bound of the Renyi divergence of an order above one, the larger of both ways round.

    Outcomes that are rarer than their probabilities are exact are left out, which only lowers it.
    """
    exact = (p > _EXACT) & (q > _EXACT)
    logs = np.log(p[exact]), np.log(q[exact])
    ways = (order * a + (1 - order) * b for a, b in (logs, logs[::-1]))
    return max(float(np.logaddexp.reduce(way)) / (order - 1) for way in ways)


def hockey_stick(p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float) -> float:
    """The sum of p - e^epsilon q where it is positive: the least delta of (epsilon, delta)-DP for this pair."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def _promises(guarantee: Guarantee) -> Iterator[tuple[float, float]]:
    """(epsilon, delta) pairs that the guarantee implies: its own, and those of its rho."""
    if guarantee.dp is not None:
        yield guarantee.dp
    for epsilon in _EPSILONS:
        yield epsilon, min(1.0, guarantee.delta + (1 - guarantee.delta) * cdp_delta(guarantee.rho, epsilon))


def neighbours(mechanism: Mechanism, pairs: int, seed: int) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Pairs of small histograms that differ by one user, who is in the second; of the first pair all items are new."""
    chance = random.Random(seed)
    protected = mechanism.protects
    most = min(protected.l0 or 3, 3)
    if deviation := getattr(mechanism, "deviation", None):
        # As many as let a law have some hundred thousand outcomes at most.
        most = min(most, max(1, int(math.log(300_000) / math.log(20 * deviation + 20))))
    interesting = _interesting(mechanism)
    for number in range(pairs):
        size = most + chance.choice((0, 0, 1, 1, 2)) if _ranks(mechanism) else most
        labels = [f"{i}" for i in range(size)]
        first = {label: chance.choice(interesting) if chance.random() < 0.7 else 0 for label in labels}
        moved = chance.sample(labels, chance.randint(1, most))
        steps = {label: chance.choice((1, protected.linf)) for label in moved}
        if number == 0:
            first = dict.fromkeys(labels, 0)
            steps = dict.fromkeys(labels[:most], protected.linf)
        second = {label: count + steps.get(label, 0) for label, count in first.items()}
        yield {k: c for k, c in first.items() if c}, {k: c for k, c in second.items() if c}


def _ranks(mechanism: Mechanism) -> bool:
    """Whether unchanged items matter, as they do where ranks decide."""
    return hasattr(mechanism, "k_bar")


def _interesting(mechanism: Mechanism) -> list[int]:
    """Counts at which something happens: small ones, and some around the threshold."""
    rule = getattr(mechanism, "threshold", None) or getattr(mechanism, "margin", None)
    centre = getattr(rule, "value", rule)
    if centre is None:
        centre = sum(getattr(mechanism, "crossovers", (10, 10))) // 2
    near = (int(centre * x) for x in (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.5, 2.0))
    return sorted({*range(1, 13), int(centre) + 1, *(max(1, count) for count in near)})
