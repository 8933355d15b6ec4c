"""Generated tables of users and items with the shapes of real tables."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_DEVIATES_95 = 1.6449
"""The 95th percentile of the standard normal distribution."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A table shape: lognormal numbers of items per user, and Zipf popularity of items."""

    users: int
    items: int
    exponent: float
    """The popularity of the i-th item is i ** -exponent."""
    median: float
    """The median number of items per user, before deduplication."""
    most: float
    """The 95th percentile of the number of items per user, before deduplication."""

    def table(self, seed: int) -> dict[str, np.ndarray]:
        """Return distinct pairs, as columns user and item."""
        random = np.random.default_rng(seed)
        spread = math.log(self.most / self.median) / _DEVIATES_95
        each = np.exp(random.normal(math.log(self.median), spread, self.users)).round().astype(np.int64)
        user = np.repeat(np.arange(self.users), each.clip(1, self.items))
        popularity = np.cumsum(np.arange(1.0, self.items + 1) ** -self.exponent)
        item = np.searchsorted(popularity, random.random(len(user)) * popularity[-1])
        pairs = np.unique(user * self.items + item)
        return {"user": pairs // self.items, "item": pairs % self.items}


SHAPES = {
    "finance": Shape(users=300_000, items=6_193, exponent=1.0, median=1, most=1),
    "reddit": Shape(users=17_372, items=51_513, exponent=1.0, median=34, most=209),
    "wikipedia": Shape(users=30_310, items=176_319, exponent=1.0, median=84, most=239),
    "retail": Shape(users=4_372, items=3_684, exponent=0.6, median=35, most=202),
    "flat": Shape(users=20_000, items=1_000, exponent=0.0, median=10, most=20),
    "heavy users": Shape(users=50_000, items=50_000, exponent=1.0, median=3, most=100),
}
"""Users, items and items per user as in the tables of Rogers (2024) and similar ones; the last two are invented."""
