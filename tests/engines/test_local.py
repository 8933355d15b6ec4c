"""The local engine: files, frames and queries, and how bad ones are refused."""

import _thread
import gzip
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from counting import counted, csv

import discreet as dp
from discreet import engines
from discreet.engines import local
from discreet.engines.sql import query
from discreet.errors import InputError, ParameterError, SchemaError
from discreet.mechanisms import ClippedSums

ROWS = "SELECT * FROM (VALUES (1,'a'), (1,'a'), (2,'a'), (2,'b'), (NULL,'b'), (3,NULL)) t(\"user\", item)"
COUNTS = {"a": 2, "b": 1}


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "log.parquet"
    local.connect().execute(f"COPY ({ROWS}) TO '{path}' (FORMAT parquet)")
    return path


def test_parquet_is_read_by_path_and_by_glob(parquet, tmp_path):
    assert counted(parquet) == counted(str(parquet)) == COUNTS
    local.connect().execute(f"COPY (SELECT 9 AS \"user\", 'b' AS item) TO '{tmp_path}/more.parquet' (FORMAT parquet)")
    assert counted(str(tmp_path / "*.parquet")) == {"a": 2, "b": 2}
    assert counted(str(tmp_path / "**" / "*.parquet")) == {"a": 2, "b": 2}


ODD = ["a[1].parquet", "it's.parquet", "ü $1.parquet", *([] if os.name == "nt" else ["what?.parquet", "star*.parquet"])]


@pytest.mark.parametrize("name", ODD)
def test_odd_file_names_are_read_as_they_are(parquet, tmp_path, name):
    parquet.rename(tmp_path / name)
    assert counted(tmp_path / name) == COUNTS


@pytest.mark.parametrize("name", ['a"b', "a;b", "a\nb", "ä b", "select", "a'b"])
def test_odd_column_names_are_taken_literally(tmp_path, name):
    quoted = '"' + name.replace('"', '""') + '"'
    path = tmp_path / "odd.parquet"
    local.connect().execute(f"COPY (SELECT 1 AS {quoted}, 'x' AS item) TO '{path}' (FORMAT parquet)")
    assert counted(path, user=name) == {"x": 1}
    assert counted({name: [1], "item": ["x"]}, user=name) == {"x": 1}


