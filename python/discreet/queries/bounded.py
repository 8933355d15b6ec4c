"""Independent noise on every answer, with an error bound that is certain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.privacy.conversion import pure_rho
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.queries.answers import Answering, require_queries
from discreet.queries.expected import bounded_survival, expected_maximum
from discreet.queries.noisy import GaussianAnswers
from discreet.theorems.privacy_losses import bounded_loss, bounded_masses, bounded_rho, delta_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BoundedAnswers"]

_REACH_LIMIT = 1 << 22
_POWERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128)
_POWERS_OF_RHO = (48, 96, 160)
"""Powers tried for zCDP. Large privacy losses cost much in zCDP, so the noise must be close to Gaussian noise."""
_SPARE = 1e-3
"""The share of delta for the error of the numerical computation of delta."""


@dataclass(frozen=True, kw_only=True)
class BoundedAnswers(Answering):
    """A mechanism that answers `k` queries with bounded noise: no error ever reaches `reach`.

    The noise has P[x] proportional to (reach^2 - x^2)^power for |x| < reach. It is log-concave and symmetric, so that
    a shift by one is the worst case, and all k shifts have the same privacy loss. With `epsilon` the mechanism is
    (epsilon, delta)-DP by composing the k privacy losses, rounded towards the larger delta. Without `epsilon` it is
    delta-approximate zCDP alone.

    Args:
        k: The number of queries, from 1 to 2^24.
        reach: The smallest absolute error that cannot occur, from 2 to 2^22.
        power: The exponent of the law, from 1 to 1000. A larger one is closer to Gaussian noise.
        delta: The largest delta that the guarantee may use, above 0 and at most 0.5.
        epsilon: The epsilon of an (epsilon, delta)-DP guarantee, above 0 and at most 100. None for zCDP alone.

    Raises:
        ParameterError: A parameter is out of range, or the noise is too small for (epsilon, delta)-DP.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.BoundedAnswers.from_epsilon(k=100, epsilon=1.0, delta=1e-6)
        >>> mechanism.error_bound, mechanism.bound_chance, mechanism.guarantee.dp
        (188.0, 0.0, (1.0, 1e-06))

    Source:
        `discreet.theorems.privacy_losses`, which proves the guarantee.
    """

    k: int
    reach: int
    power: int
    delta: float
    epsilon: float | None = None

    def __post_init__(self) -> None:
        self._set(
            k=require_queries(self.k),
            reach=require_whole("reach", self.reach, 2, _REACH_LIMIT),
            power=require_whole("power", self.power, 1, 1000),
            delta=require_number("delta", self.delta, 0, 0.5),
        )
        if self.epsilon is not None:
            self._set(epsilon=require_number("epsilon", self.epsilon, 0, 100))
            if _bounded_delta(self.reach, self.power, self.k, self.epsilon, _SPARE * self.delta) > self.delta:
                raise ParameterError(
                    "the noise is too small for (epsilon, delta)-DP; use from_epsilon, which chooses reach and power"
                )

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """Choose the reach and power with the smallest expected error that are (epsilon, delta)-DP.

        Args:
            k: The number of queries, from 1 to 2^24.
            epsilon: The total epsilon for all k answers.
            delta: The total delta for all k answers.

        Returns:
            A BoundedAnswers.

        Raises:
            ParameterError: A parameter is out of range, or no bounded noise gives this guarantee.
        """
        k = require_queries(k)
        sigma = GaussianAnswers.from_epsilon(k=k, epsilon=epsilon, delta=delta).sigma
        reach, power = _best(
            k, sigma, lambda reach, power: _bounded_delta(reach, power, k, epsilon, _SPARE * delta) / delta
        )
        return cls(k=k, reach=reach, power=power, delta=delta, epsilon=epsilon)

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float) -> Self:
        """Choose the reach and power with the smallest expected error that are delta-approximate rho-zCDP.

        Args:
            k: The number of queries, from 1 to 2^24.
            rho: The total rho for all k answers.
            delta: The total delta for all k answers.

        Returns:
            A BoundedAnswers.

        Raises:
            ParameterError: A parameter is out of range, or no bounded noise gives this guarantee.
        """
        k, (rho, delta) = require_queries(k), resolve_rho(rho, None, delta)
        sigma = GaussianAnswers.from_rho(k=k, rho=rho).sigma
        reach, power = _best(
            k, sigma, lambda reach, power: _bounded_rho(reach, power, k, delta)[0] / rho, _POWERS_OF_RHO
        )
        return cls(k=k, reach=reach, power=power, delta=delta)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Delta-approximate zCDP, and (epsilon, delta)-DP if `epsilon` was given.

        An (epsilon, delta)-DP mechanism is delta-approximate (epsilon tanh(epsilon/2))-zCDP. The smaller rho counts.
        """
        rho, delta = _bounded_rho(self.reach, self.power, self.k, self.delta)
        if self.epsilon is None:
            return Guarantee(rho, delta)
        pure = pure_rho(self.epsilon, tight=True)
        return Guarantee(min(rho, pure), delta if rho <= pure else self.delta, dp=(self.epsilon, self.delta))

    @cached_property
    def expected_error(self) -> float:
        """The expected largest error of the k answers."""
        return _bounded_error(self.reach, self.power, self.k)

    @property
    def error_bound(self) -> float:
        """The largest error that can occur: reach - 1, with certainty."""
        return float(self.reach - 1)

    @property
    def bound_chance(self) -> float:
        """The probability that the largest error exceeds the bound: zero."""
        return 0.0

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        return values + rng.bounded_beta(self.reach, self.power, self.k)


