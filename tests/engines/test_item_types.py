"""Dates, times, booleans and whole decimals as items: text in a release, with their type in frames."""

import collections
import datetime as dt
import decimal
import enum
import math
import sys
import uuid

import duckdb
import numpy as np
import pytest
from counting import clipped_sums, counted, read_values
from pairs import as_dict

import discreet as dp
from discreet.errors import InputError, ItemTypeError, ParameterError, SchemaError
from discreet.formats import RELEASED, TEXTS
from discreet.tables import Histogram, UserItems

pandas, pyarrow, polars = map(pytest.importorskip, ("pandas", "pyarrow", "polars"))
parquet = pytest.importorskip("pyarrow.parquet")
compute = pytest.importorskip("pyarrow.compute")
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
    found = pyarrow.table({"user": users, "item": cells})
    if form == "pyarrow":
        return found
    if form == "polars":
        return polars.from_arrow(found)
    if form == "pandas":
        if isinstance(cell, bool):
            return found.to_pandas().astype({"item": "boolean"})
        return found.to_pandas(date_as_object=False)
    path = str(tmp_path / "log.parquet")
    parquet.write_table(found, path)
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
    assert release.to_polars()["item"].dtype != polars.String


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("suffix", RELEASED)
def test_files_of_a_release_are_verified(tmp_path, kind, suffix):
    cell, text = CELLS[kind]
    release = dp.count(table("list", cell, tmp_path), user="user", item="item", rho=1, delta=1e-6)
    path = tmp_path / f"rows.{suffix}"
    release.write(path, certificate=True)
    assert dp.verify(path).digest == release.digest
    if suffix in TEXTS:
        assert text in path.read_text()


@pytest.mark.parametrize("kind", CELLS)
def test_an_empty_release_has_the_same_schema(tmp_path, kind):
    data = table("pyarrow", CELLS[kind][0], tmp_path)
    empty = dp.count(data.slice(3000), user="user", item="item", rho=1, delta=1e-6)
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
    floats = pyarrow.nulls(1, getattr(pyarrow, name)())
    other = pyarrow.table({"user": [1], "item": floats, "page": ["a"]})
    for columns in ({"item": "item"}, {"item": ["item", "page"]}, {"user": "item", "item": "page"}):
        with pytest.raises(SchemaError, match="floats are no labels"):
            counted(other, **columns)
    with pytest.raises(SchemaError, match="floats are no labels"):
        counted({"user": [1], "item": np.ones(1)})
    with pytest.raises(SchemaError, match="floats are no labels"):
        counted(pandas.DataFrame({"user": [1], "item": [0.5]}))


ARROW = {"time64": ("us",), "time32": ("s",), "duration": ("s",), "timestamp": ("ms", "UTC")}
ARROW |= {"decimal32": (5, 0), "decimal64": (12, 2), "decimal128": (38, 0), "decimal256": (40, 0)}
ARROW |= dict.fromkeys(("float16", "int8", "string", "bool_", "month_day_nano_interval"), ())
"""Types of Arrow, with their parameters."""


def refused(call, *given, **more):
    try:
        call(*given, **more)
    except SchemaError:
        return True
    return False


@pytest.mark.parametrize("kind", ARROW)
def test_an_array_in_a_dict_is_refused_by_its_type_as_a_column_is(kind):
    typed = pyarrow.nulls(2, getattr(pyarrow, kind)(*ARROW[kind]))
    arrays = [typed, pandas.Series(typed, dtype=pandas.ArrowDtype(typed.type))]
    if kind in ("time64", "duration", "decimal128", "int8", "string", "bool_"):
        arrays.append(polars.Series(typed))
    plain, summed = {"user": [1, 2], "item": ["a", "b"]}, {"columns": ("user", "item", "ts"), "items": ["a"]}
    for column in ("user", "item", "ts"):
        table = {**plain, "ts": [None, None], column: typed}
        times = {"time": "ts", "every": "1d"} if column == "ts" else {}
        expected = refused(counted, pyarrow.table(table), **times)
        sums = refused(clipped_sums, pyarrow.table(table), bounds=(0, 1), resolution=1, **summed)
        for array in arrays:
            assert refused(counted, {**table, column: array}, **times) == expected, (column, type(array))
            assert refused(clipped_sums, {**table, column: array}, bounds=(0, 1), resolution=1, **summed) == sums
            if column != "ts":
                pair = {**plain, column: array}
                assert refused(Histogram.from_pairs, pair["user"], pair["item"]) == expected


