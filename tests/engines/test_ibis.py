"""Ibis tables: counts, refused columns and the remedies in errors."""

import sqlite3
import traceback

import pytest
from counting import clipped_sums, counted

import discreet as dp
from discreet import engines
from discreet.engines import ibis_columns
from discreet.errors import InputError, ParameterError, SchemaError

ibis = pytest.importorskip("ibis", reason="Ibis is not installed")
pytest.importorskip("ibis.backends.duckdb", reason="DuckDB is not installed for Ibis")


def table(backend="duckdb", rows=None, **schema):
    connection = getattr(ibis, backend).connect()
    made = connection.create_table("log", schema=ibis.schema({"user": "int64", "item": "string", **schema}))
    if not rows:
        return made
    return connection.create_table("log", ibis.memtable(rows, schema=made.schema()), overwrite=True)


ROWS = [(1, "a"), (1, "a"), (2, "a"), (2, "b"), (None, "b"), (3, None)]


def test_expressions_and_memtables_are_counted():
    log = table(rows=ROWS)
    assert counted(log) == {"a": 2, "b": 1}
    assert counted(log.filter(log.user < 2).mutate(item=log.item.upper())) == {"A": 1}
    assert counted(ibis.memtable({"user": [1, 2], "item": ["a", "a"]})) == {"a": 2}
    assert len(dp.select(log, user="user", item="item", l0=1, epsilon=1.0, delta=1e-12)) == 0


@pytest.mark.parametrize("name", ['a"b', "a.b", "a;b", "a`b", "a'b", "Item", "user_id"])
def test_odd_column_names_are_taken_literally(name):
    log = table(rows=ROWS).rename({name: "item"})
    assert counted(log, item=name) == {"a": 2, "b": 1}


@pytest.mark.parametrize("kind", ["float64", "date", "timestamp", "decimal(9, 2)", "array<int64>", "json"])
def test_other_types_are_refused(kind):
    for column in ("user", "item"):
        with pytest.raises(SchemaError, match=column):
            counted(table(**{column: kind}))


def test_a_misspelt_column_gets_the_near_miss():
    with pytest.raises(SchemaError, match="did you mean 'user'"):
        counted(table(), user="User")


KINDS = {"int8": "int64", "uint16": "uint64", "uint64": "uint64", "string": "string", "binary": "binary"}


@pytest.mark.parametrize(("kind", "name"), KINDS.items())
def test_the_type_of_items_follows_from_the_schema_alone(kind, name):
    labels, counts, _ = engines.histogram(engines.Table(table(item=kind), user="user", item="item"), limit=3)
    assert (labels.type_name, len(counts)) == (name, 0)


def test_unsigned_integers_keep_their_64_bits():
    rows = [(1, 2**64 - 1), (2, 2**64 - 1), (1, 2**63)]
    assert counted(table(item="uint64", rows=rows), l0=2) == {2**64 - 1: 2, 2**63: 1}


@pytest.mark.parametrize("backend", ["sqlite", "polars"])
def test_a_backend_without_sha256_names_the_remedy_for_l0(backend):
    pytest.importorskip(f"ibis.backends.{backend}")
    log = table(backend, rows=ROWS)
    with pytest.raises(ParameterError, match="to_pyarrow_batches"):
        counted(log, l0=1)
    assert sum(counted(log.select("user", "item").distinct().to_pyarrow_batches(), l0=1).values()) <= 2


def test_a_backend_that_cannot_weigh_names_the_remedies():
    pytest.importorskip("ibis.backends.polars")
    log = table("polars", rows=ROWS)
    budget = dp.Budget(rho=9, delta=1e-5)
    columns = {"user": "user", "item": "item", "budget": budget}
    for more in ({}, {"items": ["a"], "others": True}):
        with pytest.raises(ParameterError, match=r"to_pyarrow_batches.*mechanism=ConfirmedCounts"):
            dp.count(log, rho=1, delta=1e-6, **columns, **more)
    assert budget.spent.rho == 0
    assert len(dp.count(log, mechanism=dp.ConfirmedCounts(rho=1, delta=1e-6), **columns)) == 0


