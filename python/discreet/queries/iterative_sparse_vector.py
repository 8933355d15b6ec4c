"""`IterativeSparseVector`: noisy answers that stages of sparse vector correct, with a guard (Ghazi et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.privacy.validation import require_number, require_whole
from discreet.queries.answers import BOUND_CHANCE, require_queries
from discreet.queries.corrected import CorrectedAnswers, large_draws
from discreet.queries.expected import Survivors, expected_maximum
from discreet.queries.sparse_vector import AboveThreshold
from discreet.theorems.ghazi2020 import PARTS, large_errors, noise_reach
from discreet.theorems.tails import least

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["IterativeSparseVector", "Stage"]

_EPSILON_LEAST, _THRESHOLD_LIMIT = 1e-6, 2**40
_TOO_SMALL = (
    "the guarantee is too strong for iterative sparse vector: a run would have an epsilon below 1e-6; give a larger "
    "rho or epsilon, or use another method"
)
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3)
"""The parts of rho that `guarded` tries for the last stage."""
_CELLS, _BATCH = 200, 0.1
"""The model of the error: its grid cells for each noise, and about the part of the findable errors that it lets one
batch of runs find."""
_BARS = np.linspace(-10, 14, 25)
_BAR_MASSES = np.exp(-np.abs(_BARS)) / np.exp(-np.abs(_BARS)).sum()
"""The probabilities of noise on thresholds, in units of its scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Runs of `PermutedAboveThreshold` on the errors of answers. A run that finds a query measures the query again.

    Args:
        runs: The number of runs, from 1 to 2^24.
        epsilon: The epsilon of each run's selection and of its measurement, above 1e-6 and at most 100.
        threshold: The error to look for, a whole number from -2^40 to 2^40.

    Example:
        >>> import discreet as dp
        >>> first = dp.queries.Stage(runs=10, epsilon=0.05, threshold=220)
        >>> second = dp.queries.Stage(runs=2, epsilon=0.1, threshold=300)
        >>> mechanism = dp.queries.IterativeSparseVector(k=1000, sigma=80, stages=(first, second))
        >>> print(mechanism.guarantee)
        0.123104-zCDP per user (added or removed)
    """

    runs: int
    epsilon: float
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", require_whole("runs", self.runs, 1, 2**24))
        object.__setattr__(self, "epsilon", require_number("epsilon", self.epsilon, _EPSILON_LEAST, 100))
        object.__setattr__(
            self, "threshold", require_whole("threshold", self.threshold, -_THRESHOLD_LIMIT, _THRESHOLD_LIMIT)
        )

    @property
    def rho(self) -> float:
        """The zCDP cost of all runs: both the selection and the measurement of scale 1/epsilon are epsilon-DP."""
        return round_up(2 * self.runs * pure_rho(self.epsilon, tight=True))

    @property
    def search(self) -> AboveThreshold:
        """The mechanism of one run's selection."""
        return AboveThreshold(epsilon=self.epsilon, threshold=self.threshold)

    @property
    def again(self) -> _core.Noise:
        """The noise of one run's measurement."""
        return _core.Noise.discrete_laplace(round_up(1 / self.epsilon))