def test_whole_decimals_are_integers():
    cells = [decimal.Decimal(5), decimal.Decimal(-7), None, decimal.Decimal(5)]
    data = pyarrow.table({"user": [1, 2, 3, 4], "item": pyarrow.array(cells, pyarrow.decimal128(18, 0))})
    assert counted(data) == {5: 2, -7: 1}
    wide = pyarrow.table({"user": pyarrow.array(cells, pyarrow.decimal128(38, 0)), "item": ["a"] * 4})
    series = polars.Series(wide["user"])
    for same in (wide, {"user": wide["user"], "item": ["a"] * 4}, {"user": series, "item": ["a"] * 4}):
        assert counted(same) == {"a": 2}
        with pytest.raises(SchemaError, match="may not fit 64 bits"):
            counted(same, user="item", item="user")
    with pytest.raises(SchemaError, match="cast it"):
        counted(pyarrow.table({"user": [1], "item": pyarrow.array([decimal.Decimal("1.5")])}))


def test_dictionaries_of_dates_are_dates():
    days = pyarrow.array([DAY, None, DAY], pyarrow.date32())
    data = pyarrow.table({"user": [1, 2, 3], "item": pyarrow.DictionaryArray.from_arrays([0, 1, 2], days)})
    assert counted(data) == {"2026-01-31": 2}


def test_years_of_more_than_four_digits_are_skipped():
    days = pyarrow.array([-719_163, -719_162, 2_932_896, 2_932_897, 2**31 - 1], pyarrow.int32()).cast(pyarrow.date32())
    assert counted(pyarrow.table({"user": range(5), "item": days})) == {"0001-01-01": 1, "9999-12-31": 1}


def test_objects_of_pandas_are_text():
    cells = [DAY, TIME, pandas.NaT, uuid.UUID(int=7), pandas.Period("2026-01"), True, 1.5]
    frame = pandas.DataFrame({"user": range(7), "item": pandas.Series(cells, dtype=object)})
    expected = ["2026-01-31", "2026-01-31T12:00:00.500000", str(uuid.UUID(int=7)), "2026-01", "true"]
    assert counted(frame) == dict.fromkeys(expected, 1)


def test_polars_integers_of_128_bits_are_refused_with_a_remedy():
    frame = polars.DataFrame({"user": [1], "item": polars.Series([1], dtype=polars.Int128)})
    with pytest.raises(SchemaError, match="cast it to Int64"):
        counted(frame)


def test_streams_take_no_dates():
    stream = dp.Stream(dp.BinaryMechanism.from_rho(rho=1, delta=1e-6, horizon=8, l0=1))
    with pytest.raises(SchemaError, match="integers, text or bytes"):
        stream.step({"user": [1], "item": np.array([DAY], "M8[D]")}, user="user", item="item")


def arrow_type(name):
    stem, _, unit = (name or "").partition("_")
    return getattr(pyarrow, stem)(*[unit][: len(unit)]) if stem else None


def doors(cells, kind, tmp_path):
    """Yield the same column in tables of every form: lists, arrays and frames of objects, and typed ones."""
    users = [*range(len(cells))]
    objects = np.array([*cells, None], object)[:-1]
    yield "list", {"user": users, "item": cells}
    yield "tuple", {"user": users, "item": tuple(cells)}
    yield "objects of numpy", {"user": users, "item": objects}
    yield "masked objects", {"user": users, "item": np.ma.array(objects, mask=[cell is None for cell in cells])}
    series = pandas.Series(objects, dtype=object)
    yield "objects of pandas", pandas.DataFrame({"user": users, "item": series})
    yield "series of objects", {"user": users, "item": series}
    to_plain = {"date32": np.datetime64.item, "uuid": lambda cell: cell.bytes}.get(kind, lambda cell: cell)
    plain = [None if cell is None or cell != cell else to_plain(cell) for cell in cells]
    given = pyarrow.table({"user": users, "item": pyarrow.array(plain, arrow_type(kind))})
    path = str(tmp_path / "log.parquet")
    parquet.write_table(given, path)
    yield "pyarrow", given
    yield "parquet", path
    yield "duckdb", duckdb.connect().read_parquet(path)
    yield "registered", duckdb.connect().from_arrow(given)
    yield "array of pyarrow", given.to_pydict() | {"item": given["item"]}
    arrow = pandas.Series(given["item"], dtype=pandas.ArrowDtype(given["item"].type))
    yield "Arrow in pandas", {"user": users, "item": arrow}
    if kind != "uuid":  # polars has no such type, and reads its bytes
        yield "polars", polars.from_arrow(given)
        yield "series of polars", {"user": users, "item": polars.from_arrow(given)["item"]}


