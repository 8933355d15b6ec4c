"""`ContributionBound`: a bound on the items per user, for l0, chosen from the data with differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core, engines
from discreet.engines.sums import items_per_user
from discreet.engines.table import Table
from discreet.mechanisms.base import Opening, opened_rng
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import PERCENTILE, require_countable, require_items
from discreet.mechanisms.published import published
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number, require_whole
from discreet.release.facts import RANKS, Facts, Summed
from discreet.release.release import Release

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ContributionBound"]

_SCORE_LIMIT = 2**35
"""The largest count that a selection takes.

Scores are shifted up to it and clipped at one from below. Clipping does not raise the sensitivity.
"""


@dataclass(frozen=True, kw_only=True)
class ContributionBound(TableMechanism):
    """A mechanism that releases a number of items that about `percentile` percent of the users do not exceed.

    The exponential mechanism chooses the number, from 1 to `most`. A number misses the percentile if too many users
    have more items, or too many users have fewer. The score of a number is -100 times the number of users by which it
    misses. One user changes every score by at most max(p, 100 - p), for p = percentile. So the bounded range of a
    selection at rate gamma is epsilon = 2 gamma max(p, 100 - p). The guarantee is (epsilon^2/8)-zCDP and epsilon-DP per
    user, added or removed. If there are no users, every number has the same probability.

    With `only`, the mechanism counts only these items of a user, such as the items that another release found. Users
    without any of them do not count.

    The released number is the only item: use `release.items[0]` as `l0`, or as m and m_prime of `Plume`. The release
    that uses the number costs budget of its own.

    Args:
        epsilon: The total epsilon: from 1e-9 to 100.
        percentile: The percentage of users: a whole number from 1 to 99.
        most: The largest number to choose: from 2 to 2^20. Users with more items count as having this many. Choose it
            without the data.
        only: Count only these items of a user: public, such as the items of a release; None for all items.

    Raises:
        ParameterError: A parameter is out of range, or items of `only` repeat.
        SchemaError: The items of `only` are of mixed types.

    Example:
        >>> import discreet as dp
        >>> print(dp.mechanisms.ContributionBound(epsilon=1).guarantee)
        0.125-zCDP per user (added or removed), and (1, 0)-DP
        >>> log = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000}
        >>> dp.mechanisms.ContributionBound(epsilon=1, most=9).release(log, user="user", item="page").items
        [2]

    Source:
        McSherry and Talwar (2007); Rogers (2023), Theorem 5, for the rho of a bounded range.
    """

    lists_items = "all"
    _columns = (RANKS,)

    epsilon: float
    percentile: int = PERCENTILE
    most: int = 1_000
    only: tuple[str | int | bytes, ...] | None = None

    def __post_init__(self) -> None:
        self._set(
            epsilon=require_number("epsilon", self.epsilon, 1e-9, 100, open_low=False),
            percentile=require_whole("percentile", self.percentile, 1, 99),
            most=require_whole("most", self.most, 2, 2**20),
            only=None if self.only is None else require_items(self.only),
        )
        require_countable(self.only or ())

    @classmethod
    def from_rho(
        cls,
        *,
        rho: float,
        percentile: int = PERCENTILE,
        most: int = 1_000,
        only: tuple[str | int | bytes, ...] | None = None,
    ) -> Self:
        """Return the mechanism that guarantees rho-zCDP, with epsilon = sqrt(8 rho); rho is at most 1,000."""
        epsilon = round_down(math.sqrt(8 * require_number("rho", rho, 0, 1_000)), 8)
        return cls(epsilon=epsilon, percentile=percentile, most=most, only=only)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: (epsilon^2/8)-zCDP and epsilon-DP.

        Source:
            Rogers (2023), Theorem 5, for a selection of bounded range epsilon.
        """
        return Guarantee.from_bounded_range(self.epsilon)

    @property
    def gamma(self) -> float:
        """Return the rate of the selection: the factor of every score."""
        return round_down(self.epsilon / (2 * max(self.percentile, 100 - self.percentile)), 1)

    @property
    def users_needed(self) -> int:
        """Return how many users make a number that is far too large improbable: a chance of at most 0.1 %."""
        points = self.gamma * min(self.percentile, 100 - self.percentile)
        return math.ceil(math.log(1000 * self.most) / points)

    def note(self, l0: int) -> str:
        """Return a note on a bound that was found, for readers of the release that used it.

        Args:
            l0: The bound.
        """
        return (
            f"l0 = {l0:,} was found with privacy: about {self.percentile} % of the users do not have more items. With "
            f"fewer than about {self.users_needed:,} users it says nothing"
        )

    def scores(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the scores of the numbers from 1 to `most`, as whole numbers above zero.

        Args:
            items: The number of items of each user, as a one-dimensional array.

        Returns:
            An array of `most` scores.
        """
        return self._scores(self._seen(items))

    def _seen(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of users with each number of items, from 0 to `most`."""
        return np.bincount(np.minimum(items, self.most), minlength=self.most + 1)

    def _scores(self, seen: NDArray[np.int64]) -> NDArray[np.int64]:
        seen = seen[1:]
        within = np.cumsum(seen)
        below = within - seen
        part, users = self.percentile, seen.sum()
        missed = np.maximum(part * users - 100 * within, 100 * below - part * users).clip(0)
        scores: NDArray[np.int64] = np.maximum(_SCORE_LIMIT - missed, 1)
        return scores

    def _drawn(self, numbers: NDArray[np.int64], rng: _core.Rng) -> int:
        """Return the chosen number, drawn from the random stream of a release.

        `numbers` has the number of items of each user.
        """
        return self._drawn_from(self._seen(numbers), rng)

    def _drawn_from(self, seen: NDArray[np.int64], rng: _core.Rng) -> int:
        """Return the chosen number, as `_drawn` does.

        Args:
            seen: The number of users with 0, 1, ..., `most` items. The last ones may have more.
            rng: The random stream.

        Returns:
            A number from 1 to `most`, which is public.
        """
        scores = self._scores(seen)
        # The last candidate takes the place of the stop element.
        return 1 + rng.select(scores[:-1], int(scores.max()), self.gamma, int(scores[-1]), 0.0)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        return replace(super()._facts(l0, summed), rows=1)

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        numbers = engines.numbers_of_items(table) if self.only is None else items_per_user(table, self.only)
        rng = opened_rng(rng)
        found = self._drawn(numbers, rng)
        which = "items" if self.only is None else "the listed items"
        notes = (f"the item is a number of {which} that about {self.percentile} % of the users do not exceed",)
        return published(self, _core.Labels.from_sequence([found]), np.arange(1), rng, ranked=True, notes=notes)
