"""Exact laws of the sparse-vector mechanisms, and of wrong published variants that the test must reject.

Most variants are from M. Lyu, D. Su, N. Li, "Understanding the Sparse Vector Technique" (2017).
"""

from itertools import permutations, product

import numpy as np
import pytest

import discreet as dp
from discreet import _core
from discreet.reference import sparse_vector
from discreet.testing import seeded_rng

EPSILON = 1.0
BASES = [(0, 0, 0), (0, 1, 2), (2, 0, 1), (1, 1, 0), (2, 2, 2)]
PAIRS = [
    (a, tuple(x + s for x, s in zip(a, moves, strict=True))) for a in BASES for moves in product((-1, 0, 1), repeat=3)
]


def laplace(scale):
    """Return the values and probabilities of discrete Laplace noise; a scale of zero gives one point."""
    reach = int(34 * scale) + 1 if scale else 0
    x = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(x) / scale) if scale else np.ones(1)
    return x, p / p.sum()


def law(values, *, bar, queries, threshold=1, most=None, shows=False):
    """Return the law of a sparse vector's answers: for each query, whether the value is above the threshold.

    The answers end after `most` answers "above". `bar` is the scale of the noise on the threshold, and `queries` the
    scale of the noise on the values. With `shows`, the answer "above" includes the noisy value.
    """
    bars, chances = laplace(bar)
    noise, weights = laplace(queries)
    outcomes = {}

    def above(value):
        """Return the probability that the noisy value reaches the threshold, for each noisy threshold."""
        tails = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        return tails[np.clip(threshold + bars - value + (len(noise) - 1) // 2, 0, len(noise))]

    def extend(index, answers, joint, found):
        if index == len(values) or found == most:
            outcomes[answers] = float(joint.sum())
            return
        p = above(values[index])
        extend(index + 1, (*answers, False), joint * (1 - p), found)
        if not shows:
            extend(index + 1, (*answers, True), joint * p, found + 1)
            return
        for shift, weight in zip(noise, weights, strict=True):
            if weight > 1e-9:
                seen = joint * weight * (values[index] + shift >= threshold + bars)
                extend(index + 1, (*answers, int(values[index] + shift)), seen, found + 1)

    extend(0, (), chances, 0)
    return outcomes


def worst(of, pairs=PAIRS):
    """Return the largest probability by which one law exceeds e^epsilon times the law of a neighbour."""
    excess = 0.0
    for first, second in pairs:
        p, q = of(first), of(second)
        excess = max(excess, sum(max(0.0, p[o] - np.exp(EPSILON) * q.get(o, 0.0)) for o in p))
    return excess


def of_mechanism(values):
    """Return the law of `AboveThreshold`, computed from the scales of its noise."""
    mechanism = dp.queries.AboveThreshold(epsilon=EPSILON, threshold=1)
    bar, queries = mechanism.scales
    return law(values, bar=bar, queries=queries, most=1)


def of_permuted(values):
    """Return the law of the published index, for a random order."""
    outcomes = {}
    orders = list(permutations(range(len(values))))
    for order in orders:
        for answers, p in of_mechanism([values[i] for i in order]).items():
            index = order[len(answers) - 1] if answers[-1] else None
            outcomes[index] = outcomes.get(index, 0.0) + p / len(orders)
    return outcomes


VARIANTS = {
    # Roth's lecture notes of 2011: a value above is published with the noise it was compared with.
    "shows the value": {"bar": 2, "queries": 2, "most": 1, "shows": True},
    # Lee and Clifton 2014: the noise on queries does not grow with the number that may be above.
    "noise for one": {"bar": 4, "queries": 4 / 3, "most": 3},
    # Stoddard, Chen and Machanavajjhala 2014: no noise on queries, and no limit on the answers above.
    "no noise on queries": {"bar": 2, "queries": 0},
    # Chen, Xiao, Zhang and Xu 2015: noise on threshold and queries, and no limit on the answers above.
    "no limit": {"bar": 2, "queries": 2},
    # As in the previous two entries there is no limit, but the noise has other shares of epsilon.
    "no limit, other shares": {"bar": 4, "queries": 4 / 3},
    # The noise for monotone queries, which all move in one direction, on other queries.
    "noise of monotone queries": {"bar": 2, "queries": 2, "most": 1},
}


def test_above_threshold_is_epsilon_private():
    assert worst(of_mechanism) < 1e-12


def test_above_threshold_in_random_order_is_epsilon_private():
    assert worst(of_permuted, PAIRS[:54]) < 1e-12


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_wrong_variant_is_rejected(variant):
    # More queries make the violation larger.
    pairs = [((1, 1, 0), (0, 0, 1)), ((0, 0, 1), (1, 1, 0)), *PAIRS[:27]]
    if not VARIANTS[variant].get("shows"):
        pairs += [((1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1)), ((0, 0, 0, 1, 1, 1), (1, 1, 1, 0, 0, 0))]
    assert worst(lambda values: law(values, **VARIANTS[variant]), pairs) > 1e-4


@pytest.mark.parametrize("kind", [dp.queries.AboveThreshold, dp.queries.PermutedAboveThreshold])
def test_draws_follow_the_enumerated_law(kind):
    mechanism, values, rng, n = kind(epsilon=EPSILON, threshold=1), [0, 5, 2], seeded_rng(8), 20_000
    seen = {}
    for _ in range(n):
        index = mechanism.release(values, rng=rng).index
        seen[index] = seen.get(index, 0) + 1
    if kind is dp.queries.PermutedAboveThreshold:
        expected = of_permuted(values)
    else:
        expected = {len(a) - 1 if a[-1] else None: p for a, p in of_mechanism(values).items()}
    for index, p in expected.items():
        assert abs(seen.get(index, 0) - n * p) < 6 * np.sqrt(n * p)


def test_a_run_of_a_stage_follows_the_enumerated_law():
    search, again = dp.queries.AboveThreshold(epsilon=EPSILON, threshold=1), _core.Noise.discrete_laplace(1 / 64)
    distances, rng, n = np.array([1, 5, 2]), seeded_rng(9), 20_000
    values, seen = np.array([70, 80, 90]), {}
    for _ in range(n):
        answers = _core.corrected(values, values - distances, 1, 1, *search.noises, again, rng)
        right = np.flatnonzero(answers == values)
        index = int(right[0]) if len(right) else None
        seen[index] = seen.get(index, 0) + 1
    for index, p in of_permuted(distances.tolist()).items():
        assert abs(seen.get(index, 0) - n * p) < 6 * np.sqrt(n * p)


@pytest.mark.parametrize("size", [1, 2, 511, 512, 513, 5000, 20_001])
@pytest.mark.parametrize("runs", [0, 1, 25])
def test_the_reference_corrects_the_same_answers(size, runs):
    search, again = dp.queries.AboveThreshold(epsilon=0.5, threshold=60), _core.Noise.discrete_laplace(3)
    values = np.arange(size, dtype=np.int64) * 7 - 900
    answers = values + seeded_rng(size).sample(_core.Noise.discrete_gaussian(20), size)
    arguments = (values, answers, runs, 60, *search.noises, again)
    ours, theirs = seeded_rng(11), seeded_rng(11)
    before = answers.copy()
    found = _core.corrected(*arguments, ours)
    assert np.array_equal(found, sparse_vector.corrected(*arguments, theirs))
    assert ours.bits64() == theirs.bits64()
    assert np.array_equal(answers, before)
    assert np.count_nonzero(found != answers) <= runs


@pytest.mark.parametrize("size", [0, 1, 512, 513, 1500])
def test_the_reference_finds_the_same_places(size):
    of_threshold, of_query = dp.queries.AboveThreshold(epsilon=0.5, threshold=20).noises
    values, ours, theirs = np.arange(size, dtype=np.int64)[::-1] % 7, seeded_rng(12), seeded_rng(12)
    found = set()
    for threshold in (0, 20, 50, 80) * 10:
        arguments = (values, threshold, of_threshold, of_query)
        place = _core.first_above(*arguments, ours)
        assert place == sparse_vector.first_above(*arguments, theirs)
        assert ours.bits64() == theirs.bits64()
        found.add(place)
    assert len(found) > min(size, 10)


@pytest.mark.parametrize("size", [0, 1, 2, 4095, 4096, 8191, 8192, 40_000])
def test_the_reference_shuffles_the_same_way(size):
    ours, theirs = seeded_rng(13), seeded_rng(13)
    order = _core.shuffled(size, ours)
    assert np.array_equal(order, sparse_vector.shuffled(size, theirs))
    assert ours.bits64() == theirs.bits64()
    assert np.array_equal(np.sort(order), np.arange(size))


def test_each_run_draws_a_new_threshold_and_new_noise():
    # One query at the threshold: a run finds it with a probability near a half, independently of other runs.
    search, exact = dp.queries.AboveThreshold(epsilon=1.0, threshold=8), _core.Noise.discrete_laplace(1 / 64)
    values, answers, rng, n = np.zeros(1, np.int64), np.array([8]), seeded_rng(14), 20_000
    wrong = [_core.corrected(values, answers, 3, 8, *search.noises, exact, rng)[0] == 8 for _ in range(n)]
    bar, queries = search.scales
    missed = law((8,), bar=bar, queries=queries, threshold=8, most=1)[(False,)] ** 3
    assert abs(sum(wrong) - n * missed) < 6 * np.sqrt(n * missed * (1 - missed))


@pytest.mark.parametrize("kind", [dp.queries.AboveThreshold, dp.queries.PermutedAboveThreshold])
@pytest.mark.parametrize("value", [2**40, -(2**40), 2**63 - 1, -(2**63)])
def test_values_and_thresholds_of_any_size_are_compared(kind, value):
    # Values are clipped to 2^40, and the noise is far below 2^40.
    values = np.full(600, value, np.int64)
    threshold = 2**40 if value < 0 else -(2**40)
    index = kind(epsilon=1.1e-6, threshold=threshold).release(values, rng=seeded_rng(15)).index
    assert (index is None) == (value < 0)


@pytest.mark.parametrize("value", [2**40, -(2**40), 2**63 - 1, -(2**63)])
def test_answers_that_are_as_far_off_as_possible_are_found(value):
    values, noises = np.full(600, value, np.int64), dp.queries.AboveThreshold(epsilon=1.1e-6, threshold=2**40).noises
    found = _core.corrected(values, ~values, 5, 2**40, *noises, _core.Noise.discrete_laplace(1), seeded_rng(16))
    right = np.flatnonzero(found != ~values)
    assert len(right) == 5
    assert all(abs(int(found[row]) - value) < 40 for row in right)


def test_every_order_of_four_queries_is_as_likely():
    rng, n, seen = seeded_rng(10), 24_000, {}
    for _ in range(n):
        order = tuple(_core.shuffled(4, rng).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert set(seen) == set(permutations(range(4)))
    assert max(abs(count - n / 24) for count in seen.values()) < 6 * np.sqrt(n / 24)


def test_only_queries_far_above_the_threshold_are_found():
    mechanism = dp.queries.PermutedAboveThreshold(epsilon=1.0, threshold=500)
    values = np.zeros(5000, np.int64)
    assert mechanism.release(values).index is None
    values[[17, 4000]] = 1000
    found = {mechanism.release(values).index for _ in range(40)}
    assert found == {17, 4000}
    assert dp.queries.AboveThreshold(epsilon=1.0, threshold=500).release(values).index == 17


def test_each_search_for_crossings_charges_the_budget():
    budget = dp.Budget(rho=1.0, delta=1e-6)
    mechanism = dp.queries.AboveThreshold(epsilon=0.1, threshold=3000)
    for values in ([1, 2, 30_000], [-90_000]):
        found = budget.release(mechanism, values)
        assert found.index == (2 if len(values) == 3 else None)
        assert not found.seeded
    assert budget.spent.rho == pytest.approx(2 * mechanism.guarantee.rho)
    assert mechanism.release([1], rng=seeded_rng(1)).seeded


def test_values_of_any_size_are_answered():
    for values in ([2**63, -1], [2**64, 1], [10**40, -(10**40)]):
        assert len(dp.queries.GaussianAnswers.from_rho(k=2, rho=1.0, delta=1e-6).release(values).values) == 2
