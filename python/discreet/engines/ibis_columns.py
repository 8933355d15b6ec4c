"""Columns of an Ibis table as users, items and values: their types, their text and their lengths, as SQL."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from discreet import _core
from discreet.engines import files
from discreet.engines.engine import PART, ItemFields, require_no_period, tag
from discreet.engines.projection import Names, columns_of
from discreet.engines.table import Table as GivenTable
from discreet.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibis.backends import BaseBackend
    from ibis.expr.types import StringValue, Table, Value

__all__ = ["HERE", "between", "builtin", "kind_of", "pairs_of", "quotient", "well_typed"]

_BINARY_TEXT = {"bigquery", "clickhouse", "databricks", "datafusion", "duckdb", "polars", "pyspark", "sqlite"}
"""Backends that compare text by its bytes, except for columns with a declared collation (see `_without_collation`)."""
HERE = (
    "give the rows themselves: table.select(...).distinct().to_pyarrow_batches() to count on this machine, or "
    "table.to_pyarrow() for a sum"
)


def pairs_of(table: GivenTable, resolution: float = 1.0) -> tuple[Table, str | ItemFields, BaseBackend]:
    """Return users and items without NULL, mistyped or too long cells, the type of the items, and the backend.

    If the table has a column of values, also return the values in whole steps of the resolution, as high * PART**2 +
    middle * PART + low, and leave out rows without a value.
    """
    import ibis

    require_no_period(table.period)
    source = table.data
    if not isinstance(source, ibis.Table):
        raise ParameterError("data of Ibis must be a table, not a column or a scalar; give the table")
    backend = ibis.get_backend(source)
    columns = columns_of(table.user, table.item)
    value = table.value if table.valued else None
    files.require_columns(source.columns, columns if value is None else [*columns, value])
    kinds = {name: kind_of(source[name], name) for name in columns}
    is_joined = len(columns) > 2 or "bool" in kinds.values()
    if backend.name not in _BINARY_TEXT and (is_joined or "string" in kinds.values()):
        raise ParameterError(f"{backend.name} may compare different texts as equal; {HERE}")
    _require_plain_text(backend, is_text=is_joined or "string" in kinds.values())
    aliases = {name: f"c{place}" for place, name in enumerate(columns)}
    units = {} if value is None else _steps(source[value], value, resolution, backend)
    cells = source.select(**{alias: source[name] for name, alias in aliases.items()}, **units).drop_null()
    if backend.name == "sqlite":
        cells = well_typed(cells, {alias: kinds[name] for name, alias in aliases.items()})
    # One filter for all columns: each filter nests a query, and SQLite refuses deep nesting.
    of_bytes = [alias for name, alias in aliases.items() if kinds[name] in ("string", "binary")]
    cells = _all_short(cells, of_bytes, backend)
    texts = [alias for name, alias in aliases.items() if kinds[name] == "string"]
    cells = cells.mutate(**{alias: _without_collation(cells[alias], backend) for alias in texts})

    def joined(given: Names) -> tuple[Value, str | ItemFields]:
        names = [given] if isinstance(given, str) else [*given]
        if len(names) == 1 and kinds[names[0]] != "bool":
            return cells[aliases[names[0]]], kinds[names[0]]
        fields = tuple((name if len(names) > 1 else "item", kinds[name]) for name in names)
        return _joined([cells[aliases[name]] for name in names], fields, backend), fields

    (users, of_users), (items, kind) = joined(table.user), joined(table.item)
    pairs = cells.select(*units, user=users, item=items)
    joint = [alias for alias, found in (("user", of_users), ("item", kind)) if not isinstance(found, str)]
    return _all_short(pairs, joint, backend), kind, backend


def _require_plain_text(backend: BaseBackend, *, is_text: bool) -> None:
    """Raise ParameterError if a database stores or compares text in another way than by its bytes in UTF-8."""
    if backend.name == "sqlite" and backend.con.execute("PRAGMA encoding").fetchall() != [("UTF-8",)]:
        raise ParameterError(f"this SQLite database stores text in UTF-16, which would be counted wrongly; {HERE}")
    if backend.name == "duckdb" and is_text:
        query = "SELECT current_setting('default_collation')"
        if backend.con.execute(query).fetchall()[0][0]:
            raise ParameterError(
                "the DuckDB connection has a default_collation, which compares different texts as equal: RESET "
                "default_collation, or give the data itself"
            )


def _all_short(table: Table, columns: list[str], backend: BaseBackend) -> Table:
    """Return the rows in which these columns, if any, are no longer than the longest label."""
    short = [_byte_length(table[name], backend) <= _core.LONGEST for name in columns]
    return table.filter(*short) if short else table


def quotient(number: Value, part: int) -> Value:
    """Return how often a part is in a number, exactly if this is less than 2^53 times."""
    return ((number - number % part) / part).cast("int64")


def _steps(cell: Value, name: str, resolution: float, backend: BaseBackend) -> dict[str, Value]:
    """Return the parts of a cell in whole steps, as `rust/columns/values.rs` rounds it; NULL if it is not finite.

    No step fails at a cell, in whatever order the backend takes the steps.
    """
    import ibis

    kind = cell.type()
    if not (kind.is_numeric() or kind.is_boolean()):
        raise SchemaError(f"column {name!r} has the type {kind}; cast it to numbers, text by try_cast to float64")
    if kind.is_decimal() and kind.precision is None and backend.name != "sqlite":
        raise SchemaError(
            f"column {name!r} has decimals of any size, and a cast of one could fail; clip it, and cast it to float64"
        )
    number = ibis.cases((cell, 1.0), (~cell, 0.0)) if kind.is_boolean() else cell.cast("float64")
    is_finite = number.abs() <= sys.float_info.max
    if backend.name == "sqlite":
        is_finite &= cell.typeof().isin(["integer"] if kind.is_boolean() else ["integer", "real"])
    if kind.is_integer() and resolution == 1 and backend.name != "sqlite":
        rest = cell % PART
        return {"high": rest.cast("int64") * 0, "middle": quotient(cell, PART), "low": rest.cast("int64")}
    # The parser of SQLite takes short expressions alone, so it cuts cells at 2^62 steps.
    is_short = backend.name == "sqlite"
    most = math.ldexp(resolution, 62 if is_short else 95)
    number = ibis.ifelse(is_finite, between(number, -most, most), ibis.null("float64")) / resolution
    size, sign = number.abs(), ibis.ifelse(number < 0, -1, 1)
    # Halves to even, by operations that are exact and that all backends do alike.
    if not is_short:
        high = (size / float(PART**2)).floor()
        size = size - high.cast("float64") * float(PART**2)
        middle = (size / PART).floor()
        size = size - middle.cast("float64") * float(PART)
    low = size.floor()
    rest = size - low.cast("float64")
    more = ibis.ifelse((rest > 0.5) | ((rest == 0.5) & (low % 2 == 1)), 1, 0)
    if is_short:
        whole = sign * (low + more)
        return {"high": whole * 0, "middle": quotient(whole, PART), "low": whole % PART}
    return {"high": sign * high, "middle": sign * middle, "low": sign * (low + more)}


def between(number: Value, low: float, high: float) -> Value:
    """Return a number clipped to bounds; it must not be NULL, which some backends would replace by a bound."""
    import ibis

    return ibis.greatest(ibis.least(number, high), low)


def _joined(cells: list[Value], fields: ItemFields, backend: BaseBackend) -> Value:
    """Return several columns as one label, as `rust/labels/composite.rs` encodes it."""
    import ibis

    label: Value = ibis.literal("")
    for cell, (name, kind) in zip(cells, fields, strict=True):
        if kind == "binary":
            raise ParameterError(f"an item of several columns cannot have the bytes of {name!r} here; {HERE}")
        text = ibis.ifelse(cell, "true", "false") if kind == "bool" else cell.cast("string")
        label = label + ibis.literal(tag(kind)) + _byte_length(text, backend).cast("string") + ibis.literal(":") + text
    return label


def _byte_length(cell: Value, backend: BaseBackend) -> Value:
    """Return the length in bytes of text or binary cells."""
    import ibis
    from ibis.expr import datatypes

    if backend.name == "polars":
        lengths: Callable[..., Value] = ibis.udf.scalar.pyarrow(_lengths, signature=((cell.type(),), datatypes.int64))
        return lengths(cell)
    if backend.name in ("duckdb", "sqlite") and cell.type().is_string():
        cell = builtin("encode", "string", "binary")(cell) if backend.name == "duckdb" else cell.cast("binary")
    name = {"bigquery": "byte_length", "clickhouse": "length", "sqlite": "length"}.get(backend.name, "octet_length")
    return builtin(name, str(cell.type()).removeprefix("!"), "int64")(cell)


def _lengths(cells: object) -> object:
    """Return the length in bytes of each cell, for polars, which passes cells as Arrow."""
    from pyarrow import compute

    return compute.binary_length(cells).cast("int64")


def builtin(name: str, given: str, made: str) -> Callable[[Value], Value]:
    """Return a built-in function of the backend."""
    import ibis
    from ibis.expr import datatypes

    signature = ((datatypes.dtype(given),), datatypes.dtype(made))
    function: Callable[[Value], Value] = ibis.udf.scalar.builtin(lambda cell: cell, name=name, signature=signature)
    return function


def _without_collation(text: StringValue, backend: BaseBackend) -> StringValue:
    """Return text of DuckDB and SQLite without the collation of its column, and text of other backends unchanged.

    A collation would count different items as one, and publish the spelling of one of the users.
    """
    if backend.name == "duckdb":
        return builtin("decode", "binary", "string")(builtin("encode", "string", "binary")(text))
    return text + "" if backend.name == "sqlite" else text


def well_typed(pairs: Table, kinds: dict[str, str], *, keeps_null: bool = False) -> Table:
    """Keep the rows whose cells have the type of their column, or are NULL with `keeps_null`.

    SQLite stores any value in any column, and text that is not UTF-8.
    """
    import ibis
    from ibis.expr import datatypes

    def is_utf8(raw: bytes) -> bool:
        try:
            raw.decode()
        except UnicodeDecodeError:
            return False
        return True

    valid = ibis.udf.scalar.python(is_utf8, signature=((datatypes.binary,), datatypes.boolean))
    storage = {"int64": "integer", "bool": "integer", "string": "text", "binary": "blob"}
    conditions = []
    for name, kind in kinds.items():
        cell = pairs[name]
        is_typed = cell.typeof() == storage[kind]
        if kind == "string":
            is_typed &= valid(cell.cast("binary"))
        conditions.append(cell.isnull() | is_typed if keeps_null else is_typed)
    return pairs.filter(*conditions)


def kind_of(column: Value, name: str) -> str:
    """Return the type of a column of labels; raise SchemaError for other types."""
    kind = column.type()
    if kind.is_integer():
        return "uint64" if kind.is_unsigned_integer() else "int64"
    if kind.is_string():
        return "string"
    if kind.is_binary():
        return "binary"
    if kind.is_boolean():
        return "bool"
    if kind.is_floating():
        raise SchemaError(
            f"column {name!r} has the type {kind}; floats are no labels, because equal numbers can differ in their "
            "last bits; round it, and cast it to text or to integers"
        )
    raise SchemaError(f"column {name!r} has the type {kind}; cast it to text or to integers")
