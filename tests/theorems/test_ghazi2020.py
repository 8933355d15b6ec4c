"""Theorems 2 and 13 of Ghazi et al. (2020): the last stage of sparse vector on any noise, and Chernoff's bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import _core
from discreet.queries import Stage
from discreet.theorems.ghazi2020 import PARTS, large_errors, noise_reach

M, NEAR = 3, 6


def last_stage(errors, threshold, bars, noise, again, starts):
    """Return the errors after one run for each noise on the threshold, with the given noise and starts."""
    errors = list(errors)
    for bar, shifts, fresh, start in zip(bars, noise, again, starts, strict=True):
        for place in range(len(errors)):
            row = (start + place) % len(errors)
            if abs(errors[row]) + shifts[row] >= threshold + bar:
                errors[row] = fresh
                break
    return errors


def within(reach, size):
    return st.lists(st.integers(-reach, reach), min_size=size, max_size=size)


@settings(max_examples=400, deadline=None)
@given(data=st.data(), b=st.integers(0, 4), q=st.integers(0, 4), size=st.integers(M, 8))
def test_the_last_stage_leaves_no_error_above_its_bound(data, b, q, size):
    a = b + q
    large = data.draw(st.lists(st.integers(NEAR, NEAR + 3 * a + 9), max_size=M))
    errors = [*large, *data.draw(within(NEAR - 1, size - len(large)))]
    noise = data.draw(st.lists(within(q, size), min_size=M, max_size=M))
    starts = data.draw(st.lists(st.integers(0, size - 1), min_size=M, max_size=M))
    bars, again = data.draw(within(b, M)), data.draw(within(NEAR - 1, M))
    left = last_stage(errors, NEAR + a, bars, noise, again, starts)
    assert max(map(abs, left)) <= NEAR + 2 * a - 1


def test_one_large_error_too_many_or_a_lower_threshold_is_wrong():
    still, large = [[0] * 5] * M, [20] * (M + 1)
    assert max(last_stage([*large, 0], NEAR, [0] * M, still, [0] * M, [0] * M)) == 20
    # With a threshold below NEAR + a, the runs find small errors and leave the large ones.
    noise = [[2] * 5] * M
    assert max(last_stage([5, 5, 5, 20, 20], NEAR, [0] * M, noise, [0] * M, [0] * M)) == 20


@pytest.mark.parametrize(("k", "runs", "epsilon"), [(1, 1, 1.0), (1000, 10, 0.1), (2**24, 2**10, 0.01)])
@pytest.mark.parametrize("chance", [1e-6, 0.3])
def test_the_noise_of_a_stage_stays_within_its_reach(k, runs, epsilon, chance):
    stage = Stage(runs=runs, epsilon=epsilon, threshold=0)
    bar, query = stage.search.noises
    a, near = noise_reach(k, runs, (bar.quantile, query.quantile, stage.again.quantile), chance)
    part = chance / PARTS
    assert 2 * runs * stage.again.tail(near) <= part < 2 * runs * stage.again.tail(near - 1)
    b = bar.quantile(part / (2 * runs)) - 1
    assert 2 * runs * bar.tail(b + 1) <= part
    assert 2 * runs * k * query.tail(a - b + 1) <= part < 2 * runs * k * query.tail(a - b)


@pytest.mark.parametrize("n", [20, 400])
def test_the_bound_of_large_draws_is_above_the_binomial_tail(n):
    law = _core.Noise.discrete_gaussian(3.0)
    for t in (4, 7, 10):
        p = 2 * law.tail(t)
        masses = np.array([math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)])
        for m in range(n):
            exact, bound = float(masses[m + 1 :].sum()), large_errors(n * p, m)
            assert bound >= exact * (1 - 1e-9)
            # Chernoff's bound with the variance of Poisson's law is above by a factor that grows with p.
            if exact > 1e-100 and p < 0.03:
                assert bound <= 60 * exact ** (1 - 2 * p) or bound < 1e-6
    assert large_errors(1.0, 0) == 1.0
