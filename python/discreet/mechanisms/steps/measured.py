"""One number of `Aggregates`: the column and bounds that it has, how the engine measures it, and its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from discreet.engines.projection import FINE
from discreet.errors import Parameter, ParameterError
from discreet.privacy.validation import require_number, require_text, require_whole
from discreet.release.aggregates import Aggregate, KindOfAggregate, in_column_units, own_bounds, to_digits
from discreet.theorems import rogers2024
from discreet.wording import counted

__all__ = [
    "FEWEST",
    "LIMIT",
    "MOST",
    "Bounded",
    "Measured",
    "own_unit",
    "require_bounded",
    "require_several",
    "require_steps",
    "scale_of",
    "shift_of",
]

LIMIT = 2**30
"""The most items, and the most rows of a user for an item. No sum of 2^32 users exceeds 64 bits."""
MOST = 2**95
"""The largest bound in steps."""
FEWEST = 2**20
"""The fewest steps of 2^-32 of a bound. Below, the rounding of many users' values exceeds the noise of their sum."""
_NOISIEST = 1e9
"""The largest scale of discrete Gaussian noise."""
_FINEST = 2**16
"""The most parts of a step in which a mean is added up."""
_KNOWN = 6
"""A mean is known beyond its bounds if its denominator is at least this many of its sigmas."""
Bounded = tuple[str, int, int, float]
"""A column of values, the least and the largest value that counts in steps, and the step."""


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
    """The parts of a step in which the numerator of a mean is added up."""
    shift: int = 0
    """The power of two of steps in which a sum, or the numerator of a mean, is added up."""

    @classmethod
    def mean(cls, given: Bounded, rows: int, rho: float, l0: int) -> Self:
        """Return a mean whose two sums cost rho each, of at most `rows` rows of a user for each of l0 items."""
        column, low, high, step = given
        centre = (low + high) // 2
        widest = rows * max(high - centre, centre - low)
        parts, (scale, shift) = _FINEST, scale_of(rho, _FINEST * widest, l0)
        while parts > 1 and shift:
            parts //= 2
            scale, shift = scale_of(rho, parts * widest, l0)
        return cls("mean", column, low, high, step, rows, (scale, _whole(rho, rows, l0)), parts, shift)

    @classmethod
    def sum(cls, given: Bounded, rho: float, l0: int) -> Self:
        """Return a sum that costs rho, for each of l0 items."""
        column, low, high, step = given
        scale, shift = scale_of(rho, max(abs(low), abs(high)), l0)
        return cls("sum", column, low, high, step, None, (scale,), shift=shift)

    @classmethod
    def rows(cls, most: int, rho: float, l0: int) -> Self:
        """Return a number of rows that costs rho, of at most `most` rows of a user for each of l0 items."""
        return cls("rows", None, 0, 0, 1.0, most, (_whole(rho, most, l0),))

    @property
    def asked(self) -> tuple[str, int, int, int, int, int]:
        """The measure as the engine takes it."""
        return self.kind, self.low, self.high, self.most or 1, self.parts, self.shift

    @property
    def sigma(self) -> float:
        """The noise of a number in the unit of its column; of a mean, that of its numerator."""
        return self.sigmas[0] * 2.0**self.shift * self.resolution

    @property
    def centre(self) -> int:
        """The number from which a mean is measured."""
        return (self.low + self.high) // 2

    def published(self, noisy: NDArray[np.int64]) -> Aggregate:
        """Return the aggregate of noisy sums, one column for each of them."""
        values: NDArray[np.float64] | NDArray[np.int64]
        if self.kind == "mean":
            values, sigmas = self._mean(noisy)
            sigmas = sigmas * self.resolution
            # Rounding may go beyond the bounds.
            low, high = own_bounds(self.low, self.high, self.resolution)
            values = to_digits(values * self.resolution, sigmas).clip(low, high)
        else:
            values, sigmas = noisy[:, 0], np.full(len(noisy), self.sigma)
            if self.kind == "sum":
                values = own_unit(values, self.shift, self.resolution, sigmas).astype(float)
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
        part = 2.0**self.shift / self.parts
        scale, rows_scale = self.sigmas[0] * part, self.sigmas[1]
        rows = np.maximum(noisy[:, 1], 1)
        quotient = np.clip(noisy[:, 0] * part / rows, self.low - self.centre, self.high - self.centre)
        sigmas = np.hypot(scale, np.abs(quotient) * rows_scale) / rows
        widest = (self.high - self.low) / 2
        sigmas = np.where(noisy[:, 1] < _KNOWN * rows_scale, widest, np.minimum(sigmas, widest))
        return self.centre + quotient, sigmas


