"""Equal results of all engines, including ties, NULLs, odd texts and large integers."""

from functools import cache

import duckdb
import numpy as np
import pytest
from scipy.stats import chi2

import discreet as dp
from conftest import SPARKS, spark_session
from discreet import _core

ODD = ["", " ", "  ", "NULL", "nan", "None", "é", "e\u0301", "E\u0301", "É", "ß", "ss", "SS", "a ", "A", "\u200b"]
ODD += ["\0", "a\0", "a\0b", "\x7f", "\uffff", "\U0001f600", "\ufeffa", "\u202ea", "'", '"', "`", "\\", "a,b", "\r\n"]
ODD += ["%_", "$1", "x" * 12, "x" * 13, "x" * 70_000, "ü" * 40_000]
BIG = [2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 0, -1, 1]
FRAMES = ["parquet", "duckdb", "pyarrow", "dataset", "reader", "polars", "lazy", "pandas", "dict"]
IBIS = ["ibis-duckdb", "ibis-sqlite", "ibis-polars", "ibis-datafusion"]
SPARK = [pytest.param(form, marks=pytest.mark.spark) for form in SPARKS]
bounding = pytest.mark.parametrize("form", ["parquet", "ibis-duckdb", *SPARK], indirect=True)
EXACT = {"integers": "item", "texts": "encode(item)", "bytes": "item"}
"""The sort key of items in DuckDB, by kind."""


@cache
def generated(kind, rows=4000, seed=7):
    """Return columns of users and items, with repeated rows, items of equal counts, and some NULLs."""
    rng = np.random.default_rng(seed)
    texts = ODD + [f"w{n}" for n in range(200)]
    numbers = BIG + [int(n) for n in rng.integers(-(2**63), 2**63 - 1, 200)]
    pools = {"integers": numbers, "texts": texts, "bytes": [text.encode("utf-16") for text in texts]}
    pool = [None, *pools[kind]]
    users = [None, *(numbers if kind == "texts" else texts)]
    ranks = np.minimum(rng.zipf(1.3, rows), 300) % len(pool)
    items = [pool[rank] for rank in ranks] + [item for item in pool for _ in range(3)]
    return [users[place] for place in rng.integers(0, len(users), len(items))], items


def table(kind):
    import pyarrow

    users, items = generated(kind)
    types = {"integers": pyarrow.int64(), "texts": pyarrow.string(), "bytes": pyarrow.binary()}
    columns = [
        pyarrow.array(users, types["integers" if kind == "texts" else "texts"]),
        pyarrow.array(items, types[kind]),
    ]
    return pyarrow.table(columns, names=["us`er", "it.em"])


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """The generated tables as Parquet files, by kind."""
    parquet = pytest.importorskip("pyarrow.parquet")
    found = {kind: str(tmp_path_factory.mktemp("tables") / f"{kind}.parquet") for kind in EXACT}
    for kind, path in found.items():
        parquet.write_table(table(kind), path, row_group_size=1500)
    return found


@cache
def reference(path, kind, limit):
    """Return the largest counts, computed by plain SQL."""
    counts = f"{counted_if('u', 'integers' if kind == 'texts' else 'texts')} AND {counted_if('item', kind)}"
    query = f"""
        SELECT item, count(DISTINCT u) AS n FROM (SELECT "us`er" AS u, "it.em" AS item FROM read_parquet('{path}'))
        WHERE {counts} GROUP BY item ORDER BY n DESC, {EXACT[kind]} LIMIT {limit}
    """
    return [(encoded(item), n) for item, n in duckdb.connect().execute(query).fetchall()]


def counted_if(name, kind):
    """Return the SQL condition for a counted cell: it is neither NULL nor longer than the longest label."""
    length = {"integers": None, "texts": f"strlen({name})", "bytes": f"octet_length({name})"}[kind]
    return f"{name} IS NOT NULL" + (f" AND {length} <= {_core.LONGEST}" if length else "")


def is_short(cell):
    """Return whether a cell counts: it is neither NULL nor longer than the longest label."""
    return cell is not None and (isinstance(cell, int) or len(encoded(cell)) <= _core.LONGEST)


def encoded(item):
    return item.encode() if isinstance(item, str) else item


def rows(histogram):
    labels = histogram._labels.take(np.arange(len(histogram._counts())))
    return [(encoded(item), n) for item, n in zip(labels, histogram._counts().tolist(), strict=True)]


@pytest.fixture(scope="module", params=[*FRAMES, *IBIS, *SPARK])
def form(request):
    """A function that opens a Parquet file as a table of one engine."""
    if request.param in SPARKS:
        with spark_session(request.param) as session:
            yield session.read.parquet
    else:
        yield lambda path: opened(request.param, path)


