"""Dates, times, booleans and whole decimals as items: text in a release, with their type in frames."""

import datetime as dt
import decimal
import uuid

import duckdb
import numpy as np
import pytest
from counting import counted

import discreet as dp
from discreet.errors import SchemaError

DAY, TIME = dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 12, 0, 0, 500_000)
ZONED = dt.datetime(2026, 1, 31, 13, tzinfo=dt.timezone(dt.timedelta(hours=1)))
CELLS = {
    "date": (DAY, "2026-01-31"),
    "timestamp[us]": (TIME, "2026-01-31T12:00:00.500000"),
    "timestamp[us, UTC]": (ZONED, "2026-01-31T12:00:00Z"),
    "bool": (True, "true"),
}
FORMS = ["parquet", "duckdb", "pyarrow", "polars", "pandas", "list", "numpy"]


def table(form, cell, tmp_path, rows=3000):
    users, cells = [*range(rows), 0], [cell] * rows + [None]
    if form == "list":
        return {"user": users, "item": cells}
    if form == "numpy":
        if getattr(cell, "tzinfo", None) is not None:
            pytest.skip("numpy has no zones")
        if isinstance(cell, bool):
            return {"user": np.arange(rows), "item": np.full(rows, cell)}
        kind = "datetime64[us]" if isinstance(cell, dt.datetime) else "datetime64[D]"
        return {"user": np.array(users), "item": np.array(cells, kind)}
    pyarrow = pytest.importorskip("pyarrow")
    found = pyarrow.table({"user": users, "item": cells})
    if form == "pyarrow":
        return found
    if form == "polars":
        return pytest.importorskip("polars").from_arrow(found)
    if form == "pandas":
        if isinstance(cell, bool):
            return found.to_pandas().astype({"item": "boolean"})
        return found.to_pandas(date_as_object=False)
    path = str(tmp_path / "log.parquet")
    pytest.importorskip("pyarrow.parquet").write_table(found, path)
    return path if form == "parquet" else duckdb.connect().read_parquet(path)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("form", FORMS)
def test_items_keep_their_type_in_a_release(tmp_path, form, kind):
    cell, text = CELLS[kind]
    data = table(form, cell, tmp_path)
    if form == "pandas" and kind == "date":
        kind, text, cell = "timestamp[us]", f"{text}T00:00:00", dt.datetime(2026, 1, 31)  # pandas has no dates
    assert counted(data) == {text: 3000}
    release = dp.count(data, user="user", item="item", rho=1, delta=1e-6)
    assert release.items == [text]
    assert release.item_type == (("item", kind),)
    assert release.to_arrow()["item"].to_pylist() == [cell.astimezone(dt.UTC) if kind.endswith("UTC]") else cell]
    assert release.to_pandas()["item"].dtype.kind == ("b" if kind == "bool" else "M")
    assert release.to_polars()["item"].dtype != pytest.importorskip("polars").String


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "parquet"])
def test_files_of_a_release_are_verified(tmp_path, kind, suffix):
    cell, text = CELLS[kind]
    release = dp.count(table("list", cell, tmp_path), user="user", item="item", rho=1, delta=1e-6)
    path = tmp_path / f"rows.{suffix}"
    release.write(path, certificate=True)
    assert dp.verify(path).digest == release.digest
    if suffix != "parquet":
        assert text in path.read_text()


@pytest.mark.parametrize("kind", CELLS)
def test_an_empty_release_has_the_same_schema(tmp_path, kind):
    data = table("pyarrow", CELLS[kind][0], tmp_path)
    empty = dp.count(data.slice(0, 5), user="user", item="item", rho=1, delta=1e-6)
    full = dp.count(data, user="user", item="item", rho=1, delta=1e-6)
    assert len(empty) == 0
    assert empty.to_arrow().schema == full.to_arrow().schema
    assert list(empty.to_pandas().dtypes) == list(full.to_pandas().dtypes)


def test_nanoseconds_are_distinct_items(tmp_path):
    moments = np.array(["2026-01-31T12:00:00.000000001", "2026-01-31T12:00:00.000000002"], "datetime64[ns]")
    data = {"user": [1, 2], "item": moments}
    assert counted(data) == {f"{moment}": 1 for moment in moments.astype(str)}
    log = {"user": np.arange(6000), "item": np.repeat(moments, 3000)}
    release = dp.count(log, user="user", item="item", rho=1, delta=1e-6)
    assert sorted(release.to_pandas()["item"].to_numpy().tolist()) == moments.astype(np.int64).tolist()
    release.write(tmp_path / "rows.parquet", certificate=True)
    assert dp.verify(tmp_path / "rows.parquet").digest == release.digest


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_floats_are_refused_with_the_reason(name):
    pyarrow = pytest.importorskip("pyarrow")
    floats = pyarrow.nulls(1, getattr(pyarrow, name)())
    other = pyarrow.table({"user": [1], "item": floats, "page": ["a"]})
    for columns in ({"item": "item"}, {"item": ["item", "page"]}, {"user": "item", "item": "page"}):
        with pytest.raises(SchemaError, match="floats are no labels"):
            counted(other, **columns)
    with pytest.raises(SchemaError, match="floats are no labels"):
        counted({"user": [1], "item": np.ones(1)})
    with pytest.raises(SchemaError, match="floats are no labels"):
        counted(pytest.importorskip("pandas").DataFrame({"user": [1], "item": [0.5]}))


