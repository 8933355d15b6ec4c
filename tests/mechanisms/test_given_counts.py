"""Counts of given items with Laplace or Gaussian noise, or with noise in common, without delta."""

import math

import numpy as np
import pytest

from contract import MechanismContract
from discreet import Histogram
from discreet.errors import SensitivityError
from discreet.laws import joint_law
from discreet.laws.outcomes import NoiseLaw, RoundedMean
from discreet.mechanisms import CorrelatedCounts, GaussianCounts, LaplaceCounts
from discreet.reference.correlated_counts import correlated_counts
from discreet.release.intervals import reaches
from discreet.testing import seeded_rng
from discreet.theorems import lebeda2025

ITEMS = tuple(f"item-{n:02d}" for n in range(12))


class TestLaplaceCounts(MechanismContract):
    WIDEST = 28
    """No count of 12 is so many deviations off, except with a chance below 1e-15."""

    def mechanism(self):
        return LaplaceCounts.from_epsilon(items=ITEMS, epsilon=1.0, l0=3, linf=2)

    def test_an_empty_release_has_the_same_columns(self):
        # The items are public, so every release has all of them.
        empty, full = (self.mechanism().release(data) for data in (self.histogram([], []), self.plain()))
        assert set(empty.items) == set(full.items) == set(ITEMS)
        assert [(name, kind) for name, _, kind in empty.columns] == [(n, k) for n, _, k in full.columns]

    def test_counts_of_zero_are_never_released(self):
        counts = self.mechanism().release(self.histogram(ITEMS, [0] * 12)).counts
        assert np.abs(counts).max() < self.WIDEST * self.mechanism().deviation


class TestGaussianCounts(TestLaplaceCounts):
    WIDEST = 9

    def mechanism(self):
        return GaussianCounts.from_epsilon(items=ITEMS, epsilon=1.0, delta=1e-6, l0=3, linf=2)


class TestCorrelatedCounts(TestLaplaceCounts):
    WIDEST = 9

    def mechanism(self):
        return CorrelatedCounts(items=ITEMS, rho=0.1)

    def histogram(self, items, counts, **changes):
        return super().histogram(items, counts, **{"users": 60_000, **changes})


def histogram(counts, l0=2):
    return Histogram.from_counts(list(counts), list(counts.values()), l0=l0, linf=1, complete=True)


@pytest.mark.parametrize(("size", "l0", "moved"), [(500, 1, 1), (500, 7, 7), (500, None, 500), (3, 7, 3)])
def test_the_noise_is_that_of_l0_counts(size, l0, moved):
    mechanism = LaplaceCounts.from_epsilon(items=range(size), epsilon=0.5, l0=l0)
    assert mechanism.scale == pytest.approx(moved / 0.5, rel=1e-12)
    assert mechanism.guarantee.dp[0] <= 0.5
    assert mechanism.guarantee.dp[1] == mechanism.guarantee.delta == 0
    assert mechanism.protects.l0 == (l0 if moved < size else None)
    by_rho = LaplaceCounts.from_rho(items=range(size), rho=0.1, l0=l0)
    assert 0.1 * (1 - 1e-9) < by_rho.guarantee.rho <= 0.1


@pytest.mark.parametrize(("size", "l0", "moved"), [(500, 1, 1), (500, 7, 7), (500, None, 500), (3, 7, 3)])
def test_the_gaussian_noise_is_that_of_l0_counts(size, l0, moved):
    mechanism = GaussianCounts.from_rho(items=range(size), rho=0.1, l0=l0, linf=3)
    assert mechanism.sigma == pytest.approx(3 * np.sqrt(moved / 0.2), rel=1e-12)
    assert 0.1 * (1 - 1e-9) < mechanism.guarantee.rho <= 0.1
    assert mechanism.guarantee.delta == 0
    assert GaussianCounts.from_epsilon(items=range(size), epsilon=1.0, delta=1e-6, l0=l0).guarantee.implies(1.0, 1e-6)


def test_the_pure_epsilon_is_reached_and_never_exceeded():
    mechanism = LaplaceCounts(items=("a", "b", "c"), scale=1.5, l0=2)
    p, q = joint_law(mechanism, {"a": 5, "b": 2, "x": 9}, {"a": 6, "b": 3, "x": 9})
    exact = (p > 1e-12) & (q > 1e-12)
    widest = np.abs(np.log(p[exact] / q[exact])).max()
    assert widest == pytest.approx(2 / 1.5, rel=1e-3)
    assert widest <= mechanism.guarantee.dp[0] * (1 + 1e-3)


