"""Columns of times: invalid or zoned cells, which must not change other rows."""

import sys
from datetime import UTC, datetime, timedelta

import duckdb
import pytest
from counting import csv

from discreet.engines.timed_events import TimedEvents
from discreet.errors import SchemaError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECOND_DAY = int(datetime(2026, 1, 2, 10, tzinfo=UTC).timestamp())


def rounds(path):
    """Return the users of rounds 1 to 3."""
    rows = TimedEvents(str(path), event="user", item="item", time="t").rows_by_round(BEGIN, timedelta(days=1))
    return [sorted(user for user, _ in rows(number).fetchall()) for number in (1, 2, 3)]


def write(path, unit, zone, odd, *, scale):
    """Write three users of `home` on the second day, and one user with an odd time."""

    cells = pyarrow.array([SECOND_DAY * scale] * 3 + [odd], pyarrow.int64()).cast(pyarrow.timestamp(unit, zone))
    columns = {"user": ["a", "b", "c", "odd"], "item": ["home"] * 4, "t": cells}
    parquet.write_table(pyarrow.table(columns), path, version="2.6")


EDGE = 9_223_372_036_854_775
LEAST = -9_223_372_022_400_000
"""The first millisecond of DuckDB's calendar."""


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize(
    "odd",
    [None, 2**62, -(2**62), 2**63 - 1, -(2**63), EDGE, EDGE + 1, -EDGE, -EDGE - 1, LEAST, LEAST - 1],
)
def test_a_millisecond_out_of_range_drops_only_its_row(tmp_path, odd, zone):
    path = tmp_path / "log.parquet"
    write(path, "ms", zone, odd, scale=1000)
    assert rounds(path) == [[], ["a", "b", "c"], []]


def test_times_in_milliseconds_are_read_to_the_millisecond(tmp_path):
    path = tmp_path / "log.parquet"
    write(path, "ms", None, int(BEGIN.timestamp()) * 1000 - 1, scale=1000)
    assert rounds(path) == [[], ["a", "b", "c"], []]
    write(path, "ms", None, int(BEGIN.timestamp()) * 1000, scale=1000)
    assert rounds(path) == [["odd"], ["a", "b", "c"], []]


def test_millisecond_and_microsecond_files_are_read_together(tmp_path):

    for name, unit in (("a", "us"), ("b", "ms")):
        cells = pyarrow.array([BEGIN, BEGIN + timedelta(days=1)], pyarrow.timestamp(unit))
        columns = {"user": [f"{name}1", f"{name}2"], "item": ["home"] * 2, "t": cells}
        parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
    assert rounds(tmp_path / "*.parquet") == [["a1", "b1"], ["a2", "b2"], []]


def test_millisecond_rows_stay_aligned_with_invalid_utf8(tmp_path):

    users = [b"broken" if row % 1000 else b"\xff" for row in range(300_000)]
    numbered = [b"%s%d" % (user, row) for row, user in enumerate(users)]
    text = pyarrow.array(numbered).view(pyarrow.string())
    cells = pyarrow.array([SECOND_DAY * 1000 + 86_400_000 * (row % 3 - 1) for row in range(len(users))])
    columns = {"user": text, "item": ["home"] * len(users), "t": cells.cast(pyarrow.timestamp("ms"))}
    parquet.write_table(pyarrow.table(columns), tmp_path / "log.parquet", row_group_size=70_001)
    whole = [(row, f"broken{row}") for row, user in enumerate(users) if user == b"broken"]
    expected = [sorted(user for row, user in whole if row % 3 == day) for day in range(3)]
    assert rounds(tmp_path / "log.parquet") == expected


def test_milliseconds_without_pyarrow_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    for odd in (SECOND_DAY * 1000, 2**62):
        write(path, "ms", None, odd, scale=1000)
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "pyarrow", None)
            with pytest.raises(SchemaError, match="pip install pyarrow, or write them in microseconds"):
                rounds(path)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_nanoseconds_with_a_zone_are_moments(tmp_path, zone):
    path = tmp_path / "log.parquet"
    write(path, "ns", zone, int(BEGIN.timestamp()) * 10**9, scale=10**9)
    assert rounds(path) == [["odd"], ["a", "b", "c"], []]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("nanos", [1, 999, 1000, 1001])
