"""`Rows`: the part of a `Release` that is a table, with rows by place and by item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import total_ordering
from itertools import repeat
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, cast

import numpy as np

from discreet import _core
from discreet.engines.sql import ArrowColumns
from discreet.engines.typed_arrays import Foreign
from discreet.errors import ParameterError, needs
from discreet.privacy.validation import require_number, require_whole
from discreet.release import export
from discreet.release.export import ItemType

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from numpy.typing import NDArray

    from discreet.release.aggregates import Aggregate
    from discreet.release.facts import Kind, Summed

__all__ = ["METHODS", "NUMBERS", "Row", "Rows", "series"]

NUMBERS = ("count", "sigma")
"""The names of the columns of counts and of the standard deviations of their noise."""
METHODS = ("confirmed", "estimated")
"""The methods by which the counts of one release were found."""
_LONGEST = 60
"""The most characters of a label in an error text, in a repr and in a notebook."""


@total_ordering
class Row:
    """A pair of item and noisy count, which also has the `sigma` of the count, and its `method` if there are several.

    The values of all further columns of the release are items by their name: `row["price_mean"]`.

    It unpacks, compares and hashes like a tuple of two. It is no tuple, because pandas takes the columns of a frame
    from tuples cell by cell, without sigma. From an object that is a sequence with `_fields` and a mapping, pandas
    takes named columns: so `pandas.DataFrame(release)` has the columns of `Release.columns`.
    """

    __slots__ = ("_more", "_names", "_numbers", "count", "item", "method", "sigma")

    def __init__(
        self,
        item: Any,
        count: float,
        sigma: float,
        method: str | None = None,
        more: Mapping[str, object] | None = None,
        names: tuple[str, ...] = ("item",),
        numbers: tuple[str, str] = NUMBERS,
    ) -> None:
        self.item = item
        self.count = count
        self.sigma = sigma
        self.method = method
        self._more = more or {}
        self._names = names
        self._numbers = numbers

    @property
    def _fields(self) -> tuple[str, ...]:
        return (*self._names, *self._numbers, *(() if self.method is None else ("method",)), *self._more)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the values: the columns of the item, count, sigma, and method if there are several."""
        return self._fields

    def __iter__(self) -> Iterator[Any]:
        return iter((self.item, self.count))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, key: str | SupportsIndex | slice) -> Any:
        if not isinstance(key, str):
            return (self.item, self.count)[key]
        if key in self._names:
            return self.item if len(self._names) == 1 else self.item[self._names.index(key)]
        if key in self._numbers:
            return (self.count, self.sigma)[self._numbers.index(key)]
        if key != "item" and key not in self._fields:
            raise KeyError(key)
        return self._more[key] if key in self._more else getattr(self, key)

    def __eq__(self, other: object) -> bool:
        return (self.item, self.count) == (tuple(other) if isinstance(other, Row) else other)

    def __lt__(self, other: Row | tuple[object, ...]) -> bool:
        return (self.item, self.count) < tuple(other)

    def __hash__(self) -> int:
        return hash((self.item, self.count))

    def __repr__(self) -> str:
        return repr((self.item, self.count))


Sequence.register(Row)
Mapping.register(Row)


class _Lazy:
    """The labels of a release whose list of items has not been made, and the row of each item."""

    __slots__ = ("_labels", "_places")

    _labels: _core.Labels | None
    _places: dict[object, int] | None


