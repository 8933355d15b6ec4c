"""`KeptShare`: the share of (user, item) pairs that a bound on the items of a user kept, measured with privacy."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["KeptShare"]

_LEAST = 4.0
"""The least total, in standard deviations of a sum, for which the first order describes the share."""


class KeptShare(NamedTuple):
    """A private estimate of the share of (user, item) pairs that were counted under a bound `l0`.

    Args:
        value: The estimate, from 0 to 1.
        sigma: The standard deviation of its noise, at most 0.5. With 0.5 the noise hides the share.

    Example:
        >>> from discreet.release import KeptShare
        >>> KeptShare.of(kept=900, dropped=100, deviation=10.0)
        KeptShare(value=0.9, sigma=0.009055385138137417)
    """

    value: float
    sigma: float

    @classmethod
    def of(cls, *, kept: int, dropped: int, deviation: float) -> KeptShare:
        """Return the share of two noisy sums.

        The standard deviation is that of kept/(kept + dropped) to first order: sqrt((1 - v)^2 + v^2) times the
        deviation of a sum, divided by the total. A total below four deviations is mostly noise; sigma is then 0.5.

        Args:
            kept: The noisy number of pairs that were kept.
            dropped: The noisy number of pairs that were dropped.
            deviation: The standard deviation of the noise of each number.

        Returns:
            The estimate.
        """
        total = max(1, kept + dropped)
        value = min(max(kept / total, 0.0), 1.0)
        if total < _LEAST * deviation:
            return cls(value, 0.5)
        return cls(value, min(0.5, math.hypot(value, 1 - value) * deviation / total))
