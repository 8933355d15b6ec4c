"""Base classes for mechanisms with the same noise, and for mechanisms that split epsilon over items."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.parameters import require_delta
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import is_zero, require_number, require_whole
from discreet.release.intervals import Law

__all__ = [
    "EpsilonPerItem",
    "GaussianNoise",
    "GumbelNoise",
    "LaplaceNoise",
    "NoisyCounts",
    "laplace_deviation",
    "require_some",
]


def laplace_deviation(scale: float) -> float:
    """Return the standard deviation of discrete Laplace noise: 1 / (sqrt(2) sinh(1/(2 scale)))."""
    return 1 / (math.sqrt(2) * math.sinh(min(1 / (2 * scale), 700.0)))


class NoisyCounts(HistogramMechanism):
    """A mechanism that adds integer noise to counts and clips each user to l0 items."""

    __slots__ = ()

    l0: int
    linf: int

    @property
    def law(self) -> Law:
        """Return the law of the noise, for intervals of released counts."""
        return "gaussian"

    @property
    @abstractmethod
    def noise(self) -> _core.Noise:
        """Return the distribution of the noise on every count."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Return the standard deviation of the noise."""

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: at most l0 items per user, each count changed by at most linf."""
        return Sensitivity(l0=self.l0, linf=self.linf)


class LaplaceNoise:
    """A mixin for discrete Laplace noise of a `scale` on counts of sensitivity `linf`."""

    scale: float
    linf: int

    @property
    def law(self) -> Law:
        """Return the law of the noise: discrete Laplace."""
        return "laplace"

    @property
    def epsilon(self) -> float:
        """Return linf/scale: the pure epsilon of one count."""
        return round_up(self.linf / self.scale)

    @cached_property
    def noise(self) -> _core.Noise:
        """Return the distribution of the noise: discrete Laplace."""
        return _core.Noise.discrete_laplace(self.scale)

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the noise: about sqrt(2) scale."""
        return laplace_deviation(self.scale)


class GaussianNoise:
    """A mixin for discrete Gaussian noise of a scale `sigma`."""

    sigma: float

    @cached_property
    def noise(self) -> _core.Noise:
        """Return the distribution of the noise: discrete Gaussian."""
        return _core.Noise.discrete_gaussian(self.sigma)

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the noise: sigma, which is an upper bound."""
        return self.sigma


class GumbelNoise:
    """A mixin for Gumbel noise of a `scale` on counts of sensitivity `linf`, all changed in the same direction."""

    scale: float
    linf: int

    @property
    def gamma(self) -> float:
        """Return 1/scale, rounded down: the factor of every count."""
        return min(round_down(1 / self.scale, 1), 1000.0)

    @property
    def epsilon(self) -> float:
        """Return linf gamma: the bounded range of one selection."""
        return round_up(self.linf * self.gamma, 1)


def require_some(delta: object) -> None:
    """Raise ParameterError for a delta of 0."""
    if is_zero(delta):
        raise ParameterError(
            "delta must be above 0: with delta=0 no item can ever be released, because an item without users never "
            "is. If the items are known without the data, use LaplaceCounts, which needs no delta"
        )


@dataclass(frozen=True, kw_only=True)
class EpsilonPerItem(HistogramMechanism):
    """A mechanism that splits an (epsilon, delta)-DP guarantee evenly over a user's l0 items."""

    epsilon: float
    delta: float
    l0: int = 1

    def __post_init__(self) -> None:
        require_some(self.delta)
        if is_zero(self.epsilon):
            raise ParameterError(
                "epsilon must be above 0: with epsilon=0 an item of n users could be released with probability n delta "
                "at most, and noise would have an infinite scale; give an epsilon of at least 1e-9"
            )
        self._set(
            epsilon=require_number("epsilon", self.epsilon, 1e-9, 100, open_low=False),
            delta=require_delta(self.delta),
            l0=require_whole("l0", self.l0, 1, 2**20),
        )

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int = 1) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP, with epsilon sqrt(2 rho l0); rho <= 5000."""
        rho = require_number("rho", rho, 0, 5000)
        epsilon = round_down(math.sqrt(2 * rho * require_whole("l0", l0, 1)), 8)
        return cls.from_epsilon(epsilon=epsilon, delta=delta, l0=l0)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int = 1) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP."""
        return cls(epsilon=epsilon, delta=delta, l0=l0)

    @property
    def each(self) -> tuple[float, float]:
        """Return the epsilon and delta of one item: epsilon/l0 and delta/l0."""
        if self.l0 == 1:
            return self.epsilon, self.delta
        return round_down(self.epsilon / self.l0, 1), round_down(self.delta / self.l0, 1)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: (epsilon, delta)-DP, and delta-approximate zCDP with l0 times the rho of epsilon/l0."""
        rho = round_up(self.l0 * pure_rho(self.each[0]), 1)
        return Guarantee(rho, self.delta, dp=(self.epsilon, self.delta))
