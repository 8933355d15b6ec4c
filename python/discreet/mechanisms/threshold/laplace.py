"""Laplace noise on every count, and a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from discreet import _core
from discreet.cached import cached_property
from discreet.mechanisms.noises import LaplaceNoise
from discreet.mechanisms.parameters import check_threshold_parameters, require_bounds, require_rho
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_flag, require_number
from discreet.theorems import rogers2023

__all__ = ["LaplaceThreshold"]


@dataclass(frozen=True, kw_only=True)
class LaplaceThreshold(LaplaceNoise, ThresholdMechanism):
    """All items whose count and discrete Laplace noise exceed a threshold, with these noisy counts.

    Rogers (2023), Algorithm 1 and Theorem 7, after Korolova et al. (2009), with integer noise and the
    least integer threshold that one novel item passes with a chance of 1 - (1 - delta)^(1/l0). With
    epsilon = linf/scale it is delta-approximate (l0 epsilon^2/2)-zCDP and (l0 epsilon, delta)-DP per
    user, added or removed. `scale`: of the noise, P[x] proportional to e^(-|x|/scale). `l0`: the most
    items of a user. `linf`: the most that a user adds to one count. `tight`: charges
    epsilon tanh(epsilon/2) instead of epsilon^2/2. Raises ParameterError where a parameter is out of range.
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
        """The mechanism that promises delta-approximate rho-zCDP."""
        l0, linf = require_bounds(l0, linf)
        scale = rogers2023.laplace_threshold_scale(require_rho(rho), l0, linf)
        return cls(scale=scale, delta=delta, l0=l0, linf=linf)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, linf: int = 1) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP.

        Of two calibrations the one with the lower threshold: epsilon shared out among the l0 items, with
        all of delta for the threshold, or a rho by conversion, with half of it.
        """
        l0, linf = require_bounds(l0, linf)
        epsilon = require_number("epsilon", epsilon, 0, 1000)
        rho, own = resolve_rho(None, epsilon, delta)
        shared = cls(scale=round_up(l0 * linf / epsilon, 16), delta=delta, l0=l0, linf=linf)
        converted = cls.from_rho(rho=rho, delta=own, l0=l0, linf=linf)
        return min(shared, converted, key=lambda mechanism: mechanism.threshold.value)

    @property
    def guarantee(self) -> Guarantee:
        """delta-approximate (l0 epsilon^2/2)-zCDP and (l0 epsilon, delta)-DP (Rogers 2023, Theorem 7)."""
        rho = rogers2023.laplace_threshold_rho(self.epsilon, self.l0, tight=self.tight)
        return Guarantee(rho, self.delta, dp=(round_up(self.l0 * self.epsilon), self.delta))

    @cached_property
    def threshold(self) -> _core.Threshold:
        """The rule; its `value` is the least that a new count of linf exceeds with a chance 1 - (1 - delta)^(1/l0)."""
        return _core.Threshold.for_chance(self.noise, self.linf, rogers2023.novel_chance(self.delta, self.l0))
