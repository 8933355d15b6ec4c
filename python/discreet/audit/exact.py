"""Guarantees compared with exact laws, and exact laws with runs of the mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from discreet import _core
from discreet.audit.findings import SLACK, Audit, Divergence, Finding, Misfit, hockey_stick, promises, renyi
from discreet.audit.neighbours import neighbours, ranks, unwrapped
from discreet.audit.runs import compared, released, tables
from discreet.errors import ParameterError
from discreet.laws import joint_law
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.noises import EpsilonPerItem
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_whole

__all__ = ["all_novel", "audit", "examine"]

_ORDERS = (1.5, 2.0, 4.0, 16.0)
_RUN_PAIRS = 3
"""The first pairs are also released; the first of them has new items alone."""


def audit(
    mechanism: HistogramMechanism,
    *,
    pairs: int = 1000,
    seed: int = 0,
    dp: tuple[float, float] | None = None,
    runs: int = 1000,
    rng: _core.Rng | None = None,
) -> Audit:
    """Compute a mechanism's exact laws on neighbouring histograms, and run the mechanism to see that it follows them.

    Examines `pairs` neighbouring pairs of small histograms, made from `seed` around the mechanism's thresholds. Then
    releases a handful of them `runs` times each and compares the releases with the exact law, at a family-wise level
    of 1e-6 (see `audit.runs.compared`). An output to which the law gives no chance fails at once. `runs=0` does not
    run the mechanism, which the audit then says.

    `dp`: the (epsilon, delta) pair that was asked for, which is held beside all that the mechanism promises.
    `rng` is for tests. Raises ParameterError for a mechanism whose exact law is not known, or has more outcomes than
    can be enumerated, for fewer pairs than one, and for 1 to 99 runs.
    """
    pairs = require_whole("pairs", pairs, 1)
    runs = require_whole("runs", runs, 0, 10**7)
    if 0 < runs < 100:
        raise ParameterError("runs must be 0, or at least 100: fewer show too little")
    if not isinstance(mechanism, HistogramMechanism):
        raise ParameterError(
            f"the exact law of {type(mechanism).__name__} is not known, so its guarantee cannot be audited. Known are "
            "those of count with l0, of top_k with method='gumbel' and of select with method='threshold'"
        )
    guarantee = mechanism.guarantee if dp is None else replace(mechanism.guarantee, dp=dp)
    tightest: Finding | None = None
    quoted: Finding | None = None
    violations = []
    novel = all_novel(mechanism, guarantee)
    if novel is not None and novel.delta > novel.allowed * (1 + 1e-9):
        violations.append(novel)
    looked_at: list[tuple[Mapping[str, int], Mapping[str, int]]] = []
    for first, second in neighbours(mechanism, pairs, seed):
        if len(looked_at) < _RUN_PAIRS:
            looked_at.append((first, second))
        findings = _findings(mechanism, first, second, guarantee)
        worst = max(findings, key=lambda finding: finding.ratio)
        if worst.violates:
            violations.append(worst)
        tightest = max(tightest or worst, worst, key=lambda finding: finding.ratio)
        if guarantee.dp is not None:
            quoted = max(quoted or findings[0], findings[0], key=lambda finding: finding.ratio)
    assert tightest is not None
    violations.sort(key=lambda finding: -finding.ratio)
    misfits: list[Misfit] = []
    if runs:
        stream = _core.Rng() if rng is None else rng
        found = [(table, released(mechanism, table, runs, stream)) for table in tables(mechanism, looked_at)]
        misfits = compared(mechanism, found)
    return Audit(
        mechanism=repr(mechanism),
        guarantee=guarantee,
        pairs=pairs,
        violations=tuple(violations),
        tightest=tightest,
        quoted=quoted,
        runs=runs,
        misfits=tuple(misfits),
    )


def examine(mechanism: HistogramMechanism, first: Mapping[str, int], second: Mapping[str, int]) -> Finding:
    """The largest share of a promise that one pair uses, over both directions, several epsilons and orders."""
    return max(_findings(mechanism, first, second, mechanism.guarantee), key=lambda finding: finding.ratio)


def _findings(
    mechanism: HistogramMechanism, first: Mapping[str, int], second: Mapping[str, int], guarantee: Guarantee
) -> list[Finding]:
    """One finding for each promise, that of `guarantee` first, and each order of the Renyi divergence that violates
    rho."""
    p, q = joint_law(mechanism, first, second)
    pair = {"first": first, "second": second}
    findings = [
        Finding(
            epsilon=epsilon,
            delta=max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)),
            allowed=allowed,
            **pair,
        )
        for epsilon, allowed in dict.fromkeys((*promises(guarantee), *promises(mechanism.guarantee)))
    ]
    rho = mechanism.guarantee.rho
    for order in _ORDERS if _without_delta(mechanism, first, second) else ():
        divergence = renyi(p, q, order) / order
        if divergence > rho * (1 + 1e-9) + SLACK:
            findings.append(Divergence(epsilon=order, delta=divergence, allowed=rho, **pair))
    return findings


def _without_delta(mechanism: HistogramMechanism, first: Mapping[str, int], second: Mapping[str, int]) -> bool:
    """Whether rho must hold by itself: both histograms have the same items, and all of them are seen.

    A mechanism that starts from an (epsilon, delta) for each item spends delta on known items too.
    """
    if isinstance(unwrapped(mechanism), EpsilonPerItem) or set(first) != set(second):
        return False
    return not ranks(mechanism) or len(first) <= unwrapped(mechanism).k_bar  # type: ignore[attr-defined]


def all_novel(mechanism: HistogramMechanism, guarantee: Guarantee) -> Finding | None:
    """The worst pair of a mechanism that decides item by item: a user alone, with l0 items that nobody else has.

    Any of them that is seen gives the user away: 1 - (1 - p)^l0 is to be at most the delta of the guarantee.
    """
    mechanism = unwrapped(mechanism)
    protected = mechanism.protects
    if not isinstance(mechanism, ThresholdMechanism | OptimalSelection) or protected.l0 is None:
        return None
    chance = mechanism.release_chance(protected.linf)
    seen = -math.expm1(protected.l0 * math.log1p(-min(chance, 1 - 1e-16)))
    allowed = guarantee.delta if guarantee.dp is None else min(guarantee.delta, guarantee.dp[1])
    second = {"each of l0 items": protected.linf}
    return Finding(epsilon=math.inf, delta=seen * (1 - 1e-9), allowed=allowed, first={}, second=second)