UNTYPED = {"list", "tuple", "objects of numpy", "masked objects", "objects of pandas", "series of objects"}
SAME = {
    "whole decimals": ([decimal.Decimal(5), decimal.Decimal(-7), None], None, {"5", "-7"}),
    "largest decimals": ([decimal.Decimal(10**18 - 1), decimal.Decimal(1 - 10**18)], None, {"9" * 18, "-" + "9" * 18}),
    # Only a column with a type is refused: in another one, one cell would decide between a release and an error.
    "decimals with places": ([decimal.Decimal("5.00"), decimal.Decimal("7.50"), None], None, None),
    "times of a day": ([dt.time(1, 2, 3), None], None, None),
    "days of numpy": ([np.datetime64("2026-01-31"), None], "date32", {"2026-01-31"}),
    "times of numpy": (
        [np.datetime64("2026-01-31T12:00:00.5", "us"), np.datetime64("NaT"), None],
        "timestamp_us",
        {"2026-01-31T12:00:00.500000"},
    ),
    "nanoseconds of numpy": (
        [None, np.datetime64("2026-01-31T12:00:00.000000001", "ns")],
        "timestamp_ns",
        {"2026-01-31T12:00:00.000000001"},
    ),
    "days": ([dt.date.min, dt.date.max, None], None, {"0001-01-01", "9999-12-31"}),
    "times": ([dt.datetime.min, dt.datetime.max], None, {"0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"}),
    "signed": ([2**63 - 1, -(2**63)], None, {str(2**63 - 1), str(-(2**63))}),
    "unsigned": ([2**64 - 1, 0], "uint64", {str(2**64 - 1), "0"}),
    "nothing": ([None, None], None, set()),
    "UUIDs": (
        [uuid.UUID(int=7), None, uuid.UUID(int=2**128 - 1)],
        "uuid",
        {str(uuid.UUID(int=7)), "-".join(["f" * 8, *["f" * 4] * 3, "f" * 12])},
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_a_column_is_the_same_through_every_door(tmp_path, case):
    cells, kind, expected = SAME[case]
    for door, data in doors(cells, kind, tmp_path):
        if expected is None and door in UNTYPED:
            assert counted(data) == {}, door
        elif expected is None:
            with pytest.raises(SchemaError, match="item"):
                counted(data)
        else:
            assert {str(label) for label in counted(data)} == expected, door


@pytest.mark.parametrize("offset", [dt.timedelta(seconds=1172), dt.timedelta(hours=-23, seconds=5)])
def test_times_of_odd_offsets_are_the_same_through_every_door(tmp_path, offset):
    odd = dt.datetime(1890, 1, 1, tzinfo=dt.timezone(offset))
    text, cells = odd.astimezone(dt.UTC).isoformat(), [ZONED, odd, None]
    for door, data in doors(cells, None, tmp_path):
        is_text = door in ("objects of pandas", "series of objects")
        found = {text, ZONED.isoformat()} if is_text else {text.replace("+00:00", "Z"), "2026-01-31T12:00:00Z"}
        assert {*counted(data)} == found, door
    objects = pandas.Series(cells, dtype=object)
    for times in (cells, objects, np.ma.array(objects.to_numpy())):
        data = {"user": [1, 2, 3], "item": ["a", "b", "c"], "ts": times}
        assert len(counted(data, time="ts", every="1d")) == 2
    edges = [dt.datetime.min.replace(tzinfo=dt.timezone(abs(offset))), *cells]
    for edge in (edges, pandas.Series(edges, dtype=object)):
        assert len(counted({"user": range(4), "item": edge})) == 2


def test_the_largest_times_of_pandas_keep_their_nanoseconds(tmp_path):
    cells = [pandas.Timestamp.max, pandas.Timestamp.min, pandas.NaT]
    expected = {"2262-04-11T23:47:16.854775807": 1, "1677-09-21T00:12:43.145224193": 1}
    for _, data in doors(cells, "timestamp_ns", tmp_path):
        assert counted(data) == expected
    zoned = [cell.tz_localize("UTC") for cell in cells]
    for data in (
        {"user": [1, 2, 3], "item": zoned},
        pandas.DataFrame({"user": [1, 2, 3], "item": pandas.Series(zoned, dtype="datetime64[ns, UTC]")}),
    ):
        assert counted(data) == {f"{text}Z": 1 for text in expected}


def test_decimals_among_objects_of_pandas_are_digits():
    cells = ["a", decimal.Decimal(5), decimal.Decimal("5.0"), decimal.Decimal("NaN"), decimal.Decimal("sNaN")]
    cells += [*map(decimal.Decimal, ("Infinity", "1E+2", "1E+999999")), np.timedelta64(5, "s")]
    frame = pandas.DataFrame({"user": range(len(cells)), "item": pandas.Series(cells, dtype=object)})
    assert counted(frame) == {"a": 1, "5": 1, "100": 1}


MINE = []
MINE.append(MINE)
ODD = {
    "time": dt.time(1),
    "duration": dt.timedelta(1),
    "duration of pandas": pandas.Timedelta(1, "s"),
    "duration of numpy": np.timedelta64(1, "s"),
    "float": 1.5,
    "NaN": math.nan,
    "infinity": decimal.Decimal("Infinity"),
    "decimal with places": decimal.Decimal("1.5"),
    "complex": 1j,
    "large integer": 2**70,
    "unsigned integer": 2**63,
    "surrogate": "\ud800",
    "list": ["a"],
    "list with itself": MINE,
    "tuple": ("a", 1),
    "dict": {"a": 1},
    "array": np.array([1, 2]),
    "generator": (cell for cell in ["a"]),
    "object": object(),
    "class": int,
    "text": "b",
    "integer": 8,
    "bytes": b"b",
    "boolean": False,
    "day": dt.date(2026, 2, 1),
    "first time": dt.datetime.min,
    "first time with a zone": dt.datetime.min.replace(tzinfo=dt.UTC),
    "nanoseconds": pandas.Timestamp("2026-02-01T12:00:00.000000001"),
    "UUID": uuid.UUID(int=8),
}
PLAIN = [
    "a",
    7,
    b"a",
    True,
    DAY,
    TIME,
    ZONED,
    uuid.UUID(int=7),
    decimal.Decimal(5),
    np.datetime64("2026-01-31T12", "s"),
]
"""A cell of each kind of column."""


def untyped(cells):
    """Yield tables of 9 users in which a column of cells has no type, beside users with a type and without one."""
    users = [*range(len(cells))]
    objects = np.array([*cells, None], object)[:-1]
    for given in (cells, tuple(cells), objects, np.ma.array(objects), collections.UserList(cells)):
        yield {"user": users, "item": given}
    for make in (np.array, pyarrow.array, polars.Series, pandas.Series):
        yield {"user": make(users), "item": cells}
    yield [{"user": users[:2], "item": cells[:2]}, {"user": users[2:], "item": cells[2:]}, {"user": [], "item": []}]


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_cell_of_a_list_loses_its_own_row(odd):
    """At every door, in the first row and in the last one; also alone, where it must be no error."""
    assert {len(counted(data)) for data in untyped([odd])} <= {0, 1}
    asked = {"user": "user", "item": "item", "rho": 4000, "delta": 1e-6}
    for cell in PLAIN:
        expected, kind = counted({"user": range(9), "item": [cell] * 9}), type_of({"user": [1], "item": [cell]})
        ((label, number),) = expected.items()
        for cells in ([odd, *[cell] * 9], [*[cell] * 9, odd]):
            for data in untyped(cells):
                assert (counted(data)[label], type_of(data)) == (number, kind)
            pairs = Histogram.from_pairs(range(10), cells)
            assert pairs._labels.type_name == kind
            users = {"user": cells, "item": ["home"] * 10}
            assert counted(users)["home"] in (1, 2)
            counted({"user": range(10), "item": ["home"] * 10, "ts": cells}, time="ts", every="1d")
            UserItems.from_pairs(cells, cells)
        objects = pandas.DataFrame({"user": range(10), "item": pandas.Series([*[cell] * 9, odd], dtype=object)})
        assert max(counted(objects).values()) == 9
        sums = {"user": range(10), "item": ["home"] * 10, "value": [odd, *[1] * 9]}
        assert dp.sum(sums, **asked, value="value", bounds=(0, 1), l0=1).items == ["home"]
        stream = dp.BinaryMechanism.from_rho(rho=4000, delta=1e-6, horizon=8, l0=1).start()
        stream.step([odd, *[[cell]] * 9, [odd]])
        stream.step({"user": range(10), "item": [odd, *[cell] * 9]}, user="user", item="item")


def test_no_cell_decides_whether_integers_have_a_sign():
    """Half of all hashes of 64 bits are above 2^63, and a list with one such cell has an odd one."""
    hashes = [2**63 + 5, 7, 2**64 - 1, 2**62]
    assert type_of({"user": range(4), "item": hashes}) == "uint64"
    assert counted({"user": range(4), "item": hashes}) == dict.fromkeys(hashes, 1)
    times = [pandas.Timestamp("2026-01-31T12:00:00.000000001"), TIME]
    for cells in (hashes, times, [times[0].tz_localize("UTC"), ZONED]):
        for users in (list, pyarrow.array):
            parts = [{"user": users([at]), "item": [cell]} for at, cell in enumerate(cells)]
            whole = {"user": range(len(cells)), "item": cells}
            assert (counted(parts), type_of(parts)) == (counted(whole), type_of(whole))
    for odd in (2**63, 2**64 - 1, -(2**63)):
        cells = [*range(9), odd]
        assert type_of({"user": cells, "item": cells}) == "int64"
        assert set(range(9)) <= counted({"user": range(10), "item": cells}).keys()


def test_listed_items_decide_the_type_of_a_list():
    """Whether the types fit would depend on the cells otherwise: an empty list has none."""
    for cells in ([], [7], ["7"], [7, "a"], [b"7"], [DAY]):
        data = {"user": [*range(len(cells))], "item": cells}
        for items in (["7", "a"], [7, 8]):
            found = dp.count(data, user="user", item="item", items=items, rho=4000)
            expected = sum(cell == items[0] or (isinstance(items[0], str) and str(cell) == "7") for cell in cells)
            assert found[items[0]] == expected + (items[0] == "7" and cells == [b"7"])
            for more in ({}, {"l0": 1}):
                dp.count(data, user="user", item="item", items=items, others=True, rho=1, delta=1e-6, **more)


UNITS = {
    "Y": "2026-01-01",
    "M": "2026-01-01",
    "W": "2026-01-29",
    "h": "2026-01-31T12:00:00",
    "m": "2026-01-31T12:34:00",
}
UNITS |= {"10s": "2026-01-31T12:34:50", "7D": "2026-01-29", "3ns": "2026-01-31T12:34:56.000000001"}


@pytest.mark.parametrize("unit", UNITS)
def test_times_of_numpy_of_every_unit_are_read(unit):
    moment = np.datetime64("2026-01-31T12:34:56.000000001").astype(f"M8[{unit}]")
    items = np.array([moment, np.datetime64("NaT"), *np.array([2**62, -(2**62)]).view(moment.dtype)])
    data = {"user": [1, 2, 3, 4], "item": items}
    assert counted(data)[UNITS[unit]] == 1 if unit != "3ns" else len(counted(data)) == 1
    for table in (data, {**data, "user": pyarrow.array(data["user"])}, {**data, "item": np.ma.array(items)}):
        assert counted(table) == counted(data)
    assert len(counted({"user": [1], "item": ["a"], "ts": items[:1]}, time="ts", every="1d")) == 1
    assert len(counted({"user": [1], "item": [items[0]]})) == 1


def test_periods_of_pandas_are_refused_as_times():
    months = pandas.Series(pandas.period_range("2026-01", periods=2, freq="M"))
    for ts in (months, months[:0]):
        rows = {"user": [*range(len(ts))], "item": ["a"] * len(ts), "ts": ts}
        for data in (rows, pandas.DataFrame(rows), [pandas.DataFrame(rows)]):
            with pytest.raises(SchemaError, match=r"'ts'.*to_timestamp"):
                counted(data, time="ts", every="1d")
        counted({**rows, "ts": ts.dt.to_timestamp()}, time="ts", every="1d")
    assert counted({"user": [1, 2], "item": months}) == {"2026-01": 1, "2026-02": 1}


def test_run_end_encoded_and_opaque_columns_have_a_remedy():
    encoded = pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([2], pyarrow.int32()), pyarrow.array(["a"]))
    with pytest.raises(SchemaError, match="run_end_decode"):
        counted(pyarrow.table({"user": [1, 2], "item": encoded}))
    assert counted(pyarrow.table({"user": [1, 2], "item": compute.run_end_decode(encoded)})) == {"a": 2}
    for cell in ("'101'::BIT", "123456789012345678901234567890::BIGNUM"):
        with pytest.raises(SchemaError, match="cast it to text"):
            counted(duckdb.sql(f'SELECT 1 AS "user", {cell} AS item'))
        assert len(counted(duckdb.sql(f'SELECT 1 AS "user", ({cell})::VARCHAR AS item'))) == 1


def test_extension_types_in_a_dict_count_as_columns_of_a_table():
    integers, texts = pyarrow.array([1, 0], pyarrow.int8()), pyarrow.array(['{"a": 1}', "2"])
    for kind, storage in (("bool8", integers), ("json_", texts)):
        items = pyarrow.ExtensionArray.from_storage(getattr(pyarrow, kind)(), storage)
        for same in (items, pyarrow.chunked_array([items])):
            data = {"user": [1, 2], "item": same}
            assert counted(data) == counted(pyarrow.table(data)) == dict.fromkeys(storage.to_pylist(), 1)


@pytest.mark.parametrize("is_cast", [True, False])
def test_decimals_beyond_64_bits_are_skipped_in_silence(is_cast):
    cells = [decimal.Decimal(10**30)] * 3000 + [decimal.Decimal(-(10**30))] + [decimal.Decimal(5)] * 4000
    wide, narrow = pyarrow.array(cells, pyarrow.decimal128(38, 0)), pyarrow.decimal128(18, 0)
    forged = pyarrow.Array.from_buffers(narrow, len(wide), wide.buffers())
    items = wide.cast(narrow, safe=False) if is_cast else forged
    assert counted({"user": range(len(cells)), "item": items}) == {5: 4000}
    data = pyarrow.table({"user": range(len(cells)), "item": items, "page": ["home"] * len(cells)})
    budget = dp.Budget(rho=2, delta=1e-5)
    assert dp.count(data, user="user", item="item", rho=1, delta=1e-6, budget=budget).items == [5]
    pairs = dp.count(data, user="user", item=["item", "page"], rho=1, delta=1e-6, budget=budget)
    assert pairs.items == [(5, "home")]
    assert counted(data.set_column(0, "user", wide), item="page") == {"home": 3}


EXTREMES = [
    (kind, big)
    for kind, scale in [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 0)]
    for big in (253402300800 * scale, 2**62, 2**63 - 1, -(2**63), -(2**62))
]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("unit, big", EXTREMES)
def test_one_time_out_of_range_loses_its_own_row(unit, big, zone):
    """Arrays of several libraries in a dict, and tables: the year 10000 has no date in Python."""
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    times = pyarrow.array([1767607200 * second] * 20 + [big]).cast(pyarrow.timestamp(unit, zone))
    doors = [times, pyarrow.chunked_array([times[:5], times[5:]])]
    doors += [pandas.Series(times, dtype=pandas.ArrowDtype(times.type))]
    doors += [] if unit == "s" else [polars.from_arrow(times)]
    found = [counted({"user": [*range(21)], "item": door}) for door in doors]
    found.append(counted(pyarrow.table({"user": [*range(21)], "item": times})))
    assert found[0]["2026-01-05T10:00:00" + "Z" * bool(zone)] == 20
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_the_remedy_for_zoned_times_beyond_microseconds_works(tmp_path, unit):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = pyarrow.array([10**9, 2**53 if unit == "s" else 2**60], pyarrow.timestamp(unit, "UTC"))
    table, path = pyarrow.table({"user": [1, 2], "item": times}), str(tmp_path / "log.parquet")
    parquet.write_table(table, path)
    connection = duckdb.connect()
    for relation in (connection.from_arrow(table), connection.read_parquet(path)):
        with pytest.raises(InputError, match="give the Arrow table or the Parquet file itself"):
            counted(relation)
    assert counted(table) == counted(path) != {}


