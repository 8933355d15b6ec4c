"""Parquet files that compress many rows of one long label."""

from datetime import timedelta

import pytest
from counting import clipped_sums, counted

from discreet import _core
from discreet.engines import local, timed_events
from discreet.engines.batches import SmallBatches
from discreet.engines.memory import Memory
from discreet.engines.sql import connect, query
from discreet.engines.timed_events import TimedEvents
from discreet.errors import ResourceError, SchemaError
from discreet.streams.clock import Clock

ROWS = 130_000
LABEL = "repeat('x', 20000)"
"""A label in SQL. `ROWS` cells of it are more than 2 GiB, which exceeds 32-bit offsets of Arrow."""


def write(path, label=LABEL, rows=ROWS):
    """Write a Parquet file of a few kB: three users of `home`, and one user with `rows` rows of a label."""
    connect().execute(
        f"COPY (SELECT i::VARCHAR AS \"user\", 'home' AS item, 1 AS v, DATE '2026-01-01' AS t FROM range(3) t(i) "
        f"UNION ALL SELECT 'evil', {label}, 1, DATE '2026-01-01' FROM range({rows})) TO '{path}' "
        "(FORMAT parquet, COMPRESSION zstd, DICTIONARY_SIZE_LIMIT 100)"
    )


@pytest.fixture(scope="module", params=[LABEL, f"{LABEL}::BLOB"])
def small_file(request, tmp_path_factory):
    """A small Parquet file that holds 2.6 GB of labels."""
    path = tmp_path_factory.mktemp("files") / "small.parquet"
    write(path, request.param)
    return path


def is_bytes(path):
    return str(local.scan([path], ["item"]).types[0]) == "BLOB"


def test_a_count_succeeds_with_2_gib_of_one_users_labels(small_file):
    assert small_file.stat().st_size < 100_000
    home = b"home" if is_bytes(small_file) else "home"
    assert counted(small_file) == {home: 3}
    assert counted(query(f"FROM read_parquet('{small_file}')")) == {home: 3}


def test_a_sum_succeeds_with_2_gib_of_one_users_labels(small_file):
    home = b"home" if is_bytes(small_file) else "home"
    asked = {"columns": ("user", "item", "v"), "items": [home], "bounds": (0, 1), "resolution": 1.0}
    assert clipped_sums(str(small_file), **asked) == [3]
    assert clipped_sums(query(f"FROM read_parquet('{small_file}')"), **asked) == [3]


def test_rounds_succeed_with_2_gib_of_one_users_labels(small_file):
    clock = Clock(since="2026-01-01", every="1d")
    rows = TimedEvents(str(small_file), event="user", item="item", time="t").rows_by_round(clock.begin, clock.span)
    assert counted(rows(1)) == {b"home" if is_bytes(small_file) else "home": 3}


@pytest.fixture(scope="module", params=["user", "item::BLOB"])
def huge_cell(request, tmp_path_factory):
    """A small Parquet file in which the last row has one cell of 70 MB."""
    path = tmp_path_factory.mktemp("files") / "huge.parquet"
    cells = {"user": "i::VARCHAR", "item::BLOB": "'a'::BLOB"}
    column, _, kind = request.param.partition("::")
    long = f"if(i < 1000, {cells[request.param]}, repeat('x', 70_000_000)::{kind or 'VARCHAR'}) AS \"{column}\""
    other = 'i::VARCHAR AS "user"' if column == "item" else "'a' AS item"
    connect().execute(
        f"COPY (SELECT {long}, {other}, 1 AS v FROM range(1001) t(i)) TO '{path}' (FORMAT parquet, COMPRESSION zstd)"
    )
    return path


@pytest.mark.parametrize("form", ["file", "careful", "query"])
def test_one_cell_over_the_memory_limit_loses_its_own_row(huge_cell, form, monkeypatch):
    assert huge_cell.stat().st_size < 100_000
    found = query(f"FROM read_parquet('{huge_cell}')", "256MiB") if form == "query" else huge_cell
    if form == "careful":
        scan = local.scan
        monkeypatch.setattr(local, "scan", lambda *given, **_: scan(*given, careful=True))
    label = b"a" if is_bytes(huge_cell) else "a"
    assert counted(found, memory="256MiB") == {label: 1000}
    assert counted(found, item=["item", "v"], memory="256MiB") == {(label, 1): 1000}


@pytest.mark.parametrize("form", ["file", "query"])
def test_batches_of_the_longest_labels_take_little_memory(tmp_path, form):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "longest.parquet"
    write(path, f"repeat('x', {_core.LONGEST})", 20_000)
    found = local.scan([path], ["user", "item"]) if form == "file" else query(f"FROM read_parquet('{path}')")
    batches = [*pyarrow.RecordBatchReader.from_stream(SmallBatches(found))]
    assert sum(len(batch) for batch in batches) == 20_003
    assert max(batch.nbytes for batch in batches) < 40_000_000
    assert counted(path) == {"home": 3, "x" * _core.LONGEST: 1}


def test_a_repeated_label_takes_one_row_of_a_round(tmp_path):
    path = tmp_path / "repeated.parquet"
    write(path, f"repeat('x', {_core.LONGEST})", 60_000)
    clock = Clock(since="2026-01-01", every="1d")
    rows = TimedEvents(str(path), event="user", item="item", time="t").rows_by_round(clock.begin, clock.span)
    assert len(rows(1).fetchall()) == 4


def test_rounds_over_the_memory_limit_are_a_resource_error(tmp_path, monkeypatch):
    path = tmp_path / "distinct.parquet"
    write(path, f"repeat('x', {_core.LONGEST - 10}) || range::VARCHAR", 20_000)
    monkeypatch.setattr(timed_events, "Memory", Small)
    events = TimedEvents(str(path), event="user", item="item", time="t")
    with pytest.raises(ResourceError, match="more memory"):
        events.rows_by_round(Clock(since="2026-01-01", every="1d").begin, timedelta(days=1))


class Small:
    """The least memory, on any machine."""

    @staticmethod
    def of(given):
        return Memory.of("256MiB" if given is None else given)


@pytest.mark.parametrize("cell", ['"page"', "{not json", "", "'x'", '"\\ud800"'])
@pytest.mark.parametrize("column", ["user", "item"])
def test_json_columns_are_refused_for_any_cells(tmp_path, cell, column):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts = pyarrow.array(['"page"'] * 5 + [cell])
    columns = {"user": pyarrow.array([f"u{n}" for n in range(6)]), "item": pyarrow.array(["home"] * 6)}
    columns[column] = pyarrow.ExtensionArray.from_storage(pyarrow.json_(pyarrow.utf8()), texts)
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match=f"the column '{column}' .* is JSON"):
        counted(tmp_path / "a.parquet")
    assert len(counted(parquet.read_table(tmp_path / "a.parquet"))) > 0
