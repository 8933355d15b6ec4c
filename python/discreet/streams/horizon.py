"""The base of continual mechanisms with a known horizon: one noise scale, and an equal share of delta per round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from discreet.errors import ParameterError
from discreet.mechanisms.parameters import require_bounds, require_delta, require_rho
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.streams.base import StreamMechanism, require_horizon
from discreet.theorems import rogers2023

__all__ = ["HorizonMechanism"]

_ROUNDS_LIMIT = 2**20
"""The largest number of rounds in which a user is counted."""


@dataclass(frozen=True, kw_only=True)
class HorizonMechanism(StreamMechanism):
    """A continual mechanism with a fixed number of rounds and noise of one scale `sigma`."""

    sigma: float
    delta: float
    l0: int
    horizon: int
    linf: int = 1
    unit: Literal["event", "user"] = "event"
    rounds: int | None = None

    def __post_init__(self) -> None:
        self._check()
        self._set(horizon=require_horizon(self.horizon), sigma=require_number("sigma", self.sigma, 1e-3, 1e9))
        if self.rounds is not None:
            self._set(rounds=_require_rounds(self.rounds, self.horizon))
            if self.unit != "user":
                raise ParameterError.about("{rounds} limits the rounds of a user: give {unit:'user'} too")
            if self.linf != 1:
                raise ParameterError.about("{rounds} counts a user's item once a round: leave out {linf}")
        if self.delta / self.horizon / self.l0 / (self.rounds or 1) < 1e-280:
            raise ParameterError("delta is too small for the tail of the noise in floating point; give a larger one")

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
        rounds: int | None = None,
    ) -> Self:
        """Return the mechanism whose guarantee for all rounds is delta-approximate rho-zCDP."""
        l0, linf = require_bounds(l0, linf)
        own = rogers2023.unconditioned_rho(require_rho(rho), require_delta(delta))
        horizon = require_horizon(horizon)
        moved = cls.moved(horizon, 1 if rounds is None else _require_rounds(rounds, horizon))
        sigma = rogers2023.gaussian_sigma(own, l0 * moved, linf)
        if sigma > 1e9:
            raise ParameterError(
                "rho is too small for these bounds: give a larger rho, or a smaller l0, linf or rounds"
            )
        return cls(sigma=sigma, delta=delta, l0=l0, horizon=horizon, linf=linf, unit=unit, rounds=rounds)

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
        rounds: int | None = None,
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls.from_rho(rho=rho, delta=own, l0=l0, horizon=horizon, linf=linf, unit=unit, rounds=rounds)

    @property
    def guarantee(self) -> Guarantee:
        """The delta-approximate zCDP of all rounds together (Rogers 2023, Theorem 11), with lattice noise.

        The noise protects all sums that an event (or user) changes, given that no item passes a threshold through it
        alone.
        """
        moved = self.moved(self.horizon, self.rounds or 1)
        rho = rogers2023.gaussian_rho(self.sigma, self.l0 * moved, self.linf)
        return Guarantee(rogers2023.conditioned_rho(rho, self.delta), self.delta, self.unit)

    @staticmethod
    def moved(horizon: int, rounds: int = 1) -> float:
        """Return the squared l2 sensitivity of one item's sums to events in at most `rounds` rounds.

        For one event in a binary tree it is the number of nodes with the event, floor(log2 horizon) + 1.

        Args:
            horizon: The number of rounds.
            rounds: The most rounds with events.
        """
        return rogers2023.tree_reach(horizon, rounds)

    @property
    def last_round(self) -> int | None:
        """The horizon."""
        return self.horizon

    @property
    def novel_chance(self) -> float:
        """The largest allowed chance that a new item is released in one round: an equal share of delta per round.

        A user may have l0 new items in each of `rounds` rounds.
        """
        return rogers2023.novel_chance(self.delta / self.horizon, self.l0 * (self.rounds or 1))


def _require_rounds(rounds: object, horizon: int) -> int:
    return require_whole("rounds", rounds, 1, min(horizon, _ROUNDS_LIMIT))
