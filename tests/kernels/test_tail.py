"""Tails: rigorous and tight upper bounds, compared with sums of sixty digits."""

import math
import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import _core
from discreet.errors import ParameterError
from discreet.reference.threshold import threshold_release
from discreet.testing import seeded_rng

Noise = _core.Noise


def summed_gaussian_tail(sigma, m):
    h = 1 / (2 * mpmath.mpf(sigma) ** 2)
    step = lambda x: mpmath.exp(-h * x * x)  # noqa: E731
    above = mpmath.fsum(step(x) for x in range(m, m + int(18 * sigma) + 60))
    return above / (2 * mpmath.fsum(step(x) for x in range(1, int(40 * sigma) + 60)) + 1)


def assert_tight(value, truth):
    assert mpmath.mpf(value) >= truth * (1 - mpmath.mpf(10) ** -17), "the coefficient is rounded down by 2^-63"
    least_normal = 0 if truth == 0 else mpmath.mpf(sys.float_info.min)
    assert mpmath.mpf(value) <= max(truth * (1 + mpmath.mpf(10) ** -12), least_normal)


@pytest.mark.parametrize(
    "sigma", [0.25, 1.0, 3.7, 20.0, 90.0, *(pytest.param(s, marks=pytest.mark.statistical) for s in (300.0, 511.0))]
)
def test_gaussian_tails_are_tight_bounds_down_to_1e_30(sigma):
    law = Noise.discrete_gaussian(sigma)
    with mpmath.workdps(50):
        for z in [0.001, 0.5, 1, 2.5, 5, 8, 11.4]:
            m = math.ceil(z * sigma)
            assert_tight(law.tail(m), summed_gaussian_tail(sigma, m))


@pytest.mark.parametrize("sigma", [513.0, 1e4, 1e6, 1e9])
def test_gaussian_tails_of_large_scale_agree_with_the_integral(sigma):
    law = Noise.discrete_gaussian(sigma)
    with mpmath.workdps(50):
        for z in [0.001, 0.5, 2.5, 5, 8, 11.4]:
            m = math.ceil(z * sigma)
            # Midpoints: sum over x >= m of f(x) = integral from m - 1/2 of f, less f'(m - 1/2)/24 + 7 f'''/5760 ...
            h = 1 / (2 * mpmath.mpf(sigma) ** 2)
            start = m - mpmath.mpf(1) / 2
            f = lambda x: mpmath.exp(-h * x * x)  # noqa: E731, B023
            slopes = [mpmath.diff(f, start, n) for n in (1, 3, 5)]
            sums = mpmath.sqrt(mpmath.pi / h) / 2 * mpmath.erfc(mpmath.sqrt(h) * start)
            sums += slopes[0] / 24 - slopes[1] * 7 / 5760 + slopes[2] * 31 / 967680
            assert_tight(law.tail(m), sums / mpmath.sqrt(mpmath.pi / h))


@settings(max_examples=200, deadline=None)
@given(scale=st.floats(1e-3, 2.0**45), x=st.floats(0, 75), bound=st.integers(0, 2**52))
def test_geometric_tails_are_tight_bounds_down_to_1e_30(scale, x, bound):
    m = math.ceil(x * scale)
    with mpmath.workdps(60):
        a = lambda n: mpmath.exp(-mpmath.mpf(n) / mpmath.mpf(scale))  # noqa: E731
        assert_tight(Noise.discrete_laplace(scale).tail(m), a(m) / (1 + a(1)))
        truncated = Noise.truncated_geometric(scale, bound).tail(m)
        truth = (a(m) - a(bound + 1)) / (1 + a(1) - 2 * a(bound + 1)) if 0 < m <= bound else 0
        if m > 0:
            assert_tight(truncated, truth)


def test_lower_and_upper_tails_sum_to_one():
    for law in [Noise.discrete_gaussian(3.0), Noise.discrete_laplace(3.0), Noise.truncated_geometric(3.0, 9)]:
        for m in range(-12, 12):
            assert law.tail(m) + law.tail(1 - m) == pytest.approx(1, abs=1e-15)
            assert law.tail(m) >= law.tail(m + 1)
    assert Noise.truncated_geometric(3.0, 9).tail(10) == 0


def test_tails_too_small_for_a_float_are_rounded_up():
    assert 0 < Noise.discrete_gaussian(1.0).tail(10_000) < 1e-300
    assert 0 < Noise.discrete_laplace(1.0).tail(2**62) < 1e-300


# The integer thresholds of Laplace and Gaussian noise, and their tails, for (epsilon, delta, l0, linf).
LAPLACE = [
    (1, 1e-6, 1, 1, 14, 6.0789620347788e-7),
    (0.5, 1e-8, 10, 1, 41, 7.7816931711117e-10),
    (0.1, 1e-10, 100, 3, 811, 9.8780996081294e-13),
    (2, 1e-5, 5, 2, 14, 1.6524332035032e-6),
    (0.01, 1e-6, 1, 1, 1313, 9.9735438328506e-7),
]
GAUSSIAN = [
    (1, 1e-6, 1, 1, 6, 6.0850225909724e-9),
    (0.5, 1e-8, 10, 1, 13, 1.3816947445476e-10),
    (0.1, 1e-10, 100, 3, 214, 8.9249374518034e-13),
    (2, 1e-5, 5, 2, 6, 1.4928045293705e-6),
    (0.3, 1e-6, 1, 1, 17, 3.3759441826971e-7),
    (0.7, 1e-9, 3, 1, 10, 6.431706691661e-12),
]


