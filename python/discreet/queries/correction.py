"""Gaussian answers, of which those that seem far off are measured again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.conversion import bounded_range_rho, cdp_epsilon, cdp_rho, round_down, round_up
from discreet.errors import ParameterError
from discreet.mechanisms.tails import least
from discreet.privacy import Guarantee, require_number, require_whole, resolve_rho
from discreet.queries.answers import BOUND_CHANCE, Answering, require_queries
from discreet.queries.expected import Survivors, expected_maximum, gaussian_survival

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GumbelCorrection"]

_NEVER = -1e6
"""The score of the stop element that a selection has and this one does not need."""


@dataclass(frozen=True, kw_only=True)
class GumbelCorrection(Answering):
    """Discrete Gaussian answers of scale `sigma`; then the `m` that seem furthest off are measured anew.

    The m indices are selected by the exponential mechanism, one after the other, with rate `gamma` per unit of |f -
    g|, where g are the first answers; each selection has range 2 gamma, as a distance moves up or down by one. They
    are answered by noise of scale `again`. In all k/(2 sigma^2) + m gamma^2/2 + m/(2 again^2)-zCDP.
    """

    k: int
    sigma: float
    m: int
    gamma: float
    again: float
    dp: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        checked = {
            "k": require_queries(self.k),
            "sigma": require_number("sigma", self.sigma, 1e-3, 1e9),
            "m": require_whole("m", self.m, 1, self.k),
            "gamma": require_number("gamma", self.gamma, 0, 1000),
            "again": require_number("again", self.again, 1e-3, 1e9),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.dp is not None and cdp_epsilon(self.rho, self.dp[1]) > self.dp[0]:
            raise ParameterError("this much noise does not keep that (epsilon, delta); use from_epsilon")

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float = 0.0) -> Self:
        """The number of corrections and the shares of rho of the smallest expected error; no delta is used."""
        k, rho = require_queries(k), require_number("rho", rho, 0, 1e4)
        m, first, second = _best_shares(k)
        scales = _scales(k, rho, m, first, second)
        return cls(k=k, m=m, **scales)  # type: ignore[arg-type]

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """The same for a promise of (epsilon, delta)-DP, by conversion from zCDP."""
        resolve_rho(None, epsilon, delta)
        k, rho = require_queries(k), round_down(min(cdp_rho(epsilon, delta), 1e4), 64)
        m, first, second = _best_shares(k)
        scales = _scales(k, rho, m, first, second)
        return cls(k=k, m=m, dp=(float(epsilon), float(delta)), **scales)

    @property
    def rho(self) -> float:
        """What the three steps cost together."""
        selections = self.m * bounded_range_rho(2 * self.gamma)
        return round_up(self.k / self.sigma**2 / 2 + selections + self.m / self.again**2 / 2, 16)

    @property
    def guarantee(self) -> Guarantee:
        """The sum of the three steps in zCDP, and the pair that was asked for."""
        return Guarantee(self.rho, 0.0, dp=self.dp)

    @cached_property
    def expected_error(self) -> float:
        """About the expected largest error of the k answers."""
        return _expected(k=self.k, sigma=self.sigma, m=self.m, gamma=self.gamma, again=self.again)

    @cached_property
    def error_bound(self) -> float:
        """What the largest error does not exceed, but for a chance of one in a million."""
        first, second = (_core.Noise.discrete_gaussian(scale) for scale in (self.sigma, self.again))
        beyond = least(
            lambda t: 2 * (self.k * first.tail(t) + self.m * second.tail(t)) <= BOUND_CHANCE, int(self.sigma) + 1
        )
        return float(beyond - 1)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        answers = values + rng.sample(_core.Noise.discrete_gaussian(self.sigma), self.k)
        # One more than the distance, as a score of zero stands for no candidate.
        scores = np.abs(values - answers) + 1
        rows, _ = rng.peel(scores, int(scores.max()), self.gamma, 0, _NEVER, self.m)
        again = rng.sample(_core.Noise.discrete_gaussian(self.again), len(rows))
        answers[rows] = values[rows] + again
        return answers


def _scales(k: int, rho: float, m: int, first: float, second: float) -> dict[str, float]:
    """sigma, gamma and again where the steps have these shares of rho, the last one the rest."""
    return {
        "sigma": round_up(math.sqrt(k / (2 * first * rho)), 64),
        "gamma": min(round_down(math.sqrt(2 * second * rho / m), 64), 1000.0),
        "again": round_up(math.sqrt(m / (2 * (1 - first - second) * rho)), 64),
    }


@lru_cache(maxsize=64)
def _best_shares(k: int) -> tuple[int, float, float]:
    """The number of corrections and the shares of rho of the first two steps; scales all grow alike with rho."""
    rho = k / 2e6  # the plain scale is a thousand
    best = (math.inf, 1, 0.9, 0.08)
    numbers = sorted({max(1, min(k, round(10 ** (exponent / 3)))) for exponent in range(int(3 * math.log10(k)) + 1)})
    for m in numbers:
        for first in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95):
            for part in (0.8, 0.9):
                second = part * (1 - first)
                best = min(best, (_expected(k=k, m=m, **_scales(k, rho, m, first, second)), m, first, second))
    return best[1:]


def _expected(*, k: int, sigma: float, m: int, gamma: float, again: float) -> float:
    """The expected largest error where an answer that is off by z stays uncorrected with the chance exp(-e^(gamma z -
    c)), the law of a Gumbel score against the m-th largest one, c being such that m are corrected."""
    left = Survivors.gaussian(sigma).without(m / k, gamma * np.linspace(0, 9 * sigma, Survivors.points), gumbel=True)
    laws = [(left.survival, float(k)), (gaussian_survival(again), float(m))]
    return expected_maximum(laws, 9 * max(sigma, again) + 2)