@pytest.mark.parametrize("backend", ["sqlite", "polars"])
def test_listed_items_are_summed_without_sha256(backend):
    pytest.importorskip(f"ibis.backends.{backend}")
    rows = [(1, "a", 0.5), (1, "a", 2.0), (2, "a", -7.5), (2, "b", 1e308), (3, "b", None)]
    log = table(backend, rows=rows, value="float64")
    options = {"columns": ("user", "item", "value"), "bounds": (-5, 9), "resolution": 0.5}
    for l0 in (None, 3):
        assert clipped_sums(log, items=["b", "a", "c"], l0=l0, **options) == [9, 0, 0]
    for mechanism in ({"l0": 1, "delta": 1e-6}, {"l0": 1, "items": ["a", "b"]}):
        with pytest.raises(ParameterError, match=r"table.to_pyarrow\(\) for a sum"):
            dp.sum(log, user="user", item="item", value="value", bounds=(0, 9), rho=1, **mechanism)


@pytest.mark.parametrize("declared", ["integer", "real", "numeric", "decimal(9, 2)", "boolean"])
def test_sqlite_values_that_are_no_numbers_are_skipped(declared):
    pytest.importorskip("ibis.backends.sqlite")
    connection = ibis.sqlite.connect()
    connection.con.execute(f"CREATE TABLE log (user integer, item integer, value {declared})")
    for item, cell in enumerate(["1", "'x'", "x'3939'", "NULL", "9e999", "-9e999", "'5 apples'"]):
        connection.con.execute(f"INSERT INTO log VALUES (1, {item}, {cell})")
    log = connection.table("log")
    options = {"columns": ("user", "item", "value"), "bounds": (2, 9), "resolution": 1.0}
    assert clipped_sums(log, items=range(7), **options) == [2] + [0] * 6


def test_decimals_of_any_size_are_refused():
    log = table(value="decimal")
    wide = log.mutate(value=log.value.cast("decimal"))
    with pytest.raises(SchemaError, match="clip it"):
        clipped_sums(wide, ("user", "item", "value"), items=["a"], bounds=(0, 9), resolution=1.0)


@pytest.mark.parametrize(
    ("declared", "good", "bad"),
    [
        ("integer", [1, -(2**63)], ["'x'", "2.5", "x'01'", "NULL"]),
        ("text", ["a", "", "é", "a\0b"], ["x'61'", "CAST(x'ff41' AS TEXT)", "NULL"]),
        ("blob", [b"a", b"\xff"], ["'a'", "1", "1.5", "NULL"]),
    ],
)
def test_sqlite_cells_of_other_types_are_dropped(declared, good, bad):
    pytest.importorskip("ibis.backends.sqlite")
    connection = ibis.sqlite.connect()
    connection.con.execute(f"CREATE TABLE log (user {declared}, item {declared}, fine integer)")
    connection.con.executemany("INSERT INTO log VALUES (?, ?, ?)", [(cell, cell, 7) for cell in good])
    for cell in bad:
        connection.con.execute(f"INSERT INTO log VALUES ({cell}, {cell}, 8)")
    log = connection.table("log")
    assert counted(log, item="fine") == {7: len(good)}
    assert counted(log, user="fine") == dict.fromkeys(good, 1)
    assert counted(log, user="fine", limit=2) == dict.fromkeys(sorted(good)[:2], 1)


@pytest.mark.parametrize(("backend", "collation"), [("duckdb", "NOCASE"), ("sqlite", "NOCASE"), ("sqlite", "RTRIM")])
def test_a_collation_does_not_merge_items_or_users(backend, collation):
    connection = getattr(ibis, backend).connect()
    text = f"TEXT COLLATE {collation}"
    connection.raw_sql(f'CREATE TABLE log ("user" {text}, item {text})')
    connection.raw_sql("INSERT INTO log VALUES ('u', 'a'), ('U', 'a'), ('u ', 'a'), ('u', 'A'), ('u', 'a ')")
    log = connection.table("log")
    assert counted(log) == {"a": 3, "A": 1, "a ": 1}
    assert counted(log, only=["a"]) == {"a": 3}
    assert counted(log, limit=2) == {"a": 3, "A": 1}
    if backend == "duckdb":
        assert counted(log, l0=3) == {"a": 3, "A": 1, "a ": 1}


