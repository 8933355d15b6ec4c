"""Weights of a set union: the reference, test vectors, and the sensitivity over random neighbours in exact integers.

Neighbours are two tables of which one lacks a user of the other.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from user_lists import lists_of

from discreet.errors import ParameterError
from discreet.reference.union import weights
from discreet.testing import seeded_rng

WEIGHTINGS = ["even_squares", "even", "water", "step"]
LISTED = [["a", "b"], ["a"], ["a", "b", "c"], ["c"]]
KNOWN = [
    ("even_squares", None, 1, (2.28445705038, 1.28445705038, 1.57735026919)),
    ("capped_squares", None, 1, (2.28445705038, 1.28445705038, 1.57735026919)),
    ("capped_squares", None, 2, (2.81649658093, 1.81649658093, 1.81649658093)),
    ("capped_squares", None, 3, (3, 2, 2)),
    ("step", 2.5, 1, (1.95668198314, 1.27144719493, 1.78691302949)),
    ("step", 1.2, 1, (1.2, 1.08704943001, 1.2)),
    ("water", 2.5, 1, (1.83333333333, 0.833333333333, 1.33333333333)),
    ("water", 1.2, 1, (1.2, 1, 1.2)),
]


def kernel_weights(lists, size, weighting, bits, **more):
    """Return the kernel's weights of lists of item numbers; items that nobody has weigh zero."""
    pairs = [(user, item) for user, items in enumerate(lists) for item in items]
    labels, core = lists_of([user for user, _ in pairs], [item for _, item in pairs])
    found = core.weights(weighting, bits, **more)
    result = np.zeros(size, np.int64)
    result[labels.take(np.arange(len(found)))] = found
    return result.tolist()


@pytest.mark.parametrize(("weighting", "target", "few", "known"), KNOWN)
def test_weights_match_their_test_vectors(weighting, target, few, known):
    bits = 36
    units = 1 if target is None else round(target * 2**bits)
    # Integer labels are ordered by value.
    lists = [[ord(c) - 97 for c in items] for items in LISTED]
    found = kernel_weights(lists, 3, weighting, bits, target=units, few=few)
    assert [weight / 2**bits for weight in found] == pytest.approx(known, abs=1e-9)


