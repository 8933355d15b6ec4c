"""The figures of a check are those of a count, for any dirty data."""

import datetime
import sqlite3

import numpy as np
import pytest
from command import discreet, errors_of, output
from counting import csv
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import _core, engines
from discreet.engines.checking import check
from discreet.engines.databases import open_database
from discreet.engines.projection import period_of
from discreet.errors import ParameterError

LONG = b"x" * (_core.LONGEST - 3)
CELLS = [b"a", b"b", b"", b'""', b'"q"', b'"open', b"\xff", b"\xc3\xa9", b"\xc3", b"x\r", LONG, LONG + LONG]
TIMES = [b"2026-01-31", b"2026-02-01T23:30:00+01:00", b"2026-02-01 00:00 Europe/Berlin", b"2025-12-31", b"", b"soon"]
COLUMNS = [("page", None), (["user", "page"], None), ("page", ("1d", None, None)), ("page", (None, "2026-01-01", None))]
COLUMNS += [(["user", "page"], ("1w", "2026-02-01", "2026-03-01"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("agreement")


def table(data, user, item, times):
    time, *others = times or (None, None, None, None)
    return engines.Table(data, user=user, item=item, time=time, every=others[0], since=others[1], until=others[2])


def agreed(data, user, item, times):
    """Return a check, after comparing it with a count."""
    found = check(data, user, item, period=None if times is None else period_of(*times))
    labels, counts, users = engines.histogram(table(data, user, item, times), users=True)
    assert (found.users, found.items) == (users, len(counts))
    assert len(labels.take(np.arange(len(counts)))) == len(counts)
    return found, counts


@settings(deadline=None, max_examples=30)
@given(
    rows=st.lists(st.tuples(st.lists(st.sampled_from(CELLS), max_size=3), st.sampled_from(TIMES)), max_size=12),
    columns=st.sampled_from(COLUMNS),
    end=st.sampled_from([b"\n", b"\r\n"]),
)
def test_the_rows_of_a_check_are_those_of_a_count(folder, rows, columns, end):
    # Each record begins with a number of its own, so a count of "n" counts rows.
    lines = [b"n,time,user,page", *(b",".join([b"%d" % n, time, *cells]) for n, (cells, time) in enumerate(rows))]
    path = csv(folder, end.join(lines))
    item, times = columns
    times = None if times is None else ("time", *times)
    found, counts = agreed(path, "n", item, times)
    assert found.counted == counts.sum()
    assert found.counted + found.excluded <= found.rows <= len(rows)
    assert found.rows - found.counted - found.excluded <= sum(found.dropped.values())
    assert (found.rows == found.counted + found.excluded) == (not found.dropped)
    agreed(path, ["user", "n"], "page", times)


@settings(deadline=None, max_examples=5)
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 3)),
            st.one_of(st.none(), st.sampled_from(["a", "b", "é" * 4096, "é" * 4097])),
            st.one_of(st.none(), st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))),
        ),
        max_size=12,
    ),
    is_dictionary=st.booleans(),
)
def test_dates_and_dictionaries_are_checked_as_they_are_counted(folder, rows, is_dictionary):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    user, page, day = zip(*rows, strict=True) if rows else ([], [], [])
    pages = pyarrow.array(page, pyarrow.string())
    pages = pages.dictionary_encode() if is_dictionary else pages
    columns = {"n": pyarrow.array(range(len(rows)), "int64"), "user": pyarrow.array(user, "int64"), "page": pages}
    path = folder / "log.parquet"
    parquet.write_table(pyarrow.table({**columns, "day": pyarrow.array(day, "date32")}), path)
    for item in ("page", ["user", "page"], ["page", "day"], "day"):
        found, counts = agreed(path, "n", item, None)
        assert found.rows == len(rows)
        assert found.counted == counts.sum()
    found, counts = agreed(path, "n", "page", ("day", "1mo", "0600-01-01", "1600-01-01"))
    assert found.counted == counts.sum()