def scale_of(rho: float, linf: int, l0: int) -> tuple[float, int]:
    """Return the scale of the noise of numbers of which one user changes l0 by at most `linf` steps each, and a shift.

    Numbers are added up, and noise is drawn, in parts of 2^shift steps. Each user's own number is rounded toward zero
    to such parts. So it changes by at most linf >> shift parts, and the scale is that of this number. The shift is the
    least one for which this number is at most 2^30 and the scale at most 1e9. Rounding takes less than one part of a
    user's number: at most 2^-29 of `linf` or 2^-28 of the scale, whichever is larger.

    Raises:
        ParameterError: The noise of the smallest number has a scale above 1e9.
    """
    sigma = rogers2024.measurement_sigma(rho / l0)
    if (shift := shift_of(linf, sigma)) is None:
        raise ParameterError(
            f"the noise of {counted(l0, 'item')} of one user would have a scale of {sigma:.3g} times the bound, above "
            "1e9; give a smaller l0 or a larger rho or epsilon"
        )
    return (linf >> shift) * sigma, shift


def shift_of(linf: int, sigma: float) -> int | None:
    """Return the shift of `scale_of` for noise of sigma times the bound, or None if no noise is small enough."""
    shift = 0
    while linf >> shift > LIMIT or (linf >> shift) * sigma > _NOISIEST:
        shift += 1
    return shift if linf >> shift else None


def _whole(rho: float, linf: int, l0: int) -> float:
    """Return the scale of the noise of numbers of users or rows, of which one user changes l0 by `linf` each."""
    scale, shift = scale_of(rho, linf, l0)
    if shift:
        raise ParameterError(
            f"the noise of {counted(l0, 'item')} of one user would have a scale above 1e9; give fewer rows, a smaller "
            "l0 or a larger rho"
        )
    return scale


def own_unit(
    parts: NDArray[np.int64], shift: int, resolution: float, sigmas: NDArray[np.float64]
) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return numbers of 2^shift steps in the unit of their column: integers if this is one part."""
    if (shift, resolution) == (0, 1):
        return parts
    values = in_column_units(parts.astype(np.float64) * 2.0**shift, resolution)
    return values if shift == 0 and resolution != FINE else to_digits(values, sigmas)


def require_steps(low: object, high: object, resolution: object) -> tuple[int, int, float]:
    """Return bounds in steps and the step, or raise ParameterError."""
    least, most = require_whole("low", low, -MOST, MOST), require_whole("high", high, -MOST, MOST)
    if least >= most:
        raise ParameterError.about("{bounds} must be the least value and then the largest: {low} must be below {high}")
    return least, most, require_number("resolution", resolution, 1e-12, 1e12, open_low=False)


def require_several(name: str, given: object) -> tuple[object, ...]:
    """Return columns with their bounds as a tuple, or raise ParameterError."""
    if not isinstance(given, tuple | list):
        raise ParameterError.about('{} must be a tuple such as (("price", 0, 5000, 0.01),)', Parameter(name))
    return tuple(given)


def require_bounded(name: str, given: object) -> Bounded:
    """Return a column with its bounds and its unit, or raise ParameterError."""
    if not isinstance(given, tuple | list) or len(given) != 4:
        raise ParameterError.about(
            'each of {} must have a column, the least and the largest value, and the unit, such as ("price", 0, '
            "5000, 0.01)",
            Parameter(name),
        )
    column, low, high, unit = given
    if not isinstance(column, str):
        raise ParameterError("value must be the name of a column")
    require_text("the name of the column of values", column)
    return column, *require_steps(low, high, unit)
