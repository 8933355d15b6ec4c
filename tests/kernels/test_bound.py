"""Which of a user's items are kept: all with the same chance, however many a user has."""

import numpy as np
import pytest
from scipy.stats import chi2

from discreet import _core
from discreet.reference.count import count_bounded


def kept(groups, l0, people, **options):
    """How often each place among a user's items is kept, users having one of so many items each, by that number."""
    users, items = [], []
    for own in groups:
        users.append(np.repeat(np.arange(people) + people * own, own))
        items.append(np.tile(np.arange(own) + 100 * own, people))
    columns = [np.concatenate(column) for column in (users, items)]
    order = np.random.default_rng(4).permutation(len(columns[0]))
    columns = [column[order] for column in columns]
    if options.pop("strings"):
        columns = [column.astype("U9") for column in columns]
    labels, counts = _core.count_pairs(*columns, l0=l0, **options)
    found = {int(item): n for item, n in zip(labels.take(np.arange(len(counts))), counts.tolist(), strict=True)}
    return {own: np.array([found[100 * own + place] for place in range(own)]) for own in groups}


def uniform(groups, people, **options):
    for l0 in (1, 2, 5):
        for own, counts in kept(groups, l0, people, **options).items():
            assert counts.sum() == people * min(l0, own)
            if own > l0:
                # Without replacement the counts are negatively correlated, by a factor of m / (m - 1).
                variance = people * l0 / own * (1 - l0 / own) * own / (own - 1)
                statistic = ((counts - people * l0 / own) ** 2).sum() / variance
                assert chi2.sf(statistic, own - 1) > 1e-9, (own, l0)


@pytest.mark.parametrize("options", [{}, {"threads": 3}, {"memory": 0}])
@pytest.mark.parametrize("strings", [False, True])
def test_of_m_items_each_is_kept_with_the_chance_l0_over_m(strings, options):
    uniform([2, 3, 7, 20], 1500, strings=strings, **options)


@pytest.mark.statistical
@pytest.mark.parametrize("memory", [None, 0])
@pytest.mark.parametrize("strings", [False, True])
def test_of_m_items_each_is_kept_with_the_chance_l0_over_m_for_many_users(strings, memory):
    uniform([2, 3, 4, 6, 9, 30, 100], 40_000, strings=strings, memory=memory)


@pytest.mark.parametrize("l0", [1, 2, 5, 30])
def test_the_twin_keeps_as_many_pairs_and_each_item_with_the_same_chance(l0):
    people, own = 4000, 8
    users, items = np.repeat(np.arange(people), own), np.tile(np.arange(own), people)
    twice = np.tile(users, 2), np.tile(items, 2)
    _, ours = _core.count_pairs(*twice, l0=l0)
    labels, counts = count_bounded(*twice, l0, np.random.default_rng(1))
    assert labels.tolist() == list(range(own))
    assert counts.sum() == ours.sum() == people * min(l0, own)
    deviation = (people * l0 / own * max(1 - l0 / own, 0)) ** 0.5
    assert np.all(np.abs(counts - people * min(l0, own) / own) <= 6 * deviation)


def test_the_twin_drops_what_nobody_keeps():
    labels, counts = count_bounded(np.zeros(50, int), np.arange(50), 3, np.random.default_rng(1))
    assert len(labels) == 3
    assert counts.tolist() == [1, 1, 1]
    assert count_bounded(np.zeros(0, int), np.zeros(0, int), 3, np.random.default_rng(1))[1].tolist() == []
