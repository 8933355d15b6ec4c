"""Arrow streams: every type, malformed arrays, failing sources, and slow sources."""

import signal
import threading
import time

import duckdb
import numpy as np
import pytest
from pairs import as_dict

from discreet import _core
from discreet.errors import InputError, SchemaError
from discreet.reference.count import count_pairs


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow")


def count_arrow(table, **options):
    return as_dict(_core.count_distinct(table, "u", "i", **options))


def arrow_types(pa, cells):
    """Yield an array in every type that can hold the cells, with dictionaries of several index types."""
    if all(isinstance(c, str | None) for c in cells):
        plain = [pa.string(), pa.large_string(), pa.string_view()]
    elif all(isinstance(c, bytes | None) for c in cells):
        plain = [pa.binary(), pa.large_binary(), pa.binary_view()]
    else:
        plain = [getattr(pa, name)() for name in ("int8", "int16", "int32", "int64", "uint8", "uint64")]
    for kind in plain:
        yield pa.array(cells, kind)
        if kind not in (pa.string_view(), pa.binary_view()):
            encoded = pa.array(cells, kind).dictionary_encode()
            for index in (pa.int8(), pa.uint16(), pa.int64()):
                yield encoded.cast(pa.dictionary(index, kind))


@pytest.mark.parametrize(
    "cells",
    [
        ["a", None, "b", "a", "long enough to leave a view", ""],
        [b"a", None, b"\xff", b"a", b"long enough to leave a view", b""],
        [1, None, 2, 1, 100, 0],
    ],
)
def test_every_arrow_type_is_counted_and_sliced(pa, cells):
    users = [1, 2, 3, None, 5, 6]
    for items in arrow_types(pa, cells):
        for start in (0, 2):
            table = pa.table({"u": users, "i": items, "other": [0.5] * 6}).slice(start)
            assert count_arrow(table) == count_pairs(users[start:], cells[start:]), items.type
    for column in arrow_types(pa, cells):
        table = pa.table({"u": column, "i": ["x"] * 6})
        assert count_arrow(table) == {"x": len({c for c in cells if c is not None})}, column.type


def test_fixed_size_binary_is_counted(pa):
    table = pa.table({"u": [1, 2, 3], "i": pa.array([b"abc", None, b"abc"], pa.binary(3))}).slice(1)
    assert count_arrow(table) == {b"abc": 1}


def test_chunks_and_empty_chunks_are_counted(pa):
    items = pa.chunked_array([["a"], [], ["b", "a"], []])
    table = pa.table({"u": pa.chunked_array([[1, 2], [1], []], pa.int64()), "i": items})
    assert count_arrow(table) == count_pairs([1, 2, 1], ["a", "b", "a"]) == {"a": 1, "b": 1}
    assert count_arrow(table.slice(0, 0)) == {}


def test_unused_and_null_dictionary_values_are_not_counted(pa):
    values = pa.array(["a", "secret", "a", None, "b"])
    items = pa.DictionaryArray.from_arrays(pa.array([0, 2, 3, 4, None], pa.int32()), values)
    table = pa.table({"u": [1, 2, 3, 4, 5], "i": items})
    assert count_arrow(table) == {"a": 2, "b": 1}


def test_a_null_user_in_a_dictionary_drops_only_its_rows(pa):
    users = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1], pa.int8()), pa.array([5, None, 2**40]))
    assert count_arrow(pa.table({"u": users, "i": ["a", "a", "a", "b"]})) == {"a": 2}


def test_dictionaries_that_change_between_batches_are_counted(pa):
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = [
        pa.record_batch({"u": [1, 2], "i": pa.array(labels).dictionary_encode().cast(kind)})
        for labels in (["a", "b"], ["b", "c"], ["c", "a"])
    ]
    assert count_arrow(pa.Table.from_batches(batches)) == {"a": 2, "b": 2, "c": 2}


