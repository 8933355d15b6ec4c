"""`Release`: published rows with the guarantee under which they were made. PUBLIC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from discreet import _core
from discreet.engines.sql import Columns
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

__all__ = ["ItemType", "Release", "changed", "later"]

_SHOWN = 10
ItemType: TypeAlias = "str | tuple[tuple[str, str], ...]"
"""The Arrow type of items, or the name and the type of each of their columns."""


def later(labels: _core.Labels) -> list[Any]:
    """Return labels as the argument `items` of a Release, which makes a list of them when somebody reads `items`.

    Nothing else may hold these labels, because the release publishes all of them.
    """
    return cast("list[Any]", labels)


def changed(release: Release, **changes: Any) -> Release:
    """Return a copy of a release with some fields replaced, without making the list of its items."""
    given = release._given  # noqa: SLF001 - of the class below
    return replace(release, **{"items": given, **changes})


class _Lazy:
    """The labels of a release whose list of items has not been made."""

    __slots__ = ("_labels",)

    _labels: _core.Labels | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release(_Lazy):
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
        item_type: The Arrow type of the items: string, binary, int64 or uint64. If items have several columns or other
            types, a tuple with the name and the type of each column. Items of several columns are tuples; dates, times
            and booleans are text here, and keep their type in Arrow, pandas, polars and Parquet.

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
    item_type: ItemType = field(default="string", repr=False)

    def __post_init__(self) -> None:
        given: object = self.items
        if isinstance(given, _core.Labels):
            object.__delattr__(self, "items")
            object.__setattr__(self, "_labels", given)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Make the list of items, which has no value before it is first read."""
            if name == "_labels":
                return None
            if name != "items":
                raise AttributeError(f"'Release' object has no attribute {name!r}")
            labels = self._labels
            if labels is not None:
                object.__setattr__(self, "items", labels.to_list())
                object.__setattr__(self, "_labels", None)
            return object.__getattribute__(self, "items")

    @property
    def _given(self) -> list[Any] | _core.Labels:
        """The list of items, or their labels if the list has not been made."""
        labels = self._labels
        return self.items if labels is None else labels

    def __iter__(self) -> Iterator[Any]:
        """Iterate over pairs of item and noisy count, or over items if there are no counts."""
        return iter(self.items) if self.counts is None else zip(self.items, self.counts.tolist(), strict=True)

    def __len__(self) -> int:
        given = self._given
        return given.items() if isinstance(given, _core.Labels) else len(given)

    @property
    def item_names(self) -> tuple[str, ...]:
        """The names of the columns of items: "item", or those of several columns."""
        return ("item",) if isinstance(self.item_type, str) else tuple(name for name, _ in self.item_type)

    @property
    def columns(self) -> list[export.Column]:
        """The name, values and Arrow type of each published column."""
        return [*self._item_columns(self.items), *self._columns[len(self.item_names) :]]

    def _item_columns(self, given: list[Any] | _core.Labels) -> list[export.Column]:
        """Return the columns of items, as labels if `given` is labels."""
        if isinstance(self.item_type, str):
            return [("item", given.columns()[0] if isinstance(given, _core.Labels) else given, self.item_type)]
        split: list[Any]
        if isinstance(given, _core.Labels):
            split = given.columns()
        elif len(self.item_type) == 1:
            split = [given]
        else:
            split = [[item[place] for item in given] for place in range(len(self.item_type))]
        return [(name, values, kind) for (name, kind), values in zip(self.item_type, split, strict=True)]

    @property
    def _columns(self) -> list[export.Column]:
        """The columns, with items as labels if their list has not been made."""
        columns = self._item_columns(self._given)
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
        # The column after the items, a count or a rank, is printed before them.
        end = len(self.item_names)
        lines += [f"{(cells[end:] or [''])[0]:>12}  {', '.join(cells[:end])}" for cells in self._shown()]
        if len(self) > _SHOWN:
            lines.append(f"{'...':>12}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        names = "".join(f"<th>{name}</th>" for name, _, _ in self._columns)
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in cells) for cells in self._shown())
        cells = "".join(f"<tr>{row}</tr>" for row in rows)
        more = f"<p>and {len(self) - _SHOWN} more</p>" if len(self) > _SHOWN else ""
        return f"<p><b>{self._size}</b>, {html.escape(self.promise)}</p><table><tr>{names}</tr>{cells}</table>{more}"

    @property
    def _size(self) -> str:
        return counted(len(self), "item")

    def _shown(self) -> list[list[str]]:
        """Return the cells of the first rows as text."""
        first = np.arange(min(len(self), _SHOWN))
        columns = [
            [
                f"{value:.1f}" if kind == "float64" else export.plain_text(value)
                for value in (values.take(first) if isinstance(values, _core.Labels) else values[:_SHOWN])
            ]
            for _, values, kind in self._columns
        ]
        return [list(cells) for cells in zip(*columns, strict=True)]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream of new buffers, with the columns of `columns`."""
        return _core.arrow_stream(self._columns)

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
        return pandas.DataFrame({name: _series(pandas, values, kind) for name, values, kind in self._columns})

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
        if require_flag("certificate", certificate):
            self._require_certifiable()
        export.require_room_for_certificate(path)
        if not require_flag("overwrite", overwrite):
            export.require_absent(path)
        # The digest of a CSV file is computed while it is written. Any other is computed before the file is replaced.
        digest = self.digest if certificate and not str(path).lower().endswith(".csv") else None
        written = export.write(path, self._columns, self.header, overwrite=overwrite)
        if certificate:
            export.write_certificate(path, self._certificate(digest or str(written)), overwrite=overwrite)
        elif overwrite:
            export.remove_certificate(path)

    @property
    def certificate(self) -> dict[str, object]:
        """The content of a certificate of this release; raises ParameterError if it cannot have one."""
        self._require_certifiable()
        return self._certificate(self.digest)

    def _require_certifiable(self) -> None:
        if self.seeded:
            raise ParameterError(
                "the randomness was seeded, so this release gives no privacy and no certificate; release without rng"
            )
        export.call(self.made_by)

    def _certificate(self, digest: str) -> dict[str, object]:
        columns = [name for name, _, _ in self._columns]
        return {**self.header, "version": _core.__version__, "columns": columns, "digest": digest}

    @property
    def digest(self) -> str:
        """The SHA-256 of the rows as CSV, independent of the format in which they are written."""
        return export.digest(self._columns)

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


def _series(pandas: Any, values: export.Values, kind: str) -> Any:
    """Return a column as a pandas.Series. Its dtype is explicit, so that a column without rows has it too."""
    if kind == "bool" or kind == "date" or kind.startswith("timestamp"):
        texts = values.to_list() if isinstance(values, _core.Labels) else list(cast("list[str]", values))
        if kind == "bool":
            return pandas.Series([text == "true" for text in texts], dtype="bool")
        unit = "s" if kind == "date" else "ns" if "[ns" in kind else "us"
        series = pandas.Series(np.array([text.removesuffix("Z") for text in texts], f"datetime64[{unit}]"))
        return series.dt.tz_localize("UTC") if kind.endswith("UTC]") else series
    dtype = {"string": "str", "binary": "object"}.get(kind, kind)
    if kind == "string" and getattr(pandas.api.types.pandas_dtype(dtype), "storage", "") == "pyarrow":
        # pandas 3 keeps text in Arrow arrays if pyarrow is installed. From Python's strings it takes ten times as long.
        import pyarrow

        array = pyarrow.table(Columns([("", values, kind)])).column(0)
        return pandas.Series(pandas.api.types.pandas_dtype(dtype).__from_arrow__(array))
    if isinstance(values, _core.Labels):
        values = values.to_list() if (integers := values.integers()) is None else integers
    return pandas.Series(values, dtype=dtype)
