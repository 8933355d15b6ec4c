"""The price list of Private Count Release, compared with numbers computed with forty digits."""

import math
from fractions import Fraction

import pytest

from discreet.theorems import rogers2024
from discreet.theorems.rogers2024 import UNIT, call_delta, level_epsilon, most_calls, most_releases

DEFAULTS = {"epsilon_star": 0.0005, "delta_star": 1e-11, "k_bar": 10_000, "relative_error": 0.1}


def prices(rho, **changes):
    return rogers2024.price_list(rho, **{**DEFAULTS, **changes})


@pytest.mark.parametrize(
    ("level", "epsilon", "threshold", "sigma", "price"),
    [
        (0, 0.0005, 69078.5527898, 4605.23685265, 5.48257795328e-8),
        (12, 0.032, 1080.33676234, 72.0224508227, 2.24390495525e-4),
        (23, 1.44815468787, 24.8501982449, 1.65667988299, 0.444320689996),
    ],
)
def test_levels_have_the_scales_and_prices_of_the_paper(level, epsilon, threshold, sigma, price):
    line = prices(1.0)[level]
    assert line.gamma == pytest.approx(epsilon, rel=1e-11)
    assert line.offset / line.gamma == pytest.approx(threshold, rel=1e-11)
    assert line.sigma == pytest.approx(sigma, rel=1e-11)
    assert (line.call_price + line.count_price) / UNIT == pytest.approx(price, rel=1e-11)


@pytest.mark.parametrize(
    ("rho", "epsilon_star", "levels", "spent"),
    [(1.0, 0.0005, 24, 0.52428796875), (0.1, 0.0005, 21, 0.06553596875), (0.5, 0.01, 14, 0.2047875)],
)
def test_a_run_without_items_climbs_the_papers_levels(rho, epsilon_star, levels, spent):
    lines, cost, made = prices(rho, epsilon_star=epsilon_star), 0, 0
    while made < len(lines) and cost + lines[made].dearest <= rho * UNIT:
        cost += lines[made].call_price
        made += 1
    assert made == levels == math.floor(math.log2((rho / epsilon_star**2 + 1 / 8) * 8 / 3)) + 1
    assert cost / UNIT == pytest.approx(spent, rel=1e-9)


def test_sigma_is_at_least_two_over_epsilon_by_default():
    tight = {"k_bar": 100, "delta_star": 1e-8, "relative_error": 0.05, "epsilon_star": 0.01}
    assert prices(1.0, **tight)[0].sigma == 200
    assert prices(1.0, **tight)[0].call_price == pytest.approx(1.25e-5 * UNIT)
    spend = prices(1.0, **tight, meet_relative_error=True)[0]
    assert spend.sigma == pytest.approx(76.7861697665, rel=1e-11)
    assert spend.count_price > spend.call_price
    assert spend.dearest == spend.call_price + spend.count_price


def test_prices_are_rounded_up_and_the_guard_covers_the_step():
    for line in prices(3.0):
        assert line.call_price >= Fraction(line.gamma) ** 2 * UNIT / 8
        assert line.count_price >= UNIT / (2 * Fraction(line.sigma) ** 2)
        assert line.dearest >= line.call_price + line.count_price
        assert line.dearest >= Fraction(line.gamma) ** 2 * UNIT / 4


def test_epsilon_grows_by_sqrt_2():
    assert [level_epsilon(0.5, j) for j in (0, 2, 4)] == [0.5, 1.0, 2.0]
    assert level_epsilon(0.5, 1) == pytest.approx(0.5 * math.sqrt(2), rel=1e-15)


@pytest.mark.parametrize(
    ("delta", "delta_star", "calls"),
    [
        (1e-6, 1e-11, 100_000),
        (1e-11, 1e-11, 1),
        (3e-11, 1e-11, 3),
        (2.9e-11, 1e-11, 2),
        (1e-12, 1e-11, 0),
        (2e-300, 1e-300, 1),
    ],
)
def test_most_calls_uses_the_decimal_numbers(delta, delta_star, calls):
    assert most_calls(delta, delta_star) == calls
    assert call_delta(calls, delta_star) <= delta


def test_the_delta_of_calls_is_the_product_form_rounded_up():
    for calls in (1, 2, 1000, 100_000):
        exact = 1 - (1 - Fraction(1e-11)) ** calls
        assert exact <= Fraction(call_delta(calls, 1e-11)) <= exact * (1 + Fraction(1, 10**9))


def test_rows_are_bounded_by_calls_and_the_cheapest_price():
    assert most_releases(1.0, prices(1.0), 100_000) == 100_000
    cheapest = 5.48257795328e-8
    assert most_releases(0.001, prices(0.001), 100_000) == math.floor(0.001 / cheapest)
    assert most_releases(1.0, [], 100_000) == 0
