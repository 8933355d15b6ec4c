"""The local engine: files, frames and queries, and errors about invalid ones."""

import _thread
import os
import signal
import threading
import time
from contextlib import suppress

import duckdb
import numpy as np
import pytest
from counting import WHOLE, counted, csv

import discreet as dp
from discreet.engines import local, validated
from discreet.engines.sql import query
from discreet.engines.validated import interrupted_with_call, interruptible
from discreet.errors import DiscreetError, InputError, ParameterError, SchemaError
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
def test_odd_file_names_are_taken_literally(parquet, tmp_path, name):
    parquet.rename(tmp_path / name)
    assert counted(tmp_path / name) == COUNTS


def test_a_misspelt_column_gets_the_near_miss(parquet):
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    rows = {"user": [1], "item": [1]}
    for table in (parquet, rows, polars.DataFrame(rows), polars.LazyFrame(rows), pandas.DataFrame(rows)):
        with pytest.raises(SchemaError, match="did you mean 'user'"):
            counted(table, user="usr")
        with pytest.raises(SchemaError, match="did you mean 'item'"):
            counted(table, item="Item")


@pytest.mark.parametrize("rest", ["GROUP BY 1", "HAVING true", "GROUP BY alice", "AS t WHERE sum(t) = 1"])
@pytest.mark.parametrize("cell", ["secret", "a secret", "the\nsecret", 'a""b secret', '""secret'])
def test_an_error_about_a_query_does_not_show_a_files_first_line(tmp_path, rest, cell):
    path = tmp_path / "log.csv"
    path.write_text(f'"{cell}",alice,"{cell} two"\nbob,other,more\ncarol,third,more\n')
    with pytest.raises(SchemaError, match="query") as caught:
        query(f"SELECT * FROM '{path}' {rest}")
    assert "secret" not in str(caught.value)


def test_an_error_about_a_query_quotes_its_wrong_part(tmp_path):
    path = csv(tmp_path, "user,item\n1,a\n")
    log = f"read_csv('{path}', {WHOLE})"
    for sql, named in [(f"SELECT usr FROM {log}", "usr"), ("SELEC 1", "SELEC"), ("SELECT 1 FROM Nosuch", "Nosuch")]:
        with pytest.raises(SchemaError, match=named):
            query(sql)


def test_the_first_line_of_a_file_is_not_suggested_as_a_name(tmp_path):
    path = csv(tmp_path, "users,items\nbob,x\ncarol,y\n")
    pandas = pytest.importorskip("pandas")
    for table in (query(f"SELECT * FROM read_csv('{path}', {WHOLE})"), pandas.read_csv(path)):
        with pytest.raises(SchemaError, match="no columns 'user' and 'item'") as caught:
            counted(table)
        assert "users" not in str(caught.value)
        with pytest.raises(SchemaError, match="did you mean 'users'"):
            counted(table, item="items")


def test_errors_do_not_keep_the_errors_they_replace(tmp_path):
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


@pytest.mark.parametrize("wrapped", [lambda r: r, lambda r: [r]])
def test_mechanisms_that_read_twice_refuse_readers(wrapped):
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


@pytest.mark.parametrize("few", [0, 1, 5000])
@pytest.mark.parametrize("is_first", [True, False])
def test_relations_of_one_connection_are_counted_in_a_list(few, is_first):
    connection, other = local.connect(), local.connect()
    connection.execute("CREATE TABLE log AS SELECT range AS \"user\", 'a' AS item FROM range(10000)")
    connection.execute(f"CREATE TABLE few AS SELECT (-range)::INT AS item, 'b' AS \"user\" FROM range(1, {few + 1})")
    renamed = connection.sql('SELECT item AS "user", "user" AS item FROM few')
    tables = [renamed, connection.table("log")] if is_first else [connection.table("log"), renamed]
    tables.insert(1, other.sql("SELECT range AS \"user\", 'c' AS item FROM range(3)"))
    assert counted(tables) == {"a": 10_000, "c": 3, **({"b": few} if few else {})}
    assert connection.sql("SELECT count(*) FROM log").fetchall() == [(10_000,)]


@pytest.mark.parametrize("rows", [0, 10])
@pytest.mark.parametrize("kind", ["VARCHAR", "UBIGINT"])
def test_relations_with_columns_of_other_types_are_refused(rows, kind):
    connection = local.connect()
    log, other = (
        connection.sql(f"SELECT range::{kind} AS \"user\", 'a' AS item FROM range({many})")
        for kind, many in (("BIGINT", 10), (kind, rows))
    )
    with pytest.raises(SchemaError, match="different types"):
        counted([log, other])


