"""Gaussian noise on every count, and a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from discreet import _core
from discreet.cached import cached_property
from discreet.mechanisms.noises import GaussianNoise
from discreet.mechanisms.parameters import check_threshold_parameters, require_bounds, require_rho
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_number
from discreet.theorems import rogers2023, wilkins2022
from discreet.theorems.tails import gaussian_hockey_stick

__all__ = ["GaussianThreshold"]

_EXACT_EPSILON = 100.0
_SHARES = (0.1, 0.3, 0.5, 0.7)
"""Shares of delta for the threshold that are tried."""
_EXACT_L0 = 12
"""Up to this many items of a user every number of shared ones is looked at; beyond, the worst of each."""


@dataclass(frozen=True, kw_only=True)
class GaussianThreshold(GaussianNoise, ThresholdMechanism):
    """All items whose count and discrete Gaussian noise exceed a threshold, with these noisy counts.

    Rogers (2023), Algorithm 1 and Theorem 7, with integer noise and the least integer threshold that one
    novel item passes with a chance of 1 - (1 - delta)^(1/l0): delta-approximate
    (l0 linf^2 / (2 sigma^2))-zCDP per user, added or removed. `sigma`: of the noise, P[x] proportional to
    e^(-x^2/(2 sigma^2)). `l0`: the most items of a user. `linf`: the most that a user adds to one count.
    `epsilon`: where the guarantee shall also state (epsilon, delta')-DP with the exact delta' of this one
    release. Raises ParameterError where a parameter is out of range.
    """

    sigma: float
    delta: float
    l0: int
    linf: int = 1
    epsilon: float | None = None

    def __post_init__(self) -> None:
        check_threshold_parameters(self, "sigma")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", require_number("epsilon", self.epsilon, 0, 100))

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, linf: int = 1) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        l0, linf = require_bounds(l0, linf)
        return cls(sigma=rogers2023.gaussian_sigma(require_rho(rho), l0, linf), delta=delta, l0=l0, linf=linf)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, linf: int = 1) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, with the lowest threshold.

        Noise and threshold share delta; their exact joint cost is that of Wilkins et al. (2022).
        """
        l0, linf = require_bounds(l0, linf)
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
    def _exact(cls, epsilon: float, delta: float, share: float, most: float, *, l0: int, linf: int) -> Self | None:
        """The least noise, up to `most`, that with a share of delta for the threshold is (epsilon, delta)-DP."""
        found = None
        low, high = most / 4, most
        for _ in range(10):
            sigma = math.sqrt(low * high)
            if not 1e-3 <= sigma <= 1e9:
                return None
            mechanism = cls(sigma=sigma, delta=delta * share, l0=l0, linf=linf, epsilon=epsilon)
            if mechanism.guarantee.implies(epsilon, delta):
                found, high = mechanism, sigma
            else:
                low = sigma
        return found

    @cached_property
    def guarantee(self) -> Guarantee:
        """delta-approximate (l0 linf^2 / (2 sigma^2))-zCDP (Rogers 2023, Theorem 7)."""
        pair = None if self.epsilon is None else (self.epsilon, self._exact_delta(self.epsilon))
        return Guarantee(rogers2023.gaussian_rho(self.sigma, self.l0, self.linf), self.delta, dp=pair)

    def _exact_delta(self, epsilon: float) -> float:
        """The delta of this one release at `epsilon` (Wilkins et al. 2022)."""
        divergences = {
            shared: gaussian_hockey_stick(self.sigma, self.linf, shared)
            for shared in (range(1, self.l0 + 1) if self.l0 <= _EXACT_L0 else (self.l0,))
        }
        if self.l0 <= _EXACT_L0:
            seen = self.threshold.chance(self.linf)
            return wilkins2022.sparse_histogram_delta(
                epsilon, seen, self.l0, lambda at, shared: divergences[shared](at)
            )
        return min(1.0, self.delta + divergences[self.l0](epsilon))

    @cached_property
    def threshold(self) -> _core.Threshold:
        """The rule; its `value` is the least that a new count of linf exceeds with a chance 1 - (1 - delta)^(1/l0)."""
        return _core.Threshold.for_chance(self.noise, self.linf, rogers2023.novel_chance(self.delta, self.l0))
