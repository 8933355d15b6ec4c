"""Corrections of noisy answers: exact law on two queries, crossings, cost and error bound.

A sparse vector searches for answers that are far off (crossings), and these answers are drawn again. The square is the
set of pairs of answers from -REACH to REACH.
"""

import dataclasses
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.queries.experimental import GuardedCorrection, SparseVectorCorrection, crossings, guarded
from discreet.testing import seeded_rng

SMALL = {"k": 2, "sigma": 1.2, "epsilon": 1.0, "threshold": 1, "again": 1.5}
TAU = 3
REACH = 14
PAIRS = [
    (base, tuple(b + move for b, move in zip(base, moves, strict=True)))
    for base in [(0, 0), (0, 2)]
    for moves in [(1, 1), (1, -1), (-1, -1), (0, 1), (1, 0), (-1, 1)]
]


def gaussian(scale, centre):
    """Return the probabilities of the integers from -REACH to REACH under discrete Gaussian noise around a value."""
    x, wide = np.arange(-REACH, REACH + 1), np.arange(-60, 61)
    return np.exp(-((x - centre) ** 2) / (2 * scale**2)) / np.exp(-(wide**2) / (2 * scale**2)).sum()


def laplace(scale):
    reach = int(30 * scale)
    x = np.arange(-reach, reach + 1)
    masses = np.exp(-np.abs(x) / scale)
    return x, masses / masses.sum()


