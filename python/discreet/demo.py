"""Generated data for trying the library: a log with a Zipf tail, and tables in the shape of real ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PAGES", "ROWS", "SHAPES", "USERS", "SyntheticLog", "TableShape", "synthetic_log"]

USERS, ROWS, PAGES = 20_000, 400_000, 50_000
_SYLLABLES = {ord("0") + digit: f"{letter}a" for digit, letter in enumerate("bdklmnrstv")}
_DEVIATES_95 = 1.6449
"""The 95th percentile of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class SyntheticLog:
    """Rows of (user, item), as two arrays of equal length."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]

    @staticmethod
    def name(item: int) -> str:
        """Return a word for an item's number."""
        return f"{item:05d}".translate(_SYLLABLES)

    @property
    def table(self) -> dict[str, list[object]]:
        """Return the columns `user` and `item`, with the items as words."""
        numbers, inverse = np.unique(self.items, return_inverse=True)
        words = np.array([self.name(n) for n in numbers], dtype=object)[inverse]
        return {"user": self.users.tolist(), "item": words.tolist()}

    def true_counts(self) -> dict[str, int]:
        """Return the number of users of each item."""
        pairs, _ = np.unique(self.items * (self.users.max() + 1) + self.users, return_counts=True)
        numbers, counts = np.unique(pairs // (self.users.max() + 1), return_counts=True)
        return {self.name(n): c for n, c in zip(numbers.tolist(), counts.tolist(), strict=True)}


def synthetic_log() -> SyntheticLog:
    """Return `ROWS` visits by users of heavy-tailed activity to pages of a popularity proportional to 1/rank."""
    random = np.random.default_rng(1)
    activity = np.cumsum(random.lognormal(0.0, 1.0, USERS))
    popularity = np.cumsum(1.0 / np.arange(1, PAGES + 1))
    shuffled = random.permutation(PAGES)
    who = np.searchsorted(activity, random.random(ROWS) * activity[-1])
    what = np.searchsorted(popularity, random.random(ROWS) * popularity[-1])
    return SyntheticLog(who.astype(np.int64), shuffled[what].astype(np.int64))


@dataclass(frozen=True, kw_only=True)
class TableShape:
    """The shape of a table of users and items: lognormal numbers of items per user, and a Zipf law of popularity.

    Args:
        users: The number of users.
        items: The number of items that a user may have.
        exponent: The popularity of the i-th item is proportional to i ** -exponent.
        median: The median number of items per user, before duplicates are removed.
        most: The 95th percentile of the number of items per user, before duplicates are removed.
        cutoff: The popularity also falls by a factor of e every `cutoff` items; infinite by default.

    Example:
        >>> from discreet.demo import TableShape
        >>> table = TableShape(users=100, items=50, exponent=1.0, median=3, most=9).table(seed=1)
        >>> sorted(table), len(table["user"]) == len(table["item"])
        (['item', 'user'], True)
    """

    users: int
    items: int
    exponent: float
    median: float
    most: float
    cutoff: float = math.inf

    def table(self, seed: int) -> dict[str, NDArray[np.int64]]:
        """Return distinct pairs, as the columns `user` and `item`.

        Args:
            seed: The seed of numpy's generator. The same seed gives the same table.

        Returns:
            Two arrays of equal length. Users and items are numbers from 0; item 0 is the most popular one.
        """
        random = np.random.default_rng(seed)
        spread = math.log(self.most / self.median) / _DEVIATES_95
        each = np.exp(random.normal(math.log(self.median), spread, self.users)).round().astype(np.int64)
        user = np.repeat(np.arange(self.users), each.clip(1, self.items))
        places = np.arange(1.0, self.items + 1)
        popularity = np.cumsum(places**-self.exponent * np.exp(-places / self.cutoff))
        item = np.searchsorted(popularity, random.random(len(user)) * popularity[-1])
        pairs, _ = np.unique(user * self.items + item, return_counts=True)  # much faster than without counts
        return {"user": pairs // self.items, "item": pairs % self.items}


SHAPES = {
    "finance": TableShape(users=1_400_469, items=6_193, exponent=0.2, median=1, most=1, cutoff=1500),
    "reddit": TableShape(users=17_372, items=51_513, exponent=1.0, median=34, most=209),
    "wikipedia": TableShape(users=30_310, items=176_319, exponent=1.0, median=84, most=239),
    "movielens": TableShape(users=32_508, items=59_047, exponent=0.6, median=71, most=554),
}
"""Shapes like those of the tables in Rogers (2024), but not the same: finance in its size, the others in the sizes of
similar public tables, whose users have fewer items. benches/papers has tables with the paper's percentiles.

In finance each user has one item. reddit and wikipedia have words of messages and of articles. movielens has a fifth of
the users of MovieLens 25M.
"""
