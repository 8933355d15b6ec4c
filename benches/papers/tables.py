"""Tables of users and items with the percentiles of Table 1 of Rogers (2024), for the scripts of that paper.

The paper's data is not used. Each table has the paper's number of items and its percentiles of distinct items per user;
between the percentiles their logarithms are interpolated. Large tables have a part of the users. How common items are
is not in Table 1: the i-th most common item is drawn in proportion to i^-exponent. In finance each user has one item.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

PLACES = (0, 0.5, 0.75, 0.95, 0.99, 1)


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """The users, items and percentiles of a table: the least, 50, 75, 95, 99 and the most items of a user."""

    users: int
    items: int
    percentiles: tuple[int, ...]
    exponent: float
    part: int = 1
    """The paper has this many times the users of the table."""
    cutoff: float = np.inf
    """The popularity of items also falls by a factor of e over this many items."""

    def table(self, seed):
        """Return distinct pairs, as the columns `user` and `item` of whole numbers."""
        random, places = np.random.default_rng(seed), np.arange(1.0, self.items + 1)
        users = self.users // self.part
        quantile = np.interp((np.arange(users) + 0.5) / users, PLACES, np.log(self.percentiles))
        lacks = np.exp(quantile).round().astype(np.int64)
        common = np.cumsum(places**-self.exponent * np.exp(-places / self.cutoff))
        own, wanted = np.zeros(0, np.int64), lacks
        while lacks.any():
            user = np.repeat(np.arange(len(lacks)), lacks + lacks // 4)
            item = np.searchsorted(common, random.random(len(user)) * common[-1])
            drawn = np.concatenate([own, user * self.items + item])
            own = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
            # The items of a user that were drawn first.
            own = own[np.argsort(own // self.items, kind="stable")]
            user = own // self.items
            own = own[np.arange(len(own)) - np.searchsorted(user, user) < wanted[user]]
            lacks = wanted - np.bincount(own // self.items, minlength=len(wanted))
        return {"user": own // self.items, "item": own % self.items}


TABLES = {
    "finance": PaperTable(users=1_400_469, items=6_193, percentiles=(1, 1, 1, 1, 1, 1), exponent=0.2, cutoff=1500),
    "reddit sample": PaperTable(users=341, items=10_575, percentiles=(1, 23, 50, 128, 330, 600), exponent=1.0),
    "reddit": PaperTable(users=223_388, items=153_704, percentiles=(1, 23, 56, 194, 450, 2000), exponent=1.0, part=8),
    "wikipedia": PaperTable(
        users=245_103, items=631_855, percentiles=(5, 84, 164, 390, 589, 1000), exponent=1.0, part=8
    ),
    "movielens": PaperTable(
        users=162_541, items=59_047, percentiles=(20, 71, 162, 554, 1228, 5000), exponent=0.6, part=8
    ),
}


def tables(small):
    """Yield the name of every table with its pairs; with `small`, of an eighth of the users."""
    for name, shape in TABLES.items():
        users = shape.users // 8 if small and shape.users > 1000 else shape.users
        yield name, replace(shape, users=users).table(1)