@pytest.mark.parametrize("day", [2932897, 2**31 - 1, -(2**31)])
def test_one_day_out_of_range_loses_its_own_row(day):
    days = pyarrow.array([20458] * 20 + [day], pyarrow.int32()).cast(pyarrow.date32())
    series = polars.Series([20458] * 20 + [day], dtype=polars.Int32).cast(polars.Date)
    for door in (days, series):
        assert counted({"user": [*range(21)], "item": door}) == {"2026-01-05": 20}


TYPES = {
    "int64": ("int64", [1, -(2**63), 2**63 - 1], "Int64"),
    "uint64": ("uint64", [1, 2**63, 2**64 - 1], "UInt64"),
    "int8": ("int64", [1, -128, 127], "Int8"),
    "bool_": ("int64", [1, 0], "boolean"),
    "string": ("string", ["a", "", "\0"], "string"),
    "binary": ("binary", [b"a", b"", b"\xff"], None),
    "date32": ("int32", [0, 2**31 - 1], None),
    "timestamp_us": ("int64", [0, 2**62], None),
    "timestamp_ns": ("int64", [1000, 1001, 2**62], "datetime64[ns]"),
    "zoned_us": ("int64", [0, 2**62], None),
    "zoned_ns": ("int64", [1000, 1001, 2**62], "datetime64[ns, UTC]"),
}
"""For types of Arrow: the type of cells before a cast, extreme cells, and the type of pandas."""


