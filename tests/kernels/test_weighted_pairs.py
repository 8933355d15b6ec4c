"""Weighted sums of all of a user's numbers, against the reference in whole numbers of Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import _core
from discreet.errors import ParameterError
from discreet.reference import calibrated_aggregates as reference
from discreet.theorems.calibrated_aggregates import BINS, CUT

ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 4), st.sampled_from([0, 1, -1, 3, 10**6, -(10**18), 2**62, None])),
    max_size=40,
)
COLUMNS = [(0, "users", 1, 1), (0, "rows", 0, 2**31), (0, "sum", -(2**127), 2**127 - 1), (1, "sum", -5, 1000)]


def paired(rows, items, memory=None, threads=None):
    """Return the kernel of all columns: rows of users, items and a value, and half of the value in a second column."""
    data = {name: np.array([row[place] for row in rows], np.int64) for place, name in enumerate(("user", "item"))}
    first, second = (
        {
            **data,
            "v": np.ma.array([(row[2] or 0) // by for row in rows], np.int64, mask=[row[2] is None for row in rows]),
        }
        for by in (1, 2)
    )
    from discreet.engines.local import read
    from discreet.engines.table import Table

    made = []
    for one in (first, second):
        table = Table(one, user="user", item="item")
        own = {"value": "v", "like": made[0] if made else None, "memory": memory, "threads": threads}
        made.append(
            read(table, lambda sources, room, own=own: _core.Pairs.read(sources, "user", "item", **own), value="v")
        )
    return _core.WeightedPairs(made, COLUMNS, _core.Labels.from_sequence(items))


def users_of(rows, items):
    """Return the numbers of each user by the place of the item, one for each column."""
    pairs = {}
    for user, item, value in rows:
        if item in items:
            pairs.setdefault(user, {}).setdefault(items.index(item), []).append(value)
    found = []
    for own in pairs.values():
        numbers = {}
        for item, values in own.items():
            given = [value for value in values if value is not None]
            half = min(max(sum(value // 2 for value in given), -5), 1000) if given else 0
            numbers[item] = (1, len(values), sum(given), half)
        found.append(numbers)
    return found


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 24), st.integers(0, 60), st.integers(0, 70), st.integers(1, 2**20), st.randoms())
def test_weighted_sums_are_those_of_the_reference(rows, bits, shift, wide, cap, random):
    items = [3, 0, 9, 1]
    found, users = paired(rows, items), users_of(rows, items)
    weights = [random.randint(0, 2**20) for _ in items]
    norms = [reference.histogram(users, weights, column, BINS) for column in range(4)]
    assert found.norms(weights).tolist() == [one.tolist() for one in norms]
    multipliers = [([random.randint(0, 2**40) for _ in items], one) for one in (shift, shift, wide, wide)]
    sums = reference.weighed_sums(users, multipliers, bits, CUT, len(items))
    assert found.sums(multipliers, bits).tolist() == sums.tolist()
    for column in range(4):
        factors = [random.randint(-(2**20), 2**20) for _ in items]
        expected = reference.layers(users, column, factors, wide, cap * 4)
        assert found.layers(column, factors, wide, cap * 4) == expected


def test_sums_do_not_depend_on_threads_memory_or_the_order_of_rows():
    random = np.random.default_rng(1)
    rows = [
        (int(u), int(i), int(v))
        for u, i, v in zip(
            random.integers(0, 400, 30_000),
            random.geometric(0.05, 30_000),
            random.integers(-9, 90, 30_000),
            strict=True,
        )
    ]
    items, others = [*range(40)], [rows[place] for place in random.permutation(len(rows))]
    weights, multipliers = [7] * 40, [([2**20] * 40, 3)] * 4
    whole = paired(rows, items)
    for order, memory, threads in ((others, None, 1), (rows, 1 << 16, 1), (others, 1 << 17, 3)):
        found = paired(order, items, memory, threads)
        assert np.array_equal(found.norms(weights), whole.norms(weights))
        assert np.array_equal(found.sums(multipliers, 20), whole.sums(multipliers, 20))
        assert found.layers(2, [5] * 40, 0, 1000) == whole.layers(2, [5] * 40, 0, 1000)


def test_lists_that_do_not_fit_are_refused():
    found = paired([(1, 0, 5)], [0, 1])
    for call in (
        lambda: found.norms([1]),
        lambda: found.sums([([1, 1], 0)], 5),
        lambda: found.sums([([1, 1], 0)] * 4, 25),
        lambda: found.layers(4, [1, 1], 0, 4),
        lambda: found.layers(0, [2**40, 1], 0, 4),
        lambda: _core.WeightedPairs([], [], _core.Labels.from_sequence([1])),
    ):
        with pytest.raises(ParameterError):
            call()
