"""`Release`: rows that are safe to publish, with the guarantee that makes them so. PUBLIC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import _core
from discreet.errors import ParameterError, needs
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_flag
from discreet.release import export, plot
from discreet.wording import counted

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
    """Published rows: `items[i]` was counted `counts[i]` times, give or take noise of deviation `sigmas[i]`.

    The rows are sorted by noisy count, then by item. A mechanism that publishes no counts leaves both
    out; its rows are in the order of their ranks (`ranked`) or of their items. A release is data:
    reading it twice gives the same rows and costs nothing more.
    """

    items: list[Any]
    """Labels, all of one type: str, int or bytes."""
    counts: NDArray[np.int64] | None = None
    """Noisy counts. They may be off by a few sigma, and below zero."""
    sigmas: NDArray[np.float64] | None = None
    """The standard deviation of each count's noise."""
    ranked: bool = False
    """Whether the rows are ranks one, two, three and so on."""
    guarantee: Guarantee
    """What was promised before any data was seen."""
    spent: Guarantee
    """What the steps that were made cost: the sum of their prices, at most the promise."""
    calls: int = 1
    """How many selections were made, those that selected nothing included."""
    made_by: str
    """The mechanism and its parameters."""
    stopped_early: bool = False
    """Whether a truncated histogram ran out of rows before the budget did."""
    seeded: bool = False
    """True where the randomness was seeded, so that the rows protect nobody."""
    notes: tuple[str, ...] = ()
    """What a reader should know, from public parameters alone."""
    clipped: bool = False
    """Whether at most some number of each user's items were counted, so that counts are below the numbers of users."""
    users: tuple[int, float] | None = None
    """About how many users have any item, and the standard deviation of its noise, where that was measured."""
    round: int | None = None
    """The round of a stream, None for what is no stream's."""
    item_type: str = field(default="string", repr=False)
    """The Arrow type of the items: string, binary, int64 or uint64."""

    def __iter__(self) -> Iterator[Any]:
        """Pairs of item and noisy count, or items where there are no counts."""
        return iter(self.items) if self.counts is None else zip(self.items, self.counts.tolist(), strict=True)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def columns(self) -> list[tuple[str, Any, str]]:
        """Name, values and Arrow type of each published column."""
        columns: list[tuple[str, Any, str]] = [("item", self.items, self.item_type)]
        if self.ranked:
            columns.append(("rank", np.arange(1, len(self) + 1), "int64"))
        if self.counts is not None:
            columns.append(("count", self.counts, "int64"))
        if self.sigmas is not None:
            columns.append(("sigma", self.sigmas, "float64"))
        return columns

    @property
    def promise(self) -> str:
        """The guarantee in one line."""
        if self.seeded:
            return "no privacy: the randomness was seeded"
        return self.guarantee.promise

    def __repr__(self) -> str:
        lines = [f"Release of {self._size} by {self.made_by}", f"guarantee: {self.promise}", *self.notes]
        # The second column, a count or a rank, before the item.
        lines += [f"{(cells[1:] or [''])[0]:>12}  {cells[0]}" for cells in self._shown()]
        if len(self) > _SHOWN:
            lines.append(f"{'...':>12}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        names = "".join(f"<th>{name}</th>" for name, _, _ in self.columns)
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in cells) for cells in self._shown())
        cells = "".join(f"<tr>{row}</tr>" for row in rows)
        more = f"<p>and {len(self) - _SHOWN} more</p>" if len(self) > _SHOWN else ""
        return f"<p><b>{self._size}</b>, {html.escape(self.promise)}</p><table><tr>{names}</tr>{cells}</table>{more}"

    @property
    def _size(self) -> str:
        return counted(len(self), "item")

    def _shown(self) -> list[list[str]]:
        """The cells of the first rows as text."""
        columns = [
            [f"{value:.1f}" if kind == "float64" else export.plain_text(value) for value in values[:_SHOWN]]
            for _, values, kind in self.columns
        ]
        return [list(cells) for cells in zip(*columns, strict=True)]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream of fresh, plain buffers: item, count, sigma."""
        return _core.arrow_stream(self.columns)

    def to_arrow(self) -> pyarrow.Table:
        """The rows as a pyarrow.Table (needs pyarrow)."""
        with needs("pyarrow"):
            import pyarrow
        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars.DataFrame (needs polars)."""
        with needs("polars"):
            import polars
        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas.DataFrame (needs pandas)."""
        with needs("pandas"):
            import pandas
        # Of no rows, too, a column has its type.
        kinds = {"string": "str", "binary": "object"}
        return pandas.DataFrame(
            {name: pandas.Series(values, dtype=kinds.get(kind, kind)) for name, values, kind in self.columns}
        )

    def write(self, path: str | os.PathLike[str], *, certificate: bool = False, overwrite: bool = True) -> None:
        """Writes the rows to a file whose suffix says how: .csv, .json, .jsonl or .parquet.

        With `certificate` a second file, of the same name and .certificate.json, says which mechanism and parameters
        made the rows, what they promise, and the digest of the rows: `discreet verify` holds it against them. Without
        it such a file of earlier rows is removed, since it would not be about these. With `overwrite=False` neither
        file may exist, even if another program makes it at the same time.
        Raises ParameterError for another suffix, or where a certificate is asked for a release without
        privacy, and InputError where the file cannot be written, exists against `overwrite`, or the second name is that
        of another file.
        """
        content = self.certificate if require_flag("certificate", certificate) else None
        export.require_room_for_certificate(path)
        if not require_flag("overwrite", overwrite):
            export.require_absent(path)
        export.write(path, self.columns, self.header, overwrite=overwrite)
        if content is not None:
            export.write_certificate(path, content, overwrite=overwrite)
        elif overwrite:
            export.remove_certificate(path)

    @property
    def certificate(self) -> dict[str, object]:
        """What a certificate of this release says; ParameterError where it cannot have one."""
        if self.seeded:
            raise ParameterError("a release of seeded randomness has no certificate: it protects nobody")
        export.call(self.made_by)
        columns = [name for name, _, _ in self.columns]
        return {**self.header, "version": _core.__version__, "columns": columns, "digest": self.digest}

    @property
    def digest(self) -> str:
        """The SHA-256 of the rows as CSV, whichever format they are written in."""
        return export.digest(self.columns)

    @property
    def header(self) -> dict[str, object]:
        """What a file of this release says of itself."""
        return {
            "made_by": self.made_by,
            "guarantee": self.promise,
            "rho": self.guarantee.rho,
            "delta": self.guarantee.delta,
            "unit": self.guarantee.unit,
            "neighbours": self.guarantee.neighbours,
            **dict(zip(("epsilon", "total_delta"), self.guarantee.dp or (), strict=False)),
            "seeded": self.seeded,
            "clipped": self.clipped,
            **({} if self.round is None else {"round": self.round}),
        }

    def plot(self, *, top: int = 30) -> Any:
        """Draws the `top` largest counts with bars of two sigma; returns matplotlib Axes (needs matplotlib).

        Raises ParameterError for a release without counts.
        """
        if self.counts is None or self.sigmas is None:
            raise ParameterError("this release has no counts to draw: draw one of dp.count")
        return plot.bars(self.items[:top], self.counts[:top], self.sigmas[:top], title=self.promise)
