"""Sums over users of clipped values, rows of items, and what each user has: numbers of items, and a sum."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet import _core, engines
from discreet.engines import files
from discreet.engines.arrow_files import arrow_files
from discreet.engines.engine import MOST_STEPS, encoded
from discreet.engines.frames import library
from discreet.engines.local import listed_labels, read, scan
from discreet.engines.pairs import require_rows
from discreet.engines.projection import FINE, columns_of
from discreet.engines.table import Table
from discreet.engines.typed_arrays import Foreign
from discreet.engines.weighing import LocalLists
from discreet.errors import DiscreetError, ParameterError
from discreet.formats import CSV, JSON_LINES
from discreet.progress import shown_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from discreet.engines.engine import Counts, Items, Label, Progress

__all__ = ["clipped_sums", "items_per_user", "own_step", "rows_of_items", "summed_column", "sums_of_users"]

_Found = TypeVar("_Found")
_SUM = "a sum"
_FINEST = 12
"""The most decimal places of a step."""
_WHOLE = re.compile(r"!?(?:u?(?:tiny|small|big|huge)?int(?:eger)?\d*|bool(?:ean)?)(?:\[pyarrow\])?")
_DECIMAL = re.compile(r"!?decimal\d*\((?:precision=)?\d+, ?(?:scale=)?(-?\d+)\)(?:\[pyarrow\])?")
"""The names of types of integers, booleans and decimals in all libraries, in lower case."""


def clipped_sums(
    table: Table,
    *,
    items: Sequence[Label],
    bounds: tuple[int, int],
    resolution: float,
    shift: int = 0,
    l0: int | None = None,
) -> tuple[_core.Labels, NDArray[np.int64]]:
    """Return the items as labels of their columns, and for each the sum over users of their clipped sums.

    A user's clipped sum counts in whole parts of 2^shift steps of the resolution, rounded toward zero.

    Rows with a missing user or item, or with a value that is not a finite number, are dropped. Rows that do not fit
    into the table's memory spill to encrypted temporary files without a name.

    The bounds are those of one user's sum for an item, in steps. At most l0 of the items of a user count, chosen
    uniformly among `items`.

    Raises:
        SchemaError: A column is missing or of another type.
        ItemTypeError: The items are not of the type of the column of items.
        InputError: The data cannot be read.
        ParameterError: The table has no column to sum, or the engine of its rows does not support a parameter.
        ResourceError: The session of the rows has stopped.
    """
    value, listed = summed_column(table), listed_labels(tuple(items))
    assert listed is not None
    if (engine := engines.engine_of(table.data)) is not None:
        if max(map(abs, bounds)) > MOST_STEPS:
            raise ParameterError.about(
                "a cluster or a warehouse adds up at most 2^61 steps of {:g}: give narrower {bounds} or a "
                "larger {resolution}",
                resolution,
            )
        with shown_progress(table.progress) as tick:
            found = engine.clipped_sums(
                table, items=items, bounds=bounds, resolution=resolution, shift=shift, l0=l0, tick=tick
            )
        return _in_order(items, listed, found)

    def add(pairs: _core.Pairs, progress: Progress | None) -> Counts:
        most = max(1, len(items)) if l0 is None else l0
        labels, sums = pairs.measured(listed, most, [("sum", *bounds, 1, 1, shift)], progress=progress)
        return labels, sums[:, 0]

    return _swept(table, add, _SUM, items, value=value, resolution=resolution, valued=True)


def _in_order(items: Sequence[Label], listed: _core.Labels, found: Counts) -> Counts:
    """Return listed items as labels of their columns, and the sum of each, or zero if it was not found."""
    (labels, sums), fields = found, found[0].type_name
    places = _core.KnownLabels.from_sequence([*items]).split(labels, np.arange(1, len(sums) + 1))[1]
    known = listed if isinstance(fields, str) else _core.Labels.of_encoded(encoded(items, fields), fields)
    return known, np.append(sums, 0)[places - 1]


def summed_column(table: Table) -> str:
    """Return the name of the column to sum.

    Raises:
        ParameterError: There is none, it is a column of users, items or times too, or the table has no rows.
    """
    if isinstance(table.data, LocalLists):
        require_rows(table, f"{_SUM} needs")
    if table.value is None:
        raise ParameterError("a sum needs a column to sum: give value=, its name")
    used = columns_of(table.user, table.item, table.period)
    if table.value in used:
        raise ParameterError.about("{value} must be the name of another column than {user}, {item} and {time}")
    return table.value


def own_step(table: Table, column: str) -> float:
    """Return the step of a column: 1 for integers and booleans, the scale of decimals up to 12 places, else 2^-32.

    The schema alone decides it. Tables of several types have the finest step. An error is left to the reading.
    """
    tables = table.data if isinstance(table.data, list | tuple) else [table.data]
    return min((_step(kind) for one in tables for kind in _types(one, column)), default=FINE)


def _step(kind: object) -> float:
    # The values of a dictionary of Arrow, and the categories of pandas.
    kind = getattr(getattr(kind, "categories", None), "dtype", getattr(kind, "value_type", kind))
    # The text of a numpy type with the other order of bytes is no name.
    text = str(kind.name if isinstance(kind, np.dtype) else kind).lower()
    if _WHOLE.fullmatch(text):
        return 1.0
    scale = _DECIMAL.fullmatch(text)
    return FINE if scale is None else float(f"1e{max(-_FINEST, min(_FINEST, -int(scale[1])))}")


def _types(data: Foreign, column: str) -> list[object]:
    """Return the types of a column in the schema of each table, as texts or as objects whose text they are."""
    with suppress(DiscreetError, LookupError):
        if isinstance(data, str | os.PathLike):
            source = files.find([data])
            if source.form in (CSV, JSON_LINES):
                return [None]
            if source.form.dataset is not None:
                return [one.schema.field(column).type for one in arrow_files(source)]
            return [*scan(source, [column]).types]  # type: ignore[union-attr]
        kind = library(data)
        if isinstance(data, dict) or kind == "pandas":
            return [getattr(data[column], "dtype", getattr(data[column], "type", None))]
        if kind == "polars":
            return [data.collect_schema()[column]]
        if kind == "duckdb":
            return [dict(zip(data.columns, data.types, strict=True))[column]]
        if kind == "pyspark":
            return [data.schema[column].dataType.simpleString()]
        if kind == "ibis":
            return [data.schema()[column]]
        if kind == "pyarrow":
            return [data.schema.field(column).type]
    return [None]


def items_per_user(table: Table, items: Sequence[Label]) -> NDArray[np.int64]:
    """Return the number of distinct items in `items` of each user who has any of them, in any order of the users.

    Raises:
        ParameterError: The rows are not on this machine. The other errors are the same as in `clipped_sums`.
    """
    if isinstance(table.data, LocalLists):
        return table.data.sizes(items)
    return _swept(table, _core.Pairs.sizes, "a number of listed items", items)


def sums_of_users(table: Table, *, resolution: float, items: Sequence[Label] | None) -> NDArray[np.int64]:
    """Return for each user the absolute value of the sum of one of the user's items, chosen uniformly.

    Sums are whole steps of the resolution, in any order of the users. Rows without a finite value are dropped.

    Raises:
        ParameterError: The rows are not on this machine. The other errors are the same as in `clipped_sums`.
    """
    what, options = "a search for bounds of sums", {"resolution": resolution, "valued": True}
    return _swept(table, _core.Pairs.extents, what, items, value=summed_column(table), **options)


def rows_of_items(
    table: Table, *, l0: int | None, linf: int, only: Items | None
) -> tuple[_core.Labels, NDArray[np.int64]]:
    """Return all items, or those of `only`, and the rows of each: at most linf of a user, for at most l0 items of each.

    Raises:
        ParameterError: The rows are not on this machine. The other errors are those of `engines.histogram`.
    """

    def rows(pairs: _core.Pairs, progress: Progress | None) -> tuple[_core.Labels, NDArray[np.int64]]:
        most = l0 or 2**30
        labels, _ = pairs.counts(most, progress=progress)
        labels, found = pairs.measured(labels, most, [("rows", 0, 0, linf, 1, 0)], progress=progress)
        return labels, found[:, 0]

    what, value = "a linf above 1", table.value if table.valued else None
    return _swept(table, rows, what, only, value=value, valued=value is not None)


def _swept(
    table: Table,
    sweep: Callable[..., _Found],
    what: str,
    items: Items | None,
    *,
    value: str | None = None,
    **options: object,
) -> _Found:
    """Return what a sweep over the rows of all users finds."""
    require_rows(table, f"{what} needs")
    listed = listed_labels(items)

    def found(sources: list[object], room: int) -> _Found:
        own: dict[str, Any] = {"only": listed, "memory": room, "times": table.period, "progress": tick, **options}
        return sweep(_core.Pairs.read(sources, table.user, table.item, value=value, **own), progress=tick)

    with shown_progress(table.progress) as tick:
        return read(table, found, value=value, only=listed)
