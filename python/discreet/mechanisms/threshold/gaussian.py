"""`GaussianThreshold`: discrete Gaussian noise on every count, and a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Self

from discreet.cached import cached_property
from discreet.mechanisms.noises import GaussianNoise
from discreet.mechanisms.parameters import check_threshold_parameters, require_bounds, require_rho
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.privacy.guarantee import Guarantee, require_pair, resolve_rho
from discreet.privacy.validation import require_number
from discreet.theorems import rogers2023, wilkins2022
from discreet.theorems.tails import gaussian_hockey_stick

__all__ = ["GaussianThreshold"]

_EXACT_EPSILON = 100.0
"""The largest epsilon for the exact analysis."""
_SHARES = (0.1, 0.3, 0.5, 0.7)
"""Fractions of delta that `from_epsilon` tries for the threshold."""
_EXACT_L0 = 12
"""The largest l0 for the exact delta. For a larger l0 an upper bound is used."""


@dataclass(frozen=True, kw_only=True)
class GaussianThreshold(GaussianNoise, ThresholdMechanism):
    """A mechanism that releases all items whose noisy counts exceed a threshold, with discrete Gaussian noise.

    It publishes the noisy counts. The guarantee is delta-approximate (l0 linf^2 / (2 sigma^2))-zCDP per user, added or
    removed. The threshold is the least integer that a novel item's noisy count exceeds with probability at most
    1 - (1 - delta)^(1/l0).

    Args:
        sigma: The scale of the noise, P[x] proportional to e^(-x^2/(2 sigma^2)): above 0.001 and at most 1e9 users.
        delta: The probability that the guarantee fails: above 0 and below 1.
        l0: The most items that one user contributes: from 1 to 2^30.
        linf: The most that one user adds to one count: from 1 to 2^30.
        epsilon: If given, the guarantee also states (epsilon, delta')-DP of one release: above 0 and at most 100. The
            delta' is exact for an l0 of at most 12, and an upper bound above.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.GaussianThreshold(sigma=1, delta=1e-6, l0=2)
        >>> print(mechanism.guarantee)
        1e-06-approximate 1-zCDP per user (added or removed)
        >>> mechanism.threshold.value
        6
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=2, linf=1, complete=True)
        >>> mechanism.release(table).items
        ['a', 'b']

    Source:
        Rogers (2023), Algorithm 1 and Theorem 7, with integer noise; Wilkins et al. (2022) for the exact delta'.
    """

    sigma: float
    delta: float
    l0: int
    linf: int = 1
    epsilon: float | None = None

    def __post_init__(self) -> None:
        check_threshold_parameters(self, "sigma")
        if self.epsilon is not None:
            self._set(epsilon=require_number("epsilon", self.epsilon, 0, 100))

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, linf: int = 1) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP."""
        l0, linf = require_bounds(l0, linf)
        return cls(sigma=rogers2023.gaussian_sigma(require_rho(rho), l0, linf), delta=delta, l0=l0, linf=linf)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, linf: int = 1) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP, with the lowest threshold.

        The noise and the threshold share delta. Wilkins et al. (2022) give their exact joint cost.
        """
        l0, linf = require_bounds(l0, linf)
        epsilon, delta = require_pair(epsilon, delta)
        rho, own = resolve_rho(None, epsilon, delta)
        converted = cls.from_rho(rho=rho, delta=own, l0=l0, linf=linf)
        exact = (
            []
            if epsilon > _EXACT_EPSILON
            else [
                cls._exact(epsilon, delta, share, rogers2023.gaussian_sigma(rho, l0, linf), l0=l0, linf=linf)
                for share in _SHARES
            ]
        )
        return min([converted, *filter(None, exact)], key=lambda mechanism: mechanism.threshold.value)

    @classmethod
    def _exact(cls, epsilon: float, delta: float, share: float, largest: float, *, l0: int, linf: int) -> Self | None:
        """Return the mechanism with the least noise that is (epsilon, delta)-DP, or None.

        The threshold gets `share` of delta. The search tries sigmas of at most `largest`.
        """
        found = None
        low, high = largest / 4, largest
        for _ in range(10):
            sigma = math.sqrt(low * high)
            if not 1e-3 <= sigma <= 1e9:
                return None
            mechanism = cls(sigma=sigma, delta=delta * share, l0=l0, linf=linf, epsilon=epsilon)
            if mechanism._implies(epsilon, delta):
                found, high = mechanism, sigma
            else:
                low = sigma
        return found

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate (l0 linf^2 / (2 sigma^2))-zCDP (Rogers 2023, Theorem 7)."""
        pair = None if self.epsilon is None else (self.epsilon, self._exact_delta(self.epsilon))
        return Guarantee(self._rho, self.delta, dp=pair)

    def _implies(self, epsilon: float, delta: float) -> bool:
        """Return whether the guarantee implies (epsilon, delta)-DP. Quick bounds decide nearly always."""
        quick = self._exact_delta(epsilon, quick=True)
        if quick <= delta:
            return True
        zcdp = Guarantee(self._rho, self.delta)
        # The quick bound is far closer than that. If it were not, the noise would be larger than needed.
        return zcdp.implies(epsilon, delta) or (quick <= delta * 1.001 and self._exact_delta(epsilon) <= delta)

    @property
    def _rho(self) -> float:
        return rogers2023.gaussian_rho(self.sigma, self.l0, self.linf)

    def _exact_delta(self, epsilon: float, *, quick: bool = False) -> float:
        """Return the delta of one release at `epsilon` (Wilkins et al. 2022). With `quick`, it may be a bit larger."""

        @cache
        def divergence(shared: int) -> Callable[[float], float]:
            return gaussian_hockey_stick(self.sigma, self.linf, shared, quick=quick)

        if self.l0 > _EXACT_L0:
            return min(1.0, self.delta + divergence(self.l0)(epsilon))
        novel = self.threshold.value - self.linf + 1
        seen = self.noise.tail_bounds(novel)[1] if quick else self.noise.tail(novel)
        return wilkins2022.sparse_histogram_delta(epsilon, seen, self.l0, lambda at, shared: divergence(shared)(at))
