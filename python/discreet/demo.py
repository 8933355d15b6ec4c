"""A synthetic log with a Zipf tail, so that the main job can be tried without anybody's data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SyntheticLog", "synthetic_log"]

_SYLLABLES = ["ba", "da", "ka", "la", "ma", "na", "ra", "sa", "ta", "va"]


@dataclass(frozen=True, slots=True)
class SyntheticLog:
    """Rows of (user, item), as two equally long arrays."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]

    @staticmethod
    def name(item: int) -> str:
        """A word for an item's number."""
        return "".join(_SYLLABLES[int(digit)] for digit in f"{item:05d}")

    @property
    def table(self) -> dict[str, list[object]]:
        """The columns `user` and `item`, the items as words."""
        numbers, inverse = np.unique(self.items, return_inverse=True)
        words = np.array([self.name(n) for n in numbers], dtype=object)[inverse]
        return {"user": self.users.tolist(), "item": words.tolist()}

    def true_counts(self) -> dict[str, int]:
        """How many users have each item."""
        pairs = np.unique(self.items * (self.users.max() + 1) + self.users)
        numbers, counts = np.unique(pairs // (self.users.max() + 1), return_counts=True)
        return {self.name(n): c for n, c in zip(numbers.tolist(), counts.tolist(), strict=True)}


def synthetic_log(users: int = 20_000, rows: int = 400_000, vocabulary: int = 50_000, seed: int = 1) -> SyntheticLog:
    """`rows` visits: users with a heavy-tailed activity, items with probability falling as one over the rank."""
    random = np.random.default_rng(seed)
    activity = np.cumsum(random.lognormal(0.0, 1.0, users))
    popularity = np.cumsum(1.0 / np.arange(1, vocabulary + 1))
    shuffled = random.permutation(vocabulary)
    who = np.searchsorted(activity, random.random(rows) * activity[-1])
    what = np.searchsorted(popularity, random.random(rows) * popularity[-1])
    return SyntheticLog(who.astype(np.int64), shuffled[what].astype(np.int64))
