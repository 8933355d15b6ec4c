"""Parquet files in the local engine: invalid text, different schemas, damage and memory limits."""

from datetime import datetime

import numpy as np
import pytest
from counting import counted, store

import discreet as dp
from discreet import engines
from discreet.engines import local
from discreet.engines.checking import check
from discreet.errors import InputError, SchemaError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
dataset = pytest.importorskip("pyarrow.dataset").dataset


def test_a_damaged_parquet_file_is_an_input_error(tmp_path):
    path = tmp_path / "log.parquet"
    query = "SELECT range AS \"user\", 'word-' || range AS item FROM range(50000)"
    local.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    content = bytearray(path.read_bytes())
    content[2000:90_000] = b"\xaa" * 88_000
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"log\.parquet") as caught:
        counted(path)
    assert "word-" not in str(caught.value)


@pytest.mark.parametrize(
    "kind", ["DOUBLE", "TIME", "INTERVAL", "DECIMAL(9,2)", "DECIMAL(19,0)", "HUGEINT", "INTEGER[]"]
)
def test_other_column_types_are_refused_before_reading(tmp_path, kind):
    path = tmp_path / "typed.parquet"
    local.connect().execute(f"COPY (SELECT 1 AS \"user\", NULL::{kind} AS item) TO '{path}' (FORMAT parquet)")
    with pytest.raises(SchemaError, match="item"):
        counted(path)


def broken(cells):
    """Return Arrow text that need not be UTF-8."""
    plain = pyarrow.array(cells, pyarrow.binary())
    return pyarrow.Array.from_buffers(pyarrow.string(), len(cells), plain.buffers())


def test_parquet_rows_with_invalid_utf8_are_dropped(tmp_path):
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


def test_parquet_files_with_different_schemas_are_refused(tmp_path):
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


def test_a_schema_gives_near_misses_if_both_names_are_wrong(tmp_path):
    path = tmp_path / "log.parquet"
    local.connect().execute(f"COPY (SELECT 1 AS \"user\", 'a' AS item) TO '{path}' (FORMAT parquet)")
    with pytest.raises(SchemaError, match="no column 'usr'; did you mean 'user'"):
        counted(str(path), "usr", "itm")


def test_parquet_columns_are_chosen_by_their_exact_names(tmp_path):

    nested = pyarrow.array([{"id": 1, "ID": 2}] * 3)
    good = pyarrow.table({"user": [1, 2, 3], "more": nested, "item": ["a", "a", "a"]})
    parquet.write_table(good, tmp_path / "good.parquet")
    assert counted(tmp_path / "good.parquet") == {"a": 3}
    clash = pyarrow.table([[1, 2, 3], [7, 7, 7], ["a"] * 3], names=["ID", "id", "item"])
    parquet.write_table(clash, tmp_path / "clash.parquet")
    for name in ("id", "ID"):
        with pytest.raises(SchemaError, match="case"):
            counted(tmp_path / "clash.parquet", user=name)


DURATION_ROLES = {
    "users": {"user": "d", "item": "o"},
    "items": {"user": "o", "item": "d"},
    "times": {"user": "o", "item": "p", "time": "d", "every": "1d"},
    "values": {"user": "o", "item": "p", "value": "d"},
}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_refused_through_every_door(tmp_path, unit):
    """In a Parquet file of Arrow's writers they are integers whose type is in the metadata alone."""
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    cells, others = pyarrow.array([5, 6, None], pyarrow.duration(unit)), {"o": ["a", "b", "c"], "p": ["a", "b", "c"]}
    table = pyarrow.table({"d": cells, **others})
    doors = {"table": table, "polars": polars.from_arrow(table), "lazy": polars.from_arrow(table).lazy()}
    doors |= {"pandas": table.to_pandas(), "arrow": {"d": cells, **others}}
    doors |= {"numpy": {"d": np.array([5, 6, 7], f"m8[{unit}]"), **others}}
    doors |= {"series": {"d": pandas.Series(table.to_pandas().d), **others}}
    for name, write in {
        "pyarrow.parquet": lambda path: parquet.write_table(table, path),
        "rows.parquet": lambda path: parquet.write_table(table[:0], path),
        "polars.parquet": lambda path: doors["polars"].write_parquet(path),
        "pandas.parquet": lambda path: doors["pandas"].to_parquet(path),
        "file.arrow": lambda path: store(table, path),
    }.items():
        write(tmp_path / name)
        doors[name] = tmp_path / name
        assert counted(tmp_path / name, "o", "p") == ({} if name == "rows.parquet" else dict.fromkeys("abc", 1))
        check(tmp_path / name)
    for door, data in doors.items():
        for role, columns in DURATION_ROLES.items():
            read = engines.Table(data, **columns)
            found = read.with_values() if role == "values" else read
            with pytest.raises(SchemaError):
                print(door, role, engines.histogram(found))


def without_logical_type(path, kind):
    """Rewrite a Parquet file as writers before logical types wrote it: with the converted type of times alone."""
    content = path.read_bytes()
    # The field 10 of a column's schema follows the converted type. Readers skip the unknown field 11.
    before = bytes([0x25, {"ms": 0x12, "us": 0x14}[kind], 0x4C])
    assert content.count(before) == 1
    path.write_bytes(content.replace(before, before[:2] + b"\x5c"))


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_times_of_old_writers_are_in_utc_as_in_pyarrow(tmp_path, unit):
    path, moments = tmp_path / "old.parquet", [datetime(2026, 1, 1, 12), None, datetime(1969, 12, 31, 23, 59)]
    table = pyarrow.table({"user": [1, 2, 3], "t": pyarrow.array(moments, pyarrow.timestamp(unit))})
    parquet.write_table(table, path, store_schema=False)
    assert counted(path, "user", "t") == {"2026-01-01T12:00:00": 1, "1969-12-31T23:59:00": 1}
    without_logical_type(path, unit)
    expected = {"2026-01-01T12:00:00Z": 1, "1969-12-31T23:59:00Z": 1}
    assert str(parquet.read_schema(path).field("t").type) == f"timestamp[{unit}, tz=UTC]"
    roads = [path, parquet.read_table(path), parquet.read_table(path).to_pandas(), dataset(path)]
    assert [counted(road, "user", "t") for road in roads] == [expected] * 4
    assert check(path, "user", "t").types["t"] == "TIMESTAMP WITH TIME ZONE"
    zoned = table.set_column(1, "t", pyarrow.array(moments, pyarrow.timestamp(unit, "UTC")))
    for name in ("a.parquet", "z.parquet"):
        parquet.write_table(zoned, tmp_path / name)
        assert counted([path, tmp_path / name], "user", "t") == expected
    parquet.write_table(table, tmp_path / "local.parquet")
    with pytest.raises(SchemaError, match="same types"):
        counted([path, tmp_path / "local.parquet"], "user", "t")
