"""Optimal partition selection under approximate zCDP: each step is allowed, and a slightly larger one is not."""

import itertools
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from discreet import GaussianThreshold, OptimalSelection
from discreet.errors import ParameterError
from discreet.theorems.concentrated_selection import UNITS, largest_chances

ORDERS = [1 + step for step in (1e-9, 1e-6, *np.geomspace(1e-4, 1e4, 60).tolist())]


def excess(one, other, rho):
    """Return the largest K(a) - rho a (a - 1) of two coins in both directions, in 40 digits."""
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 40, MAX_EMAX, MIN_EMIN
        return max(_excess(first, second, rho) for first, second in ((one, other), (other, one)))


def _excess(first, second, rho):
    p, q = (Decimal(part.numerator) / Decimal(part.denominator) for part in (first, second))
    sides = [(a, b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0]
    if any(b == 0 for _, b in sides):
        return Decimal("inf")
    logs = [(a.ln(), b.ln()) for a, b in sides]

    def at(order):
        order = Decimal(order)
        total = sum((order * a + (1 - order) * b).exp() for a, b in logs)
        return total.ln() - Decimal(rho) * order * (order - 1)

    return max(largest(at, *near) for near in zip(ORDERS, ORDERS[2:], strict=False))


def largest(at, low, high):
    """Return the largest value of a function at finer and finer points between two numbers."""
    found = Decimal("-inf")
    for _ in range(2):
        points = np.linspace(low, high, 7).tolist()
        values = [at(point) for point in points]
        best = min(max(values.index(max(values)), 1), len(points) - 2)
        low, high, found = points[best - 1], points[best + 1], max(found, *values)
    return found


@pytest.mark.parametrize(("rho", "delta"), [(0.1, 1e-6), (0.1, 0.1), (0.5, 1e-12), (3.0, 1e-3), (30.0, 1e-9)])
def test_each_step_is_allowed_and_a_larger_one_is_not(rho, delta):
    part = Fraction(delta)
    chances = [*map(int, largest_chances(rho, delta)), UNITS]
    assert chances[:2] == [0, int(part * UNITS)]
    for now, following in itertools.pairwise(chances[1:]):
        x = min(Fraction(now, UNITS) / (1 - part), Fraction(1))

        def other(units):
            return (Fraction(units, UNITS) - part) / (1 - part)

        assert excess(x, other(following), rho) <= 0
        if following < UNITS:
            more = following + max(1, min(following - now, UNITS - following) // 100)
            assert excess(x, other(more), rho) > 0


@pytest.mark.parametrize(("rho", "optimal", "threshold"), [(0.01, 30, 36), (0.1, 11, 13), (0.5, 6, 7)])
def test_an_item_needs_fewer_users_than_with_a_threshold(rho, optimal, threshold):
    made = OptimalSelection.from_rho(rho=rho, delta=1e-6), GaussianThreshold.from_rho(rho=rho, delta=1e-6, l0=1)
    found = [next(n for n in range(1, 99) if one.release_chance(n) >= 0.5) for one in made]
    assert found == [optimal, threshold]
    assert all(made[0].release_chance(n) >= made[1].release_chance(n) * (1 - 1e-9) for n in range(1, 99))


def test_a_user_of_several_items_pays_for_each_of_them():
    made = OptimalSelection.from_rho(rho=0.6, delta=1e-5, l0=3)
    rho, delta = made.each
    assert 3 * rho <= 0.6
    assert 1 - (1 - Fraction(delta)) ** 3 <= Fraction(1e-5)
    assert (made.chances == largest_chances(rho, delta)).all()
    assert not made.chances.flags.writeable
    assert (made.guarantee.rho, made.guarantee.delta, made.guarantee.dp) == (0.6, 1e-5, None)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"rho": 1, "epsilon": 1, "delta": 1e-6}, "exactly one"),
        ({"delta": 1e-6}, "exactly one"),
        ({"rho": 1e-3, "delta": 1e-6}, "rho/l0 must be at least"),
        ({"rho": 1, "delta": 0}, "no item can ever be released"),
        ({"rho": 1, "delta": 1e-30}, "2\\^-60"),
        ({"rho": -1, "delta": 1e-6}, "rho must"),
    ],
)
def test_parameters_are_checked(given, text):
    with pytest.raises(ParameterError, match=text):
        OptimalSelection(**given)