def test_released_counts_have_the_stated_noise():
    mechanism = LaplaceCounts(items=("a", "nobody's"), scale=4.0, l0=1)
    rng, table = seeded_rng(5), histogram({"a": 300, "x": 4000}, l0=1)
    runs = [dict(mechanism.release(table, rng=rng)) for _ in range(2000)]
    for name, count in (("a", 300), ("nobody's", 0)):
        values = np.array([run[name] for run in runs])
        assert np.std(values) == pytest.approx(mechanism.deviation, rel=0.1)
        assert abs(values.mean() - count) < 0.7


def test_users_with_more_items_and_cut_histograms_are_refused():
    mechanism = LaplaceCounts(items=("a", "b", "c"), scale=1.0, l0=1)
    with pytest.raises(SensitivityError, match="l0"):
        mechanism.release(histogram({"a": 3}))
    # All three counts may change if l0 is the number of items.
    assert len(LaplaceCounts(items=("a", "b", "c"), scale=1.0, l0=3).release(histogram({"a": 3}, l0=None))) == 3
    with pytest.raises(SensitivityError, match="all counts"):
        mechanism.release(Histogram.from_counts(["a"], [3], l0=1, linf=1, complete=False))


@pytest.mark.parametrize(("d", "rho"), [(1, 0.3), (2, 1.0), (3, 1e-6), (500, 0.1), (10**6, 2.0), (9, 1e4)])
def test_noise_in_common_costs_rho_and_is_the_least(d, rho):
    sigma, common = lebeda2025.correlated_sigmas(rho, d)
    assert rho * (1 - 1e-12) < lebeda2025.correlated_rho(sigma, common, d) <= rho
    least = (math.sqrt(d) + 1) ** 2 / (8 * rho)
    assert lebeda2025.correlated_deviation(sigma, common) ** 2 == pytest.approx(least + 1 / 8, rel=1e-12)
    for share in (0.3, 0.9, 1.1, 4.0):
        # With `share` times as much of rho for N as for all counts, the noise is not less.
        squares = (1 + share) * d / (2 * rho), (1 + 1 / share) / (2 * rho)
        assert sum(squares) / 4 >= least * (1 - 1e-12)


def test_counts_with_noise_in_common_are_those_of_the_reference():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        counts = rng.integers(0, 50, rng.integers(1, 9)).tolist()
        users = max(counts) + seed % 3
        mechanism = CorrelatedCounts(items=range(len(counts)), rho=[0.01, 1.0, 20.0][seed % 3])
        table = Histogram.from_counts(range(len(counts)), counts, l0=None, linf=1, complete=True, users=users)
        release = mechanism.release(table, rng=seeded_rng(seed))
        expected, measured = correlated_counts(counts, users, mechanism.sigmas, seeded_rng(seed))
        assert [release[item] for item in range(len(counts))] == expected
        assert release.users == (measured, mechanism.sigmas[1])


@pytest.mark.parametrize("rho", [0.05, 2.0])
def test_counts_share_the_noise_of_the_number_of_users(rho):
    mechanism, rng = CorrelatedCounts(items=("a", "b", "c"), rho=rho), seeded_rng(8)
    table = Histogram.from_counts(["a", "b", "x"], [70, 3, 40], l0=None, linf=1, complete=True, users=90)
    runs = [mechanism.release(table, rng=rng) for _ in range(4000)]
    errors = np.array([[run["a"] - 70, run["b"] - 3, run["c"], run.users[0] - 90] for run in runs])
    found, (sigma, common) = np.cov(errors.T), mechanism.sigmas
    assert np.abs(errors.mean(axis=0)).max() < 0.05 * mechanism.deviation + 0.05 * common
    assert np.diag(found)[:3] == pytest.approx((sigma**2 + common**2) / 4 + 1 / 8, rel=0.1)
    assert found[0, 1] == pytest.approx(common**2 / 4, rel=0.2)
    assert found[0, 3] == pytest.approx(common**2 / 2, rel=0.2)


def test_counts_with_noise_in_common_need_the_number_of_users():
    mechanism, rng = CorrelatedCounts(items=("a",), rho=1.0), []
    with pytest.raises(SensitivityError, match="count_users=True"):
        mechanism.release(histogram({"a": 3}, l0=None), rng=lambda: rng.append(1))
    assert not rng


@pytest.mark.parametrize("d", [2, 10, 1000])
@pytest.mark.parametrize("rho", [0.01, 0.5, 5.0])
def test_intervals_with_noise_in_common_cover_by_the_exact_law(d, rho):
    mechanism = CorrelatedCounts(items=range(d), rho=rho)
    law = RoundedMean(NoiseLaw(mechanism.noise), NoiseLaw(mechanism.users_noise))
    for confidence in (0.5, 0.9, 0.95, 0.99):
        reach = reaches(np.array([mechanism.deviation]), confidence, mechanism.law)
        assert 1 - 2 * law.at_least(reach + 1)[0] >= confidence
