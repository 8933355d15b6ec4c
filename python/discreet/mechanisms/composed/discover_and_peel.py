"""`DiscoverAndPeel`: a set union finds items, and the exponential mechanism ranks them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from discreet import _core, engines
from discreet.engines.table import Table
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened_rng
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import require_delta, require_rho
from discreet.mechanisms.published import published
from discreet.mechanisms.union.set_union import SetUnion
from discreet.mechanisms.verifiable import RANKS
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.tables.user_items import read_items

__all__ = ["DiscoverAndPeel"]

_NEVER = -1e8
"""The offset of the stop element, so low that it is never drawn before the items."""


@dataclass(frozen=True, kw_only=True)
class DiscoverAndPeel(TableMechanism):
    """A mechanism that releases the k most common items among those that a weighted Gaussian set union finds, in order.

    A fraction `share` of rho finds a domain, with at most `l0` items of each user. The exponential mechanism then draws
    k items of the domain without replacement, by the number of all their users. The domain is public once it is found.
    One user changes every count by at most one, all in one direction. So each draw is (epsilon^2/8)-zCDP with
    epsilon = sqrt(8 (1 - share) rho / k). The total is delta-approximate rho-zCDP per user, added or removed. The
    mechanism reads the table twice.

    Args:
        k: The most items to release: from 1 to 2^30.
        rho: The privacy cost in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: above 0 and below 1.
        l0: The most items of one user that the set union uses: from 1 to 4096. The ranking counts all items of a user.
        share: The fraction of rho for finding items: above 0 and below 1.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000), *range(3000)], "page": ["home"] * 5000 + ["help"] * 3000}
        >>> mechanism = dp.mechanisms.DiscoverAndPeel(k=2, rho=1, delta=1e-6, l0=2)
        >>> mechanism.release(log, user="user", item="page").items
        ['home', 'help']

    Source:
        Dick, Joseph and Raman (2026); Rogers (2023), Theorem 6, for the composition.
    """

    _columns = (RANKS,)

    k: int
    rho: float
    delta: float
    l0: int
    share: float = 0.5

    def __post_init__(self) -> None:
        self._set(
            k=require_whole("k", self.k, 1, 2**30),
            rho=require_rho(self.rho),
            delta=require_delta(self.delta),
            share=require_number("share", self.share, 0, 1),
        )
        if self.share >= 1:
            raise ParameterError("share must be below 1: the ranking needs the rest of rho")
        _ = self.epsilon

    @classmethod
    def from_rho(cls, *, k: int, rho: float, delta: float, l0: int, share: float = 0.5) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP."""
        return cls(k=k, rho=rho, delta=delta, l0=l0, share=share)

    @classmethod
    def from_epsilon(cls, *, k: int, epsilon: float, delta: float, l0: int, share: float = 0.5) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(k=k, rho=rho, delta=own, l0=l0, share=share)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP, the sum of both steps (Rogers 2023, Theorem 6)."""
        return Guarantee(self.rho, self.delta)

    @property
    def discovery(self) -> SetUnion:
        """Return the mechanism that finds the domain."""
        rho = round_down(self.share * self.rho, 64)
        return SetUnion.from_rho(method="weighted_gaussian", rho=rho, delta=self.delta, l0=self.l0)

    @property
    def epsilon(self) -> float:
        """Return epsilon: the bounded range of one draw."""
        rest = round_down(self.rho - self.discovery.guarantee.rho, 8)
        return min(round_down(math.sqrt(8 * rest / self.k), 8), 1000.0)

    def release_chance(self, users: int) -> float:
        """Return the probability that the set union finds an item.

        Args:
            users: The number of users of the item, each with l0 items or more.

        Returns:
            A probability from 0 to 1.
        """
        return self.discovery.release_chance(users)

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        engines.require_rows_again(table.data)
        items = read_items(table, l0=self.l0)
        stream = opened_rng(rng)
        found = self.discovery.release(items, rng=stream)
        again = Histogram.from_table(table, only=found.items) if found.items else None
        # Add one to every count: the selection skips counts of zero, but the candidates must not depend on the data.
        counts = np.ones(0, np.int64) if again is None else again._counts_of(found.items) + 1
        rows, _ = stream.peel(counts, int(counts.max(initial=0)), self.epsilon, 0, _NEVER, self.k)
        labels = _core.Labels.from_sequence(found.items)
        return published(self, labels, np.array(rows, np.int64), stream, ranked=True, item_type=found.item_type)
