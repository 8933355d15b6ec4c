"""Independent noise on every answer, with an error bound that is certain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.privacy.conversion import pure_rho
from discreet.privacy.guarantee import Guarantee, require_pair, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.queries.answers import Answering, require_queries
from discreet.queries.expected import bounded_survival, expected_maximum
from discreet.queries.noisy import GaussianAnswers
from discreet.theorems.privacy_losses import bounded_loss, bounded_masses, bounded_rho, delta_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BoundedAnswers"]

_REACH_LIMIT, _REACH_OF_RHO = 1 << 22, 1 << 16
"""The largest reach, and the largest whose zCDP cost a search computes: one evaluation takes about 50 ms there."""
_POWERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128)
_POWERS_OF_RHO = (48, 96, 160)
"""Powers tried for zCDP. Large privacy losses cost much in zCDP, so the noise must be close to Gaussian noise."""
_MANY = 100
"""From this number of queries on, rough costs guide the search."""
_ROUGH = 0.3
"""About the relative error of a rough cost, before its correction."""
_RISES = 3
"""After so many powers in a row that fail with higher and higher costs at their largest reach, a search tries only the
largest power. Rounding makes the costs so high, not the noise."""
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
        """Choose the reach and power with the smallest expected error that are (epsilon, delta)-DP."""
        k, (epsilon, delta) = require_queries(k), require_pair(epsilon, delta)
        sigma = GaussianAnswers.from_epsilon(k=k, epsilon=epsilon, delta=delta).sigma

        def rough(reach: int, power: int) -> float:
            loss = bounded_loss(reach, power)
            return delta_of([(loss, k)], epsilon, spare=_SPARE * delta, growth=_ROUGH) / (1 + _ROUGH) / delta

        reach, power = _best(
            k,
            sigma,
            lambda reach, power: _bounded_delta(reach, power, k, epsilon, _SPARE * delta) / delta,
            _POWERS,
            rough if k >= _MANY else None,
        )
        return cls(k=k, reach=reach, power=power, delta=delta, epsilon=epsilon)

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float) -> Self:
        """Choose the reach and power with the smallest expected error that are delta-approximate rho-zCDP."""
        k, (rho, delta) = require_queries(k), resolve_rho(rho, None, delta)
        sigma = GaussianAnswers.from_rho(k=k, rho=rho).sigma
        reach, power = _best(
            k,
            sigma,
            lambda reach, power: _bounded_rho(reach, power, k, delta)[0] / rho,
            _POWERS_OF_RHO,
            largest=_REACH_OF_RHO,
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
    k: int,
    sigma: float,
    cost: Callable[[int, int], float],
    powers: tuple[int, ...] = _POWERS,
    rough: Callable[[int, int], float] | None = None,
    largest: int = _REACH_LIMIT // 2,
) -> tuple[int, int]:
    """Return the reach and power with the smallest expected error whose `cost` is at most one.

    For many queries the noise (reach^2 - x^2)^m costs as much as Gaussian noise of scale
    reach sqrt((m - 1)/(m (2m + 1))), in the limit. With `rough`, estimates of the costs, only the
    powers that seem good are tried.
    """

    def limit(power: int) -> int:
        return max(4, round(sigma * math.sqrt(power * (2 * power + 1) / (power - 1))))

    errors = {power: _bounded_error(limit(power), power, k) for power in powers if limit(power) <= largest}
    if not errors:
        raise ParameterError(
            f"the guarantee is too strong for bounded noise: its reach would exceed {largest:,}; use the Gaussian "
            "method"
        )
    # For finite k the noise costs more than in the limit, because of its edges, and most for small powers. So the
    # search begins at the power that is best in the limit, and tries larger ones.
    best = math.inf
    reach = power = 0
    starts = {tried: limit(tried) for tried in powers[powers.index(min(errors, key=errors.__getitem__)) :]}
    if rough is not None:
        starts = _promising(k, starts, rough)
    failed, hopeless = _Failures(), False
    for tried, start in starts.items():
        if hopeless and tried != powers[-1]:
            continue
        own, top = partial(_swapped, cost, tried), _largest_reach(limit(tried))
        found = _least_reach(start, top, own) if tried in errors else None
        error = math.inf if found is None else _bounded_error(found, tried, k)
        if found is not None and error < best:
            best, reach, power = error, found, tried
        elif power and rough is None:
            break
        elif found is None and tried in errors:
            hopeless = failed.rise(own(top)) or hopeless
    if not power:
        raise ParameterError("no bounded noise gives this guarantee; use the Gaussian method")
    return reach, power


def _promising(k: int, starts: dict[int, int], rough: Callable[[int, int], float]) -> dict[int, int]:
    """Return about the least reach of each power that is best or nearly best by rough costs."""
    found: dict[int, int] = {}
    errors: dict[int, float] = {}
    failed = _Failures()
    for power, start in starts.items():
        own = cache(partial(_swapped, rough, power))
        reach = _least_reach(start, _largest_reach(start), own, start >> 6)
        if reach is None:
            if failed.rise(own(_largest_reach(start))):
                break
            continue
        found[power], errors[power] = reach, _bounded_error(reach, power, k)
        if errors[power] > 1.02 * min(errors.values()):
            break
    return {power: reach for power, reach in found.items() if errors[power] <= 1.01 * min(errors.values())}


class _Failures:
    """The costs of successive powers that fail, each at its largest reach."""

    def __init__(self) -> None:
        self._last, self._rises = math.inf, 0

    def rise(self, cost: float) -> bool:
        """Add a cost; return whether the last `_RISES` costs rose."""
        self._rises = self._rises + 1 if cost > self._last else 0
        self._last = cost
        return self._rises >= _RISES


def _largest_reach(limit: int) -> int:
    """Return the largest reach to try, for the least reach in the limit of many queries."""
    return 2 * limit + limit // 8 + 2


def _swapped(cost: Callable[[int, int], float], power: int, reach: int) -> float:
    """Return `cost` with its two arguments swapped, so that `partial` can fix the power."""
    return cost(reach, power)


def _least_reach(start: int, largest: int, cost: Callable[[int], float], near: int = 1) -> int | None:
    """Return the least reach whose cost is at most one, or None if it is above `largest`.

    The cost falls with the reach. The search interpolates its logarithm, which is close to linear. With a larger
    `near`, the result is an estimate, interpolated over an interval of at most this length.
    """
    low, high = 1, largest + 1
    dear, cheap = math.nan, math.nan  # the logarithms of the costs at both ends
    # For Gaussian noise, log delta falls about thirty times as fast as the logarithm of the scale.
    reach, slope = min(start, largest), 30 / start
    last, last_gap = reach, math.nan
    for turn in count():
        gap = math.log(min(max(cost(reach), 1e-300), 1e300))
        if gap <= 0:
            high, cheap = reach, gap
        else:
            low, dear = reach, gap
        if high - low <= max(near, 1):
            break
        if (last_gap - gap) * (reach - last) > 0:
            slope = (last_gap - gap) / (reach - last)
        last, last_gap = reach, gap
        if turn % 4 == 3:
            reach = (low + high) // 2
        elif math.isnan(dear + cheap):
            # Reach the other side, if it is close.
            step = math.ceil(abs(gap) / slope) + near // 2
            reach += max(step, 1) if gap > 0 else -max(step, 1)
        else:
            beyond = near // 2 if gap > 0 else -(near // 2) - 1
            reach = math.ceil(low + dear / (dear - cheap) * (high - low)) + beyond
        reach = min(max(reach, low + 1), high - 1)
    if near > 1 and cheap < 0 < dear:
        return round(low + dear / (dear - cheap) * (high - low))
    return high if high <= largest else None


@lru_cache(maxsize=4096)
def _bounded_error(reach: int, power: int, k: int) -> float:
    return expected_maximum([(bounded_survival(bounded_masses(reach, power)), k)], reach)


@lru_cache(maxsize=256)
def _bounded_delta(reach: int, power: int, k: int, epsilon: float, spare: float) -> float:
    return delta_of([(bounded_loss(reach, power), k)], epsilon, spare=spare)


@lru_cache(maxsize=256)
def _bounded_rho(reach: int, power: int, k: int, delta: float) -> tuple[float, float]:
    return bounded_rho(reach, power, k, delta)
