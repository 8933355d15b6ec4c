"""The order of rows in a histogram: it is sorted only if a mechanism needs it, and no release shows another order."""

import threading

import numpy as np
import pytest
from pairs import counted_pairs

from discreet import (
    ConfirmedCounts,
    GaussianThreshold,
    GumbelTopK,
    Histogram,
    LaplaceThreshold,
    OptimalSelection,
    TruncatedGeometric,
    _core,
)
from discreet.mechanisms import KnownItems, Replacement
from discreet.privacy import Sensitivity
from discreet.testing import seeded_rng

ITEMS = 3_000
DELTA = 1e-15
"""So small that a release never names one of the rare items."""
ALONE = [
    GaussianThreshold(sigma=2.0, delta=DELTA, l0=2),
    LaplaceThreshold(scale=1.0, delta=DELTA, l0=2),
    TruncatedGeometric(epsilon=2.0, delta=DELTA, l0=2),
    KnownItems(mechanism=LaplaceThreshold(scale=1.0, delta=DELTA, l0=2), items=(0, 5, 10**6)),
    Replacement(mechanism=LaplaceThreshold(scale=1.0, delta=DELTA, l0=4)),
    OptimalSelection(epsilon=2.0, delta=DELTA, l0=2),
]
"""Mechanisms that decide about each item alone."""
ORDERED = [GumbelTopK(k=5, scale=1.0, delta=DELTA, k_bar=20), ConfirmedCounts(rho=1.0, delta=DELTA)]
"""Mechanisms that read rows by descending count."""


def name(mechanism):
    return type(mechanism).__name__


def true_count(item):
    """Return the number of users of an item: five items stand out, one item in ten is common, and many counts tie."""
    if item % 10:
        return 1 + item % 3
    return 30 + item % 400 if item >= 50 else 2_000 - 20 * item


