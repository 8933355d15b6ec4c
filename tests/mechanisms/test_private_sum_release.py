"""Private Count Release with sums: its selections and prices, its exact law, and files of it."""

import dataclasses
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import discreet as dp
from discreet.errors import ParameterError
from discreet.mechanisms import PrivateSumRelease
from discreet.testing import seeded_rng
from discreet.theorems.rogers2024 import UNIT, budget_units

COLUMNS = {"user": "user", "item": "item"}


def made(rho, k_bar=10_000, **bounds):
    return PrivateSumRelease(counting=dp.PrivateCountRelease(rho=rho, delta=1e-6, k_bar=k_bar), **bounds)


def rows(users=20_000):
    """Return users with up to 40 items, each in two rows, and their sums by item, clipped to nine."""
    random, sizes = np.random.default_rng(5), users // np.arange(1, 41)
    user = np.concatenate([random.choice(users, size, replace=False) for size in sizes])
    item, values = np.repeat(np.arange(40), sizes), random.integers(-3, 8, (2, len(user)))
    sums = np.bincount(item, values.sum(0).clip(-4, 9))
    return {"user": np.tile(user, 2), "item": np.tile(item, 2), "value": values.ravel().astype(float)}, sums


def test_selections_and_prices_are_those_of_private_count_release():
    (table, sums), mechanism = rows(), made(2.0, low=-4, high=9)
    release = mechanism.release(table, **COLUMNS, value="value", rng=seeded_rng(3))
    counts = mechanism.counting.release(dp.Histogram.from_table(table, **COLUMNS), rng=seeded_rng(3))
    of_count = dict(zip(counts.items, counts.sigmas, strict=True))
    assert len(release) == len(of_count) > 30
    assert release.sigmas == pytest.approx([9 * of_count[item] for item in release.items], rel=1e-12)
    assert (release.spent, release.calls, release.l0) == (counts.spent, counts.calls, None)
    errors = (release.counts - sums[release.items]) / release.sigmas
    assert np.abs(errors).max() < 4.5
    assert 0.7 < errors.std() < 1.3
    for level, sigma in zip(mechanism.counting.levels, mechanism.sigmas, strict=True):
        cost = Fraction(81) / (2 * Fraction(sigma) ** 2)
        assert cost <= Fraction(level.count_price, UNIT) <= cost * Fraction(1.001)


def moment(mechanism, first, second, order, factor=1.0):
    """Return the sum of p^order q^(1 - order) over all releases of two neighbours, of which p and q are the densities.

    A neighbour is a pair of counts and sums by item. Both have the same items, at most k_bar, so no release has a
    density of zero under one of them alone. `factor` multiplies the noise of the sums.
    """
    levels, most = mechanism.counting.levels, budget_units(mechanism.guarantee.rho)

    def chances(counts, items, level):
        scores = [level.offset, *(level.gamma * counts[item] for item in items)]
        weights = [math.exp(score - max(scores)) for score in scores]
        return [weight / math.fsum(weights) for weight in weights]

    @cache
    def later(items, place, spent):
        if place == len(levels) or spent + levels[place].dearest > most:
            return 1.0
        level, spent = levels[place], spent + levels[place].call_price
        (p_stop, *p), (q_stop, *q) = (chances(counts, items, level) for counts, _ in (first, second))
        total = p_stop**order * q_stop ** (1 - order) * later(items, place + 1, spent)
        for item, a, b in zip(items, p, q, strict=True):
            shift = (first[1][item] - second[1][item]) / (mechanism.sigmas[place] * factor)
            rest = later(tuple(other for other in items if other != item), place, spent + level.count_price)
            total += a**order * b ** (1 - order) * math.exp(order * (order - 1) / 2 * shift**2) * rest
        return total

    return later(tuple(range(len(first[0]))), 0, 0)