class Rows(_Lazy):
    """Published rows as a table: access by item and by place, iteration, and conversion to frames."""

    __slots__ = ()

    if TYPE_CHECKING:
        items: list[Any]
        counts: export.Numbers | None
        sigmas: NDArray[np.float64] | None
        summed: Summed | None
        confirmed: NDArray[np.bool_] | None
        kind: Kind
        ranked: bool
        ranks: NDArray[np.int64] | None
        item_type: ItemType
        aggregates: tuple[Aggregate, ...]

        def _part(self, rows: NDArray[np.int64]) -> Self: ...
    else:

        def __getattr__(self, name: str) -> object:
            """Make the list of items, which has no value before it is first read."""
            if name in ("_labels", "_places"):
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
        """Iterate over pairs of item and noisy count (`Row`), or over items if there are no counts."""
        if self.counts is None or self.sigmas is None:
            return iter(self.items)
        names = self.item_names
        methods = self.methods or repeat(None, len(self))
        further = {name: cells.tolist() for one in self.aggregates for name, cells, _ in one.columns}  # type: ignore[union-attr]
        more = (dict(zip(further, cells, strict=True)) for cells in zip(*further.values(), strict=True))
        others = more if further else repeat(None, len(self))
        rows = zip(self.items, self.counts.tolist(), self.sigmas.tolist(), methods, others, strict=True)
        return (Row(*row, names=names, numbers=self.number_names) for row in rows)

    def __len__(self) -> int:
        given = self._given
        return given.items() if isinstance(given, _core.Labels) else len(given)

    def __contains__(self, item: object) -> bool:
        """Return whether the item was released."""
        return item in self._rows_by_item

    def __getitem__(self, key: object) -> Any:
        """Return the noisy count of an item, its rank in a ranked list, or the rows of a slice as a release.

        Raises:
            KeyError: The item was not released.
            ParameterError: The release has neither counts nor ranks.
        """
        if isinstance(key, slice):
            return self._part(np.arange(len(self))[key])
        row = self._rows_by_item.get(key)
        if row is None:
            raise KeyError(self._absent(key))
        return self._values[row].item()

    def _absent(self, key: object) -> str:
        label = export.shortened(key, _LONGEST)
        kind = export.kind_of(self.item_type)
        if isinstance(key, int) and kind in ("string", "binary"):
            return f"{label} is not an item: the items are {kind}; for rows by place use a slice such as [0:1]"
        if len(self.item_names) > 1 and not isinstance(key, tuple):
            return (
                f"{label} is not an item: the items are tuples of {', '.join(map(export.plain_text, self.item_names))}"
            )
        return f"{label} was not released: the data does not have it, or too few users have it to name it"

    def head(self, n: int = 10) -> Self:
        """Return the first rows as a release with the same guarantee.

        Args:
            n: The most rows.

        Returns:
            A Release of at most `n` rows.

        Raises:
            ParameterError: `n` is not a whole number from 0.
        """
        return self[: require_whole("n", n, 0)]  # type: ignore[no-any-return]

    def within(self, relative_error: float) -> Self:
        """Return the rows whose sigma is at most this share of the count, as a release with the same guarantee.

        Of sums, also negative ones, it is a share of their size. A part of a release costs no budget. About two
        thirds of the counts are within one sigma of the truth.

        Args:
            relative_error: The largest sigma, as a share of the count: above 0 and at most 1,000,000.

        Returns:
            A Release.

        Raises:
            ParameterError: The release has no counts, or the number is out of range.

        Example:
            >>> import discreet as dp
            >>> log = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000}
            >>> release = dp.count(log, user="user", item="page", rho=1, delta=1e-6)
            >>> len(release.within(0.3)), len(release.within(1e-9))
            (2, 0)
        """
        largest = require_number("relative_error", relative_error, 0, 1_000_000)
        if self.counts is None or self.sigmas is None:
            raise ParameterError("this release has no counts to select by their error; release counts, with dp.count")
        sizes = np.abs(self.counts) if self.kind == "sums" else self.counts  # no true count is negative
        return self._part(np.flatnonzero(self.sigmas <= largest * sizes))

    def to_dict(self) -> dict[Any, float]:
        """Return the noisy count of each item, or the rank of each item of a ranked list.

        Returns:
            A dict in the order of the rows.

        Raises:
            ParameterError: The release has neither counts nor ranks.
        """
        return dict(zip(self.items, self._values.tolist(), strict=True))

    @property
    def _values(self) -> export.Numbers:
        """The counts, or the ranks if there are no counts."""
        if self.counts is not None:
            return self.counts
        if not self.ranked:
            raise ParameterError("this release has items alone, without counts or ranks; use `in`, or read items")
        return self._rank

    @property
    def _rank(self) -> NDArray[np.int64]:
        return np.arange(1, len(self) + 1) if self.ranks is None else self.ranks

    @property
    def _rows_by_item(self) -> dict[Any, int]:
        if (places := self._places) is None:
            places = dict(zip(self.items, range(len(self)), strict=True))
            object.__setattr__(self, "_places", places)
        return places

    @property
    def columns(self) -> list[export.Column]:
        """The name, values and Arrow type of each published column."""
        return [*self._item_columns(self.items), *self._columns[len(self.item_names) :]]

    @property
    def item_names(self) -> tuple[str, ...]:
        """The names of the columns of items; "item" if the release does not know the column."""
        return ("item",) if isinstance(self.item_type, str) else tuple(name for name, _ in self.item_type)

    @property
    def number_names(self) -> tuple[str, str]:
        """The names of the columns of counts and of their sigmas: of sums the name of their column, as in price_sum."""
        return NUMBERS if self.summed is None else self.summed.columns

    def _item_columns(self, given: list[Any] | _core.Labels) -> list[export.Column]:
        """Return the columns of items, as labels if `given` is labels."""
        return export.item_columns(given, self.item_type)

    @property
    def _columns(self) -> list[export.Column]:
        """The columns, with items as labels if their list has not been made."""
        columns = self._item_columns(self._given)
        if self.ranked:
            columns.append(("rank", self._rank, "int64"))
        if self.counts is not None:
            columns.append((self.number_names[0], self.counts, self.counts.dtype.name))
        if self.sigmas is not None:
            columns.append((self.number_names[1], self.sigmas, "float64"))
        if self.confirmed is not None:
            columns.append(("method", self.methods, "string"))
        return [*columns, *(column for one in self.aggregates for column in one.columns)]

    @property
    def methods(self) -> list[str]:
        """How each count was found: "confirmed", by noise on itself, or "estimated"; empty for a release of one method.

        Public items are "confirmed" even if nobody has them.
        """
        if self.confirmed is None:
            return []
        return [METHODS[0] if confirmed else METHODS[1] for confirmed in self.confirmed.tolist()]

    def _shown(self, number: int) -> list[list[str]]:
        """Return the cells of the first rows as text."""
        first = np.arange(min(len(self), number))
        columns = [
            [
                f"{value:{'.1f' if name == 'sigma' else '.6g' if name.endswith('_sigma') else '.12g'}}"
                if kind == "float64"
                else export.shortened(value, _LONGEST)
                for value in (values.take(first) if isinstance(values, _core.Labels) else values[:number])
            ]
            for name, values, kind in self._columns
        ]
        return [list(cells) for cells in zip(*columns, strict=True)]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream of new buffers, with the columns of `columns`."""
        return _core.arrow_stream(self._columns)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """Return the rows in the interchange protocol of frames, for plotting libraries (needs pyarrow)."""
        return self.to_arrow().__dataframe__(nan_as_null=nan_as_null, allow_copy=allow_copy)

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
        return pandas.DataFrame({name: series(pandas, values, kind) for name, values, kind in self._columns})


def series(pandas: ModuleType, values: export.Values, kind: str) -> Foreign:
    """Return a column as a pandas.Series. Its dtype is explicit, so that a column without rows has it too."""
    if kind == "bool" or kind == "date" or kind.startswith("timestamp"):
        texts = values.to_list() if isinstance(values, _core.Labels) else list(cast("list[str]", values))
        if kind == "bool":
            return pandas.Series([text == "true" for text in texts], dtype="bool")
        unit = "s" if kind == "date" else "ns" if "[ns" in kind else "us"
        times = pandas.Series(np.array([text.removesuffix("Z") for text in texts], f"datetime64[{unit}]"))
        return times.dt.tz_localize("UTC") if kind.endswith("UTC]") else times
    dtype = {"string": "str", "binary": "object"}.get(kind, kind)
    if kind == "string" and getattr(pandas.api.types.pandas_dtype(dtype), "storage", "") == "pyarrow":
        # pandas 3 keeps text in Arrow arrays if pyarrow is installed. From Python's strings it takes ten times as long.
        import pyarrow

        array = pyarrow.table(ArrowColumns([("", values, kind)])).column(0)
        return pandas.Series(pandas.api.types.pandas_dtype(dtype).__from_arrow__(array))
    if isinstance(values, _core.Labels):
        values = values.to_list() if (integers := values.integers()) is None else integers
    return pandas.Series(values, dtype=dtype)