def typed_arrays(kind, cells):
    """Yield arrays with these cells and a type, by library."""
    stored, _, series = TYPES[kind]
    zoned = pyarrow.timestamp(kind[-2:], "UTC") if kind.startswith("zoned") else None
    found = zoned or (pyarrow.bool_() if kind == "bool_" else arrow_type(kind))
    array = pyarrow.array(cells, arrow_type(stored)).cast(found)
    yield "pyarrow", array
    yield "chunked", pyarrow.chunked_array([array[:1], array[1:]], found)
    yield "polars", polars.from_arrow(array)
    yield "Arrow in pandas", pandas.Series(array, dtype=pandas.ArrowDtype(found))
    if series is not None:
        yield "pandas", pandas.Series(array.to_pandas(types_mapper=pandas.ArrowDtype), dtype=series)
    if not kind.startswith(("zoned", "string")):
        dtype = {"binary": "S1", "date32": "M8[D]", "bool_": "bool"}.get(kind, kind)
        dtype = f"M8[{kind[-2:]}]" if kind.startswith("timestamp") else dtype
        some = next((cell for cell in cells if cell is not None), 0)
        plain = np.array([some if cell is None else cell for cell in cells], object)
        yield "masked", np.ma.array(plain.astype(dtype), mask=[cell is None for cell in cells])


