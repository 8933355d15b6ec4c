"""The base of continual mechanisms without a horizon: epochs that share delta, each with all of rho."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.parameters import require_rho
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.streams.base import FORECAST, HORIZON_LIMIT, StreamMechanism, prefix, sum_type
from discreet.theorems import chan_shi_song2011, rogers2023

__all__ = ["EndlessMechanism"]


@dataclass(frozen=True, kw_only=True)
class EndlessMechanism(StreamMechanism):
    """A continual mechanism for any number of rounds, which are divided into epochs.

    An event is in one epoch only, so the guarantee is delta-approximate rho-zCDP per event. There is no guarantee per
    user, since a user has events in several epochs.

    An epoch of 2^m rounds may have a binary tree, whose noise scale grows with sqrt(m + 1). The whole epoch is one of
    the tree's nodes.
    """

    rho: float
    delta: float
    l0: int
    linf: int = 1
    unit: Literal["event", "user"] = "event"

    def __post_init__(self) -> None:
        self._check()
        self._set(rho=require_rho(self.rho))
        if self.unit == "user":
            raise ParameterError(
                f"{type(self).__name__} has no guarantee per user, who has events in several epochs; use "
                "BinaryMechanism with a horizon"
            )
        last, _ = chan_shi_song2011.epoch_of(HORIZON_LIMIT)
        if self._tree_sigma(last) > 1e9:
            raise ParameterError("rho is too small for the noise of the last rounds; give a larger one")
        if chan_shi_song2011.round_chance(self.delta, last, 2**last) / self.l0 < 1e-300:
            raise ParameterError("delta is too small for the tail of the noise in floating point; give a larger one")

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int) -> Self:
        """Return the mechanism whose guarantee for all rounds is delta-approximate rho-zCDP."""
        return cls(rho=rho, delta=delta, l0=l0)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own, l0=l0)

    @property
    def guarantee(self) -> Guarantee:
        """The delta-approximate rho-zCDP of all rounds. An event is in one epoch, and the epochs share delta."""
        return Guarantee(self.rho, self.delta, self.unit)

    @cached_property
    def widest(self) -> int:
        """The round with the widest noise among the first 1,024. Later rounds have more."""
        return max(range(1, FORECAST + 1), key=self.deviation)

    @property
    def _sum_bytes(self) -> int:
        """Bytes for an item's sums at the nodes of a round, plus a sixteenth for growth, for 2^20 rounds."""
        nodes = self._tree_nodes(FORECAST**2 - 2)
        kind = sum_type(math.sqrt(math.fsum(sigma**2 for _, sigma in nodes)))
        return math.ceil(kind.itemsize * len(nodes) * 17 / 16)

    @cached_property
    def _own(self) -> float:
        """The rho of the noise. Conditioning lattice noise (Rogers 2023, Theorem 8) raises this rho to `rho`."""
        return rogers2023.unconditioned_rho(self.rho, self.delta)

    def _tree_sigma(self, m: int) -> float:
        """Return the scale of the noise of a node in the tree of an epoch of 2^m rounds."""
        return chan_shi_song2011.epoch_sigma(self._own, m, self.l0, self.linf)

    def _tree_nodes(self, number: int, first: int = 0) -> list[tuple[int, float]]:
        """Return one node for each earlier epoch, and the nodes of the prefix in this epoch, with their scales.

        Rounds are numbered as if there were an epoch of 2^m rounds for every m; the epochs before `first` are left out.
        """
        epoch, place = chan_shi_song2011.epoch_of(number)
        whole = [((2 << m) - 1, self._tree_sigma(m)) for m in range(first, epoch)]
        before = number - place
        return whole + [(before + end, self._tree_sigma(epoch)) for end in prefix(place)]
