"""Sparse vector: which query exceeds a threshold, at a price that does not grow with how many are asked.

After B. Ghazi, R. Kumar, P. Manurangsi, "On Avoiding the Union Bound When Answering Multiple Differentially Private
Queries" (2020), arXiv 2012.09116; with discrete Laplace noise. The rule compares integers, so that `>=` means what it
says.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.mechanisms.base import Opening, opened
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number, require_whole
from discreet.queries.answers import QueryMechanism, require_queries, require_values
from discreet.queries.corrected import CorrectedAnswers
from discreet.queries.expected import Survivors, expected_maximum, laplace_survival

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AboveThreshold", "Crossing", "IterativeSparseVector", "PermutedAboveThreshold", "Stage", "shuffled"]

_CHUNK = 1 << 10

Way = tuple[tuple[int, ...], tuple[float, ...], float]
"""Runs and bars, in deviations, of every stage, and what share of the stages' rho the second one has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Which query reached the threshold; safe to publish."""

    index: int | None
    """Its place, or None where there was none."""
    guarantee: Guarantee
    """What was promised before any data was seen."""
    made_by: str
    """The mechanism and its parameters."""
    seeded: bool = False
    """True where the randomness was seeded, so that the answer protects nobody."""

    @property
    def spent(self) -> Guarantee:
        """What it cost: all that was promised."""
        return self.guarantee

    @property
    def digest(self) -> str:
        """The SHA-256 of the answer, in hexadecimal."""
        return hashlib.sha256(repr(self.index).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class AboveThreshold(QueryMechanism[Crossing]):
    """The first query whose noisy value reaches a noisy threshold, or None.

    epsilon-DP however many queries there are (Dwork and Roth 2014, Theorem 3.23; Ghazi et al. 2020, Theorem 3): the
    threshold has noise of scale 2/epsilon, drawn once, every query noise of scale 4/epsilon, drawn anew, and nothing
    but the index is published. One user moves every query by at most one, up or down.
    """

    epsilon: float
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", require_number("epsilon", self.epsilon, 1e-6, 100))
        object.__setattr__(self, "threshold", require_whole("threshold", self.threshold, -(2**40), 2**40))

    @property
    def guarantee(self) -> Guarantee:
        """epsilon-DP, and its zCDP."""
        return Guarantee.from_dp(self.epsilon, tight=True)

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the noise on the threshold and on a query, rounded up."""
        return round_up(2 / self.epsilon), round_up(4 / self.epsilon)

    @cached_property
    def noises(self) -> tuple[_core.Noise, _core.Noise]:
        """The laws of these noises."""
        first, second = self.scales
        return _core.Noise.discrete_laplace(first), _core.Noise.discrete_laplace(second)

    def release(self, data: object, *, rng: _core.Rng | Opening | None = None) -> Crossing:
        """The first of these whole numbers that reaches the threshold, noise on both; its place is `index`.

        `rng` is for tests. Raises ParameterError where `data` are not whole numbers.
        """
        whole = require_values(data)
        stream = opened(rng)
        return Crossing(
            index=self._first(whole, stream, self._order(len(whole), stream)),
            guarantee=self.guarantee,
            made_by=repr(self),
            seeded=stream.is_seeded,
        )

    def _order(self, size: int, rng: _core.Rng) -> NDArray[np.int64]:
        return np.arange(size)

    def _first(self, values: NDArray[np.int64], rng: _core.Rng, *orders: NDArray[np.int64]) -> int | None:
        """The first in these orders, one after the other, which depend on nothing private."""
        of_threshold, of_query = self.noises
        bar = self.threshold + int(rng.sample(of_threshold, 1)[0])
        size = _CHUNK
        for order in orders:
            start = 0
            while start < len(order):
                rows = order[start : start + size]
                hits = np.flatnonzero(values[rows] + rng.sample(of_query, len(rows)) >= bar)
                if len(hits):
                    return int(rows[hits[0]])
                start, size = start + size, 2 * size
        return None


@dataclass(frozen=True, kw_only=True)
class PermutedAboveThreshold(AboveThreshold):
    """`AboveThreshold` on the queries in a random order (Ghazi et al. 2020, Algorithm 2, Observation 7): epsilon-DP.

    Every query far above the threshold has about the same chance.
    """

    def _order(self, size: int, rng: _core.Rng) -> NDArray[np.int64]:
        return shuffled(size, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """`runs` of sparse vector at `epsilon` and `threshold`, each of which may measure one query anew."""

    runs: int
    epsilon: float
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", require_whole("runs", self.runs, 1, 2**24))
        object.__setattr__(self, "epsilon", require_number("epsilon", self.epsilon, 1e-6, 100))
        object.__setattr__(self, "threshold", require_whole("threshold", self.threshold, -(2**40), 2**40))

    @property
    def rho(self) -> float:
        """What all runs cost: the selection is epsilon-DP, and so is the measurement of scale 1/epsilon."""
        return round_up(2 * self.runs * pure_rho(self.epsilon, tight=True))


@dataclass(frozen=True, kw_only=True)
class IterativeSparseVector(CorrectedAnswers):
    """Discrete Gaussian answers of scale `sigma`, corrected by stages of sparse vector.

    Ghazi et al. (2020), Algorithm 3, with Gaussian first answers: a run looks in random order for a query whose
    answer g is off by about the stage's threshold or more, and measures it anew with discrete Laplace noise of scale
    1/epsilon. Both are epsilon-DP, so that all is (k/(2 sigma^2) + sum of 2 runs epsilon tanh(epsilon/2))-zCDP; a run
    is paid for also where it finds nothing. `from_rho` and `from_epsilon` choose one or two stages by their expected
    error; the constants of the paper are not known.
    """

    k: int
    sigma: float
    stages: tuple[Stage, ...]
    dp: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._set(k=require_queries(self.k), sigma=require_number("sigma", self.sigma, 1e-3, 1e9))

    @classmethod
    def _best(cls, k: int, rho: float) -> dict[str, object]:
        sigma, stages = _stages(k, rho)
        return {"sigma": sigma, "stages": stages}

    @property
    def rho(self) -> float:
        """What the first answers and all runs cost."""
        return round_up(self.k / self.sigma**2 / 2 + math.fsum(stage.rho for stage in self.stages), 16)

    @cached_property
    def _measured(self) -> tuple[tuple[int, _core.Noise], ...]:
        return tuple((stage.runs, _core.Noise.discrete_laplace(round_up(1 / stage.epsilon))) for stage in self.stages)

    @cached_property
    def expected_error(self) -> float:
        """About the expected largest error of the k answers."""
        return _expected(self.k, self.sigma, self.stages)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        answers = values + rng.sample(self.noise, self.k)
        distances = np.abs(values - answers)
        for stage, (_, again) in zip(self.stages, self._measured, strict=True):
            search = AboveThreshold(epsilon=stage.epsilon, threshold=stage.threshold)
            # One random order for all runs of a stage, begun anywhere: it depends on nothing private.
            order = shuffled(self.k, rng)
            for _ in range(stage.runs):
                turn = rng.bits64() % self.k
                row = search._first(distances, rng, order[turn:], order[:turn])
                if row is not None:
                    answers[row] = values[row] + int(rng.sample(again, 1)[0])
                    distances[row] = abs(values[row] - answers[row])
        return answers


def shuffled(size: int, rng: _core.Rng) -> NDArray[np.int64]:
    """All indices in an order of random keys."""
    return np.argsort(rng.words(2 * size).view(np.uint64), kind="stable")


@lru_cache(maxsize=64)
def _stages(k: int, rho: float) -> tuple[float, tuple[Stage, ...]]:
    """The scale of the first answers and the stages of the smallest expected error found: one, or one and a second."""

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
    """The expected largest error where every run takes a query in proportion to its chance to reach the bar.

    A query that was measured anew is not measured again.
    """
    left, laws = Survivors.gaussian(sigma), []
    for stage in stages:
        # The sum of noises of scales a and 2 a exceeds t with (4 e^(-t/2a) - e^(-t/a))/6; far fewer are above than
        # are below.
        a = 2 / stage.epsilon
        t = stage.threshold - left.grid
        beyond = (4 * np.exp(-np.abs(t) / (2 * a)) - np.exp(-np.abs(t) / a)) / 6
        rates = np.where(t > 0, beyond, 1 - beyond)
        # A run finds something but for the chance that no query reaches the bar.
        found = -math.expm1(-k * float(left.mass @ rates))
        left = left.without(min(stage.runs * found, 0.99 * k) / k, rates)
        laws.append((laplace_survival(1 / stage.epsilon), stage.runs * found))
    reach = max([9 * sigma, *((math.log(stage.runs) + 40) / stage.epsilon for stage in stages)])
    return expected_maximum([(left.survival, float(k)), *laws], reach + 2)