@pytest.mark.parametrize(
    "cells", [["a", "secret", "a", None, "b"], [7, 8, 7, None, -1], [b"a", b"", b"a", None, b"\xff"]]
)
@pytest.mark.parametrize("memory", [None, 0])
def test_small_dictionaries_count_the_same_as_their_values(pa, cells, memory):
    random = np.random.default_rng(1)
    indices = [None if n == 5 else int(n) for n in random.integers(0, 6, 2000)]
    chosen = [None if n is None else cells[n] for n in indices]
    items = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(cells))
    others = [None if n == 50 else int(n) for n in random.integers(0, 51, 2000)]
    for users in (
        pa.array(others),
        pa.array(others).dictionary_encode(),
        pa.array(map(str, others)).dictionary_encode(),
    ):
        named = users.to_pylist()
        assert count_arrow(pa.table({"u": users, "i": items}), memory=memory) == count_pairs(named, chosen)
        assert count_arrow(pa.table({"u": items, "i": users}), memory=memory) == count_pairs(chosen, named)
        table = pa.table({"u": users, "i": items}).slice(100, 1500)
        assert count_arrow(table, memory=memory) == count_pairs(named[100:1600], chosen[100:1600])
        labels, counts, _ = _core.count_distinct(table, "u", "i", limit=1, memory=memory)
        rows = _core.top(labels, counts, 1)
        every = count_pairs(named[100:1600], chosen[100:1600])
        assert (labels.take(rows), counts.tolist()) == (
            [min(every, key=lambda c: (-every[c], c))],
            [max(every.values())],
        )


@pytest.mark.parametrize("kind", ["string", "binary", "int64"])
def test_unused_values_of_a_large_dictionary_are_not_counted(pa, kind):
    values = list(range(10**6, 10**6 + 3000))
    # Two values are equal. One value has only NULL users, the last value has no rows, and one is not valid text.
    values[2] = values[1]
    indices = np.arange(60_000) % 2999
    users = [None if index == 700 else int(index) % 7 for index in indices]
    shown = [None if kind == "string" and index == 2500 else values[index] for index in indices]
    if kind == "int64":
        cells = pa.array(values)
    else:
        cells = pa.array([b"\xff" if n == 10**6 + 2500 else b"%d" % n for n in values], pa.binary())
        named = {n: cell if kind == "binary" else str(n) for n, cell in zip(values, cells.to_pylist(), strict=True)}
        shown = [named.get(n) for n in shown]
    items = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int16()), cells.view(kind))
    table = pa.table({"u": users, "i": items})
    found = count_arrow(table)
    assert found == count_pairs(users, shown)
    assert len(found) == 2997 - (kind == "string")
    assert count_arrow(table, limit=2998) == found


@pytest.mark.parametrize("users", [["a", "b", "c"], [1, 2, 3]])
def test_labels_larger_than_the_memory_are_counted(pa, users):
    names = [f"{n:03}".ljust(_core.LONGEST - n % 2, "x") for n in range(300)]
    first = pa.table({"u": [users[0]] * 300 + [users[2]] * 300, "i": names + names[::-1]})
    # Codes restart after labels were spilled; some new labels share a partition with spilled ones.
    others = [f"item {n}" for n in range(5000)]
    second = pa.table({"u": [users[0]] * 5000, "i": others})
    counted = as_dict(_core.count_distinct([first, second], "u", "i", threads=1, memory=1 << 20))
    assert counted == dict.fromkeys(names, 2) | dict.fromkeys(others, 1)


def test_invalid_utf8_is_dropped_without_an_error(pa):
    offsets, data = np.array([0, 1, 2, 3], np.int32), b"a\xffb"
    items = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    assert count_arrow(pa.table({"u": [1, 2, 3], "i": items})) == {"a": 1, "b": 1}
    assert count_arrow(pa.table({"u": items, "i": [1, 1, 1]})) == {1: 3}


@pytest.mark.parametrize("offsets", [[0, 2, 1, 3], [0, -1, 2, 3], [2, 1, 0, 0], [0, 1, 2, -5]])
def test_offsets_that_decrease_are_an_input_error(pa, offsets):
    for kind, dtype in ((pa.string(), np.int32), (pa.large_string(), np.int64)):
        for other in ("u", "i"):
            offsets_in_place = np.array([0, 1, 2, 3], dtype)
            column = pa.Array.from_buffers(kind, 3, [None, pa.py_buffer(offsets_in_place), pa.py_buffer(b"abcdef")])
            table = pa.table({"u": column, "i": column, other: [1, 2, 3]})
            offsets_in_place[:] = offsets  # in place, because pyarrow refuses to create such an array
            with pytest.raises(InputError):
                count_arrow(table)


