"""`GaussianTopK`: discrete Gaussian noise on the k_bar + 1 largest counts, and a margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from discreet.cached import cached_property
from discreet.mechanisms.noises import GaussianNoise
from discreet.mechanisms.parameters import require_bounds, require_delta, require_rho
from discreet.mechanisms.top_k.base import NoisyTopK
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.theorems import rogers2023
from discreet.theorems.tails import gaussian_difference_tail

__all__ = ["GaussianTopK"]


@dataclass(frozen=True, kw_only=True)
class GaussianTopK(GaussianNoise, NoisyTopK):
    """A mechanism that releases the most common items with noisy counts, by Gaussian noise and a margin.

    It adds noise to the k_bar + 1 largest counts. It releases the items whose noisy counts exceed the noisy
    (k_bar+1)-th count by more than a margin. The guarantee is delta-approximate (sqrt(m linf^2/(2 sigma^2)) +
    sqrt(-log(1 - delta)))^2-zCDP per user, added or removed, with m = min(l0, k_bar + 1). The second term is the cost
    of integer noise.

    Args:
        sigma: The scale of the discrete Gaussian noise: above 0.001 and at most 7e8 users.
        delta: The probability that the guarantee fails: above 0 and below 1.
        l0: The most items that one user contributes: from 1 to 2^30.
        k_bar: Consider only the k_bar most common items: from 1 to 2^30. Choose it without the data.
        linf: The most that one user adds to one count: from 1 to 2^30.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.GaussianTopK.from_rho(rho=1, delta=1e-6, l0=2, k_bar=10)
        >>> print(mechanism.guarantee)
        1e-06-approximate 1-zCDP per user (added or removed)
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=2, linf=1, complete=True)
        >>> mechanism.release(table).items
        ['a', 'b']

    Source:
        Rogers (2023), Algorithm 2 and Theorem 8, with integer noise.
    """

    sigma: float
    delta: float
    l0: int
    k_bar: int = 1_000
    linf: int = 1

    def __post_init__(self) -> None:
        self._check("sigma")
        # The margin uses the difference of two noises: its scale, sqrt(2) sigma, must be below 1e9.
        require_number("sigma", self.sigma, 1e-3, 7e8)

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, k_bar: int = 1_000, linf: int = 1) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP; rho is above delta."""
        l0, linf = require_bounds(l0, linf)
        own = rogers2023.unconditioned_rho(require_rho(rho), require_delta(delta))
        k_bar = require_whole("k_bar", k_bar, 1)
        sigma = rogers2023.gaussian_sigma(own, min(l0, k_bar + 1), linf)
        return cls(sigma=sigma, delta=delta, l0=l0, k_bar=k_bar, linf=linf)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, k_bar: int = 1_000, linf: int = 1) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        l0, linf = require_bounds(l0, linf)
        rho, own = resolve_rho(None, epsilon, delta)
        return cls.from_rho(rho=rho, delta=own, l0=l0, k_bar=k_bar, linf=linf)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of Rogers (2023), Theorem 8, with the cost of conditioning integer noise."""
        rho = rogers2023.gaussian_rho(self.sigma, min(self.l0, self.k_bar + 1), self.linf)
        return Guarantee(rogers2023.conditioned_rho(rho, self.delta), self.delta)

    @cached_property
    def difference_tail(self) -> Callable[[int], float]:
        """Return a function of m >= 1 that bounds the probability that two noises differ by at least m."""
        return gaussian_difference_tail(self.sigma)
