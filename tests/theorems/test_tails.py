"""Tail bounds against high-precision arithmetic."""

import math
import random

import mpmath
import pytest

from discreet.theorems.tails import gaussian_sum_bound, sub_gaussian


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(60):
        yield


def points():
    chance = random.Random(8)
    for _ in range(4_000):
        deviation = 10 ** chance.uniform(-2, 6)
        yield deviation * math.sqrt(2 * chance.uniform(1e-9, 699.0)), deviation


def test_the_sub_gaussian_tail_is_rounded_up():
    for reach, deviation in points():
        exact = mpmath.exp(-(mpmath.mpf(reach) ** 2) / (2 * mpmath.mpf(deviation) ** 2))
        assert exact * (1 + mpmath.mpf("0.5e-12")) <= sub_gaussian(reach, deviation) <= exact * (1 + mpmath.mpf("1e-9"))


def test_the_sub_gaussian_tail_covers_a_rounded_deviation():
    for reach, deviation in points():
        for moved in (deviation * (1 - 4e-13), deviation * (1 + 4e-13)):
            exact = mpmath.exp(-(mpmath.mpf(reach) ** 2) / (2 * mpmath.mpf(moved) ** 2))
            assert exact <= sub_gaussian(reach, deviation)


def test_the_bound_of_narrow_gaussian_sums_is_rounded_up():
    for sigma in (0.05, 0.1, 0.13):
        for terms in (1, 3, 7):
            bound = gaussian_sum_bound(sigma, terms)
            for m in range(1, 12):
                exponent = mpmath.mpf(m) ** 2 / (2 * terms * mpmath.mpf(sigma) ** 2)
                if exponent < 690:
                    assert mpmath.exp(-exponent) <= bound(m) <= mpmath.exp(-exponent) * (1 + mpmath.mpf("1e-9"))