@pytest.mark.parametrize(
    ("law", "row"),
    [(Noise.discrete_laplace, row) for row in LAPLACE] + [(Noise.discrete_gaussian, row) for row in GAUSSIAN],
)
def test_thresholds_match_their_test_vectors(law, row):
    epsilon, delta, l0, linf, value, tail = row
    threshold = _core.Threshold.for_chance(law(linf / epsilon), linf, delta / l0)
    assert threshold.value == value
    assert threshold.chance(linf) == pytest.approx(tail, rel=2e-13 if linf < 3 and epsilon != 0.3 else 1e-10)
    assert threshold.chance(linf) <= delta / l0
    assert _core.Threshold(law(linf / epsilon), value - 1).chance(linf) > delta / l0


def test_tails_of_truncated_noise_match_their_test_vectors():
    for epsilon, k, tail in [(1, 11, 7.7182118276015e-6), (0.1, 109, 9.2215954609486e-7), (2, 12, 2.8751204068956e-11)]:
        law = Noise.truncated_geometric(1 / epsilon, k)
        assert law.tail(k) == pytest.approx(tail, rel=1e-13)
        threshold = _core.Threshold(law, k)
        assert threshold.chance(1) == law.tail(k)
        assert threshold.chance(2 * k + 1) == pytest.approx(1, abs=1e-15)
    threshold = _core.Threshold(Noise.truncated_geometric(1.0, 11), 11)
    for n, chance in [(1, 7.7182118276015e-6), (5, 6.621533029596e-4), (11, 0.26893934562314), (12, 0.73106065437686)]:
        assert threshold.chance(n) == pytest.approx(chance, rel=1e-12)


def test_the_release_rate_equals_the_stated_probability():
    """The share of releases of one count equals the probability that the threshold states."""
    threshold = _core.Threshold(Noise.discrete_laplace(3.0), 9)
    for count in (1, 9, 10, 14):
        draws = 400_000
        rows, noisy = threshold.release(np.full(draws, count), seeded_rng(count))
        p = threshold.chance(count)
        assert abs(len(rows) - p * draws) < 6 * math.sqrt(p * (1 - p) * draws)
        assert noisy.min() == 10
    assert threshold.passes(10)
    assert not threshold.passes(9)


@settings(max_examples=30, deadline=None)
@given(
    counts=st.lists(st.integers(0, 40), max_size=30),
    repeat=st.sampled_from([1, 7, 9000]),
    value=st.integers(-5, 40),
    seed=st.integers(0, 2**64 - 1),
)
def test_rust_and_numpy_release_the_same_rows(counts, repeat, value, seed):
    counts = np.array(counts * repeat, dtype=np.int64)
    law = Noise.discrete_gaussian(6.0)
    ours, same_rng = seeded_rng(seed), seeded_rng(seed)
    rows, noisy = _core.Threshold(law, value).release(counts, ours)
    others = threshold_release(counts, value, lambda rng, size: rng.sample(law, size), same_rng)
    assert rows.tolist() == others[0].tolist()
    assert noisy.tolist() == others[1].tolist()
    assert ours.bits64() == same_rng.bits64()


def test_strided_counts_are_read_correctly():
    counts = np.arange(0, 4000)[::2]
    law, seed = Noise.discrete_gaussian(1.0), 5
    strided = _core.Threshold(law, 100).release(counts, seeded_rng(seed))
    plain = _core.Threshold(law, 100).release(counts.copy(), seeded_rng(seed))
    assert strided[1].tolist() == plain[1].tolist()


def test_thresholds_out_of_range_are_refused():
    law = Noise.discrete_gaussian(1.0)
    for count, p in [(1, 0), (1, 1), (1, math.nan), (1, -1), (-1, 0.1), (2**36, 0.1)]:
        with pytest.raises(ParameterError):
            _core.Threshold.for_chance(law, count, p)
    with pytest.raises(ParameterError):
        _core.Threshold(law, 2**61)
    for p in [0.0, 5e-324, 1.0, math.nan]:
        with pytest.raises(ParameterError):
            law.quantile(p)


def test_rows_of_zero_or_negative_counts_never_pass():
    rows, _ = _core.Threshold(Noise.discrete_gaussian(1.0), -100).release(np.array([1, -1, 0, 2]), seeded_rng(1))
    assert rows.tolist() == [0, 3]


@settings(max_examples=300, deadline=None)
@given(sigma=st.floats(1e-3, 1e9), z=st.floats(-20, 36))
def test_quick_bounds_enclose_the_tail(sigma, z):
    law, m = Noise.discrete_gaussian(sigma), math.ceil(z * sigma)
    low, high = law.tail_bounds(m)
    assert 0 <= low <= law.tail(m) <= high * (1 + 1e-15) <= 1.1
    assert low >= high * (1 - 1e-8) or law.tail(m) <= 1e-290


def test_the_sum_of_two_tails_is_compared_with_a_probability():
    law = Noise.discrete_gaussian(30.0)
    both = law.tail(100) + law.tail(101)
    for factor in (0.5, 1 - 1e-12, 1 + 1e-12, 2):
        assert law.two_tails_are_at_most(100, both * factor) is (factor > 1)
    laplace = Noise.discrete_laplace(3.0)
    assert laplace.two_tails_are_at_most(40, 1e-5)
    assert not laplace.two_tails_are_at_most(4, 0.1)
    assert 0.9999 < laplace.tail_bounds(-60)[0] <= laplace.tail(-60) <= laplace.tail_bounds(-60)[1] <= 1
