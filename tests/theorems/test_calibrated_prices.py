"""Calibrated counts: weights, the threshold for every number of a user's own items, and the price list."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import _core
from discreet.theorems import calibrated_counts as theorem
from discreet.theorems.rogers2024 import UNIT, budget_units


@given(full=st.integers(1, 2000), number=st.integers(1, 2**20), bits=st.integers(0, 28))
def test_weights_are_the_largest_of_their_norm(full, number, bits):
    weight = theorem.weight(number, full, bits)
    assert number * weight**2 <= 4**bits * full
    assert weight == 2**bits or number * (weight + 1) ** 2 > 4**bits * full


@given(full=st.integers(1, 50), times=st.integers(1, 16), bits=st.integers(0, 28))
def test_no_user_has_a_larger_norm(full, times, bits):
    found = [theorem.weight(number, full, bits) for number in range(1, times * full + 1)]
    assert found == sorted(found, reverse=True)
    assert found[:full] == [2**bits] * full
    assert max(m * w**2 for m, w in enumerate(found, 1)) <= 4**bits * full


def exceeded(found, full, most, bits, delta):
    """Return the numbers of items that are released with more than delta."""
    chances = [m * found.chance(theorem.weight(m, full, bits)) for m in range(1, most + 1)]
    return [m for m, chance in enumerate(chances, 1) if chance > delta]


@settings(max_examples=60, deadline=None)
@given(
    full=st.integers(1, 6),
    times=st.integers(1, 16),
    bits=st.integers(0, 6),
    sigma=st.floats(0.2, 6),
    delta=st.sampled_from([0.2, 0.01, 1e-6, 1e-12, 1e-40]),
)
def test_the_threshold_is_the_least_for_all_numbers_of_items(full, times, bits, sigma, delta):
    noise, most = _core.Noise.discrete_gaussian(sigma * 2**bits), times * full
    found = theorem.threshold(noise, full, most, bits, delta)
    assert exceeded(found, full, most, bits, delta) == []
    lower = _core.Threshold(noise, found.value - 1)
    # The probability of a number of items is rounded down by a part in 2^52.
    assert exceeded(lower, full, most, bits, delta * (1 - 1e-14))


@pytest.mark.parametrize(
    ("full", "rho", "delta"), [(1, 0.1, 1e-6), (12, 0.5, 1e-6), (80, 1.0, 1e-10), (900, 4.0, 1e-5)]
)
def test_the_threshold_covers_more_items_than_weigh_fully(full, rho, delta):
    sigma = theorem.weights_sigma(budget_units(rho), full)
    bits, most = theorem.places(sigma), theorem.TIMES * full
    noise = _core.Noise.discrete_gaussian(sigma * 2**bits)
    found = theorem.threshold(noise, full, most, bits, delta)
    numbers = np.unique(np.geomspace(1, most, 60).astype(int)).tolist()
    assert all(m * found.chance(theorem.weight(m, full, bits)) <= delta for m in numbers)
    alone = theorem.threshold(noise, full, full, bits, delta)
    assert 1.01 < found.value / alone.value < 1.2


def test_the_rule_and_the_tail_are_one():
    noise = _core.Noise.discrete_gaussian(1.5)
    found = theorem.threshold(noise, 2, 8, 1, 0.01)
    assert found.passes(found.value + 1)
    assert not found.passes(found.value)
    assert found.chance(0) == noise.tail(found.value + 1)


scales = st.floats(1e-3, 1e8)


@given(sigma=scales, full=st.integers(1, 1000))
def test_the_price_of_weights_covers_their_noise(sigma, full):
    exact = Fraction(full) / (2 * Fraction(sigma) ** 2)
    price = Fraction(theorem.weights_price(sigma, full), UNIT)
    assert exact <= price <= exact + Fraction(1, UNIT)


@given(sigma=scales)
def test_the_price_of_an_order_statistic_covers_its_noise(sigma):
    exact = 1 / (2 * Fraction(2 * sigma) ** 2)
    assert exact <= Fraction(theorem.ordered_price(sigma), UNIT) <= exact + Fraction(1, UNIT)


@given(
    rho=st.floats(1e-12, 1e4),
    full=st.integers(1, 1000),
    number=st.integers(1, 60),
)
def test_no_scale_costs_more_than_its_share(rho, full, number):
    units = budget_units(rho)
    sigma = theorem.weights_sigma(units, full)
    assert theorem.weights_price(sigma, full) <= units
    # Rounding costs a few parts in 2^50, and one unit.
    assert theorem.weights_price(sigma, full) >= units * (1 - 1e-13) - 2
    share = theorem.share_of(rho, theorem.CALIBRATION_SHARE)
    assert share <= Fraction(theorem.CALIBRATION_SHARE) * Fraction(rho) * UNIT
    sigma = theorem.band_sigma(share, number)
    band = theorem.ordered_price(sigma) + 2 * theorem.ordered_price(2 * sigma)
    assert number * band <= share
    assert number * band >= share * (1 - 1e-12) - 20 * number


def test_scales_match_the_formulas():
    rho, full = 0.5, 12
    assert theorem.weights_sigma(budget_units(rho), full) == pytest.approx(math.sqrt(full / (2 * rho)), rel=1e-12)
    units = theorem.share_of(rho, 0.06)
    assert theorem.band_sigma(units, 10) == pytest.approx(math.sqrt(1.5 * 10 / (8 * 0.06 * rho)), rel=1e-12)


def test_a_scale_beyond_the_sampler_is_refused():
    assert theorem.weights_sigma(0, 5) is None
    assert theorem.weights_sigma(1, 5) is None
    assert theorem.band_sigma(10, 8) is None
    assert theorem.ordered_sigma(0) is None
    assert theorem.places(2.5e8) == 1


def test_a_selection_costs_its_bounded_range():
    assert Fraction(theorem.selection_price(0.3), UNIT) >= Fraction(0.3) ** 2 / 8


def test_ways_to_go_on_are_compared_by_published_values():
    assert theorem.nearly_none(10.0, 5.0, 10_000.0)
    assert not theorem.nearly_none(10.0, 10.0, 10_000.0)
    assert theorem.least_single(10.0) == pytest.approx(15_000)
    # N has the error of its own, of which half is in a number that is measured less N.
    assert theorem.deviation(3.0, 1 / 64) == 5
    # The more items are confirmed, the more users are needed.
    assert theorem.reach(58, 10.0) == pytest.approx(10 * 64**0.3)
    assert [round(theorem.least_users(theorem.reach(heads, 10.0))) for heads in (0, 3, 58)] == [120, 135, 244]
    assert theorem.least_weight(100.0, 5.0) == 52 - 15
    # Noise would decide: even a weight of 0 would pass in some calls.
    assert theorem.least_weight(100.0, 8.7) == -math.inf


def test_all_shares_together_are_less_than_the_budget():
    single = theorem.SINGLE_SHARE + theorem.USERS_SHARE / 3
    later = theorem.BOUND_SHARE + theorem.HEAVY_SHARE + theorem.LOOK_SHARE + theorem.CALIBRATION_SHARE
    assert single + theorem.FIRST_SHARE + theorem.USERS_SHARE + later < 0.3