def test_enum_columns_are_text():
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TYPE page AS ENUM ('é', 'b')")
    connection.raw_sql("CREATE TABLE log AS SELECT range AS \"user\", 'é'::page AS item FROM range(3)")
    assert counted(connection.table("log")) == {"é": 3}


def test_text_is_refused_on_backends_with_unknown_collation(monkeypatch):
    log, numbers = table(rows=ROWS), table(item="int64", rows=[(1, 7)])
    monkeypatch.setattr(ibis_columns, "_BINARY_TEXT", {"bigquery"})
    with pytest.raises(ParameterError, match="different texts"):
        counted(log)
    assert counted(numbers) == {7: 1}


@pytest.mark.parametrize("backend", ["duckdb", "polars", "sqlite", "datafusion"])
def test_an_error_on_a_cell_does_not_show_the_cell(backend, capfd, caplog, recwarn):
    pytest.importorskip(f"ibis.backends.{backend}")
    failing = {
        # Casts of SQLite do not fail.
        "sqlite": ibis.udf.scalar.python(lambda cell: int(cell), signature=(("string",), "int64"))
    }.get(backend, lambda cell: cell.cast("int64"))
    log = table(backend, rows=[(1, "secret-cell"), (2, "secret-cell")])
    budget = dp.Budget(rho=9, delta=1e-5)
    columns = {"user": "user", "item": "item", "budget": budget, "rho": 1}
    log = log.mutate(item=failing(log.item))
    for call in (
        lambda: counted(log),
        lambda: dp.count(log, mechanism=dp.ConfirmedCounts(rho=1, delta=1e-6), **{**columns, "rho": None}),
        lambda: dp.count(log, items=[1], l0=1, **columns),
        lambda: dp.sum(log.mutate(value=log.item), value="value", bounds=(0, 1), l0=1, items=[1], **columns),
    ):
        with pytest.raises(InputError, match="check its connection") as caught:
            call()
        assert "secret-cell" not in "".join(traceback.format_exception(caught.value))
    said = [*capfd.readouterr(), caplog.text, *(str(warning.message) for warning in recwarn)]
    assert "secret-cell" not in "".join(said)
    assert budget.spent.rho == 0


def test_a_closed_connection_is_an_input_error():
    log = table(rows=ROWS)
    log.get_backend().disconnect()
    with pytest.raises(InputError):
        counted(log)


def test_a_column_is_refused_as_a_table():
    with pytest.raises(ParameterError, match="not a column or a scalar"):
        counted(table().item)


def test_unsigned_items_of_64_bits_are_set_apart():
    con = ibis.duckdb.connect()
    con.raw_sql("create table visits as select u, hash('i' || i) as i from range(3000) a(u), range(12) b(i)")
    release = dp.count(con.table("visits"), user="u", item="i", rho=1, delta=1e-6)
    assert max(release.items) >= 2**63
    assert {*release.items} <= {*con.table("visits").i.to_pyarrow().to_pylist()}


def test_text_that_a_database_compares_otherwise_is_refused():
    con = ibis.duckdb.connect()
    con.raw_sql("set default_collation = 'nocase'")
    con.raw_sql("create table visits as select range as u, 'Home' as i from range(3000)")
    with pytest.raises(ParameterError, match="default_collation"):
        dp.count(con.table("visits"), user="u", item="i", rho=1, delta=1e-6)
    wide = sqlite3.connect(":memory:")
    wide.execute("pragma encoding = 'UTF-16'")
    wide.execute("create table visits (u int, i text)")
    for more in ({}, {"items": ["home"]}):
        with pytest.raises(ParameterError, match="UTF-16"):
            dp.count(ibis.sqlite.from_connection(wide).table("visits"), user="u", item="i", rho=1, delta=1e-6, **more)


def test_a_count_leaves_a_transaction_of_sqlite_open():
    con = sqlite3.connect(":memory:")
    con.execute("create table visits (u int, i text)")
    con.executemany("insert into visits values (?, ?)", [(u, i) for u in range(3000) for i in "abcdef"])
    con.commit()
    visits = ibis.sqlite.from_connection(con).table("visits")
    con.execute("delete from visits where u = 0")
    assert len(dp.count(visits, user="u", item="i", rho=1, delta=1e-6)) == 6
    assert con.in_transaction
