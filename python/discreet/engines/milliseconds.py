"""Millisecond times of Parquet files, read by pyarrow because they may exceed DuckDB's range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from discreet.engines import files
from discreet.engines.validated import validated
from discreet.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow
    from duckdb import DuckDBPyConnection

__all__ = ["Microseconds", "has_milliseconds"]

_SCALES = {"s": 1_000_000, "ms": 1000}
_MOST = 2**63 - 2
"""In microseconds, of either sign. DuckDB takes larger values for infinity, and fails at them."""
_ROWS = 65_536


def has_milliseconds(connection: DuckDBPyConnection, paths: Sequence[str], column: str) -> bool:
    """Return whether a column of one of the Parquet files holds times in milliseconds.

    DuckDB converts them to microseconds, and fails the scan at a cell that is out of their range.
    """
    kind = (
        "CASE WHEN converted_type = 'TIMESTAMP_MILLIS' "
        "OR logical_type::VARCHAR LIKE 'TimestampType(%MILLIS=MilliSeconds%' THEN 'ms' END"
    )
    return any(kinds[column] is not None for kinds in files.parquet_schemas(connection, paths, kind))


class Microseconds:
    """A column of times of Parquet files as one column `moment` of integers, in the order of the rows.

    The integers are microseconds since 1970 in UTC, and NULL if 64 bits cannot hold them. DuckDB may request the stream
    several times.

    Raises:
        SchemaError: pyarrow is not installed.
    """

    def __init__(self, paths: Sequence[str], column: str) -> None:
        try:
            from pyarrow import compute, parquet  # noqa: F401 - `_batches` and `_scaled` need them
        except ImportError:
            # A fallback to DuckDB would let one cell decide whether there is a release.
            raise SchemaError(
                f"the column {column!r} holds times in milliseconds, which need pyarrow: pip install pyarrow, or write "
                "them in microseconds"
            ) from None
        self._paths, self._column = paths, column

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow

        schema = pyarrow.schema([("moment", pyarrow.int64())])
        reader = pyarrow.RecordBatchReader.from_batches(schema, _batches(self._paths, self._column))
        return validated(reader).__arrow_c_stream__()


def _batches(paths: Sequence[str], column: str) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow
    from pyarrow import parquet

    for path in paths:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS, columns=[column]):
                yield pyarrow.record_batch([_scaled(batch.column(column))], names=["moment"])


def _scaled(cells: pyarrow.Array) -> pyarrow.Array:
    import pyarrow
    from pyarrow import compute

    scale = _SCALES.get(cells.type.unit)
    if scale is None:  # the unit of another file, whose range fits 64 bits of microseconds
        cells, scale = cells.cast(pyarrow.timestamp("us", cells.type.tz), safe=False), 1
    numbers, most = cells.cast(pyarrow.int64()), _MOST // scale
    fits = compute.and_(compute.greater_equal(numbers, -most), compute.less_equal(numbers, most))
    return compute.multiply(compute.if_else(fits, numbers, None), scale)
