"""A bound on the items per user, chosen with differential privacy."""

import math

import numpy as np
import pytest

from discreet.engines.sums import items_per_user
from discreet.errors import ParameterError
from discreet.mechanisms import ContributionBound
from discreet.tables import Table
from discreet.testing import seeded_rng


def law(mechanism, items):
    scores = mechanism.scores(np.array(items, np.int64))
    weights = np.exp(mechanism.gamma * (scores - scores.max()))
    return weights / weights.sum()


@pytest.mark.parametrize("percentile", [1, 50, 80, 99])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_one_user_changes_the_law_by_at_most_epsilon(percentile, epsilon):
    mechanism = ContributionBound(epsilon=epsilon, percentile=percentile, most=6)
    random = np.random.default_rng(percentile)
    widest = 0.0
    for _ in range(500):
        items = random.integers(1, 9, random.integers(0, 12))
        p, q = law(mechanism, items), law(mechanism, [*items, random.integers(1, 9)])
        losses = np.log(p / q)
        widest = max(widest, losses.max() - losses.min())
        for order in (1.5, 4.0):
            renyi = math.log(float(np.sum(p**order * q ** (1 - order)))) / (order - 1)
            assert renyi <= order * mechanism.guarantee.rho * (1 + 1e-9) + 1e-14
    assert 0.4 * epsilon < widest <= epsilon * (1 + 1e-9)


def log(users=4000, seed=1):
    """Return rows in which nine in ten users have three items and the others have fifty."""
    sizes = np.where(np.random.default_rng(seed).random(users) < 0.9, 3, 50)
    return {"user": np.repeat(np.arange(users), sizes), "item": np.concatenate([np.arange(n) for n in sizes])}


def test_the_bound_is_near_the_percentile():
    data = log()
    for percentile, expected in ((50, 3), (95, 50)):
        mechanism = ContributionBound.from_rho(rho=0.5, percentile=percentile, most=200)
        release = mechanism.release(data, user="user", item="item")
        assert abs(release.items[0] - expected) <= 1
        assert not release.seeded
        assert release.guarantee.rho <= 0.5
        assert release.guarantee.delta == 0


def test_a_percentile_above_most_gives_most():
    data = {"user": np.repeat(np.arange(2000), 60), "item": np.tile(np.arange(60), 2000)}
    release = ContributionBound(epsilon=2.0, most=50).release(data, user="user", item="item")
    assert release.items == [50]


@pytest.mark.parametrize("runs", [1000, pytest.param(20_000, marks=pytest.mark.statistical)])
def test_draws_follow_the_law(runs):
    mechanism = ContributionBound(epsilon=1.0, percentile=60, most=4)
    sizes = [1, 1, 2, 3, 3, 4, 4, 4]
    data = {"user": np.repeat(np.arange(8), sizes), "item": np.concatenate([np.arange(n) for n in sizes])}
    rng, seen = seeded_rng(6), np.zeros(4)
    for _ in range(runs):
        seen[mechanism.release(data, user="user", item="item", rng=rng).items[0] - 1] += 1
    chances = law(mechanism, sizes)
    assert np.all(np.abs(seen / runs - chances) < 5 * np.sqrt(chances * (1 - chances) / runs))


def test_only_the_listed_items_of_a_user_count():
    data = log()
    # Nine in ten users have the items 0 to 2 and the others have 0 to 49.
    for only, expected in (((0, 1, 7, 8, 9), 5), ((1, 2), 2), ((60, 0), 1)):
        mechanism = ContributionBound.from_rho(rho=0.5, percentile=95, most=200, only=only)
        release = mechanism.release(data, user="user", item="item")
        assert abs(release.items[0] - expected) <= 1
        assert "listed items" in release.notes[0]
        assert mechanism.guarantee == ContributionBound.from_rho(rho=0.5, most=200).guarantee


@pytest.mark.parametrize("kind", ["integers", "text", "bytes"])
def test_items_per_user_are_exact_and_distinct(kind):
    make = {"integers": int, "text": lambda n: f"{n}", "bytes": lambda n: f"{n}".encode()}[kind]
    random = np.random.default_rng(8)
    pairs = random.integers(0, 9, (200, 2))
    data = {"u": [make(u) for u, _ in pairs], "i": [make(i) for _, i in pairs]}
    only = [2, 5, 7, 30]
    found = items_per_user(Table(data, user="u", item="i"), [make(item) for item in only])
    exact = [len({i for u, i in pairs.tolist() if u == user and i in only}) for user in range(9)]
    assert sorted(found.tolist()) == sorted(n for n in exact if n)
    polars = pytest.importorskip("polars")
    frame = items_per_user(Table(polars.DataFrame(data), user="u", item="i"), [make(item) for item in only])
    assert sorted(frame.tolist()) == sorted(found.tolist())


def test_a_user_without_listed_items_changes_nothing():
    data = {"u": [1, 1, 2, 3], "i": [1, 2, 1, 9]}
    assert sorted(items_per_user(Table(data, user="u", item="i"), [1, 2]).tolist()) == [1, 2]
    assert items_per_user(Table(data, user="u", item="i"), [8]).tolist() == []
    release = ContributionBound(epsilon=1.0, most=5, only=(8,)).release(data, user="u", item="i")
    assert 1 <= release.items[0] <= 5


def test_listed_items_are_refused_if_they_repeat():
    with pytest.raises(ParameterError, match="distinct"):
        ContributionBound(epsilon=1.0, only=(1, 1))
    with pytest.raises(ParameterError, match="different"):
        items_per_user(Table(log(), user="user", item="user"), [1])


def test_an_empty_table_is_no_error():
    empty = {"user": np.array([], np.int64), "item": np.array([], np.int64)}
    assert 1 <= ContributionBound(epsilon=1.0, most=5).release(empty, user="user", item="item").items[0] <= 5
