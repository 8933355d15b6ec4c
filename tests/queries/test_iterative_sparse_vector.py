"""Stages of sparse vector with a guard: exact law on two queries, wrong variants, cost, error and its bounds.

The square is the set of pairs of answers from -REACH to REACH.
"""

import _thread
import dataclasses
import signal
import threading
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import _core
from discreet.laws.outcomes import NoiseLaw
from discreet.queries import GaussianAnswers, IterativeSparseVector, Stage
from discreet.queries.iterative_sparse_vector import within_guard
from discreet.testing import seeded_rng

REACH = 16
GRID = np.arange(-REACH, REACH + 1)
ONE = Stage(runs=1, epsilon=1.2, threshold=1)
SMALL = IterativeSparseVector(k=2, sigma=1.2, stages=(ONE,))
MECHANISMS = {
    "one run": SMALL,
    "guard": dataclasses.replace(SMALL, guard=2),
    "runs that always find": IterativeSparseVector(k=2, sigma=1.5, stages=(Stage(runs=2, epsilon=1.2, threshold=-60),)),
    "two stages and guard": dataclasses.replace(
        SMALL, stages=(dataclasses.replace(ONE, runs=2), Stage(runs=1, epsilon=1.5, threshold=2)), guard=3
    ),
    "no stage": dataclasses.replace(SMALL, stages=()),
}
PAIRS = [
    (base, tuple(b + move for b, move in zip(base, moves, strict=True)))
    for base in [(0, 0), (0, 2)]
    for moves in [(1, 1), (1, -1), (-1, -1), (0, 1)]
]
ORDERS = (1.1, 2.0, 6.0)


@cache
def found(stage, silent=False):
    """Return the probabilities that a run finds the first or the second query, for all pairs of distances.

    With `silent` the queries have no noise.
    """
    bar, query = stage.search.noises
    bars, sizes = np.arange(-200, 201), np.arange(2 * REACH + 4)
    gaps = stage.threshold + bars[:, None] - sizes[None, :]
    hit = (gaps <= 0).astype(float) if silent else NoiseLaw(query).at_least(gaps)
    weights = NoiseLaw(bar).of(bars)
    single = weights @ hit
    both = np.einsum("b,bd,be->de", weights, hit, hit)
    # Either query is the first that a run visits, with a probability of one half.
    return single[:, None] - both / 2, single[None, :] - both / 2


def law(mechanism, values, *, again=None, silent=False, peeks=False):
    """Return the joint law of both answers on the square.

    `again` is another noise of the measurements, `silent` leaves out the noise of searches, and with `peeks` the guard
    compares with the values instead of the first answers.
    """
    side = len(GRID)
    first = [NoiseLaw(mechanism.noise).of(GRID - value) for value in values]
    joint = np.zeros((side,) * 4)
    i, j = np.meshgrid(range(side), range(side), indexing="ij")
    joint[i, j, i, j] = np.outer(*first)
    far = [np.abs(GRID - value) for value in values]
    for stage in mechanism.stages:
        one, two = (table[np.ix_(*far)] for table in found(stage, silent))
        fresh = [NoiseLaw(again or stage.again).of(GRID - value) for value in values]
        for _ in range(stage.runs):
            moved = (joint * one).sum(2)[:, :, None, :] * fresh[0][:, None]
            moved += (joint * two).sum(3)[:, :, :, None] * fresh[1]
            joint = joint * (1 - one - two) + moved
    if mechanism.guard is None:
        return joint.sum((0, 1))
    near = [np.abs(GRID[None, :] - (value if peeks else GRID[:, None])) <= mechanism.guard for value in values]
    near = [np.broadcast_to(part, (side, side)) for part in near]
    kept = joint * near[0][:, None, :, None] * near[1][None, :, None, :]
    return kept.sum((0, 1)) + (joint - kept).sum((2, 3))


def worst(mechanism, **wrong):
    """Return the largest Renyi divergence over its order and rho, over neighbours."""
    laws = {values: law(mechanism, values, **wrong) for values in {v for pair in PAIRS for v in pair}}
    found = 0.0
    for a, b in PAIRS:
        for p, q in ((laws[a], laws[b]), (laws[b], laws[a])):
            kept = (p > 1e-13) & (q > 1e-13)
            for order in ORDERS:
                moment = np.sum(p[kept] ** order * q[kept] ** (1 - order))
                found = max(found, float(np.log(moment)) / (order - 1) / order / mechanism.rho)
    return found


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_exact_law_of_two_answers_keeps_the_guarantee(name):
    assert law(MECHANISMS[name], (0, 0)).sum() == pytest.approx(1, abs=1e-5)
    assert 0.2 < worst(MECHANISMS[name]) <= 1