def test_whole_decimals_are_integers():
    pyarrow = pytest.importorskip("pyarrow")
    cells = [decimal.Decimal(5), decimal.Decimal(-7), None, decimal.Decimal(5)]
    data = pyarrow.table({"user": [1, 2, 3, 4], "item": pyarrow.array(cells, pyarrow.decimal128(18, 0))})
    assert counted(data) == {5: 2, -7: 1}
    wide = pyarrow.table({"user": pyarrow.array(cells, pyarrow.decimal128(38, 0)), "item": ["a"] * 4})
    assert counted(wide) == {"a": 2}
    with pytest.raises(SchemaError, match="may not fit 64 bits"):
        counted(wide, user="item", item="user")
    with pytest.raises(SchemaError, match="cast it"):
        counted(pyarrow.table({"user": [1], "item": pyarrow.array([decimal.Decimal("1.5")])}))


def test_dictionaries_of_dates_are_dates():
    pyarrow = pytest.importorskip("pyarrow")
    days = pyarrow.array([DAY, None, DAY], pyarrow.date32())
    data = pyarrow.table({"user": [1, 2, 3], "item": pyarrow.DictionaryArray.from_arrays([0, 1, 2], days)})
    assert counted(data) == {"2026-01-31": 2}


def test_years_of_more_than_four_digits_are_skipped():
    pyarrow = pytest.importorskip("pyarrow")
    days = pyarrow.array([-719_163, -719_162, 2_932_896, 2_932_897, 2**31 - 1], pyarrow.int32()).cast(pyarrow.date32())
    assert counted(pyarrow.table({"user": range(5), "item": days})) == {"0001-01-01": 1, "9999-12-31": 1}


def test_objects_of_pandas_are_text():
    pandas = pytest.importorskip("pandas")
    cells = [DAY, TIME, pandas.NaT, uuid.UUID(int=7), pandas.Period("2026-01"), True, 1.5]
    frame = pandas.DataFrame({"user": range(7), "item": pandas.Series(cells, dtype=object)})
    expected = ["2026-01-31", "2026-01-31T12:00:00.500000", str(uuid.UUID(int=7)), "2026-01", "true"]
    assert counted(frame) == dict.fromkeys(expected, 1)
    periods = pandas.DataFrame({"user": [1], "item": pandas.period_range("2026-01", periods=1, freq="M")})
    assert counted(periods) == {"2026-01": 1}


def test_polars_integers_of_128_bits_are_refused_with_a_remedy():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"user": [1], "item": polars.Series([1], dtype=polars.Int128)})
    with pytest.raises(SchemaError, match="cast it to Int64"):
        counted(frame)


def test_streams_take_no_dates():
    stream = dp.Stream(dp.BinaryMechanism.from_rho(rho=1, delta=1e-6, horizon=8, l0=1))
    with pytest.raises(SchemaError, match="integers, text or bytes"):
        stream.step({"user": [1], "item": [DAY]}, user="user", item="item")


def test_mixed_lists_are_refused():
    for cells in ([True, 1, "x"], [DAY, TIME], [TIME, ZONED], [DAY, "x"]):
        with pytest.raises(SchemaError):
            counted({"user": [1] * len(cells), "item": cells})


@pytest.mark.parametrize("is_cast", [True, False])
def test_decimals_beyond_64_bits_of_an_unsafe_cast_are_skipped_in_silence(is_cast):
    pyarrow = pytest.importorskip("pyarrow")
    cells = [decimal.Decimal(10**30)] * 3000 + [decimal.Decimal(-(10**30))] + [decimal.Decimal(5)] * 4000
    wide, narrow = pyarrow.array(cells, pyarrow.decimal128(38, 0)), pyarrow.decimal128(18, 0)
    forged = pyarrow.Array.from_buffers(narrow, len(wide), wide.buffers())
    items = wide.cast(narrow, safe=False) if is_cast else forged
    data = pyarrow.table({"user": range(len(cells)), "item": items, "page": ["home"] * len(cells)})
    budget = dp.Budget(rho=2, delta=1e-5)
    assert dp.count(data, user="user", item="item", rho=1, delta=1e-6, budget=budget).items == [5]
    pairs = dp.count(data, user="user", item=["item", "page"], rho=1, delta=1e-6, budget=budget)
    assert pairs.items == [(5, "home")]
    assert counted(data.set_column(0, "user", wide), item="page") == {"home": 3}
