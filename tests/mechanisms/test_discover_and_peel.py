"""DiscoverAndPeel: a set union finds a domain, then the exponential mechanism ranks it."""

import dataclasses

import numpy as np
import pytest

import discreet as dp
from discreet.mechanisms import DiscoverAndPeel
from discreet.testing import seeded_rng


def log(users=4000, seed=3):
    """Return rows of users who have ten of thirty common items, low numbers more often, and one of their own."""
    random = np.random.default_rng(seed)
    popular = 1 / np.arange(2, 32)
    chosen = [random.choice(30, 10, replace=False, p=popular / popular.sum()) for _ in range(users)]
    return {
        "user": np.repeat(np.arange(users), 11),
        "item": np.concatenate([np.append(items, 1000 + user) for user, items in enumerate(chosen)]),
    }


def test_common_items_are_ranked_and_rare_ones_dropped():
    data = log()
    release = DiscoverAndPeel(k=5, rho=3.0, delta=1e-6, l0=11).release(data, user="user", item="item")
    counts = np.bincount(data["item"][data["item"] < 1000])
    assert len(release) == 5
    assert release.ranked
    assert set(release.items) <= set(np.argsort(-counts)[:7].tolist())
    assert release.guarantee == dp.Guarantee(3.0, 1e-6)
    assert not release.seeded


def test_top_k_runs_it_and_charges_the_budget():
    data, budget = log(), dp.Budget(rho=2.0, delta=1e-5)
    given = {"user": "user", "item": "item", "k": 3, "rho": 1.5, "delta": 1e-6, "method": "discover+peel", "l0": 11}
    assert len(dp.top_k(data, budget=budget, **given)) == 3
    assert budget.remaining.rho == pytest.approx(0.5)
    with pytest.raises(dp.BudgetExceeded):
        dp.top_k(data, budget=budget, **given)
    assert dp.plan("top_k", k=3, rho=1.5, delta=1e-6, method="discover+peel", l0=11).users_for_50_percent > 1


@pytest.mark.parametrize("runs", [150, pytest.param(4000, marks=pytest.mark.statistical)])
def test_ranks_follow_the_exponential_mechanism(runs):
    """The set union always finds three items; the first rank is drawn with weights e^(epsilon count)."""
    users = 400
    data = {"user": np.arange(users), "item": np.repeat([0, 1, 2], [136, 133, 131])}
    mechanism = DiscoverAndPeel(k=1, rho=40.0, delta=1e-6, l0=1, share=0.999)
    weights = np.exp(mechanism.epsilon * (np.array([136, 133, 131]) - 136))
    rng, seen = seeded_rng(2), np.zeros(3)
    for _ in range(runs):
        release = mechanism.release(data, user="user", item="item", rng=rng)
        seen[release.items[0]] += 1
    chances = weights / weights.sum()
    assert np.all(np.abs(seen / runs - chances) < 5 * np.sqrt(chances * (1 - chances) / runs))
    assert release.seeded


def test_an_empty_table_gives_an_empty_release():
    empty = {"user": [], "item": []}
    release = DiscoverAndPeel(k=3, rho=1.0, delta=1e-6, l0=2).release(empty, user="user", item="item")
    assert release.items == []
    own = {"user": np.arange(50), "item": np.arange(50)}
    # Each user's item is released with a chance of delta: all 50 with 5e-11.
    assert DiscoverAndPeel(k=3, rho=1.0, delta=1e-12, l0=2).release(own, user="user", item="item").items == []


def test_top_k_checks_method_and_l0_together():
    given = {"user": "user", "item": "item", "k": 2, "rho": 1.0, "delta": 1e-6}
    for more, text in (
        ({"method": "discover+peel"}, "needs l0"),
        ({"l0": 2}, "l0 needs method"),
        ({"method": "peel"}, "method must be"),
    ):
        with pytest.raises(dp.errors.ParameterError, match=text):
            dp.top_k(log(20), **given, **more)


def test_a_found_item_without_users_is_still_ranked(monkeypatch):
    find = dp.mechanisms.SetUnion.release

    def found(*given, **more):
        return dataclasses.replace(find(*given, **more), items=["a", "b", "gone"])

    monkeypatch.setattr(dp.mechanisms.SetUnion, "release", found)
    data = {"user": list(range(200)) * 2, "item": ["a"] * 200 + ["b"] * 200}
    release = DiscoverAndPeel(k=3, rho=50.0, delta=1e-6, l0=2).release(data, user="user", item="item")
    assert sorted(release.items) == ["a", "b", "gone"]
    assert release.items[2] == "gone"