@dataclass(frozen=True, kw_only=True)
class IterativeSparseVector(CorrectedAnswers):
    """A mechanism that adds discrete Gaussian noise, then corrects answers in stages of sparse vector.

    Each run of a stage searches in random order for a query whose answer is off by about the stage's threshold or more.
    It measures that query again with discrete Laplace noise of scale 1/epsilon. Both steps are epsilon-DP. So a stage
    costs rho = 2 runs epsilon tanh(epsilon/2), and the first answers cost k/(2 sigma^2). A run that finds no query
    costs as much as any other run. With `guard`, the first answers are released if a correction moves an answer too
    far. This compares values that could be released, so it costs nothing.

    `from_rho` and `from_epsilon` choose one stage, by its expected error: a second stage does not gain
    (docs/queries.md). `guarded` adds the last stage and the guard of Theorem 1.

    Args:
        k: The number of queries, from 1 to 2^24.
        sigma: The scale of the noise on the first answers, above 1e-3 and at most 1e9.
        stages: The stages (`discreet.queries.Stage`), in order.
        guard: The largest distance between a corrected answer and its first answer, from 1 to 2^62. If any answer is
            farther away, all first answers are released. None for no guard.
        dp: An (epsilon, delta) pair that the zCDP implies, to be reported too.

    Raises:
        ParameterError: A parameter is out of range, or the noise is too small for `dp`.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.IterativeSparseVector.from_rho(k=1000, rho=0.1)
        >>> mechanism.guarantee.rho <= 0.1, mechanism.guarded().guarantee.rho <= 0.1
        (True, True)

    Source:
        Ghazi, Kumar and Manurangsi (2020), Algorithm 3 with Gaussian first answers; Theorems 1, 2 and 13.
    """

    k: int
    sigma: float
    stages: tuple[Stage, ...]
    guard: int | None = None
    dp: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.stages, tuple | list) or not all(isinstance(stage, Stage) for stage in self.stages):
            raise ParameterError("stages must be a tuple of discreet.queries.Stage")
        self._set(
            k=require_queries(self.k),
            sigma=require_number("sigma", self.sigma, 1e-3, 1e9),
            stages=tuple(self.stages),
            guard=None if self.guard is None else require_whole("guard", self.guard, 1, 2**62),
        )

    @classmethod
    def _best(cls, k: int, rho: float, dp: tuple[float, float] | None) -> Self:
        sigma, stage = _planned(k, rho, *_best_plan(k))
        return cls(k=k, sigma=sigma, stages=(stage,), dp=dp)

    def guarded(self) -> Self:
        """Return the algorithm of Theorem 1 with the same guarantee: the stages, a last stage, and a guard.

        The last stage is the one of Theorem 2. With it no error exceeds `error_bound`, except with a probability of
        1e-6 (Theorem 13). The guard limits the error in the remaining cases (Section 6). The rho of this mechanism is
        split, and the split with the smallest `error_bound` is taken.

        Raises:
            ParameterError: The rho is too small for a last stage.
        """
        runs = [10**power for power in range(len(str(self.k)))]
        made = [plan for share in _SHARES for m in runs if (plan := self._with_last(share, m)) is not None]
        if not made:
            raise ParameterError(_TOO_SMALL)
        return min(made, key=lambda plan: plan.error_bound)

    def _with_last(self, share: float, m: int) -> Self | None:
        """Return the mechanism with a last stage of m runs, or None if an epsilon would be too small."""
        root = math.sqrt(1 - share)
        if any(root * stage.epsilon <= _EPSILON_LEAST for stage in self.stages):
            return None
        stages = tuple(
            replace(stage, epsilon=root * stage.epsilon, threshold=_whole(stage.threshold / root))
            for stage in self.stages
        )
        first = replace(self, sigma=self.sigma / root, stages=stages, guard=None, dp=None)
        # 2 m e tanh(e/2) <= m e^2
        epsilon = min(round_down(math.sqrt(max(self.rho - first.rho, 0.0) * (1 - 1e-9) / m), 64), 100.0)
        if epsilon <= _EPSILON_LEAST:
            return None
        last = Stage(runs=m, epsilon=epsilon, threshold=1)
        a, start = _reach(last, self.k)
        t = least(lambda t: large_errors(large_draws(first, t), m) <= BOUND_CHANCE / PARTS, start)
        far = t + 2 * a + first.noise.quantile(BOUND_CHANCE / (2 * PARTS * self.k)) - 2
        return replace(first, stages=(*stages, replace(last, threshold=t + a)), guard=far, dp=self.dp)

    @property
    def rho(self) -> float:
        """The zCDP cost of the first answers and all runs together."""
        return round_up(self.k / self.sigma**2 / 2 + math.fsum(stage.rho for stage in self.stages), 16)

    @cached_property
    def measured(self) -> tuple[tuple[int, _core.Noise], ...]:
        """The most answers that each stage measures again, and with which noise."""
        return tuple((stage.runs, stage.again) for stage in self.stages)

    @cached_property
    def error_bound(self) -> float:
        """A bound on the largest error, exceeded with probability at most 1e-6.

        It is the least of three bounds: of all noise, of the last stage (Theorem 13), and of the guard.
        """
        bounds = [self._noise_bound(), self._last_bound()]
        if self.guard is not None:
            bounds.append(self.guard + self.noise.quantile(BOUND_CHANCE / (2 * self.k)) - 1)
        return float(min(bounds))

    def _last_bound(self) -> float:
        """Return the bound of Theorem 13, or infinity if the last stage has other parameters than it needs."""
        if not self.stages:
            return math.inf
        last, chance = self.stages[-1], BOUND_CHANCE / PARTS
        a, start = _reach(last, self.k)
        t, bound = last.threshold - a, last.threshold + a - 1
        before = replace(self, stages=self.stages[:-1], dp=None)
        holds = t >= start and large_errors(large_draws(before, t), last.runs) <= chance
        if holds and self.guard is not None:
            holds = 2 * self.k * self.noise.tail(self.guard - bound + 1) <= chance
        return bound if holds else math.inf

    @cached_property
    def expected_error(self) -> float:
        """The expected largest error of the k answers, approximately, as if the guard kept all corrections."""
        return _expected(self.k, self.sigma, self.stages)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        first = answers = values + rng.sample(self.noise, self.k)
        for stage in self.stages:
            # All runs of a stage use one random order. Each run begins at a random place, independent of the data.
            noises = (*stage.search.noises, stage.again)
            answers = _core.corrected(values, answers, stage.runs, stage.threshold, *noises, rng)
        return answers if self.guard is None else within_guard(answers, first, self.guard)


