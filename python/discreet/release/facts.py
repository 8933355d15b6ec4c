"""The kinds of numbers and items of a release: facts that reports, comparisons and certificates follow."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from discreet.engines.projection import FINE
from discreet.errors import ParameterError
from discreet.privacy.guarantee import Unit
from discreet.release import export
from discreet.release.aggregates import column_name, own_bounds
from discreet.release.intervals import Law
from discreet.wording import counted

__all__ = ["KINDS", "LISTED", "Implied", "Kind", "Listed", "Summed", "implied", "measure_of", "summed_of"]

Kind: TypeAlias = Literal["users", "events", "pairs", "sums"]
"""The unit of the numbers of a release, or "sums"."""
KINDS: tuple[Kind, ...] = ("users", "events", "pairs", "sums")
Listed: TypeAlias = Literal["none", "some", "all"]
"""Which items of a release were listed in advance and are published even if nobody has them."""
LISTED: tuple[Listed, ...] = ("none", "some", "all")
_NOISE_ALONE = "sigma is the noise alone"
_SUMS = r"sums of (?:values|(.*) in units of ([\d.e+-]{1,20}),) clipped to \[(-?\d{1,10}), (-?\d{1,10})\] units for .*"
"""The measure of sums in files of earlier versions, which have no other text of the bounds."""

_EVENTS = ("BinaryMechanism", "EpochMechanism", "HonakerMechanism", "HybridMechanism", "SquareRootMechanism")
_KIND_OF: dict[str, Kind] = {
    "ClippedSums": "sums",
    "DiscoverAndSum": "sums",
    "KeptPairs": "pairs",
    "PrivateSumRelease": "sums",
    "SumsWithFoundBounds": "sums",
    **dict.fromkeys(_EVENTS, "events"),
}
_ALL_LISTED = (
    "ClippedSums",
    "ContributionBound",
    "CorrelatedCounts",
    "ExponentialMechanism",
    "GaussianCounts",
    "KeptPairs",
    "LaplaceCounts",
)
_MAY_LIST = ("Aggregates", "SumsWithFoundBounds")
_LAPLACE = ("LaplaceCounts", "LaplaceThreshold", "LaplaceTopK", "TruncatedGeometric")
_ANY_NUMBER = (
    "CalibratedCounts",
    "ConfirmedCounts",
    "CorrelatedCounts",
    "CountsWithPublicItems",
    "PrivateCountRelease",
)
"""The mechanisms that count all items of a user."""
_KNOWN = {
    *(*_KIND_OF, *_ALL_LISTED, *_LAPLACE, *_ANY_NUMBER, "Aggregates", "CountsWithFoundBound", "DiscoverAndPeel"),
    *("GaussianThreshold", "GaussianTopK", "GumbelTopK", "IteratedSetUnion"),
    *("OptimalSelection", "Plume", "SetUnion"),
}


class Summed(NamedTuple):
    """The values of a release of sums.

    `low` and `high` bound the sum of one user for one item, in steps of the resolution; `bounds` are in the unit of the
    column. The resolution and the column, as text that is safe to show, are None in files of earlier versions.
    """

    low: int
    high: int
    resolution: float | None = None
    column: str | None = None

    @property
    def title(self) -> str:
        """A name for the sums: their column and its unit."""
        if self.column is None or self.resolution is None:
            return "sums of values"
        return f"sums of {self.column}" + ("" if self.resolution == FINE else f" in steps of {self.resolution:g}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds in the unit of the column."""
        low, high = own_bounds(self.low, self.high, self.resolution or 1.0)
        return low, high

    @property
    def columns(self) -> tuple[str, str]:
        """The names of the columns of the sums and of their sigmas."""
        if self.column is None:
            return "count", "sigma"
        name = column_name("sum", self.column)
        return name, f"{name}_sigma"

    def bounds_of(self, unit: str) -> str:
        """Return the bounds of the sum of a user, as text."""
        low, high = self.bounds
        units = " units" if self.resolution is None else ""
        return f"clipped to [{low}, {high}]{units} for each {unit} and item; {_NOISE_ALONE}"