def opened(name, path):
    pyarrow = pytest.importorskip("pyarrow")
    if name == "parquet":
        return path
    if name == "duckdb":
        return duckdb.connect().read_parquet(path)
    if name in ("polars", "lazy"):
        polars = pytest.importorskip("polars")
        return polars.read_parquet(path) if name == "polars" else polars.scan_parquet(path)
    if name == "dataset":
        return pytest.importorskip("pyarrow.dataset").dataset(path)
    whole = pytest.importorskip("pyarrow.parquet").read_table(path)
    if name == "reader":
        return whole.to_reader(max_chunksize=700)
    if name == "pandas":
        pandas = pytest.importorskip("pandas")
        # Object columns are read as text, so bytes need a typed column.
        kinds = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.binary(): pandas.ArrowDtype(pyarrow.binary())}
        return whole.to_pandas(types_mapper=kinds.get)
    if name == "dict":
        return whole.to_pydict()
    if name.startswith("ibis-"):
        return ibis_table(name.removeprefix("ibis-"), whole)
    return whole


def ibis_table(backend, whole):
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed")
    try:
        connection = getattr(ibis, backend).connect()
    except ImportError:
        pytest.skip(f"{backend} is not installed for Ibis")
    if backend != "sqlite":
        return connection.create_table("log", whole)
    table = connection.create_table("log", schema=ibis.Schema.from_pyarrow(whole.schema))
    # create_table would convert the integers to floats.
    cells = ", ".join("?" * whole.num_columns)
    connection.con.executemany(f"INSERT INTO log VALUES ({cells})", zip(*whole.to_pydict().values(), strict=True))
    return table


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("k_bar", [1, 40, 10_000])
def test_all_engines_return_the_same_largest_counts(form, paths, kind, k_bar):
    histogram = dp.Histogram.from_table(form(paths[kind]), user="us`er", item="it.em", k_bar=k_bar)
    assert rows(histogram) == reference(paths[kind], kind, k_bar + 1)


@pytest.mark.parametrize("kind", EXACT)
def test_all_engines_count_only_listed_items(form, paths, kind):
    exact = dict(reference(paths[kind], kind, 10_000))
    items = sorted(set(generated(kind)[1]) - {None})
    for only in ([], items[:1], items[::3]):
        histogram = dp.Histogram.from_table(form(paths[kind]), user="us`er", item="it.em", only=only)
        found = {item: n for item, n in rows(histogram) if n}
        assert found == {encoded(item): exact[encoded(item)] for item in only if encoded(item) in exact}


def test_listed_numbers_do_not_overflow_in_any_engine(form, paths):
    exact = dict(reference(paths["integers"], "integers", 10_000))
    assert -1 in exact  # -1 and 2^64 - 1 have the same 64 bits
    for only in ([2**64 - 1], [1, 2**64 - 1, 2**63]):
        table = form(paths["integers"])
        histogram = dp.Histogram.from_table(table, user="us`er", item="it.em", only=only)
        assert rows(histogram) == [(item, exact[item]) for item in only if item == 1]


@bounding
@pytest.mark.parametrize("kind", EXACT)
def test_an_l0_that_no_user_exceeds_changes_no_count(form, paths, kind):
    histogram = dp.Histogram.from_table(form(paths[kind]), user="us`er", item="it.em", l0=5000, k_bar=50)
    assert rows(histogram) == reference(paths[kind], kind, 51)


@bounding
@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("l0", [1, 4])
def test_exactly_l0_items_of_each_user_count(form, paths, kind, l0):
    histogram = dp.Histogram.from_table(form(paths[kind]), user="us`er", item="it.em", l0=l0)
    items_of = {}
    for user, item in zip(*generated(kind), strict=True):
        if is_short(user) and is_short(item):
            items_of.setdefault(user, set()).add(item)
    exact = dict(reference(paths[kind], kind, 10_000))
    assert sum(n for _, n in rows(histogram)) == sum(min(l0, len(items)) for items in items_of.values())
    assert all(n <= exact[item] for item, n in rows(histogram))


@pytest.fixture(scope="module")
def even(tmp_path_factory):
    """2000 users with the same seven items."""
    path = str(tmp_path_factory.mktemp("even") / "even.parquet")
    query = "SELECT u AS \"user\", 'i' || i AS item FROM range(2000) t(u), range(7) s(i)"
    duckdb.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


@bounding
def test_every_call_chooses_l0_items_uniformly_and_anew(form, even):
    users, items, l0 = 2000, 7, 3
    seen = []
    for _ in range(2):
        found = dict(rows(dp.Histogram.from_table(form(even), user="user", item="item", l0=l0)))
        counts = np.array([found[f"i{n}".encode()] for n in range(items)])
        assert counts.sum() == users * l0
        share = l0 / items
        # A user keeps l0 different items, so the counts are negatively correlated: factor (items - 1) / items.
        statistic = ((counts - users * share) ** 2).sum() / (users * share * (1 - share)) * (items - 1) / items
        assert chi2.sf(statistic, items - 1) > 1e-10
        seen.append(counts)
    assert (seen[0] != seen[1]).any()
