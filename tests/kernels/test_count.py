"""Exact distinct users per item: Rust against its twins, and against arrays that lie."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import InputError, ParameterError, SchemaError, _core
from discreet.reference.count import count_distinct, count_pairs
from discreet.reference.top import top


def as_dict(counted):
    labels, counts = counted
    names = labels.take(np.arange(len(counts)))
    assert len(set(names)) == len(names)
    return dict(zip(names, counts.tolist(), strict=True))


INTEGERS = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(0, 5)
WORDS = st.sampled_from(["", " ", "a", "b", "NULL", "nan", "None", "é", "e\u0301", "\u200b", "x" * 40, "x" * 41, "\0"])
KINDS = [SMALL, INTEGERS, st.integers(2**63, 2**64 - 1), WORDS, st.text(max_size=14), st.binary(max_size=14)]


@st.composite
def columns(draw):
    rows = draw(st.integers(0, 60))
    made = []
    for _ in range(2):
        kind = draw(st.sampled_from(KINDS))
        made.append(draw(st.lists(st.one_of(st.none(), kind), min_size=rows, max_size=rows)))
    return made


@settings(max_examples=300, deadline=None)
@given(columns(), st.integers(1, 3))
def test_pairs_are_counted_as_by_the_twin(pairs, threads):
    assert as_dict(_core.count_pairs(*pairs, threads=threads)) == count_pairs(*pairs)


@pytest.mark.parametrize("l0", [None, 3])
def test_counts_stop_at_enough(l0):
    users = np.repeat(np.arange(1000), 3)
    items = np.concatenate([(0, 1 + user % 2, 3 + user % 400) for user in range(1000)])
    full = as_dict(_core.count_pairs(users, items, l0=l0))
    assert max(full.values()) == 1000
    for enough in (1, 2, 3, 700):
        counted = as_dict(_core.count_pairs(users, items, l0=l0, enough=enough, threads=3))
        assert counted == {item: min(count, enough) for item, count in full.items()}


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("repeats", [1, 6])
def test_many_rows_are_counted_as_by_numpy(threads, strings, repeats):
    random = np.random.default_rng(1)
    users = np.tile(random.integers(0, 3000, 300_000), repeats) * 7_919_003
    items = np.tile(random.zipf(1.3, 300_000) % 40_000, repeats)
    if strings:
        users, items = users.astype("U16"), items.astype("U16")
    labels, counts = count_distinct(users, items)
    assert as_dict(_core.count_pairs(users, items, threads=threads)) == dict(
        zip(labels.tolist(), counts.tolist(), strict=True)
    )


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("high", [2**32, 2**40, 2**63 - 2**40])
def test_users_that_differ_in_their_upper_bits_alone_are_different(threads, high):
    # One thread may meet wide users first in what another has sent it.
    random = np.random.default_rng(1)
    for _ in range(5):
        users = np.concatenate([np.arange(3000) * 5, high + np.arange(3000) * 5])
        order = np.tile(random.permutation(6000), 3)
        items = np.array([f"item {n % 50}" for n in range(6000)])
        counted = as_dict(_core.count_pairs(users[order], items[order], threads=threads))
        assert counted == dict.fromkeys((f"item {n}" for n in range(50)), 120)


def test_duplicates_beyond_the_compaction_size_are_counted_once():
    users = np.tile(np.arange(1000), 9000)
    items = np.repeat(np.arange(9), 1_000_000)
    assert as_dict(_core.count_pairs(users, items, threads=1)) == dict.fromkeys(range(9), 1000)


def test_one_item_of_everyone_is_counted():
    users = np.arange(1_500_000, dtype=np.int64) * 2**33
    assert as_dict(_core.count_pairs(users, np.zeros(1_500_000, np.int64))) == {0: 1_500_000}


def test_keys_that_grow_on_the_way_are_widened():
    users = np.concatenate([np.arange(200_000), np.arange(200_000) + 2**40, -np.arange(200_000)])
    items = np.concatenate([np.full(300_000, 3), np.full(300_000, -(2**62))])
    labels, counts = count_distinct(users, items)
    assert as_dict(_core.count_pairs(users, items, threads=2)) == dict(
        zip(labels.tolist(), counts.tolist(), strict=True)
    )


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("large", [None, (2**31, 1), (-1, 1), (1, 2**21), (1, -1), (2**40, 1), (1, 2**40)])
def test_small_numbers_are_counted_as_by_numpy_whatever_comes_among_them(threads, large):
    random = np.random.default_rng(1)
    users, items = random.integers(0, 3000, 200_000), random.zipf(1.3, 200_000) % 40_000
    if large:
        users[150_001], items[150_001] = large
    labels, counts = count_distinct(users, items)
    expected = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    for memory in (None, 1 << 25, 1 << 27):
        assert as_dict(_core.count_pairs(users, items, threads=threads, memory=memory)) == expected
    parts = [(users[part], items[part]) for part in np.split(np.arange(200_000), [100, 120_000])]
    for source in (parts, parts[::-1]):
        assert as_dict(_core.count_distinct(source, "u", "i", threads=threads)) == expected


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integers_of_any_width_keep_their_value(dtype):
    info = np.iinfo(dtype)
    items = np.array([info.min, info.max, info.max], dtype=dtype)
    assert as_dict(_core.count_pairs(np.arange(3), items)) == {info.min: 1, info.max: 2}


def test_users_beyond_two_to_the_53_stay_distinct_beside_a_null():
    assert as_dict(_core.count_pairs([2**53, 2**53 + 1, None], ["a", "a", "a"])) == {"a": 2}


def test_text_that_no_utf8_can_hold_is_dropped():
    assert as_dict(_core.count_pairs(["u", "\ud800", "v"], ["a", "a", "\udfff"])) == {"a": 1}


def test_a_missing_value_of_pandas_is_null():
    items = np.array(["a", float("nan"), None, "a"], dtype=object)
    assert as_dict(_core.count_pairs([1, 2, 3, 4], items)) == {"a": 2}


@pytest.mark.parametrize(
    "bad",
    [
        [1.5],
        [True],
        ["a", 1],
        [b"a", "a"],
        [1, "a"],
        [2**64],
        [-1, 2**63],
        [[1]],
        "a",
        1,
        np.array([1.0]),
        np.ones((1, 1), int),
    ],
)
def test_other_types_are_a_schema_error(bad):
    with pytest.raises(SchemaError):
        _core.count_pairs(bad, [1])


def test_unequal_lengths_are_refused():
    with pytest.raises(ParameterError):
        _core.count_pairs([1, 2], [1])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([SMALL, WORDS]).flatmap(lambda kind: st.lists(kind, unique=True)), st.data())
def test_the_largest_are_those_of_the_twin(labels, data):
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(labels), max_size=len(labels)))
    n = data.draw(st.integers(0, len(labels) + 2))
    ours = _core.top(_core.Labels.from_sequence(labels), np.array(counts, dtype=np.int64), n)
    assert ours.tolist() == top(labels, counts, n)


# --- Arrow --------------------------------------------------------------------------------------------


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow")


def count_arrow(table, **options):
    return as_dict(_core.count_distinct(table, "u", "i", **options))


def arrow_types(pa, cells):
    """An array in every type that can hold it, dictionaries of every index type included."""
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


def test_duplicated_unused_and_null_dictionary_values_are_never_shown(pa):
    values = pa.array(["a", "secret", "a", None, "b"])
    items = pa.DictionaryArray.from_arrays(pa.array([0, 2, 3, 4, None], pa.int32()), values)
    table = pa.table({"u": [1, 2, 3, 4, 5], "i": items})
    assert count_arrow(table) == {"a": 2, "b": 1}


def test_a_null_in_a_dictionary_of_users_leaves_the_other_rows_alone(pa):
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
def test_small_dictionaries_are_counted_by_number_as_by_value(pa, cells, memory):
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
        labels, counts = _core.count_distinct(table, "u", "i", limit=1, memory=memory)
        rows = _core.top(labels, counts, 1)
        every = count_pairs(named[100:1600], chosen[100:1600])
        assert (labels.take(rows), counts.tolist()) == (
            [min(every, key=lambda c: (-every[c], c))],
            [max(every.values())],
        )


@pytest.mark.parametrize("index", [3, -1])
def test_an_index_out_of_range_of_a_small_dictionary_is_an_input_error(pa, index):
    indices = pa.array([0] * 99 + [index], pa.int8())
    items = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "c"]), safe=False)
    for columns in ({"u": range(100), "i": items}, {"u": items, "i": range(100)}):
        with pytest.raises(InputError):
            count_arrow(pa.table(columns))


@pytest.mark.parametrize("users", [["a", "b", "c"], [1, 2, 3]])
def test_a_few_rows_whose_labels_alone_are_too_large_for_the_memory_are_counted(pa, users):
    first = pa.table({"u": users, "i": ["x" * 2_000_000, "y" * 2_000_001, "x" * 2_000_000]})
    # Codes begin anew behind labels that were put away: some of these share a partition with those.
    others = [f"item {n}" for n in range(5000)]
    second = pa.table({"u": [users[0]] * 5000, "i": others})
    counted = as_dict(_core.count_distinct([first, second], "u", "i", threads=1, memory=1 << 20))
    assert counted == {"x" * 2_000_000: 2, "y" * 2_000_001: 1} | dict.fromkeys(others, 1)


@pytest.mark.parametrize("limit", [2**63, 2**64 - 1])
def test_a_limit_beyond_all_counts_is_none(limit):
    assert as_dict(_core.count_pairs([1, 2, 1], ["a", "a", "b"], limit=limit)) == {"a": 2, "b": 1}


def test_invalid_utf8_is_dropped_without_an_error(pa):
    offsets, data = np.array([0, 1, 2, 3], np.int32), b"a\xffb"
    items = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    assert count_arrow(pa.table({"u": [1, 2, 3], "i": items})) == {"a": 1, "b": 1}
    assert count_arrow(pa.table({"u": items, "i": [1, 1, 1]})) == {1: 3}


@pytest.mark.parametrize("offsets", [[0, 2, 1, 3], [0, -1, 2, 3], [2, 1, 0, 0], [0, 1, 2, -5]])
def test_offsets_that_decrease_are_an_input_error(pa, offsets):
    for kind, dtype in ((pa.string(), np.int32), (pa.large_string(), np.int64)):
        for other in ("u", "i"):
            honest = np.array([0, 1, 2, 3], dtype)
            column = pa.Array.from_buffers(kind, 3, [None, pa.py_buffer(honest), pa.py_buffer(b"abcdef")])
            table = pa.table({"u": column, "i": column, other: [1, 2, 3]})
            honest[:] = offsets  # behind the back of a library that refuses to make such an array
            with pytest.raises(InputError):
                count_arrow(table)


@pytest.mark.parametrize("index", [3, -1, 127, -128])
def test_a_dictionary_index_out_of_range_is_an_input_error(pa, index):
    indices = pa.array([0, index], pa.int8())
    items = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "c"]), safe=False)
    for columns in ({"u": [1, 2], "i": items}, {"u": items, "i": [1, 2]}):
        with pytest.raises(InputError):
            count_arrow(pa.table(columns))
    assert count_arrow(pa.table({"u": [1, None], "i": items})) == {"a": 1}


@pytest.mark.parametrize("kind", ["float64", "bool_", "null", "date32", "decimal", "list", "struct", "timestamp"])
def test_types_that_are_neither_users_nor_items_are_a_schema_error(pa, kind):
    types = {
        "decimal": pa.decimal128(10, 2),
        "list": pa.list_(pa.int64()),
        "struct": pa.struct([("a", pa.int64())]),
        "timestamp": pa.timestamp("us"),
    }
    column = pa.nulls(2, types[kind] if kind in types else getattr(pa, kind)())
    for columns in ({"u": [1, 2], "i": column}, {"u": column, "i": [1, 2]}):
        with pytest.raises(SchemaError, match="cast it"):
            count_arrow(pa.table(columns))


def test_missing_and_duplicate_columns_are_a_schema_error(pa):
    with pytest.raises(SchemaError, match="no column"):
        count_arrow(pa.table({"u": [1], "j": [1]}))
    with pytest.raises(SchemaError, match="more than one"):
        count_arrow(pa.Table.from_arrays([pa.array([1])] * 3, names=["u", "i", "i"]))


def test_a_stream_is_read_once(pa):
    capsule = pa.table({"u": [1], "i": ["a"]}).__arrow_c_stream__()
    assert as_dict(_core.count_distinct(capsule, "u", "i")) == {"a": 1}
    with pytest.raises(InputError):
        _core.count_distinct(capsule, "u", "i")


def test_a_source_that_fails_is_an_input_error_without_its_text(pa):
    schema = pa.schema([("u", pa.int64()), ("i", pa.string())])

    def batches():
        yield pa.record_batch([[1], ["a"]], schema=schema)
        raise ValueError("secret cell")

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(InputError) as caught:
        count_arrow(reader)
    assert "secret" not in str(caught.value)


def slow_batches(pa, seconds, rows=1000):
    import time

    schema = pa.schema([("u", pa.int64()), ("i", pa.int64())])
    end = time.monotonic() + seconds
    batch = pa.record_batch([np.arange(rows), np.arange(rows)], schema=schema)

    def batches():
        while time.monotonic() < end:
            time.sleep(0.01)
            yield batch

    return pa.RecordBatchReader.from_batches(schema, batches())


def test_progress_is_told(pa):
    seen = []
    assert len(count_arrow(slow_batches(pa, 0.5), progress=lambda: seen.append(None))) == 1000
    assert 2 <= len(seen) <= 20


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_stops_the_work_within_a_second():
    import signal
    import threading
    import time

    import duckdb

    if not hasattr(signal, "pthread_kill"):
        pytest.skip("this system cannot interrupt a thread")
    endless = duckdb.connect().sql("SELECT range % 1000 AS u, range % 7 AS i FROM range(1000000000000)")
    main = threading.get_ident()
    started = time.monotonic()
    threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        count_arrow(endless)
    assert time.monotonic() - started < 2


def test_an_error_of_the_progress_call_stops_the_work(pa):
    def fail():
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        count_arrow(slow_batches(pa, 30), progress=fail)


def test_polars_and_duckdb_are_counted():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"u": [1, 2, 2], "i": ["a", "a", "b"]})
    assert as_dict(_core.count_distinct(frame, "u", "i")) == {"a": 2, "b": 1}
    categories = frame.with_columns(polars.col("i").cast(polars.Categorical))
    assert as_dict(_core.count_distinct(categories, "u", "i")) == {"a": 2, "b": 1}


# --- at most l0 items of each user ---------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(columns(), st.integers(1, 5), st.integers(1, 3))
def test_a_user_keeps_at_most_l0_items_and_all_where_there_are_no_more(pairs, l0, threads):
    users, items = pairs
    distinct = {(u, i) for u, i in zip(users, items, strict=True) if u is not None and i is not None}
    owned = Counter(user for user, _ in distinct)
    kept = as_dict(_core.count_pairs(users, items, l0=l0, threads=threads))
    full = count_pairs(users, items)
    assert set(kept) <= set(full)
    assert 0 not in kept.values()
    assert sum(kept.values()) == sum(min(number, l0) for number in owned.values())
    for item, count in kept.items():
        certain = sum(owned[user] <= l0 for user, other in distinct if other == item)
        assert certain <= count <= full[item]


def test_each_item_of_a_user_is_kept_with_the_same_chance():
    users, items = np.repeat(np.arange(30_000), 6), np.tile(np.arange(6), 30_000)
    for users_as, items_as in ((users, items), (users.astype("U8"), items.astype("U4"))):
        kept = as_dict(_core.count_pairs(users_as, items_as, l0=2))
        # Each is Binomial(30,000, 1/3), with a standard deviation of 82.
        assert all(abs(count - 10_000) < 6 * 82 for count in kept.values())
        assert sum(kept.values()) == 60_000


def test_what_a_user_keeps_depends_on_no_other_user():
    # One call has one choice for everyone: a user's copy among other users in one column of pairs keeps the same.
    kept = as_dict(_core.count_pairs(np.repeat(np.arange(4000), 3), np.tile(np.arange(3), 4000), l0=3))
    assert kept == {0: 4000, 1: 4000, 2: 4000}
    pair = as_dict(_core.count_pairs(np.array([1, 1, 1, 1]), np.array([7, 7, 8, 8]), l0=1))
    assert sum(pair.values()) == 1


def test_two_calls_choose_anew():
    users, items = np.repeat(np.arange(1000), 4), np.tile(np.arange(4), 1000)
    first, second = (as_dict(_core.count_pairs(users, items, l0=1)) for _ in range(2))
    assert first != second


def test_only_items_that_are_listed_count_and_take_places():
    users, items = np.repeat(np.arange(100), 5), np.tile(["a", "b", "c", "d", "e"], 100)
    for items_as, listed, found in (
        (items, ["a", "d", "z"], {"a": 100, "d": 100}),
        (np.tile(np.arange(-2, 3), 100), [-2, 1, 9], {-2: 100, 1: 100}),
    ):
        for users_as in (users, users.astype("U5")):
            only = _core.Labels.from_sequence(listed)
            kept = as_dict(_core.count_pairs(users_as, items_as, l0=2, only=only))
            assert kept == found
            one = as_dict(_core.count_pairs(users_as, items_as, l0=1, only=only))
            assert sum(one.values()) == 100
            free = as_dict(_core.count_pairs(users_as, items_as, only=only))
            assert free == found


def test_a_listed_number_is_no_other_with_the_same_bits():
    signed, unsigned = np.array([-1, 5]), np.array([2**64 - 1, 5], np.uint64)
    for users in ([1, 2], ["a", "b"]):
        for items, listed, found in (
            (signed, unsigned, {5: 1}),
            (unsigned, signed, {5: 1}),
            (signed, signed, {-1: 1, 5: 1}),
            (unsigned, unsigned, {2**64 - 1: 1, 5: 1}),
        ):
            only = _core.Labels.from_sequence(listed)
            assert as_dict(_core.count_pairs(users, items, only=only)) == found


def test_listed_items_of_another_type_are_refused():
    with pytest.raises(SchemaError, match="listed items"):
        _core.count_pairs([1, 2], ["a", "b"], only=_core.Labels.from_sequence([1]))
    with pytest.raises(SchemaError, match="listed items"):
        _core.count_pairs([1, 2], [3, 4], only=_core.Labels.from_sequence(["3"]))
    with pytest.raises(SchemaError, match="listed items"):
        _core.count_pairs([1, 2], [b"a", b"b"], only=_core.Labels.from_sequence(["a"]))
    assert as_dict(_core.count_pairs([1, 2], ["a", "b"], only=_core.Labels.from_sequence([]))) == {}


@pytest.mark.parametrize("bounds", [{"l0": 0}, {"enough": 0}, {"enough": -3}])
def test_bounds_that_leave_nothing_are_refused(bounds):
    with pytest.raises(ParameterError, match="at least 1"):
        _core.count_pairs([1, 2], [3, 4], **bounds)
