"""`Verifiable`: the facts of a release that follow from its mechanism. `verify` compares a certificate with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.release.facts import Kind, Listed, Summed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from discreet.engines.untrusted import Fields
    from discreet.release.intervals import Law

__all__ = ["COUNTS", "RANKS", "Verifiable", "all_close"]

COUNTS = ("count", "sigma")
"""The columns of counts, which follow the columns of items."""
RANKS = ("rank",)
"""The column of ranks."""
_SLACK = 1e-9
"""The relative difference of two sigmas that rounding explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifiable:
    """The facts of a release that follow from its mechanism.

    `Mechanism._verifiable` makes them. A mechanism that wraps another one replaces some facts of the inner mechanism.
    """

    has_sigmas: Callable[[Fields, bool], bool]
    """`Mechanism._has_sigmas` of the mechanism inside all wrappers."""
    kind: Kind
    listed: Listed
    """Which items are published even if nobody has them."""
    law: Law
    items: frozenset[object] = frozenset()
    """All listed items."""
    known: frozenset[object] = frozenset()
    """The items that are published without a threshold, among others that have one."""
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
    public: int = 0
    """The number of public items that have a method."""
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
    def may_count_events(self) -> bool:
        """Whether a user may add more than one to a count of a histogram."""
        return self.linf > 1

    def contradicted(self, rows: Fields) -> str | None:
        """Return the column that a release of the mechanism cannot have, or None."""
        items, counts, ranks, confirmed = rows["items"], rows["counts"], rows["ranks"], rows["confirmed"]
        number = len(items) if rows["part_of"] is None else rows["part_of"]
        given = self.known | self.items
        others = np.array([item not in self.known for item in items], bool)
        checks = {
            "item": (rows["listed"] != "all" or not given or {*items} <= given)
            and len(items) <= number
            and self.rows in (None, number)
            and (rows["listed"] != "some" or rows["part_of"] is not None or self.known <= {*items}),
            "rank": ranks is None or all(0 < rank <= self.ranks for rank in ranks),
            "sigma": counts is None or self.has_sigmas(rows, self.replaced),
            "count": counts is None or rows["above"] is None or bool(np.all(counts[others] > rows["above"])),
            "method": confirmed is None or int(confirmed.sum()) <= rows["calls"] + self.public,
        }
        return next((name for name, is_right in checks.items() if not is_right), None)


def all_close(values: NDArray[np.float64], allowed: NDArray[np.float64], slack: float = 0.0) -> bool:
    """Return whether each value is one of those allowed, up to rounding; `slack` adds to the scale of rounding."""
    near = np.sort(allowed)
    place = np.searchsorted(near, values).clip(1, max(1, len(near) - 1)) if len(near) > 1 else np.ones(len(values), int)
    sides = near[np.minimum(place, len(near) - 1)], near[place - 1]
    error = np.minimum(*(abs(values - side) for side in sides))
    return bool(np.all(error <= _SLACK * (abs(values) + slack)))
