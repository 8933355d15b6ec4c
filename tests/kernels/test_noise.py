"""Exact samplers: equal to their twins bit for bit, and to their laws by chi-square."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import ParameterError, _core
from discreet.reference import gumbel, noise
from discreet.testing import seeded_rng

SIGNIFICANCE = 1e-6


def discrete_gaussian_pmf(sigma, support):
    weights = np.exp(-(support.astype(float) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def chi_square(draws, support, pmf):
    """The p-value of draws under a law on `support`, cells of small expectation put together."""
    expected = pmf * len(draws)
    large = expected >= 10
    seen = np.array([np.count_nonzero(draws == x) for x in support[large]], dtype=float)
    rest = len(draws) - seen.sum(), len(draws) - expected[large].sum()
    seen, expected = np.append(seen, rest[0]), np.append(expected[large], max(rest[1], 1e-9))
    if expected[-1] < 1:
        seen, expected = seen[:-1], expected[:-1]
        expected *= seen.sum() / expected.sum()
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1)


def gaussian_p_value(sigma, claimed, size, seed):
    width = math.ceil(12 * max(sigma, claimed)) + 2
    support = np.arange(-width, width + 1)
    return chi_square(seeded_rng(seed).discrete_gaussian(sigma, size), support, discrete_gaussian_pmf(claimed, support))


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 1.7, 2.0, 7.3, 30.0])
def test_the_discrete_gaussian_has_its_law(sigma):
    assert gaussian_p_value(sigma, sigma, 200_000, seed=1) > SIGNIFICANCE


@pytest.mark.parametrize("sigma", [0.5, 1.0, 7.3])
def test_a_wrong_scale_is_noticed(sigma):
    assert gaussian_p_value(sigma, sigma * 1.02, 200_000, seed=1) < SIGNIFICANCE


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 2.5, 7.3, 40.0])
def test_the_discrete_gaussian_has_its_law_at_full_size(sigma):
    assert gaussian_p_value(sigma, sigma, 10_000_000, seed=2) > SIGNIFICANCE


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.5, 7.3, 40.0])
def test_a_wrong_scale_is_noticed_at_full_size(sigma):
    assert gaussian_p_value(sigma, sigma * 1.003, 10_000_000, seed=2) < SIGNIFICANCE


@pytest.mark.parametrize(
    ("sigma", "variance"), [(0.5, 0.21501267508814), (1.0, 0.99999978876773), (9.25**0.5, 9.25), (1e6, 1e12)]
)
def test_the_variance_is_that_of_the_discrete_law(sigma, variance):
    draws = seeded_rng(3).discrete_gaussian(sigma, 400_000).astype(float)
    assert draws.var() == pytest.approx(variance, rel=6 * math.sqrt(2 / len(draws)) + 3e-3 * (sigma < 1))
    assert abs(draws.mean()) < 6 * math.sqrt(variance / len(draws))


@settings(max_examples=60, deadline=None)
@given(sigma=st.floats(0.01, 1e7), seed=st.integers(0, 2**64 - 1))
def test_rust_and_python_draw_the_same_gaussian(sigma, seed):
    ours, twins = seeded_rng(seed), seeded_rng(seed)
    assert ours.discrete_gaussian(sigma, 4).tolist() == [noise.discrete_gaussian(twins, sigma) for _ in range(4)]
    assert ours.bits64() == twins.bits64()


@settings(max_examples=200, deadline=None)
@given(x=st.floats(0, 50), seed=st.integers(0, 2**64 - 1))
def test_rust_and_python_toss_the_same_coin(x, seed):
    ours, twins = seeded_rng(seed), seeded_rng(seed)
    assert ours.bernoulli_exp(x) == noise.bernoulli_exp(twins, Fraction(x))
    assert ours.bits64() == twins.bits64()


class ChosenBits:
    """Bits that a test chooses, to reach what chance reaches once in 2^46 draws."""

    def __init__(self, *words):
        self.words = list(words)

    def bits64(self):
        return self.words.pop(0)


def test_a_coin_reads_on_while_its_digits_are_those_of_the_probability():
    digits = noise._exp_neg(Fraction(1), 300) * Fraction(2) ** 128
    first, second = int(digits) >> 64, int(digits) % 2**64
    assert noise.bernoulli_exp(ChosenBits(first, second - 1), Fraction(1))
    assert not noise.bernoulli_exp(ChosenBits(first, second + 1), Fraction(1))


counts = st.lists(st.integers(0, 400), min_size=0, max_size=12)


@settings(max_examples=150, deadline=None)
@given(
    counts=counts,
    gamma=st.floats(0.001, 3),
    bottom=st.integers(0, 50),
    offset=st.floats(0, 60),
    seed=st.integers(0, 2**64 - 1),
)
def test_rust_and_python_select_the_same_candidate(counts, gamma, bottom, offset, seed):
    ours, twins = seeded_rng(seed), seeded_rng(seed)
    arguments = (counts, max([*counts, bottom]), gamma, bottom, offset)
    assert [ours.select(*arguments) for _ in range(3)] == [gumbel.select(twins, *arguments) for _ in range(3)]
    assert ours.bits64() == twins.bits64()


# The law of one call on {5, 3, 1} with epsilon 1, delta 0.1, k_bar 2: a, b and the stop element.
LAW = [0.46924637821982, 0.063505591504133, 0.46724803027605]
OFFSET = 3.995732273554


def selection_p_value(offset, size, seed):
    rng = seeded_rng(seed)
    draws = np.array([rng.select([5, 3], 5, 1.0, 1, offset) for _ in range(size)])
    return chi_square(draws, np.arange(3), np.array(LAW))


def test_selection_has_the_law_of_the_exponential_mechanism():
    assert selection_p_value(OFFSET, 200_000, seed=4) > SIGNIFICANCE


def test_a_wrong_offset_is_noticed():
    assert selection_p_value(OFFSET + 0.05, 200_000, seed=4) < SIGNIFICANCE


def test_where_scores_are_measured_from_changes_no_law():
    rng = seeded_rng(5)
    draws = np.array([rng.select([5, 3], 2000, 1.0, 1, OFFSET) for _ in range(50_000)])
    assert chi_square(draws, np.arange(3), np.array(LAW)) > SIGNIFICANCE


def test_one_item_against_a_table_of_nothing():
    rng = seeded_rng(6)
    draws = np.array([rng.select([5, 0], 5, 1.0, 0, OFFSET - 1 + 1) for _ in range(50_000)])
    share = math.exp(5) / (math.exp(5) + math.exp(OFFSET))
    assert share == pytest.approx(0.73189683670287, rel=1e-10)
    assert chi_square(draws, np.array([0, 2]), np.array([share, 1 - share])) > SIGNIFICANCE


@pytest.mark.parametrize("sigma", [0, -1, math.nan, math.inf, 1e-4, 1e10])
def test_scales_out_of_range_are_refused(sigma):
    with pytest.raises(ParameterError):
        seeded_rng(1).discrete_gaussian(sigma, 1)


def test_fresh_streams_differ_and_seeded_ones_say_so():
    assert _core.Rng().bits64() != _core.Rng().bits64()
    assert not _core.Rng().is_seeded
    assert seeded_rng(1).is_seeded


def test_streams_are_neither_copied_nor_pickled():
    import copy
    import pickle

    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            duplicate(_core.Rng())


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system does not fork")
def test_a_stream_refuses_to_work_after_a_fork():
    import os

    rng = _core.Rng()
    child = os.fork()
    if child == 0:
        try:
            rng.bits64()
        except Exception as error:
            os._exit(7 if type(error).__name__ == "ResourceError" else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