def columns(kind):
    """Return users and items of the table, two items of each user at most, in an arbitrary order."""
    items = np.repeat(np.arange(ITEMS), [true_count(item) for item in range(ITEMS)])
    users = np.arange(len(items)) % (len(items) // 2 + 1)
    order = np.random.default_rng(1).permutation(len(items))
    cells = items[order] if kind is int else [f"item-{item:04d}" for item in items[order]]
    return users[order], cells


def counted(kind=int, threads=1):
    """Return a histogram as the kernel with this number of threads made it. Every call has other hash keys."""
    labels, counts = counted_pairs(*columns(kind), threads=threads)
    return Histogram._of(labels, counts, Sensitivity(l0=2, linf=1), None)


def rows(histogram, read):
    """Return the items and the counts of a histogram, in the order of `read`."""
    labels, counts = read(histogram)
    return labels.take(np.arange(len(counts))), counts.tolist()


def published(release):
    return release.items, None if release.counts is None else release.counts.tolist()


def test_the_kernel_returns_rows_in_an_order_of_its_own():
    """If this order were always the same, the tests below would prove nothing."""
    first, second = (rows(counted(), Histogram._in_any_order) for _ in range(2))
    assert first != second
    assert sorted(zip(*first, strict=True)) == sorted(zip(*second, strict=True))


@pytest.mark.parametrize("kind", [int, str])
def test_histograms_of_equal_content_have_equal_sorted_rows(kind):
    found = [rows(counted(kind, threads), Histogram._in_order) for threads in (1, 1, 2, 5)]
    items, counts = found[0]
    assert found == [found[0]] * 4
    pairs = list(zip((-count for count in counts), items, strict=True))
    assert pairs == sorted(pairs)


@pytest.mark.parametrize("mechanism", [*ALONE, *ORDERED], ids=name)
def test_a_seeded_release_depends_on_neither_hash_keys_nor_threads(mechanism):
    if isinstance(mechanism, KnownItems | Replacement):
        found = [published(mechanism.release(counted(), rng=seeded_rng(3))) for _ in range(3)]
    else:
        found = [published(mechanism.release(counted(str, n), rng=seeded_rng(3))) for n in (1, 1, 2, 5)]
    assert len(found[0][0]) > 0
    assert found == [found[0]] * len(found)


@pytest.mark.parametrize("mechanism", ALONE, ids=name)
def test_a_fresh_release_is_sorted_by_noisy_count_and_then_by_label(mechanism):
    release = mechanism.release(counted())
    counts = np.zeros(len(release)) if release.counts is None else release.counts
    order = list(zip((-counts).tolist(), release.items, strict=True))
    assert len(order) > 200
    assert order == sorted(order)


@pytest.mark.parametrize("before", [None, 1, 40, ITEMS])
@pytest.mark.parametrize("mechanism", [*ALONE, *ORDERED], ids=name)
def test_every_item_of_a_fresh_release_has_its_own_count(mechanism, before):
    """A noisy count of a common item under the label of a rare one would name an item that few users have."""
    histogram = counted()
    if before is not None:
        histogram._in_order(before)
    release = mechanism.release(histogram)
    named = [item for item in release.items if item < ITEMS and item not in getattr(mechanism, "items", ())]
    assert len(named) > 3
    assert all(item % 10 == 0 for item in named)
    if release.counts is not None and not isinstance(mechanism, ConfirmedCounts):
        assert all(abs(count - true_count(item)) < 30 for item, count in release if item < ITEMS)


@pytest.mark.parametrize("mechanism", ALONE, ids=name)
def test_no_order_of_the_rows_changes_the_chance_of_an_item(mechanism):
    """The items of the table have equal counts, so each of them is released equally often, wherever its row is."""
    half = next(n for n in range(1, 100) if mechanism.release_chance(n) >= 0.5)
    few = np.array([half] * 30 + [0] * 10)
    labels = _core.Labels.from_sequence(np.arange(40))
    seen, rng = np.zeros(40), seeded_rng(5)
    for turn in range(600):
        order = np.roll(np.arange(40), turn % 2)
        histogram = Histogram._of(labels.select(order), few[order], Sensitivity(l0=2, linf=1), None)
        seen[[item for item in mechanism.release(histogram, rng=rng).items if item < 40]] += 1
    known = list(getattr(mechanism, "items", ()))
    others = np.setdiff1d(np.arange(30), known)
    share = seen[others].mean() / 600
    assert np.all(np.abs(seen[others] - 600 * share) <= 6 * np.sqrt(600 * share * (1 - share)))
    assert not seen[np.setdiff1d(np.arange(30, 40), known)].any()


@pytest.mark.parametrize("mechanism", ALONE, ids=name)
def test_a_fresh_release_of_items_decided_alone_sorts_no_rows(mechanism):
    histogram = counted()
    mechanism.release(histogram)
    assert histogram._sorted is None


def test_a_top_k_release_sorts_only_the_rows_that_it_reads():
    histogram = counted()
    GumbelTopK(k=5, scale=1.0, delta=DELTA, k_bar=20).release(histogram)
    assert len(histogram._sorted[1].array()) == 21
    whole = rows(histogram, Histogram._in_order)
    assert [part[:21] for part in whole] == [part[:21] for part in rows(counted(), Histogram._in_order)]
    assert len(whole[0]) == ITEMS
    assert histogram._rows is histogram._sorted


@pytest.mark.parametrize("mechanism", ORDERED, ids=name)
def test_rows_are_sorted_before_a_budget_is_charged(mechanism):
    histogram, ready = counted(), []

    def opening():
        ready.append(histogram._sorted is not None)
        return _core.Rng()

    mechanism.release(histogram, rng=opening)
    assert ready == [True]


def test_threads_that_sort_at_once_read_consistent_rows():
    histogram, wrong = counted(), []

    def look(first):
        for most in (first, 50, None):
            labels, counts = histogram._in_order(most)
            items = labels.take(np.arange(len(counts)))
            wrong.extend(item for item, n in zip(items, counts.tolist(), strict=True) if n != true_count(item))

    threads = [threading.Thread(target=look, args=(first,)) for first in (1, 7, 200, None)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
