"""The Spark engine: counts, weights and sums are pushed down to the cluster as SQL, and only results are fetched.

The executors run no code of this package and draw no noise. A cluster may rerun tasks, and a rerun must give the same
result. Spark's error texts are never passed on, because they quote cells.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.engines import files
from discreet.engines.cluster_jobs import awaited, translated_errors
from discreet.engines.engine import (
    PART,
    Counted,
    Counts,
    Fetched,
    ItemFields,
    Items,
    Label,
    Progress,
    Weighed,
    Weighting,
    counted_from,
    fetched_labels,
    listed,
    require_no_period,
    tag,
    tallied,
    with_weights,
)
from discreet.engines.entropy import fresh_key
from discreet.engines.projection import Names, columns_of
from discreet.engines.table import Table
from discreet.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

__all__ = ["clipped_sums", "histogram", "users_by_size", "weighed"]

_STEPS = ("high", "middle", "low")
"""The columns of a value in steps: multiples of PART**2, of PART, and the rest."""

_INT_LIMIT = 2**31 - 1
_PLAIN = ("int64", "string", "binary")
"""The types of labels of one column. Other types are encoded like several columns."""


def histogram(
    table: Table,
    *,
    l0: int | None = None,
    limit: int | None = None,
    cap: int | None = None,
    only: Items | None = None,
    users: bool = False,
    tick: Progress | None = None,
    without: Sequence[Label] = (),
) -> Counted:
    """Return the distinct users of each item of a DataFrame of PySpark 4, or of a classic one of 3.5; see `Engine`.

    Without a `limit` the driver fetches the counts of all items.
    """
    from pyspark.sql import Window, functions

    session = _session(table.data)
    with translated_errors(session):
        pairs, kind = _pairs(table)
        if only is not None:
            values = listed(only, kind)
            if not values:
                return Counted(fetched_labels([], kind), np.zeros(0, np.int64), 0 if users else None)
            pairs = pairs.join(_table_of(session, values, kind), "item", "left_semi")
        pairs = _without(pairs, without, kind).select("user", "item").distinct()
        if l0 is not None:
            pairs = _bounded(pairs, l0, table.secret)
        if users:
            # One query counts both: a second query might see a table with one more user.
            of_user = Window.partitionBy("user").orderBy("item")
            of_user = of_user.rowsBetween(
                Window.unboundedPreceding, Window.currentRow
            )  # Sail cannot order bytes by range
            first = functions.row_number().over(of_user) == 1
            pairs = pairs.withColumn("first", first.cast("long"))
            counts = pairs.groupBy("item").agg(functions.count("*").alias("n"), functions.sum("first").alias("first"))
            if limit is not None:  # all other rows are fetched, and their users added up here
                counts = counts.withColumn("users", functions.sum("first").over(Window.partitionBy(functions.lit(0))))
        else:
            counts = pairs.groupBy("item").agg(functions.count("*").alias("n"))
        if limit is not None:
            counts = counts.orderBy(functions.desc("n"), functions.asc("item")).limit(min(limit, _INT_LIMIT))
        return awaited(session, lambda: counted_from(_fetched(counts, kind), kind), tick)


def weighed(
    table: Table,
    *,
    weighting: Weighting,
    without: Sequence[Label],
    apart: Sequence[Label],
    tick: Progress | None,
    trial: bool = False,
) -> Weighed:
    """Return the weights of items of a DataFrame, and its users; see `Engine`. The driver fetches all weights."""
    session = _session(table.data)
    with translated_errors(session):
        sums, kind = _weighed(table, weighting, without, apart)
        return awaited(session, lambda: with_weights(_fetched(sums.limit(0) if trial else sums, kind), kind), tick)


def users_by_size(
    table: Table, *, most: int, without: Sequence[Label], apart: Sequence[Label], tick: Progress | None
) -> NDArray[np.int64]:
    """Return the number of users with each number of items of a DataFrame; see `Engine`."""
    from pyspark.sql import functions

    session = _session(table.data)
    with translated_errors(session):
        pairs, kind = _pairs(table)
        pairs = _apart(_without(pairs, without, kind), apart, kind)
        users = pairs.groupBy("user").agg(functions.sum("own").alias("own"))
        users = users.select(functions.least("own", functions.lit(most + 1)).alias("own"))
        counts = users.groupBy("own").agg(functions.count("*").alias("n"))
        return awaited(session, lambda: tallied(_fetched(counts), most), tick)


def _weighed(
    table: Table, weighting: Weighting, without: Sequence[Label], apart: Sequence[Label]
) -> tuple[DataFrame, str | ItemFields]:
    """Return a query of the weights of items, and the type of the items, as `_weighed` for Ibis does."""
    from pyspark.sql import Window, functions

    pairs, kind = _pairs(table)
    pairs = _apart(_without(pairs, without, kind), apart, kind)
    pairs = pairs.withColumn("size", functions.sum("own").over(Window.partitionBy("user")))
    # A hash of every row would take most of the time, and only users with more than l0 items need one.
    place = functions.when(functions.col("size") > weighting.l0, _place(pairs))
    rank = functions.row_number().over(Window.partitionBy("user").orderBy(functions.desc("own"), place))
    pairs = pairs.withColumn("rank", rank)
    shares = functions.split(functions.lit(",".join(map(str, [0, *weighting.shares]))), ",").cast("array<bigint>")
    share = functions.element_at(shares, (functions.least("size", functions.lit(weighting.l0)) + 1).cast("int"))
    weighs = (functions.col("own") == 1) & (functions.col("rank") <= weighting.l0)
    weight, first = functions.when(weighs, share).otherwise(0), (functions.col("rank") == 1).cast("bigint")
    pairs = pairs.select("item", weight.alias("weight"), first.alias("first"))
    sums = pairs.groupBy("item").agg(*(functions.sum(name).alias(name) for name in ("weight", "first")))
    return sums.filter("weight > 0 OR first > 0"), kind


def _without(pairs: DataFrame, without: Sequence[Label], kind: str | ItemFields) -> DataFrame:
    """Return the pairs without the rows of some items."""
    items = listed(without, kind) if without else []
    return pairs.join(_table_of(pairs.sparkSession, items, kind), "item", "left_anti") if items else pairs


def _apart(pairs: DataFrame, apart: Sequence[Label], kind: str | ItemFields) -> DataFrame:
    """Return the distinct pairs, with the number `own`: 0 for items that are set apart, and 1 for others."""
    from pyspark.sql import functions

    pairs = pairs.select("user", "item").distinct()
    if not apart:
        return pairs.withColumn("own", functions.lit(1))
    items = _table_of(pairs.sparkSession, listed(apart, kind), kind).withColumn("own", functions.lit(0))
    marked = pairs.join(functions.broadcast(items), "item", "left")
    return marked.withColumn("own", functions.coalesce("own", functions.lit(1)))


def clipped_sums(
    table: Table,
    *,
    items: Sequence[Label],
    bounds: tuple[int, int],
    resolution: float,
    shift: int,
    l0: int | None,
    tick: Progress | None,
) -> Counts:
    """Return the sum over users of their clipped sums for each of `items`; see `Engine`."""
    from pyspark.sql import functions

    session = _session(table.data)
    with translated_errors(session):
        rows, kind = _pairs(table.with_values(), resolution)
        values = listed(items, kind)
        if not values:
            return fetched_labels([], kind), np.zeros(0, np.int64)
        rows = rows.join(_table_of(session, values, kind), "item", "left_semi")
        pairs = rows.groupBy("user", "item").agg(*(functions.sum(name).alias(name) for name in _STEPS))
        high, middle, low = map(functions.col, _STEPS)
        middle, rest = middle + _quotient(low, PART), low % PART
        high = _between(high + _quotient(middle, PART), -(2**30), 2**30) * PART + middle % PART
        total = _between(_between(high, -(2**30), 2**30) * PART + rest, *bounds)
        total = functions.sign(total).cast("bigint") * _quotient(functions.abs(total), 2**shift)
        pairs = pairs.select("user", "item", total.alias("total"))
        if l0 is not None and l0 < len(items):
            pairs = _bounded(pairs, l0)
        sums = pairs.groupBy("item").agg(functions.sum("total").alias("n"))
        found, totals, _ = awaited(session, lambda: counted_from(_fetched(sums, kind), kind), tick)
        return found, totals


def _session(source: object) -> SparkSession:
    """Return the session of a DataFrame, or raise ParameterError if `source` is another object."""
    from pyspark.sql import DataFrame, functions

    if not hasattr(functions, "window_time"):
        raise ParameterError("this PySpark is too old; install a newer one: pip install 'pyspark>=3.5'")
    if not hasattr(DataFrame, "toArrow") and type(source).__module__ == "pyspark.sql.connect.dataframe":
        raise ParameterError(
            "Spark Connect needs PySpark 4: pip install 'pyspark[connect]>=4', or give a DataFrame of a classic session"
        )
    if not isinstance(source, DataFrame):
        raise ParameterError("data of PySpark must be a DataFrame; convert a pandas-on-Spark frame by .to_spark()")
    return source.sparkSession


def _pairs(table: Table, resolution: float = 1.0) -> tuple[DataFrame, str | ItemFields]:
    """Return users and items, as 64-bit integers or bytes, and the type of the items.

    Return the rows of a table that have a value, and the values in the parts `_STEPS` of whole steps of the resolution.

    Bytes have the order of `_core.top`. Columns are renamed by position, because Spark interprets dots and backticks in
    names and ignores their case.
    """
    require_no_period(table.period)
    source: DataFrame = table.data
    names, columns = source.columns, columns_of(table.user, table.item)
    value = table.value if table.valued else None
    files.require_columns(names, columns if value is None else [*columns, value])
    kinds = {name: _kind(source.schema.fields[names.index(name)].dataType, name) for name in columns}
    placed = source.toDF(*(f"c{place}" for place in range(len(names))))

    def joined(given: Names) -> tuple[Column, str | ItemFields]:
        parts = [given] if isinstance(given, str) else [*given]
        cells = [_cell(f"c{names.index(name)}", kinds[name]) for name in parts]
        if len(parts) == 1 and kinds[parts[0]] in _PLAIN:
            return cells[0], kinds[parts[0]]
        fields = tuple((name if len(parts) > 1 else "item", kinds[name]) for name in parts)
        return _joined(cells, fields), fields

    (users, _), (items, kind) = joined(table.user), joined(table.item)
    pairs = [users.alias("user"), items.alias("item")]
    if value is not None:
        place = names.index(value)
        parts = _steps(placed[f"c{place}"], source.schema.fields[place].dataType, value, resolution)
        pairs += [part.alias(name) for name, part in zip(_STEPS, parts, strict=True)]
    return placed.select(*pairs).dropna(), kind


def _quotient(number: Column, part: int) -> Column:
    """Return how often a part is in a number, exactly if this is less than 2^53 times."""
    return ((number - number % part) / part).cast("bigint")


def _steps(cell: Column, data_type: DataType, name: str, resolution: float) -> tuple[Column, Column, Column]:
    """Return the parts of a cell in whole steps, as `rust/columns/values.rs` rounds it; NULL if it is not finite.

    No step fails at a cell, in whatever order Spark takes the steps.
    """
    from pyspark.sql import functions, types

    if not isinstance(data_type, types.NumericType | types.BooleanType):
        raise SchemaError(
            f"column {name!r} has the type {data_type.simpleString()}; cast it to numbers, text by try_cast to double"
        )
    if isinstance(data_type, types.IntegralType) and resolution == 1:
        rest = (cell % PART).cast("bigint")  # Sail says that unsigned integers are signed, and cannot cast large ones
        return rest * 0, _quotient(cell, PART), rest
    number, most = cell.cast("double"), math.ldexp(resolution, 95)
    is_finite = functions.abs(number) <= sys.float_info.max  # NaN is above all numbers
    number = functions.when(is_finite, _between(number, -most, most)) / resolution
    size, sign = functions.abs(number), functions.when(number < 0, -1).otherwise(1)
    # Halves to even, by operations that are exact.
    high = functions.floor(size / float(PART**2))
    size = size - high * float(PART**2)
    middle = functions.floor(size / PART)
    size = size - middle * float(PART)
    low = functions.floor(size)
    rest = size - low
    is_more = (rest > 0.5) | ((rest == 0.5) & (low % 2 == 1))
    return sign * high, sign * middle, sign * (low + functions.when(is_more, 1).otherwise(0))


def _between(number: Column, low: float, high: float) -> Column:
    """Return a number clipped to bounds; it must not be NULL, which Spark would replace by a bound."""
    from pyspark.sql import functions

    return functions.greatest(functions.least(number, functions.lit(high)), functions.lit(low))


def _joined(cells: list[Column], fields: ItemFields) -> Column:
    """Return several columns as one label of bytes, as `rust/labels/composite.rs` encodes it."""
    from pyspark.sql import functions

    def text(value: str) -> Column:
        return functions.lit(value).cast("binary")

    parts = []
    for cell, (_, kind) in zip(cells, fields, strict=True):
        raw = cell.cast("string").cast("binary") if kind in ("int64", "bool", "date") else cell
        parts += [text(tag(kind)), functions.octet_length(raw).cast("string").cast("binary"), text(":"), raw]
    label = functions.concat(*parts)
    return functions.when(functions.octet_length(label) <= _core.LONGEST, label)


def _kind(data_type: DataType, name: str) -> str:
    from pyspark.sql import types

    if isinstance(data_type, types.IntegralType):
        return "int64"
    if isinstance(data_type, types.StringType | types.CharType | types.VarcharType):
        return "string"
    if isinstance(data_type, types.BinaryType):
        return "binary"
    if isinstance(data_type, types.BooleanType):
        return "bool"
    if isinstance(data_type, types.DateType):
        return "date"
    if isinstance(data_type, types.FloatType | types.DoubleType):
        raise SchemaError(
            f"column {name!r} has the type {data_type.simpleString()}; floats are no labels, because equal numbers can "
            "differ in their last bits; round it, and cast it to text or, by try_cast, to integers"
        )
    if isinstance(data_type, types.TimestampType | types.TimestampNTZType):
        raise SchemaError(f"column {name!r} has the type {data_type.simpleString()}; cast it to a date or to text")
    # In ANSI mode, Spark's default, a cast fails at a number that is too large.
    raise SchemaError(
        f"column {name!r} has the type {data_type.simpleString()}; cast it to text or, by try_cast, to integers"
    )


def _cell(name: str, kind: str) -> Column:
    from pyspark.sql import functions

    column = functions.col(name)
    if kind == "int64":
        # Sail says that unsigned integers are signed, and cannot cast large ones. PySpark 3.5 has no `try_cast`.
        return column.try_cast("bigint") if hasattr(type(column), "try_cast") else column.cast("bigint")
    if kind == "bool":
        return column
    if kind == "date":
        # Only these years have one form of text in all libraries.
        return functions.when(functions.year(column).between(1, 9999), column)
    is_short = functions.octet_length(column) <= _core.LONGEST
    if kind == "string":
        raw = column.cast("binary")
        if hasattr(functions, "is_valid_utf8"):
            return functions.when(functions.is_valid_utf8(column) & is_short, raw)
        # PySpark 3.5: decoding replaces what is not UTF-8.
        return functions.when((functions.encode(functions.decode(raw, "UTF-8"), "UTF-8") == raw) & is_short, raw)
    return functions.when(is_short, column)


def _table_of(session: SparkSession, values: Sequence[Label], kind: str | ItemFields) -> DataFrame:
    """Return values as a table that needs no Python on the executors: Spark splits one text."""
    from pyspark.sql import functions

    if kind == "int64":
        texts = [str(value) for value in values]
    else:
        texts = [(value if isinstance(value, bytes) else str(value).encode()).hex() for value in values]
    table = session.range(1).select(functions.explode(functions.split(functions.lit(",".join(texts)), ",")).alias("x"))
    cell = functions.col("x").cast("bigint") if kind == "int64" else functions.unhex("x")
    return table.select(cell.alias("item"))


def _bounded(pairs: DataFrame, l0: int, secret: bytes | None = None) -> DataFrame:
    """Keep at most l0 items of each user, the first ones in the order of `_place`."""
    from pyspark.sql import Window, functions

    rank = functions.row_number().over(Window.partitionBy("user").orderBy(_place(pairs, secret)))
    return pairs.withColumn("rank", rank).filter(functions.col("rank") <= min(l0, _INT_LIMIT))


def _place(pairs: DataFrame, secret: bytes | None = None) -> Column:
    """Return the SHA-256 of a new or secret key, the user and the item, with their lengths: the order of items."""
    from pyspark.sql import functions

    kinds = dict(pairs.dtypes)

    def framed(name: str) -> list[Column]:
        column = functions.col(name)
        cell = column if kinds[name] == "binary" else column.cast("string").cast("binary")
        return [text(f"{kinds[name]}:"), functions.length(cell).cast("string").cast("binary"), text(":"), cell]

    def text(value: str) -> Column:
        return functions.lit(value).cast("binary")

    return functions.sha2(
        functions.concat(text(secret.hex() if secret else fresh_key()), *framed("user"), *framed("item")), 256
    )


def _fetched(query: DataFrame, kind: str | ItemFields | None = None) -> dict[str, Fetched]:
    """Fetch the rows to the driver, as Arrow or row by row if pyarrow is not installed.

    With `kind` there is a column of items. Spark sends their text as bytes.
    """
    try:
        table = query.toArrow()
        columns = {name: table[name].to_pylist() for name in table.column_names}
    except (ImportError, AttributeError):  # without pyarrow, or of PySpark 3.5
        rows = query.collect()
        columns = {name: [row[name] for row in rows] for name in query.columns}
    if kind not in (None, "int64"):
        cells = map(bytes, columns["item"])
        columns["item"] = [cell.decode() for cell in cells] if kind == "string" else [*cells]
    return columns
