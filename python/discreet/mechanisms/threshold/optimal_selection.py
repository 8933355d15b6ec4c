"""The items that can be named, and no counts: optimal partition selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism, require_complete
from discreet.mechanisms.noises import EpsilonPerItem
from discreet.mechanisms.parameters import require_delta
from discreet.privacy.guarantee import Sensitivity
from discreet.privacy.validation import require_number, require_whole
from discreet.theorems import desfontaines2020

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.release.release import Release
    from discreet.tables.histogram import Histogram

__all__ = ["OptimalSelection"]

_TABLE_LIMIT = 1 << 22


@dataclass(frozen=True, kw_only=True)
class OptimalSelection(EpsilonPerItem, HistogramMechanism):
    """As many of the items as (epsilon, delta)-DP allows to name, without counts.

    Desfontaines et al. (2020), Theorems 1 and 3: an item of n users is released with the largest chance
    that the definition allows, given those of fewer users. A user of up to `l0` items has epsilon/l0 and
    delta/l0 for each; beyond three or so a threshold mechanism names more. `pre_threshold`: only items of
    at least so many users are released, whatever the noise. Raises ParameterError where a parameter is
    out of range, or epsilon so small that the table of chances would have more than 2^22 entries.
    """

    epsilon: float
    delta: float
    l0: int = 1
    pre_threshold: int = 1

    def __post_init__(self) -> None:
        checked = {
            "epsilon": require_number("epsilon", self.epsilon, 1e-9, 100, open_low=False),
            "delta": require_delta(self.delta),
            "l0": require_whole("l0", self.l0, 1, 2**20),
            "pre_threshold": require_whole("pre_threshold", self.pre_threshold, 1, 2**20),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.each[1] < 2.0**-60:
            raise ParameterError("delta/l0 must be at least 2^-60")
        if self.crossovers[1] > _TABLE_LIMIT:
            raise ParameterError("epsilon/l0 is too small for this mechanism; use a threshold mechanism")

    @property
    def protects(self) -> Sensitivity:
        """At most l0 items per user, each count moved by one."""
        return Sensitivity(l0=self.l0, linf=1)

    @property
    def crossovers(self) -> tuple[int, int]:
        """n1 and n2 of Theorem 1: beyond n2 users the chance of a release is one."""
        return desfontaines2020.crossovers(*self.each)

    @property
    def cap(self) -> int:
        """The least number of users with which an item is released with certainty: counting may stop there."""
        return len(self.chances)

    @cached_property
    def chances(self) -> NDArray[np.uint64]:
        """The chance of a release by the number of users, in units of 2^-64; one beyond the table."""
        table = desfontaines2020.chance_table(*self.each)
        return np.concatenate([np.zeros(self.pre_threshold - 1, np.uint64), table])

    def release_chance(self, users: int) -> float:
        """The chance that an item of so many users is released."""
        return float(self.chances[users]) / 2.0**64 if users < len(self.chances) else 1.0

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        return self._published(histogram, _core.partition_selection(histogram._counts(), self.chances, rng), rng)
