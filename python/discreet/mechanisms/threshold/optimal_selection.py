"""`OptimalSelection`: optimal partition selection, which releases items without counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import require_complete
from discreet.mechanisms.noises import EpsilonPerItem, require_some
from discreet.mechanisms.parameters import require_delta
from discreet.mechanisms.published import published
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee, Sensitivity, require_one
from discreet.privacy.validation import require_number, require_whole
from discreet.theorems import desfontaines2020, rogers2023
from discreet.theorems.concentrated_selection import largest_chances

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.release.release import Release
    from discreet.tables.histogram import Histogram

__all__ = ["OptimalSelection"]

_LEAST_RHO = 0.003
"""The least rho of an item. Its table has about 100 to 200 entries, which takes a second."""
_TABLE_LIMIT = 1 << 20
"""The most entries of the table of probabilities."""


@dataclass(frozen=True, kw_only=True)
class OptimalSelection(EpsilonPerItem):
    """A mechanism that releases each item with the largest probability that its guarantee allows, without counts.

    The probability for n users is the largest one that the definition of privacy allows, given the probabilities for
    fewer users: that of (epsilon, delta)-DP, or of delta-approximate rho-zCDP. This is optimal for l0=1. Each of a
    user's l0 items gets an equal part. For an l0 above about 3, a threshold mechanism releases more items.

    Args:
        epsilon: The total epsilon: from 1e-9 to 100. Give exactly one of epsilon and rho.
        delta: The probability that the guarantee fails: above 0 and below 1, with delta/l0 above 2^-60.
        l0: The most items that one user contributes: from 1 to 2^20.
        pre_threshold: Release only items of at least this many users, whatever the noise: from 1 to 2^20.
        rho: The total cost in zCDP: above 0 and at most 5000.

    Raises:
        ParameterError: A parameter is out of range, or epsilon/l0 or rho/l0 is so small that the table of
            probabilities would have too many entries.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.OptimalSelection(epsilon=1, delta=1e-6)
        >>> mechanism.cap
        28
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=1, linf=1, complete=True)
        >>> mechanism.release(table).items
        ['a', 'b']
        >>> dp.OptimalSelection.from_rho(rho=0.1, delta=1e-6).cap
        21

    Source:
        Desfontaines et al. (2020), Theorems 1 and 3; for rho `discreet.theorems.concentrated_selection`, where the
        definition of Bun and Steinke (2016) takes the place of (epsilon, delta)-DP.
    """

    _columns = ((),)

    epsilon: float | None = None  # type: ignore[assignment]
    delta: float = None  # type: ignore[assignment]
    pre_threshold: int = 1
    rho: float | None = None

    takes_least = True
    doubled = ("l0",)

    def __post_init__(self) -> None:
        require_one(self.rho, self.epsilon)
        if self.rho is None:
            super().__post_init__()
        else:
            require_some(self.delta)
            self._set(
                rho=require_number("rho", self.rho, 0, 5000),
                delta=require_delta(self.delta),
                l0=require_whole("l0", self.l0, 1, 2**20),
            )
        self._set(pre_threshold=require_whole("pre_threshold", self.pre_threshold, 1, 2**20))
        if self.each[1] < 2.0**-60:
            raise ParameterError("delta/l0 must be above 2^-60; raise delta or lower l0")
        if self.rho is not None:
            if self.each[0] < _LEAST_RHO:
                raise ParameterError(
                    f"rho/l0 must be at least {_LEAST_RHO:g}: its table of probabilities would have too many entries; "
                    "use a threshold mechanism"
                )
        elif self.crossovers[1] > _TABLE_LIMIT:
            raise ParameterError(
                "epsilon/l0 is so small that the table of probabilities would have more than 2^20 entries; use a "
                "threshold mechanism"
            )

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int = 1) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP; rho is at most 5000."""
        return cls(rho=rho, delta=delta, l0=l0)

    @property
    def each(self) -> tuple[float, float]:
        """Return the epsilon or rho of one item, and its delta; the deltas of l0 items add up to at most delta.

        All are rounded down, also for one item (docs/decisions/total-and-parts.md).
        """
        cost = self.rho or self.epsilon or 0.0
        if self.rho is None or self.l0 == 1:
            delta = round_down(self.delta / self.l0)
        else:
            delta = rogers2023.novel_chance(self.delta, self.l0)
        return round_down(cost / self.l0), delta

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: (epsilon, delta)-DP with its zCDP, or delta-approximate rho-zCDP.

        The items of a user are selected independently, so their costs add up (Rogers 2023, Theorem 6).
        """
        return super().guarantee if self.rho is None else Guarantee(self.rho, self.delta)

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: at most l0 items per user, each count changed by at most one."""
        return Sensitivity(l0=self.l0, linf=1)

    @property
    def crossovers(self) -> tuple[int, int]:
        """Return n1 and n2 of Theorem 1. Beyond n2 users an item is released with probability one.

        Raises:
            ParameterError: The mechanism has rho, for which there is no formula.
        """
        if self.rho is not None:
            raise ParameterError("only the selection for epsilon has these numbers")
        return desfontaines2020.crossovers(*self.each)

    @property
    def cap(self) -> int:
        """Return the least number of users with a release probability of one. Counting may stop there."""
        return len(self.chances)

    @cached_property
    def chances(self) -> NDArray[np.uint64]:
        """Return the release probability by number of users, in units of 2^-64. It is one beyond the table."""
        if self.rho is not None:
            table = largest_chances(*self.each)
        else:
            table = _core.chance_table(*map(_limbs, desfontaines2020.table_numbers(*self.each)))
        chances = np.concatenate([np.zeros(self.pre_threshold - 1, np.uint64), table])
        chances.flags.writeable = False
        return chances

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is released."""
        return float(self.chances[users]) / 2.0**64 if users < len(self.chances) else 1.0

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        labels, counts = histogram._for_noise(rng)
        return published(self, labels, _core.partition_selection(counts, self.chances, rng), rng)


def _limbs(number: int) -> list[int]:
    """Return the digits of a number in base 2^64, from the least up: at least three."""
    count = max(desfontaines2020.PLACES // 64, -(-number.bit_length() // 64))
    return [number >> 64 * place & (2**64 - 1) for place in range(count)]