def measure_of(
    kind: Kind, *, clipped: bool, l0: int | None, most: int | None, summed: Summed | None, unit: Unit = "user"
) -> str:
    """Return the meaning of the counts of a release in words.

    `most` is the most items of a user in counts of pairs, or the most events of a user for an item in counts of events.
    """
    one = "user" if unit == "event" else unit
    if kind == "sums":
        if summed is None:
            return f"sums of clipped values; {_NOISE_ALONE}"
        return f"{summed.title}{' ' if summed.column is None else ', '}{summed.bounds_of(one)}"
    events = "events" if unit == "event" else f"events of {one}s"
    each = "" if kind != "events" or most is None else f", at most {most:,} of a {one} for an item"
    name = f"({one}, item) pairs of {one}s" if kind == "pairs" else f"{one}s" if kind == "users" else events
    bound = most if kind == "pairs" else l0
    if not clipped:
        return f"counts of {name}{each}"
    if bound is None:
        return f"counts of clipped {name}; {_NOISE_ALONE}"
    return f"counts of {name} clipped to {counted(bound, 'item')} each{each}; {_NOISE_ALONE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """The facts about the rows of a release that follow from its mechanism.

    A number may count any of `kinds`: users, or events too if a user may add more than one. If `bounds_items`,
    counts are read as clipped: a file cannot show that no user had more items.
    """

    kinds: tuple[Kind, ...]
    listed: Listed
    law: Law | None
    bounds_items: bool


def implied(made_by: str) -> Implied | None:
    """Return what the text `made_by` of a file implies, or None if it names no mechanism of the package.

    The text is read as a call, not by its words. `discreet.verify` makes the mechanism instead.
    """
    start = 0
    while made_by.startswith("Refinement(", start):
        if (end := made_by.find(") of ", start)) < 0:
            return None
        start = end + len(") of ")
    try:
        return _of_call(export.call(made_by[start:]))
    except (ParameterError, RecursionError, MemoryError):
        return None


def _of_call(call: ast.Call) -> Implied | None:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    given = {str(keyword.arg): keyword.value for keyword in call.keywords}
    inner = given.get("mechanism")
    if name in ("KnownItems", "CountsWithShare", "Replacement"):
        found = _of_call(inner) if isinstance(inner, ast.Call) else None
        if found is None or name != "KnownItems":
            return found
        listed: Listed = "some" if _is_none(given.get("least")) else "none"
        return Implied(kinds=found.kinds, listed=listed, law=found.law, bounds_items=found.bounds_items)
    if name not in _KNOWN:
        return None
    names_all = name in _ALL_LISTED or (name in _MAY_LIST and not _is_none(given.get("items")))
    law: Law | None = "laplace" if name in _LAPLACE else "gaussian"
    if name == "KeptPairs":
        law = "gaussian" if _is_none(given.get("epsilon")) else "laplace"
    linf = given.get("linf")
    counts_events = isinstance(linf, ast.Constant) and type(linf.value) is int and linf.value > 1
    return Implied(
        kinds=(_KIND_OF.get(name, "users"), *(("events",) if counts_events else ())),
        listed="all" if names_all else "some" if name == "CountsWithPublicItems" else "none",
        law=None if name == "CountsWithFoundBound" else law,
        bounds_items=name not in _ANY_NUMBER
        and not (name in ("Aggregates", "GaussianCounts", "LaplaceCounts") and names_all and _is_none(given.get("l0"))),
    )


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def summed_of(header: Mapping[str, object]) -> Summed | None:
    """Return the values of sums in the header of a release, read as untrusted input, or None if it has none.

    Raises:
        ValueError: They are no possible values.
    """
    given = header.get("summed")
    if given is None:
        former = re.fullmatch(_SUMS, str(header.get("measure")), re.DOTALL | re.ASCII)
        if former is None:
            return None
        column, unit, low, high = former.groups()
        resolution = None if unit is None else float(unit)
        given = {"low": int(low), "high": int(high), "resolution": resolution, "column": column}
    if not isinstance(given, dict) or {*given} != {"low", "high", "resolution", "column"}:
        raise ValueError("summed must have low, high, resolution and column")
    low, high, resolution, column = (given[name] for name in ("low", "high", "resolution", "column"))
    if type(low) is not int or type(high) is not int or not -(2**95) <= low < high <= 2**95:
        raise ValueError("the bounds of sums must be whole numbers, the lower one first")
    if resolution is None and column is None:
        return Summed(low, high)
    if type(resolution) not in (int, float) or not 1e-12 <= resolution <= 1e12 or not isinstance(column, str):
        raise ValueError("the resolution of sums must be a number, and the column a text")
    return Summed(low, high, float(resolution), column)
