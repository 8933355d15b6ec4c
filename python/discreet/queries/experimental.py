"""Gaussian answers corrected in one pass of sparse vector, with and without a guard against large corrections.

These mechanisms are kept for comparison only. At the best parameters found, `GumbelCorrection` has a smaller error
wherever they have a smaller error than plain Gaussian noise. The guard has no measurable effect on the error.

After T. Steinke, J. Ullman, "Between Pure and Approximate Differential Privacy" (2016), and B. Ghazi, R. Kumar, P.
Manurangsi, "On Avoiding the Union Bound When Answering Multiple Differentially Private Queries" (2020), Theorem 2 and
Section 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self, TypedDict

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
from discreet.queries.sparse_vector import AboveThreshold

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GuardedCorrection", "SparseVectorCorrection"]

_CHUNK = 1 << 10
_FALLBACK = 1e-3
"""The largest probability that the guard rejects answers although no error is unusually large."""


@dataclass(frozen=True, kw_only=True)
class SparseVectorCorrection(CorrectedAnswers):
    """A mechanism that adds discrete Gaussian noise, then corrects up to `m` answers in one pass of sparse vector.

    The pass visits the queries in a random order. Let f be the exact values and g the first answers. Sparse vector at
    `epsilon` searches for the next query whose |f - g| reaches the noisy threshold. That query is measured again with
    noise of scale `again`. The search goes on after this query with fresh noise on the threshold, for at most m
    queries. A distance changes by at most one if f changes by one, so each search is epsilon-DP. In total the mechanism
    is k/(2 sigma^2) + m epsilon tanh(epsilon/2) + m/(2 again^2)-zCDP, even if fewer than m queries are found.

    Args:
        k: The number of queries, from 1 to 2^24.
        sigma: The scale of the noise on the first answers, above 1e-3 and at most 1e9.
        m: The most answers that are measured again, from 1 to k.
        epsilon: The epsilon of each search, above 1e-6 and at most 100.
        threshold: The error to look for, a whole number from -2^40 to 2^40.
        again: The scale of the noise on answers that are measured again, above 1e-3 and at most 1e9.
        dp: An (epsilon, delta) pair that the zCDP implies, to be reported too.

    Raises:
        ParameterError: A parameter is out of range, or the noise is too small for `dp`.

    Example:
        >>> from discreet.queries.experimental import SparseVectorCorrection
        >>> mechanism = SparseVectorCorrection(k=1000, sigma=80, m=10, epsilon=0.05, threshold=200, again=40)
        >>> print(mechanism.guarantee)
        0.0937474-zCDP per user (added or removed)

    Source:
        Steinke and Ullman (2016); Ghazi, Kumar and Manurangsi (2020), Theorem 2; Dwork and Roth (2014), Theorem 3.23.
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
    def _best(cls, k: int, rho: float, dp: tuple[float, float] | None) -> Self:
        return cls(k=k, dp=dp, **_best_plan(k).parameters(k, rho))

    @property
    def rho(self) -> float:
        """The zCDP cost of the first answers, all searches and all measurements together."""
        searches = self.m * pure_rho(self.epsilon, tight=True)
        return round_up(self.k / self.sigma**2 / 2 + searches + self.m / self.again**2 / 2, 16)

    @cached_property
    def search(self) -> AboveThreshold:
        """The mechanism of one search."""
        return AboveThreshold(epsilon=self.epsilon, threshold=self.threshold)

    @cached_property
    def measured(self) -> tuple[tuple[int, _core.Noise], ...]:
        """The most answers that are measured again, and with which noise."""
        return ((self.m, _core.Noise.discrete_gaussian(self.again)),)

    @cached_property
    def expected_error(self) -> float:
        """About the expected largest error of the k answers."""
        search = _Search.of(self.sigma, self.epsilon, float(self.threshold), self.k)
        return search.expected(self.k, self.m, self.again)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        return self.corrected(values, values + rng.sample(self.noise, self.k), rng)

    def corrected(self, values: NDArray[np.int64], answers: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        """Return the answers, after measuring again the ones that the searches find.

        Args:
            values: The exact values.
            answers: The first answers.
            rng: The random stream of the release.
        """
        of_threshold, of_query = self.search.noises
        [(_, law)] = self.measured
        order = _core.shuffled(self.k, rng)
        # A query's noise is drawn once: each query is visited by one search only.
        noisy = np.abs(values - answers)[order] + rng.sample(of_query, self.k)
        rows = order[crossings(noisy, self.threshold + rng.sample(of_threshold, self.m))]
        corrected = answers.copy()
        corrected[rows] = values[rows] + rng.sample(law, len(rows))
        return corrected


@dataclass(frozen=True, kw_only=True)
class GuardedCorrection(Answering):
    """A mechanism that returns corrected answers only if all are within `tau` of the first, uncorrected answers.

    Let f be the exact values, g the corrected answers and h the Gaussian answers before correction. If any |g - h|
    exceeds tau, h is released. Because |g - f| <= |g - h| + |h - f|, the largest error is at most tau plus the largest
    error of h, for any correction. The paper runs two more Gaussian mechanisms. They are not needed, because the
    inequality holds for any h, and `correction` already computes h. A comparison of values that could be released costs
    no privacy, so the guarantee is the guarantee of `correction`.

    Args:
        correction: The SparseVectorCorrection that is guarded.
        tau: The largest distance between a corrected answer and its first answer, from 1 to 2^40.

    Raises:
        ParameterError: `correction` is of another type, or `tau` is out of range.

    Example:
        >>> from discreet.queries.experimental import GuardedCorrection, SparseVectorCorrection
        >>> correction = SparseVectorCorrection(k=1000, sigma=80, m=10, epsilon=0.05, threshold=200, again=40)
        >>> print(GuardedCorrection(correction=correction, tau=500).guarantee)
        0.0937474-zCDP per user (added or removed)

    Source:
        Ghazi, Kumar and Manurangsi (2020), Section 6.
    """

    correction: SparseVectorCorrection
    tau: int

    def __post_init__(self) -> None:
        if not isinstance(self.correction, SparseVectorCorrection):
            raise ParameterError("correction must be a SparseVectorCorrection")
        self._set(tau=require_whole("tau", self.tau, 1, 2**40))

    @classmethod
    def of(cls, correction: SparseVectorCorrection) -> Self:
        """Guard a correction with the tau that correct answers exceed with probability at most 1e-3.

        Args:
            correction: The SparseVectorCorrection to guard.

        Returns:
            A GuardedCorrection.
        """
        [(_, again)] = correction.measured
        far = correction.noise.quantile(_FALLBACK / (4 * correction.k)) + again.quantile(_FALLBACK / (4 * correction.m))
        return cls(correction=correction, tau=far)

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float = 0.0) -> Self:
        """Guard the SparseVectorCorrection that is rho-zCDP.

        Args:
            k: The number of queries, from 1 to 2^24.
            rho: The total rho for all answers, above 1e-19 and at most 1e4.
            delta: Not used: the guarantee has a delta of 0.

        Returns:
            A GuardedCorrection.

        Raises:
            ParameterError: A parameter is out of range.
        """
        return cls.of(SparseVectorCorrection.from_rho(k=k, rho=rho))

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """Guard the SparseVectorCorrection that is (epsilon, delta)-DP.

        Args:
            k: The number of queries, from 1 to 2^24.
            epsilon: The total epsilon for all answers.
            delta: The total delta for all answers.

        Returns:
            A GuardedCorrection.

        Raises:
            ParameterError: A parameter is out of range.
        """
        return cls.of(SparseVectorCorrection.from_epsilon(k=k, epsilon=epsilon, delta=delta))

    @property
    def k(self) -> int:  # type: ignore[override]
        """The number of queries."""
        return self.correction.k

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the correction, which released all the compared values."""
        return self.correction.guarantee

    @property
    def expected_error(self) -> float:
        """The expected error of the correction, which the guard rejects with probability at most 1e-3."""
        return self.correction.expected_error

    @cached_property
    def error_bound(self) -> float:
        """A bound on the largest error, exceeded with probability at most 1e-6.

        It is the smaller of two bounds: tau plus the error bound of the Gaussian answers, and the bound of the
        correction. The second bound covers the noise of the first and of the corrected answers.
        """
        first = self.tau + self.correction.noise.quantile(BOUND_CHANCE / (2 * self.k)) - 1.0
        return min(first, self.correction.error_bound)

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        first = values + rng.sample(self.correction.noise, self.k)
        return guarded(self.correction.corrected(values, first, rng), first, self.tau)


def guarded(answers: NDArray[np.int64], others: NDArray[np.int64], tau: int) -> NDArray[np.int64]:
    """Return the answers if each is within tau of the other answer, otherwise the others.

    For any values f: max |result - f| <= tau + max |others - f|.
    """
    return answers if int(np.abs(answers - others).max()) <= tau else others


def crossings(values: NDArray[np.int64], bars: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of values that reach a sequence of thresholds.

    The first index is of the first value that reaches the first threshold. The next is of the first later value that
    reaches the second threshold, and so on until values or thresholds run out.
    """
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
    """A model of searches at one threshold on Gaussian errors, in floating point, used only to choose parameters."""

    sigma: float
    length: float
    """The mean number of queries that one search visits."""
    spread: float
    """The standard deviation of the number of queries that one search visits."""
    left: Survivors
    """The errors that searches pass over."""

    @classmethod
    def of(cls, sigma: float, epsilon: float, threshold: float, k: int, *, whole: bool = True) -> Self:
        """Return the model. Searches with a high noisy threshold visit more queries, so they get a larger weight."""
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
        """Return the expected largest error of m searches, which may end before all queries are visited."""
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
        """Return whether m searches visit all k queries even if they are one standard deviation too short."""
        return m * self.length - math.sqrt(m) * self.spread >= k


class _Parameters(TypedDict):
    """The parameters of a SparseVectorCorrection, except the number of queries."""

    sigma: float
    m: int
    epsilon: float
    threshold: int
    again: float


@dataclass(frozen=True, slots=True)
class _Plan:
    """The number of corrections, two shares of rho (first answers, searches), and the threshold in units of sigma."""

    m: int
    first: float
    searches: float
    bar: float

    def parameters(self, k: int, rho: float) -> _Parameters:
        """Return the parameters of the mechanism; m epsilon tanh(epsilon/2) is at most m epsilon^2/2."""
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
    """Return the plan with the smallest expected error. It does not depend on rho."""
    rho = k / 2e6  # at which plain Gaussian noise has scale 1000
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
"""The probabilities of noise on thresholds, in units of its scale."""


def _passed(errors: NDArray[np.float64], epsilon: float, threshold: float) -> NDArray[np.float64]:
    """Return the probability that a query of each error is below each noisy threshold.

    A query's noise has twice the scale of a threshold's.
    """
    scale = 2 / epsilon
    gaps = (threshold + scale * _BARS[:, None] - errors[None, :]) / (2 * scale)
    tails = np.exp(-np.abs(gaps)) / 2
    return np.where(gaps > 0, 1 - tails, tails)
