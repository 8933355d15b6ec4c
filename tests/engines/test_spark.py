"""Spark DataFrames: columns, types, refused data, errors, and Parquet files of the command line."""

import logging
import os
import sys
import traceback

import numpy as np
import pytest
from counting import counted

import discreet as dp
from conftest import SPARKS, spark_session
from discreet import engines
from discreet.engines import spark_session as command_line
from discreet.errors import InputError, ItemTypeError, ParameterError, SchemaError

pytestmark = pytest.mark.spark


classic = pytest.mark.parametrize("spark", ["local[2]"], indirect=True)


@pytest.fixture
def newer():
    """Skip tests of what PySpark 3.5 does not have."""
    pytest.importorskip("pyspark", minversion="4.0", reason="PySpark 4 is not installed")


@pytest.fixture(scope="module", params=["local[2]", "sail"])
def spark(request):
    with spark_session(request.param) as session:
        yield session


def table(session, user="1L", item="'a'", names="`user`, `item`"):
    return session.sql(f"SELECT * FROM VALUES ({user}, {item}) AS t({names})")


@pytest.mark.parametrize(
    "name", ["us er", "us.er", "us`er", 'us"er', "us;er", "us\ner", "us'er", "ü", "select", "c1", "rank"]
)
def test_odd_column_names_are_taken_literally(spark, name):
    odd = table(spark, names="a, b").toDF(name, "item")
    assert counted(odd, user=name) == {"a": 1}
    assert counted(odd, user=name, l0=1, limit=3, only=["a"]) == {"a": 1}


def test_names_that_differ_by_case_are_different_columns(spark):
    both = spark.sql("SELECT 1L AS u, 'lower' AS item, 'upper' AS ITEM")
    assert counted(both, user="u") == {"lower": 1}
    assert counted(both, user="u", item="ITEM") == {"upper": 1}
    with pytest.raises(SchemaError, match="did you mean"):
        counted(both, user="U")


def test_a_repeated_column_name_is_a_schema_error(spark):
    twice = spark.sql("SELECT 1L AS user, 'a' AS item, 'b' AS item")
    with pytest.raises(SchemaError, match="more than one"):
        counted(twice)


@classic
@pytest.mark.parametrize(
    ("cell", "label", "kind"),
    [
        ("1Y", 1, "int64"),
        ("2S", 2, "int64"),
        ("3", 3, "int64"),
        ("9007199254740993L", 2**53 + 1, "int64"),
        ("CAST('a' AS CHAR(3))", "a", "string"),
        ("CAST('a' AS VARCHAR(3))", "a", "string"),
        ("X'00ff'", b"\x00\xff", "binary"),
    ],
)
def test_integers_text_and_bytes_are_items_and_users(spark, cell, label, kind):
    labels, counts, _ = engines.histogram(engines.Table(table(spark, item=cell), user="user", item="item"))
    assert (labels.take(np.arange(1)), counts.tolist(), labels.type_name) == ([label], [1], kind)
    empty = engines.histogram(engines.Table(table(spark, item=cell).filter("false"), user="user", item="item"), l0=1)
    assert (len(empty[1]), empty[0].type_name) == (0, kind)
    assert counted(table(spark, user=cell), l0=2) == {"a": 1}


OTHERS = ["1.0D", "1.0BD", "now()", "array(1)", "map(1, 2)", "struct(1)", "parse_json('1')"]


@classic
@pytest.mark.parametrize("cell", [*OTHERS, "NULL"])
@pytest.mark.usefixtures("newer")
def test_other_column_types_are_refused_before_reading(spark, cell):
    for columns in ({"user": cell}, {"item": cell}):
        with pytest.raises(SchemaError, match=r"cast it to (text or, by try_cast, to integers|a date or to text)"):
            counted(spark.range(1).select().selectExpr(*(f"{columns.get(n, '1')} AS {n}" for n in ("user", "item"))))


@classic
@pytest.mark.usefixtures("newer")
def test_text_with_a_collation_is_compared_by_its_bytes(spark):
    cells = "(1L, 'a' COLLATE UTF8_LCASE), (2L, 'A' COLLATE UTF8_LCASE), (2L, 'a' COLLATE UTF8_LCASE)"
    assert counted(spark.sql(f"SELECT * FROM VALUES {cells} AS t(user, item)")) == {"a": 2, "A": 1}