@pytest.mark.parametrize("rows", [0, 10])
def test_a_reader_and_a_relation_in_a_list_are_refused(rows):
    pytest.importorskip("pyarrow")
    connection = local.connect()
    log = connection.sql(ROWS)
    reader = connection.sql(f"SELECT range AS \"user\", 'a' AS item FROM range({rows})").to_arrow_reader()
    for tables in ([reader, log], [log, reader]):
        with pytest.raises(ParameterError, match="read_all"):
            counted(tables)


@pytest.mark.parametrize("beside", ["reader", "relation"])
def test_text_that_is_not_utf8_is_dropped_in_a_list_too(tmp_path, beside):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    items = pyarrow.array([b"a", b"a", b"\xff"])
    text = pyarrow.Array.from_buffers(pyarrow.string(), 3, items.buffers())
    parquet.write_table(pyarrow.table({"user": [1, 2, 3], "item": text}), tmp_path / "log.parquet")
    connection = local.connect()
    table = pyarrow.table({"user": [7], "item": ["a"]})
    for _ in range(3):
        more = table.to_reader() if beside == "reader" else connection.sql("SELECT 7 AS \"user\", 'a' AS item")
        assert counted([tmp_path / "log.parquet", more]) == {"a": 3}
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


VERBS = {
    "count": lambda data, budget: dp.count(data, user="user", item="item", l0=1, rho=1, delta=1e-6, budget=budget),
    "top_k": lambda data, budget: dp.top_k(data, user="user", item="item", k=1, rho=1, delta=1e-6, budget=budget),
    "select": lambda data, budget: dp.select(data, user="user", item="item", l0=1, rho=1, delta=1e-6, budget=budget),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_source_that_was_read_is_refused_uncharged(verb):
    pyarrow = pytest.importorskip("pyarrow")
    reader = pyarrow.table({"user": range(100), "item": ["a"] * 100}).to_reader()
    iterators = {"user": iter([]), "item": iter([])}
    budget = dp.Budget(rho=10, delta=1e-4)
    with pytest.raises(ParameterError, match="give each reader once"):
        verb([reader, reader], budget)
    verb(reader, budget)
    spent = budget.spent.rho
    assert spent > 0
    for source in (reader, [reader], iterators):
        with pytest.raises(ParameterError, match="once"):
            verb(source, budget)
    assert budget.spent.rho == spent


def test_a_closed_connection_is_an_input_error():

    connection = duckdb.connect()
    relation = connection.sql(ROWS)
    connection.close()
    with pytest.raises(InputError):
        counted(relation)


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


def test_lists_of_incompatible_tables_are_refused(parquet, tmp_path):
    with pytest.raises(SchemaError, match="different types"):
        counted([parquet, {"user": ["1"], "item": ["a"]}])
    with pytest.raises(SchemaError, match="did you mean 'user'"):
        counted([parquet, {"usr": [1], "item": ["a"]}], user="usr")
    with pytest.raises(InputError, match="different formats"):
        counted([parquet, csv(tmp_path, "user,item\n1,a\n")])
    with pytest.raises(ParameterError, match="table"):
        counted([])


@pytest.mark.parametrize(("wrong", "values"), [("user", np.array([1.5, 2.5])), ("item", np.array([1j, 2j]))])
def test_an_error_names_the_dict_column_of_a_wrong_type(wrong, values):
    for right in (["a", "a"], np.full(2, "2026-01-31", "datetime64[ns]")):
        table = {"user": right, "item": right} | {wrong: values}
        with pytest.raises(SchemaError, match=f"column ['\"]{wrong}"):
            dp.count(table, user="user", item="item", rho=1.0, delta=1e-6)


def test_pandas_integers_with_missing_cells_need_a_cast():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": [1, None], "item": ["a", "b"]})
    with pytest.raises(SchemaError, match="Int64"):
        dp.count(frame, user="user", item="item", rho=1.0, delta=1e-6)
    dp.count(frame.astype({"user": "Int64"}), user="user", item="item", rho=1.0, delta=1e-6)


class Failing:
    """A relation whose scan fails, after a signal or without one."""

    column_names = ("user", "item", "value")

    def __init__(self, by=None):
        self.by = by

    def __arrow_c_stream__(self, requested_schema=None):
        if self.by is not None:
            with suppress(BaseException):
                signal.raise_signal(self.by)
        raise RuntimeError("Query interrupted")


def test_an_error_about_an_array_of_a_dict_names_the_dict():
    class Array(list):
        def to_pylist(self):
            raise RuntimeError("secret")

    with pytest.raises(InputError, match="cannot read the dict of arrays; check the data and its source"):
        counted({"user": [1], "item": Array([1])})


NAMED = {"user": "user", "item": "item"}
DOORS = {
    "count": counted,
    "items": lambda data: dp.tables.UserItems.from_table(data, **NAMED),
    "sum": lambda data: dp.sum(data, **NAMED, value="value", bounds=(0, 1), items=[1], rho=1.0),
}


def exits(number, frame):
    raise SystemExit(143)


@pytest.fixture
def exit_at_sigterm(interrupts):
    """Raise SystemExit at SIGTERM, as servers do."""
    before = signal.signal(signal.SIGTERM, exits)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("exit_at_sigterm")
@pytest.mark.parametrize("door", DOORS)
def test_an_interrupt_in_a_library_stays_an_interrupt(door):
    with pytest.raises(KeyboardInterrupt):
        DOORS[door](Failing(signal.SIGINT))
    with pytest.raises(SystemExit) as ended:
        DOORS[door](Failing(signal.SIGTERM))
    assert ended.value.code == 143
    with pytest.raises(DiscreetError):  # whatever its text says
        DOORS[door](Failing())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interrupts")
def test_no_connection_is_interrupted_after_a_call():
    class Slow:
        def interrupt(self):
            began.set()
            time.sleep(0.1)
            ended.append(True)

    began, ended = threading.Event(), []
    with suppress(KeyboardInterrupt), interruptible():
        interrupted_with_call(Slow())
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert began.wait(60)
    before = len(ended)
    assert before > 0
    time.sleep(0.1)
    assert (len(ended), validated._calls) == (before, set())


@pytest.mark.usefixtures("interrupts")
def test_a_connection_is_destroyed_by_the_main_thread():
    """A helper thread that destroys a connection of DuckDB while Python ends makes the process abort."""

    class Connection:
        def interrupt(self):
            began.set()
            gate.wait(60)

        def __del__(self):
            destroyed.append(threading.current_thread())

    began, gate, destroyed = threading.Event(), threading.Event(), []
    with suppress(KeyboardInterrupt), interruptible():
        connection = Connection()
        interrupted_with_call(connection)
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert began.wait(60)
        del connection  # while the helper uses it
        gate.set()
    assert destroyed == [threading.main_thread()]


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.usefixtures("exit_at_sigterm")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("spent", "how"), [(0.05, signal.SIGINT), (0.1, signal.SIGTERM)])
def test_an_interrupt_ends_a_duckdb_query(spent, how, threads):
    # Alone, DuckDB hears of no signal with one thread, and one in four of these queries never ends with two.
    connection = duckdb.connect(config={"threads": threads})
    # A handler that need not end the call is run when DuckDB returns, so that query takes two seconds.
    pairs = "range(1000000) a, range(10000000) b" if how == signal.SIGINT else "range(2000) a, range(1000000) b"
    endless = f'SELECT a.range % 9 AS "user", sum(b.range)::BIGINT AS item FROM {pairs} GROUP BY 1'
    before, over = time.process_time(), threading.Event()

    def counts():
        thread.start()
        counted(connection.sql(endless))

    def interrupt():
        """Interrupt the query once it has used some CPU time."""
        while time.process_time() < before + spent:
            if over.wait(0.01):
                return
        _thread.interrupt_main(how)

    thread = threading.Thread(target=interrupt)
    try:
        with pytest.raises(KeyboardInterrupt if how == signal.SIGINT else SystemExit):
            counts()
    finally:
        over.set()
        thread.join()


def test_a_dict_per_row_is_refused():
    for rows in ([{"user": 1, "item": "a"}], {"user": "ab", "item": "cd"}, {"user": [1], "item": b"a"}):
        with pytest.raises(ParameterError, match="is one value; give a list or an array for each column"):
            counted(rows)


def test_an_error_about_a_cast_gives_the_remedy_and_no_cell():
    with pytest.raises(InputError, match="TRY_CAST makes it NULL") as caught:
        counted(query("SELECT 1 AS \"user\", CAST(cell AS INT) AS item FROM (VALUES ('1'), ('secret')) t(cell)"))
    assert "secret" not in str(caught.value)


def test_rows_with_missing_cells_in_typed_arrays_are_dropped():
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


def test_empty_arrays_keep_their_type():
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


def test_a_csv_column_without_a_name_is_ignored(tmp_path):
    assert counted(csv(tmp_path, ",user,item\n0,1,a\n1,2,a\n")) == {"a": 2}
