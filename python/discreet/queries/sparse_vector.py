"""Sparse vector: finds a query above a threshold, at a privacy cost that does not grow with the number of queries.

After B. Ghazi, R. Kumar, P. Manurangsi, "On Avoiding the Union Bound When Answering Multiple Differentially Private
Queries" (2020), arXiv 2012.09116; with discrete Laplace noise. Noisy values and thresholds are integers, so the
comparison `>=` is exact.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number, require_whole
from discreet.queries.answers import QueryMechanism, require_queries, require_values
from discreet.queries.corrected import CorrectedAnswers
from discreet.queries.expected import Survivors, expected_maximum, laplace_survival

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "AboveThreshold",
    "Crossing",
    "IterativeSparseVector",
    "PermutedAboveThreshold",
    "Stage",
    "require_stages",
]

Way = tuple[tuple[int, ...], tuple[float, ...], float]
"""The numbers of runs, the thresholds in units of sigma, and the second stage's share of the rho of both stages.

The first two have one entry for each stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The index of a query that reached the threshold; safe to publish.

    Args:
        index: The index of the query, counted from 0, or None if no query reached the threshold.
        guarantee: The guarantee, fixed before any value is read.
        made_by: The mechanism and its parameters.
        seeded: True if the randomness was seeded. A seeded answer gives no privacy.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.AboveThreshold(epsilon=1.0, threshold=1000)
        >>> mechanism.release([0, 1_000_000, 0]).index
        1
    """

    index: int | None
    guarantee: Guarantee
    made_by: str
    seeded: bool = False

    @property
    def spent(self) -> Guarantee:
        """The privacy cost of the answer: all of the guarantee."""
        return self.guarantee

    @property
    def digest(self) -> str:
        """The SHA-256 of the answer, in hexadecimal."""
        return hashlib.sha256(repr(self.index).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class AboveThreshold(QueryMechanism[Crossing]):
    """A mechanism that returns the index of the first query whose noisy value reaches a noisy threshold, or None.

    It is epsilon-DP for any number of queries. The threshold has noise of scale 2/epsilon, drawn once. Each query has
    its own noise of scale 4/epsilon. Only the index is published. One user changes the value of each query by at most
    one, up or down.

    Args:
        epsilon: The epsilon of the guarantee, above 1e-6 and at most 100.
        threshold: The value to reach, a whole number from -2^40 to 2^40.

    Raises:
        ParameterError: A parameter is out of range.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.AboveThreshold(epsilon=1.0, threshold=1000)
        >>> print(mechanism.guarantee)
        0.462117-zCDP per user (added or removed), and (1, 0)-DP

    Source:
        Dwork and Roth (2014), Theorem 3.23; Ghazi, Kumar and Manurangsi (2020), Theorem 3.
    """

    epsilon: float
    threshold: int

    def __post_init__(self) -> None:
        self._set(
            epsilon=require_number("epsilon", self.epsilon, 1e-6, 100),
            threshold=require_whole("threshold", self.threshold, -(2**40), 2**40),
        )

    @property
    def guarantee(self) -> Guarantee:
        """epsilon-DP, and the zCDP that it implies."""
        return Guarantee.from_dp(self.epsilon, tight=True)

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the noise on the threshold and on a query, rounded up."""
        return round_up(2 / self.epsilon), round_up(4 / self.epsilon)

    @cached_property
    def noises(self) -> tuple[_core.Noise, _core.Noise]:
        """The laws of the noise on the threshold and on a query."""
        first, second = self.scales
        return _core.Noise.discrete_laplace(first), _core.Noise.discrete_laplace(second)

    def release(self, data: object, *, rng: _core.Rng | Opening | None = None) -> Crossing:
        """Return the first query that reaches the threshold, with noise on both.

        Args:
            data: A list or one-dimensional array of whole numbers, one for each query. Values are clipped to -2^40 to
                2^40.
            rng: Randomness for tests (`discreet.testing.seeded_rng`). By default the system provides it.

        Returns:
            A Crossing.

        Raises:
            ParameterError: `data` does not hold whole numbers.
            EntropyError: The system provides no randomness.
        """
        whole = require_values(data)
        stream = opened(rng)
        order = self._order(len(whole), stream)
        place = _core.first_above(whole if order is None else whole[order], self.threshold, *self.noises, stream)
        return Crossing(
            index=place if order is None or place is None else int(order[place]),
            guarantee=self.guarantee,
            made_by=repr(self),
            seeded=stream.is_seeded,
        )

    def _order(self, size: int, rng: _core.Rng) -> NDArray[np.int64] | None:
        """Return the order of the search, or None for the order of the queries. It must not depend on private data."""
        return None


