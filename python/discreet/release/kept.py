"""`KeptShare`: the share of (user, item) pairs that a bound on the items of a user kept, measured with privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["MOST_NOISE", "NOISE_ALONE", "KeptShare", "l0_and_share"]

_LEAST = 4.0
"""The least total, in standard deviations of a sum, for which the first order describes the share."""
NOISE_ALONE = 0.5
"""The largest sigma of a share. The noise then hides the share."""
MOST_NOISE = 0.1
"""The largest sigma of a share that a note states as a percentage."""


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
            return cls(value, NOISE_ALONE)
        return cls(value, min(NOISE_ALONE, math.hypot(value, 1 - value) * deviation / total))


def l0_and_share(header: Mapping[str, object]) -> tuple[int | None, KeptShare | None]:
    """Return the bound and the kept share in the header of a release, or None for each that is missing.

    The header is untrusted input.

    Raises:
        ValueError: The bound or the share is no possible value, or the share is of no bound.
    """
    l0, given = header.get("l0"), header.get("kept_share")
    if l0 is not None and not (type(l0) is int and 1 <= l0 < 2**62):
        raise ValueError("l0 must be a whole number from 1")
    if given is None:
        return l0, None
    numbers = [one for one in given if type(one) in (int, float)] if isinstance(given, list) else []
    if numbers != given or len(numbers) != 2 or not (0 <= numbers[0] <= 1 and 0 < numbers[1] <= NOISE_ALONE):
        raise ValueError("kept_share must be a share from 0 to 1, and its sigma above 0 and at most 0.5")
    if l0 is None:
        raise ValueError("kept_share needs l0")
    return l0, KeptShare(float(numbers[0]), float(numbers[1]))
