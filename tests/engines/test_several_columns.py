"""Several columns as one item: the same counts as plain SQL in every engine, and as many labels as rows differ."""

import itertools
import sqlite3

import duckdb
import numpy as np
import pytest
from counting import counted

import discreet as dp
from conftest import SPARKS, spark_session
from discreet import _core
from discreet.errors import ItemTypeError, ParameterError, SchemaError
from discreet.mechanisms import GaussianThreshold, KnownItems, Plume
from discreet.tables import UserItems
from discreet.testing import seeded_rng

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
TEXTS = ["", "a", "s1:a", "1:a", "i1:1", ":", "as1:a", "ab", "b", "é", "e\u0301", "NULL", "a,b", '"', "\0", "x" * 9000]
TEXTS += [None]
NUMBERS = [0, 1, -1, 11, 2**63 - 1, -(2**63), None]
ROWS = [(n % 7, text, number) for n, (text, number) in enumerate(itertools.product(TEXTS, NUMBERS))] * 2
ROWS += [(user, "a", 1) for user in range(20)]
FORMS = ["parquet", "csv", "duckdb", "pyarrow", "reader", "polars", "pandas", "dict", "ibis-duckdb", "ibis-sqlite"]


def expected():
    """Return the counts by item, from Python's own sets."""
    users = {}
    for user, text, number in ROWS:
        if text is not None and number is not None and len(text) <= _core.LONGEST:
            users.setdefault((text, number), set()).add(user)
    return {item: len(found) for item, found in users.items()}


def opened(form, tmp_path):
    users, texts, numbers = (list(column) for column in zip(*ROWS, strict=True))
    table = pyarrow.table({"user": users, "text": texts, "number": pyarrow.array(numbers, pyarrow.int64())})
    stored = tmp_path / "rows.parquet"
    parquet.write_table(table, stored, row_group_size=50)
    if form == "parquet":
        return str(stored)
    if form == "csv":
        path = tmp_path / "rows.csv"
        cells = (("" if cell is None else '"' + str(cell).replace('"', '""') + '"' for cell in row) for row in ROWS)
        path.write_text("user,text,number\n" + "".join(",".join(row) + "\n" for row in cells), newline="")
        return str(path)
    if form == "duckdb":
        return duckdb.connect().read_parquet(str(stored))
    if form == "reader":
        return table.to_reader(max_chunksize=33)
    if form == "polars":
        return pytest.importorskip("polars").read_parquet(stored)
    if form == "pandas":
        pandas = pytest.importorskip("pandas")
        return table.to_pandas(types_mapper={pyarrow.int64(): pandas.Int64Dtype()}.get)
    if form == "dict":
        return {"user": np.array(users), "text": texts, "number": numbers}
    if form == "ibis-sqlite":
        path = tmp_path / "rows.sqlite"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE log (user INTEGER, text TEXT, number INTEGER)")
            connection.executemany("INSERT INTO log VALUES (?, ?, ?)", ROWS)
        return pytest.importorskip("ibis").sqlite.connect(path).table("log")
    if form == "ibis-duckdb":
        return pytest.importorskip("ibis").duckdb.connect().create_table("log", table)
    return table


@pytest.mark.parametrize("form", FORMS)
def test_all_engines_count_several_columns_as_one_item(tmp_path, form):
    found = counted(opened(form, tmp_path), item=["text", "number"])
    if form == "csv":
        found = {(text, int(number)): n for (text, number), n in found.items()}
    assert found == expected()


@pytest.mark.spark
@pytest.mark.parametrize("form", SPARKS)
def test_spark_counts_several_columns_as_one_item(tmp_path, form):
    stored = opened("parquet", tmp_path)
    with spark_session(form) as session:
        log = session.read.parquet(stored)
        assert counted(log, item=["text", "number"]) == expected()
        assert counted(log, item=["text", "number"], only=[("a", 1), ("b", 77)]) == {("a", 1): 20}
        typed = session.sql("SELECT 1 AS user, DATE '2026-01-31' AS item, true AS ok")
        assert counted(typed) == {"2026-01-31": 1}
        assert counted(typed, item=["ok", "item"]) == {("true", "2026-01-31"): 1}
        assert counted(log, user=["user", "number"], item="text") == counted(
            stored, user=["user", "number"], item="text"
        )


@pytest.mark.parametrize("form", ["pyarrow", "ibis-duckdb"])
def test_several_columns_are_one_user(tmp_path, form):
    expect = {}
    for user, text, number in ROWS:
        if text is not None and number is not None and len(text) <= _core.LONGEST:
            expect.setdefault(text, set()).add((user, number))
    found = counted(opened(form, tmp_path), user=["user", "number"], item="text")
    assert found == {text: len(users) for text, users in expect.items()}


@pytest.mark.parametrize("form", ["pyarrow", "dict", "ibis-duckdb"])
def test_only_listed_items_count(tmp_path, form):
    listed = [("a", 1), ("s1:a", -1), ("missing", 5)]
    found = counted(opened(form, tmp_path), item=["text", "number"], only=listed)
    assert found == {item: expected()[item] for item in listed[:2]}
    with pytest.raises(ItemTypeError):
        counted(opened(form, tmp_path), item=["text", "number"], only=[(1, "a")])


