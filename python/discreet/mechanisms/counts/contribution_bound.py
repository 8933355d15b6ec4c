"""How many items most users have: a bound for l0, chosen from the data with differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.mechanisms.base import Opening, opened
from discreet.mechanisms.from_table import TableMechanism, without_value
from discreet.mechanisms.published import published
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number, require_whole
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.tables.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ContributionBound"]

_SCORE_LIMIT = 2**35
"""The largest count that a selection takes; scores are moved up to it, and end at one, which moves none by more."""


@dataclass(frozen=True, kw_only=True)
class ContributionBound(TableMechanism):
    """A number of items that about `percentile` percent of the users do not exceed, from 1 to `most`.

    The exponential mechanism (McSherry and Talwar 2007). A number that misses the percentile, because too many
    users exceed it or too many stay below it, has the score of minus the users that it misses by, times 100.
    One user moves every score by at most max(p, 100 - p), so the range of a selection at rate gamma is
    epsilon = 2 gamma max(p, 100 - p): (epsilon^2/8)-zCDP and epsilon-DP per user, added or removed. Users of more
    items than `most` count as having so many; with no users at all every number is as likely. `epsilon`: the
    promise. `percentile`: a whole number from 1 to 99.
    `most`: chosen without the data. A release is one number, its only item: `release.items[0]` serves as `l0`, or as m
    and m_prime of `Plume`; what follows costs beside it. Raises ParameterError where a parameter is out of range.
    """

    epsilon: float
    percentile: int = 95
    most: int = 1_000

    def __post_init__(self) -> None:
        checked = {
            "epsilon": require_number("epsilon", self.epsilon, 1e-9, 100, open_low=False),
            "percentile": require_whole("percentile", self.percentile, 1, 99),
            "most": require_whole("most", self.most, 2, 2**20),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_rho(cls, *, rho: float, percentile: int = 95, most: int = 1_000) -> Self:
        """The mechanism that promises rho-zCDP: epsilon = sqrt(8 rho)."""
        epsilon = round_down(math.sqrt(8 * require_number("rho", rho, 0, 1_000)), 8)
        return cls(epsilon=epsilon, percentile=percentile, most=most)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon^2/8)-zCDP and epsilon-DP: a selection of range epsilon (Rogers 2023, Theorem 5)."""
        return Guarantee.from_bounded_range(self.epsilon)

    @property
    def gamma(self) -> float:
        """The rate of the selection."""
        return round_down(self.epsilon / (2 * max(self.percentile, 100 - self.percentile)), 1)

    def scores(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """The scores of 1 to `most`, from how many items each user has, moved up to be whole numbers above zero."""
        seen = np.bincount(np.minimum(items, self.most), minlength=self.most + 1)[1:]
        within = np.cumsum(seen)
        below = within - seen
        part, users = self.percentile, seen.sum()
        missed = np.maximum(part * users - 100 * within, 100 * below - part * users).clip(0)
        scores: NDArray[np.int64] = np.maximum(_SCORE_LIMIT - missed, 1)
        return scores

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        without_value(table, "ContributionBound")
        # Seen from the other side, a table tells how many items each user has.
        users = Histogram.from_table(
            table.data, user=table.item, item=table.user, memory=table.memory, progress=table.progress
        )
        rng = opened(rng)
        scores = self.scores(users._counts())
        # The last candidate stands where a selection has its stop element.
        slot = rng.select(scores[:-1], int(scores.max()), self.gamma, int(scores[-1]), 0.0)
        notes = (f"the item is a number of items that about {self.percentile} % of the users do not exceed",)
        return published(self, _core.Labels.from_sequence([slot + 1]), np.arange(1), rng, ranked=True, notes=notes)
