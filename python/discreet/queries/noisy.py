"""Independent noise on every answer: Gaussian or Laplace."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.noises import GaussianNoise, LaplaceNoise
from discreet.privacy.conversion import pure_rho, round_up
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import is_zero, require_number
from discreet.queries.answers import BOUND_CHANCE, Answering, require_queries
from discreet.queries.expected import expected_maximum, gaussian_survival, laplace_survival
from discreet.theorems.privacy_losses import delta_of, response_loss
from discreet.theorems.tails import gaussian_hockey_stick

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GaussianAnswers", "LaplaceAnswers"]

_SCALE_LIMIT = 1e9


class IndependentNoise(Answering):
    """Noise of one law on each of the `k` answers."""

    @property
    @abstractmethod
    def noise(self) -> _core.Noise:
        """The law."""

    @cached_property
    def error_bound(self) -> float:
        """What the largest error does not exceed, but for a chance of one in a million."""
        return float(self.noise.quantile(BOUND_CHANCE / (2 * self.k)) - 1)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        return values + rng.sample(self.noise, self.k)


@dataclass(frozen=True, kw_only=True)
class GaussianAnswers(GaussianNoise, IndependentNoise):
    """Discrete Gaussian noise of scale `sigma` on each of `k` answers.

    (k/(2 sigma^2))-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4). `dp`: a pair (epsilon, delta) that shall
    be stated too; the exact hockey-stick divergence of the discrete noise must allow it.
    """

    k: int
    sigma: float
    dp: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", require_queries(self.k))
        object.__setattr__(self, "sigma", require_number("sigma", self.sigma, 1e-3, _SCALE_LIMIT))
        if self.dp is not None and _gaussian_delta(self.sigma, self.k, self.dp[0]) > self.dp[1]:
            raise ParameterError("this much noise does not keep that (epsilon, delta); use from_epsilon")

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float = 0.0) -> Self:
        """The mechanism that is rho-zCDP; nothing of delta is used."""
        k = require_queries(k)
        return cls(k=k, sigma=round_up(math.sqrt(k / (2 * require_number("rho", rho, 0, 1e4))), 16))

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """The least noise that is (epsilon, delta)-DP by the exact divergence."""
        k, (rho, _) = require_queries(k), resolve_rho(None, epsilon, delta)
        most = cls.from_rho(k=k, rho=min(rho, 1e4)).sigma
        sigma = _smallest(lambda sigma: _gaussian_delta(sigma, k, epsilon) <= delta, most / 4, 2 * most)
        return cls(k=k, sigma=sigma, dp=(float(epsilon), float(delta)))

    @property
    def guarantee(self) -> Guarantee:
        """(k/(2 sigma^2))-zCDP, and the pair that was asked for."""
        return Guarantee(round_up(self.k / self.sigma**2 / 2, 16), 0.0, dp=self.dp)

    @cached_property
    def expected_error(self) -> float:
        """About the expected largest error of the k answers."""
        return expected_maximum([(gaussian_survival(self.sigma), self.k)], 9 * self.sigma + 2)


@dataclass(frozen=True, kw_only=True)
class LaplaceAnswers(LaplaceNoise, IndependentNoise):
    """Discrete Laplace noise of a `scale` on each of `k` answers.

    Every answer is 1/scale-DP, whose worst case is randomised response: (k e tanh(e/2))-zCDP with e = 1/scale, and `dp`
    by the composition of k of them (Kairouz, Oh and Viswanath 2015), where a pair shall be stated too.
    """

    k: int
    scale: float
    dp: tuple[float, float] | None = None
    linf = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", require_queries(self.k))
        object.__setattr__(self, "scale", require_number("scale", self.scale, 1e-2, _SCALE_LIMIT))
        if self.dp is not None and _laplace_delta(self.scale, self.k, self.dp[0]) > self.dp[1]:
            raise ParameterError("this much noise does not keep that (epsilon, delta); use from_epsilon")

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float = 0.0) -> Self:
        """The mechanism that is rho-zCDP; nothing of delta is used."""
        k, rho = require_queries(k), require_number("rho", rho, 0, 1e4)
        most = math.sqrt(k / (2 * rho)) * 1.001
        return cls(
            k=k, scale=_smallest(lambda scale: _laplace_rho(scale, k) <= rho, most / 100, most + 1 / math.sqrt(rho))
        )

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """The least noise that is (epsilon, delta)-DP by the composition of k randomised responses.

        With delta = 0 that is basic composition: noise of scale k/epsilon is epsilon-DP.
        """
        k = require_queries(k)
        if is_zero(delta):
            epsilon = require_number("epsilon", epsilon, 0, 1000)
            scale = round_up(k / epsilon)
            while Fraction(round_up(1 / scale)) * k > Fraction(epsilon):
                scale = round_up(scale)
            return cls(k=k, scale=scale, dp=(epsilon, 0.0))
        resolve_rho(None, epsilon, delta)
        # Basic composition, by a hair more so that it is seen to hold.
        high = k / epsilon * (1 + 1e-9)
        sigma = GaussianAnswers.from_epsilon(k=k, epsilon=epsilon, delta=delta).sigma
        scale = _smallest(lambda scale: _laplace_delta(scale, k, epsilon) <= delta, min(high, sigma) / 4, high)
        return cls(k=k, scale=scale, dp=(float(epsilon), float(delta)))

    @property
    def guarantee(self) -> Guarantee:
        """(k e tanh(e/2))-zCDP with e = 1/scale, and the pair that was asked for."""
        return Guarantee(_laplace_rho(self.scale, self.k), 0.0, dp=self.dp or (round_up(self.k * self.epsilon), 0.0))

    @cached_property
    def expected_error(self) -> float:
        """About the expected largest error of the k answers."""
        reach = self.scale * (math.log(self.k) + 40) + 2
        return expected_maximum([(laplace_survival(self.scale), self.k)], reach)


@lru_cache(maxsize=256)
def _gaussian_delta(sigma: float, k: int, epsilon: float) -> float:
    return gaussian_hockey_stick(sigma, 1, k)(epsilon)


@lru_cache(maxsize=256)
def _laplace_delta(scale: float, k: int, epsilon: float) -> float:
    return delta_of([(response_loss(round_up(1 / scale)), k)], epsilon)


def _laplace_rho(scale: float, k: int) -> float:
    return round_up(k * pure_rho(round_up(1 / scale), tight=True))


def _smallest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """A scale close to the least that holds, to a part in 1e5, where `high` does or the next powers of two above it.

    Raises ParameterError where none does up to the largest scale there is.
    """
    high = min(high, _SCALE_LIMIT)
    while not holds(high):
        if high == _SCALE_LIMIT:
            raise ParameterError("this promise is too small for any noise to fit; give a larger rho or epsilon")
        low, high = high, min(2 * high, _SCALE_LIMIT)
    while high > low * (1 + 1e-5):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
