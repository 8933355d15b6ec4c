"""Forecasts of the expected largest error, in floating point.

The library chooses a mechanism with these forecasts. No guarantee depends on a forecast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Survivors", "bounded_survival", "expected_maximum", "gaussian_survival", "laplace_survival"]

_POINTS = 4000
_FAR, _CELLS = 9, 256
"""The end of the table of erfc, and its cells per unit."""

Survival = Callable[["NDArray[np.float64]"], "NDArray[np.float64]"]


def expected_maximum(laws: list[tuple[Survival, float]], reach: float) -> float:
    """Return the expected largest |X| over independent draws, a number of draws for each law.

    `survival(t)` is P[|X| >= t], and every |X| is below `reach`. The result is the sum of P[max >= t] over whole t from
    one, by the trapezoidal rule if the range is wide.
    """
    last = math.ceil(reach)
    t = np.round(np.linspace(1, max(last, 2), _POINTS))
    t = t[np.append(True, t[1:] > t[:-1])]
    logs = sum(count * np.log1p(-np.minimum(survival(t), 1 - 1e-16)) for survival, count in laws)
    chances = -np.expm1(logs)
    gaps = np.diff(t)
    # A gap of g steps holds g values; the trapezoid counts each end half.
    inner = float(np.sum(gaps * (chances[:-1] + chances[1:]) / 2))
    return inner + float(chances[0] + chances[-1]) / 2


def gaussian_survival(sigma: float) -> Survival:
    """Return the survival function of discrete Gaussian noise, evaluated midway between whole numbers."""

    return lambda t: _erfc((t - 0.5) / (sigma * math.sqrt(2)))


def _erfc(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return erfc(x) for x >= 0, to about 1e-12, by Hermite interpolation of its logarithm; zero from 9 on."""
    logs, slopes = _erfc_table()
    place = np.minimum(x * _CELLS, len(logs) - 1.5)
    i = place.astype(np.int64)
    u = place - i
    rise = logs[i + 1] - logs[i]
    bend = (1 - u) * (slopes[i] - rise) - u * (slopes[i + 1] - rise)
    return np.where(x < _FAR, np.exp(logs[i] + u * (rise + (1 - u) * bend)), 0.0)


@cache
def _erfc_table() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log erfc at multiples of 1/_CELLS, and its derivatives times 1/_CELLS."""
    points = [place / _CELLS for place in range(_FAR * _CELLS + 2)]
    tails = [math.erfc(x) for x in points]
    slopes = [-2 / math.sqrt(math.pi) * math.exp(-x * x) / tail / _CELLS for x, tail in zip(points, tails, strict=True)]
    return np.log(tails), np.array(slopes)


def laplace_survival(scale: float) -> Survival:
    """Return the survival function of discrete Laplace noise."""
    ratio = math.exp(-1 / scale)
    return lambda t: np.asarray(2 * np.exp(-t / scale) / (1 + ratio))


def bounded_survival(masses: NDArray[np.float64]) -> Survival:
    """Return the survival function of symmetric noise; `masses` are the probabilities of 0, 1, 2, ..."""
    tails = np.append(2 * np.cumsum(masses[::-1])[::-1], 0.0)
    return lambda t: tails[np.minimum(t, len(masses)).astype(np.int64)]


@dataclass(frozen=True, slots=True)
class Survivors:
    """The probabilities of the magnitudes of errors that are not corrected, in cells between edges."""

    edges: NDArray[np.float64]
    mass: NDArray[np.float64]

    @classmethod
    def gaussian(cls, sigma: float, edges: NDArray[np.float64]) -> Self:
        """Return the distribution of the magnitudes of Gaussian errors."""
        return cls(edges, -np.diff(gaussian_survival(sigma)(edges + 0.5)))

    @property
    def magnitudes(self) -> NDArray[np.float64]:
        """The magnitude in the middle of each cell."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    def without(self, share: float, logs: NDArray[np.float64]) -> Self:
        """Return the errors left after a `share` of all errors is corrected.

        An error is corrected with probability 1 - exp(-c rate), for the c that makes the corrected errors sum to
        `share`. The rates are given by their logarithms.
        """
        low, high = -float(logs.max()) - 60.0, -float(logs.min()) + 60.0
        # The share is at most c times the average rate, so c is at least this.
        c = math.log(share / float(self.mass @ np.exp(logs - logs.max()))) - float(logs.max())
        for _ in range(100):
            c = c if low < c < high else (low + high) / 2
            hazards = np.exp(np.minimum(logs + c, 50.0))
            kept = np.exp(-hazards)
            corrected, slope = float(self.mass @ (1 - kept)), float(self.mass @ (hazards * kept))
            low, high = (low, c) if corrected > share else (c, high)
            # Newton's step for the logarithm of the corrected share.
            step = corrected / slope * math.log(share / corrected) if slope > 0 < corrected else math.inf
            if abs(step) < 1e-12 or high - low < 1e-12:
                break
            c += step
        return type(self)(self.edges, self.mass * kept)

    def survival(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of an error of at least t, evaluated midway between whole numbers."""
        tails = np.cumsum(self.mass[::-1])[::-1]
        logs = np.log(np.maximum(np.append(tails, 0.0), 1e-300))
        return np.asarray(np.exp(np.interp(t - 0.5, self.edges, logs, right=-700.0)))
