"""`Release`: published rows with the guarantee under which they were made. PUBLIC."""

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
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["Release"]

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """Published rows: item `items[i]` has the noisy count `counts[i]`, with noise of standard deviation `sigmas[i]`.

    The rows are sorted by noisy count, then by item. Without counts, `counts` and `sigmas` are None, and the rows are
    sorted by rank (`ranked`) or by item. A release holds its rows: reading it again gives the same rows and costs no
    budget.

    Args:
        items: Labels, all of one type: str, int or bytes.
        counts: Noisy counts, as int64. They may differ from the true counts by a few sigma, and may be negative.
        sigmas: The standard deviation of the noise of each count.
        ranked: Whether the rows are ranks 1, 2, 3 and so on.
        guarantee: The guarantee, fixed before any data was read.
        spent: The privacy cost of the steps that the mechanism took; at most the guarantee.
        calls: The number of steps that draw an item, including steps that release none; 1 for other mechanisms.
        made_by: The mechanism and its parameters.
        stopped_early: Whether a truncated histogram ran out of rows before the budget was used.
        seeded: True if the randomness was seeded, so that the rows give no privacy.
        notes: Notes for the reader, from public parameters only.
        clipped: Whether at most a fixed number of items of each user counted. Counts may then be below the numbers of
            users.
        users: A noisy number of users who have any item, and the standard deviation of its noise; None if not measured.
        round: The round of a stream; None if the release is not from a stream.
        item_type: The Arrow type of the items: string, binary, int64 or uint64.

    Example:
        >>> import discreet as dp
        >>> histogram = dp.Histogram.from_counts(["a", "b"], [9000, 5000], l0=2, linf=1, complete=True)
        >>> release = dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=2).release(histogram)
        >>> release.items
        ['a', 'b']
        >>> len(release), len(release.counts), len(release.sigmas)
        (2, 2, 2)
    """

    items: list[Any]
    counts: NDArray[np.int64] | None = None
    sigmas: NDArray[np.float64] | None = None
    ranked: bool = False
    guarantee: Guarantee
    spent: Guarantee
    calls: int = 1
    made_by: str
    stopped_early: bool = False
    seeded: bool = False
    notes: tuple[str, ...] = ()
    clipped: bool = False
    users: tuple[int, float] | None = None
    round: int | None = None
    item_type: str = field(default="string", repr=False)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over pairs of item and noisy count, or over items if there are no counts."""
        return iter(self.items) if self.counts is None else zip(self.items, self.counts.tolist(), strict=True)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def columns(self) -> list[export.Column]:
        """The name, values and Arrow type of each published column."""
        columns: list[export.Column] = [("item", self.items, self.item_type)]
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
        # The second column, a count or a rank, is printed before the item.
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
        """Return the cells of the first rows as text."""
        columns = [
            [f"{value:.1f}" if kind == "float64" else export.plain_text(value) for value in values[:_SHOWN]]
            for _, values, kind in self.columns
        ]
        return [list(cells) for cells in zip(*columns, strict=True)]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream of new buffers, with the columns of `columns`."""
        return _core.arrow_stream(self.columns)

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as a pyarrow.Table (needs pyarrow)."""
        with needs("pyarrow"):
            import pyarrow
        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a polars.DataFrame (needs polars)."""
        with needs("polars"):
            import polars
        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas.DataFrame (needs pandas)."""
        with needs("pandas"):
            import pandas
        # The dtype is explicit, so that a column without rows has it too.
        kinds = {"string": "str", "binary": "object"}
        return pandas.DataFrame(
            {name: pandas.Series(values, dtype=kinds.get(kind, kind)) for name, values, kind in self.columns}
        )

    def write(self, path: str | os.PathLike[str], *, certificate: bool = False, overwrite: bool = True) -> None:
        """Write the rows to a file in the format of its suffix: .csv, .json, .jsonl or .parquet.

        Args:
            path: The file.
            certificate: Also write a certificate, a second file whose name adds .certificate.json. The certificate
                contains the mechanism and its parameters, the guarantee and the digest of the rows. `discreet verify`
                checks it against the rows. With False, an existing certificate of this path is removed, because it
                does not match these rows.
            overwrite: Whether existing files are replaced. With False, an error is raised if the file or its
                certificate exists, even if another program creates it at the same time.

        Raises:
            ParameterError: The suffix is another one, or a certificate is requested for a seeded release.
            InputError: A file cannot be written, exists despite `overwrite=False`, or another kind of file has the
                name of the certificate.
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
        """The content of a certificate of this release; raises ParameterError if it cannot have one."""
        if self.seeded:
            raise ParameterError(
                "the randomness was seeded, so this release gives no privacy and no certificate; release without rng"
            )
        export.call(self.made_by)
        columns = [name for name, _, _ in self.columns]
        return {**self.header, "version": _core.__version__, "columns": columns, "digest": self.digest}

    @property
    def digest(self) -> str:
        """The SHA-256 of the rows as CSV, independent of the format in which they are written."""
        return export.digest(self.columns)

    @property
    def header(self) -> dict[str, object]:
        """The metadata in a file of this release."""
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

    def plot(self, *, top: int = 30) -> Axes:
        """Plot the largest counts with error bars of two sigma (needs matplotlib).

        Args:
            top: The number of counts to draw.

        Returns:
            Matplotlib Axes.

        Raises:
            ParameterError: The release has no counts.
        """
        if self.counts is None or self.sigmas is None:
            raise ParameterError("this release has no counts to plot; plot a release of dp.count")
        return plot.bars(self.items[:top], self.counts[:top], self.sigmas[:top], title=self.promise)