def _best(
    k: int, sigma: float, cost: Callable[[int, int], float], powers: tuple[int, ...] = _POWERS
) -> tuple[int, int]:
    """Return the reach and power with the smallest expected error whose `cost` is at most one.

    For many queries the noise (reach^2 - x^2)^m costs as much as Gaussian noise of scale
    reach sqrt((m - 1)/(m (2m + 1))), in the limit.
    """

    def limit(power: int) -> int:
        return max(4, round(sigma * math.sqrt(power * (2 * power + 1) / (power - 1))))

    errors = {power: _bounded_error(limit(power), power, k) for power in powers if limit(power) <= _REACH_LIMIT // 2}
    if not errors:
        raise ParameterError(
            f"the guarantee is too strong for bounded noise: its reach would exceed {_REACH_LIMIT // 2:,}; "
            "use the Gaussian method"
        )
    # For finite k the noise costs more than in the limit, because of its edges, and most for small powers. So the
    # search begins at the power that is best in the limit, and tries larger ones.
    best = math.inf
    reach = power = 0
    for tried in powers[powers.index(min(errors, key=lambda power: errors[power])) :]:
        found = _least_reach(limit(tried), partial(_swapped, cost, tried)) if tried in errors else None
        error = math.inf if found is None else _bounded_error(found, tried, k)
        if found is not None and error < best:
            best, reach, power = error, found, tried
        elif power:
            break
    if not power:
        raise ParameterError("no bounded noise gives this guarantee; use the Gaussian method")
    return reach, power


def _swapped(cost: Callable[[int, int], float], power: int, reach: int) -> float:
    """Return `cost` with its two arguments swapped, so that `partial` can fix the power."""
    return cost(reach, power)


def _least_reach(start: int, cost: Callable[[int], float]) -> int | None:
    """Return nearly the least reach, to 1 part in 2^14, whose cost is at most one.

    Returns None if that reach is above about twice `start`.
    """
    near = max(1, start >> 14)
    low, high = start, start
    while (dear := cost(low)) <= 1:
        high, low = low, low - max(near, low // 64)
        if low < 2:
            return high
    high = max(high, low + near)
    while (cheap := cost(high)) > 1:
        if high > 2 * start:
            return None
        low, dear = high, cheap
        high = math.ceil(high * (1.01 if cheap < 1.5 else 1.05)) + 1
    for turn in count():
        if high - low <= near:
            break
        # Interpolate: the logarithm of the cost is close to linear. Every third step bisects, so that both ends move.
        share = math.log(dear) / (math.log(dear) - math.log(cheap)) if cheap > 0 and turn % 3 < 2 else 0.5
        guess = low + share * (high - low) + near * (0.6, -0.6, 0.0)[turn % 3]
        middle = min(high - 1, max(low + 1, round(guess)))
        if (seen := cost(middle)) <= 1:
            high, cheap = middle, seen
        else:
            low, dear = middle, seen
    return high


@lru_cache(maxsize=4096)
def _bounded_error(reach: int, power: int, k: int) -> float:
    return expected_maximum([(bounded_survival(bounded_masses(reach, power)), k)], reach)


@lru_cache(maxsize=256)
def _bounded_delta(reach: int, power: int, k: int, epsilon: float, spare: float) -> float:
    return delta_of([(bounded_loss(reach, power), k)], epsilon, spare=spare)


@lru_cache(maxsize=256)
def _bounded_rho(reach: int, power: int, k: int, delta: float) -> tuple[float, float]:
    return bounded_rho(reach, power, k, delta)