def type_of(data):
    return Histogram.from_table(data, user="user", item="item")._labels.type_name


@pytest.mark.parametrize("kind", TYPES)
def test_no_cell_decides_the_type_of_an_array_in_a_dict(monkeypatch, kind):
    extremes = TYPES[kind][1]
    expected = type_of(pyarrow.table({"user": [1], "item": next(typed_arrays(kind, [extremes[0]]))[1]}))
    frames = {"polars": polars.DataFrame, "pandas": pandas.DataFrame, "Arrow in pandas": pandas.DataFrame}
    without = []
    for cells in ([], [None, None], [*extremes, None]):
        users = [*range(len(cells))]
        for library, items in typed_arrays(kind, cells):
            data = {"user": users, "item": items}
            assert type_of(data) == type_of(data | {"user": next(typed_arrays("int64", users))[1]}) == expected, library
            assert Histogram.from_pairs(users, items)._labels.type_name == expected, library
            if library in frames:
                frame = frames[library](data | {"user": np.array(users, int)})
                assert (type_of(frame), counted(frame)) == (expected, counted(data)), library
            if library == "polars" or (library in ("pandas", "masked") and "zoned" not in kind):
                without.append(data)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert {type_of(data) for data in without} == {expected}


def test_zoned_times_of_pandas_need_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for cells in ([], [None], [ZONED]):
        zoned = pandas.Series(cells, dtype="datetime64[ns, UTC]")
        naive = zoned.dt.tz_convert("UTC").dt.tz_localize(None)
        users = np.arange(len(cells))
        for make in (dict, pandas.DataFrame):
            with pytest.raises(SchemaError, match=r"need pyarrow.*tz_convert\('UTC'\).dt.tz_localize\(None\)"):
                counted(make({"user": users, "item": zoned}))
            assert type_of(make({"user": users, "item": naive})) == (("item", "timestamp[ns]"),)


