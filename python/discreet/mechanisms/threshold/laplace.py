"""`LaplaceThreshold`: discrete Laplace noise on every count, and a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from discreet.cached import cached_property
from discreet.mechanisms.noises import LaplaceNoise
from discreet.mechanisms.parameters import check_threshold_parameters, require_bounds, require_rho
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee, require_pair, resolve_rho
from discreet.privacy.validation import require_flag, require_number
from discreet.theorems import rogers2023

__all__ = ["LaplaceThreshold"]


@dataclass(frozen=True, kw_only=True)
class LaplaceThreshold(LaplaceNoise, ThresholdMechanism):
    """A mechanism that releases all items whose noisy counts exceed a threshold, with discrete Laplace noise.

    It publishes the noisy counts. With epsilon = linf/scale the guarantee is delta-approximate (l0 epsilon^2/2)-zCDP
    and (l0 epsilon, delta)-DP per user, added or removed. The threshold is the least integer that a novel item's noisy
    count exceeds with a probability of at most 1 - (1 - delta)^(1/l0).

    Args:
        scale: The scale of the noise, P[x] proportional to e^(-|x|/scale): above 0.001 and at most 1e9 users.
        delta: The probability that the guarantee fails: above 0 and below 1.
        l0: The most items that one user contributes: from 1 to 2^30.
        linf: The most that one user adds to one count: from 1 to 2^30.
        tight: If True, use the tighter epsilon tanh(epsilon/2) instead of epsilon^2/2 for the rho of each item.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.LaplaceThreshold(scale=2, delta=1e-6, l0=2)
        >>> print(mechanism.guarantee)
        1e-06-approximate 0.25-zCDP per user (added or removed), and (1, 1e-06)-DP
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=2, linf=1, complete=True)
        >>> mechanism.release(table).items
        ['a', 'b']

    Source:
        Rogers (2023), Algorithm 1 and Theorem 7, after Korolova et al. (2009), with integer noise.
    """

    scale: float
    delta: float
    l0: int
    linf: int = 1
    tight: bool = False

    def __post_init__(self) -> None:
        check_threshold_parameters(self, "scale")
        require_flag("tight", self.tight)
        _ = self.guarantee

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, linf: int = 1) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP."""
        l0, linf = require_bounds(l0, linf)
        scale = rogers2023.laplace_threshold_scale(require_rho(rho), l0, linf)
        return cls(scale=scale, delta=delta, l0=l0, linf=linf)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, linf: int = 1) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP.

        It takes the lower threshold of two: epsilon split over the l0 items, with all of delta for the threshold; and a
        conversion from a rho, with half of delta.
        """
        l0, linf = require_bounds(l0, linf)
        epsilon = require_number("epsilon", epsilon, 0, 1000)
        epsilon, delta = require_pair(epsilon, delta)
        rho, own = resolve_rho(None, epsilon, delta)
        shared = cls(scale=round_up(l0 * linf / epsilon, 16), delta=delta, l0=l0, linf=linf)
        converted = cls.from_rho(rho=rho, delta=own, l0=l0, linf=linf)
        return min(shared, converted, key=lambda mechanism: mechanism.threshold.value)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate (l0 epsilon^2/2)-zCDP and (l0 epsilon, delta)-DP.

        Source:
            Rogers (2023), Theorem 7.
        """
        rho = rogers2023.laplace_threshold_rho(self.epsilon, self.l0, tight=self.tight)
        return Guarantee(rho, self.delta, dp=(round_up(self.l0 * self.epsilon), self.delta))
