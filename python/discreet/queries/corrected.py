"""The base class of mechanisms that add Gaussian noise to all answers, then measure some queries again."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.noises import GaussianNoise
from discreet.privacy.conversion import cdp_epsilon, cdp_rho, round_down
from discreet.privacy.guarantee import Guarantee, claimed_pair, require_pair, resolve_rho
from discreet.privacy.validation import require_number
from discreet.queries.answers import BOUND_CHANCE, Answering, require_queries
from discreet.theorems.tails import least

__all__ = ["CorrectedAnswers", "large_draws"]

_RHO_LEAST = 1e-19
"""The smallest rho. A smaller rho would need noise of a scale above 1e9, which is not allowed."""
_RHO_LIMIT = 1e4


class CorrectedAnswers(GaussianNoise, Answering):
    """A mechanism that adds discrete Gaussian noise of scale `sigma`, then corrects some answers."""

    sigma: float
    dp: tuple[float, float] | None

    @classmethod
    @abstractmethod
    def _best(cls, k: int, rho: float, dp: tuple[float, float] | None) -> Self:
        """Return the mechanism that is rho-zCDP with the smallest expected error found; `dp` is what rho implies."""

    @property
    @abstractmethod
    def rho(self) -> float:
        """The zCDP cost of the first answers and the corrections together."""

    @property
    @abstractmethod
    def measured(self) -> tuple[tuple[int, _core.Noise], ...]:
        """Pairs of a number of answers, the most that are measured again with a noise, and this noise."""

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float = 0.0) -> Self:
        """Choose the parameters with the smallest expected error found that are rho-zCDP; delta is not used."""
        k, rho = require_queries(k), require_number("rho", rho, _RHO_LEAST, _RHO_LIMIT)
        return cls._best(k, rho, None)

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """Choose the parameters with the smallest expected error found that are (epsilon, delta)-DP, through zCDP."""
        epsilon, delta = require_pair(epsilon, delta)
        resolve_rho(None, epsilon, delta)
        k, rho = require_queries(k), round_down(min(cdp_rho(epsilon, delta), _RHO_LIMIT), 64)
        return cls._best(k, rho, (epsilon, delta))

    @property
    def guarantee(self) -> Guarantee:
        """The sum of all costs in zCDP, and the (epsilon, delta) pair in `dp`."""
        return Guarantee(self.rho, 0.0, dp=self.dp)

    @cached_property
    def error_bound(self) -> float:
        """A bound on the largest error, exceeded with probability at most 1e-6."""
        return float(self._noise_bound())

    def _noise_bound(self) -> int:
        """Return a bound on every noise that may be drawn, exceeded with probability at most 1e-6."""
        return least(lambda t: large_draws(self, t) <= BOUND_CHANCE, int(self.sigma) + 1) - 1

    def _set(self, **checked: object) -> None:
        """Set validated parameters; raise ParameterError if they do not imply `dp`."""
        super()._set(**checked)
        super()._set(dp=claimed_pair(self.dp))
        if self.dp is not None and (self.dp[1] == 0 or cdp_epsilon(self.rho, self.dp[1]) > self.dp[0]):
            raise ParameterError("the noise is too small for the (epsilon, delta) in dp; use from_epsilon")


def large_draws(mechanism: CorrectedAnswers, t: int) -> float:
    """Return the expected number of draws of noise whose size is t or more, if all are drawn."""
    return 2 * sum(n * law.tail(t) for n, law in [(mechanism.k, mechanism.noise), *mechanism.measured])
