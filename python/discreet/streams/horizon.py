"""Continual mechanisms of a known horizon: noise of one scale, and an equal share of delta for every round."""

from __future__ import annotations

from typing import Literal, Self

from discreet.errors import ParameterError
from discreet.mechanisms.parameters import require_bounds, require_delta, require_rho
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_number
from discreet.streams.base import StreamMechanism, require_horizon
from discreet.theorems import rogers2023

__all__ = ["HorizonMechanism"]


class HorizonMechanism(StreamMechanism):
    """What mechanisms share that know their last round, with noise of one scale `sigma`."""

    __slots__ = ()

    sigma: float
    horizon: int

    @classmethod
    def from_rho(
        cls,
        *,
        rho: float,
        delta: float,
        l0: int,
        horizon: int,
        linf: int = 1,
        unit: Literal["event", "user"] = "event",
    ) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        l0, linf = require_bounds(l0, linf)
        own = rogers2023.unconditioned_rho(require_rho(rho), require_delta(delta))
        moved = cls.moved(require_horizon(horizon))
        sigma = rogers2023.gaussian_sigma(own, l0 * moved, linf)
        return cls(sigma=sigma, delta=delta, l0=l0, horizon=horizon, linf=linf, unit=unit)  # type: ignore[call-arg]

    @classmethod
    def from_epsilon(
        cls,
        *,
        epsilon: float,
        delta: float,
        l0: int,
        horizon: int,
        linf: int = 1,
        unit: Literal["event", "user"] = "event",
    ) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, half of delta going to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls.from_rho(rho=rho, delta=own, l0=l0, horizon=horizon, linf=linf, unit=unit)

    @property
    def guarantee(self) -> Guarantee:
        """delta-approximate zCDP of noise on all that an event moves, given that no new item is seen (Rogers 2023,
        Theorem 11), on a lattice."""
        rho = rogers2023.gaussian_rho(self.sigma, self.l0 * self.moved(self.horizon), self.linf)
        return Guarantee(rogers2023.conditioned_rho(rho, self.delta), self.delta, self.unit)

    @staticmethod
    def moved(horizon: int) -> float:
        """What an event moves of one item, squared: one for each of floor(log2 horizon) + 1 nodes of a binary tree."""
        return rogers2023.tree_levels(horizon)

    @property
    def last_round(self) -> int | None:
        """The horizon."""
        return self.horizon

    @property
    def novel_chance(self) -> float:
        """The most that a new item's chance to be seen in one round may be: a share of delta for every round."""
        return rogers2023.novel_chance(self.delta / self.horizon, self.l0)

    def _check(self) -> None:
        StreamMechanism._check(self)
        object.__setattr__(self, "horizon", require_horizon(self.horizon))
        object.__setattr__(self, "sigma", require_number("sigma", self.sigma, 1e-3, 1e9))
        if self.delta / self.horizon / self.l0 < 1e-280:
            raise ParameterError("delta is too small for tails of noise to reach; give a larger one")
