"""Gaussian answers, corrected in one pass of sparse vector; and the same, guarded by the answers it began with.

Kept to compare: these mechanisms never gain. At the best parameters found, `GumbelCorrection` has a smaller error
wherever sparse vector beats plain Gaussian noise, and the guard changes no error that could be measured.

After T. Steinke, J. Ullman, "Between Pure and Approximate Differential Privacy" (2016), and B. Ghazi, R. Kumar, P.
Manurangsi, "On Avoiding the Union Bound When Answering Multiple Differentially Private Queries" (2020), Theorem 2 and
Section 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number, require_whole
from discreet.queries.answers import BOUND_CHANCE, Answering, require_queries
from discreet.queries.corrected import CorrectedAnswers
from discreet.queries.expected import Survivors, expected_maximum, gaussian_survival
from discreet.queries.sparse_vector import AboveThreshold, shuffled

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GuardedCorrection", "SparseVectorCorrection", "crossings", "guarded"]

_CHUNK = 1 << 10
_FALLBACK = 1e-3
"""The chance, at most, that corrected answers are given up although nothing is wrong with them."""


@dataclass(frozen=True, kw_only=True)
class SparseVectorCorrection(CorrectedAnswers):
    """Discrete Gaussian answers of scale `sigma`; up to `m` that seem off by `threshold` or more are measured anew.

    One pass over the queries in a random order. Sparse vector at `epsilon` looks for the next answer g whose |f - g|
    reaches the noisy threshold; it is measured with noise of scale `again`, and the search goes on behind it with fresh
    noise on the threshold, m times at most (Steinke and Ullman 2016; Ghazi et al. 2020, Theorem 2). A distance moves by
    at most one where f does, so that every search is epsilon-DP (Dwork and Roth 2014, Theorem 3.23). In all
    k/(2 sigma^2) + m epsilon tanh(epsilon/2) + m/(2 again^2)-zCDP, paid for also where fewer are found.
    """

    k: int
    sigma: float
    m: int
    epsilon: float
    threshold: int
    again: float
    dp: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._set(
            k=require_queries(self.k),
            sigma=require_number("sigma", self.sigma, 1e-3, 1e9),
            m=require_whole("m", self.m, 1, self.k),
            epsilon=self.search.epsilon,
            threshold=self.search.threshold,
            again=require_number("again", self.again, 1e-3, 1e9),
        )

    @classmethod
    def _best(cls, k: int, rho: float) -> dict[str, Any]:
        return _best_plan(k).parameters(k, rho)

    @property
    def rho(self) -> float:
        """What the first answers, all searches and all measurements cost together."""
        searches = self.m * pure_rho(self.epsilon, tight=True)
        return round_up(self.k / self.sigma**2 / 2 + searches + self.m / self.again**2 / 2, 16)

    @cached_property
    def search(self) -> AboveThreshold:
        """What one search is."""
        return AboveThreshold(epsilon=self.epsilon, threshold=self.threshold)

    @cached_property
    def _measured(self) -> tuple[tuple[int, _core.Noise], ...]:
        return ((self.m, _core.Noise.discrete_gaussian(self.again)),)

    @cached_property
    def expected_error(self) -> float:
        """About the expected largest error of the k answers."""
        search = _Search.of(self.sigma, self.epsilon, float(self.threshold), self.k)
        return search.expected(self.k, self.m, self.again)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        return self._corrected(values, values + rng.sample(self.noise, self.k), rng)

    def _corrected(self, values: NDArray[np.int64], answers: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        """The answers, of which those that the searches find are measured anew."""
        of_threshold, of_query = self.search.noises
        [(_, law)] = self._measured
        order = shuffled(self.k, rng)
        # A query's noise is drawn once: what a search did not come to is as good as fresh for the next.
        noisy = np.abs(values - answers)[order] + rng.sample(of_query, self.k)
        rows = order[crossings(noisy, self.threshold + rng.sample(of_threshold, self.m))]
        corrected = answers.copy()
        corrected[rows] = values[rows] + rng.sample(law, len(rows))
        return corrected


@dataclass(frozen=True, kw_only=True)
class GuardedCorrection(Answering):
    """The answers g of a `correction` where none is further than `tau` from the Gaussian answers h that it began with,
    else h (Ghazi et al. 2020, Section 6).

    The largest error is never above tau plus that of h, whatever the correction did: |g - f| <= |g - h| + |h - f|. The
    paper runs two more Gaussian mechanisms; none is needed, as that holds for any h, those inside included. Comparing
    what was released already costs nothing: the guarantee is the correction's.
    """

    correction: SparseVectorCorrection
    tau: int

    def __post_init__(self) -> None:
        if not isinstance(self.correction, SparseVectorCorrection):
            raise ParameterError("correction must be a SparseVectorCorrection")
        object.__setattr__(self, "tau", require_whole("tau", self.tau, 1, 2**40))

    @classmethod
    def of(cls, correction: SparseVectorCorrection) -> Self:
        """With the tau that right corrections exceed with a chance of one in a thousand at most."""
        [(_, again)] = correction._measured
        far = correction.noise.quantile(_FALLBACK / (4 * correction.k)) + again.quantile(_FALLBACK / (4 * correction.m))
        return cls(correction=correction, tau=far)

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float = 0.0) -> Self:
        """With the correction that is rho-zCDP; no delta is used."""
        return cls.of(SparseVectorCorrection.from_rho(k=k, rho=rho))

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """With the correction that is (epsilon, delta)-DP."""
        return cls.of(SparseVectorCorrection.from_epsilon(k=k, epsilon=epsilon, delta=delta))

    @property
    def k(self) -> int:  # type: ignore[override]
        """How many queries are answered."""
        return self.correction.k

    @property
    def guarantee(self) -> Guarantee:
        """The correction's: what is compared was released by it."""
        return self.correction.guarantee

    @property
    def expected_error(self) -> float:
        """About the correction's, which is given up once in a thousand times at most."""
        return self.correction.expected_error

    @cached_property
    def error_bound(self) -> float:
        """tau and the error of the Gaussian answers, or the correction's own bound where that is less.

        Where no noise of the correction is beyond the latter, neither the answers g nor h are.
        """
        first = self.tau + self.correction.noise.quantile(BOUND_CHANCE / (2 * self.k)) - 1.0
        return min(first, self.correction.error_bound)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        first = values + rng.sample(self.correction.noise, self.k)
        return guarded(self.correction._corrected(values, first, rng), first, self.tau)