@classic
def test_text_that_is_not_utf8_is_dropped(spark):
    cells = "(1L, CAST(X'ff41' AS STRING)), (2L, 'a'), (3L, CAST(X'61' AS STRING))"
    rows = spark.sql(f"SELECT * FROM VALUES {cells} AS t(user, item)")
    assert counted(rows) == {"a": 2}
    assert counted(rows, user="item", item="user") == {2: 1, 3: 1}


@classic
def test_rows_are_collected_without_pyarrow(spark, monkeypatch):
    rows = spark.sql("SELECT * FROM VALUES (1L, 'a', X'00'), (2L, 'é', X'01') AS t(user, item, raw)")
    whole = [{"a": 1, "é": 1}, {b"\0": 1, b"\1": 1}]
    assert [counted(rows, item=item, limit=9) for item in ("item", "raw")] == whole
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert [counted(rows, item=item, limit=9) for item in ("item", "raw")] == whole


def test_listed_items_must_have_the_type_of_the_column(spark):
    with pytest.raises(ItemTypeError):
        counted(table(spark), only=[1])
    assert counted(table(spark, item="''"), only=["", "b"]) == {"": 1}
    assert counted(table(spark), only=[]) == {}


@classic
def test_a_pandas_on_spark_frame_is_refused_with_the_remedy(spark):
    class Frame:
        __module__ = "pyspark.pandas.frame"

    with pytest.raises(ParameterError, match="to_spark"):
        counted(Frame())


def test_public_functions_and_plume_read_a_dataframe(spark):
    log = spark.sql("SELECT u.id AS user, concat('i', i.id) AS item FROM range(3000) u CROSS JOIN range(3) i")
    options = {"user": "user", "item": "item", "epsilon": 2.0, "delta": 1e-6}
    assert sorted(dp.count(log, **options).items) == ["i0", "i1", "i2"]
    assert sorted(dp.top_k(log, k=3, **options).items) == ["i0", "i1", "i2"]
    assert dp.select(log, l0=3, **options).items == ["i0", "i1", "i2"]
    plume = dp.Plume(rho=1.0, delta=1e-6, m=3, m_prime=3).release(log, user="user", item="item")
    assert sorted(plume.items) == ["i0", "i1", "i2"]


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize("door", ["spark", "ibis"])
@pytest.mark.parametrize("spark", SPARKS, indirect=True)
def test_an_error_on_a_cell_does_not_show_the_cell(spark, door, capfd, recwarn):
    from pyspark.logger import PySparkLogger
    from pyspark.sql.functions import col

    def opened(rows):
        if door == "spark":
            return rows
        ibis = pytest.importorskip("ibis", reason="Ibis is not installed")
        rows.createOrReplaceTempView("log")
        return ibis.pyspark.connect(spark).table("log")

    logged, log = [], logging.Handler()
    log.emit = logged.append
    cell = "concat('secret-cell-', id)"
    of_sql = spark.sql(f"SELECT id AS user, CAST({cell} AS INT) AS item FROM range(9)")
    of_columns = spark.sql(f"SELECT id AS user, {cell} AS item FROM range(9)")
    failing = [("SQL", opened(of_sql))]
    if door == "spark":
        failing += [("DataFrame", of_columns.select("user", col("item").cast("int")))]
    else:
        texts = opened(of_columns)
        failing += [("DataFrame", texts.mutate(item=texts.item.cast("int32")))]
    budget = dp.Budget(rho=9, delta=1e-5)
    columns = {"user": "user", "item": "item", "budget": budget, "rho": 1}
    for kind, rows in failing:
        PySparkLogger.getLogger(f"{kind}QueryContextLogger").addHandler(log)
        calls = [
            lambda rows=rows: counted(rows),
            lambda rows=rows: dp.count(rows, delta=1e-6, **columns),
            lambda rows=rows: dp.count(rows, delta=1e-6, l0="auto", **columns),
            lambda rows=rows: dp.count(rows, items=[1], l0=1, **columns),
        ]
        for call in calls:
            with pytest.raises(InputError, match=r"use try_cast|check its connection") as caught:
                call()
            assert "secret-cell" not in "".join(traceback.format_exception(caught.value))
    assert logged == []
    assert "secret-cell" not in "".join([*capfd.readouterr(), *(str(warning.message) for warning in recwarn)])
    assert budget.spent.rho == 0
    assert counted(of_columns.select("user", col("item").try_cast("int"))) == {}


