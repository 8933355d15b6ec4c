"""Further numbers of each released item: rows, sums and means of columns, each with its noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, TypeVar

import numpy as np

from discreet.engines.projection import FINE, exact_step
from discreet.engines.untrusted import Cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.release.blocks import Column

__all__ = [
    "KINDS_OF_AGGREGATES",
    "Aggregate",
    "column_name",
    "column_names",
    "in_column_units",
    "own_bounds",
    "read_aggregates",
    "to_digits",
]

KindOfAggregate: TypeAlias = Literal["rows", "sum", "mean"]
KINDS_OF_AGGREGATES: tuple[KindOfAggregate, ...] = ("rows", "sum", "mean")
_FIELDS = ("kind", "column", "low", "high", "resolution", "most")
_LIMIT = 2**30
_MOST = 2**95
"""The largest bound in steps."""
_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aggregate:
    """One more number of each item of a release, with the bounds under which it was measured.

    Args:
        kind: "rows", "sum" or "mean".
        column: The column of values; None for rows.
        low: The least value that counts, in steps of `resolution`: of a user's sum, or of a user's mean; None for any.
        high: The largest such value, or None.
        resolution: The step to which values were rounded.
        most: The most rows of a user for an item that count, in rows and means; None for sums, or for any number.
        values: One number for each row of the release, as int64 for rows, and as float64 in units of the column for
            sums and means.
        sigmas: The standard deviation of the noise of each number, in the same units.
    """

    kind: KindOfAggregate
    column: str | None = None
    low: int | None = 0
    high: int | None = 0
    resolution: float = 1.0
    most: int | None = None
    values: NDArray[np.int64] | NDArray[np.float64]
    sigmas: NDArray[np.float64]

    @property
    def name(self) -> str:
        """The name of the column of values."""
        return column_name(self.kind, self.column)

    def measure(self, unit: str = "user") -> str:
        """Return the meaning of the values.

        Args:
            unit: What counts as one user.

        Returns:
            A text.
        """
        pair = f"each {unit} and item"
        if self.kind == "rows":
            limit = "" if self.most is None else f", at most {self.most:,} of {pair}"
            return f"{self.name}: numbers of rows{limit}"
        if self.low is None or self.high is None:
            return f"{self.name}: {'sums' if self.kind == 'sum' else 'means over rows'} of {self.column}"
        low, high = own_bounds(self.low, self.high, self.resolution)
        bounds = f"clipped to [{low}, {high}]"
        if self.resolution != FINE:
            bounds += f"; values are rounded to {self.resolution:g}"
        if self.kind == "sum":
            return f"{self.name}: sums of {self.column}, that of {pair} {bounds}"
        if self.most is None:
            return f"{self.name}: means of {self.column} over rows; the sum of {pair} is {bounds}"
        return f"{self.name}: means of {self.column} over rows, at most {self.most:,} of {pair}, whose mean is {bounds}"

    def part(self, rows: NDArray[np.int64]) -> Self:
        """Return the numbers of some rows.

        Args:
            rows: The places of the rows.

        Returns:
            An Aggregate.
        """
        return replace(self, values=self.values[rows], sigmas=self.sigmas[rows])

    @property
    def columns(self) -> list[Column]:
        """The column of values and the column of their noise, as the release publishes them."""
        kind = "int64" if self.kind == "rows" else "float64"
        return [(self.name, self.values, kind), (f"{self.name}_sigma", self.sigmas, "float64")]

    @property
    def header(self) -> dict[str, object]:
        """The facts in the header of a file."""
        return {name: getattr(self, name) for name in _FIELDS}


def column_name(kind: str, column: str | None) -> str:
    """Return the name of the column of an aggregate."""
    return kind if column is None else f"{column}_{kind}"


def column_names(aggregates: Sequence[Aggregate]) -> list[str]:
    """Return the names of all columns of aggregates."""
    return [name for one in aggregates for name, _, _ in one.columns]


def in_column_units(units: NDArray[np.signedinteger] | NDArray[np.float64], resolution: float) -> NDArray[np.float64]:
    """Return whole numbers of units in the unit of their column, each as the float next to its decimal."""
    digits = max(0, -int(Decimal(str(resolution)).normalize().as_tuple().exponent))
    found: NDArray[np.float64] = np.round(units * resolution, min(digits, 15))
    return found


def own_bounds(low: int, high: int, resolution: float) -> tuple[float, ...]:
    """Return bounds of whole steps in the unit of their column: as integers, or as floats next to their decimals.

    Of steps of 2^-32 it is the shortest decimal within the last step, from which the bound became wider.
    """
    found = []
    for bound, whole in ((low, math.floor), (high, math.ceil)):
        unit = float(bound * exact_step(resolution))
        if resolution == FINE:
            shorter = (float(f"{unit:.{digits}g}") for digits in range(1, 18))
            unit = next((one for one in shorter if whole(Fraction(one) / Fraction(FINE)) == bound), unit)
        found.append(int(unit) if unit == int(unit) else unit)
    return tuple(found)


def to_digits(values: NDArray[np.float64], sigmas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers rounded to hundredths of the leading digit of their sigma or finer."""
    digits = np.clip(2 - np.floor(np.log10(np.maximum(sigmas, 1e-300))), 0, 15).astype(int)
    pairs = zip(values.tolist(), digits.tolist(), strict=True)
    return np.array([round(value, places) for value, places in pairs], np.float64)


