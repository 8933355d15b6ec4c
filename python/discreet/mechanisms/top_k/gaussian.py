"""Gaussian noise on the largest counts, and a margin above the noisy next one."""

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
    """Of the k_bar largest counts those that, with discrete Gaussian noise, exceed the noisy next one by a margin.

    Rogers (2023), Algorithm 2 and Theorem 8, with integer noise: delta-approximate
    (sqrt(m linf^2/(2 sigma^2)) + sqrt(-log(1 - delta)))^2-zCDP per user, added or removed, with
    m = min(l0, k_bar + 1); the second term is the price of the lattice. `sigma`: of the noise. `l0`: the
    most items of a user. `linf`: the most that a user adds to one count. `k_bar`: how many ranked counts
    are seen, fixed before the data is. Raises ParameterError where a parameter is out of range.
    """

    sigma: float
    delta: float
    l0: int
    k_bar: int = 1_000
    linf: int = 1

    def __post_init__(self) -> None:
        self._check("sigma")
        # The margin is that of a difference, whose scale is sqrt(2) sigma.
        require_number("sigma", self.sigma, 1e-3, 7e8)

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, k_bar: int = 1_000, linf: int = 1) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        l0, linf = require_bounds(l0, linf)
        own = rogers2023.unconditioned_rho(require_rho(rho), require_delta(delta))
        k_bar = require_whole("k_bar", k_bar, 1)
        sigma = rogers2023.gaussian_sigma(own, min(l0, k_bar + 1), linf)
        return cls(sigma=sigma, delta=delta, l0=l0, k_bar=k_bar, linf=linf)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, k_bar: int = 1_000, linf: int = 1) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, half of delta going to the conversion."""
        l0, linf = require_bounds(l0, linf)
        rho, own = resolve_rho(None, epsilon, delta)
        return cls.from_rho(rho=rho, delta=own, l0=l0, k_bar=k_bar, linf=linf)

    @property
    def guarantee(self) -> Guarantee:
        """Theorem 8 of Rogers (2023) with the conditioning of noise on a lattice."""
        rho = rogers2023.gaussian_rho(self.sigma, min(self.l0, self.k_bar + 1), self.linf)
        return Guarantee(rogers2023.conditioned_rho(rho, self.delta), self.delta)

    @cached_property
    def difference_tail(self) -> Callable[[int], float]:
        """An upper bound of the chance that two noises differ by at least m >= 1."""
        return gaussian_difference_tail(self.sigma)