@pytest.mark.parametrize("index", [3, -1, 127, -128])
def test_a_dictionary_index_out_of_range_is_an_input_error(pa, index):
    for rows in (99, 1):
        indices = pa.array([0] * rows + [index], pa.int8())
        items = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "c"]), safe=False)
        for columns in ({"u": range(rows + 1), "i": items}, {"u": items, "i": range(rows + 1)}):
            with pytest.raises(InputError):
                count_arrow(pa.table(columns))
    assert count_arrow(pa.table({"u": [1, None], "i": items})) == {"a": 1}


@pytest.mark.parametrize("kind", ["float64", "decimal", "list", "struct", "time"])
def test_unsupported_types_are_a_schema_error(pa, kind):
    types = {"decimal": pa.decimal128(10, 2), "list": pa.list_(pa.int64()), "struct": pa.struct([("a", pa.int64())])}
    column = pa.nulls(2, (types | {"time": pa.time64("us"), "float64": pa.float64()})[kind])
    for columns in ({"u": [1, 2], "i": column}, {"u": column, "i": [1, 2]}):
        with pytest.raises(SchemaError, match="cast it"):
            count_arrow(pa.table(columns))


def test_columns_of_the_type_null_have_no_rows(pa):
    nulls = pa.nulls(5)
    coded = pa.DictionaryArray.from_arrays(pa.nulls(5, pa.int8()), pa.nulls(2))
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1, 0], pa.int8()), pa.nulls(2))
    for column in (nulls, coded, unused, pa.chunked_array([pa.nulls(2), pa.nulls(0), pa.nulls(3)])):
        for columns in ({"u": [*range(5)], "i": column}, {"u": column, "i": [*range(5)]}):
            for table in (pa.table(columns), pa.table(columns)[1:4], pa.table(columns)[:0]):
                assert count_arrow(table) == {}
                assert _core.tally(table, "u", ["i"])["counted"] == 0


def test_missing_and_duplicate_columns_are_a_schema_error(pa):
    with pytest.raises(SchemaError, match="no column"):
        count_arrow(pa.table({"u": [1], "j": [1]}))
    with pytest.raises(SchemaError, match="more than one"):
        count_arrow(pa.Table.from_arrays([pa.array([1])] * 3, names=["u", "i", "i"]))


def test_a_stream_can_be_read_only_once(pa):
    capsule = pa.table({"u": [1], "i": ["a"]}).__arrow_c_stream__()
    assert as_dict(_core.count_distinct(capsule, "u", "i")) == {"a": 1}
    with pytest.raises(InputError):
        _core.count_distinct(capsule, "u", "i")


def test_errors_do_not_contain_the_text_of_a_failing_source(pa):
    schema = pa.schema([("u", pa.int64()), ("i", pa.string())])

    def batches():
        yield pa.record_batch([[1], ["a"]], schema=schema)
        raise ValueError("secret cell")

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(InputError) as caught:
        count_arrow(reader)
    assert "secret" not in str(caught.value)


def slow_batches(pa, seconds, rows=1000):
    schema = pa.schema([("u", pa.int64()), ("i", pa.int64())])
    end = time.monotonic() + seconds
    batch = pa.record_batch([np.arange(rows), np.arange(rows)], schema=schema)

    def batches():
        while time.monotonic() < end:
            time.sleep(0.01)
            yield batch

    return pa.RecordBatchReader.from_batches(schema, batches())


def test_progress_is_called(pa):
    seen = []
    assert len(count_arrow(slow_batches(pa, 0.5), progress=lambda: seen.append(None))) == 1000
    assert 2 <= len(seen) <= 20


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_stops_the_work_before_the_last_row():
    if not hasattr(signal, "pthread_kill"):
        pytest.skip("this system cannot interrupt a thread")
    rows = duckdb.connect().sql("SELECT range % 1000 AS u, range % 7 AS i FROM range(300000000)")
    main, counted = threading.get_ident(), []
    threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):  # no Python code runs while `extend` takes the counts from `map`
        counted.extend(map(_core.count_distinct, [rows], ["u"], ["i"]))
    assert not counted


def test_an_error_in_the_progress_call_stops_the_work(pa):
    def fail():
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        count_arrow(slow_batches(pa, 30), progress=fail)