@dataclass(frozen=True, kw_only=True)
class PermutedAboveThreshold(AboveThreshold):
    """A mechanism that runs `AboveThreshold` on the queries in a random order; epsilon-DP.

    All queries far above the threshold have about the same probability to be found.

    Args:
        epsilon: The epsilon of the guarantee, above 1e-6 and at most 100.
        threshold: The value to reach, a whole number from -2^40 to 2^40.

    Raises:
        ParameterError: A parameter is out of range.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.PermutedAboveThreshold(epsilon=1.0, threshold=1000)
        >>> mechanism.release([0, 1_000_000, 0]).index
        1

    Source:
        Ghazi, Kumar and Manurangsi (2020), Algorithm 2 and Observation 7.
    """

    def _order(self, size: int, rng: _core.Rng) -> NDArray[np.int64]:
        return _core.shuffled(size, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Runs of `AboveThreshold` on the errors of answers. Each run that finds a query measures the query again.

    Args:
        runs: The number of runs, from 1 to 2^24.
        epsilon: The epsilon of each run's selection and of its measurement, above 1e-6 and at most 100.
        threshold: The error to look for, a whole number from -2^40 to 2^40.

    Raises:
        ParameterError: A parameter is out of range.

    Example:
        >>> import discreet as dp
        >>> first = dp.queries.Stage(runs=10, epsilon=0.05, threshold=220)
        >>> second = dp.queries.Stage(runs=2, epsilon=0.1, threshold=300)
        >>> mechanism = dp.queries.IterativeSparseVector(k=1000, sigma=80, stages=(first, second))
        >>> print(mechanism.guarantee)
        0.123103-zCDP per user (added or removed)
    """

    runs: int
    epsilon: float
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", require_whole("runs", self.runs, 1, 2**24))
        object.__setattr__(self, "epsilon", require_number("epsilon", self.epsilon, 1e-6, 100))
        object.__setattr__(self, "threshold", require_whole("threshold", self.threshold, -(2**40), 2**40))

    @property
    def rho(self) -> float:
        """The zCDP cost of all runs: both the selection and the measurement of scale 1/epsilon are epsilon-DP."""
        return round_up(2 * self.runs * pure_rho(self.epsilon, tight=True))


@dataclass(frozen=True, kw_only=True)
class IterativeSparseVector(CorrectedAnswers):
    """A mechanism that adds discrete Gaussian noise, then corrects answers in stages of sparse vector.

    Each run searches in random order for a query whose answer is off by about the stage's threshold or more. It
    measures that query again with discrete Laplace noise of scale 1/epsilon. Both steps are epsilon-DP. So a stage
    costs rho = 2 runs epsilon tanh(epsilon/2), and the first answers cost k/(2 sigma^2). A run that finds no query
    costs as much as any other run. `from_rho` and `from_epsilon` choose one or two stages by their expected error,
    because the paper does not give its constants. They choose one stage for 100 to a million queries at rho 0.5: the
    best of more than 2,000 schedules of two stages has an error that is 0 to 2.5 % larger (docs/queries.md). Give
    `stages` for a schedule of your own.

    Args:
        k: The number of queries, from 1 to 2^24.
        sigma: The scale of the noise on the first answers, above 1e-3 and at most 1e9.
        stages: The stages (`discreet.queries.Stage`), in order.
        dp: An (epsilon, delta) pair that the zCDP implies, to be reported too.

    Raises:
        ParameterError: A parameter is out of range, or the noise is too small for `dp`.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.IterativeSparseVector.from_rho(k=1000, rho=0.1)
        >>> mechanism.error_bound, mechanism.guarantee.rho <= 0.1
        (436.0, True)

    Source:
        Ghazi, Kumar and Manurangsi (2020), Algorithm 3, with Gaussian first answers.
    """

    k: int
    sigma: float
    stages: tuple[Stage, ...]
    dp: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._set(
            k=require_queries(self.k),
            sigma=require_number("sigma", self.sigma, 1e-3, 1e9),
            stages=require_stages(self.stages),
        )

    @classmethod
    def _best(cls, k: int, rho: float, dp: tuple[float, float] | None) -> Self:
        sigma, stages = _stages(k, rho)
        return cls(k=k, sigma=sigma, stages=stages, dp=dp)

    @property
    def rho(self) -> float:
        """The zCDP cost of the first answers and all runs together."""
        return round_up(self.k / self.sigma**2 / 2 + math.fsum(stage.rho for stage in self.stages), 16)

    @cached_property
    def measured(self) -> tuple[tuple[int, _core.Noise], ...]:
        """The most answers that each stage measures again, and with which noise."""
        return tuple((stage.runs, _core.Noise.discrete_laplace(round_up(1 / stage.epsilon))) for stage in self.stages)

    @cached_property
    def expected_error(self) -> float:
        """The expected largest error of the k answers, approximately."""
        return _expected(self.k, self.sigma, self.stages)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        answers = values + rng.sample(self.noise, self.k)
        for stage, (_, again) in zip(self.stages, self.measured, strict=True):
            search = AboveThreshold(epsilon=stage.epsilon, threshold=stage.threshold)
            # All runs of a stage use one random order. Each run begins at a random place, independent of the data.
            answers = _core.corrected(values, answers, stage.runs, stage.threshold, *search.noises, again, rng)
        return answers


def require_stages(stages: object) -> tuple[Stage, ...]:
    """Return stages as a tuple, or raise ParameterError."""
    if not isinstance(stages, tuple | list) or not all(isinstance(stage, Stage) for stage in stages):
        raise ParameterError("stages must be a tuple of discreet.queries.Stage")
    return tuple(stages)


@lru_cache(maxsize=64)
def _stages(k: int, rho: float) -> tuple[float, tuple[Stage, ...]]:
    """Return the scale of the first answers and the one or two stages with the smallest expected error found."""

    def plan(share: float, way: Way) -> tuple[float, tuple[Stage, ...]]:
        runs, bars, split = way
        sigma = round_up(math.sqrt(k / (2 * share * rho)), 64)
        parts = [1.0] if len(runs) == 1 else [1 - split, split]
        stages = []
        for m, bar, part in zip(runs, bars, parts, strict=True):
            # 2 m e tanh(e/2) <= m e^2
            epsilon = round_down(math.sqrt(part * (1 - share) * rho / m), 64)
            stages.append(Stage(runs=m, epsilon=min(epsilon, 100.0), threshold=max(1, round(bar * sigma))))
        return sigma, tuple(stages)

    numbers = sorted({max(1, min(k, round(10 ** (exponent / 2)))) for exponent in range(int(2 * math.log10(k)) + 1)})
    bars = (2.0, 2.5, 3.0, 3.5, 4.0, 4.5)
    ones: list[Way] = [((m,), (bar,), 0.0) for m in numbers for bar in bars]
    best = min((_expected(k, *plan(share, way)), share, way) for share in (0.7, 0.8, 0.9, 0.95, 0.98) for way in ones)
    share, m, bar = best[1], best[2][0][0], best[2][1][0]
    twos: list[Way] = [
        ((m, max(1, m // part)), (bar, bar + more), split)
        for part in (3, 10, 30)
        for more in (0.0, 0.5, 1.0)
        for split in (0.1, 0.3)
    ]
    best = min([best, *((_expected(k, *plan(share, way)), share, way) for way in twos)])
    return plan(best[1], best[2])


def _expected(k: int, sigma: float, stages: tuple[Stage, ...]) -> float:
    """Return the expected largest error.

    This is a model: a run finds a query in proportion to the query's probability to reach the threshold. In the model,
    a query that was measured again is not measured a third time.
    """
    left, laws = Survivors.gaussian(sigma), []
    for stage in stages:
        # The sum of noises of scales a and 2 a exceeds t with probability (4 e^(-t/2a) - e^(-t/a))/6. Far fewer queries
        # are above the threshold than below.
        a = 2 / stage.epsilon
        t = stage.threshold - left.grid
        beyond = (4 * np.exp(-np.abs(t) / (2 * a)) - np.exp(-np.abs(t) / a)) / 6
        rates = np.where(t > 0, beyond, 1 - beyond)
        # A run finds nothing only if no query reaches the threshold.
        found = -math.expm1(-k * float(left.mass @ rates))
        left = left.without(min(stage.runs * found, 0.99 * k) / k, rates)
        laws.append((laplace_survival(1 / stage.epsilon), stage.runs * found))
    reach = max([9 * sigma, *((math.log(stage.runs) + 40) / stage.epsilon for stage in stages)])
    return expected_maximum([(left.survival, float(k)), *laws], reach + 2)
