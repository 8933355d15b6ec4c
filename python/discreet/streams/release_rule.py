"""`ReleaseRule`: the threshold of a noisy count, with the tail of the noise from which it was computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.theorems.tails import least

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ReleaseRule"]


@dataclass(frozen=True, slots=True)
class ReleaseRule:
    """A rule that releases estimates above `value`. `tail(m)` is an upper bound of P[noise >= m] for every m >= 1."""

    value: int
    tail: Callable[[int], float]

    @classmethod
    def least(cls, tail: Callable[[int], float], count: int, chance: float) -> Self:
        """Return the rule with the least threshold that an item of this count passes with at most this chance."""
        return cls(count - 1 + least(lambda m: tail(m) <= chance), tail)

    def passed(self, estimates: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the estimates strictly above the threshold, which are released."""
        return estimates > self.value

    def chance(self, count: int) -> float:
        """Return an upper bound of the chance that an item of this count is released."""
        # count + noise > value exactly if noise >= value + 1 - count.
        return self.tail(self.value + 1 - count) if count <= self.value else 1.0
