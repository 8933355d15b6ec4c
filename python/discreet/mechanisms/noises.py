"""What mechanisms of one kind of noise, or of one way to share epsilon out, have in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Self

from discreet import _core
from discreet.cached import cached_property
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_number, require_whole

__all__ = ["EpsilonPerItem", "GaussianNoise", "LaplaceNoise", "NoisyCounts", "laplace_deviation"]


def laplace_deviation(scale: float) -> float:
    """The standard deviation of discrete Laplace noise: 1 / (sqrt(2) sinh(1/(2 scale)))."""
    return 1 / (math.sqrt(2) * math.sinh(min(1 / (2 * scale), 700.0)))


class NoisyCounts(HistogramMechanism):
    """What mechanisms with integer `noise` on bounded counts share."""

    __slots__ = ()

    l0: int
    linf: int

    @property
    @abstractmethod
    def noise(self) -> _core.Noise:
        """The law of the noise on every count."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation of the noise."""

    @property
    def protects(self) -> Sensitivity:
        """At most l0 items per user, each count moved by at most linf."""
        return Sensitivity(l0=self.l0, linf=self.linf)


class LaplaceNoise:
    """Discrete Laplace noise of a `scale`, on counts that a user moves by `linf`."""

    scale: float
    linf: int

    @property
    def epsilon(self) -> float:
        """linf/scale: the pure promise for each count."""
        return round_up(self.linf / self.scale)

    @cached_property
    def noise(self) -> _core.Noise:
        """Discrete Laplace noise."""
        return _core.Noise.discrete_laplace(self.scale)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, near sqrt(2) scale."""
        return laplace_deviation(self.scale)


class GaussianNoise:
    """Discrete Gaussian noise of a scale `sigma`."""

    sigma: float

    @cached_property
    def noise(self) -> _core.Noise:
        """Discrete Gaussian noise."""
        return _core.Noise.discrete_gaussian(self.sigma)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise: sigma, or a hair less."""
        return self.sigma


class EpsilonPerItem:
    """A promise (epsilon, delta) of which each of a user's l0 items has its share."""

    epsilon: float
    delta: float
    l0: int

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int = 1) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP: epsilon = sqrt(2 rho l0)."""
        rho = require_number("rho", rho, 0, 5000)
        epsilon = round_down(math.sqrt(2 * rho * require_whole("l0", l0, 1)), 8)
        return cls.from_epsilon(epsilon=epsilon, delta=delta, l0=l0)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int = 1) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP."""
        return cls(epsilon=epsilon, delta=delta, l0=l0)  # type: ignore[call-arg]  # a dataclass makes it

    @property
    def each(self) -> tuple[float, float]:
        """The epsilon and delta of one item."""
        if self.l0 == 1:
            return self.epsilon, self.delta
        return round_down(self.epsilon / self.l0, 1), round_down(self.delta / self.l0, 1)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta)-DP, and delta-approximate zCDP with l0 times the rho of epsilon/l0."""
        rho = round_up(self.l0 * pure_rho(self.each[0]), 1)
        return Guarantee(rho, self.delta, dp=(self.epsilon, self.delta))
