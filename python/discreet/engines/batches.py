"""Rows of DuckDB as small Arrow batches, without labels that are too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet import _core
from discreet.engines.files import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

__all__ = ["Rows", "shortened"]

_ROWS = 4096
"""The most rows of a batch of DuckDB. 10,000,000 rows of short text take 2.3 to 4.8 s to count in such batches, and 4.0
to 6.7 s in DuckDB's 131,072 rows. With labels of 8 KiB a batch takes 32 MiB instead of 1 GiB for each such column."""
_BYTES = {"VARCHAR": "strlen", "JSON": "strlen", "BLOB": "octet_length"}
"""DuckDB's function for the length in bytes, by type."""


class Rows:
    """A table as an Arrow stream whose batches are small, whatever its library.

    DuckDB would refuse a relation of another connection, and does not refuse this object.
    """

    def __init__(self, source: Any) -> None:
        self._source = source

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        # `to_arrow_reader` takes the rows of a batch, too, but needs pyarrow.
        submit = getattr(self._source, "_submit", None) if _is_relation(self._source) else None
        return self._source.__arrow_c_stream__() if submit is None else submit("stream", _ROWS).arrow_capsule()


def shortened(relation: DuckDBPyRelation, columns: list[str] | None = None) -> DuckDBPyRelation:
    """Return the relation with NULL instead of text and bytes of more than `_core.LONGEST` bytes.

    One user can have many rows with a long label in a small file, since Parquet compresses it, and all of them would
    be written out for Arrow.

    Args:
        relation: The rows.
        columns: The columns to keep; all without it.
    """
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return relation.project(", ".join(_short(name, kinds.get(name, "")) for name in columns or kinds))


def _short(name: str, kind: str) -> str:
    cell = quoted(name)
    if kind not in _BYTES:
        return cell
    return f"CASE WHEN {_BYTES[kind]}({cell}) <= {_core.LONGEST} THEN {cell} END AS {cell}"


def _is_relation(source: Any) -> bool:
    return type(source).__name__ == "DuckDBPyRelation"