@pytest.mark.parametrize("cells", [[], [None, None], [None, 1]])
def test_no_cell_of_an_array_decides_whether_there_is_a_release(cells):
    asked = {"user": "user", "item": "item", "rho": 1, "delta": 1e-6}
    for library, items in typed_arrays("int64", cells):
        data = {"user": np.ones(len(cells), int), "item": items, "value": [1.0] * len(cells)}
        more = pyarrow.table({"user": [5], "item": [7]})
        assert len(dp.count(data, **asked, items=[1, 2])) == 2, library
        assert dp.count([data, more], **asked).item_type == "int64"
        for values in (data["value"], items):
            sums = {**data, "value": values}
            assert len(dp.sum(sums, **asked, value="value", bounds=(0, 1), items=[1, 2])) == 2
        with pytest.raises(ItemTypeError):
            dp.sum(data, **asked, value="value", bounds=(0, 1), items=["a"])


class Whole(enum.IntEnum):
    FIVE = 5


def test_a_list_beside_an_array_is_read_as_a_list_beside_a_list():
    moment = pandas.Timestamp("2026-01-31T12:00:00.000000001")
    given = [[1, None], [2**63, 1], ["a", "\ud800", None], [b"a"], [True, None], [DAY, dt.date.max]]
    given += [[TIME, dt.datetime.max]]
    given += [[ZONED, None], [moment, TIME], [moment.tz_localize("UTC")], [np.int64(5), 7], [decimal.Decimal(5)]]
    given += [[1, np.int8(2), Whole.FIVE], [Whole.FIVE]]
    given += [[uuid.UUID(int=7)], [np.datetime64(2**62, "s")], range(3), np.array([1], ">i4"), np.array(["a"])]
    given += [np.array([b"a"]), np.array([], "S1"), np.array([True]), np.array([1, "NaT"], "M8[D]")]
    given += [np.array([2**40], "M8[D]"), np.array([2**62, 1], "M8[ms]"), pandas.Series(["a", 1], dtype=object)]
    given += [[1, "a"], [2**64], [2**63, -1], [1.5], [DAY, TIME], [TIME, ZONED], [dt.time(1)], [object()]]
    given += [np.array([1], f"M8[{unit}]") for unit in ("h", "10s", "7D", "25us", "3ns")]
    refused = [np.array([1.5]), np.array([1j]), np.array([1], "m8[s]"), np.array([[1]]), np.array([1], "m8[10s]")]
    refused += [np.ma.array(cells) for cells in refused[2:3]]
    makers = [
        lambda users: pyarrow.array(users, pyarrow.int64()),
        lambda users: polars.Series(users, dtype=polars.Int64),
        lambda users: pandas.Series(users, dtype="Int64"),
        lambda users: np.ma.array(users, dtype=int),
    ]
    for cells in given:
        users = [*range(len(cells))]
        alone = {"user": users, "item": cells}
        expected, expected_type = counted(alone), type_of(alone)
        for make in makers:
            mixed = alone | {"user": make(users)}
            assert (counted(mixed), type_of(mixed)) == (expected, expected_type)
    for make in makers:
        for cells in refused:
            with pytest.raises(SchemaError, match="item"):
                counted({"user": make([*range(len(cells))]), "item": cells})
            with pytest.raises(SchemaError):
                Histogram.from_pairs(make([*range(len(cells))]), cells)
        with pytest.raises(ParameterError, match="same length"):
            counted({"user": make([1, 2]), "item": [1]})