def bad_files(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    contents = {
        "empty.parquet": b"",
        "random.parquet": bytes(range(256)) * 40,
        "cut.parquet": b"PAR1" + b"x" * 90,
        "empty.csv": b"",
        "log.xlsx": b"x",
        "log.parquet.gz": b"x",
        "cut.csv.gz": gzip.compress(b"user,item\n1,a\n")[:-9],
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.csv")
    return [*sorted(p.name for p in tmp_path.iterdir()), "missing.parquet", "missing*.csv", "nul\0byte.csv"]


def test_bad_files_are_input_errors_that_name_the_path_alone(tmp_path):
    for name in bad_files(tmp_path):
        with pytest.raises(InputError) as caught:
            counted(str(tmp_path / name))
        assert name in str(caught.value), name
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None, name


@pytest.mark.parametrize("address", ["https://example.org/x.parquet", "s3://bucket/x.parquet", "file:///x.csv"])
def test_addresses_are_refused_at_once(address):
    with pytest.raises(InputError, match="download"):
        counted(address)


def test_a_damaged_parquet_file_is_an_input_error_that_names_the_path_alone(tmp_path):
    path = tmp_path / "log.parquet"
    query = "SELECT range AS \"user\", 'word-' || range AS item FROM range(50000)"
    local.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    content = bytearray(path.read_bytes())
    content[2000:90_000] = b"\xaa" * 88_000
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"log\.parquet") as caught:
        counted(path)
    assert "word-" not in str(caught.value)


def test_a_misspelt_column_gets_the_near_miss(parquet):
    with pytest.raises(SchemaError, match="did you mean 'user'"):
        counted(parquet, user="usr")
    with pytest.raises(SchemaError, match="did you mean 'item'"):
        counted({"user": [1], "item": [1]}, item="Item")


@pytest.mark.parametrize(("user", "item"), [("user", "user"), (1, "item"), ("user", None)])
def test_columns_are_two_names(parquet, user, item):
    with pytest.raises(ParameterError):
        counted(parquet, user=user, item=item)


@pytest.mark.parametrize("kind", ["DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL(9,2)", "INTEGER[]"])
def test_types_that_cannot_be_items_are_refused_before_reading(tmp_path, kind):
    path = tmp_path / "typed.parquet"
    local.connect().execute(f"COPY (SELECT 1 AS \"user\", NULL::{kind} AS item) TO '{path}' (FORMAT parquet)")
    with pytest.raises(SchemaError, match="item"):
        counted(path)


def test_queries_are_counted():
    assert counted(query(ROWS)) == COUNTS


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT nothing FROM nowhere", "SELECT x", "CREATE TABLE t(i int)", ""])
def test_a_query_that_is_wrong_is_a_schema_error(sql):
    with pytest.raises(SchemaError):
        query(sql)


@pytest.mark.parametrize("rest", ["GROUP BY 1", "HAVING true", "GROUP BY alice", "AS t WHERE sum(t) = 1"])
@pytest.mark.parametrize("cell", ["secret", "a secret", "the\nsecret", 'a""b secret', '""secret'])
def test_the_first_line_of_a_file_without_names_is_not_shown_by_a_query_that_is_wrong(tmp_path, rest, cell):
    path = tmp_path / "log.csv"
    path.write_text(f'"{cell}",alice,"{cell} two"\nbob,other,more\ncarol,third,more\n')
    with pytest.raises(SchemaError, match="query") as caught:
        query(f"SELECT * FROM '{path}' {rest}")
    assert "secret" not in str(caught.value)


def test_what_is_wrong_with_a_query_is_said_where_the_query_has_it(tmp_path):
    path = csv(tmp_path, "user,item\n1,a\n")
    log = f"read_csv('{path}', parallel = false)"
    for sql, named in [(f"SELECT usr FROM {log}", "usr"), ("SELEC 1", "SELEC"), ("SELECT 1 FROM Nosuch", "Nosuch")]:
        with pytest.raises(SchemaError, match=named):
            query(sql)


def test_the_first_line_of_a_file_without_names_is_no_near_miss(tmp_path):
    path = csv(tmp_path, "users,items\nbob,x\ncarol,y\n")
    pandas = pytest.importorskip("pandas")
    for table in (query(f"SELECT * FROM read_csv('{path}', parallel = false)"), pandas.read_csv(path)):
        with pytest.raises(SchemaError, match="no columns 'user' and 'item'") as caught:
            counted(table)
        assert "users" not in str(caught.value)
        with pytest.raises(SchemaError, match="did you mean 'users'"):
            counted(table, item="items")


def broken(cells):
    """Text of Arrow that need not be UTF-8."""
    pyarrow = pytest.importorskip("pyarrow")
    plain = pyarrow.array(cells, pyarrow.binary())
    return pyarrow.Array.from_buffers(pyarrow.string(), len(cells), plain.buffers())


def test_text_in_parquet_that_is_not_utf8_loses_its_row_and_no_other(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    table = {
        "user": [b"u%d" % (n % 5000) for n in range(60_000)],
        "item": [b"item %d?" % (n % 7) for n in range(60_000)],
    }
    for n in range(100, 60_000, 997):
        table["user" if n % 2 else "item"][n] = b"odd\xff\xfe"
    odd = pyarrow.table({name: broken(cells) for name, cells in table.items()})
    for part in range(3):
        rows = odd.slice(part * 20_000, 20_000)
        parquet.write_table(rows, tmp_path / f"{part}.parquet", row_group_size=3000, use_dictionary=part == 1)
    kept = [pair for pair in zip(table["user"], table["item"], strict=True) if not {*pair} & {b"odd\xff\xfe"}]
    expected = {f"item {n}?": len({user for user, item in kept if item == b"item %d?" % n}) for n in range(7)}
    assert counted(str(tmp_path / "*.parquet")) == expected
    named = dp.select(
        str(tmp_path / "*.parquet"), user="user", item="item", l0=7, rho=100, delta=1e-3, method="dp_sips"
    )
    assert set(named.items) == {f"item {n}?" for n in range(7)}
    (tmp_path / "0.parquet").write_bytes((tmp_path / "0.parquet").read_bytes()[:-3000])
    with pytest.raises(InputError, match="cannot read"):
        counted(str(tmp_path / "*.parquet"))


def test_files_of_other_types_or_without_a_column_are_refused_whatever_is_in_them(tmp_path):
    connection = local.connect()
    for number, user, name in (
        (1, "1::BIGINT", "item"),
        (2, "'7'", "item"),
        (3, "1.5::DOUBLE", "item"),
        (4, "1::BIGINT", "itm"),
    ):
        rows = f"SELECT {user} AS \"user\", 'a' AS {name}"
        connection.execute(f"COPY ({rows}) TO '{tmp_path}/{number}.parquet' (FORMAT parquet)")
    for other, what in ((2, "same types"), (3, "same types"), (4, "did you mean 'itm'")):
        with pytest.raises(SchemaError, match=what):
            counted(str(tmp_path / f"[1{other}].parquet"))
    assert counted(str(tmp_path / "1.parquet")) == {"a": 1}


def test_errors_hold_nothing_of_those_that_they_replace(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    cast = "SELECT 1 AS \"user\", CAST(x AS INT) AS item, 1 AS value FROM (VALUES ('secret')) t(x)"
    sums = ClippedSums(items=(1,), rho=1.0, low=0, high=1)
    for refused in (
        lambda: counted(duckdb.connect().sql(cast)),
        lambda: sums.release(duckdb.connect().sql(cast), user="user", item="item", value="value"),
    ):
        with pytest.raises(InputError) as caught:
            refused()
        assert (caught.value.__context__, caught.value.__cause__) == (None, None)


def test_near_misses_of_a_schema_are_shown_even_where_both_names_are_wrong(parquet):
    with pytest.raises(SchemaError, match="no column 'usr'; did you mean 'user'"):
        local.histogram(str(parquet), "usr", "itm")


@pytest.mark.parametrize("wrapped", [lambda r: r, lambda r: [r]])
def test_what_is_read_twice_gives_its_rows_twice(wrapped):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"user": [1, 2, 3] * 500, "item": ["a", "b", "c"] * 500})
    plume = dp.Plume(rho=1.0, delta=1e-6, m=1, m_prime=1)
    budget = dp.Budget(rho=1.0, delta=1e-5)
    for data in (wrapped(table.to_reader()), {"user": iter([1, 2]), "item": iter(["a", "b"])}):
        with pytest.raises(ParameterError, match="gives its rows once"):
            plume.release(data, user="user", item="item")
        with pytest.raises(ParameterError, match="gives its rows once"):
            dp.top_k(
                data, user="user", item="item", k=3, l0=1, rho=1, delta=1e-6, method="discover+peel", budget=budget
            )
    assert budget.spent.rho == 0


def test_a_query_that_fails_on_a_cell_does_not_show_it():
    with pytest.raises(InputError) as caught:
        counted(query("SELECT 1 AS \"user\", CAST(x AS INT) AS item FROM (VALUES ('secret')) t(x)"))
    assert "secret" not in str(caught.value)


def test_frames_of_every_library_are_counted():
    import duckdb

    data = {"user": [1, 1, 2, 2, None, 3], "item": ["a", "a", "a", "b", "b", None]}
    assert counted(data) == COUNTS
    assert counted(duckdb.connect().sql(ROWS)) == COUNTS
    polars = pytest.importorskip("polars")
    assert counted(polars.DataFrame(data)) == counted(polars.DataFrame(data).lazy()) == COUNTS
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**data, "user": pandas.array(data["user"], "Int64")})
    assert counted(frame) == counted(frame.convert_dtypes()) == COUNTS
    pyarrow = pytest.importorskip("pyarrow")
    assert counted(pyarrow.table(data)) == COUNTS
    with pytest.raises(SchemaError, match="did you mean"):
        counted(frame, user="users")
    with pytest.raises(SchemaError, match="did you mean"):
        counted(polars.DataFrame(data).lazy(), user="users")


