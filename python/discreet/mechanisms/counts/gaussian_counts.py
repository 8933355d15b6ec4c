"""`GaussianCounts`: counts of given items with Gaussian noise, without delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from discreet.cached import cached_property
from discreet.mechanisms.counts.given_counts import GivenCounts
from discreet.mechanisms.noises import GaussianNoise
from discreet.mechanisms.parameters import require_rho
from discreet.privacy.conversion import cdp_rho
from discreet.privacy.guarantee import Guarantee, require_pair, resolve_rho
from discreet.theorems import rogers2023

__all__ = ["GaussianCounts"]


@dataclass(frozen=True, kw_only=True)
class GaussianCounts(GaussianNoise, GivenCounts):
    """A mechanism that releases the counts of all given `items` with discrete Gaussian noise, without delta.

    Items without users are released too, so no item reveals a user and there is no threshold. One user changes at most
    n counts, where n is the smaller of l0 and the number of items. The guarantee is (n linf^2/(2 sigma^2))-zCDP per
    user, added or removed. It is the last stage of `Plume`, for items that an earlier release found.

    Args:
        items: Distinct integers, strings or bytes. Choose them without the data, or take them from a release.
        sigma: The scale of the noise, P[x] proportional to e^(-x^2/(2 sigma^2)): above 0.001 and at most 1e9 users.
        l0: The most items that one user contributes, or None for any number. A bound lowers the cost.
        linf: The most that one user adds to one count: from 1 to 2^30.

    Raises:
        ParameterError: A parameter is out of range, or items repeat.
        SchemaError: The items are of mixed types.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.mechanisms.GaussianCounts(items=("a", "b", "c"), sigma=2, l0=1)
        >>> print(mechanism.guarantee)
        0.125-zCDP per user (added or removed)
        >>> table = dp.Histogram.from_counts(["a", "x"], [9000, 9500], l0=1, linf=1, complete=True)
        >>> sorted(mechanism.release(table).items)
        ['a', 'b', 'c']

    Source:
        Rogers (2023), Theorem 4, for Gaussian noise; Canonne, Kamath and Steinke (2020), Theorem 4, for noise on
        integers; Rogers (2024), Section 4, for the counts of Plume.
    """

    items: tuple[str | int | bytes, ...]
    sigma: float
    l0: int | None = None
    linf: int = 1

    def __post_init__(self) -> None:
        self._check("sigma")
        _ = self.guarantee

    @classmethod
    def from_rho(
        cls, *, items: tuple[str | int | bytes, ...], rho: float, l0: int | None = None, linf: int = 1
    ) -> Self:
        """Return the mechanism that guarantees rho-zCDP."""
        one = cls(items=items, sigma=1e9, l0=l0, linf=linf)
        return cls(
            items=one.items, sigma=rogers2023.gaussian_sigma(require_rho(rho), one.moved, one.linf), l0=l0, linf=linf
        )

    @classmethod
    def from_epsilon(
        cls, *, items: tuple[str | int | bytes, ...], epsilon: float, delta: float, l0: int | None = None, linf: int = 1
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. All of delta goes to the conversion."""
        epsilon, delta = require_pair(epsilon, delta)
        resolve_rho(None, epsilon, delta)
        return cls.from_rho(items=items, rho=cdp_rho(epsilon, delta), l0=l0, linf=linf)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: (n linf^2/(2 sigma^2))-zCDP, for n changed counts (Rogers 2023, Theorem 4)."""
        return Guarantee(rogers2023.gaussian_rho(self.sigma, self.moved, self.linf), 0.0)
