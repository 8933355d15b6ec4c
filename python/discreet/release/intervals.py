"""Intervals of true counts from noisy counts, by the exact or an approximate law of the noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LAWS", "Law", "interval", "reaches", "score"]

Law: TypeAlias = Literal["gaussian", "laplace"]
"""The law of the noise of counts: discrete Gaussian or a rounded mean of such noise, or discrete Laplace."""
LAWS: tuple[Law, ...] = ("gaussian", "laplace")
_FAR, _STEP = 10.0, 0.02
"""The range in which a threshold changes an interval, and the steps in which it is computed, in sigmas."""
_MOST_BELOW = 30.0
"""The lowest end below a threshold, in sigmas. Noise that exceeds it has a probability below 1e-18."""
_MOST = 2**62
"""The limit of counts and reaches, so that the ends are numbers of 64 bits."""


def score(confidence: float) -> float:
    """Return the number of standard deviations that a normal variable exceeds with probability 1 - confidence."""
    from statistics import NormalDist  # takes milliseconds to import, and most releases need no interval

    return -NormalDist().inv_cdf((1 - confidence) / 2)  # (1 + confidence) / 2 may round to 1


def interval(
    counts: NDArray[np.int64], sigmas: NDArray[np.float64], confidence: float, law: Law, above: int | None
) -> dict[str, NDArray[np.int64]]:
    """Return the lower and upper ends of the intervals. A true count is at least zero, and so are the ends.

    `above` is the threshold, if only counts above it were released.
    """
    reach, counts = reaches(sigmas, confidence, law), np.clip(counts, -_MOST, _MOST - 1)
    low, high = counts - reach, counts + reach
    if above is not None and len(counts):
        low = np.minimum(low, _selected_low(counts, float(sigmas.max()), confidence, law, above))
    return {"low": np.maximum(low, 0), "high": np.maximum(high, 0)}


def _selected_low(
    counts: NDArray[np.int64], sigma: float, confidence: float, law: Law, above: int
) -> NDArray[np.int64]:
    """Return the lower ends of counts that were released because they exceed a threshold.

    An item of fewer users than the threshold is released only with large noise. So the lower end is the least true
    count for which a count as large as the released one has a probability of 1 - confidence, given that it exceeds the
    threshold. It is not half of that: such an item never misses its upper end, which is above the threshold. Beyond
    `_FAR` sigmas above the threshold the condition changes nothing.
    """
    beyond = np.clip((counts.astype(float) - above - 1) / max(sigma, 1e-9), 0, _FAR)
    cells = np.floor(beyond / _STEP).astype(np.int64)
    used = np.unique(cells[beyond < _FAR])
    ends = np.full(round(_FAR / _STEP) + 1, -math.inf)
    ends[used] = [_below(cell * _STEP, 1 - confidence, law) for cell in used.tolist()]
    below = ends[np.minimum(cells, len(ends) - 1)]
    found = np.ceil(above + 0.5 - np.where(np.isfinite(below), below, 0.0) * sigma)
    return np.where(np.isfinite(below), np.clip(found, -_MOST, _MOST).astype(np.int64), counts)


def _below(beyond: float, chance: float, law: Law) -> float:
    """Return how many sigmas below the threshold the lower end is, for a count that is `beyond` sigmas above it."""

    def tail(x: float) -> float:
        if law == "gaussian":
            return 0.5 * math.erfc(x / math.sqrt(2))
        return 0.5 * math.exp(-math.sqrt(2) * x) if x >= 0 else 1 - 0.5 * math.exp(math.sqrt(2) * x)

    least, most = -_FAR - 10.0, _MOST_BELOW
    if tail(beyond + most) > chance * tail(most):
        return most
    for _ in range(50):
        middle = (least + most) / 2
        least, most = (middle, most) if tail(beyond + middle) > chance * tail(middle) else (least, middle)
    return most


def reaches(sigmas: NDArray[np.float64], confidence: float, law: Law) -> NDArray[np.int64]:
    """Return for each sigma the least whole number that the noise exceeds with probability at most 1 - confidence."""
    width = score(confidence)
    distinct, places = np.unique(sigmas, return_inverse=True)
    found = [
        0 if sigma <= 0 else _laplace(sigma, confidence) if law == "laplace" else width * sigma - 0.5
        for sigma in distinct.tolist()
    ]
    # Gaussian noise is rounded: it exceeds t if the noise before rounding exceeds t + 1/2.
    return np.clip(np.ceil(np.array(found, float) - 1e-9), 0, _MOST).astype(np.int64)[places]


def _laplace(sigma: float, confidence: float) -> float:
    """Return the reach of discrete Laplace noise: it exceeds t with probability 2 p^(t+1) / (1+p), p = e^(-1/scale)."""
    log_p = -2 * math.asinh(1 / (math.sqrt(2) * sigma))
    return math.log((1 - confidence) * (1 + math.exp(log_p)) / 2) / log_p - 1
