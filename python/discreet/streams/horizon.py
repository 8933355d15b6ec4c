"""The base of continual mechanisms with a known horizon: one noise scale, and an equal share of delta per round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from discreet.errors import ParameterError
from discreet.mechanisms.parameters import require_bounds, require_delta, require_rho
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_number
from discreet.streams.base import StreamMechanism, require_horizon
from discreet.theorems import rogers2023

__all__ = ["HorizonMechanism"]


@dataclass(frozen=True, kw_only=True)
class HorizonMechanism(StreamMechanism):
    """A continual mechanism with a fixed number of rounds and noise of one scale `sigma`."""

    sigma: float
    delta: float
    l0: int
    horizon: int
    linf: int = 1
    unit: Literal["event", "user"] = "event"

    def __post_init__(self) -> None:
        self._check()
        self._set(horizon=require_horizon(self.horizon), sigma=require_number("sigma", self.sigma, 1e-3, 1e9))
        if self.delta / self.horizon / self.l0 < 1e-280:
            raise ParameterError("delta is too small for the tail of the noise in floating point; give a larger one")

    @classmethod
    def from_rho(
        cls, *, rho: float, delta: float, l0: int, horizon: int, linf: int = 1, unit: Literal["event", "user"] = "event"
    ) -> Self:
        """Return the mechanism whose guarantee for all rounds is delta-approximate rho-zCDP."""
        l0, linf = require_bounds(l0, linf)
        own = rogers2023.unconditioned_rho(require_rho(rho), require_delta(delta))
        moved = cls.moved(require_horizon(horizon))
        sigma = rogers2023.gaussian_sigma(own, l0 * moved, linf)
        return cls(sigma=sigma, delta=delta, l0=l0, horizon=horizon, linf=linf, unit=unit)

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
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls.from_rho(rho=rho, delta=own, l0=l0, horizon=horizon, linf=linf, unit=unit)

    @property
    def guarantee(self) -> Guarantee:
        """The delta-approximate zCDP of all rounds together (Rogers 2023, Theorem 11), with lattice noise.

        The noise protects all sums that an event changes, given that no item passes a threshold through this event.
        """
        rho = rogers2023.gaussian_rho(self.sigma, self.l0 * self.moved(self.horizon), self.linf)
        return Guarantee(rogers2023.conditioned_rho(rho, self.delta), self.delta, self.unit)

    @staticmethod
    def moved(horizon: int) -> float:
        """Return the squared l2 sensitivity of one item's sums to one event.

        In a binary tree it is the number of nodes with the event, floor(log2 horizon) + 1.

        Args:
            horizon: The number of rounds.
        """
        return rogers2023.tree_levels(horizon)

    @property
    def last_round(self) -> int | None:
        """The horizon."""
        return self.horizon

    @property
    def novel_chance(self) -> float:
        """The largest allowed chance that a new item is released in one round: an equal share of delta per round."""
        return rogers2023.novel_chance(self.delta / self.horizon, self.l0)
