"""Ways to count the distinct users of each item of an Arrow table; each returns the number of items."""

from __future__ import annotations

from discreet import _core
from discreet.reference.count import count_distinct


def core(table):
    """This library."""
    return len(_core.count_distinct(table, "u", "i")[1])


def reference(table):
    """numpy, by sorting codes."""
    import pyarrow as pa

    arrays = []
    for name in ("u", "i"):
        column = table[name].combine_chunks()
        if not pa.types.is_integer(column.type):
            column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            column = column.indices
        arrays.append(column.to_numpy())
    return len(count_distinct(*arrays)[0])


def polars_n_unique(table):
    """polars, one aggregation."""
    import polars as pl

    return len(pl.from_arrow(table).group_by("i").agg(pl.col("u").n_unique()))


def polars_unique(table):
    """polars, distinct rows first."""
    import polars as pl

    return len(pl.from_arrow(table).lazy().unique().group_by("i").agg(pl.len()).collect(engine="streaming"))


def duckdb_distinct(rows_):
    """DuckDB, one aggregation."""
    import duckdb

    return len(duckdb.sql("SELECT i, count(DISTINCT u) n FROM rows_ GROUP BY i").fetchnumpy()["n"])


def duckdb_subquery(rows_):
    """DuckDB, distinct rows first."""
    import duckdb

    sql = "SELECT i, count(*) n FROM (SELECT DISTINCT u, i FROM rows_) GROUP BY i"
    return len(duckdb.sql(sql).fetchnumpy()["n"])


def pyarrow_groups(table):
    """pyarrow, distinct rows first."""
    return table.group_by(["u", "i"]).aggregate([]).group_by("i").aggregate([("u", "count")]).num_rows


def pandas_groups(table):
    """pandas, distinct rows first."""
    return len(table.to_pandas().drop_duplicates().groupby("i", observed=True, sort=False).size())


PEERS = [polars_n_unique, polars_unique, duckdb_distinct, duckdb_subquery, pyarrow_groups, pandas_groups]
ALL = [core, reference, *PEERS]