def test_pandas_is_counted_without_pyarrow(monkeypatch):
    pandas = pytest.importorskip("pandas")

    def missing(self, requested_schema=None):
        raise ImportError

    monkeypatch.setattr(pandas.DataFrame, "__arrow_c_stream__", missing)
    frame = pandas.DataFrame({"user": [1, 1, 2, 2], "item": ["a", "a", "a", None]})
    assert counted(frame) == {"a": 2}


def test_a_float_column_is_refused():
    for users in ([1.0, 2.0], np.array([1.0, 2.0])):
        with pytest.raises(SchemaError):
            counted({"user": users, "item": ["a", "b"]})


def test_a_closed_connection_is_an_input_error():
    import duckdb

    connection = duckdb.connect()
    relation = connection.sql(ROWS)
    connection.close()
    with pytest.raises(InputError):
        counted(relation)


@pytest.mark.parametrize("data", [None, 1, [(1, "a")], object(), b"x.parquet"])
def test_anything_else_is_a_parameter_error(data):
    with pytest.raises((ParameterError, InputError)):
        counted(data)


def test_importing_the_package_is_light():
    code = (
        "import sys, discreet; "
        "print([m for m in ('duckdb','pandas','polars','pyarrow','matplotlib','click','rich') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_verb_counts_a_file(parquet):
    release = dp.count(parquet, user="user", item="item", rho=1.0, delta=1e-6)
    assert release.guarantee == dp.Guarantee(1.0, 1e-6)
    assert dp.count(parquet, user="user", item="item", epsilon=1.0, delta=1e-6).guarantee.epsilon(1e-6) <= 1
    with pytest.raises(ParameterError, match="exactly one"):
        dp.count(parquet, user="user", item="item", delta=1e-6)
    with pytest.raises(TypeError):
        dp.count(parquet, user="user", item="item", rho=1.0, delta=1e-6, seed=1)


def test_a_list_of_tables_is_counted_as_one_table(parquet, tmp_path):
    more = {"user": [2, 9, 9], "item": ["b", "b", "c"]}
    other = tmp_path / "other.parquet"
    local.connect().execute(f"COPY (SELECT 8 AS \"user\", 'c' AS item) TO '{other}' (FORMAT parquet)")
    assert counted([parquet]) == COUNTS
    assert counted((parquet, other, more, parquet)) == {"a": 2, "b": 2, "c": 2}
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(more).with_columns(polars.col("item").cast(polars.Categorical))
    assert counted([more, frame, frame.lazy()]) == {"b": 2, "c": 1}
    assert sum(dp.Histogram.from_table([more, frame], user="user", item="item", l0=1)._counts()) == 2


def test_tables_that_cannot_be_one_are_refused(parquet, tmp_path):
    with pytest.raises(SchemaError, match="different types"):
        counted([parquet, {"user": ["1"], "item": ["a"]}])
    with pytest.raises(SchemaError, match="did you mean 'user'"):
        counted([parquet, {"usr": [1], "item": ["a"]}], user="usr")
    with pytest.raises(InputError, match="different forms"):
        counted([parquet, csv(tmp_path, "user,item\n1,a\n")])
    with pytest.raises(ParameterError, match="table"):
        counted([])


def test_a_scan_that_memory_does_not_hold_is_a_resource_error(tmp_path):
    path = tmp_path / "wide.parquet"
    query = "SELECT range AS \"user\", repeat('x', 1000) || range AS item FROM range(400000)"
    options = "FORMAT parquet, ROW_GROUP_SIZE 400000, COMPRESSION uncompressed"
    local.connect().execute(f"COPY ({query}) TO '{path}' ({options})")
    with pytest.raises(dp.errors.ResourceError, match="memory"):
        local.histogram(path, "user", "item", memory="256MiB")


def test_parquet_columns_are_the_ones_that_are_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    nested = pyarrow.array([{"id": 1, "ID": 2}] * 3)
    good = pyarrow.table({"user": [1, 2, 3], "more": nested, "item": ["a", "a", "a"]})
    parquet.write_table(good, tmp_path / "good.parquet")
    _, counts, _ = engines.histogram(tmp_path / "good.parquet", "user", "item")
    assert counts.tolist() == [3]
    clash = pyarrow.table([[1, 2, 3], [7, 7, 7], ["a"] * 3], names=["ID", "id", "item"])
    parquet.write_table(clash, tmp_path / "clash.parquet")
    for name in ("id", "ID"):
        with pytest.raises(SchemaError, match="case"):
            engines.histogram(tmp_path / "clash.parquet", name, "item")


@pytest.mark.parametrize(("wrong", "values"), [("user", [1.5, 2.5]), ("item", ["a", 1])])
def test_a_column_of_a_dict_that_cannot_be_labels_is_named(wrong, values):
    table = {"user": [1, None], "item": ["a", "a"]} | {wrong: values}
    with pytest.raises(SchemaError, match=f"column '{wrong}'"):
        dp.count(table, user="user", item="item", rho=1.0, delta=1e-6)


def test_a_column_of_pandas_with_a_missing_integer_names_the_cast_that_keeps_it():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": [1, None], "item": ["a", "b"]})
    with pytest.raises(SchemaError, match="Int64"):
        dp.count(frame, user="user", item="item", rho=1.0, delta=1e-6)
    dp.count(frame.astype({"user": "Int64"}), user="user", item="item", rho=1.0, delta=1e-6)


class Interrupted:
    """A relation during whose scan Ctrl-C is pressed, which DuckDB takes for itself."""

    column_names = ("user", "item", "value")

    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError("Query interrupted")


def test_an_interrupt_that_duckdb_hears_first_stays_one():
    for count in (counted, lambda data: dp.tables.UserItems.from_table(data, user="user", item="item")):
        with pytest.raises(KeyboardInterrupt):
            count(Interrupted())


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
@pytest.mark.usefixtures("interrupts")
def test_duckdb_still_says_what_an_interrupt_is_known_by():
    slow = 'SELECT a.range % 9 AS "user", sum(b.range)::BIGINT AS item FROM range(100000) a, range(3000) b GROUP BY 1'
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            counted(query(slow))
    finally:
        timer.cancel()


def test_a_dict_for_each_row_is_told_from_a_dict_of_columns():
    for rows in ([{"user": 1, "item": "a"}], {"user": "ab", "item": "cd"}, {"user": [1], "item": b"a"}):
        with pytest.raises(ParameterError, match="is one value; give a list or an array for each column"):
            counted(rows)


def test_a_cast_that_fails_names_its_remedy_and_no_cell():
    with pytest.raises(InputError, match="TRY_CAST makes it NULL") as caught:
        counted(query("SELECT 1 AS \"user\", CAST(cell AS INT) AS item FROM (VALUES ('1'), ('secret')) t(cell)"))
    assert "secret" not in str(caught.value)


def test_missing_cells_of_typed_arrays_lose_their_rows():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    masked = np.ma.MaskedArray([7, 8, 9], mask=[False, True, False])
    texts = ["a", None, "c"]
    columns = [
        (masked, {7: 1, 9: 1}),
        (pandas.array([7, None, 9], dtype="Int64"), {7: 1, 9: 1}),
        (pyarrow.array([7, None, 9]), {7: 1, 9: 1}),
        (pyarrow.chunked_array([["a", None], ["c"]]), {"a": 1, "c": 1}),
        (pandas.Series(texts, dtype="string"), {"a": 1, "c": 1}),
        (pytest.importorskip("polars").Series(texts), {"a": 1, "c": 1}),
    ]
    for cells, expected in columns:
        assert counted({"user": [1, 2, 3], "item": cells}) == expected
        assert dict(counted({"user": cells, "item": [5, 5, 5]})) == {5: 2}
        histogram = dp.Histogram.from_pairs([1, 2, 3], cells)
        assert histogram._labels.take(np.arange(2)) == [*expected]
        dp.tables.UserItems.from_pairs([1, 2, 3], cells)


def test_a_set_has_no_order_in_which_it_could_be_a_column():
    for made in (
        lambda: dp.Histogram.from_pairs({1, 2}, ["a", "b"]),
        lambda: dp.tables.UserItems.from_pairs([1, 2], frozenset("ab")),
        lambda: dp.Histogram.from_counts({"a", "b"}, [1, 2], l0=1, linf=1, complete=True),
    ):
        with pytest.raises(ParameterError, match="a set has no order"):
            made()


def test_an_array_of_no_cells_has_its_type():
    pandas = pytest.importorskip("pandas")
    for cells, name in [(np.array([], "S3"), "binary"), (np.array([], "U3"), "string"), (np.array([], int), "int64")]:
        assert dp.Histogram.from_pairs(np.array([], int), cells)._labels.type_name == name
    for none in ([], [None, None]):
        frame = pandas.DataFrame({"user": pandas.Series(range(len(none)), dtype="int64"), "item": none}, dtype=object)
        assert counted(frame) == {}
    sums = ClippedSums(items=(5,), rho=1.0, low=0, high=1)
    for rows in (0, 1):
        table = {name: np.full(rows, 5) for name in ("user", "item", "value")}
        assert len(sums.release(table, user="user", item="item", value="value")) == 1
    odd = {"user": [1, 2], "item": np.array(["a", "\ud800"]), "value": [1, 1]}
    assert len(ClippedSums(items=("a",), rho=1.0, low=0, high=1).release(odd, user="user", item="item", value="value"))


def test_a_column_of_csv_without_a_name_is_no_obstacle(tmp_path):
    assert counted(csv(tmp_path, ",user,item\n0,1,a\n1,2,a\n")) == {"a": 2}
