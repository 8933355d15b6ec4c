"""Items of many users are not missed by `select`, or the plan and the release say how often."""

import numpy as np
import pytest

import discreet as dp
from discreet.mechanisms import SetUnion
from discreet.mechanisms.fewest import users_for
from discreet.planning.choose import choose, reliability
from discreet.testing import seeded_rng

PROMISES = [{"epsilon": 0.1}, {"epsilon": 1.0}, {"epsilon": 3.0}, {"epsilon": 10.0}, {"rho": 0.1}, {"rho": 1.0}]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("l0", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("method", ["auto", "threshold", "dp_sips", "policy_laplace", "policy_gaussian"])
def test_an_item_of_ten_times_the_stated_threshold_is_released(method, l0, promise):
    mechanism, notes = choose("select", method=method, l0=l0, delta=1e-6, **promise)
    half = users_for(mechanism, 0.5)
    assert mechanism.release_chance(half) >= 0.5
    assert mechanism.release_chance(10 * half) >= 1 - 1e-6
    assert not any("chance of only" in note for note in notes)


def test_a_plan_names_the_chance_of_a_mechanism_that_may_miss_such_an_item():
    # With a target 3 scales above the threshold, Laplace noise misses every item with a probability of exp(-3)/2.
    mechanism = SetUnion(method="policy_laplace", scale=1.0, delta=1e-6, l0=3, alpha=3.0)
    (note,) = reliability(mechanism)
    chance = mechanism.release_chance(10 * users_for(mechanism, 0.5))
    assert chance == pytest.approx(1 - np.exp(-3) / 2, abs=1e-3)
    assert f"{chance:.7f}" in note
    assert note in str(dp.plan(mechanism))
    assert reliability(SetUnion(method="policy_laplace", scale=1.0, delta=1e-6, l0=3)) == ()


def test_the_law_of_the_chance_is_that_of_releases():
    mechanism = SetUnion(method="policy_laplace", scale=1.0, delta=1e-6, l0=2, alpha=3.0)
    half = users_for(mechanism, 0.5)
    users = np.arange(10 * half)
    # In the worst case, the users have no other item in common.
    items = dp.tables.UserItems.from_pairs(np.tile(users, 2), np.concatenate([np.zeros_like(users), 1 + users]))
    rng, runs = seeded_rng(3), 2_000
    seen = sum(0 in mechanism.release(items, rng=rng).items for _ in range(runs)) / runs
    chance = mechanism.release_chance(10 * half)
    assert abs(seen - chance) < 4 * np.sqrt(chance * (1 - chance) / runs)


@pytest.mark.parametrize("method", ["auto", "threshold", "dp_sips", "policy_laplace"])
@pytest.mark.parametrize("runs", [300, pytest.param(5_000, marks=pytest.mark.statistical)])
def test_items_of_all_users_are_released_in_every_run(method, runs):
    mechanism, _ = choose("select", method=method, l0=3, epsilon=1.0, delta=1e-6)
    users, items = np.repeat(np.arange(5_000), 3), np.tile(np.arange(3), 5_000)
    if mechanism.reads is dp.Histogram:
        table = dp.Histogram.from_pairs(users, items, l0=3)
    else:
        table = dp.tables.UserItems.from_pairs(users, items)
    rng = seeded_rng(11)
    assert all(len(mechanism.release(table, rng=rng)) == 3 for _ in range(runs))
