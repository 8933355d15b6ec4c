"""The kinds of numbers and items of a release: facts that reports, comparisons and certificates follow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from discreet.engines.projection import FINE
from discreet.privacy.guarantee import Unit
from discreet.release.aggregates import column_name, own_bounds
from discreet.release.intervals import Law
from discreet.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.engines.untrusted import Fields

__all__ = [
    "COUNTS",
    "KINDS",
    "LISTED",
    "RANKS",
    "Facts",
    "Kind",
    "Listed",
    "Summed",
    "all_close",
    "measure_of",
    "summed_of",
]

Kind: TypeAlias = Literal["users", "events", "pairs", "sums"]
"""The unit of the numbers of a release, or "sums"."""
KINDS: tuple[Kind, ...] = ("users", "events", "pairs", "sums")
Listed: TypeAlias = Literal["none", "some", "all"]
"""Which items of a release were listed in advance and are published even if nobody has them."""
LISTED: tuple[Listed, ...] = ("none", "some", "all")
_NOISE_ALONE = "sigma is the noise alone"
_SUMS = r"sums of (?:values|(.*) in units of ([\d.e+-]{1,20}),) clipped to \[(-?\d{1,10}), (-?\d{1,10})\] units for .*"
"""The measure of sums in files of earlier versions, which have no other text of the bounds."""


COUNTS = ("count", "sigma")
"""The columns of counts, which follow the columns of items."""
RANKS = ("rank",)
"""The column of ranks."""
_SLACK = 1e-9
"""The relative difference of two sigmas that rounding explains."""


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
class Facts:
    """The facts of a release that follow from its mechanism.

    `Mechanism._facts` makes them. A mechanism that wraps another one replaces some facts of the inner mechanism.
    """

    has_sigmas: Callable[[Fields, bool], bool]
    """`Mechanism._has_sigmas` of the mechanism inside all wrappers."""
    kind: Kind
    listed: Listed
    """Which items are published even if nobody has them."""
    law: Law
    items: frozenset[object] = frozenset()
    """The listed items, which are published without a threshold."""
    columns: tuple[tuple[str, ...], ...] = (COUNTS,)
    """The columns that may follow the columns of items."""
    ranks: int = 1
    """The largest rank."""
    linf: int = 1
    """The most events of a user for an item in a release of events from a histogram."""
    most: int | None = None
    """`Release.most` of every release, except of events from a histogram."""
    l0: int | None = None
    """The bound of every release with counts; None if there is none, or it depends on the release."""
    largest_l0: int | None = None
    """The largest bound of a release; None if any is possible."""
    claims_l0: bool = False
    """Whether the bound depends on the release: on a histogram, or on a bound that was found."""
    clips: bool = False
    """Whether the counts of every release are clipped."""
    sums: tuple[int, int, float] | None = None
    """The bounds of sums and their resolution."""
    threshold: int | None = None
    """The threshold that a count exceeds."""
    steps: bool = False
    """Whether the mechanism draws items one after another, so that a release can cost less than its guarantee."""
    is_keyed: bool = False
    """Whether the mechanism sees keys of users, which may be users in one period."""
    last_round: float | None = None
    """The last round of a stream, infinity for a stream without end; None for other mechanisms."""
    users: tuple[float, float] | None = None
    """The least and the largest sigma of the number of users; None if it is not measured."""
    needs_users: bool = False
    """Whether every release has the number of users."""
    rows: int | None = None
    """The number of rows of every release; None if it depends on the data."""
    replaced: bool = False
    """Whether a user is replaced, and not added."""
    claims: tuple[str, ...] = ()
    """The fields that nothing in a file proves, besides those that follow from the other facts."""

    def has_kind(self, kind: object, most: object) -> bool:
        """Return whether a release can have counts of this kind, with this bound on what a user adds to one count."""
        if kind == "events" and self.linf > 1:
            return type(most) is int and 1 < most <= self.linf
        return kind == self.kind and most == self.most

    def has_sums(self, summed: Summed | None) -> bool:
        """Return whether a release has these bounds and this resolution of sums."""
        if self.sums is None or summed is None:
            return self.sums is None and summed is None
        low, high, resolution = self.sums
        return (summed.low, summed.high) == (low, high) and summed.resolution in (None, resolution)

    def has_threshold(self, above: object, *, has_counts: bool) -> bool:
        """Return whether a release can have this threshold. In a table of counts of at least a number it is higher."""
        if above is None or self.threshold is None:
            return above is None and not (has_counts and self.threshold is not None)
        return type(above) is int and above >= self.threshold

    def has_round(self, number: object) -> bool:
        """Return whether a release can be of this round."""
        if self.last_round is None:
            return number is None
        return type(number) is int and 0 <= number <= self.last_round

    def has_users(self, users: object) -> bool:
        """Return whether a release can have this number of users: one that is measured at least once."""
        if users is None or self.users is None or self.replaced:
            return users is None and not self.needs_users
        if not isinstance(users, list) or [type(part) in (int, float) for part in users] != [True, True]:
            return False
        least, largest = self.users
        sigma = users[1]  # not as a float: an integer may be too large
        return bool(sigma > 0 and least * (1 - _SLACK) <= sigma <= largest * (1 + _SLACK))

    @property
    def bounds_items(self) -> bool:
        """Whether counts are read as clipped: a file cannot show that no user had more items."""
        return self.clips or self.largest_l0 is not None

    @property
    def may_count_events(self) -> bool:
        """Whether a user may add more than one to a count of a histogram."""
        return self.linf > 1

    def contradicted(self, rows: Fields) -> str | None:
        """Return the column that a release of the mechanism cannot have, or None."""
        items, counts, ranks, confirmed = rows["items"], rows["counts"], rows["ranks"], rows["confirmed"]
        number = len(items) if rows["part_of"] is None else rows["part_of"]
        others = np.array([item not in self.items for item in items], bool)
        public = len(self.items) if self.listed == "some" else 0
        checks = {
            "item": (rows["listed"] != "all" or not self.items or {*items} <= self.items)
            and len(items) <= number
            and self.rows in (None, number)
            and (rows["listed"] != "some" or rows["part_of"] is not None or self.items <= {*items}),
            "rank": ranks is None or all(0 < rank <= self.ranks for rank in ranks),
            "sigma": counts is None or self.has_sigmas(rows, self.replaced),
            "count": counts is None or rows["above"] is None or bool(np.all(counts[others] > rows["above"])),
            "method": confirmed is None or int(confirmed.sum()) <= rows["calls"] + public,
        }
        return next((name for name, is_right in checks.items() if not is_right), None)


def all_close(values: NDArray[np.float64], allowed: NDArray[np.float64], slack: float = 0.0) -> bool:
    """Return whether each value is one of those allowed, up to rounding; `slack` adds to the scale of rounding."""
    near = np.sort(allowed)
    place = np.searchsorted(near, values).clip(1, max(1, len(near) - 1)) if len(near) > 1 else np.ones(len(values), int)
    sides = near[np.minimum(place, len(near) - 1)], near[place - 1]
    error = np.minimum(*(abs(values - side) for side in sides))
    return bool(np.all(error <= _SLACK * (abs(values) + slack)))


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
