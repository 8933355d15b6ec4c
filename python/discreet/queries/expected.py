"""Forecasts of the expected largest error, in floating point.

The library chooses a mechanism with these forecasts. No guarantee depends on a forecast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Survivors", "bounded_survival", "expected_maximum", "gaussian_survival", "laplace_survival"]

_POINTS = 4000

Survival = Callable[["NDArray[np.float64]"], "NDArray[np.float64]"]


def expected_maximum(laws: list[tuple[Survival, float]], reach: float) -> float:
    """Return the expected largest |X| over independent draws, a number of draws for each law.

    `survival(t)` is P[|X| >= t], and every |X| is below `reach`. The result is the sum of P[max >= t] over whole t from
    one, by the trapezoidal rule if the range is wide.
    """
    last = math.ceil(reach)
    t = np.unique(np.round(np.linspace(1, max(last, 2), _POINTS)))
    logs = sum(count * np.log1p(-np.minimum(survival(t), 1 - 1e-16)) for survival, count in laws)
    chances = -np.expm1(logs)
    gaps = np.diff(t)
    # A gap of g steps holds g values; the trapezoid counts each end half.
    inner = float(np.sum(gaps * (chances[:-1] + chances[1:]) / 2))
    return inner + float(chances[0] + chances[-1]) / 2


def gaussian_survival(sigma: float) -> Survival:
    """Return the survival function of discrete Gaussian noise, evaluated midway between whole numbers."""

    def survival(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([math.erfc(x) for x in ((t - 0.5) / (sigma * math.sqrt(2))).tolist()])

    return survival


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
    """The probabilities of the sizes of errors that are not corrected, on a grid of sizes from zero."""

    grid: NDArray[np.float64]
    mass: NDArray[np.float64]
    points: ClassVar[int] = 1500

    @classmethod
    def gaussian(cls, sigma: float) -> Self:
        """Return the distribution of the sizes of Gaussian errors."""
        grid = np.linspace(0, 9 * sigma, cls.points)
        mass = np.exp(-((grid / sigma) ** 2) / 2)
        mass[0] /= 2
        return cls(grid, mass / mass.sum())

    def without(self, share: float, rates: NDArray[np.float64], *, gumbel: bool = False) -> Self:
        """Return the errors left after a `share` of all errors is corrected.

        An error is corrected with probability 1 - exp(-c rate), for the c that makes the corrected errors sum to
        `share`. With `gumbel` the rates are given by their logarithms.
        """
        logs = rates if gumbel else np.log(np.maximum(rates, 1e-300))
        low, high = -float(logs.max()) - 60.0, -float(logs.min()) + 60.0
        for _ in range(60):
            c = (low + high) / 2
            kept = np.exp(-np.exp(np.minimum(logs + c, 50.0)))
            low, high = (low, c) if float(self.mass @ (1 - kept)) > share else (c, high)
        return type(self)(self.grid, self.mass * kept)

    def survival(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of an error of at least t, evaluated midway between whole numbers."""
        tails = np.cumsum(self.mass[::-1])[::-1]
        return np.interp(t - 0.5, self.grid - self.grid[1] / 2, tails, right=0.0)