LOUD = IterativeSparseVector(k=2, sigma=8.0, stages=(Stage(runs=2, epsilon=1.2, threshold=-60),))
WRONG = {
    "too little noise of measurements": (LOUD, {"again": _core.Noise.discrete_laplace(0.25)}),
    "no noise of searches": (
        IterativeSparseVector(k=2, sigma=9.0, stages=(Stage(runs=1, epsilon=0.25, threshold=0),)),
        {"silent": True, "again": _core.Noise.discrete_laplace(0.25)},
    ),
    "a guard that reads the values": (
        IterativeSparseVector(k=2, sigma=8.0, stages=(Stage(runs=2, epsilon=0.25, threshold=-60),), guard=1),
        {"peeks": True},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_variant_exceeds_the_guarantee(name):
    mechanism, wrong = WRONG[name]
    assert worst(mechanism, **wrong) > 1.02


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("runs", [8_000, pytest.param(60_000, marks=pytest.mark.statistical)])
def test_answers_follow_the_exact_law(name, runs):
    mechanism, rng, seen = MECHANISMS[name], seeded_rng(5), np.zeros((len(GRID), len(GRID)))
    for _ in range(runs):
        one, two = mechanism.release([0, 2], rng=rng).values
        seen[one + REACH, two + REACH] += 1
    expected = runs * law(mechanism, (0, 2))
    assert (np.abs(seen - expected) < 6 * np.sqrt(expected) + 6).all()


@pytest.mark.parametrize("k", [1, 100, 10_000, 1_000_000])
@pytest.mark.parametrize("rho", [0.1, 30.0])
def test_the_guarantee_includes_every_run(k, rho):
    plain = IterativeSparseVector.from_rho(k=k, rho=rho)
    for mechanism in (plain, plain.guarded()):
        spent = k / (2 * mechanism.sigma**2)
        spent += sum(2 * s.runs * s.epsilon * np.tanh(s.epsilon / 2) for s in mechanism.stages)
        assert mechanism.guarantee.rho == pytest.approx(spent, rel=1e-12)
        assert 0.5 * rho < mechanism.guarantee.rho <= rho


def test_the_guarded_mechanism_keeps_epsilon_and_delta():
    mechanism = IterativeSparseVector.from_epsilon(k=200, epsilon=1.0, delta=1e-6).guarded()
    assert mechanism.guarantee.dp == (1.0, 1e-6)
    rng = seeded_rng(6)
    worst = [np.abs(mechanism.release([7] * 200, rng=rng).values - 7).max() for _ in range(100)]
    assert max(worst) <= mechanism.error_bound
    assert np.mean(worst) == pytest.approx(mechanism.expected_error, rel=0.05)


def test_the_last_stage_has_the_least_threshold_that_is_proved():
    mechanism = IterativeSparseVector.from_rho(k=2**24, rho=0.5).guarded()
    last = mechanism.stages[-1]
    a = mechanism.error_bound + 1 - last.threshold
    assert 0 < a < last.threshold
    # At this size the last stage has a smaller bound than all noise together, and than Gaussian noise alone.
    assert mechanism.error_bound < 0.96 * GaussianAnswers.from_rho(k=2**24, rho=0.5).error_bound
    bounds = {}
    for name, change in (("lower", {"threshold": last.threshold - 1}), ("fewer runs", {"runs": last.runs - 1})):
        stages = (*mechanism.stages[:-1], dataclasses.replace(last, **change))
        bounds[name] = dataclasses.replace(mechanism, stages=stages).error_bound
    bounds["tight guard"] = dataclasses.replace(mechanism, guard=mechanism.guard - 1).error_bound
    assert min(bounds.values()) > mechanism.error_bound


SCHEDULES = [
    (1, ((1, 0.2, 120), (1, 0.4, 120))),
    (50, ((42, 0.018, 287), (16, 0.025, 372), (7, 0.039, 304))),
    (50, ((33, 0.052, 70), (24, 0.084, 61))),
    (50, ((20, 0.05, 150), (10, 0.1, 150), (5, 0.2, 150), (2, 0.4, 150))),
    (200, ((96, 0.241, 280),)),
    (1000, ((120, 0.011, 251), (80, 0.022, 302), (49, 0.025, 246))),
]


@pytest.mark.parametrize(("k", "parts"), SCHEDULES)
def test_the_expected_error_of_any_schedule_is_right(k, parts):
    stages = tuple(Stage(runs=runs, epsilon=epsilon, threshold=threshold) for runs, epsilon, threshold in parts)
    mechanism, rng = IterativeSparseVector(k=k, sigma=100, stages=stages), seeded_rng(7)
    values, releases = np.zeros(k, np.int64), {1: 8000, 1000: 200}.get(k, 1500)
    errors = [np.abs(mechanism.release(values, rng=rng).values).max() for _ in range(releases)]
    assert mechanism.expected_error == pytest.approx(np.mean(errors), rel=0.05)


def test_stages_correct_answers_that_are_far_off():
    mechanism = IterativeSparseVector.from_rho(k=100_000, rho=0.1)
    rng = seeded_rng(1)
    errors = [np.abs(mechanism.release(np.zeros(100_000, np.int64), rng=rng).values).max() for _ in range(12)]
    assert np.mean(errors) == pytest.approx(mechanism.expected_error, rel=0.05)
    assert mechanism.expected_error < 0.97 * GaussianAnswers.from_rho(k=100_000, rho=0.1).expected_error


def test_stages_that_find_nothing_leave_the_expected_error():
    idle = IterativeSparseVector(k=2**17, sigma=1e4, stages=(Stage(runs=2**24, epsilon=1e-5, threshold=2**40),))
    assert idle.expected_error == pytest.approx(GaussianAnswers(k=2**17, sigma=1e4).expected_error, rel=1e-2)


whole = st.lists(st.tuples(*[st.integers(-(2**40), 2**40)] * 3), min_size=1, max_size=20)


@settings(max_examples=300, deadline=None)
@given(whole, st.integers(1, 2**41))
def test_a_guarded_error_is_at_most_guard_plus_the_other_error(rows, guard):
    values, answers, others = np.array(rows, np.int64).T
    result = within_guard(answers, others, guard)
    assert np.abs(result - values).max() <= guard + np.abs(others - values).max()
    assert (result == answers).all() or (result == others).all()


def test_the_guard_limits_corrections_that_are_far_off():
    # The measurements of the stage have noise of scale 1e5.
    wild = IterativeSparseVector(k=50, sigma=10, stages=(Stage(runs=5, epsilon=1e-5, threshold=-(2**40)),))
    safe, values, fallen = dataclasses.replace(wild, guard=200_000), np.arange(50) * 7, 0
    for seed in range(200):
        first = values + seeded_rng(seed).sample(wild.noise, 50)
        answers = safe.release(values, rng=seeded_rng(seed)).values
        corrected = wild.release(values, rng=seeded_rng(seed)).values
        assert (answers == (corrected if np.abs(corrected - first).max() <= 200_000 else first)).all()
        fallen += (answers == first).all()
    # Five measurements are all within the guard with a chance of about (1 - e^-2)^5 = 0.48.
    assert 80 < fallen < 130
    assert safe.error_bound < 200_100 < 1e6 < wild.error_bound


def test_an_interrupt_ends_all_runs_and_keeps_the_charge():
    # Hours of searches that find nothing.
    stages = (Stage(runs=2**24, epsilon=1e-5, threshold=2**40),)
    mechanism = IterativeSparseVector(k=2**17, sigma=1e4, stages=stages)
    budget, values = dp.Budget(rho=1.5 * mechanism.rho, delta=1e-6), np.zeros(2**17, np.int64)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    # A process that a shell starts in the background ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            budget.release(mechanism, values)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert budget.spent.rho == pytest.approx(mechanism.rho)
    with pytest.raises(dp.BudgetExceeded):
        budget.release(mechanism, values)


def test_a_guarantee_too_strong_for_stages_names_a_remedy():
    with pytest.raises(dp.errors.ParameterError, match=r"too strong.*another method"):
        IterativeSparseVector.from_rho(k=1000, rho=1e-12)
    with pytest.raises(dp.errors.ParameterError, match=r"too strong.*another method"):
        IterativeSparseVector(k=2, sigma=1e7, stages=(Stage(runs=1, epsilon=1.0001e-6, threshold=1),)).guarded()
    far = Stage(runs=2, epsilon=1.0, threshold=2**40)
    assert IterativeSparseVector(k=2, sigma=1e4, stages=(far,)).guarded().stages[0].threshold == 2**40


def test_noise_too_small_for_its_epsilon_names_the_maker():
    with pytest.raises(dp.errors.ParameterError, match="from_epsilon"):
        dataclasses.replace(SMALL, dp=(0.01, 1e-6))
