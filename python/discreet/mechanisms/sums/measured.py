"""One number of `Aggregates`: the column and bounds that it has, how the engine measures it, and its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.privacy.validation import require_number, require_text, require_whole
from discreet.release.aggregates import Aggregate, KindOfAggregate, in_column_units, to_digits
from discreet.theorems import rogers2024
from discreet.wording import counted

__all__ = ["LIMIT", "Bounded", "Measured", "require_bounded", "require_several", "scale_of"]

LIMIT = 2**30
_NOISIEST = 1e9
"""The largest scale of discrete Gaussian noise."""
_WIDEST = 2**31
"""The largest change of a sum of means by one user and item. With it no sum of 2^32 users exceeds 64 bits."""
_FINEST = 2**16
"""The most parts of a unit in which a mean is added up."""
_KNOWN = 6
"""A mean is known beyond its bounds if its denominator is at least this many of its sigmas."""
Bounded = tuple[str, int, int, float]
"""A column of values, the least and the largest value that counts in units, and the unit."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One aggregate: how it is measured, and the scale of the noise of each of its sums."""

    kind: KindOfAggregate
    column: str | None
    low: int
    high: int
    resolution: float
    most: int | None
    sigmas: tuple[float, ...]
    parts: int = 1
    """The parts of a unit in which the numerator of a mean is added up."""

    @classmethod
    def mean(cls, given: Bounded, rows: int, rho: float, l0: int) -> Self:
        """Return a mean whose two sums cost rho each, of at most `rows` rows of a user for each of l0 items."""
        column, low, high, unit = given
        centre = (low + high) // 2
        widest = rows * max(high - centre, centre - low)
        if widest > _WIDEST:
            raise ParameterError(
                "a mean needs narrower bounds, a larger resolution or fewer rows: their product is above 2^31",
                names="means rows",
            )
        scale, parts = scale_of(rho, widest, l0), _FINEST
        while parts > 1 and (parts * widest > _WIDEST or parts * scale > _NOISIEST):
            parts //= 2
        scales = (scale_of(rho, parts * widest, l0), scale_of(rho, rows, l0))
        return cls("mean", column, low, high, unit, rows, scales, parts)

    @property
    def asked(self) -> tuple[str, int, int, int, int]:
        """The measure as the engine takes it."""
        return self.kind, self.low, self.high, self.most or 1, self.parts

    @property
    def centre(self) -> int:
        """The number from which a mean is measured."""
        return (self.low + self.high) // 2

    def published(self, noisy: NDArray[np.int64]) -> Aggregate:
        """Return the aggregate of noisy sums, one column for each of them."""
        values: NDArray[Any]
        if self.kind == "mean":
            values, sigmas = self._mean(noisy)
            sigmas = sigmas * self.resolution
            values = to_digits(values * self.resolution, sigmas)
        else:
            values, sigmas = noisy[:, 0], np.full(len(noisy), self.sigmas[0])
            if self.kind == "sum":
                values, sigmas = in_column_units(values, self.resolution), sigmas * self.resolution
        return Aggregate(
            kind=self.kind,
            column=self.column,
            low=self.low,
            high=self.high,
            resolution=self.resolution,
            most=self.most,
            values=values,
            sigmas=sigmas,
        )

    def _mean(self, noisy: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the quotients of two noisy sums, and the standard deviations of their errors.

        The error of a quotient is that of its numerator, and of its denominator times the quotient, over the
        denominator. A denominator below six of its sigmas says too little, and then nothing but the bounds is known.
        """
        scale, rows_scale = self.sigmas[0] / self.parts, self.sigmas[1]
        rows = np.maximum(noisy[:, 1], 1)
        quotient = np.clip(noisy[:, 0] / self.parts / rows, self.low - self.centre, self.high - self.centre)
        sigmas = np.hypot(scale, np.abs(quotient) * rows_scale) / rows
        widest = (self.high - self.low) / 2
        sigmas = np.where(noisy[:, 1] < _KNOWN * rows_scale, widest, np.minimum(sigmas, widest))
        return self.centre + quotient, sigmas


def scale_of(rho: float, linf: int, l0: int) -> float:
    """Return the scale of the noise of numbers of which one user changes l0 by `linf` each."""
    scale = linf * rogers2024.measurement_sigma(rho / l0)
    if not math.isfinite(scale) or scale > _NOISIEST:
        raise ParameterError(
            f"the noise of {counted(l0, 'item')} of one user would have a scale of {scale:.3g} units, above 1e9; give "
            "narrower bounds, a larger resolution, a smaller l0 or a larger rho"
        )
    return scale


def require_several(name: str, given: object) -> tuple[object, ...]:
    """Return columns with their bounds as a tuple, or raise ParameterError."""
    if not isinstance(given, tuple | list):
        raise ParameterError(f'{name} must be a tuple such as (("price", 0, 5000, 0.01),)', names=name)
    return tuple(given)


def require_bounded(name: str, given: object) -> Bounded:
    """Return a column with its bounds and its unit, or raise ParameterError."""
    if not isinstance(given, tuple | list) or len(given) != 4:
        raise ParameterError(
            f'each of {name} must have a column, the least and the largest value, and the unit, such as ("price", 0, '
            "5000, 0.01)",
            names=name,
        )
    column, low, high, unit = given
    if not isinstance(column, str):
        raise ParameterError("value must be the name of a column", names=name)
    require_text("the name of the column of values", column)
    low, high = require_whole("low", low, -LIMIT, LIMIT), require_whole("high", high, -LIMIT, LIMIT)
    if low >= high:
        raise ParameterError("bounds must be the least value and then the largest: low must be below high", names=name)
    return column, low, high, require_number("resolution", unit, 1e-12, 1e12, open_low=False)