def within_guard(answers: NDArray[np.int64], others: NDArray[np.int64], guard: int) -> NDArray[np.int64]:
    """Return the answers if each is within `guard` of the other answer, otherwise the others.

    For any values f: max |result - f| <= guard + max |others - f|.
    """
    return answers if int(np.abs(answers - others).max()) <= guard else others


def _reach(stage: Stage, k: int) -> tuple[int, int]:
    """Return `noise_reach` for all runs of a stage on k answers."""
    bar, query = stage.search.noises
    return noise_reach(k, stage.runs, (bar.quantile, query.quantile, stage.again.quantile), BOUND_CHANCE)


def _planned(k: int, rho: float, share: float, runs: int, bar: float) -> tuple[float, Stage]:
    """Return sigma for a share of rho, and the stage for the rest, with a threshold of `bar` sigma."""
    sigma = round_up(math.sqrt(k / (2 * share * rho)), 64)
    # 2 m e tanh(e/2) <= m e^2
    epsilon = min(round_down(math.sqrt((1 - share) * rho / runs), 64), 100.0)
    if epsilon <= _EPSILON_LEAST:
        raise ParameterError(_TOO_SMALL)
    return sigma, Stage(runs=runs, epsilon=epsilon, threshold=max(1, _whole(bar * sigma)))


def _whole(threshold: float) -> int:
    """Return the nearest threshold that a stage takes."""
    return max(-_THRESHOLD_LIMIT, min(round(threshold), _THRESHOLD_LIMIT))


@lru_cache(maxsize=64)
def _best_plan(k: int) -> tuple[float, int, float]:
    """Return the share, runs and bar with the smallest expected error found. They do not depend on rho."""
    rho = k / 2e6  # at which plain Gaussian noise has scale 1000
    numbers = sorted({max(1, min(k, round(10 ** (exponent / 2)))) for exponent in range(int(2 * math.log10(k)) + 1)})
    bars = (3.0, 3.5, 4.0, 4.5, 5.0, 5.5)
    plans = [(share, m, bar) for share in (0.8, 0.9, 0.95, 0.98) for m in numbers for bar in bars]

    def expected(plan: tuple[float, int, float]) -> float:
        sigma, stage = _planned(k, rho, *plan)
        return _expected(k, sigma, (stage,))

    return min(plans, key=expected)


def _expected(k: int, sigma: float, stages: tuple[Stage, ...]) -> float:
    """Return the expected largest error.

    This is a model: the errors are independent, and the expected number of errors in each cell of a grid stands for the
    number. Runs take effect in batches. A run finds an error in proportion to its probability to reach the noisy
    threshold.
    """
    reaches = [9 * sigma, *((math.log(stage.runs) + 20) / stage.epsilon for stage in stages)]
    edges = np.unique(np.concatenate([np.linspace(0, reach, _CELLS) for reach in reaches]))
    first = Survivors.gaussian(sigma, edges)
    numbers, magnitudes = k * first.mass, first.magnitudes
    for stage in stages:
        a = 2 / stage.epsilon
        again = -np.diff(np.exp(-edges * stage.epsilon))
        gaps = (stage.threshold + a * _BARS[:, None] - magnitudes[None, :]) / (2 * a)
        tails = np.exp(-np.abs(gaps)) / 2
        reach = np.where(gaps > 0, tails, 1 - tails)
        left = stage.runs
        while left > 0:
            above = reach @ numbers
            finds = -np.expm1(k * np.log1p(-np.minimum(above / k, 1 - 1e-12)))
            rate = np.minimum((_BAR_MASSES * finds / np.maximum(above, 1e-300)) @ reach, 1 - 1e-12)
            usual = float(rate**2 @ numbers) / max(float(rate @ numbers), 1e-300)
            runs = min(left, max(math.ceil(_BATCH / max(usual, 1e-9)), math.ceil(stage.runs / 32)))
            kept = np.exp(runs * np.log1p(-rate))
            numbers, left = numbers * kept + (numbers @ (1 - kept)) * again, left - runs
    return expected_maximum([(Survivors(edges, numbers / k).survival, float(k))], float(edges[-1]) + 2)