def worst(mechanism, more=5, **wrong):
    """Return the largest Renyi divergence over its order and rho, if a user adds `more` to all items, or to one."""
    before, found = ((70, 40, 25), (90, 60, 30)), 0.0
    for after in (((71, 41, 26), (90 + more, 60 + more, 30 + more)), ((71, 40, 25), (90 + more, 60, 30))):
        for order in (1.01, 8.0):
            for pair in ((before, after), (after, before)):
                found = max(found, math.log(moment(mechanism, *pair, order, **wrong)) / (order - 1) / order)
    return found / mechanism.guarantee.rho


def test_the_exact_law_of_all_steps_keeps_rho():
    mechanism = made(0.4, low=0, high=5, k_bar=3)
    assert moment(mechanism, ((70, 40), (1, 2)), ((71, 41), (6, 7)), 1.0) == pytest.approx(1, abs=1e-9)
    assert 0.3 < worst(mechanism) <= 1
    # A wrong variant: noise for half of the largest value.
    assert worst(mechanism, factor=0.5) > 1


def test_a_low_bound_that_is_larger_than_high_sets_the_noise():
    mechanism = made(0.4, low=-10, high=3, k_bar=3)
    assert mechanism.protects.linf == 10
    assert mechanism.sigmas == pytest.approx(made(0.4, low=-3, high=10, k_bar=3).sigmas)
    for more in (-10, 3):
        assert worst(mechanism, more) <= 1
    assert worst(mechanism, -10) > 0.3
    # A wrong variant: the noise of high alone.
    assert worst(mechanism, -10, factor=0.3) > 1
    (table, _), rich = rows(), made(50.0, low=-10, high=3)
    release = rich.release({**table, "value": -table["value"]}, **COLUMNS, value="value", rng=seeded_rng(3))
    own = np.zeros((20_000, 40))
    np.add.at(own, (table["user"], table["item"]), -table["value"])
    errors = (release.counts - own.clip(-10, 3).sum(0)[release.items]) / release.sigmas
    assert np.abs(errors).max() < 4.5


def test_sums_in_fine_steps_have_the_unit_of_the_column(tmp_path):
    (table, _), mechanism = rows(), made(50.0, low=0, high=3 * 2**32, resolution=2.0**-32)
    release = mechanism.release({**table, "value": table["value"] / 4}, **COLUMNS, value="value", rng=seeded_rng(3))
    own = np.zeros((20_000, 40))
    np.add.at(own, (table["user"], table["item"]), table["value"] / 4)
    errors = (release.counts - own.clip(0, 3).sum(0)[release.items]) / release.sigmas
    assert np.abs(errors).max() < 4.5
    assert release.sigmas.max() < 1e4
    written = mechanism.release(table, **COLUMNS, value="value")
    written.write(tmp_path / "sums.csv", certificate=True)
    assert dp.verify(tmp_path / "sums.csv").made_by == repr(mechanism)


def test_a_file_of_sums_can_be_verified(tmp_path):
    mechanism, path = made(1.0, low=0, high=9, resolution=0.5), tmp_path / "sums.csv"
    for least, users in ((0, 4), (1, 20_000)):
        release = mechanism.release(rows(users)[0], **COLUMNS, value="value")
        release.write(path, certificate=True)
        assert least <= len(release) <= 40 * least
        assert dp.verify(path).made_by == repr(mechanism)


def test_bounds_out_of_range_are_refused():
    for bad in ({"low": 9}, {"high": 2**96}, {"resolution": 0}, {"counting": None}):
        with pytest.raises(ParameterError):
            dataclasses.replace(made(1.0, low=0, high=9), **bad)


def test_a_count_refuses_it_and_names_the_call():
    mechanism = PrivateSumRelease(counting=dp.PrivateCountRelease(rho=1, delta=1e-6), low=0, high=20)
    log = {"user": [1, 2], "shop": ["a", "b"], "price": [3, 4]}
    with pytest.raises(ParameterError, match=r"call mechanism\.release"):
        dp.count(log, user="user", item="shop", mechanism=mechanism)
