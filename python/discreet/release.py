"""`Release`: rows that are safe to publish, with the guarantee that makes them so. PUBLIC."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import _core, export, plot
from discreet.privacy import Guarantee

if TYPE_CHECKING:
    import os

    import pandas
    import polars
    import pyarrow
    from numpy.typing import NDArray

__all__ = ["Release"]

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """Published rows: `items[i]` was counted `counts[i]` times, give or take noise of scale `sigmas[i]`.

    The rows are sorted by noisy count, then by item. A release is data: reading it twice gives the same
    numbers and costs nothing more.
    """

    items: list[Any]
    """Labels, all of one type: str, int or bytes."""
    counts: NDArray[np.int64]
    """Noisy counts. They may be off by a few sigma, and below zero."""
    sigmas: NDArray[np.float64]
    """The scale of each count's noise."""
    guarantee: Guarantee
    """What was promised before any data was seen."""
    spent: Guarantee
    """What the steps that were made cost: the sum of their prices, at most the promise."""
    calls: int
    """How many selections were made, those that selected nothing included."""
    made_by: str
    """The mechanism and its parameters."""
    stopped_early: bool = False
    """Whether a truncated histogram ran out of rows before the budget did."""
    private: bool = True
    """False where the randomness was seeded, so that the rows protect nobody."""
    notes: tuple[str, ...] = ()
    """What a reader should know, from public parameters alone."""
    item_type: str = field(default="string", repr=False)
    """The Arrow type of the items: string, binary, int64 or uint64."""

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        """Pairs of item and noisy count."""
        return zip(self.items, self.counts.tolist(), strict=True)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def columns(self) -> list[tuple[str, Any, str]]:
        """Name, values and Arrow type of each published column."""
        return [
            ("item", self.items, self.item_type),
            ("count", self.counts, "int64"),
            ("sigma", self.sigmas, "float64"),
        ]

    @property
    def promise(self) -> str:
        """The guarantee in one line."""
        if not self.private:
            return "no privacy: the randomness was seeded"
        total = min(2 * self.guarantee.delta, 0.5) or 1e-6
        epsilon = self.guarantee.epsilon(total)
        implied = "" if math.isinf(epsilon) else f", which implies ({epsilon:.4g}, {total:g})-DP"
        return f"{self.guarantee}{implied}"

    def __repr__(self) -> str:
        lines = [f"Release of {len(self)} items by {self.made_by}", f"guarantee: {self.promise}", *self.notes]
        lines += [f"{count:>12}  {export.plain_text(item)}" for item, count in list(self)[:_SHOWN]]
        if len(self) > _SHOWN:
            lines.append(f"{'...':>12}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{html.escape(export.plain_text(item))}</td><td>{count}</td><td>{sigma:.1f}</td></tr>"
            for (item, count), sigma in zip(list(self)[:_SHOWN], self.sigmas, strict=False)
        )
        more = f"<p>and {len(self) - _SHOWN} more</p>" if len(self) > _SHOWN else ""
        return (
            f"<p><b>{len(self)} items</b>, {html.escape(self.promise)}</p>"
            f"<table><tr><th>item</th><th>count</th><th>sigma</th></tr>{cells}</table>{more}"
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream of fresh, plain buffers: item, count, sigma."""
        return _core.arrow_stream(self.columns)

    def to_arrow(self) -> pyarrow.Table:
        """The rows as a pyarrow.Table (needs pyarrow)."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars.DataFrame (needs polars)."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas.DataFrame (needs pandas)."""
        import pandas

        return pandas.DataFrame({name: values for name, values, _ in self.columns})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the rows to a file whose suffix says how: .csv, .json, .jsonl or .parquet.

        Raises ParameterError for another suffix and InputError where the file cannot be written.
        """
        export.write(path, self.columns, self.header)

    @property
    def header(self) -> dict[str, Any]:
        """What a file of this release says of itself."""
        return {
            "made_by": self.made_by,
            "guarantee": self.promise,
            "rho": self.guarantee.rho,
            "delta": self.guarantee.delta,
            "unit": self.guarantee.unit,
            "private": self.private,
        }

    def plot(self, *, top: int = 30) -> Any:
        """Draws the `top` largest counts with bars of two sigma; returns matplotlib Axes (needs discreet[plot])."""
        return plot.bars(self.items[:top], self.counts[:top], self.sigmas[:top], title=self.promise)
