"""`select` and `peel` follow their distributions and agree with the reference.

A candidate is an item that can be selected. The stop element can be selected as well. A slot is the index of a
candidate; the stop element has the slot after the last candidate. A word is 64 random bits that the sampler reads.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import _core
from discreet.errors import ParameterError
from discreet.reference import gumbel
from discreet.testing import seeded_rng

SIGNIFICANCE = 1e-6

counts = st.lists(st.integers(0, 400), min_size=0, max_size=12)
scores = {
    "gamma": st.floats(0.001, 3),
    "bottom": st.integers(0, 50),
    "offset": st.floats(-20, 60),
    "seed": st.integers(0, 2**64 - 1),
}


@settings(max_examples=150, deadline=None)
@given(counts=counts, k=st.integers(1, 4), **scores)
def test_rust_selects_the_same_slots_as_the_reference(counts, gamma, bottom, offset, seed, k):
    ours, same_rng = seeded_rng(seed), seeded_rng(seed)
    arguments = (counts, max([*counts, bottom]), gamma, bottom, offset)
    assert ours.select(*arguments) == gumbel.select(same_rng, *arguments)
    assert ours.peel(*arguments, k) == gumbel.peel(same_rng, *arguments, k)
    assert ours.bits64() == same_rng.bits64()


# Counts 5, 3 and 1 with epsilon 1, delta 0.1 and k_bar 2: two candidates, and the stop element with score 1 + OFFSET.
OFFSET = 3.995732273554
LAW = [0.46924637821982, 0.063505591504133, 0.46724803027605]
PAIRS = {
    (0, 1): 0.056146143120176,
    (0,): 0.41310023509964,
    (1, 0): 0.03182055177231,
    (1,): 0.031685039731823,
    (): 0.46724803027605,
}
# With linf 2 the stop element has score 1 + 7.991464547108. All scores are halved, because gamma is 1/2.
DOUBLE = [0.11460702963726, 0.042161570017273, 0.84323140034547]


def words64(*numbers):
    """Return the two 32-bit halves of each 64-bit number, low half first, for `Rng.scripted`."""
    return [part for number in numbers for part in (number & (2**32 - 1), number >> 32)]


def region(walk, slot):
    """Return the first and last 64-bit word for which `walk(word)` is the slot.

    The slot must be in a node's right child, so that the last word is the last word that the node accepts.
    """
    inside = next(word for word in range(2**64 - 1, 0, -(2**57)) if walk(word) == slot)
    edges = []
    for outside in (0, 2**64):
        near, far = inside, outside
        while abs(far - near) > 1:
            middle = (near + far) // 2
            near, far = (middle, far) if walk(middle) == slot else (near, middle)
        edges.append(near)
    return edges


def right_share(walk, slot):
    """Return the probability of a step to a node's right child, and a word that leads there.

    The other scripted words must then lead to the slot. The returned word is the middle one, because a word at the
    edge would make the sampler read another word.
    """
    first, last = region(walk, slot)
    return Fraction(last + 1 - first, last + 1), (first + last) // 2


def acceptance(select, slot):
    """Return the probability that the sampler accepts a slot.

    The sampler accepts small words. After a rejection, the scripted words lead to another slot.
    """
    low, high = 0, 2**64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if select(middle) == slot else (low, middle)
    return Fraction(high, 2**64)


def enumerated_law(counts, reference, gamma, bottom, offset):
    """Return P[select = slot] for two candidates and the stop element, with an error of about 2^-60.

    The probabilities come from a search for the words at which the result changes. The tree is ((0, 1), (stop,
    empty)). The sampler reads a word at the root, a word at the node below, and a word for acceptance.
    """

    def select(*words):
        return _core.Rng.scripted(words64(*words, *[0] * 9)).select(counts, reference, gamma, bottom, offset)

    stop, to_stop = right_share(lambda word: select(word, 0, 0), 2)
    second, to_second = right_share(lambda word: select(0, word, 0), 1)
    reached = [(1 - stop) * (1 - second), (1 - stop) * second, stop]
    accepted = [
        acceptance(lambda uniform: select(0, 0, uniform, to_stop, 0, 0), 0),
        acceptance(lambda uniform: select(0, to_second, uniform, 0, 0, 0), 1),
        acceptance(lambda uniform: select(to_stop, 0, uniform, 0, 0, 0), 2),
    ]
    shares = [r * a for r, a in zip(reached, accepted, strict=True)]
    return [float(share / sum(shares)) for share in shares]


@pytest.mark.parametrize(
    ("arguments", "law"),
    [
        (([5, 3], 5, 1.0, 1, OFFSET), LAW),
        (([5, 3], 1234, 1.0, 1, OFFSET), LAW),
        (([5, 3], 5, 0.5, 1, 7.991464547108 / 2), DOUBLE),
    ],
)
def test_select_of_all_words_is_the_exponential_mechanism(arguments, law):
    found = enumerated_law(*arguments)
    counts, _, gamma, bottom, offset = arguments
    weights = [math.exp(gamma * score) for score in [*counts, bottom + offset / gamma]]
    assert found == pytest.approx([w / sum(weights) for w in weights], abs=1e-14)
    assert found == pytest.approx(law, abs=1e-12)


def peel_law(weights, stop, k):
    """Return the probability of every outcome of peeling: the slots in order of selection.

    The probability is a product. Each selected slot contributes its weight over the sum of the remaining weights,
    including the stop element's. If fewer than k slots are selected, the stop element contributes its own share.
    """
    outcomes = {}
    for n in range(min(k, len(weights)) + 1):
        for order in itertools.permutations(range(len(weights)), n):
            left, p = sum(weights) + stop, 1.0
            for slot in order:
                p *= weights[slot] / left
                left -= weights[slot]
            if n < k:
                p *= stop / left
            outcomes[order] = p
    return outcomes


def test_the_expected_values_follow_plackett_luce():
    weights, stop = [math.exp(5), math.exp(3)], math.exp(1 + OFFSET)
    assert peel_law(weights, stop, 2) == pytest.approx(PAIRS, abs=1e-12)
    total = sum(weights) + stop
    assert [w / total for w in [*weights, stop]] == pytest.approx(LAW, abs=1e-12)
    halves = [math.exp(2.5), math.exp(1.5), math.exp(0.5 + 7.991464547108 / 2)]
    assert [w / sum(halves) for w in halves] == pytest.approx(DOUBLE, abs=1e-12)


def chi_square(seen, law):
    expected = np.array(law) * sum(seen)
    return stats.chi2.sf(((np.array(seen) - expected) ** 2 / expected).sum(), len(law) - 1)


def selections(arguments, slots, size, seed):
    rng = seeded_rng(seed)
    return np.bincount([rng.select(*arguments) for _ in range(size)], minlength=slots)


@pytest.mark.parametrize(
    ("arguments", "law"),
    [
        (([5, 3], 2000, 1.0, 1, OFFSET), LAW),
        (([5], 5, 1.0, 0, OFFSET), [0.73189683670287, 1 - 0.73189683670287]),
    ],
)
def test_select_follows_the_exponential_mechanism(arguments, law):
    assert chi_square(selections(arguments, len(law), 300_000, seed=4), law) > SIGNIFICANCE


def test_a_wrong_offset_is_detected():
    assert chi_square(selections(([5, 3], 5, 1.0, 1, OFFSET + 0.05), 3, 300_000, seed=4), LAW) < SIGNIFICANCE


def test_peel_follows_plackett_luce():
    rng = seeded_rng(7)
    seen = dict.fromkeys(PAIRS, 0)
    for _ in range(300_000):
        slots, stopped = rng.peel([5, 3], 5, 1.0, 1, OFFSET, 2)
        assert stopped == (len(slots) < 2)
        seen[tuple(slots)] += 1
    assert chi_square(list(seen.values()), list(PAIRS.values())) > SIGNIFICANCE


@pytest.mark.parametrize(("gamma", "offset"), [(0.0, 1.0), (math.nan, 1.0), (2048.0, 1.0), (1.0, math.inf)])
def test_scores_out_of_range_are_refused(gamma, offset):
    with pytest.raises(ParameterError):
        seeded_rng(1).select([1], 1, gamma, 0, offset)
    with pytest.raises(ParameterError):
        seeded_rng(1).peel([1], 1, gamma, 0, offset, 1)


def test_counts_out_of_range_are_clamped():
    odd, even = [2**36, -5, 2**62, 7], [2**35, 0, 2**35, 7]
    for seed in range(50):
        ours, same = seeded_rng(seed), seeded_rng(seed)
        assert ours.select(odd, 2**40, 1.0, -1, 1.0) == same.select(even, 2**35, 1.0, 0, 1.0)


def test_peel_refuses_k_zero():
    with pytest.raises(ParameterError, match="k must be"):
        seeded_rng(1).peel([1], 1, 1.0, 0, 1.0, 0)


@pytest.mark.parametrize(("gamma", "far"), [(1024.0, 2**35), (5e-324, 2**35), (1e-9, 1)])
def test_scores_at_the_ends_of_their_range_are_accepted(gamma, far):
    rng = seeded_rng(1)
    for counts in ([far, 1, 7], [far, far, 0]):
        candidates = [slot for slot, count in enumerate(counts) if count]
        chosen = rng.select(counts, far, gamma, 0, 40.0)
        assert chosen in [*candidates, len(counts)]
        assert gamma < 1024 or counts[chosen] == far
        slots, _ = rng.peel(counts, far, gamma, 0, -1e9, 5)
        assert sorted(slots) == candidates
