"""The findings of an audit: how close the exact output distributions come to the limits of a guarantee."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.conversion import cdp_delta
from discreet.privacy.guarantee import Guarantee, pair_text
from discreet.wording import counted

__all__ = [
    "LEVEL",
    "LIMITS",
    "ORDERS",
    "Audit",
    "Cost",
    "Divergence",
    "Finding",
    "Misfit",
    "delta_findings",
    "hockey_stick",
    "promises",
    "renyi",
    "runs_text",
]

SLACK = 1e-14
"""The largest absolute rounding error of a divergence. The relative error is at most 1e-9. A violation exceeds both."""
_EXACT = 1e-12
LEVEL = 1e-9
"""The probability that all comparisons of an audit together report a misfit of a correct mechanism."""
_ALARM = "a correct mechanism fails with a chance of at most one in a billion"
ORDERS = (1.5, 2.0, 4.0, 16.0)
"""The orders of the Renyi divergences that are compared with rho."""
LIMITS = (
    "other tables: an audit is evidence, and the proof of the mechanism covers all tables",
    "what happens around a release: a column that does not name users, parameters that were chosen from the data, "
    "other releases of the same data, running times, access to the machine",
)
"""The faults that no audit finds."""
_EPSILONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The worst divergence of one pair of histograms.

    Args:
        epsilon: The epsilon at which delta was computed.
        delta: The delta that was found.
        allowed: The largest delta that the guarantee allows at `epsilon`.
        first: The labels and counts of one histogram.
        second: The labels and counts of the other histogram.

    Example:
        >>> import discreet as dp
        >>> finding = dp.audit.Finding(epsilon=1.0, delta=0.002, allowed=0.001, first={}, second={"a": 1})
        >>> finding.ratio, finding.violates
        (2.0, True)
    """

    epsilon: float
    delta: float
    allowed: float
    first: Mapping[str, int]
    second: Mapping[str, int]

    @property
    def ratio(self) -> float:
        """The delta that was found, divided by the allowed delta. A ratio above one is a violation, or rounding.

        If the allowed delta is not above rounding errors, the ratio is infinite for a violation and 0 otherwise.
        """
        if self.allowed > SLACK:
            return self.delta / self.allowed
        return math.inf if self.violates else 0.0

    @property
    def violates(self) -> bool:
        """Whether the delta that was found exceeds the allowed delta by more than rounding errors."""
        return self.delta > self.allowed * (1 + 1e-9) + SLACK

    def __str__(self) -> str:
        return (
            f"delta is {self.delta:.6g} at epsilon {self.epsilon:g} (promised: at most {self.allowed:.6g}), between "
            f"the tables {dict(self.first)} and {dict(self.second)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence(Finding):
    """The worst Renyi divergence of one pair of histograms, divided by its order.

    Args:
        epsilon: The order of the divergence.
        delta: The divergence that was found, over its order.
        allowed: The largest divergence over its order that the guarantee allows: rho.
        first: The labels and counts of one histogram.
        second: The labels and counts of the other histogram.

    Example:
        >>> import discreet as dp
        >>> finding = dp.audit.Divergence(epsilon=2.0, delta=0.05, allowed=0.1, first={"a": 1}, second={"a": 2})
        >>> finding.ratio, finding.violates
        (0.5, False)
    """

    def __str__(self) -> str:
        return (
            f"the Renyi divergence over its order, {self.epsilon:g}, is {self.delta:.6g} (promised: at most rho "
            f"{self.allowed:.6g}), between the tables {dict(self.first)} and {dict(self.second)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Finding):
    """The exact privacy cost of the measurements of a release on one pair of tables, in zCDP.

    Args:
        epsilon: 0; a cost in zCDP belongs to no epsilon.
        delta: The rho of the measurements on this pair.
        allowed: The rho that the release charges for them.
        first: The sets of items of one table, and the numbers of users who have exactly these items.
        second: The same of the other table.

    Example:
        >>> import discreet as dp
        >>> finding = dp.audit.Cost(epsilon=0.0, delta=0.05, allowed=0.1, first={"a b": 1}, second={"a b": 2})
        >>> finding.ratio, finding.violates
        (0.5, False)
    """

    def __str__(self) -> str:
        return (
            f"the measurements cost rho {self.delta:.6g} (charged: {self.allowed:.6g}), between the users "
            f"{dict(self.first)} and {dict(self.second)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """An outcome that occurs more often, or less often, than the exact distribution allows.

    An audit compares parts of a release, such as the list of items, and calls them views. A cell is one value of a view
    or one interval of its values.

    Args:
        table: The labels and counts of the histogram that was released.
        view: The view that was compared.
        cell: The cell of the view.
        chance: The probability of the cell by the exact distribution.
        seen: The number of runs in which the view was in the cell.
        runs: The number of runs. A run is one release.

    Example:
        >>> import discreet as dp
        >>> misfit = dp.audit.Misfit(table={"a": 9}, view="the list", cell="('a',)", chance=0.5, seen=990, runs=1000)
        >>> misfit.seen / misfit.runs
        0.99
    """

    table: Mapping[str, int]
    view: str
    cell: str
    chance: float
    seen: int
    runs: int

    def __str__(self) -> str:
        return (
            f"{self.view}: {self.cell} occurred in {self.seen:,} of {self.runs:,} runs, but its exact probability is "
            f"{self.chance:.4g}, on the table {dict(self.table)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of an audit: violations, misfits, and the pair of histograms that comes closest to a violation.

    Args:
        mechanism: The mechanism and its parameters.
        guarantee: The guarantee that was verified.
        pairs: The number of neighbouring pairs that were examined.
        violations: The findings that exceed the guarantee, worst first.
        tightest: The finding of the largest ratio for any (epsilon, delta) that is guaranteed. A finding about rho
            appears only if rho is violated.
        quoted: The finding of the largest ratio for the (epsilon, delta) pair that the guarantee states, if it states
            one.
        runs: The number of releases of each table, 0 if the mechanism was not run.
        misfits: The differences between runs and exact laws. A mechanism that follows its law has none.
        tables: The number of tables that were released.
        releases: The number of all releases that were compared with the exact law.
        compared: What was compared.
        limits: What this audit does not show, in addition to the limits of every audit.

    Example:
        >>> import discreet as dp
        >>> found = dp.audit.audit(dp.TruncatedGeometric(epsilon=1.0, delta=1e-2), pairs=20, runs=0)
        >>> found.pairs, len(found.violations), found.tightest.ratio <= 1
        (20, 0, True)
    """

    mechanism: str
    guarantee: Guarantee
    pairs: int
    violations: tuple[Finding, ...]
    tightest: Finding
    quoted: Finding | None
    runs: int = 0
    misfits: tuple[Misfit, ...] = ()
    tables: int = 0
    releases: int = 0
    compared: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the guarantee is violated, or the runs do not follow the exact distribution."""
        return bool(self.violations or self.misfits)

    def __str__(self) -> str:
        pairs = f"{counted(self.pairs, 'pair')} of neighbouring tables"
        verdict = f"On {pairs} nothing exceeded the promise."
        if self.violations:
            verdict = f"{counted(len(self.violations), 'VIOLATION').upper()} of the promise on {pairs}."
        worst = self.violations[0] if self.violations else self.tightest
        lines = [verdict, f"Closest to the promise, with {worst.ratio:.1%} of it: {worst}."]
        if self.quoted is not None and self.guarantee.dp is not None:
            epsilon, delta = self.guarantee.dp
            holds = "is VIOLATED" if self.quoted.violates else "holds on all pairs"
            lines.append(f"{pair_text(epsilon, delta)} {holds}. In the worst pair, {self.quoted}.")
        lines.append(f"{self._releases}.")
        lines += ["", f"Mechanism: {self.mechanism}", f"Promise: {self.guarantee}"]
        for title, facts in (("Compared", self.compared), ("An audit cannot show", (*self.limits, *LIMITS))):
            lines += [f"{title}:", *(f"- {fact}" for fact in facts)] if facts else []
        return "\n".join(lines)

    @property
    def _releases(self) -> str:
        """One line on the releases."""
        if not self.tables or self.misfits:
            return runs_text(self.runs, self.misfits)
        return f"{counted(self.releases, 'release')} of {counted(self.tables, 'table')} follow the exact law ({_ALARM})"

    def __repr__(self) -> str:
        return str(self)

    def to_json(self) -> str:
        """Return the audit as JSON."""
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
                "tables": self.tables,
                "releases": self.releases,
                "failed": self.failed,
                "compared": self.compared,
                "cannot_show": (*self.limits, *LIMITS),
            },
            indent=1,
        )


def runs_text(runs: int, misfits: Sequence[Misfit]) -> str:
    """Return one line on the result of the runs."""
    if not runs:
        return "the mechanism was not run"
    if not misfits:
        return f"{runs:,} releases of each table follow the exact law ({_ALARM})"
    return f"the mechanism does NOT FOLLOW its exact law in {len(misfits):,} ways; first {misfits[0]}"


def _as_dict(finding: Finding) -> dict[str, object]:
    kinds = {Divergence: "renyi divergence over order", Cost: "cost in zCDP"}
    kind = kinds.get(type(finding), "hockey-stick divergence")
    return {
        "kind": kind,
        # JSON has no infinity.
        "at": finding.epsilon if math.isfinite(finding.epsilon) else None,
        "found": finding.delta,
        "allowed": finding.allowed,
        "first": dict(finding.first),
        "second": dict(finding.second),
    }


@lru_cache(maxsize=16)
def promises(guarantee: Guarantee) -> tuple[tuple[float, float], ...]:
    """Return (epsilon, delta) pairs that the guarantee implies: its stated pair first, then pairs implied by rho."""
    stated = () if guarantee.dp is None else (guarantee.dp,)
    rho, delta = guarantee.rho, guarantee.delta
    return *stated, *((epsilon, min(1.0, delta + (1 - delta) * cdp_delta(rho, epsilon))) for epsilon in _EPSILONS)


def delta_findings(
    p: NDArray[np.float64],
    q: NDArray[np.float64],
    pairs: Iterable[tuple[float, float]],
    tables: Mapping[str, Mapping[str, int]],
) -> list[Finding]:
    """Return a finding about the laws `p` and `q` of the tables `first` and `second` for each (epsilon, delta)."""
    return [
        Finding(
            epsilon=epsilon,
            delta=max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)),
            allowed=allowed,
            first=tables["first"],
            second=tables["second"],
        )
        for epsilon, allowed in pairs
    ]


def hockey_stick(p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float) -> float:
    """Return the hockey-stick divergence: the sum of max(p - e^epsilon q, 0).

    It is the least delta of (epsilon, delta)-DP for this pair.
    """
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def renyi(p: NDArray[np.float64], q: NDArray[np.float64], order: float) -> float:
    """Return a lower bound of the Renyi divergence of an order above one, the larger of both directions.

    Outcomes too rare for exact probabilities are left out, which only lowers it.
    """
    exact = (p > _EXACT) & (q > _EXACT)
    logs = np.log(p[exact]), np.log(q[exact])
    ways = (order * a + (1 - order) * b for a, b in (logs, logs[::-1]))
    return max(float(np.logaddexp.reduce(way)) / (order - 1) for way in ways)
