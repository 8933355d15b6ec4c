"""Private Count Release: the contract, the Python reference bit for bit, and the cost."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_rng import NumpyRng

from contract import MechanismContract
from discreet import Guarantee, Histogram, PrivateCountRelease, _core
from discreet.errors import ParameterError
from discreet.reference.private_count_release import private_count_release
from discreet.testing import seeded_rng
from discreet.theorems import rogers2024
from discreet.theorems.rogers2024 import UNIT


class TestPrivateCountRelease(MechanismContract):
    def mechanism(self):
        return PrivateCountRelease(rho=0.5, delta=1e-6, epsilon_star=0.01, k_bar=50)


def histogram(counts, complete=True):
    return Histogram.from_counts(list(range(len(counts))), counts, l0=None, linf=1, complete=complete)


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 3000), max_size=25),
    slack=st.one_of(st.none(), st.integers(0, 5)),
    epsilon_star=st.floats(0.005, 1.0),
    k_bar=st.integers(1, 12),
    delta_star=st.sampled_from([1e-3, 1e-8]),
    meet=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
)
def test_rust_and_python_release_the_same_rows(counts, slack, epsilon_star, k_bar, delta_star, meet, seed):
    counts = np.array(sorted(counts, reverse=True), dtype=np.int64)
    levels = rogers2024.price_list(
        2.0, epsilon_star=epsilon_star, delta_star=delta_star, k_bar=k_bar, relative_error=0.1, meet_relative_error=meet
    )
    limit = None if slack is None else len(counts) + slack
    arguments = (counts, limit, levels, 2 * UNIT, 40, k_bar)
    ours, same_rng = seeded_rng(seed), seeded_rng(seed)
    rust, python = _core.private_count_release(*arguments, ours), private_count_release(*arguments, same_rng)
    assert [np.asarray(part).tolist() for part in rust] == [np.asarray(part).tolist() for part in python]
    assert ours.bits64() == same_rng.bits64()


def zipf(items=3000, users=60_000, seed=1):
    return np.sort(np.random.default_rng(seed).poisson(users / np.arange(1, items + 1)))[::-1]


def independent_cost(release, mechanism):
    """Return the sum of epsilon^2/8 over calls and 1/(2 sigma^2) over counts, from the published sigmas alone."""
    levels = [mechanism.epsilon_star * math.sqrt(2) ** j for j in range(len(mechanism.levels))]
    tail = math.log(mechanism.k_bar / mechanism.delta_star)
    r = mechanism.relative_error
    sigmas = [max(r / 1.5 * (1 + tail / e), 2 / e) for e in levels]
    used = [int(np.argmin(np.abs(np.array(sigmas) - s))) for s in release.sigmas]
    empty_calls = release.calls - len(release)
    selections = sum(levels[j] ** 2 / 8 for j in used) + sum(levels[j] ** 2 / 8 for j in range(empty_calls))
    return selections + float((1 / (2 * release.sigmas**2)).sum())


@pytest.mark.parametrize("rho", [0.05, 1.0, 4.0])
def test_spent_is_the_sum_over_sigmas_and_calls(rho):
    mechanism = PrivateCountRelease(rho=rho, delta=1e-6)
    release = mechanism.release(histogram(zipf()))
    assert release.spent.rho == pytest.approx(independent_cost(release, mechanism), rel=1e-9)
    assert release.spent.rho <= rho
    exact = 1 - (1 - Fraction(1e-11)) ** release.calls
    assert exact <= Fraction(release.spent.delta) <= Fraction(1e-6)
    assert release.guarantee == Guarantee(rho, 1e-6)


def test_counts_of_rows_have_the_noise_and_the_lead_of_linf():
    once, rows = (PrivateCountRelease(rho=1.0, delta=1e-6, linf=linf).levels for linf in (1, 7))
    assert [level.call_price for level in once] == [level.call_price for level in rows]
    for one, seven in zip(once, rows, strict=True):
        assert 0 <= one.gamma - 7 * seven.gamma <= 1e-14 * one.gamma
        assert seven.offset == one.offset
        assert seven.sigma == pytest.approx(7 * one.sigma, rel=1e-12)
        assert Fraction(seven.count_price, UNIT) >= Fraction(49) / (2 * Fraction(seven.sigma) ** 2)


def test_a_release_stops_when_rho_is_spent():
    mechanism = PrivateCountRelease(rho=0.3, delta=1e-6)
    release = mechanism.release(histogram(zipf()))
    last = mechanism.levels[min(release.calls - len(release), len(mechanism.levels) - 1)]
    assert release.spent.rho + last.dearest / UNIT > 0.3 or release.calls - len(release) == len(mechanism.levels)


def test_delta_limits_the_number_of_calls():
    mechanism = PrivateCountRelease(rho=1.0, delta=7e-11, delta_star=1e-11)
    release = mechanism.release(histogram(zipf()))
    assert release.calls == 7
    assert release.spent.delta <= 7e-11


def test_a_truncated_histogram_stops_early_and_says_so():
    mechanism = PrivateCountRelease(rho=1.0, delta=1e-6, epsilon_star=0.05, k_bar=10)
    counts = [50_000 - 1_000 * n for n in range(30)]
    assert not mechanism.release(histogram(counts)).stopped_early
    release = mechanism.release(histogram(counts[:15], complete=False))
    assert release.stopped_early
    assert 0 < len(release) <= 5


def test_stopping_does_not_reveal_the_number_of_items():
    mechanism = PrivateCountRelease(rho=1.0, delta=1e-6, epsilon_star=0.05, k_bar=3)
    counts = [50_000, 40_000, 30_000, 20_000, 10_000]
    for items in (3, 4, 5):
        table = {"user": [u for c in counts[:items] for u in range(c)]}
        table["item"] = [i for i, c in enumerate(counts[:items]) for _ in range(c)]
        cut = Histogram.from_table(table, user="user", item="item", k_bar=3)
        release = mechanism.release(cut)
        assert release.stopped_early
        assert len(release) <= 1


def test_rows_needed_never_run_out():
    mechanism = PrivateCountRelease(rho=0.001, delta=20e-11, delta_star=1e-11, epsilon_star=0.01, k_bar=10)
    counts = [50_000 - n for n in range(200)]
    rows = mechanism.rows_needed
    assert rows == 10 + 1 + 20
    truncated = mechanism.release(histogram(counts[:rows], complete=False), rng=seeded_rng(1))
    whole = mechanism.release(histogram(counts), rng=seeded_rng(1))
    assert not truncated.stopped_early
    assert truncated.items == whole.items


def test_parameters_that_allow_no_call_are_refused_with_a_remedy():
    with pytest.raises(ParameterError, match="epsilon_star"):
        PrivateCountRelease(rho=1e-9, delta=1e-6)
    with pytest.raises(ParameterError, match="delta_star"):
        PrivateCountRelease(rho=1.0, delta=1e-12, delta_star=1e-11)
    with pytest.raises(ParameterError, match="below 1"):
        PrivateCountRelease(rho=1.0, delta=1e-6, relative_error=5)


def test_epsilon_is_the_total_guarantee():
    mechanism = PrivateCountRelease.from_epsilon(epsilon=3.0, delta=1e-6)
    assert mechanism.guarantee.delta == 5e-7
    assert 2.999 < mechanism.guarantee.epsilon(1e-6) <= 3.0
    assert PrivateCountRelease.from_rho(rho=1.0, delta=1e-6) == PrivateCountRelease(rho=1.0, delta=1e-6)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-12, 3e-7])
def test_a_small_delta_allows_many_calls(delta):
    mechanism = PrivateCountRelease(rho=1.0, delta=delta)
    assert rogers2024.most_calls(delta, mechanism.delta_star) >= 99_999
    assert mechanism.release(histogram([9])).notes == ()


def test_a_note_warns_of_few_calls():
    few = PrivateCountRelease(rho=1.0, delta=1e-9, delta_star=1e-11).release(histogram([9]))
    assert "smaller delta_star" in few.notes[0]


def test_a_note_warns_of_a_missed_error_target():
    assert PrivateCountRelease(rho=1.0, delta=1e-6).release(histogram([9])).notes == ()
    tight = PrivateCountRelease(rho=1.0, delta=1e-6, k_bar=100, delta_star=1e-8, relative_error=0.05)
    assert "relative error" in tight.release(histogram([9])).notes[0]


def test_meet_relative_error_lowers_the_noise():
    tight = {"rho": 1.0, "delta": 1e-6, "relative_error": 0.02}
    plain, spent = (
        PrivateCountRelease(**tight, meet_relative_error=meet).release(histogram([3000]), rng=seeded_rng(1))
        for meet in (False, True)
    )
    assert "meet_relative_error=True" in plain.notes[0]
    assert spent.notes == ()
    assert "meet_relative_error=True" in spent.made_by
    assert spent.sigmas[0] < plain.sigmas[0] / 2


def test_more_rho_adds_levels_with_the_same_noise():
    few, many = (PrivateCountRelease(rho=rho, delta=1e-6).levels for rho in (0.3, 3.0))
    assert len(few) < len(many)
    assert [level.sigma for level in few] == [level.sigma for level in many[: len(few)]]


def naive_release(counts, mechanism, seed):
    """Return the number of items by numpy: Gumbel noise and an argmax over all candidates for each call."""
    calls = rogers2024.most_calls(mechanism.delta, mechanism.delta_star)
    budget = rogers2024.budget_units(mechanism.rho)
    arguments = (counts, None, mechanism.levels, budget, calls, mechanism.k_bar)
    return len(private_count_release(*arguments, NumpyRng(seed))[0])


@pytest.mark.parametrize("runs", [60, pytest.param(3000, marks=pytest.mark.statistical)])
def test_numpy_releases_as_many_items(runs):
    mechanism = PrivateCountRelease(rho=0.2, delta=1e-6, epsilon_star=0.002, k_bar=300)
    counts = zipf(1000, 30_000)
    ours = np.array([len(mechanism.release(histogram(counts), rng=seeded_rng(seed))) for seed in range(runs)])
    numpys = np.array([naive_release(counts, mechanism, seed) for seed in range(runs)])
    error = math.sqrt((ours.var() + numpys.var()) / runs)
    assert abs(ours.mean() - numpys.mean()) < 5 * error
    assert ours.var() > 0


def test_most_counts_are_within_the_relative_error():
    """At the smallest released count sigma is two thirds of the error, so at most 13.4 % exceed it."""
    counts = zipf()
    far, total = 0, 0
    for seed in range(20):
        release = PrivateCountRelease(rho=1.0, delta=1e-6).release(histogram(counts), rng=seeded_rng(seed))
        truth = counts[np.array(release.items)]
        far += np.count_nonzero(np.abs(release.counts - truth) > 0.1 * truth)
        total += len(release)
    assert total > 20 * 250
    assert far < 0.134 * total