def test_the_last_nanoseconds_of_a_round_belong_to_it(tmp_path, zone, nanos):
    path = tmp_path / "log.parquet"
    write(path, "ns", zone, int((BEGIN + timedelta(days=1)).timestamp()) * 10**9 - nanos, scale=10**9)
    assert rounds(path) == [["odd"], ["a", "b", "c"], []]


def test_nanoseconds_before_1970_are_rounded_down(tmp_path):
    path = tmp_path / "log.parquet"
    write(path, "ns", None, -1, scale=10**9)
    rows = TimedEvents(str(path), event="user", item="item", time="t").rows_by_round(
        datetime(1969, 12, 31, tzinfo=UTC), timedelta(days=1)
    )
    assert rows(1).fetchall() == [("odd", "home")]


@pytest.mark.parametrize("odd", [-62_135_596_801, 253_402_300_800])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_time_of_the_year_0_or_10000_hides_no_row_of_its_user(tmp_path, odd, zone):

    path = tmp_path / "log.parquet"
    cells = pyarrow.array([odd * 10**6, SECOND_DAY * 10**6]).cast(pyarrow.timestamp("us", zone))
    parquet.write_table(pyarrow.table({"user": ["a", "a"], "item": ["x", "home"], "t": cells}), path)
    rows = TimedEvents(str(path), event="user", item="item", time="t").rows_by_round(BEGIN, timedelta(days=1))
    assert rows(2).fetchall() == [("a", "home")]


def test_text_before_the_year_1_hides_no_other_row_of_its_user(tmp_path):
    path = csv(tmp_path, "user,item,t\na,x,0000-01-01\na,x,0001-01-01T00:00+01\na,home,2026-01-02\n")
    assert rounds(path) == [[], ["a"], []]


MOMENTS = {
    1: [
        "2026-01-02T00:30:00+01:00",
        "2026-01-02T00:30:00.000+0100",
        "2026-01-02 00:30:00+01",
        "2026-01-02 00:30:00 +0100",
        "2026-01-02 00:30:00 +01:00",
        "2026-01-02T17:30:00+18:00",
    ],
    2: ["2026-01-01T23:30:00-01:30", "2026-01-02T00:30:00Z", "2026-01-02T00:30:00", "2026-01-02"],
    None: [
        "2026-01-02 00:30:00 Europe/Berlin",
        "2026-01-02T17:30:00+18:01",
        "2026-01-02T17:30:00+23:59:59",
        "2026-01-02T10:00:00+99:99",
        "2026-01-02T10:00:00+01:60",
        "2026-01-02T10:00:00-01:99",
        "2026-01-02T10:00:00 Nowhere/X",
        "infinity",
        "+01:00",
    ],
}
"""Times with and without an offset, by the round of their moment in UTC."""


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_text_with_an_offset_is_a_moment_in_utc(tmp_path, monkeypatch, form):
    monkeypatch.setenv("TZ", "America/New_York")
    rows = "".join(f"{text},home,{text}\n" for texts in MOMENTS.values() for text in texts)
    path = csv(tmp_path, f"user,item,t\na,home,2026-01-03\n{rows}")
    if form == "parquet":
        path = tmp_path / "log.parquet"
        duckdb.sql(f"FROM read_csv('{tmp_path / 'log.csv'}', all_varchar = true)").write_parquet(str(path))
    assert rounds(path) == [sorted(MOMENTS[1]), sorted(MOMENTS[2]), ["a"]]


@pytest.mark.parametrize("odd", [2**63 - 1, -(2**63) + 1])
def test_infinity_next_to_milliseconds_drops_its_row(tmp_path, odd):
    write(tmp_path / "a.parquet", "ms", None, None, scale=1000)
    write(tmp_path / "b.parquet", "us", None, odd, scale=1_000_000)
    assert rounds(tmp_path / "*.parquet") == [[], ["a", "b", "c"], []]
