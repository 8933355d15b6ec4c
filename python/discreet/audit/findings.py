"""What an audit finds: how much of a promise a pair of histograms uses up."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.conversion import cdp_delta
from discreet.privacy.guarantee import Guarantee
from discreet.wording import counted

__all__ = ["LEVEL", "Audit", "Divergence", "Finding", "Misfit", "hockey_stick", "promises", "renyi", "runs_text"]

SLACK = 1e-14
"""What rounding may add to a divergence, beside a part in 10^9 of it: a violation is larger."""
_EXACT = 1e-12
LEVEL = 1e-6
"""The chance that all comparisons of an audit together find a misfit of a mechanism that follows its law."""
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

    def __str__(self) -> str:
        return (
            f"delta is {self.delta:.6g} at epsilon {self.epsilon:g} (promised: at most {self.allowed:.6g}), between "
            f"the tables {dict(self.first)} and {dict(self.second)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence(Finding):
    """The worst Renyi divergence of one pair: `delta` and `allowed` are divergences over the order `epsilon`."""

    def __str__(self) -> str:
        return (
            f"the Renyi divergence over its order, {self.epsilon:g}, is {self.delta:.6g} (promised: at most rho "
            f"{self.allowed:.6g}), between the tables {dict(self.first)} and {dict(self.second)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A cell of a release that runs show more often, or less often, than the exact law allows."""

    table: Mapping[str, int]
    view: str
    """The part of a release that was looked at."""
    cell: str
    chance: float
    """The chance of the cell by the exact law."""
    seen: int
    """The number of runs that showed it."""
    runs: int

    def __str__(self) -> str:
        return (
            f"{self.view}: {self.cell} came in {self.seen:,} of {self.runs:,} runs, and the exact law gives it a "
            f"chance of {self.chance:.4g}, on the table {dict(self.table)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of an audit: violations, misfits of runs, and the largest share of a promise that is used."""

    mechanism: str
    guarantee: Guarantee
    pairs: int
    violations: tuple[Finding, ...]
    tightest: Finding
    """The largest share of any (epsilon, delta) that is promised; rho by itself shows where it is violated."""
    quoted: Finding | None
    """The largest share of the (epsilon, delta) pair that the guarantee has a proof of its own for, if any."""
    runs: int = 0
    """The number of releases of each table that was run, 0 if the mechanism was not run."""
    misfits: tuple[Misfit, ...] = ()
    """The differences between runs and exact laws; any of them means that the mechanism does not follow its law."""

    @property
    def failed(self) -> bool:
        """Whether a promise is violated, or the mechanism does not follow the law that the promise was checked for."""
        return bool(self.violations or self.misfits)

    def __str__(self) -> str:
        verdict = counted(len(self.violations), "VIOLATION").upper() if self.violations else "no violation"
        lines = [self.mechanism, f"promises {self.guarantee}"]
        if self.quoted is not None:
            epsilon, delta = self.guarantee.quoted
            holds = "is VIOLATED" if self.quoted.violates else "holds"
            lines.append(f"({epsilon:.4g}, {delta:.4g})-DP {holds}; in the worst pair {self.quoted}")
        worst = self.violations[0] if self.violations else self.tightest
        pairs = counted(self.pairs, "pair")
        lines.append(f"{pairs} of neighbouring tables: {verdict}; closest to any promise, {worst}")
        lines.append(runs_text(self.runs, self.misfits))
        return "\n".join(lines)

    def to_json(self) -> str:
        """The audit as JSON."""
        return json.dumps(
            {
                "mechanism": self.mechanism,
                "rho": self.guarantee.rho,
                "delta": self.guarantee.delta,
                "dp": self.guarantee.dp,
                "pairs": self.pairs,
                "violations": [_as_dict(finding) for finding in self.violations],
                "tightest": _as_dict(self.tightest),
                "quoted": None if self.quoted is None else _as_dict(self.quoted),
                "runs": self.runs,
                "misfits": [dataclasses.asdict(misfit) for misfit in self.misfits],
            },
            indent=1,
        )


def runs_text(runs: int, misfits: Sequence[Misfit]) -> str:
    """Return what runs of the mechanism showed, in a line."""
    if not runs:
        return "the mechanism was not run"
    if not misfits:
        return f"{runs:,} releases of each table follow the exact law (family-wise level {LEVEL:g})"
    return f"the mechanism does NOT FOLLOW its exact law in {len(misfits):,} ways; first {misfits[0]}"


def _as_dict(finding: Finding) -> dict[str, object]:
    kind = "renyi divergence over order" if isinstance(finding, Divergence) else "hockey-stick divergence"
    return {
        "kind": kind,
        # JSON has no infinity.
        "at": finding.epsilon if math.isfinite(finding.epsilon) else None,
        "found": finding.delta,
        "allowed": finding.allowed,
        "first": dict(finding.first),
        "second": dict(finding.second),
    }


def promises(guarantee: Guarantee) -> Iterator[tuple[float, float]]:
    """(epsilon, delta) pairs that the guarantee implies: its own first, and those of its rho."""
    if guarantee.dp is not None:
        yield guarantee.dp
    for epsilon in _EPSILONS:
        yield epsilon, min(1.0, guarantee.delta + (1 - guarantee.delta) * cdp_delta(guarantee.rho, epsilon))


def hockey_stick(p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float) -> float:
    """The sum of p - e^epsilon q where it is positive: the least delta of (epsilon, delta)-DP for this pair."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def renyi(p: NDArray[np.float64], q: NDArray[np.float64], order: float) -> float:
    """A lower bound of the Renyi divergence of an order above one, the larger of both ways round.

    Outcomes that are rarer than their probabilities are exact are left out, which only lowers it.
    """
    exact = (p > _EXACT) & (q > _EXACT)
    logs = np.log(p[exact]), np.log(q[exact])
    ways = (order * a + (1 - order) * b for a, b in (logs, logs[::-1]))
    return max(float(np.logaddexp.reduce(way)) / (order - 1) for way in ways)
