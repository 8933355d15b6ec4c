"""Rows of DuckDB as small Arrow batches, without overlong labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Protocol, TypeGuard

from discreet import _core
from discreet.engines.files import quoted, require_columns
from discreet.engines.validated import interrupted_with_call
from discreet.errors import SchemaError

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

__all__ = ["BYTES", "ArrowStream", "SmallBatches", "combined", "is_relation", "without_long_labels"]

_ROWS = 4096
"""The most rows in a batch from DuckDB.

Counting 10,000,000 rows of short text takes 2.3 to 4.8 s in such batches, and 4.0 to 6.7 s in DuckDB's default of
131,072 rows. With labels of 8 KiB, a batch takes 32 MiB instead of 1 GiB for each such column."""
BYTES = {"VARCHAR": "strlen", "JSON": "strlen", "BLOB": "octet_length"}
"""DuckDB's function for the length in bytes, by type."""

_WIDTH = re.compile(r"(?:TINY|SMALL|BIG)INT$")
"""A width in the name of an integer type, such as UTINYINT or BIGINT."""


class ArrowStream(Protocol):
    """A table of any library with Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows."""


class SmallBatches:
    """A table of any library as an Arrow stream of small batches.

    DuckDB refuses a relation of another connection, but scans this object.
    """

    def __init__(self, source: ArrowStream) -> None:
        self._source = source

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        # `to_arrow_reader` also takes a batch size, but needs pyarrow.
        submit = getattr(self._source, "_submit", None) if is_relation(self._source) else None
        if (connection := getattr(self._source, "_con", None)) is not None and submit is not None:
            interrupted_with_call(connection)
        return self._source.__arrow_c_stream__() if submit is None else submit("stream", _ROWS).arrow_capsule()


def without_long_labels(relation: DuckDBPyRelation, columns: list[str] | None = None) -> DuckDBPyRelation:
    """Return the relation with NULL instead of text and bytes of more than `_core.LONGEST` bytes.

    Parquet compresses repeated labels. A small file with many rows of one long label would need much memory as Arrow.
    """
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return relation.project(", ".join(_cell(name, kinds.get(name, "")) for name in columns or kinds))


def combined(relations: Sequence[DuckDBPyRelation], columns: list[str]) -> list[DuckDBPyRelation]:
    """Return relations with the rows of these columns, one for each connection of DuckDB.

    A connection has one open result. So of two relations, the second could be read only if the first were empty.

    Raises:
        SchemaError: The relations of a connection have columns of different types.
    """
    groups: list[list[DuckDBPyRelation]] = []
    for relation in relations:
        require_columns(relation.columns, columns)
        rows = relation.project(", ".join(map(quoted, columns)))
        group = next((group for group in groups if _is_of_one_connection(group[0], rows)), [])
        if not group:
            groups.append(group)
        elif [*map(_kind, group[0].types)] != [*map(_kind, rows.types)]:
            raise SchemaError("the tables' columns have different types; cast them to one type")
        group.append(rows)
    return [reduce(lambda first, second: first.union(second), group) for group in groups]  # keeps equal rows


def _is_of_one_connection(first: DuckDBPyRelation, second: DuckDBPyRelation) -> bool:
    import duckdb

    try:
        first.project("1").union(second.project("1"))
    except duckdb.InvalidInputException:
        return False
    return True


def _kind(column_type: object) -> str:
    """Return the name of a type, without the width of integers."""
    return _WIDTH.sub("INTEGER", str(column_type))


def _cell(name: str, kind: str) -> str:
    cell = quoted(name)
    if kind not in BYTES:
        return cell
    return f"CASE WHEN {BYTES[kind]}({cell}) <= {_core.LONGEST} THEN {cell} END AS {cell}"


def is_relation(source: object) -> TypeGuard[DuckDBPyRelation]:
    """Return whether an object is a relation of DuckDB."""
    return type(source).__name__ == "DuckDBPyRelation"