@classic
def test_a_worker_without_python_is_an_input_error(spark):
    from pyspark.sql.functions import udf

    before = spark.sparkContext.pythonExec
    spark.sparkContext.pythonExec = "/nowhere/python"
    try:
        made = udf(lambda n: f"item {n}", "string")
        rows = spark.range(9).select("id", made("id").alias("item"))
        with pytest.raises(InputError, match="PYSPARK_PYTHON"):
            counted(rows, user="id")
    finally:
        spark.sparkContext.pythonExec = before


@classic
def test_an_executor_that_dies_is_an_input_error(spark):
    from pyspark.sql.functions import udf

    rows = spark.range(9).select("id", udf(lambda n: os._exit(1), "string")("id").alias("item"))
    with pytest.raises(InputError, match="Executors"):
        counted(rows, user="id")


def written(path, **columns):
    pyarrow = pytest.importorskip("pyarrow")
    path.parent.mkdir(parents=True, exist_ok=True)
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)


def on_spark(session, path, item="item"):
    columns = ["user", *([item] if isinstance(item, str) else item)]
    return counted(command_line._table(session, str(path), columns), item=item)


ODD = ["a%20b", "a?b", "a=b\\c", "%FF", "é#[x]{y}:+ ", "", "__HIVE_DEFAULT_PARTITION__", "01", "1", "a\\x", "a\\y"]
ODD += ["%C3%A9", "%zz", "a+b", "a%2Bb", "*"]


@classic
@pytest.mark.usefixtures("newer")
def test_folders_are_columns_as_of_the_local_engine(spark, tmp_path):
    for user, name in enumerate(ODD):
        written(tmp_path / "odd" / f"day={name}" / "k.`=x" / "0.parquet", user=[user], item=["a"], raw=["b"])
    expected = counted(str(tmp_path / "odd"), item=["day", "raw", "k.`"])
    assert len(expected) == len(ODD) - 3
    assert on_spark(spark, tmp_path / "odd", item=["day", "raw", "k.`"]) == expected
    assert on_spark(spark, tmp_path / "odd") == {"a": len(ODD)}
    written(tmp_path / "few" / "day=a\\x" / "0.parquet", user=[1])
    written(tmp_path / "few" / "day=ax" / "0.parquet", user=[2])
    for path in ("odd/day=a?b", "few/day=a\\*/*.parquet"):
        assert on_spark(spark, tmp_path / path, item="day") == counted(str(tmp_path / path), item="day")


def test_no_folder_gives_one_person_to_many_users(spark, tmp_path):
    for shop in range(50):
        written(tmp_path / "t" / f"User=shop{shop}" / "day=1" / "0.parquet", user=[7])
    for path in ("t", "t/User=shop1", "t/User=shop1/day=1/0.parquet"):
        with pytest.raises(SchemaError, match=r"the column 'user' .* in the names of folders; rename"):
            on_spark(spark, tmp_path / path, item="day")


@classic
@pytest.mark.usefixtures("newer")
def test_files_win_over_a_folder_of_the_same_spelling(spark, tmp_path):
    for shop in range(3):
        written(tmp_path / f"user=shop{shop}" / "day=1" / "0.parquet", user=[7])
    assert on_spark(spark, tmp_path, item="day") == on_spark(spark, tmp_path / "*" / "*", item="day") == {"1": 1}
    written(tmp_path / "user=shop3" / "day=1" / "Day=2" / "0.parquet", user=[7])
    with pytest.raises(SchemaError, match="same key"):
        on_spark(spark, tmp_path / "user=shop3", item="day")


