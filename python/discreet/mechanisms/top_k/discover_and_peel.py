"""The most common items of users who have many: named first by a set union, then ranked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from discreet import _core, engines
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened
from discreet.mechanisms.from_table import TableMechanism, without_value
from discreet.mechanisms.parameters import require_delta
from discreet.mechanisms.published import published
from discreet.mechanisms.union.set_union import SetUnion
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import RHO_LIMIT, Guarantee, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.tables.table import Table
from discreet.tables.user_items import UserItems

__all__ = ["DiscoverAndPeel"]

_NEVER = -1e8
"""How far the stop element lies below: items are drawn as long as there are any."""


@dataclass(frozen=True, kw_only=True)
class DiscoverAndPeel(TableMechanism):
    """The `k` items that most users have, of those that a weighted Gaussian set union finds, in order.

    Dick, Joseph and Raman (2026): a `share` of rho finds a domain, with at most `l0` items of each user; the
    exponential mechanism then draws k of its items without replacement, by the numbers of all users who have
    them. The domain is public once it is found, every count moves by one at most and all in one direction, so
    that each draw is (epsilon^2/8)-zCDP with epsilon = sqrt(8 (1 - share) rho / k). Together
    delta-approximate rho-zCDP per user, added or removed (Rogers 2023, Theorem 6). It reads a table twice. Raises
    ParameterError where a parameter is out of range.
    """

    k: int
    rho: float
    delta: float
    l0: int
    share: float = 0.5

    def __post_init__(self) -> None:
        checked = {
            "k": require_whole("k", self.k, 1, 2**30),
            "rho": require_number("rho", self.rho, 0, RHO_LIMIT),
            "delta": require_delta(self.delta),
            "share": require_number("share", self.share, 0, 1),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.share >= 1:
            raise ParameterError("share must be below 1: the ranks need some of rho")
        _ = self.epsilon

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float, l0: int, share: float = 0.5) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        return cls(k=k, rho=rho, delta=delta, l0=l0, share=share)

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float, l0: int, share: float = 0.5) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, half of delta going to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(k=k, rho=rho, delta=own, l0=l0, share=share)

    @property
    def guarantee(self) -> Guarantee:
        """delta-approximate rho-zCDP, the sum of both steps (Rogers 2023, Theorem 6)."""
        return Guarantee(self.rho, self.delta)

    @property
    def discovery(self) -> SetUnion:
        """The mechanism that finds the domain."""
        rho = round_down(self.share * self.rho, 64)
        return SetUnion.from_rho(method="weighted_gaussian", rho=rho, delta=self.delta, l0=self.l0)

    @property
    def epsilon(self) -> float:
        """The range of one draw."""
        rest = round_down(self.rho - self.discovery.guarantee.rho, 8)
        return min(round_down(math.sqrt(8 * rest / self.k), 8), 1000.0)

    def release_chance(self, users: int) -> float:
        """The chance that an item is found that so many users have, among l0 or more each."""
        return self.discovery.release_chance(users)

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        without_value(table, "DiscoverAndPeel")
        engines.require_rows_again(table.data)
        wanted: Any = {"user": table.user, "item": table.item, "memory": table.memory, "progress": table.progress}
        items = UserItems.from_table(table.data, **wanted, l0=self.l0)
        stream = opened(rng)
        found = self.discovery.release(items, rng=stream)
        again = Histogram.from_table(table.data, **wanted, only=found.items) if found.items else None
        # One more for all: a selection has no candidates of count zero, and the domain must not depend on the data.
        counts = np.ones(0, np.int64) if again is None else again._counts_of(found.items) + 1
        rows, _ = stream.peel(counts, int(counts.max(initial=0)), self.epsilon, 0, _NEVER, self.k)
        labels = _core.Labels.from_sequence(found.items)
        return published(self, labels, np.array(rows, np.int64), stream, ranked=True, item_type=found.item_type)
