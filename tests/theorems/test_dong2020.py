"""Composition of bounded ranges: above an adversary's lower bound, below the zCDP bound."""

import math

import numpy as np
import pytest

from discreet.privacy.conversion import cdp_delta, cdp_epsilon, round_up
from discreet.theorems.dong2020 import _profile, approximate_epsilon, bounded_range_epsilon, closed_form_epsilon


def bounded_range_delta(epsilon, k, total):
    """Return the bound on delta at a `total` epsilon of at least 0, for at most 1,000 selections."""
    step, table = _profile(epsilon, k)
    below = math.floor(total / step * (1 - 1e-12))
    if below + 1 >= len(table):
        return 0.0
    share = max(0.0, math.expm1(total - below * step) / math.expm1(step) - 1e-9)
    return round_up(table[below] + share * (table[below + 1] - table[below]))


def reached(epsilon, k, total, cells):
    """Return the delta of the best adversary whose choices lie on a grid, without rounding up."""
    step = epsilon / cells
    reach = k * cells
    index = np.arange(-reach - cells, reach + cells + 1)
    values = np.where(index >= 0, 0.0, -np.expm1(index * step))
    chances = (1 - np.exp(np.arange(cells + 1) * step - epsilon)) / (1 - math.exp(-epsilon))
    middle = slice(cells, cells + 2 * reach + 1)
    for _ in range(k):
        best = np.zeros(2 * reach + 1)
        for i, p in enumerate(chances):
            shifted = values[cells - i : cells - i + 2 * reach + 1]
            less = np.concatenate([values[2 * cells - i :], np.zeros(2 * cells)])[: 2 * reach + 1]
            best = np.maximum(best, p * shifted + (1 - p) * less)
        values[middle] = best
    return values[cells + reach + round(total / step)]


def fixed(epsilon, k, total):
    """Return the optimum if all selections are fixed in advance."""
    deltas = []
    for level in range(k):
        t = min(max((total + (level + 1) * epsilon) / (k + 1), 0), epsilon)
        q = (math.exp(-t) - math.exp(-epsilon)) / (1 - math.exp(-epsilon))
        terms = (
            math.comb(k, i) * q ** (k - i) * (1 - q) ** i * max(0, math.exp(k * t - i * epsilon) - math.exp(total))
            for i in range(k + 1)
        )
        deltas.append(math.fsum(terms))
    return max(deltas)


CASES = [
    (0.1, 10, 0.5, 3.997813405259e-5, 4.43e-5, 1.5157e-4),
    (0.5, 20, 3, 0.0049340349200095, 5.23e-3, 1.518e-2),
    (1, 5, 2, 0.044969537965813, 4.70e-2, 9.64e-2),
]


@pytest.mark.parametrize(("epsilon", "k", "total", "in_advance", "adaptive", "concentrated"), CASES)
def test_the_bound_lies_between_an_adversary_and_zcdp(epsilon, k, total, in_advance, adaptive, concentrated):
    assert fixed(epsilon, k, total) == pytest.approx(in_advance, rel=1e-3)
    bound = bounded_range_delta(epsilon, k, total)
    lower = reached(epsilon, k, total, 24)
    assert in_advance < lower < bound
    assert bound <= 1.02 * lower
    assert bound == pytest.approx(adaptive, rel=0.01)
    assert bound < cdp_delta(k * epsilon**2 / 8, total) == pytest.approx(concentrated, rel=1e-3)


def test_the_bound_for_one_selection_is_nearly_exact():
    # The largest p (e^t - e^g), at t = epsilon/2 + g/2, for losses t and t - epsilon.
    for epsilon, total in [(0.3, 0.0), (0.3, 0.1), (2.0, 1.0)]:
        t = np.linspace(total, epsilon, 200_001)
        exact = np.max((1 - np.exp(t - epsilon)) / (1 - math.exp(-epsilon)) * -np.expm1(total - t))
        bound = bounded_range_delta(epsilon, 1, total)
        assert exact <= bound <= exact * 1.001 + 1e-15


@pytest.mark.parametrize(("epsilon", "k"), [(0.05, 1), (0.1, 10), (0.02, 100)])
def test_epsilon_is_the_inverse_of_delta(epsilon, k):
    for delta in (1e-12, 1e-6, 1e-2):
        total = bounded_range_epsilon(epsilon, k, delta)
        assert bounded_range_delta(epsilon, k, total) <= delta * (1 + 1e-6)
        assert total <= k * epsilon * (1 + 1e-12)
        assert total <= closed_form_epsilon(epsilon, k, delta)


def test_the_bound_is_tighter_than_zcdp():
    for epsilon, k in [(0.1, 5), (0.5, 20), (0.05, 200)]:
        assert bounded_range_epsilon(epsilon, k, 1e-6) < cdp_epsilon(k * epsilon**2 / 8, 1e-6)


def test_5000_selections_use_the_closed_form():
    assert bounded_range_epsilon(0.01, 5_000, 1e-6) == closed_form_epsilon(0.01, 5_000, 1e-6)


def test_the_mechanisms_own_delta_is_subtracted_first():
    assert approximate_epsilon(0.1, 10, 1e-6, 1e-6) == math.inf
    assert approximate_epsilon(0.1, 10, 0.0, 1e-6) == pytest.approx(bounded_range_epsilon(0.1, 10, 1e-6), rel=1e-9)
    assert approximate_epsilon(0.1, 10, 5e-7, 1e-6) > bounded_range_epsilon(0.1, 10, 1e-6)