def test_rows_outside_the_times_are_counted_separately(tmp_path):
    content = "user,page,ts\n1,a,2026-01-31\n2,a,2026-02-01\n3,,2025-01-01\n4,a,soon\n5,a,\n6,,2026-01-31\n"
    options = ["--user", "user", "--item", "page", "--time", "ts"]
    code, out, _ = discreet(
        "check", csv(tmp_path, content), *options, "--every", "1d", "--since", "2026-01-01", "--until", "2026-02-01"
    )
    assert code == 0
    facts = [line.removeprefix("NOT PRIVATE  ") for line in out.splitlines()]
    assert facts[0] == "6 rows"
    assert "2 rows left out: ts is NULL or is no time" in facts
    assert "1 row left out: page is NULL" in facts
    assert "2 rows excluded by --since and --until" in facts
    assert "1 row counted" in facts
    assert "need --user and --item" in errors_of("check", csv(tmp_path, content), "--time", "ts", "--every", "1d")
    with pytest.raises(ParameterError, match="need user and item"):
        check(csv(tmp_path, content), period=period_of("ts", "1d", None, None))


def test_lines_of_bad_rows_are_shown(tmp_path):
    content = b'user,page\r\n1,a\r\n\r\n2\r\n"3\r\n4",b\r\n5,\xff\r\n' + b"6\r\n" * 6 + b'7,"a\r\n8,b\r\n'
    out = discreet("check", csv(tmp_path, content))[1]
    assert "7 rows left out: too few cells (line 4, line 8, line 9, line 10, line 11, ...)" in out
    assert "1 row left out: a cell is not UTF-8 (line 7)" in out
    assert "the last cell holds the rest of the file (line 14)" in out
    help_text = " ".join(discreet("check", "--help")[1].split())
    assert "too few cells, a cell that is not UTF-8, a cell that is too long or an open quote" in help_text
    assert "Other reasons have no lines" in help_text
    empty = discreet("check", csv(tmp_path, b"user,page\n,a\n", "empty.csv"), "--user", "user", "--item", "page")[1]
    assert "1 row left out: user is NULL\n" in empty
    (tmp_path / "empty.csv").unlink()
    other = csv(tmp_path, b"user,page\n9\n", "more.csv")
    out = discreet("check", tmp_path)[1]
    assert f"{tmp_path / 'log.csv'} line 4" in out
    assert "8 rows left out: too few cells" in out
    assert str(other) not in out.partition("too few cells")[0]


def test_joined_labels_that_are_too_long_are_dropped_as_in_a_count(tmp_path):
    path = csv(tmp_path, b"user,page,day\n1,%b,%b\n2,a,b\n" % (b"x" * 5000, b"y" * 5000))
    found, counts = agreed(path, "user", ["page", "day"], None)
    assert found.dropped == {"page and day have more than 8,192 bytes as one label": 1}
    assert found.counted == counts.sum() == 1


def test_a_table_of_sqlite_is_checked(tmp_path):
    pytest.importorskip("ibis.backends.sqlite")
    path = tmp_path / "logs.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE visits (u INTEGER, page TEXT, weight REAL)")
        rows = [(1, "a", 1.5), (1, "b", None), (2, "a", 2.0), (None, "a", 1.0), (3, None, 1.0), ("three", "a", 1.0)]
        database.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
        database.execute("INSERT INTO visits VALUES (4, CAST(x'ff' AS TEXT), 1.0)")
    database.close()
    found, counts = agreed(open_database(path, "visits"), "u", "page", None)
    assert (found.rows, found.counted, found.users, found.items, counts.sum()) == (7, 3, 2, 2, 3)
    assert found.dropped["a cell is not of its column's type, or not UTF-8"] == 2
    options = ["--database", path, "--table", "visits"]
    out = output("check", *options, "--user", "u", "--item", "page")[0]
    assert all(line.startswith("NOT PRIVATE  ") for line in out.splitlines())
    assert "NOT PRIVATE  3 rows counted" in out.splitlines()
    out = output("check", *options)[0]
    assert "NOT PRIVATE  7 rows" in out.splitlines()
    err = errors_of("check", *options, "--user", "u", "--item", "page", "--time", "t", "--every", "1d")
    assert "does not read time" in err