def guarded(answers: NDArray[np.int64], others: NDArray[np.int64], tau: int) -> NDArray[np.int64]:
    """The answers where none is further than tau from the others, else the others.

    For any values f: max |result - f| <= tau + max |others - f|.
    """
    return answers if int(np.abs(answers - others).max()) <= tau else others


def crossings(values: NDArray[np.int64], bars: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of the first value that reaches the first bar, of the next one behind it that reaches the second, and
    so on while there are any."""
    places, start = [], 0
    for bar in bars.tolist():
        size = _CHUNK
        while start < len(values):
            hits = values[start : start + size] >= bar
            first = int(hits.argmax())
            if hits[first]:
                places.append(start + first)
                start += first + 1
                break
            start, size = start + size, 2 * size
    return np.array(places, np.int64)


@dataclass(frozen=True, slots=True)
class _Search:
    """What searches with one threshold do to Gaussian errors: in floating point, for the choice alone."""

    sigma: float
    length: float
    """How many queries one search looks at on average."""
    spread: float
    """The deviation of that."""
    left: Survivors
    """The errors that searches pass over."""

    @classmethod
    def of(cls, sigma: float, epsilon: float, threshold: float, k: int, *, whole: bool = True) -> Self:
        """A bar that turned out high is looked at many queries with, so that queries see such bars more often."""
        errors = Survivors.gaussian(sigma)
        if not whole:
            errors = Survivors(errors.grid[::8], errors.mass[::8] / errors.mass[::8].sum())
        passed = _passed(errors.grid, epsilon, threshold)
        lengths = np.minimum(1 / np.maximum((1 - passed) @ errors.mass, 1e-300), float(k))
        mean = float(_BAR_MASSES @ lengths)
        spread = math.sqrt(max(float(_BAR_MASSES @ (2 * lengths**2)) - mean**2, 0.0))
        seen = (_BAR_MASSES * lengths) @ passed / mean
        return cls(sigma, mean, spread, Survivors(errors.grid, errors.mass * seen))

    def expected(self, k: int, m: int, again: float) -> float:
        """The expected largest error of m searches, which may end before the queries do."""
        reach = 9 * max(self.sigma, again) + 2
        found = (gaussian_survival(again), min(float(m), k * (1 - float(self.left.mass.sum()))))
        error = expected_maximum([(self.left.survival, float(k)), found], reach)
        deviation = self.spread * math.sqrt(m)
        ended = math.erfc((m * self.length - k) / (deviation * math.sqrt(2))) / 2
        if ended < 1e-2:
            return error
        rest = min(float(k), max(k - m * self.length, 0.8 * deviation))
        laws = [(self.left.survival, k - rest), (gaussian_survival(self.sigma), rest), found]
        return (1 - ended) * error + ended * expected_maximum(laws, reach)

    def reaches(self, k: int, m: int) -> bool:
        """Whether m searches are likely to be enough for k queries: at a deviation more than on average."""
        return m * self.length - math.sqrt(m) * self.spread >= k


@dataclass(frozen=True, slots=True)
class _Plan:
    """Corrections, shares of rho of the first answers and of the searches, and a threshold in deviations."""

    m: int
    first: float
    searches: float
    bar: float

    def parameters(self, k: int, rho: float) -> dict[str, float]:
        """The mechanism's; m epsilon tanh(epsilon/2) is at most m epsilon^2/2."""
        sigma = round_up(math.sqrt(k / (2 * self.first * rho)), 64)
        return {
            "sigma": sigma,
            "m": self.m,
            "epsilon": min(round_down(math.sqrt(2 * self.searches * rho / self.m), 64), 100.0),
            "threshold": max(1, round(self.bar * sigma)),
            "again": round_up(math.sqrt(self.m / (2 * (1 - self.first - self.searches) * rho)), 64),
        }


@lru_cache(maxsize=64)
def _best_plan(k: int) -> _Plan:
    """The plan of the smallest expected error; scales all grow alike with rho."""
    rho = k / 2e6  # the plain scale is a thousand
    best = (math.inf, _Plan(1, 0.98, 0.014, 8.0))
    for m in sorted({max(1, min(k, round(10 ** (exponent / 2)))) for exponent in range(int(2 * math.log10(k)) + 1)}):
        for first in (0.8, 0.9, 0.95, 0.98):
            for part in (0.7, 0.9):
                plan = _Plan(m, first, part * (1 - first), 8.0)
                made = plan.parameters(k, rho)
                low, high = 0.0, 8.0
                for _ in range(12):
                    bar = (low + high) / 2
                    search = _Search.of(made["sigma"], made["epsilon"], bar * made["sigma"], k, whole=False)
                    low, high = (low, bar) if search.reaches(k, m) else (bar, high)
                search = _Search.of(made["sigma"], made["epsilon"], high * made["sigma"], k, whole=False)
                error = search.expected(k, m, made["again"])
                if error < best[0]:
                    best = (error, _Plan(m, first, part * (1 - first), high))
    return best[1]


_BARS = np.linspace(-10, 14, 49)
_BAR_MASSES = np.exp(-np.abs(_BARS)) / np.exp(-np.abs(_BARS)).sum()
"""Noise on thresholds, in units of its scale."""


def _passed(errors: NDArray[np.float64], epsilon: float, threshold: float) -> NDArray[np.float64]:
    """The chance that a query of each error is below each bar; its noise has twice the scale of the bar's."""
    scale = 2 / epsilon
    gaps = (threshold + scale * _BARS[:, None] - errors[None, :]) / (2 * scale)
    tails = np.exp(-np.abs(gaps)) / 2
    return np.where(gaps > 0, 1 - tails, tails)
