"""Tables in memory, of any library: their column names, and two columns as an Arrow stream or as arrays."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from discreet import _core
from discreet.engines import files
from discreet.engines.batches import ArrowStream, SmallBatches, without_long_labels
from discreet.engines.cells import kind_of_most
from discreet.engines.columns import (
    column_of_kind,
    library,
    list_of,
    plain_column,
    pyarrow_if_installed,
    require_column,
    typed_cells,
    typed_table,
    without_masked,
    without_objects,
)
from discreet.engines.pandas_columns import as_arrow, is_untyped
from discreet.engines.projection import Names, Period, columns_of
from discreet.engines.sql import require_whole_csv
from discreet.engines.typed_arrays import Foreign
from discreet.engines.validated import scanned, validated
from discreet.engines.values import of_duckdb, of_pandas, plain_values, typed_values
from discreet.errors import DiscreetError, InputError, ParameterError, SchemaError, raise_alone

if TYPE_CHECKING:
    import duckdb
    import pandas
    import pyarrow

__all__ = [
    "frame",
    "is_read_once",
    "is_value",
    "kinds_of_lists",
    "library",
    "names",
    "pair_columns",
    "plain_column",
    "require_times",
    "require_types",
    "selected",
    "without_rows",
]


_TABLES = 1000
"""The most entries of a list that are checked for readers. A list may be a column of millions of cells."""
_LEVELS = "; columns have several levels: flatten them first, by frame.columns = map('_'.join, frame.columns)"
_UNREADABLE = frozenset({"BIT", "BIGNUM", "TIME WITH TIME ZONE"})
"""The types that DuckDB exports as its own bytes, or not at all."""
_FRAMES = frozenset({"DataFrame", "LazyFrame"})
"""The classes of tables in pandas and polars. Other objects of these libraries are columns or unfinished queries."""


def kinds_of_lists(tables: Iterable[Mapping[str, Foreign]], columns: Sequence[str]) -> dict[str, str]:
    """Return the kinds of columns that are lists, each of most cells in all tables: they are one column together."""
    lists: dict[str, list[Sequence[object]]] = {}
    for table in tables:
        for name in columns:
            if name in table and not is_value(table[name]):
                cells = list_of(table[name], f"column {name!r}")
                lists.setdefault(name, []).extend([] if cells is None else [cells])
    return {name: kind_of_most(cells) for name, cells in lists.items()}


def is_read_once(data: object) -> bool:
    """Return whether a table, or one in a list, can be read only once: a reader, or one with a column that is read so.

    The cells of a column are no tables: one may be any object.
    """
    tables = data[:_TABLES] if isinstance(data, list | tuple) else [data]
    columns = [table.values() for table in tables if isinstance(table, dict)]
    return any(
        type(given).__name__ in ("RecordBatchReader", "CsvInput") or hasattr(given, "__next__")
        for given in chain(tables, *columns)
    )


def selected(data: Foreign, columns: list[str], value: str | None = None) -> object:
    """Return these columns of a frame, of which `value` holds numbers, if it is given.

    Libraries whose columns are not known before reading return the frame unchanged.
    """
    kind = library(data)
    if kind in ("pandas", "polars") and _FRAMES.isdisjoint(base.__name__ for base in type(data).__mro__):
        raise _no_table(data)
    if kind == "polars":
        from polars.selectors import by_name as named  # a plain name such as ^user.*$ would be a pattern
    if kind == "polars" and hasattr(data, "collect"):
        files.require_columns(data.collect_schema().names(), columns)
        data = data.select(named(columns)).collect()
    if (known := names(data)) is not None:
        files.require_columns(known, columns, instead=_remedy(data, {*columns} - {*known}) if kind == "pandas" else "")
    if kind == "polars":
        return without_objects(data.select(named(columns)))
    if kind == "duckdb":
        require_whole_csv(data)
        _require_readable(data, [name for name in columns if name != value])
        found = without_long_labels(data, columns)
        return found if value is None else of_duckdb(found, value)
    if kind == "pyarrow":
        return _validated(data, columns)
    if kind != "pandas":
        return data
    labels = [name for name in columns if name != value]
    return _of_pandas(data[columns] if value is None else of_pandas(data[columns], value), labels)


def _validated(data: object, columns: list[str]) -> object:
    """Return these columns of a pyarrow object, validated if it is a table or a reader."""
    if hasattr(data, "scanner"):
        return scanned(data, columns)
    if hasattr(data, "select"):
        data = data.select(columns)
    is_table = hasattr(data, "read_next_batch") or hasattr(data, "validate")
    return validated(data) if is_table and hasattr(data, "schema") else data


def _of_pandas(data: pandas.DataFrame, labels: list[str]) -> pyarrow.Table | pandas.DataFrame:
    """Return a pandas frame as a pyarrow table, or the frame itself if pyarrow is not installed."""
    try:
        return validated(as_arrow(data, labels))
    except ImportError:
        return data


def frame(
    data: object, columns: list[str], value: str | None = None, kinds: Mapping[str, str] = MappingProxyType({})
) -> object:
    """Return columns of a table in memory, as an Arrow stream or a dict of arrays. The column `value` holds numbers.

    A list is read as a column of a kind in `kinds`, or of the kind of most of its cells.
    """

    def arrays(table: Foreign) -> dict[str, Foreign]:
        return without_masked(
            {
                name: plain_values(name, table[name]) if name == value else typed_cells(table[name], f"column {name!r}")
                for name in columns
            }
        )

    if isinstance(data, dict):
        files.require_columns(data, columns)
        for name in columns:
            if is_value(data[name]):
                raise ParameterError(
                    f"column {name!r} is one value; give a list or an array for each column, not a dict for each row"
                )
        labels = [name for name in columns if name != value]
        lists = {name: cells for name in labels if (cells := list_of(data[name], f"column {name!r}")) is not None}
        known = {name: kinds.get(name) or kind_of_most([cells]) for name, cells in lists.items()}
        data = data | {name: column_of_kind(cells, name, known[name]) for name, cells in lists.items()}
        typed = typed_table({name: data[name] for name in columns}, labels, typed_values, known)
        if typed is None:
            return arrays(data)
        data = typed
    table = selected(data, columns, value)
    if _is_pandas(table):
        return arrays(table)
    if hasattr(table, "__arrow_c_stream__"):
        return SmallBatches(table).__arrow_c_stream__()
    raise _no_table(table)


def is_value(column: object) -> bool:
    """Return whether what stands for a column is one value."""
    return isinstance(column, str | bytes | numbers.Number)


def _is_pandas(table: object) -> TypeGuard[pandas.DataFrame]:
    return library(table) == "pandas"


def _no_table(data: object) -> ParameterError:
    text = (
        "data must be a path, a frame or relation with __arrow_c_stream__, a dict of arrays, or a list of these, "
        f"not {type(data).__name__}"
    )
    if isinstance(data, list | tuple | set | frozenset) or hasattr(data, "__next__"):
        text += '; of pairs make a dict: users, items = zip(*pairs), then {"user": users, "item": items}'
    made = next((name for name in ("compute", "to_pandas", "to_arrow") if hasattr(type(data), name)), None)
    if made is not None:  # frames of dask, Modin and cuDF
        text += f"; give what its method {made}() returns"
    return ParameterError(text)


def _require_readable(data: duckdb.DuckDBPyRelation, columns: list[str]) -> None:
    """Raise SchemaError for columns that DuckDB cannot export."""
    for name, kind in zip(data.columns, data.types, strict=True):
        if name in columns and str(kind) in _UNREADABLE:
            raise SchemaError(f"column {name!r} has the type {kind}; cast it to text or to integers")


def _remedy(data: pandas.DataFrame, missing: set[str]) -> str:
    """Return how to make missing columns of pandas available, if they are in the index or in a MultiIndex."""
    if missing & {*data.index.names}:
        return "; it is in the index: reset_index() first"
    return _LEVELS if data.columns.nlevels > 1 else ""


def require_types(
    table: dict[str, Foreign], user: Names, item: Names, period: Period | None = None, value: str | None = None
) -> None:
    """Raise the SchemaError of a frame for arrays of a dict of types that users, items, times or values cannot have.

    Cells do not decide it, because all of them may be missing. Arrays without a type have none to refuse.
    """
    users = [user] if isinstance(user, str) else user
    for name in [*columns_of(user, item, period), *([] if value is None else [value])]:
        others = f"{name}.", f"{name}.."
        empty = without_rows(table[name], name, others) if name in table else None
        if empty is None:
            continue
        if name == value:
            _core.count_distinct(empty, *others, value=name, threads=1)
        elif period is not None and name == period.column:
            _core.count_distinct(empty, *others, times=(name, "1d", None, None, None), threads=1)
        else:
            _core.count_distinct(empty, *((name, others[0]) if name in users else (others[0], name)), threads=1)


def require_times(tables: Iterable[Foreign], name: str) -> None:
    """Raise SchemaError for a column of times that is one of periods of pandas, whose text is no time."""
    for table in tables:
        known = table if isinstance(table, dict) else names(table) or () if library(table) == "pandas" else ()
        if name in known and type(getattr(table[name], "dtype", None)).__name__ == "PeriodDtype":
            raise SchemaError(
                f"column {name!r} holds periods, which are no times; make them the times of their beginnings, by "
                f"frame[{name!r}].dt.to_timestamp()"
            )


def without_rows(column: Foreign, name: str, others: Sequence[str] = ()) -> ArrowStream | None:
    """Return an Arrow table without rows, with a typed array as a column and `others` of integers.

    Returns None for lists, and for columns of pandas whose type is one of numpy or is open: `label_cells` reads these.
    """
    kind = library(column)
    require_column(column, f"column {name!r}")
    if kind not in ("pandas", "polars", "pyarrow"):
        return None
    if kind == "polars":
        import polars

        empty = column[:0].alias(name).to_frame()
        return without_objects(empty.with_columns(polars.lit(0).alias(other) for other in others))
    if kind == "pandas" and (isinstance(column.dtype, np.dtype) or is_untyped(column.dtype)):
        return None
    if (pyarrow := pyarrow_if_installed()) is None:
        return None
    if kind == "pandas":
        import pandas

        try:
            column = as_arrow(pandas.Series(column[:0]).rename(name).to_frame(), []).column(0)
        except pyarrow.ArrowException:
            return None
    cells = [column[:0], *(pyarrow.array([], pyarrow.int64()) for _ in others)]
    return pyarrow.table(cells, [name, *others])  # type: ignore[no-any-return]


def pair_columns(users: Foreign, items: Foreign) -> object:
    """Return arrays of users and items as a table that `_core` takes, with the columns "users" and "items"."""
    table = {"users": users, "items": items}
    require_types(table, "users", "items")
    try:
        return frame(table, ["users", "items"])
    except (DiscreetError, MemoryError):
        raise
    except Exception:  # of other libraries, whose texts may quote cells
        raise_alone(InputError("cannot read the arrays; check them and their source"))


def names(data: object) -> list[str] | None:
    """Return the column names of a frame, or None if they are unknown."""
    # A pandas frame may have a column named "column_names", and `columns` of pyarrow are arrays instead of names.
    found = None if library(data) == "pandas" else getattr(data, "column_names", None)
    found = getattr(data, "columns", None) if found is None else found
    if found is None:
        found = getattr(getattr(data, "schema", None), "names", None)
    return found if found is None else [name for name in found if isinstance(name, str)]