def found(mechanism, distance, other, *, noise=True):
    """Return four probabilities for two queries at these distances.

    The searches find the first alone, the second alone, both or none.
    """
    bar_scale, query_scale = dp.queries.AboveThreshold(epsilon=mechanism.epsilon, threshold=0).scales
    bars, weights = laplace(bar_scale)
    shifts, masses = laplace(query_scale)
    if not noise:
        masses = (shifts == 0).astype(float)
    tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0)

    def hit(d):
        return tails[np.clip(mechanism.threshold + bars - d + len(shifts) // 2, 0, len(shifts))]

    chances = np.zeros(4)
    for first, second, flipped in ((distance, other, False), (other, distance, True)):
        p, q = hit(first), hit(second)
        after = float(weights @ q) if mechanism.m > 1 else 0.0
        one = float(weights @ p)
        parts = [one * (1 - after), float(weights @ ((1 - p) * q)), one * after, float(weights @ ((1 - p) * (1 - q)))]
        if flipped:
            parts[:2] = parts[1::-1]
        chances += np.array(parts) / 2
    return chances


@lru_cache(maxsize=8)
def searched(mechanism):
    """Return `found` for all distances on the square."""
    sides = range(2 * REACH + 3)
    return {(d, e): found(mechanism, d, e) for d in sides for e in sides}


@lru_cache(maxsize=64)
def law(mechanism, values, tau=None):
    """Return the joint law of both answers on the square. With `tau`, the law is that of the guarded answers."""
    places = np.arange(-REACH, REACH + 1)
    first = [gaussian(mechanism.sigma, value) for value in values]
    again = [gaussian(mechanism.again, value) for value in values]
    table = searched(mechanism)
    result = np.zeros((len(places), len(places)))
    for i, g in enumerate(places):
        near = np.ones(len(places)) if tau is None else np.abs(places - g) <= tau
        for j, h in enumerate(places):
            mass = first[0][i] * first[1][j]
            close = np.ones(len(places)) if tau is None else np.abs(places - h) <= tau
            one, two, both, none = mass * table[abs(values[0] - g), abs(values[1] - h)]
            kept = [again[0] * near, again[1] * close]
            result[:, j] += one * kept[0]
            result[i, :] += two * kept[1]
            result += both * np.outer(*kept)
            far = [float((again[0] * (1 - near)).sum()), float((again[1] * (1 - close)).sum())]
            result[i, j] += none + one * far[0] + two * far[1] + both * (far[0] + (1 - far[0]) * far[1])
    return result


def divergence(p, q, order):
    """Return the Rényi divergence of this order."""
    return float(np.log(np.sum(np.exp(order * np.log(p) + (1 - order) * np.log(q)))) / (order - 1))


ORDERS = (1.2, 2.0, 4.0, 8.0)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("tau", [None, TAU])
def test_the_exact_law_of_two_answers_keeps_the_guarantee(m, tau):
    mechanism = SparseVectorCorrection(m=m, **SMALL)
    laws = {values: law(mechanism, values, tau) for values in {v for pair in PAIRS for v in pair}}
    assert all(abs(p.sum() - 1) < 1e-9 for p in laws.values())
    ratios = [
        divergence(p, q, order) / (order * mechanism.rho)
        for a, b in PAIRS
        for p, q in ((laws[a], laws[b]), (laws[b], laws[a]))
        for order in ORDERS
    ]
    assert max(ratios) <= 1
    assert max(ratios) > 0.2


def worst_search(mechanism, *, noise=True):
    """Return the worst log-ratio of the probabilities of one finding.

    It is divided by epsilon and the number of searches.
    """
    worst = 0.0
    for d, e, move, other in product(range(5), range(5), (-1, 0, 1), (-1, 0, 1)):
        p, q = (found(mechanism, *at, noise=noise) for at in ((d, e), (abs(d + move), abs(e + other))))
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = max(worst, float(np.nanmax(np.abs(np.log(p / q)))))
    return worst / (mechanism.m * mechanism.epsilon)


def test_searches_are_private_only_with_noise_on_queries():
    for m in (1, 2):
        mechanism = SparseVectorCorrection(**{**SMALL, "m": m, "epsilon": 0.5, "threshold": 2})
        assert 0.2 < worst_search(mechanism) <= 1
    alone = SparseVectorCorrection(**{**SMALL, "m": 1, "epsilon": 0.5, "threshold": 2})
    assert worst_search(alone, noise=False) > 1.1


@pytest.mark.parametrize(("threshold", "less"), [(-2000, "again"), (2000, "sigma")])
def test_noise_smaller_than_declared_violates_rho(threshold, less):
    # Either all answers are corrected or none, so only one of the two noises matters.
    other = {"again": "sigma", "sigma": "again"}[less]
    mechanism = SparseVectorCorrection(k=2, m=2, epsilon=0.1, threshold=threshold, **{less: 1.0, other: 4.0})
    lying = dataclasses.replace(mechanism, **{less: 0.85})
    ratio = {
        made: divergence(law(made, (0, 0)), law(made, (1, 1)), 2.0) / (2 * mechanism.rho) for made in (mechanism, lying)
    }
    assert 0.8 < ratio[mechanism] <= 1 < ratio[lying]


@pytest.mark.parametrize(("m", "tau"), [(1, None), (2, None), (2, TAU)])
def test_draws_follow_the_exact_law(m, tau):
    correction = SparseVectorCorrection(m=m, **SMALL)
    mechanism = correction if tau is None else GuardedCorrection(correction=correction, tau=tau)
    values, rng, n = (0, 2), seeded_rng(5), 10_000
    seen = np.zeros((2 * REACH + 1, 2 * REACH + 1))
    for _ in range(n):
        one, two = mechanism.release(list(values), rng=rng).values
        seen[one + REACH, two + REACH] += 1
    expected = n * law(correction, values, tau)
    assert (np.abs(seen - expected) < 6 * np.sqrt(expected) + 6).all()


def crossings_one_by_one(values, bars):
    """Return the indices of values that reach a sequence of thresholds."""
    places = []
    for place, value in enumerate(values):
        if len(places) < len(bars) and value >= bars[len(places)]:
            places.append(place)
    return places


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=60), st.lists(st.integers(-4, 6), max_size=12))
def test_crossings_equal_a_search_value_by_value(values, bars):
    kept = crossings(np.array(values, np.int64), np.array(bars, np.int64)).tolist()
    assert kept == crossings_one_by_one(values, bars)


def test_crossings_far_apart_are_found():
    rng = np.random.default_rng(2)
    values = rng.integers(0, 10_000, 50_000)
    bars = rng.integers(9_900, 10_001, 40)
    assert crossings(values, bars).tolist() == crossings_one_by_one(values.tolist(), bars.tolist())