def read_aggregates(header: Mapping[str, object], cells: Mapping[str, Cells]) -> tuple[Aggregate, ...]:
    """Return the aggregates in the header and the cells of a file, read as untrusted input.

    Raises:
        ValueError: They are no possible aggregates.
    """
    given = header.get("aggregates", [])
    if not isinstance(given, list) or len(given) > 100:
        raise ValueError("aggregates must be a short list")
    found = tuple(_read(one, cells) for one in given)
    if len({one.name for one in found}) < len(found):
        raise ValueError("two aggregates have one name")
    return found


def _read(given: object, cells: Mapping[str, Cells]) -> Aggregate:
    if not isinstance(given, dict) or {*given} != {*_FIELDS} or given["kind"] not in KINDS_OF_AGGREGATES:
        raise ValueError("an aggregate must have its kind, column and bounds")
    kind, column, low, high, resolution, most = (given[name] for name in _FIELDS)
    is_rows = kind == "rows"
    if (column is None) != is_rows or not isinstance(column, str | None):
        raise ValueError("an aggregate must have the name of its column, and rows have none")
    is_free = low is None and high is None
    if not is_free and (type(low) is not int or type(high) is not int or not -_MOST <= low <= high <= _MOST):
        raise ValueError("the bounds of an aggregate must be whole numbers, the lower one first")
    if type(resolution) not in (int, float) or not 1e-12 <= resolution <= 1e12:
        raise ValueError("the resolution of an aggregate must be a number")
    if most is not None and (kind == "sum" or type(most) is not int or not 1 <= most <= _LIMIT):
        raise ValueError("the most rows of an aggregate must be a whole number")
    name = column_name(kind, column)
    if any(type(cell) in (int, float) and cell < 0 for cell in cells.get(f"{name}_sigma", [])):
        raise ValueError("a sigma of an aggregate is negative")
    found = cells.get(name, [])
    values = _numbers(found, np.int64) if is_rows else _numbers(found, np.float64)
    return Aggregate(
        kind=kind,
        column=column,
        low=low,
        high=high,
        resolution=float(resolution),
        most=most,
        values=values,
        sigmas=_numbers(cells.get(f"{name}_sigma", []), np.float64),
    )


def _numbers(cells: list[object], kind: type[_Number]) -> NDArray[_Number]:
    whole = kind is np.int64
    if any(type(cell) is not int and (whole or type(cell) is not float) for cell in cells):
        raise ValueError("a number of an aggregate is not a number")
    found = np.array(cells, kind)
    if not whole and not np.all(np.abs(found) < 1e60):
        raise ValueError("a number of an aggregate is out of range")
    return found
