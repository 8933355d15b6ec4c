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


def score(confidence: float) -> float:
    """Return the number of standard deviations that a normal variable exceeds with probability 1 - confidence."""
    from statistics import NormalDist  # takes milliseconds to import, and most releases need no interval

    return NormalDist().inv_cdf((1 + confidence) / 2)


def interval(
    counts: NDArray[np.int64], sigmas: NDArray[np.float64], confidence: float, law: Law
) -> dict[str, NDArray[np.int64]]:
    """Return the lower and upper ends of the intervals. A true count is at least zero, and so are the ends."""
    reach = reaches(sigmas, confidence, law)
    return {"low": np.maximum(counts - reach, 0), "high": np.maximum(counts + reach, 0)}


def reaches(sigmas: NDArray[np.float64], confidence: float, law: Law) -> NDArray[np.int64]:
    """Return for each sigma the least whole number that the noise exceeds with probability at most 1 - confidence."""
    width = score(confidence)
    distinct, places = np.unique(sigmas, return_inverse=True)
    found = [
        0 if sigma <= 0 else _laplace(sigma, confidence) if law == "laplace" else width * sigma - 0.5
        for sigma in distinct.tolist()
    ]
    # Gaussian noise is rounded: it exceeds t if the noise before rounding exceeds t + 1/2.
    return np.maximum(np.ceil(np.array(found, float) - 1e-9), 0).astype(np.int64)[places]


def _laplace(sigma: float, confidence: float) -> float:
    """Return the reach of discrete Laplace noise: it exceeds t with probability 2 p^(t+1) / (1+p), p = e^(-1/scale)."""
    log_p = -2 * math.asinh(1 / (math.sqrt(2) * sigma))
    return math.log((1 - confidence) * (1 + math.exp(log_p)) / 2) / log_p - 1
