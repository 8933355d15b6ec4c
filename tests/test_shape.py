"""Shapes: public laws of data, their tables, and the fit to public data."""

from functools import cache

import numpy as np
import pytest

import discreet as dp

SHAPE = dp.Shape(users=20_000, items=50_000, exponent=1.0, items_per_user=20)


@cache
def table():
    return SHAPE.table()


def test_common_items_follow_zipfs_law():
    expected = dp.Shape(users=10**6, items=10**5, exponent=1.3, items_per_user=2).expected()
    # The law is on the popularity: a user who has an item does not get it twice, which lowers the first counts.
    slope = np.log(expected[20] / expected[200]) / np.log(201 / 21)
    assert 1.25 < slope < 1.35


def test_counts_descend_and_add_up_to_the_pairs():
    for shape in (SHAPE, dp.Shape(500, 40, 0.0, 3.5), dp.Shape(10**6, 10**4, 2.0, 1), dp.Shape(10, 1, 1.0, 1)):
        expected = shape.expected()
        assert len(expected) == shape.items
        assert (np.diff(expected) <= 1e-9).all()
        assert expected.sum() == pytest.approx(shape.users * shape.items_per_user, rel=0.02)
        assert expected[0] <= shape.users


@pytest.mark.parametrize("l0", [1, 3, 10, 30, 100])
def test_clipped_counts_lose_the_pairs_of_active_users(l0):
    kept = SHAPE.expected(l0).sum() / SHAPE.expected().sum()
    assert kept == pytest.approx(SHAPE.kept_share(l0), abs=0.01)
    _, each = np.unique(table()["user"], return_counts=True)
    assert np.minimum(each, l0).sum() / each.sum() == pytest.approx(SHAPE.kept_share(l0), abs=0.005)


def test_a_table_has_the_counts_of_its_shape_and_is_the_same_in_every_call():
    table, again = SHAPE.table(), SHAPE.table()
    assert all((table[name] == again[name]).all() for name in ("user", "item"))
    assert len(np.unique(table["user"] * SHAPE.items + table["item"])) == len(table["user"])
    assert len(np.unique(table["user"])) == SHAPE.users
    assert len(table["user"]) == pytest.approx(SHAPE.users * SHAPE.items_per_user, rel=0.01)
    seen, expected = np.bincount(table["item"], minlength=SHAPE.items), SHAPE.expected()
    for rank in (0, 1, 5, 30, 200):
        assert abs(seen[rank] - expected[rank]) < 5 * np.sqrt(expected[rank]) + 0.02 * expected[rank]


def test_users_of_one_item_have_one_item():
    table = dp.Shape(users=3_000, items=100, exponent=1.0, items_per_user=1).table()
    assert np.bincount(table["user"]).tolist() == [1] * 3_000


def test_activity_is_heavy_tailed():
    _, each = np.unique(table()["user"], return_counts=True)
    assert 2.8 < np.quantile(each, 0.95) / SHAPE.items_per_user < 3.4
    assert each.max() > 10 * SHAPE.items_per_user


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.4])
def test_a_fit_finds_the_four_numbers(exponent):
    shape = dp.Shape(users=30_000, items=3_000, exponent=exponent, items_per_user=8)
    table = shape.table()
    found = dp.Shape.of(table, user="user", item="item")
    assert found.users == shape.users
    assert found.items <= shape.items
    assert found.items_per_user == pytest.approx(8, rel=0.02)
    assert found.exponent == pytest.approx(exponent, abs=0.08)


@pytest.mark.parametrize(("cutoff", "spread"), [(3.0, 0.5), (0.0, 1.5)])
def test_a_fit_finds_the_cutoff_and_the_spread(cutoff, spread):
    shape = dp.Shape(users=30_000, items=2_000, exponent=0.8, items_per_user=15, cutoff=cutoff, spread=spread)
    found = dp.Shape.of(shape.table(), user="user", item="item")
    assert found.spread == pytest.approx(spread, abs=0.08)
    assert found.cutoff == pytest.approx(cutoff, abs=0.6)
    assert found.exponent == pytest.approx(0.8, abs=0.08)
    _, each = np.unique(shape.table()["user"], return_counts=True)
    assert np.minimum(each, 10).sum() / each.sum() == pytest.approx(found.kept_share(10), abs=0.02)


def test_a_fit_takes_counts():
    counts = np.arange(1, 101)
    found = dp.Shape.of_counts(np.random.default_rng(3).permutation(counts), users=200)
    assert (found.users, found.items, found.items_per_user) == (200, 100, counts.sum() / 200)
    assert found == dp.Shape.of_counts(counts, users=200)
    assert dp.Shape.of_counts(np.array([7]), users=7) == dp.Shape(users=7, items=1, exponent=0.0, items_per_user=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"users": 0},
        {"users": 1.5},
        {"items": 0},
        {"items": 2**24 + 1},
        {"exponent": -0.1},
        {"exponent": float("nan")},
        {"items_per_user": 0.5},
        {"items_per_user": 50_001},
        {"items_per_user": "many"},
        {"cutoff": -1},
        {"spread": 5},
    ],
)
def test_a_number_out_of_range_is_refused_by_name(wrong):
    numbers = {"users": 20_000, "items": 50_000, "exponent": 1.0, "items_per_user": 20, **wrong}
    with pytest.raises(dp.errors.ParameterError, match=next(iter(wrong))):
        dp.Shape(**numbers)


def test_impossible_counts_and_tables_are_refused():
    for counts, users in (([], 1), ([0], 1), ([5], 4), ([1, 1], 3)):
        with pytest.raises(dp.errors.ParameterError, match="users"):
            dp.Shape.of_counts(np.array(counts, np.int64), users=users)
    with pytest.raises(dp.errors.ParameterError, match="whole numbers"):
        dp.Shape.of_counts(np.ma.array([5, 6], mask=[0, 1]), users=6)
    with pytest.raises(dp.errors.ParameterError, match="public table"):
        dp.Shape.of({"u": [], "i": []}, user="u", item="i")
    with pytest.raises(dp.errors.ParameterError, match="draws of pairs"):
        dp.Shape(users=10**7, items=10**4, exponent=1.0, items_per_user=50).table()


def test_a_shape_is_hashable_and_prints_its_numbers():
    assert hash(SHAPE) == hash(dp.Shape(20_000, 50_000, 1, 20))
    assert str(SHAPE) == "20,000 users, 50,000 items, exponent 1, 20 items per user"
    assert str(dp.Shape(9, 9, 1, 2, cutoff=3, spread=0.5)).endswith("2 items per user, cutoff 3, spread 0.5")
    assert repr(SHAPE).startswith("Shape(users=20000, items=50000, exponent=1.0, items_per_user=20.0,")
