"""Parquet files of released columns, in the order of the rows."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from discreet.engines.sql import Columns, connect
from discreet.errors import InputError, raise_alone

__all__ = ["read", "write"]


def write(path: Path, columns: Iterable[tuple[str, object, str]]) -> None:
    """Write columns to a Parquet file, in the order of their rows; raise OSError if the disk fails."""
    import duckdb

    connection = connect(ordered=True)
    connection.register("released", Columns(list(columns)))
    try:
        connection.sql("SELECT * FROM released").write_parquet(str(path), compression="zstd")
    except duckdb.IOException:
        raise OSError from None


def read(path: Path) -> list[dict[str, object]]:
    """Return the rows of a Parquet file in their order; raise InputError if it cannot be read."""
    import duckdb

    try:
        found = connect(ordered=True).execute("SELECT * FROM read_parquet($1)", [glob.escape(str(path))])
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    except duckdb.Error:
        raise_alone(InputError(f"cannot read {path} as Parquet"))
