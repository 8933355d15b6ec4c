"""The exact (epsilon, delta) of thresholded Gaussian counts, and the correction for a lattice."""

import math

import numpy as np
import pytest

from discreet import GaussianThreshold
from discreet.theorems.tails import gaussian_difference_tail, gaussian_hockey_stick, gaussian_sum_tail
from discreet.theorems.wilkins2022 import lattice_distortion, sparse_histogram_delta


def phi(x):
    return math.erfc(-x / math.sqrt(2)) / 2


def continuous(epsilon, mu):
    """Return the delta of continuous noise (Balle and Wang 2018, Theorem 8)."""
    return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(
    ("epsilon", "delta", "l0", "sigma", "threshold"),
    [
        (1.0, 1e-6, 1, 4.5, 22.390409389703),
        (1.0, 1e-6, 10, 14.0, 73.790724979593),
        (0.5, 1e-8, 4, 25.0, 147.17930361189),
    ],
)
def test_thresholds_are_minimal_in_the_exact_analysis(epsilon, delta, l0, sigma, threshold):
    def found(value):
        seen = phi((1 - value) / sigma)
        return sparse_histogram_delta(epsilon, seen, l0, lambda at, shared: continuous(at, math.sqrt(shared) / sigma))

    assert found(threshold) == pytest.approx(delta, rel=1e-6)
    assert found(threshold - 0.01) > delta > found(threshold + 0.01)


@pytest.mark.parametrize(
    ("sigma", "m", "tail"), [(1.0, 8, 3.2205588675168e-8), (2.0, 14, 8.0324911565514e-7), (5.0, 34, 1.0604172923565e-6)]
)
def test_tails_of_gaussian_differences_match_known_values(sigma, m, tail):
    assert gaussian_difference_tail(sigma)(m) == pytest.approx(tail, rel=1e-10)
    assert gaussian_difference_tail(sigma)(m) >= tail * (1 - 1e-13)


@pytest.mark.parametrize("sigma", [0.7, 1.3, 3.0])
@pytest.mark.parametrize("terms", [1, 2, 3, 5])
def test_sums_of_discrete_gaussians_lie_within_their_bounds(sigma, terms):
    reach = math.ceil(12 * sigma)
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    law = np.ones(1)
    for _ in range(terms):
        law = np.convolve(law, one / one.sum())
    tails = law[::-1].cumsum()[::-1]
    bounds = gaussian_sum_tail(sigma, terms)
    for m in range(0, 5 * reach // 4, 2):
        exact = tails[terms * reach + m] if m <= terms * reach else 0.0
        low, high = bounds(m)
        assert low - 1e-15 <= exact <= high + 1e-15


@pytest.mark.parametrize(("sigma", "linf", "terms"), [(1.0, 1, 1), (2.0, 1, 3), (3.0, 2, 2), (1.5, 3, 1)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_the_divergence_matches_the_joint_law(sigma, linf, terms, epsilon):
    reach = math.ceil(9 * sigma) + linf
    x = np.arange(-reach, reach + 1)
    p, q = np.exp(-(x**2) / (2 * sigma**2)), np.exp(-((x - linf) ** 2) / (2 * sigma**2))
    p, q = p / p.sum(), q / np.exp(-(np.arange(-3 * reach, 3 * reach) ** 2) / (2 * sigma**2)).sum()
    joint_p, joint_q = np.ones(1), np.ones(1)
    for _ in range(terms):
        joint_p, joint_q = np.multiply.outer(joint_p, p).ravel(), np.multiply.outer(joint_q, q).ravel()
    exact = np.maximum(joint_p - math.exp(epsilon) * joint_q, 0).sum()
    bound = gaussian_hockey_stick(sigma, linf, terms)(epsilon)
    assert exact * (1 - 1e-9) - 1e-13 <= bound <= exact * (1 + 1e-4) + 1e-11


def test_sums_at_small_scales_have_no_bound():
    assert lattice_distortion(0.1, 5) == math.inf
    assert lattice_distortion(0.1, 1) == 1.0
    assert lattice_distortion(4.0, 100) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("l0", [1, 3, 20])
def test_the_exact_threshold_beats_the_zcdp_conversion(l0):
    exact = GaussianThreshold.from_epsilon(epsilon=1.0, delta=1e-6, l0=l0)
    assert exact.guarantee.epsilon(1e-6) <= 1.0
    simple = GaussianThreshold.from_rho(rho=0.0243, delta=5e-7, l0=l0)
    assert exact.threshold.value < simple.threshold.value


@pytest.mark.parametrize("share", [0.1, 0.7, 0.99])
@pytest.mark.parametrize("l0", [1, 3, 12, 30])
def test_numbers_of_shared_items_are_left_out_only_if_they_do_not_matter(l0, share):
    epsilon, delta = 0.8, 1e-6
    sticks = {j: gaussian_hockey_stick(4.5 * math.sqrt(l0), 1, j) for j in range(1, l0 + 1)}
    seen = -math.expm1(math.log1p(-share * delta) / l0)
    asked = set()

    def stick(at, shared):
        asked.add(shared)
        return sticks[shared](at)

    found = sparse_histogram_delta(epsilon, seen, l0, stick)
    every = [-math.expm1(l0 * math.log1p(-seen))]
    for j in range(1, l0 + 1):
        q = (1 - seen) ** (l0 - j)
        every += [1 - q + q * sticks[j](epsilon - math.log(q)), sticks[j](epsilon + math.log(q))]
    assert found == pytest.approx(max(every), rel=1e-9)
    assert l0 < 12 or share > 0.9 or len(asked) < l0


def test_quick_divergences_are_upper_bounds_and_close():
    for sigma in (2.0, 9.0, 70.0, 1e5):
        for epsilon in (0.05, 0.5, 2.0):
            for terms in (1, 7):
                quick, exact = (gaussian_hockey_stick(sigma, 1, terms, quick=q)(epsilon) for q in (True, False))
                assert exact <= quick <= exact * (1 + 1e-5) + 1e-290
