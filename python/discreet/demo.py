"""A synthetic log with a Zipf tail, for trying the library without real data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PAGES", "ROWS", "USERS", "SyntheticLog", "synthetic_log"]

USERS, ROWS, PAGES = 20_000, 400_000, 50_000
_SYLLABLES = ["ba", "da", "ka", "la", "ma", "na", "ra", "sa", "ta", "va"]


@dataclass(frozen=True, slots=True)
class SyntheticLog:
    """Rows of (user, item), as two arrays of equal length."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]

    @staticmethod
    def name(item: int) -> str:
        """Return a word for an item's number."""
        return "".join(_SYLLABLES[int(digit)] for digit in f"{item:05d}")

    @property
    def table(self) -> dict[str, list[object]]:
        """Return the columns `user` and `item`, with the items as words."""
        numbers, inverse = np.unique(self.items, return_inverse=True)
        words = np.array([self.name(n) for n in numbers], dtype=object)[inverse]
        return {"user": self.users.tolist(), "item": words.tolist()}

    def true_counts(self) -> dict[str, int]:
        """Return the number of users of each item."""
        pairs = np.unique(self.items * (self.users.max() + 1) + self.users)
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
