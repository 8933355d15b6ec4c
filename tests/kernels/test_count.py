"""Exact distinct users per item: the Rust code compared with the reference implementations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import SMALL, WORDS, as_dict, columns, counted_pairs

from discreet import _core
from discreet.errors import ParameterError, SchemaError
from discreet.reference.count import count_distinct, count_pairs
from discreet.reference.top import top


@settings(max_examples=300, deadline=None)
@given(columns(), st.integers(1, 3))
def test_counts_equal_those_of_the_reference(pairs, threads):
    assert as_dict(counted_pairs(*pairs, threads=threads)) == count_pairs(*pairs)


@pytest.mark.parametrize("l0", [None, 3])
def test_counts_stop_at_the_cap(l0):
    users = np.repeat(np.arange(1000), 3)
    items = np.concatenate([(0, 1 + user % 2, 3 + user % 400) for user in range(1000)])
    full = as_dict(counted_pairs(users, items, l0=l0))
    assert max(full.values()) == 1000
    for cap in (1, 2, 3, 700):
        counted = as_dict(counted_pairs(users, items, l0=l0, cap=cap, threads=3))
        assert counted == {item: min(count, cap) for item, count in full.items()}


@pytest.fixture(scope="module", params=[(1, False), (1, True), (6, False), (6, True)], ids=str)
def many(request):
    """Return the users and items of 300,000 rows, repeated once or six times, and the counts by the reference."""
    repeats, strings = request.param
    random = np.random.default_rng(1)
    users = random.integers(0, 3000, 300_000) * 7_919_003
    items = random.zipf(1.3, 300_000) % 40_000
    if strings:
        users, items = users.astype("U16"), items.astype("U16")
    # Repeated rows change no count.
    labels, counts = count_distinct(users, items)
    expected = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    return np.tile(users, repeats), np.tile(items, repeats), expected


@pytest.mark.parametrize("threads", [1, 5])
def test_counts_of_many_rows_equal_those_of_numpy(threads, many):
    users, items, expected = many
    assert as_dict(counted_pairs(users, items, threads=threads)) == expected


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("high", [2**32, 2**40, 2**63 - 2**40])
def test_users_that_differ_only_in_upper_bits_are_distinct(threads, high):
    # One worker may have large users while others have small ones. The merge reads the rows of all workers.
    random = np.random.default_rng(1)
    for _ in range(5):
        users = np.concatenate([np.arange(3000) * 5, high + np.arange(3000) * 5])
        order = np.tile(random.permutation(6000), 3)
        items = np.array([f"item {n % 50}" for n in range(6000)])
        counted = as_dict(counted_pairs(users[order], items[order], threads=threads))
        assert counted == dict.fromkeys((f"item {n}" for n in range(50)), 120)


@pytest.mark.parametrize(
    "items",
    [
        np.arange(18),
        np.arange(18) * 2**40,
        pytest.param(np.array(list("abcdefghijklmnopqr")), marks=pytest.mark.statistical),
    ],
    ids=["small", "large", "labels"],
)
def test_duplicates_beyond_the_compaction_size_count_once(items):
    # 18 million rows: one thread collects at most 2^24 rows before deduplication.
    users = np.tile(np.arange(1000), 18_000)
    counted = as_dict(counted_pairs(users, np.repeat(items, 1_000_000), threads=1))
    assert counted == dict.fromkeys(items.tolist(), 1000)


def test_one_item_of_all_users_is_counted():
    users = np.arange(1_500_000, dtype=np.int64) * 2**33
    assert as_dict(counted_pairs(users, np.zeros(1_500_000, np.int64))) == {0: 1_500_000}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("large", [None, (2**31, 1), (-1, 1), (1, 2**21), (1, -1), (2**40, 1), (1, 2**40)])
def test_small_numbers_among_large_ones_are_counted_exactly(threads, large):
    random = np.random.default_rng(1)
    users, items = random.integers(0, 3000, 200_000), random.zipf(1.3, 200_000) % 40_000
    if large:
        users[150_001], items[150_001] = large
    labels, counts = count_distinct(users, items)
    expected = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    for memory in (None, 1 << 25, 1 << 27):
        assert as_dict(counted_pairs(users, items, threads=threads, memory=memory)) == expected
    parts = [(users[part], items[part]) for part in np.split(np.arange(200_000), [100, 120_000])]
    for source in (parts, parts[::-1]):
        assert as_dict(_core.count_distinct(source, "u", "i", threads=threads)) == expected


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integers_of_any_width_keep_their_value(dtype):
    info = np.iinfo(dtype)
    items = np.array([info.min, info.max, info.max], dtype=dtype)
    assert as_dict(counted_pairs(np.arange(3), items)) == {info.min: 1, info.max: 2}


def test_users_above_2_to_the_53_stay_distinct_next_to_null():
    assert as_dict(counted_pairs([2**53, 2**53 + 1, None], ["a", "a", "a"])) == {"a": 2}


def test_text_that_utf8_cannot_encode_is_dropped():
    assert as_dict(counted_pairs(["u", "\ud800", "v"], ["a", "a", "\udfff"])) == {"a": 1}


def test_missing_values_of_pandas_are_null():
    items = np.array(["a", float("nan"), None, "a"], dtype=object)
    assert as_dict(counted_pairs([1, 2, 3, 4], items)) == {"a": 2}


@pytest.mark.parametrize(
    "bad",
    [
        *([1.5], [True, 1], ["a", 1], [b"a", "a"], [1, "a"], [2**64], [-1, 2**63], [[1]]),
        *("a", 1, np.array([1.0]), np.ones((1, 1), int)),
    ],
)
def test_other_types_are_a_schema_error(bad):
    with pytest.raises(SchemaError):
        counted_pairs(bad, [1])


def test_unequal_lengths_are_refused():
    with pytest.raises(ParameterError):
        counted_pairs([1, 2], [1])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([SMALL, WORDS]).flatmap(lambda kind: st.lists(kind, unique=True)), st.data())
def test_the_largest_counts_equal_those_of_the_reference(labels, data):
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(labels), max_size=len(labels)))
    n = data.draw(st.integers(0, len(labels) + 2))
    ours = _core.top(_core.Labels.from_sequence(labels), np.array(counts, dtype=np.int64), n)
    assert ours.tolist() == top(labels, counts, n)


@pytest.mark.parametrize("limit", [2**63, 2**64 - 1])
def test_a_limit_above_all_counts_has_no_effect(limit):
    assert as_dict(counted_pairs([1, 2, 1], ["a", "a", "b"], limit=limit)) == {"a": 2, "b": 1}


@pytest.mark.parametrize("bounds", [{"l0": 0}, {"cap": 0}, {"cap": -3}])
def test_bounds_below_one_are_refused(bounds):
    with pytest.raises(ParameterError, match="at least 1"):
        counted_pairs([1, 2], [3, 4], **bounds)
