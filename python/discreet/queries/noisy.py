"""Independent Gaussian or Laplace noise on every answer."""

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
from discreet.privacy.guarantee import Guarantee, claimed_pair, require_pair, resolve_rho
from discreet.privacy.validation import require_number
from discreet.queries.answers import BOUND_CHANCE, Answering, require_queries
from discreet.queries.expected import expected_maximum, gaussian_survival, laplace_survival
from discreet.theorems.privacy_losses import delta_of, response_loss
from discreet.theorems.tails import gaussian_hockey_stick

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GaussianAnswers", "LaplaceAnswers"]

_SCALE_LIMIT = 1e9


class IndependentNoise(Answering):
    """A mechanism that adds independent noise of one distribution to each of the `k` answers."""

    @property
    @abstractmethod
    def noise(self) -> _core.Noise:
        """The distribution of the noise."""

    @cached_property
    def error_bound(self) -> float:
        """A bound on the largest error, exceeded with probability at most 1e-6."""
        return float(self.noise.quantile(BOUND_CHANCE / (2 * self.k)) - 1)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        return values + rng.sample(self.noise, self.k)


@dataclass(frozen=True, kw_only=True)
class GaussianAnswers(GaussianNoise, IndependentNoise):
    """A mechanism that adds discrete Gaussian noise of scale `sigma` to each of `k` answers.

    It is (k/(2 sigma^2))-zCDP.

    Args:
        k: The number of queries, from 1 to 2^24.
        sigma: The scale of the noise, above 1e-3 and at most 1e9.
        dp: An (epsilon, delta) pair to be reported too. The exact hockey-stick divergence of the noise must allow it.

    Raises:
        ParameterError: A parameter is out of range, or the noise is too small for `dp`.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.GaussianAnswers.from_rho(k=100, rho=0.1)
        >>> mechanism.sigma, mechanism.error_bound
        (22.36067977499798, 128.0)

    Source:
        Canonne, Kamath and Steinke (2020), Theorem 4.
    """

    k: int
    sigma: float
    dp: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._set(k=require_queries(self.k), sigma=require_number("sigma", self.sigma, 1e-3, _SCALE_LIMIT))
        self._set(dp=claimed_pair(self.dp))
        if self.dp is not None and _gaussian_delta(self.sigma, self.k, self.dp[0]) > self.dp[1]:
            raise ParameterError("the noise is too small for the (epsilon, delta) in dp; use from_epsilon")

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float = 0.0) -> Self:
        """Choose the least noise that is rho-zCDP; delta is not used."""
        k = require_queries(k)
        return cls(k=k, sigma=round_up(math.sqrt(k / (2 * require_number("rho", rho, 0, 1e4))), 16))

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """Choose the least noise that is (epsilon, delta)-DP by the exact hockey-stick divergence."""
        epsilon, delta = require_pair(epsilon, delta)
        k, (rho, _) = require_queries(k), resolve_rho(None, epsilon, delta)
        most = cls.from_rho(k=k, rho=min(rho, 1e4)).sigma
        sigma = _smallest(lambda sigma: _gaussian_delta(sigma, k, epsilon) <= delta, most / 4, 2 * most)
        return cls(k=k, sigma=sigma, dp=(epsilon, delta))

    @property
    def guarantee(self) -> Guarantee:
        """(k/(2 sigma^2))-zCDP, and the (epsilon, delta) pair in `dp`."""
        return Guarantee(round_up(self.k / self.sigma**2 / 2, 16), 0.0, dp=self.dp)

    @cached_property
    def expected_error(self) -> float:
        """About the expected largest error of the k answers."""
        return expected_maximum([(gaussian_survival(self.sigma), self.k)], 9 * self.sigma + 2)


@dataclass(frozen=True, kw_only=True)
class LaplaceAnswers(LaplaceNoise, IndependentNoise):
    """A mechanism that adds discrete Laplace noise to each of `k` answers.

    Each answer is 1/scale-DP; its worst case is randomised response. With e = 1/scale the mechanism is
    (k e tanh(e/2))-zCDP.

    Args:
        k: The number of queries, from 1 to 2^24.
        scale: The scale of the noise, above 1e-2 and at most 1e9.
        dp: An (epsilon, delta) pair to be reported too. The composition of k randomised responses must allow it.

    Raises:
        ParameterError: A parameter is out of range, or the noise is too small for `dp`.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.LaplaceAnswers.from_epsilon(k=10, epsilon=1.0, delta=0)
        >>> print(mechanism.guarantee)
        0.0499584-zCDP per user (added or removed), and (1, 0)-DP

    Source:
        Composition: Kairouz, Oh and Viswanath (2015).
    """

    k: int
    scale: float
    dp: tuple[float, float] | None = None
    linf = 1

    def __post_init__(self) -> None:
        self._set(k=require_queries(self.k), scale=require_number("scale", self.scale, 1e-2, _SCALE_LIMIT))
        self._set(dp=claimed_pair(self.dp))
        if self.dp is not None and _laplace_delta(self.scale, self.k, self.dp[0]) > self.dp[1]:
            raise ParameterError("the noise is too small for the (epsilon, delta) in dp; use from_epsilon")

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float = 0.0) -> Self:
        """Choose the least noise that is rho-zCDP; delta is not used."""
        k, rho = require_queries(k), require_number("rho", rho, 0, 1e4)
        most = math.sqrt(k / (2 * rho)) * 1.001
        return cls(
            k=k, scale=_smallest(lambda scale: _laplace_rho(scale, k) <= rho, most / 100, most + 1 / math.sqrt(rho))
        )

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """Choose the least noise that is (epsilon, delta)-DP by the composition of k randomised responses.

        With delta = 0 that is basic composition: noise of scale k/epsilon is epsilon-DP.
        """
        k, (epsilon, delta) = require_queries(k), require_pair(epsilon, delta, with_zero=True)
        if delta == 0:
            scale = round_up(k / epsilon)
            while Fraction(round_up(1 / scale)) * k > Fraction(epsilon):
                scale = round_up(scale)
            return cls(k=k, scale=scale, dp=(epsilon, 0.0))
        sigma = GaussianAnswers.from_epsilon(k=k, epsilon=epsilon, delta=delta).sigma
        # The scale of basic composition, 1 part in 1e9 larger so that `_laplace_delta` accepts it after rounding.
        high = k / epsilon * (1 + 1e-9)
        scale = _smallest(lambda scale: _laplace_delta(scale, k, epsilon) <= delta, min(high, sigma) / 4, high)
        return cls(k=k, scale=scale, dp=(epsilon, delta))

    @property
    def guarantee(self) -> Guarantee:
        """(k e tanh(e/2))-zCDP with e = 1/scale, and the pair in `dp` or else (k e, 0)-DP."""
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
    """Return a scale within 1 part in 1e5 of the least for which `holds` is true.

    The search starts between `low` and `high`, and doubles `high` until `holds` is true there. Raises ParameterError if
    `holds` is false up to the largest scale.
    """
    high = min(high, _SCALE_LIMIT)
    while not holds(high):
        if high == _SCALE_LIMIT:
            raise ParameterError(
                f"rho or epsilon is too small: the scale of the noise would exceed {_SCALE_LIMIT:g}; give a larger one"
            )
        low, high = high, min(2 * high, _SCALE_LIMIT)
    while high > low * (1 + 1e-5):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