@pytest.mark.parametrize("k", [1, 100, 10_000, 1_000_000])
def test_the_guarantee_includes_every_search(k):
    mechanism = SparseVectorCorrection.from_rho(k=k, rho=0.1)
    spent = k / (2 * mechanism.sigma**2) + mechanism.m / (2 * mechanism.again**2)
    spent += mechanism.m * mechanism.epsilon * np.tanh(mechanism.epsilon / 2)
    assert mechanism.guarantee.rho == pytest.approx(spent, rel=1e-12)
    assert 0.0999 < mechanism.guarantee.rho <= 0.1
    assert GuardedCorrection.from_rho(k=k, rho=0.1).guarantee == mechanism.guarantee


def test_answers_that_are_far_off_are_corrected():
    k = 100_000
    mechanism = SparseVectorCorrection.from_rho(k=k, rho=0.1)
    rng = seeded_rng(3)
    errors = [np.abs(mechanism.release(np.zeros(k, np.int64), rng=rng).values).max() for _ in range(12)]
    assert np.mean(errors) == pytest.approx(mechanism.expected_error, rel=0.05)
    assert mechanism.expected_error < 0.97 * dp.queries.GaussianAnswers.from_rho(k=k, rho=0.1).expected_error


whole = st.lists(st.tuples(*[st.integers(-(2**40), 2**40)] * 3), min_size=1, max_size=20)


@settings(max_examples=300, deadline=None)
@given(whole, st.integers(1, 2**41))
def test_a_guarded_error_is_at_most_tau_plus_the_other_error(rows, tau):
    values, answers, others = np.array(rows, np.int64).T
    result = guarded(answers, others, tau)
    assert np.abs(result - values).max() <= tau + np.abs(others - values).max()
    assert (result == answers).all() or (result == others).all()


class Broken(SparseVectorCorrection):
    """Corrections with errors that grow with the index."""

    def corrected(self, values, answers, rng):
        return answers + np.arange(self.k) * (1 if rng.bits64() % 2 else 10**9)


def test_the_error_bound_holds_for_any_correction():
    k = 50
    broken = Broken.from_rho(k=k, rho=0.5)
    values, fallen = np.arange(k) * 7, 0
    for tau in (10, 60):
        mechanism = GuardedCorrection(correction=broken, tau=tau)
        for seed in range(200):
            first = values + seeded_rng(seed).sample(broken.noise, k)
            answers = mechanism.release(values, rng=seeded_rng(seed)).values
            assert np.abs(answers - values).max() <= tau + np.abs(first - values).max()
            fallen += (answers == first).all()
    assert 200 < fallen < 400


def test_sound_corrections_are_kept_in_99_percent_of_runs():
    k = 2000
    mechanism = GuardedCorrection.from_rho(k=k, rho=0.1)
    values, same = np.zeros(k, np.int64), 0
    for seed in range(200):
        plain = mechanism.correction.release(values, rng=seeded_rng(seed)).values
        same += (mechanism.release(values, rng=seeded_rng(seed)).values == plain).all()
    assert same >= 198


@pytest.mark.parametrize(
    "bad", [{"m": 0}, {"m": 3}, {"sigma": 0}, {"epsilon": 0}, {"again": -1}, {"threshold": 0.5}, {"k": 0}, {"k": 1.5}]
)
def test_parameters_out_of_range_are_refused(bad):
    with pytest.raises(dp.errors.ParameterError):
        SparseVectorCorrection(**{"m": 1, **SMALL, **bad})
    with pytest.raises(dp.errors.ParameterError, match="from_epsilon"):
        SparseVectorCorrection(m=1, **SMALL, dp=(0.01, 1e-6))
    for wrong in ({"tau": 0}, {"tau": 1.5}, {"correction": 3}):
        with pytest.raises(dp.errors.ParameterError):
            GuardedCorrection(**{"correction": SparseVectorCorrection(m=1, **SMALL), "tau": 5, **wrong})
