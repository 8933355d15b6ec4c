"""Gaussian answers of which some are measured anew: what the ways to find those have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.noises import GaussianNoise
from discreet.privacy.conversion import cdp_epsilon, cdp_rho, round_down
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_number
from discreet.queries.answers import BOUND_CHANCE, Answering, require_queries
from discreet.theorems.tails import least

__all__ = ["CorrectedAnswers"]

_RHO_LEAST = 1e-19
"""What less than this promises takes noise of a scale beyond 1e9, the largest."""
_RHO_LIMIT = 1e4


class CorrectedAnswers(GaussianNoise, Answering):
    """Discrete Gaussian answers of scale `sigma`, then corrections: a sum in zCDP. `dp`: a pair that it implies."""

    sigma: float
    dp: tuple[float, float] | None

    @classmethod
    @abstractmethod
    def _best(cls, k: int, rho: float) -> dict[str, object]:
        """The parameters of the smallest expected error found that are rho-zCDP."""

    @property
    @abstractmethod
    def rho(self) -> float:
        """What first answers and corrections cost together."""

    @property
    @abstractmethod
    def _measured(self) -> tuple[tuple[int, _core.Noise], ...]:
        """How many answers are measured anew at the most, and with which noise."""

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float = 0.0) -> Self:
        """The corrections of the smallest expected error found that are rho-zCDP; no delta is used."""
        k, rho = require_queries(k), require_number("rho", rho, _RHO_LEAST, _RHO_LIMIT)
        return cls(k=k, **cls._best(k, rho))  # type: ignore[call-arg]

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float) -> Self:
        """The same for a promise of (epsilon, delta)-DP, by conversion from zCDP."""
        resolve_rho(None, epsilon, delta)
        k, rho = require_queries(k), round_down(min(cdp_rho(epsilon, delta), _RHO_LIMIT), 64)
        return cls(k=k, dp=(float(epsilon), float(delta)), **cls._best(k, rho))  # type: ignore[call-arg]

    @property
    def guarantee(self) -> Guarantee:
        """The sum in zCDP, and the pair that was asked for."""
        return Guarantee(self.rho, 0.0, dp=self.dp)

    @cached_property
    def error_bound(self) -> float:
        """What the largest error does not exceed, but for a chance of one in a million."""
        laws = [(self.k, self.noise), *self._measured]
        beyond = least(lambda t: 2 * sum(n * law.tail(t) for n, law in laws) <= BOUND_CHANCE, int(self.sigma) + 1)
        return float(beyond - 1)

    def _set(self, **checked: object) -> None:
        """Sets parameters that were checked, and refuses a `dp` that they do not imply."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.dp is not None and cdp_epsilon(self.rho, self.dp[1]) > self.dp[0]:
            raise ParameterError("this much noise does not keep that (epsilon, delta); use from_epsilon")
