"""Stages of sparse vector followed by one pass: exact law on one query, cost and wrong variants."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import _core
from discreet.errors import ParameterError
from discreet.laws.outcomes import NoiseLaw
from discreet.queries import AboveThreshold, IterativeCorrection, IterativeSparseVector, Stage
from discreet.testing import seeded_rng

REACH = 60
GRID = np.arange(-REACH, REACH + 1)
SMALL = IterativeCorrection(
    k=1, sigma=1.5, stages=(Stage(runs=1, epsilon=0.8, threshold=1),), m=1, epsilon=0.6, threshold=2, again=2.0
)


def noise(law):
    """Return the probabilities of noise on twice the grid."""
    return NoiseLaw(law).of(np.arange(-2 * REACH, 2 * REACH + 1))


def found(epsilon, threshold):
    """Return the probability that a search finds an error of each size from 0 to 2 REACH."""
    bar, query = AboveThreshold(epsilon=epsilon, threshold=threshold).noises
    bars = np.arange(-400, 401)
    weights = NoiseLaw(bar).of(bars)
    sizes = np.arange(2 * REACH + 1)
    return weights @ NoiseLaw(query).at_least(threshold + bars[:, None] - sizes[None, :])


def law(mechanism, value, *, again=None, measured=None):
    """Return the law of the published answer to one query, on the grid. `again` and `measured` replace the noises."""

    def measure(answers, epsilon, threshold, drawn):
        chances = found(epsilon, threshold)[np.abs(GRID - value)]
        fresh = noise(drawn)[GRID - value + 2 * REACH]
        return answers * (1 - chances) + (answers @ chances) * fresh

    answers = noise(mechanism.noise)[GRID - value + 2 * REACH]
    for stage, (_, drawn) in zip(mechanism.stages, mechanism.measured, strict=True):
        for _ in range(stage.runs):
            answers = measure(answers, stage.epsilon, stage.threshold, measured or drawn)
    [(_, last)] = mechanism.last.measured
    return measure(answers, mechanism.epsilon, mechanism.threshold, again or last)


def divergence(mechanism, order, **wrong):
    """Return the largest Renyi divergence over its order, for values that differ by one."""
    p, q = (law(mechanism, value, **wrong) for value in (0, 1))
    kept = (p > 1e-13) & (q > 1e-13)
    p, q = p[kept], q[kept]
    ways = (np.sum(a**order * b ** (1 - order)) for a, b in ((p, q), (q, p)))
    return max(math.log(way) for way in ways) / (order - 1) / order


MECHANISMS = [
    SMALL,
    dataclasses.replace(SMALL, stages=()),
    dataclasses.replace(SMALL, stages=(Stage(runs=3, epsilon=0.5, threshold=-400),), threshold=-400),
    dataclasses.replace(
        SMALL, stages=(Stage(runs=1, epsilon=1.0, threshold=0), Stage(runs=2, epsilon=0.4, threshold=3))
    ),
    dataclasses.replace(SMALL, sigma=9.0, threshold=-400, again=1.0),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("order", [1.1, 2.0, 6.0])
def test_the_exact_law_of_one_query_keeps_rho(mechanism, order):
    assert law(mechanism, 0).sum() == pytest.approx(1, abs=1e-6)
    assert divergence(mechanism, order) <= mechanism.rho


def test_wrong_variants_exceed_rho():
    # The pass always finds the query, so the answer has the noise of the last measurement.
    always = dataclasses.replace(SMALL, sigma=9.0, stages=(), epsilon=0.1, threshold=-400, again=1.0)
    assert divergence(always, 1.1) > 0.9 * always.rho
    # The pass measures with half of the charged noise.
    assert divergence(always, 1.1, again=_core.Noise.discrete_gaussian(0.5)) > always.rho
    # The pass costs nothing: the cost is that of the stages alone.
    assert divergence(always, 1.1) > IterativeSparseVector(k=1, sigma=9.0, stages=()).rho
    # The stages measure again with a quarter of the charged noise, and the pass finds nothing.
    staged = dataclasses.replace(
        SMALL,
        sigma=9.0,
        stages=(Stage(runs=1, epsilon=0.3, threshold=-400),),
        epsilon=0.01,
        threshold=10**6,
        again=90.0,
    )
    assert divergence(staged, 1.1) <= staged.rho
    assert divergence(staged, 1.1, measured=_core.Noise.discrete_laplace(0.25 / 0.3)) > staged.rho


@pytest.mark.parametrize("mechanism", MECHANISMS[:4])
@pytest.mark.parametrize("runs", [4_000, pytest.param(60_000, marks=pytest.mark.statistical)])
def test_answers_follow_the_exact_law(mechanism, runs):
    rng, seen = seeded_rng(12), np.zeros(len(GRID))
    for _ in range(runs):
        answer = int(mechanism.release([2], rng=rng).values[0])
        seen[answer + REACH] += 1
    chances = law(mechanism, 2)
    assert np.all(np.abs(seen - runs * chances) < 6 * np.sqrt(runs * chances) + 4)


@settings(max_examples=8, deadline=None)
@given(k=st.integers(1, 400), rho=st.floats(1e-3, 10))
def test_the_cost_is_at_most_what_is_asked_for(k, rho):
    mechanism = IterativeCorrection.from_rho(k=k, rho=rho)
    assert 0.5 * rho < mechanism.guarantee.rho <= rho
    stages = IterativeSparseVector(k=k, sigma=mechanism.sigma, stages=mechanism.stages)
    both = stages.rho + mechanism.last.rho - k / mechanism.sigma**2 / 2
    assert mechanism.rho == pytest.approx(both, rel=1e-12)
    assert mechanism.rho >= both * (1 - 1e-12)


def test_large_errors_are_corrected_by_the_pass():
    mechanism = IterativeCorrection(
        k=400, sigma=50, stages=(Stage(runs=1, epsilon=5.0, threshold=10**6),), m=400, epsilon=20, threshold=30, again=1
    )
    errors = np.abs(np.array(mechanism.release([1000] * 400, rng=seeded_rng(5)).values) - 1000)
    assert errors.max() < 45
    plain = IterativeSparseVector(k=400, sigma=50, stages=mechanism.stages)
    assert np.abs(np.array(plain.release([1000] * 400, rng=seeded_rng(5)).values) - 1000).max() > 100


def test_errors_stay_within_the_bound():
    mechanism = IterativeCorrection.from_epsilon(k=200, epsilon=1.0, delta=1e-6)
    assert mechanism.guarantee.implies(1.0, 1e-6)
    rng = seeded_rng(6)
    worst = [np.abs(np.array(mechanism.release([7] * 200, rng=rng).values) - 7).max() for _ in range(30)]
    assert max(worst) <= mechanism.error_bound
    assert np.mean(worst) == pytest.approx(mechanism.expected_error, rel=0.15)


@pytest.mark.parametrize("bad", [{"m": 0}, {"m": 2}, {"epsilon": 0}, {"again": 0}, {"threshold": 0.5}, {"sigma": 0}])
def test_parameters_out_of_range_are_refused(bad):
    with pytest.raises(ParameterError):
        dataclasses.replace(SMALL, **bad)
