"""Sums of money: the revenue of each shop, for shops that are public and for shops that the release finds."""

import numpy as np
import pytest

import discreet as dp


@pytest.fixture(scope="module")
def sales():
    """Return rows of (user, shop, price): 12 shops, and a price from 1 to 99.99; ten users buy for a million."""
    random = np.random.default_rng(7)
    shops = np.array([f"shop {number:02d}" for number in range(12)])
    user = np.arange(12_000).repeat(2)
    price = random.integers(100, 10_000, len(user)) / 100
    price[:20:2] = 1_000_000
    return {"user": user, "shop": shops[random.integers(0, 12, len(user))], "price": price}


def clipped_revenue(sales, shop, most):
    """Return the sum of the revenue from each user, at most `most` from one user."""
    found = sales["shop"] == shop
    return np.minimum(np.bincount(sales["user"][found], sales["price"][found]), most).sum()


def test_shops_and_their_revenue_are_found_in_one_release(sales):
    mechanism = dp.mechanisms.DiscoverAndSum(rho=1, delta=1e-6, l0=2, low=0, high=20_000, resolution=0.01)
    release = mechanism.release(sales, user="user", item="shop", value="price")
    assert len(release) == 12
    for row in release:
        assert abs(row[1] - clipped_revenue(sales, row[0], 200)) < 8 * row.sigma
    assert "sums of price in steps of 0.01, clipped to [0, 200] for each user" in repr(release)
    assert release.guarantee == dp.Guarantee(rho=1, delta=1e-6)


def test_the_revenue_of_public_shops_is_charged_to_a_budget(sales):
    shops, budget = ["shop 00", "shop 01", "shop 99"], dp.Budget(rho=1, delta=0)
    mechanism = dp.mechanisms.ClippedSums(items=shops, rho=0.5, low=0, high=200, l0=2)
    release = budget.release(mechanism, sales, user="user", item="shop", value="price")
    for shop, revenue in release:
        assert abs(revenue - clipped_revenue(sales, shop, 200)) < 8 * mechanism.sigma + 0.5 * 12_000
    assert budget.remaining.rho == pytest.approx(0.5)
