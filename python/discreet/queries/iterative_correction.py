"""`IterativeCorrection`: sparse vector in stages, followed by one pass of sparse vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

from discreet.cached import cached_property
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.queries.answers import BOUND_CHANCE
from discreet.queries.experimental import SparseVectorCorrection
from discreet.queries.sparse_vector import IterativeSparseVector, Stage, require_stages
from discreet.theorems.tails import least

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet import _core

__all__ = ["IterativeCorrection"]

_SHARES = (0.8, 0.9, 0.95)
"""The parts of rho that `from_rho` tries for the first answers and the stages."""
_SEARCHES = 0.8
"""The part of the rest that goes to the searches of the pass."""


@dataclass(frozen=True, kw_only=True)
class IterativeCorrection(IterativeSparseVector):
    """A mechanism that corrects noisy answers in stages of sparse vector, then in one pass over all queries.

    The stages are those of `IterativeSparseVector`. They leave few large errors. The pass is the one of
    `SparseVectorCorrection`, which measures up to `m` of these errors again. Each search of the pass is epsilon-DP,
    because the answers before the pass are an output of the stages: if an exact value changes by at most one, its
    distance from its answer does too. So the pass adds m epsilon tanh(epsilon/2) + m/(2 again^2) to the zCDP cost of
    the stages, even if fewer than m answers are corrected.

    Args:
        k: The number of queries, from 1 to 2^24.
        sigma: The scale of the noise on the first answers, above 1e-3 and at most 1e9.
        stages: The stages (`discreet.queries.Stage`), in order; may be empty.
        m: The most answers that the pass measures again, from 1 to k.
        epsilon: The epsilon of each search of the pass, above 1e-6 and at most 100.
        threshold: The error that the pass looks for, a whole number from -2^40 to 2^40.
        again: The scale of the noise on answers that the pass measures again, above 1e-3 and at most 1e9.
        dp: An (epsilon, delta) pair that the zCDP implies, to be reported too.

    Raises:
        ParameterError: A parameter is out of range, or the noise is too small for `dp`.

    Example:
        >>> import discreet as dp
        >>> stage = dp.queries.Stage(runs=5, epsilon=0.05, threshold=220)
        >>> mechanism = dp.queries.IterativeCorrection(
        ...     k=1000, sigma=80, stages=(stage,), m=10, epsilon=0.05, threshold=200, again=40
        ... )
        >>> print(mechanism.guarantee)
        0.106245-zCDP per user (added or removed)

    Source:
        Ghazi, Kumar and Manurangsi (2020), Algorithm 3 followed by Theorem 2.
    """

    m: int
    epsilon: float
    threshold: int
    again: float

    def __post_init__(self) -> None:
        self._set(
            k=self.last.k,
            sigma=self.last.sigma,
            stages=require_stages(self.stages),
            m=self.last.m,
            epsilon=self.last.epsilon,
            threshold=self.last.threshold,
            again=self.last.again,
        )

    @classmethod
    def _best(cls, k: int, rho: float, dp: tuple[float, float] | None) -> Self:
        _, share, m, threshold = _plan(k, rho)
        first = IterativeSparseVector.from_rho(k=k, rho=share * rho)
        epsilon, again = _pass(share, rho, m)
        return cls(
            k=k,
            sigma=first.sigma,
            stages=first.stages,
            m=m,
            epsilon=epsilon,
            threshold=threshold,
            again=again,
            dp=dp,
        )

    @cached_property
    def last(self) -> SparseVectorCorrection:
        """The mechanism of the pass. Only its `corrected` is used, on the answers of the stages."""
        return SparseVectorCorrection(
            k=self.k, sigma=self.sigma, m=self.m, epsilon=self.epsilon, threshold=self.threshold, again=self.again
        )

    @property
    def rho(self) -> float:
        """The zCDP cost of the first answers, all runs of the stages, and all searches and measurements of the pass."""
        added = self.m * (pure_rho(self.epsilon, tight=True) + 1 / self.again**2 / 2)
        return round_up(super().rho + added, 4)

    @cached_property
    def error_bound(self) -> float:
        """A bound on the largest error, exceeded with probability at most 1e-6."""
        laws = [(self.k, self.noise), *self.measured, *self.last.measured]
        beyond = least(lambda t: 2 * sum(n * law.tail(t) for n, law in laws) <= BOUND_CHANCE, int(self.sigma) + 1)
        return float(beyond - 1)

    @cached_property
    def expected_error(self) -> float:
        """The expected largest error of the k answers, approximately, with the pass as one more stage."""
        more = Stage(runs=self.m, epsilon=self.epsilon, threshold=self.threshold)
        return IterativeSparseVector(k=self.k, sigma=self.sigma, stages=(*self.stages, more)).expected_error

    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        return self.last.corrected(values, super()._answer(values, rng), rng)


def _pass(share: float, rho: float, m: int) -> tuple[float, float]:
    """Return the epsilon of a search and the scale of a measurement, for a pass that costs less than the rest of rho.

    m epsilon tanh(epsilon/2) is at most m epsilon^2/2.
    """
    rest = (1 - share) * rho * (1 - 1e-9)
    epsilon = min(round_down(math.sqrt(2 * _SEARCHES * rest / m), 64), 100.0)
    return epsilon, round_up(math.sqrt(m / (2 * (1 - _SEARCHES) * rest)), 64)


@lru_cache(maxsize=64)
def _plan(k: int, rho: float) -> tuple[float, float, int, int]:
    """Return the smallest expected error found, with the share of the stages, and m and the threshold of the pass."""
    tried = []
    for share in _SHARES:
        first = IterativeSparseVector.from_rho(k=k, rho=share * rho)
        for m in sorted({max(1, min(k, 10**exponent)) for exponent in range(int(math.log10(k)) + 1)}):
            epsilon, _ = _pass(share, rho, m)
            for bar in (3.0, 3.5, 4.0):
                threshold = max(1, round(bar * first.sigma))
                more = Stage(runs=m, epsilon=epsilon, threshold=threshold)
                made = IterativeSparseVector(k=k, sigma=first.sigma, stages=(*first.stages, more))
                tried.append((made.expected_error, share, m, threshold))
    return min(tried)
