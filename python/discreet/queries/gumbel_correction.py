"""Gaussian noise on all answers, and a second measurement of the answers that seem to have the largest errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.privacy.conversion import bounded_range_rho, round_down, round_up
from discreet.privacy.validation import require_number, require_whole
from discreet.queries.answers import require_queries
from discreet.queries.corrected import CorrectedAnswers
from discreet.queries.expected import Survivors, expected_maximum, gaussian_survival

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GumbelCorrection"]

_NEVER = -1e6
"""The score of the stop element, so low that the selection never takes it."""
_CELLS = 1500


@dataclass(frozen=True, kw_only=True)
class GumbelCorrection(CorrectedAnswers):
    """A mechanism that adds discrete Gaussian noise, then measures again the `m` answers with about the largest errors.

    Let f be the exact values and g the first answers. The exponential mechanism selects m indices one after the other,
    at rate `gamma` per unit of |f - g|. Each selection has range 2 gamma, because a distance can move up or down by
    one. The selected queries get new noise of scale `again`. In total the mechanism is
    k/(2 sigma^2) + m gamma^2/2 + m/(2 again^2)-zCDP.

    Args:
        k: The number of queries, from 1 to 2^24.
        sigma: The scale of the noise on the first answers, above 1e-3 and at most 1e9.
        m: The number of answers that are measured again, from 1 to k.
        gamma: The rate of the exponential mechanism, above 0 and at most 1000.
        again: The scale of the noise on answers that are measured again, above 1e-3 and at most 1e9.
        dp: An (epsilon, delta) pair that the zCDP implies, to be reported too.

    Raises:
        ParameterError: A parameter is out of range, or the noise is too small for `dp`.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.GumbelCorrection(k=1000, sigma=80, m=10, gamma=0.04, again=30)
        >>> print(mechanism.guarantee)
        0.0916806-zCDP per user (added or removed)

    Source:
        The discrete Gaussian (Canonne, Kamath and Steinke 2020, Theorem 4), composed with the exponential mechanism.
    """

    k: int
    sigma: float
    m: int
    gamma: float
    again: float
    dp: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._set(
            k=require_queries(self.k),
            sigma=require_number("sigma", self.sigma, 1e-3, 1e9),
            m=require_whole("m", self.m, 1, self.k),
            gamma=require_number("gamma", self.gamma, 0, 1000),
            again=require_number("again", self.again, 1e-3, 1e9),
        )

    @classmethod
    def _best(cls, k: int, rho: float, dp: tuple[float, float] | None) -> Self:
        m, first, second = _best_shares(k)
        return cls(k=k, m=m, dp=dp, **_scales(k, rho, m, first, second))

    @property
    def rho(self) -> float:
        """The zCDP cost of the first answers, the selections and the new measurements together."""
        selections = self.m * bounded_range_rho(2 * self.gamma)
        return round_up(self.k / self.sigma**2 / 2 + selections + self.m / self.again**2 / 2, 16)

    @cached_property
    def measured(self) -> tuple[tuple[int, _core.Noise], ...]:
        """The most answers that are measured again, and with which noise."""
        return ((self.m, _core.Noise.discrete_gaussian(self.again)),)

    @cached_property
    def expected_error(self) -> float:
        """The expected largest error of the k answers, approximately."""
        return _expected(k=self.k, sigma=self.sigma, m=self.m, gamma=self.gamma, again=self.again)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        [(_, law)] = self.measured
        answers = values + rng.sample(self.noise, self.k)
        # One more than the distance, because a score of zero marks a slot without a candidate.
        scores = np.abs(values - answers) + 1
        rows, _ = rng.peel(scores, int(scores.max()), self.gamma, 0, _NEVER, self.m)
        answers[rows] = values[rows] + rng.sample(law, len(rows))
        return answers


def _scales(k: int, rho: float, m: int, first: float, second: float) -> dict[str, float]:
    """Return sigma, gamma and again for the first two steps' shares of rho; the last step has the remainder."""
    return {
        "sigma": round_up(math.sqrt(k / (2 * first * rho)), 64),
        "gamma": min(round_down(math.sqrt(2 * second * rho / m), 64), 1000.0),
        "again": round_up(math.sqrt(m / (2 * (1 - first - second) * rho)), 64),
    }


@lru_cache(maxsize=64)
def _best_shares(k: int) -> tuple[int, float, float]:
    """Return the number of corrections and the first two steps' shares of rho. They do not depend on rho."""
    rho = k / 2e6  # at which plain Gaussian noise has scale 1000
    best = (math.inf, 1, 0.9, 0.08)
    numbers = sorted({max(1, min(k, round(10 ** (exponent / 3)))) for exponent in range(int(3 * math.log10(k)) + 1)})
    for m in numbers:
        for first in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95):
            for part in (0.8, 0.9):
                second = part * (1 - first)
                best = min(best, (_expected(k=k, m=m, **_scales(k, rho, m, first, second)), m, first, second))
    return best[1:]


def _expected(*, k: int, sigma: float, m: int, gamma: float, again: float) -> float:
    """Return the expected largest error.

    This is a model: an answer with error z stays uncorrected with probability exp(-e^(gamma z - c)). That is the
    probability that its Gumbel score is below the m-th largest score. The constant c makes m answers corrected.
    """
    errors = Survivors.gaussian(sigma, np.linspace(0, 9 * sigma, _CELLS))
    left = errors.without(m / k, gamma * errors.magnitudes)
    laws = [(left.survival, float(k)), (gaussian_survival(again), float(m))]
    return expected_maximum(laws, 9 * max(sigma, again) + 2)