@classic
@pytest.mark.parametrize("log", ["_delta_log/0.json", "metadata/v1.metadata.json", ".hoodie/x"])
def test_a_log_above_the_files_is_refused(spark, tmp_path, log):
    for name in ("day=1/0.parquet", log):
        written(tmp_path / name, user=[1], item=["a"])
    for path in (tmp_path, f"file:{tmp_path}/{{day=[1],x}}/*"):
        with pytest.raises(InputError, match="keeps files of deleted rows"):
            on_spark(spark, path)
    # Behind an address such as hdfs://, Spark looks for the log.
    with pytest.raises(InputError, match="the Spark DataFrame of the table"):
        command_line._require_no_log(spark, spark.read.parquet(f"{tmp_path}/day=1").inputFiles())
    (tmp_path / log).unlink()
    (tmp_path / log).parent.rmdir()
    command_line._require_no_log(spark, spark.read.parquet(f"{tmp_path}/day=1").inputFiles())


@classic
def test_files_of_different_types_are_refused_before_reading(spark, tmp_path):
    written(tmp_path / "0.parquet", user=[1], item=["a"])
    written(tmp_path / "1.parquet", user=[1], item=[2])
    with pytest.raises(InputError, match="the same types in all files"):
        command_line._table(spark, str(tmp_path), ["user", "item"])


@classic
@pytest.mark.usefixtures("newer")
def test_odd_cells_of_files_are_those_of_the_local_engine(spark, tmp_path):
    """One row decides neither between a release and an error, nor the label of another row."""
    pyarrow = pytest.importorskip("pyarrow")
    texts = [b"a", b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"a\0", b"", b"x" * 8192, b"x" * 8193, b"y" * 2**24, None]
    blobs = pyarrow.array(texts, pyarrow.large_binary())
    columns = {
        "text": pyarrow.LargeStringArray.from_buffers(len(texts), *blobs.buffers()[1:], blobs.buffers()[0]),
        "blob": blobs,
        "date": pyarrow.array([2**31 - 1, -(2**31), 2932896, 2932897, -719162, -719163, 0, 1, 2, None]).cast("int32"),
        "small": pyarrow.array([2**32 - 1, 0, *range(7), None], pyarrow.uint32()),
        "large": pyarrow.array([2**63 - 1, -(2**63), *range(7), None]),
    }
    columns["date"] = columns["date"].cast(pyarrow.date32())
    path = tmp_path / "odd.parquet"
    written(path, user=[*range(len(texts))], **columns)
    for item in ("text", "blob", "date", "small", "large", [*columns]):
        assert on_spark(spark, path, item) == counted(str(path), item=item), item


@pytest.mark.parametrize("spark", ["sail"], indirect=True)
@pytest.mark.parametrize("item", ["large", ["large", "text"]])
def test_unsigned_integers_too_large_for_sail_are_left_out(spark, item, tmp_path):
    pyarrow, path = pytest.importorskip("pyarrow"), tmp_path / "log.parquet"
    large = pyarrow.array([2**64 - 1, 2**63, 2**63 - 1, 0, None], pyarrow.uint64())
    written(path, user=[*range(5)], large=large, text=["a"] * 5)
    rows = spark.read.parquet(str(path))
    kept = [2**63 - 1, 0]
    assert counted(rows, item=item) == dict.fromkeys(kept if item == "large" else [(cell, "a") for cell in kept], 1)
    assert counted(rows, user="large", item="text", l0=1) == {"a": 2}


def test_a_bound_is_found_and_measured_on_spark(spark):
    rows = spark.sql("SELECT u AS user, i AS item FROM RANGE(900) a(u) CROSS JOIN RANGE(4) b(i) WHERE i < 2 OR u < 90")
    bound = dp.mechanisms.CountsWithFoundBound.from_rho(rho=4, delta=1e-6, l0_share=0.5, percentile=80)
    found = dp.count(rows, user="user", item="item", mechanism=bound)
    assert found.l0 in (2, 3)
    assert found.kept_share is not None
    given = dp.count(rows, user="user", item="item", rho=400, delta=1e-6, l0=2, kept_share=True)
    assert abs(given.kept_share.value - 1800 / 1980) < 6 * given.kept_share.sigma
