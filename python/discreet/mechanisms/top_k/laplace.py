"""Laplace noise on the largest counts, and a margin above the noisy next one."""

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
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_flag, require_number
from discreet.theorems import durfee_rogers2019, rogers2023

__all__ = ["LaplaceTopK"]


@dataclass(frozen=True, kw_only=True)
class LaplaceTopK(LaplaceNoise, NoisyTopK):
    """Of the k_bar largest counts those that, with discrete Laplace noise, exceed the noisy next one by a margin.

    Durfee and Rogers (2019), Algorithm 1, with integer noise and a margin that covers both noises. With
    epsilon = linf/scale it is (l0 epsilon, delta)-DP and delta-approximate
    (sqrt(l0 epsilon^2/2) + sqrt(-log(1 - delta)))^2-zCDP per user, added or removed. `scale`: of the noise.
    `l0`: the most items of a user. `linf`: the most that a user adds to one count. `k_bar`: how many
    ranked counts are seen, fixed before the data is. `tight`: charges epsilon tanh(epsilon/2) instead of
    epsilon^2/2. Raises ParameterError where a parameter is out of range.
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
        """The mechanism that promises delta-approximate rho-zCDP."""
        l0, linf = require_bounds(l0, linf)
        own = rogers2023.unconditioned_rho(require_rho(rho), require_delta(delta))
        scale = rogers2023.laplace_threshold_scale(own, l0, linf)
        return cls(scale=scale, delta=delta, l0=l0, k_bar=k_bar, linf=linf)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, k_bar: int = 1_000, linf: int = 1) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP.

        Of two calibrations the one with the smaller margin: epsilon shared out among the l0 items, with
        all of delta for the margin, or a rho by conversion, with half of it.
        """
        l0, linf = require_bounds(l0, linf)
        epsilon = require_number("epsilon", epsilon, 0, 1000)
        rho, own = resolve_rho(None, epsilon, delta)
        scale = round_up(l0 * linf / epsilon, 16)
        shared = cls(scale=scale, delta=delta, l0=l0, k_bar=k_bar, linf=linf)
        try:
            converted = cls.from_rho(rho=rho, delta=own, l0=l0, k_bar=k_bar, linf=linf)
        except ParameterError:  # a small rho pays for no conditioning
            return shared
        return min(shared, converted, key=lambda mechanism: mechanism.margin)

    @property
    def guarantee(self) -> Guarantee:
        """(l0 epsilon, delta)-DP, and Theorem 8 of Rogers (2023) with the conditioning of noise on a lattice."""
        rho = rogers2023.laplace_threshold_rho(self.epsilon, self.l0, tight=self.tight)
        pair = (round_up(self.l0 * self.epsilon), self.delta)
        return Guarantee(rogers2023.conditioned_rho(rho, self.delta), self.delta, dp=pair)

    @cached_property
    def difference_tail(self) -> Callable[[int], float]:
        """An upper bound of the chance that two noises differ by at least m >= 1."""
        return lambda m: durfee_rogers2019.discrete_laplace_difference_tail(self.scale, m)
