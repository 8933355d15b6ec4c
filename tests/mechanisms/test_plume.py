"""Plume: selection of items, then their counts."""

import dataclasses

import numpy as np
import pytest

from discreet import Budget, Histogram, Plume
from discreet.errors import ParameterError
from discreet.mechanisms import ContributionBound
from discreet.tables import Table, UserItems
from discreet.testing import seeded_rng
from discreet.theorems import rogers2024

SELECTIONS = ("threshold", "weighted_gaussian", "dp_sips")


def log(users=3000):
    """Return rows of users who have ten of twenty common items each; some have a rare item of their own."""
    random = np.random.default_rng(3)
    common = np.concatenate([random.permutation(20)[:10] for _ in range(users)])
    rare = 1000 + np.arange(200)
    return {
        "user": np.concatenate([np.repeat(np.arange(users), 10), np.arange(200)]),
        "item": np.concatenate([common, rare]),
    }


@pytest.mark.parametrize("selection", SELECTIONS)
def test_common_items_are_selected_and_counted(selection):
    data = log()
    # Each of 200 items of one user is released with a chance of delta.
    mechanism = Plume(rho=2.0, delta=1e-13, m=5, m_prime=10, selection=selection)
    release = mechanism.release(data, user="user", item="item")
    assert set(release.items) == set(range(20))
    true = np.bincount(data["item"][:30_000])[release.items]
    # The second pass counts all ten common items of a user.
    assert np.all(np.abs(release.counts - true) < 7 * mechanism.sigma)
    assert release.counts.tolist() == sorted(release.counts, reverse=True)
    assert release.guarantee.rho == 2.0
    assert not release.seeded


def test_the_second_pass_counts_selected_items_only():
    # Two of each user's hundred items are common, so m' = 2 counts every user of both.
    users = np.repeat(np.arange(500), 100)
    items = np.where(np.arange(50_000) % 100 < 2, np.arange(50_000) % 100, 10_000 + np.arange(50_000))
    # Each of 500 users has a private item released with a chance of delta.
    mechanism = Plume(rho=50.0, delta=1e-13, m=100, m_prime=2)
    release = mechanism.release({"user": users, "item": items}, user="user", item="item")
    assert sorted(release.items) == [0, 1]
    assert np.all(np.abs(release.counts - 500) < 7 * mechanism.sigma)


def test_a_selected_item_without_users_gets_a_count():
    data = log()
    release = Plume(rho=2.0, delta=1e-13, m=10, m_prime=1).release(data, user="user", item="item", rng=seeded_rng(1))
    assert set(release.items) == set(range(20))
    assert release.seeded
    assert np.sum(release.counts) < 3000 + 20 * 7 * 2


@pytest.mark.parametrize("selection", SELECTIONS)
def test_both_stages_released_one_by_one_are_plume(selection):
    data = log()
    mechanism = Plume(rho=2.0, delta=1e-6, m=11, m_prime=11, selection=selection)
    whole = mechanism.release(data, user="user", item="item", rng=seeded_rng(5))
    rng = seeded_rng(5)
    # Every user has at most eleven items, so no item is chosen at random.
    reads = Histogram if selection == "threshold" else UserItems
    found = mechanism.discovery.release(reads.from_table(data, user="user", item="item", l0=11), rng=rng)
    counting = mechanism.counting(tuple(found.items))
    again = Histogram.from_table(data, user="user", item="item", l0=11, only=found.items)
    assert dict(counting.release(again, rng=rng)) == dict(whole)
    total = mechanism.discovery.guarantee + counting.guarantee
    assert 2.0 * (1 - 1e-9) < total.rho <= 2.0
    assert 1 - 1e-6 < total.delta / whole.guarantee.delta <= 1


def test_stages_with_a_private_percentile_fit_into_one_budget():
    data, budget = log(), Budget(rho=2.0, delta=1e-6)
    first = budget.release(ContributionBound.from_rho(rho=0.1, most=50), Table(data, user="user", item="item"))
    plume = Plume(rho=1.8, delta=1e-13, m=first.items[0], m_prime=1)
    table = Histogram.from_table(data, user="user", item="item", l0=plume.m)
    found = tuple(budget.release(plume.discovery, table).items)
    again = ContributionBound.from_rho(rho=0.1, most=50, only=found)
    m_prime = budget.release(again, Table(data, user="user", item="item")).items[0]
    counts = dataclasses.replace(plume, m_prime=m_prime).counting(found)
    table = Histogram.from_table(data, user="user", item="item", l0=m_prime, only=found)
    release = budget.release(counts, table)
    assert set(release.items) == set(range(20))
    assert 1.99 < budget.spent.rho <= 2.0


def test_both_readings_of_sigma_have_names():
    for literal in (False, True):
        mechanism = Plume(rho=1.0, delta=1e-6, m=4, m_prime=9, literal=literal)
        assert mechanism.printed_sigma == pytest.approx(3 * mechanism.l2_sigma, rel=1e-12)
        assert mechanism.sigma == (mechanism.printed_sigma if literal else mechanism.l2_sigma)
        counts = mechanism.counting(tuple(range(20))).guarantee
        assert counts.rho <= 0.5 / (9 if literal else 1)


def test_released_counts_exceed_the_error_threshold():
    data = log()
    mechanism = Plume(rho=0.05, delta=1e-6, m=10, m_prime=10, relative_error=0.1)
    release = mechanism.release(data, user="user", item="item")
    assert all(release.counts > rogers2024.plume_threshold(mechanism.sigma, 0.1))


@pytest.mark.parametrize(
    ("rho", "items", "literal", "correct", "thresholds"),
    [
        (0.5, 554, 783.47431355469, 33.286633954186, (16452.960584649, 699.01931303792)),
        (1.0, 128, 128.0, 11.313708498985, (2688.0, 237.58787847868)),
        (0.1, 1, 3.1622776601684, 3.1622776601684, (66.407830863536, 66.407830863536)),
    ],
)
def test_scales_and_thresholds_match_section_4(rho, items, literal, correct, thresholds):
    # Half of rho goes to the counts.
    sigmas = [rogers2024.plume_sigma(rho / 2, items, literal=flag) for flag in (True, False)]
    assert sigmas == pytest.approx([literal, correct], rel=1e-11)
    assert [rogers2024.plume_threshold(sigma, 0.1) for sigma in sigmas] == pytest.approx(thresholds, rel=1e-11)


@pytest.mark.parametrize("more", [{"rho": 1e-10}, {"rho": 1.0, "literal": True}])
def test_noise_out_of_range_is_refused_at_construction(more):
    with pytest.raises(ParameterError, match="sigma"):
        Plume(delta=1e-6, m=1, m_prime=2**30, **more)
