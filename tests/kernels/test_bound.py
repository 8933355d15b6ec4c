"""Contribution bounding: a user keeps at most l0 items, each item with the same probability.

Each call draws a fresh key, so the tests of the choice are statistical. `rust/tests/neighbours.rs` fixes the key.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import as_dict, columns, counted_pairs
from scipy.stats import chi2

from discreet import _core
from discreet.errors import SchemaError
from discreet.reference.count import count_bounded, count_pairs


def kept(groups, l0, people, **options):
    """Return how many users keep each item, for each number of items per user in `groups`.

    A group has `people` users, who all have the same items.
    """
    users, items = [], []
    for own in groups:
        users.append(np.repeat(np.arange(people) + people * own, own))
        items.append(np.tile(np.arange(own) + 100 * own, people))
    columns = [np.concatenate(column) for column in (users, items)]
    order = np.random.default_rng(4).permutation(len(columns[0]))
    columns = [column[order] for column in columns]
    if options.pop("strings"):
        columns = [column.astype("U9") for column in columns]
    labels, counts = counted_pairs(*columns, l0=l0, **options)
    found = {int(item): n for item, n in zip(labels.take(np.arange(len(counts))), counts.tolist(), strict=True)}
    return {own: np.array([found[100 * own + place] for place in range(own)]) for own in groups}


SIZES = [
    ([2, 3, 7, 20], 1500),
    pytest.param([2, 3, 4, 6, 9, 30, 100], 40_000, marks=pytest.mark.statistical),
]


@pytest.mark.parametrize(("groups", "people"), SIZES, ids=["1500", "40000"])
@pytest.mark.parametrize("options", [{}, {"threads": 3}, {"memory": 0}])
@pytest.mark.parametrize("strings", [False, True])
def test_each_of_m_items_is_kept_with_probability_l0_over_m(groups, people, strings, options):
    for l0 in (1, 2, 5):
        for own, counts in kept(groups, l0, people, strings=strings, **options).items():
            assert counts.sum() == people * min(l0, own)
            if own > l0:
                # A user keeps l0 different items, so the counts are negatively correlated: the factor own / (own - 1).
                variance = people * l0 / own * (1 - l0 / own) * own / (own - 1)
                statistic = ((counts - people * l0 / own) ** 2).sum() / variance
                # At most 156 of these tests run together: a chance below 2e-11.
                assert chi2.sf(statistic, own - 1) > 1e-13, (own, l0)


@pytest.mark.parametrize("l0", [1, 2, 5, 30])
def test_the_reference_keeps_l0_items_of_each_user_uniformly(l0):
    people, own = 4000, 8
    users, items = np.repeat(np.arange(people), own), np.tile(np.arange(own), people)
    twice = np.tile(users, 2), np.tile(items, 2)
    _, ours = counted_pairs(*twice, l0=l0)
    labels, counts = count_bounded(*twice, l0, np.random.default_rng(1))
    assert labels.tolist() == list(range(own))
    assert counts.sum() == ours.sum() == people * min(l0, own)
    deviation = (people * l0 / own * max(1 - l0 / own, 0)) ** 0.5
    assert np.all(np.abs(counts - people * min(l0, own) / own) <= 6 * deviation)


def test_the_reference_drops_items_that_nobody_keeps():
    labels, counts = count_bounded(np.zeros(50, int), np.arange(50), 3, np.random.default_rng(1))
    assert len(labels) == 3
    assert counts.tolist() == [1, 1, 1]
    assert count_bounded(np.zeros(0, int), np.zeros(0, int), 3, np.random.default_rng(1))[1].tolist() == []


@settings(max_examples=150, deadline=None)
@given(columns(), st.integers(1, 5), st.integers(1, 3))
def test_a_user_keeps_l0_items_or_all_if_there_are_fewer(pairs, l0, threads):
    users, items = pairs
    distinct = {(u, i) for u, i in zip(users, items, strict=True) if u is not None and i is not None}
    owned = Counter(user for user, _ in distinct)
    kept = as_dict(counted_pairs(users, items, l0=l0, threads=threads))
    full = count_pairs(users, items)
    assert set(kept) <= set(full)
    assert 0 not in kept.values()
    assert sum(kept.values()) == sum(min(number, l0) for number in owned.values())
    for item, count in kept.items():
        certain = sum(owned[user] <= l0 for user, other in distinct if other == item)
        assert certain <= count <= full[item]


@pytest.mark.parametrize("memory", [None, 0])
@pytest.mark.parametrize("strings", [False, True])
def test_what_a_user_keeps_depends_on_no_other_user(strings, memory):
    """With l0 = 1, a user with two items keeps each with probability 1/2, independently of all other users."""
    turns = 3000
    # Every third user has items that nobody else has. Of the others, 4 users share the first item or the second item.
    own = np.arange(3 * turns)
    lone, first, second = own.reshape(turns, 3).T
    crowded = np.concatenate([np.repeat(2 * first, 4), np.repeat(2 * second + 1, 4)])
    users = np.concatenate([np.repeat(own, 2), len(own) + np.arange(len(crowded))])
    items = np.concatenate([np.arange(2 * len(own)), crowded])
    kept = bounded(users, items, strings, l0=1, memory=memory)
    for group, others in ((lone, 0), (first, 4), (second, 0)):
        keeps_first = np.array([kept.get(2 * user, 0) - others for user in group.tolist()])
        assert set(keeps_first.tolist()) == {0, 1}
        # 3 sums in 4 cases, with 7 standard deviations: a chance of 3e-11.
        assert abs(keeps_first.sum() - turns / 2) < 7 * (turns / 4) ** 0.5
    # 100 users share two items. If they agreed, or balanced the counts, the variance would not be binomial.
    groups, people = 1000, 100
    users, group = np.arange(groups * people), np.repeat(np.arange(groups), people)
    kept = bounded(np.tile(users, 2), np.concatenate([2 * group, 2 * group + 1]), strings, l0=1, memory=memory)
    counts = np.array([kept.get(2 * n, 0) for n in range(groups)])
    statistic = ((counts - people / 2) ** 2).sum() / (people / 4)
    assert 1e-12 < chi2.sf(statistic, groups) < 1 - 1e-12


def bounded(users, items, strings, **options):
    """Return the bounded count of each item, with integer columns or columns of text."""
    columns = (users.astype("U9"), items.astype("U9")) if strings else (users, items)
    return {int(item): count for item, count in as_dict(counted_pairs(*columns, **options)).items()}


def test_two_calls_choose_different_items():
    # Each user has items of their own: the choices are equal with a chance of 4^-1000.
    users, items = np.repeat(np.arange(1000), 4), np.arange(4000)
    first, second = (as_dict(counted_pairs(users, items, l0=1)) for _ in range(2))
    assert first != second


def test_unlisted_items_are_dropped_before_l0_applies():
    users, items = np.repeat(np.arange(100), 5), np.tile(["a", "b", "c", "d", "e"], 100)
    for items_as, listed, found in (
        (items, ["a", "d", "z"], {"a": 100, "d": 100}),
        (np.tile(np.arange(-2, 3), 100), [-2, 1, 9], {-2: 100, 1: 100}),
    ):
        for users_as in (users, users.astype("U5")):
            only = _core.Labels.from_sequence(listed)
            kept = as_dict(counted_pairs(users_as, items_as, l0=2, only=only))
            assert kept == found
            one = as_dict(counted_pairs(users_as, items_as, l0=1, only=only))
            assert sum(one.values()) == 100
            free = as_dict(counted_pairs(users_as, items_as, only=only))
            assert free == found


def test_signed_and_unsigned_items_with_equal_bits_differ():
    signed, unsigned = np.array([-1, 5]), np.array([2**64 - 1, 5], np.uint64)
    for users in ([1, 2], ["a", "b"]):
        for items, listed, found in (
            (signed, unsigned, {5: 1}),
            (unsigned, signed, {5: 1}),
            (signed, signed, {-1: 1, 5: 1}),
            (unsigned, unsigned, {2**64 - 1: 1, 5: 1}),
        ):
            only = _core.Labels.from_sequence(listed)
            assert as_dict(counted_pairs(users, items, only=only)) == found


def test_listed_items_of_another_type_are_refused():
    for items, listed in ((["a", "b"], [1]), ([3, 4], ["3"]), ([b"a", b"b"], ["a"])):
        with pytest.raises(SchemaError, match="listed items"):
            counted_pairs([1, 2], items, only=_core.Labels.from_sequence(listed))
    assert as_dict(counted_pairs([1, 2], ["a", "b"], only=_core.Labels.from_sequence([]))) == {}


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_a_secret_makes_one_choice_of_the_same_rows(kind):
    """In any order, batches, threads and memory; another secret makes another choice of 9,000 users' items."""
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(5)
    table = pyarrow.table(
        {name: pyarrow.array(rng.integers(0, most, 90_000)).cast(kind) for name, most in (("u", 9000), ("i", 99))}
    )
    other = table.take(rng.permutation(90_000))

    def chosen(rows, secret=b"k" * 32, **options):
        labels, counts, _ = _core.count_distinct(rows, "u", "i", l0=3, secret=secret, **options)
        return dict(zip(labels.to_list(), counts.tolist(), strict=True))

    expected = chosen(table)
    assert sum(expected.values()) <= 27_000
    for rows in (table, other, [other.slice(0, 500), other.slice(500)]):
        for options in ({"threads": 1}, {"threads": 2, "memory": 0}):
            assert chosen(rows, **options) == expected
    assert chosen(table, b"j" * 32) != expected