lists_of_items = st.lists(st.lists(st.integers(0, 7), max_size=6, unique=True).map(sorted), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(
    lists=lists_of_items,
    weighting=st.sampled_from([*WEIGHTINGS, "capped_squares"]),
    target=st.integers(1, 3000),
    few=st.integers(1, 6),
)
def test_reference_and_kernel_agree_to_the_last_bit(lists, weighting, target, few):
    lists = [items for items in lists if items]
    if lists:
        more = {"target": target << 10, "few": few}
        assert kernel_weights(lists, 8, weighting, 20, **more) == weights(lists, 8, weighting, 20, **more)


def neighbours(rng):
    """Return the number of items, lists of some users, the same lists without one user, and a target."""
    size = int(rng.integers(2, 9))
    users = [
        sorted(rng.permutation(size)[: int(rng.integers(1, size + 1))].tolist()) for _ in range(rng.integers(1, 9))
    ]
    gone = int(rng.integers(len(users)))
    return size, users, users[:gone] + users[gone + 1 :], int(rng.integers(2**16, 3 * 2**16))


def excess(weighting, rng, bits=16):
    """Return by how much the change of the weights, squared in l2, exceeds the sensitivity of one."""
    size, users, others, target = neighbours(rng)
    fine = 50 if weighting == "step" else bits
    results = [weights(lists, size, weighting, fine, target=target << (fine - bits)) for lists in (users, others)]
    unit = 1 << fine
    change = [a - b for a, b in zip(*results, strict=True)]
    if weighting in ("even", "water"):
        return sum(map(abs, change)) - unit
    # Slack for rounding: a few units for every item of every user.
    slack = (4 * sum(map(len, users)) + size) if weighting == "step" else 0
    return sum(x * x for x in change) - (unit + slack) ** 2


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_one_user_changes_the_weights_by_at_most_one(weighting):
    rng = np.random.default_rng(7)
    assert max(excess(weighting, rng) for _ in range(1500)) <= 0


@pytest.mark.parametrize("full", [1, 2, 5])
def test_capped_squares_of_a_user_add_up_to_at_most_the_cap(full):
    for number in range(1, 40):
        found = kernel_weights([[*range(number)]], number, "capped_squares", 26, few=full)
        assert sum(weight**2 for weight in found) <= full * 4**26
        assert max(found) <= 2**26


def test_capped_squares_need_a_cap():
    _, lists = lists_of([1], [2])
    for few in (0, 2**40):
        with pytest.raises(ParameterError, match="few is 0"):
            lists.weights("capped_squares", 20, few=few)


SIDE, BITS = 16, 24


def many_neighbours(rng, instances):
    """Return many small tables with and without one user.

    Each table holds how often each of up to twelve users has each of sixteen items.
    """
    users = rng.integers(1, 13, instances)
    density = rng.choice([0.15, 0.4, 0.7, 0.95, 1.0], instances)
    sizes = rng.integers(1, SIDE + 1, instances)
    named = rng.random((instances, 12, SIDE)) < density[:, None, None]
    named &= (np.arange(12) < users[:, None])[:, :, None] & (np.arange(SIDE) < sizes[:, None])[:, None, :]
    rows = named * rng.integers(1, 4, named.shape)
    others = rows.copy()
    others[np.arange(instances), rng.integers(users)] = 0
    return rows, others


def kernel_lists(rows):
    """Return the kernel's lists for many small tables at once, and the place of each item.

    The tables share no users and no items.
    """
    table, user, item = np.nonzero(rows)
    times = rows[table, user, item]
    labels, lists = lists_of(np.repeat(table * SIDE + user, times), np.repeat(table * SIDE + item, times))
    found = lists.weights("even", BITS)
    return lists, np.array(labels.take(np.arange(len(found))), np.int64)


def worst_changes(rng, instances):
    """Return, for each weighting, the largest change over many neighbours minus the allowed change, in units.

    Changes are squared for weightings in l2.
    """
    rows, others = many_neighbours(rng, instances)
    sides = [kernel_lists(side) for side in (rows, others)]
    more = {"target": int(rng.integers(2**BITS, 4 * 2**BITS))}
    worst = {}
    for weighting in WEIGHTINGS:
        results = np.zeros((2, instances * SIDE), np.int64)
        for side, (lists, places) in zip(results, sides, strict=True):
            side[places] = lists.weights(weighting, BITS, **more)
        change = (results[0] - results[1]).reshape(instances, SIDE)
        if weighting in ("even", "water"):
            worst[weighting] = int((np.abs(change).sum(axis=1) - 2**BITS).max())
        else:
            # Slack for rounding up to sixteen items down to whole units.
            allowed = 2**BITS + (5 if weighting == "step" else 0)
            worst[weighting] = int(((change**2).sum(axis=1) - allowed**2).max())
    return worst


@pytest.mark.parametrize("batches", [(10, 1000), pytest.param((500, 2000), marks=pytest.mark.statistical)])
def test_one_user_changes_the_kernels_weights_by_at_most_one(batches):
    rng = np.random.default_rng(5)
    worst = [worst_changes(rng, batches[1]) for _ in range(batches[0])]
    worst = [max(batch[weighting] for batch in worst) for weighting in WEIGHTINGS]
    assert max(worst) <= 0
    # The bound is reached if all of a user's budget goes into items below the target.
    assert min(worst) > -(2 ** (BITS + 6))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_new_items_weigh_no_more_than_the_threshold_allows(weighting):
    rng = np.random.default_rng(3)
    for _ in range(800):
        size, users, _, target = neighbours(rng)
        novel = list(range(size, size + int(rng.integers(1, 4))))
        place = int(rng.integers(len(users)))
        users[place] = users[place] + novel
        found = weights(users, size + len(novel), weighting, 16, target=target)[size:]
        t = len(novel)
        if weighting in ("even", "water"):
            assert max(found) <= -(-(2**16) // t)
        else:
            assert max(found) <= math.isqrt(2**32 // t)


def test_bounding_keeps_at_most_l0_items_that_are_not_found():
    users, items = np.repeat(np.arange(500), 20), np.tile(np.arange(20), 500)
    _, lists = lists_of(users, items)
    key = seeded_rng(1).words(8).view(np.uint64).tolist()
    weight = lists.bounded(4, np.array([3, 5]), key).weights("even", 10)
    assert weight.sum() == 500 * 4 * 256
    assert weight[3] == weight[5] == 0
    assert weight[weight > 0].min() > 60 * 256


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_order_of_rows_does_not_matter(weighting):
    rng = np.random.default_rng(5)
    users, items = rng.integers(0, 40, 600), rng.integers(0, 30, 600)
    results = []
    for order in (np.arange(600), np.arange(600)[::-1], rng.permutation(600)):
        labels, lists = lists_of(users[order], items[order])
        found = lists.weights(weighting, 20, target=3 << 20)
        results.append(dict(zip(labels.to_list(), found.tolist(), strict=True)))
    assert results[0] == results[1] == results[2]


def test_invalid_weightings_are_refused():
    _, lists = lists_of([1], [2])
    for arguments in [("evn", 20), ("even", 41)]:
        with pytest.raises(ParameterError):
            lists.weights(*arguments)
    with pytest.raises(ParameterError):
        lists.weights("water", 20, target=2**31)
    with pytest.raises(ParameterError):
        lists.bounded(0, np.array([], np.int64), [0, 0, 0, 0])


def test_duplicate_rows_and_null_cells_are_ignored():
    labels, lists = lists_of(["u", "u", None, "v", "v"], ["x", "x", "y", None, "z"])
    weight = dict(zip(labels.to_list(), lists.weights("even", 4).tolist(), strict=True))
    assert {item: w for item, w in weight.items() if w} == {"x": 16, "z": 16}
