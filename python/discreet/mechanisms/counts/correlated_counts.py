"""`CorrelatedCounts`: counts of given items for users with any number of items, with a part of the noise in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import SensitivityError
from discreet.mechanisms.counts.given_counts import GivenCounts
from discreet.mechanisms.parameters import require_items, require_rho
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number
from discreet.release.facts import Facts, Summed
from discreet.theorems import lebeda2025

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.mechanisms.published import ReleaseFields
    from discreet.tables.histogram import Histogram

__all__ = ["CorrelatedCounts"]


@dataclass(frozen=True, kw_only=True)
class CorrelatedCounts(GivenCounts):
    """A mechanism that releases the counts of all given `items` with about half the noise of `GaussianCounts`.

    A user may have any of the items. The mechanism measures the number N of users, and twice each count less N, with
    discrete Gaussian noise. Half of the sum of both is a count, which a fair coin rounds to a whole number. So all
    counts share a part of their noise. With d items, sigma is about (sqrt d + 1)/2 times the noise of one count alone,
    and sqrt d times with `GaussianCounts`. The guarantee is rho-zCDP per user, added or removed, without delta.

    Common noise cancels in differences of counts. It adds up in sums: the sum of more than about 3 sqrt d counts has
    more noise than with `GaussianCounts`.

    The histogram must know the number of its users (`Histogram.from_table(..., count_users=True)`).

    Args:
        items: Distinct integers, strings or bytes. Choose them without the data, or take them from a release.
        rho: The privacy cost of all counts together, in zCDP: above 0 and at most 10,000.

    Raises:
        ParameterError: A parameter is out of range, items repeat, or the noise would have a scale outside 0.001 to 1e9.
        SchemaError: The items are of mixed types.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.mechanisms.CorrelatedCounts(items=range(500), rho=0.1)
        >>> print(mechanism.guarantee)
        0.1-zCDP per user (added or removed)
        >>> independent = dp.mechanisms.GaussianCounts.from_rho(items=range(500), rho=0.1)
        >>> print(f"{mechanism.deviation:.1f} instead of {independent.deviation:.1f}")
        26.1 instead of 50.0

    Source:
        Lebeda (2025), "Better Gaussian Mechanism using Correlated Noise"; Canonne, Kamath and Steinke (2020), Theorem
        4, for noise on integers.
    """

    items: tuple[str | int | bytes, ...]
    rho: float

    counts_users = True
    l0 = None
    linf = 1

    def __post_init__(self) -> None:
        self._set(items=require_items(self.items), rho=require_rho(self.rho))
        for sigma in self.sigmas:
            require_number("sigma, the scale of the noise of the counts,", sigma, 1e-3, 1e9)

    @property
    def sigmas(self) -> tuple[float, float]:
        """Return the scales of the noise of twice a count less N, and of N."""
        return lebeda2025.correlated_sigmas(self.rho, len(self.items))

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: rho-zCDP (docs/how-to/public-items.md, the theorem)."""
        return Guarantee(self.rho, 0.0)

    @cached_property
    def noise(self) -> _core.Noise:
        """Return the distribution of the noise of twice a count less N: discrete Gaussian."""
        return _core.Noise.discrete_gaussian(self.sigmas[0])

    @cached_property
    def users_noise(self) -> _core.Noise:
        """Return the distribution of the noise of N: discrete Gaussian."""
        return _core.Noise.discrete_gaussian(self.sigmas[1])

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the noise of a count with its rounding, which is an upper bound."""
        return lebeda2025.correlated_deviation(*self.sigmas)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        sigma = self.sigmas[1]
        return replace(super()._facts(l0, summed), users=(sigma, sigma), needs_users=True)

    def _require(self, histogram: Histogram) -> None:
        super()._require(histogram)
        if histogram._users is None:
            raise SensitivityError(
                "this histogram does not know the number of its users: make it with count_users=True, or from_counts "
                "with users=, or use GaussianCounts"
            )

    def _measured(self, counts: NDArray[np.int64], users: int) -> NDArray[np.int64]:
        """Return the exact numbers to measure. If a user is added, each of them moves by one, or none of them does."""
        return np.append(2 * counts - users, users)

    def _noisy(
        self, counts: NDArray[np.int64], histogram: Histogram, rng: _core.Rng
    ) -> tuple[NDArray[np.int64], ReleaseFields]:
        assert histogram._users is not None
        measured = self._measured(counts, histogram._users)
        measured += np.append(rng.sample(self.noise, len(counts)), rng.sample(self.users_noise, 1))
        users, sigma = int(measured[-1]), self.sigmas[1]
        coins = rng.words(len(counts)).astype(np.int64) & 1
        note = (
            f"number of users with any counted item: about {max(0, users):,} (sigma {sigma:.3g}). Half of the error of "
            f"this number (sigma {sigma / 2:.3g}) is in every count, and is part of their sigma"
        )
        return (measured[:-1] + users + coins) >> 1, {"users": (users, sigma), "notes": (note,)}
