"""Parquet files that compress many rows of one user's long label."""

import pytest
from counting import counted

from discreet import _core
from discreet.engines import local
from discreet.engines.batches import Rows
from discreet.engines.rounds import TimedEvents
from discreet.engines.sql import connect, query
from discreet.engines.sums import clipped_sums
from discreet.streams.clock import Clock

ROWS = 130_000
LABEL = "repeat('x', 20000)"
"""`ROWS` of it are more than 2 GiB, which the offsets of Arrow's small buffers cannot count."""


def write(path, label=LABEL, rows=ROWS):
    """Three users of `home`, and one with `rows` rows of a label, in a Parquet file of a few kB."""
    connect().execute(
        f"COPY (SELECT i::VARCHAR AS \"user\", 'home' AS item, 1 AS v, DATE '2026-01-01' AS t FROM range(3) t(i) "
        f"UNION ALL SELECT 'evil', {label}, 1, DATE '2026-01-01' FROM range({rows})) TO '{path}' "
        "(FORMAT parquet, COMPRESSION zstd, DICTIONARY_SIZE_LIMIT 100)"
    )


@pytest.fixture(scope="module", params=[LABEL, f"{LABEL}::BLOB"])
def small_file(request, tmp_path_factory):
    """A Parquet file with 2.6 GB of labels."""
    path = tmp_path_factory.mktemp("files") / "small.parquet"
    write(path, request.param)
    return path


def is_bytes(path):
    return str(local.scan([path], ["item"]).types[0]) == "BLOB"


def test_one_users_long_labels_do_not_end_the_count_of_others(small_file):
    assert small_file.stat().st_size < 100_000
    home = b"home" if is_bytes(small_file) else "home"
    assert counted(small_file) == {home: 3}
    assert counted(query(f"FROM read_parquet('{small_file}')")) == {home: 3}


def test_one_users_long_labels_do_not_end_the_sum_of_others(small_file):
    home = b"home" if is_bytes(small_file) else "home"
    asked = {"columns": ("user", "item", "v"), "items": [home], "bounds": (0, 1), "resolution": 1.0}
    assert clipped_sums(str(small_file), **asked) == [3]
    assert clipped_sums(query(f"FROM read_parquet('{small_file}')"), **asked) == [3]


def test_one_users_long_labels_do_not_end_the_rounds_of_others(small_file):
    clock = Clock(since="2026-01-01", every="1d")
    rows = TimedEvents(str(small_file), event="user", item="item", time="t").rounds(clock.begin, clock.span)
    assert counted(rows(1)) == {b"home" if is_bytes(small_file) else "home": 3}


@pytest.mark.parametrize("form", ["file", "query"])
def test_batches_of_the_longest_labels_take_little_memory(tmp_path, form):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "longest.parquet"
    write(path, f"repeat('x', {_core.LONGEST})", 20_000)
    found = local.scan([path], ["user", "item"]) if form == "file" else query(f"FROM read_parquet('{path}')")
    batches = [*pyarrow.RecordBatchReader.from_stream(Rows(found))]
    assert sum(len(batch) for batch in batches) == 20_003
    assert max(batch.nbytes for batch in batches) < 40_000_000
    assert counted(path) == {"home": 3, "x" * _core.LONGEST: 1}
