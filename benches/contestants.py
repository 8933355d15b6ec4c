"""Functions that count the distinct users of each item of an Arrow table, with this library and with others.

A function returns the number of items. A function with the prefix `bounded_` keeps at most 10 items of each user, and
returns the number of kept (user, item) pairs. A function with the prefix `summed_` adds up the values `v` of each user
for each item, clips these sums to 20, and returns the sum of all. The benchmark `compare.py` calls these functions
contestants. The column `u` holds the users, and the column `i` holds the items.
"""

from __future__ import annotations

import numpy as np

import cases
from discreet import _core
from discreet.reference.count import count_bounded, count_distinct

L0 = 10
CLIP = 20
MEMORY = 256 * 2**20


def core(table):
    """Count with this library."""
    return len(_core.count_distinct(table, "u", "i")[1])


def core_with_users(table):
    """Count with this library, and count all users too."""
    return len(_core.count_distinct(table, "u", "i", users=True)[1])


def core_in_256_mib(table):
    """Count with this library in 256 MiB, with most rows spilled to files."""
    return len(_core.count_distinct(table, "u", "i", memory=MEMORY)[1])


def codes(table):
    """Yield both columns as integers: text is replaced by its index in a dictionary of the column."""
    import pyarrow as pa

    for name in ("u", "i"):
        column = table[name].combine_chunks()
        if not pa.types.is_integer(column.type):
            column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            column = column.indices
        yield column.to_numpy()


def reference(table):
    """Count in numpy: sort the integers of `codes`."""
    return len(count_distinct(*codes(table))[0])


def numpy_packed(table):
    """Count in numpy: pack both integers of a row, below 2^32, into one 64-bit integer, and sort."""
    users, items = codes(table)
    pairs = np.sort(items.astype(np.uint64) << np.uint64(32) | users.astype(np.uint64))
    distinct = pairs[np.append(True, pairs[1:] != pairs[:-1])] >> np.uint64(32)
    starts = np.flatnonzero(np.append(True, distinct[1:] != distinct[:-1]))
    return len(np.diff(np.append(starts, len(distinct))))


def polars_n_unique(table):
    """Count in polars: aggregate once."""
    import polars as pl

    return len(pl.from_arrow(table).group_by("i").agg(pl.col("u").n_unique()))


def polars_unique(table):
    """Count in polars: find the distinct rows, then count them."""
    import polars as pl

    return len(pl.from_arrow(table).lazy().unique().group_by("i").agg(pl.len()).collect(engine="streaming"))


def duckdb_distinct(rows_):
    """Count in DuckDB: aggregate once."""
    import duckdb

    return len(duckdb.sql("SELECT i, count(DISTINCT u) n FROM rows_ GROUP BY i").to_arrow_table())


def duckdb_subquery(rows_):
    """Count in DuckDB: find the distinct rows, then count them."""
    import duckdb

    sql = "SELECT i, count(*) n FROM (SELECT DISTINCT u, i FROM rows_) GROUP BY i"
    return len(duckdb.sql(sql).to_arrow_table())


def pyarrow_groups(table):
    """Count in pyarrow: find the distinct rows, then count them."""
    return table.group_by(["u", "i"]).aggregate([]).group_by("i").aggregate([("u", "count")]).num_rows


def pandas_groups(table):
    """Count in pandas: find the distinct rows, then count them."""
    return len(table.to_pandas().drop_duplicates().groupby("i", observed=True, sort=False).size())


def bounded_core(table):
    """Count at most L0 items of each user with this library."""
    return int(_core.count_distinct(table, "u", "i", l0=L0)[1].sum())


def bounded_core_with_users(table):
    """Count at most L0 items of each user with this library, and count all users too."""
    return int(_core.count_distinct(table, "u", "i", l0=L0, users=True)[1].sum())


def bounded_lists(table):
    """List at most L0 items of each user with this library, as a set union needs them."""
    return int(_core.Lists.read(table, "u", "i", l0=L0)[1].sizes().sum())


def bounded_reference(table):
    """Count in numpy: sort each user's items by random numbers, and keep the first L0."""
    return int(count_bounded(*codes(table), L0, np.random.default_rng())[1].sum())


def bounded_polars(table):
    """Count in polars: shuffle the distinct rows, and keep the first L0 of each user."""
    import polars as pl

    rows = pl.from_arrow(table).unique().sample(fraction=1.0, shuffle=True)
    return rows.group_by("u").head(L0).group_by("i").len()["len"].sum()


def bounded_duckdb(rows_):
    """Count in DuckDB: number each user's distinct rows with a window function, and keep the first L0."""
    import duckdb

    first = f"QUALIFY row_number() OVER (PARTITION BY u ORDER BY hash(u, i)) <= {L0}"
    sql = f"SELECT i, count(*) n FROM (SELECT * FROM (SELECT DISTINCT u, i FROM rows_) {first}) GROUP BY i"
    return int(duckdb.sql(sql).to_arrow_table()["n"].to_numpy().sum())


def summed_core(table):
    """Count with this library, then sum for all of the items that were found."""
    items, *_ = _core.count_distinct(table, "u", "i", value="v")
    pairs = _core.Pairs.read(table, "u", "i", value="v", valued=True, only=items)
    return int(pairs.measured(items, 1 << 30, [("sum", 0, CLIP, 1, 1, 0)])[1].sum())


def summed_polars(table):
    """Sum in polars: add up and clip the values of each user for each item, then add up each item."""
    import polars as pl

    own = pl.from_arrow(table).lazy().group_by("u", "i").agg(pl.col("v").sum().clip(0, CLIP))
    return int(own.group_by("i").agg(pl.col("v").sum()).collect(engine="streaming")["v"].sum())


def summed_duckdb(rows_):
    """Sum in DuckDB: add up and clip the values of each user for each item, then add up each item."""
    import duckdb

    own = f"SELECT i, least({CLIP}, greatest(0, sum(v))) s FROM rows_ GROUP BY u, i"
    return int(duckdb.sql(f"SELECT i, sum(s) s FROM ({own}) GROUP BY i").to_arrow_table()["s"].to_numpy().sum())


PEERS = [polars_n_unique, polars_unique, duckdb_distinct, duckdb_subquery, pyarrow_groups, pandas_groups]
BOUNDED_PEERS = [bounded_polars, bounded_duckdb]
WITH_USERS = [core_with_users, bounded_core_with_users]
BOUNDED = [bounded_core, bounded_core_with_users, bounded_lists, bounded_reference]
OURS = [core, core_in_256_mib, reference, numpy_packed, *BOUNDED, summed_core, *WITH_USERS]


def of(case):
    """Return the functions that count the table of a case. The first one uses this library."""
    if case.endswith(cases.BOUNDED):
        return [*BOUNDED, *BOUNDED_PEERS]
    if case.endswith(cases.SUMMED):
        return [summed_core, summed_polars, summed_duckdb]
    extra = {"integers, ten rows each": [core_in_256_mib], "integers, dense": [numpy_packed]}
    return [core, core_with_users, *extra.get(case, []), reference, *PEERS]
