"""`LaplaceTopK`: discrete Laplace noise on the k_bar + 1 largest counts, and a margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.noises import LaplaceNoise
from discreet.mechanisms.parameters import require_bounds, require_delta, require_rho
from discreet.mechanisms.top_k.base import NoisyTopK
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee, require_pair, resolve_rho
from discreet.privacy.validation import require_flag, require_number
from discreet.theorems import durfee_rogers2019, rogers2023

__all__ = ["LaplaceTopK"]


@dataclass(frozen=True, kw_only=True)
class LaplaceTopK(LaplaceNoise, NoisyTopK):
    """A mechanism that releases the most common items with noisy counts, by Laplace noise and a margin.

    It adds noise to the k_bar + 1 largest counts. It releases the items whose noisy counts exceed the noisy
    (k_bar+1)-th count by more than a margin, which accounts for the noise of both counts. With epsilon = linf/scale the
    guarantee is (l0 epsilon, delta)-DP and delta-approximate (sqrt(l0 epsilon^2/2) + sqrt(-log(1 - delta)))^2-zCDP per
    user, added or removed.

    Args:
        scale: The scale of the discrete Laplace noise: above 0.001 and at most 1e9 users.
        delta: The probability that the guarantee fails: above 0 and below 1.
        l0: The most items that one user contributes: from 1 to 2^30.
        k_bar: Consider only the k_bar most common items: from 1 to 2^30. Choose it without the data.
        linf: The most that one user adds to one count: from 1 to 2^30.
        tight: If True, use the tighter epsilon tanh(epsilon/2) instead of epsilon^2/2 for the rho of each item.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.LaplaceTopK(scale=2, delta=1e-6, l0=2, k_bar=10)
        >>> print(mechanism.guarantee)
        1e-06-approximate 0.251002-zCDP per user (added or removed), and (1, 1e-06)-DP
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=2, linf=1, complete=True)
        >>> mechanism.release(table).items
        ['a', 'b']

    Source:
        Durfee and Rogers (2019), Algorithm 1, with integer noise; Rogers (2023), Theorem 8.
    """

    scale: float
    delta: float
    l0: int
    k_bar: int = 1_000
    linf: int = 1
    tight: bool = False

    def __post_init__(self) -> None:
        self._check("scale")
        require_flag("tight", self.tight)

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, k_bar: int = 1_000, linf: int = 1) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP; rho is above delta."""
        l0, linf = require_bounds(l0, linf)
        own = rogers2023.unconditioned_rho(require_rho(rho), require_delta(delta))
        scale = rogers2023.laplace_threshold_scale(own, l0, linf)
        return cls(scale=scale, delta=delta, l0=l0, k_bar=k_bar, linf=linf)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, k_bar: int = 1_000, linf: int = 1) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP.

        It takes the smaller margin of two: epsilon split over the l0 items, with all of delta for the margin; and a
        conversion from a rho, with half of delta.
        """
        l0, linf = require_bounds(l0, linf)
        epsilon = require_number("epsilon", epsilon, 0, 1000)
        epsilon, delta = require_pair(epsilon, delta)
        rho, own = resolve_rho(None, epsilon, delta)
        scale = round_up(l0 * linf / epsilon, 16)
        shared = cls(scale=scale, delta=delta, l0=l0, k_bar=k_bar, linf=linf)
        try:
            converted = cls.from_rho(rho=rho, delta=own, l0=l0, k_bar=k_bar, linf=linf)
        except ParameterError:  # rho is too small for the conditioning
            return shared
        return min(shared, converted, key=lambda mechanism: mechanism.margin)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: (l0 epsilon, delta)-DP, and the rho of Rogers (2023), Theorem 8.

        The rho includes the cost of conditioning integer noise.
        """
        rho = rogers2023.laplace_threshold_rho(self.epsilon, self.l0, tight=self.tight)
        pair = (round_up(self.l0 * self.epsilon), self.delta)
        return Guarantee(rogers2023.conditioned_rho(rho, self.delta), self.delta, dp=pair)

    @cached_property
    def difference_tail(self) -> Callable[[int], float]:
        """Return a function of m >= 1 that bounds the probability that two noises differ by at least m."""
        return lambda m: durfee_rogers2019.discrete_laplace_difference_tail(self.scale, m)