def not_utf8():
    """Yield arrays of the texts "a", one that is not UTF-8, and "b"."""
    cells = pyarrow.array([b"a", b"\xff", b"b"])
    text = pyarrow.Array.from_buffers(pyarrow.string(), 3, cells.buffers())
    yield text
    yield polars.from_arrow(text)
    yield polars.from_arrow(pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, 2], pyarrow.int32()), text))
    yield pandas.Series(text, dtype=pandas.ArrowDtype(pyarrow.string()))
    yield text.to_pandas()
    yield pandas.Series(pandas.array(text, dtype=pandas.StringDtype("pyarrow")))


def test_a_cell_that_is_not_utf8_loses_its_row_at_every_door(capfd):
    users = [1, 2, 3]
    asked = {"user": "user", "item": "item", "rho": 1, "delta": 1e-6}
    sums = {"value": "v", "bounds": (0, 1), "items": ["a"]}
    for text in not_utf8():
        data = {"user": users, "item": text, "v": users}
        assert counted(data) == {"a": 1, "b": 1}
        for same in ({"user": text, "item": ["a"] * 3}, {"user": text, "item": np.array(["a"] * 3)}):
            assert counted(same) == {"a": 3}  # users are compared by their bytes
        assert counted({"user": users, "item": users, "ts": text}, time="ts", every="1d") == {}
        for same in (data, data | {"user": text, "item": ["a"] * 3}, data | {"item": ["a"] * 3, "v": text}):
            assert dp.sum(same, **asked, **sums).items == ["a"]
        dp.select(data, **asked, l0=1)
        Histogram.from_pairs(users, text)
        UserItems.from_pairs(text, users)
        for items in (None, "text"):
            stream = dp.BinaryMechanism.from_rho(rho=1, delta=1e-6, horizon=8, l0=1).start(items=items)
            stream.step(data, user="user", item="item")
            stream.step([text])
    assert capfd.readouterr().err == ""


class Exported:
    """A table of a library that is not known here."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__()


def test_an_index_out_of_range_is_no_crash_of_a_sum():
    index = pyarrow.array([0, None, 2], pyarrow.int32())
    broken = pyarrow.DictionaryArray.from_arrays(index, pyarrow.array(["a", "b"]), safe=False)
    columns = {"user": [1, 2, 3], "item": ["a", "b", "a"], "value": [1, 2, 3]}
    for name in columns:
        table = columns | {name: broken}
        given = pyarrow.table(table)
        for data in (table, given, given.to_batches()[0], given.to_reader(), Exported(given)):
            with pytest.raises(InputError):
                read_values(data)


def test_a_value_that_is_not_utf8_loses_its_own_row_in_frames():
    cells = pyarrow.array([b"2"] * 20 + [b"secret\xff"], pyarrow.binary())
    text = pyarrow.Array.from_buffers(pyarrow.string(), 21, cells.buffers())
    frame = pyarrow.table({"user": range(21), "item": ["a"] * 21, "value": text}).to_pandas()
    assert as_dict(read_values(frame)) == {"a": 20}


@pytest.mark.parametrize("view", [memoryview, bytearray])
@pytest.mark.parametrize("odd", [b"home", b"\xff", 5, True, "\ud800", decimal.Decimal(1), DAY])
def test_an_odd_cell_does_not_change_how_views_of_bytes_are_read(view, odd):
    """One user's cell would otherwise remove the rows of all others."""
    column = pandas.Series([view(b"home")] * 20 + [odd], dtype=object)
    for data in (pandas.DataFrame({"user": range(21), "item": column}), {"user": [*range(21)], "item": column}):
        assert counted(data)["home"] in (20, 21)
