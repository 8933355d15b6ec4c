"""Odometers, compared with numbers computed with many digits."""

import mpmath
import numpy as np
import pytest

from discreet.theorems.whitehouse2023 import half_normal_odometer


@pytest.mark.parametrize(
    ("spent", "reading"), [(0.01, 1.3740688938204), (0.1, 2.7388522504138), (0.5, 6.0456029174127)]
)
def test_readings_match_known_values(spent, reading):
    assert half_normal_odometer(spent, 1e-6, 0.05) == pytest.approx(reading, rel=1e-12)


def check_rounding(spent, delta, other):
    with mpmath.workdps(40):
        s, d, o = mpmath.mpf(spent), mpmath.mpf(delta), mpmath.mpf(other)
        v, log = 2 * s, mpmath.log(1 / d)

        def excess(reading):
            x = reading - v / 2
            mass = mpmath.erfc(-x / mpmath.sqrt(2 * (v + o))) / 2
            return mpmath.log(2 * mpmath.sqrt(o / (v + o)) * mass) + x**2 / (2 * (v + o)) - log

        reading = mpmath.mpf(half_normal_odometer(spent, delta, other))
        assert excess(reading) >= 0
        assert excess(v / 2 + (reading - v / 2) * (1 - mpmath.mpf("1e-9")) - v / 2 * mpmath.mpf("1e-9")) <= 0


def cases(number):
    random = np.random.default_rng(5)
    for _ in range(number):
        yield 10 ** random.uniform(-9, 2), 10 ** random.uniform(-16, -2), 10 ** random.uniform(-6, 1.5)


@pytest.mark.parametrize("number", [300, pytest.param(100_000, marks=pytest.mark.statistical)])
def test_readings_are_rounded_up_by_at_most_1e_9(number):
    for case in cases(number):
        check_rounding(*case)


def test_a_reading_starts_above_zero_and_rises():
    readings = [half_normal_odometer(spent, 1e-6, 0.05) for spent in (0.0, 1e-12, 1e-3, 0.1, 1.0, 100.0)]
    assert readings[0] > 0
    assert readings == sorted(readings)