@pytest.mark.parametrize("columns", [("i", "u"), ("s", "b")])
def test_columns_of_other_types_are_other_tables(columns):
    types = {"i": pyarrow.int64(), "u": pyarrow.uint64(), "s": pyarrow.string(), "b": pyarrow.binary()}
    cells = {"i": [1], "u": [1], "s": ["a"], "b": [b"a"]}
    tables = [
        pyarrow.table({"user": [1], "x": pyarrow.array(cells[name], types[name]), "y": ["a"]}) for name in columns
    ]
    with pytest.raises(SchemaError, match="different types"):
        counted(tables, item=["x", "y"])
    assert counted([tables[0], tables[0]], item=["x", "y"]) == {(*cells[columns[0]], "a"): 1}


def test_the_encoded_item_may_have_as_many_bytes_as_a_label():
    room = _core.LONGEST - len("s1:a") - len("s8184:")
    log = {"user": [1, 2], "a": ["a", "a"], "b": ["x" * room, "x" * (room + 1)]}
    assert counted(log, item=["a", "b"]) == {("a", "x" * room): 1}


@pytest.mark.parametrize("size", [1, 65_536, 65_537, 200_000])
def test_large_batches_are_read_whole(size):
    log = pyarrow.table({"user": range(size), "a": [n % 3 for n in range(size)], "b": ["x"] * size})
    assert counted(log, item=["a", "b"]) == {(n, "x"): len(range(n, size, 3)) for n in range(min(3, size))}


def test_a_list_of_one_name_is_this_name():
    log = {"user": [1, 2], "item": ["a", "b"]}
    assert counted(log, user=["user"], item=["item"]) == counted(log)


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ({"item": []}, "at least one column"),
        ({"item": ["item", "item"]}, "different columns"),
        ({"item": ["item", "user"]}, "different columns"),
        ({"item": ["item", "count"]}, "the release has a column"),
        ({"item": ["item", 1]}, "a list of names"),
        ({"user": 1}, "a list of names"),
        ({"user": b"user"}, "a list of names"),
        ({"user": "item"}, "two different columns"),
        ({"item": None}, "a list of names"),
    ],
)
def test_names_of_columns_are_checked(names, error):
    with pytest.raises(ParameterError, match=error):
        counted({"user": [1], "item": [1], "count": [1]}, **{"user": "user", "item": "item", **names})


LOG = {"user": [n for n in range(4000) for _ in range(2)], "country": ["DE", "FR"] * 4000, "page": [7, 8] * 4000}


def test_verbs_release_several_columns():
    columns = {"user": "user", "item": ["country", "page"]}
    both = [("DE", 7), ("FR", 8)]
    assert sorted(dp.count(LOG, **columns, rho=1, delta=1e-6).items) == both
    assert sorted(dp.count(LOG, **columns, rho=1, delta=1e-6, l0=2).items) == both
    assert sorted(dp.top_k(LOG, **columns, k=2, rho=1, delta=1e-6).items) == both
    assert sorted(dp.top_k(LOG, **columns, k=2, rho=1, delta=1e-6, method="discover+peel", l0=2).items) == both
    for method in ("threshold", "dp_sips", "weighted_gaussian"):
        assert dp.select(LOG, **columns, epsilon=1, delta=1e-6, l0=2, method=method).items == both
    found = dp.select(LOG, **columns, epsilon=1, delta=1e-6, l0=2, method="policy_laplace").items
    assert found in (both, both[:1], both[1:])  # each item is missed with a chance of 1e-6


def test_mechanisms_release_several_columns():
    release = Plume(rho=1, delta=1e-6, m=2, m_prime=2).release(LOG, user="user", item=["country", "page"])
    assert sorted(release.items) == [("DE", 7), ("FR", 8)]
    assert [name for name, _, _ in release.columns] == ["country", "page", "count", "sigma"]
    items = UserItems.from_table(LOG, user="user", item=["country", "page"])
    union = dp.mechanisms.SetUnion.from_rho(method="policy_laplace", rho=1, delta=1e-6, l0=2)
    assert sorted(union.release(items, rng=seeded_rng(1)).items) == [("DE", 7), ("FR", 8)]


@pytest.mark.parametrize("form", ["ibis-duckdb", "dict"])
def test_set_unions_weigh_several_columns(form):
    data = LOG
    if form == "ibis-duckdb":
        ibis = pytest.importorskip("ibis")
        data = ibis.duckdb.connect().create_table("log", ibis.memtable(LOG))
    columns = {"user": "user", "item": ["country", "page"], "l0": 2, "rho": 1, "delta": 1e-6}
    assert dp.select(data, **columns, method="dp_sips").items == [("DE", 7), ("FR", 8)]


def test_known_items_of_several_columns():
    histogram = dp.Histogram.from_table(LOG, user="user", item=["country", "page"], l0=2)
    inner = GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=2)
    mechanism = KnownItems(mechanism=inner, items=[("DE", 7), ("ES", 9)])
    assert sorted(mechanism.release(histogram).items) == [("DE", 7), ("ES", 9), ("FR", 8)]


def test_listed_items_of_a_sum_have_the_columns_of_the_table():
    mechanism = dp.mechanisms.ClippedSums(items=(1,), rho=1.0, low=0, high=1)
    with pytest.raises(ItemTypeError, match="list tuples"):
        mechanism.release({**LOG, "value": [1] * 8000}, user="user", item=["country", "page"], value="value")
