"""The exponential mechanism over given candidates: its law, its guarantee and its Gumbel form."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract import MechanismContract
from discreet import Histogram
from discreet.audit.findings import hockey_stick
from discreet.errors import SensitivityError
from discreet.laws import joint_law
from discreet.laws.ranked import draws
from discreet.mechanisms import ExponentialMechanism
from discreet.reference import gumbel
from discreet.testing import seeded_rng

CANDIDATES = tuple(f"item-{n:02d}" for n in range(12))


class TestExponentialMechanism(MechanismContract):
    counted = False

    def mechanism(self):
        return ExponentialMechanism.from_rho(items=CANDIDATES, rho=0.5, k=4)

    def test_an_empty_release_has_the_same_columns(self):
        # The candidates are public, so a release always has k items.
        empty, full = (self.mechanism().release(data) for data in (self.histogram([], []), self.plain()))
        assert len(empty) == len(full) == 4
        assert [(name, kind) for name, _, kind in empty.columns] == [(n, k) for n, _, k in full.columns]

    def test_counts_of_zero_are_never_released(self):
        zeros = self.histogram(CANDIDATES, [0] * 12)
        assert len({tuple(self.mechanism().release(zeros, rng=seeded_rng(n)).items) for n in range(9)}) > 5


def histogram(counts):
    return Histogram.from_counts(list(counts), list(counts.values()), l0=None, linf=1, complete=True)


def test_the_law_is_proportional_to_exponential_scores():
    # P[a] = e^2/(e^2 + e^1 + 1), and without replacement P[a, b] = P[a] e/(e + 1).
    mechanism = ExponentialMechanism(items=("a", "b", "c"), scale=1.0, k=2)
    law = draws(mechanism, {"a": 2, "b": 1, "x": 50})
    first = math.exp(2) / (math.exp(2) + math.e + 1)
    assert law["a", "b"] == pytest.approx(first * math.e / (math.e + 1), rel=1e-12)
    assert len(law) == 6 + 4
    assert sum(chance for items, chance in law.items() if None in items) == 0


@pytest.mark.parametrize("runs", [4_000, pytest.param(100_000, marks=pytest.mark.statistical)])
def test_gumbel_noise_in_one_shot_has_the_law_of_the_draws(runs):
    mechanism = ExponentialMechanism(items=("a", "b", "c", "d"), scale=2.0, k=2)
    counts = {"a": 5, "b": 3, "c": 3}
    law = draws(mechanism, counts)
    exact = np.array([counts.get(item, 0) for item in mechanism.items])
    rng, table = seeded_rng(8), histogram(counts)
    noise = np.random.default_rng(8).gumbel(scale=mechanism.scale, size=(runs, 4))
    shot = [tuple(mechanism.items[slot] for slot in slots) for slots in gumbel.one_shot(exact, noise, 2)]
    drawn = [tuple(mechanism.release(table, rng=rng).items) for _ in range(runs)]
    for found in (shot, drawn):
        for outcome, chance in law.items():
            seen = sum(items == outcome for items in found) / runs
            assert abs(seen - chance) < 5 * math.sqrt(chance * (1 - chance) / runs) + 1e-9, outcome


@settings(max_examples=60, deadline=None)
@given(counts=st.lists(st.integers(0, 60), min_size=1, max_size=6), k=st.integers(1, 6), seed=st.integers(0, 2**32))
def test_a_release_agrees_with_the_reference(counts, k, seed):
    k, labels = min(k, len(counts)), [f"{n}" for n in range(len(counts))]
    mechanism = ExponentialMechanism(items=labels, scale=3.0, k=k)
    release = mechanism.release(histogram(dict(zip(labels, counts, strict=True))), rng=seeded_rng(seed))
    raised = [count + 1 for count in counts]
    slots, stopped = gumbel.peel(seeded_rng(seed), raised, max(raised), mechanism.gamma, 0, -5000.0, k)
    assert (release.items, stopped) == ([labels[slot] for slot in slots], False)


@settings(max_examples=150, deadline=None)
@given(
    counts=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=4),
    scale=st.floats(0.2, 8),
    k=st.integers(1, 4),
    shift=st.sampled_from([0, 1]),
)
def test_one_user_changes_the_law_by_at_most_k_epsilon_without_delta(counts, scale, k, shift):
    # With a shift of one, a user raises some scores by one and lowers others by one.
    k, labels = min(k, len(counts)), [f"{n}" for n in range(len(counts))]
    mechanism = ExponentialMechanism(items=labels, scale=scale, k=k, linf=2)
    first = {label: count + shift for label, (count, _) in zip(labels, counts, strict=True)}
    second = {label: count + more for label, (count, more) in zip(labels, counts, strict=True)}
    p, q = joint_law(mechanism, first, second)
    epsilon, delta = mechanism.guarantee.dp
    assert delta == mechanism.guarantee.delta == 0
    possible = (p > 0) | (q > 0)
    assert np.abs(np.log(p[possible] / q[possible])).max(initial=0) <= epsilon * (1 + 1e-9) + 1e-9
    assert max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) <= 1e-12


def test_the_chance_of_release_is_exact_without_other_users():
    for k, size in itertools.product((1, 2, 3), (3, 4)):
        mechanism = ExponentialMechanism(items=CANDIDATES[:size], scale=1.5, k=k)
        law = draws(mechanism, {CANDIDATES[0]: 3})
        exact = sum(chance for items, chance in law.items() if CANDIDATES[0] in items)
        assert mechanism.release_chance(3) == pytest.approx(exact, rel=1e-12)
    assert ExponentialMechanism(items=("a", "b"), scale=1.0).release_chance(10**9) == 1


def test_items_outside_the_candidates_are_never_released():
    mechanism = ExponentialMechanism(items=(7, 8, 9), scale=1.0, k=3)
    table = Histogram.from_counts([7, 1000], [10, 10**6], l0=None, linf=1, complete=True)
    assert sorted(mechanism.release(table).items) == [7, 8, 9]
    # Another type of items has no candidate, so all candidates have no users.
    assert sorted(mechanism.release(histogram({"7": 5})).items) == [7, 8, 9]


def test_the_calibrations_cost_what_is_asked_for():
    items = CANDIDATES
    by_rho = ExponentialMechanism.from_rho(items=items, rho=0.3, k=5, linf=2)
    assert 0.3 * (1 - 1e-9) < by_rho.guarantee.rho <= 0.3
    pure = ExponentialMechanism.from_epsilon(items=items, epsilon=0.4, k=10)
    assert pure.guarantee.dp[0] <= 0.4
    shared = ExponentialMechanism.from_epsilon(items=items, epsilon=0.4, delta=1e-6, k=10)
    assert shared.scale <= pure.scale
    assert shared.guarantee.implies(0.4, 1e-6)
    many = ExponentialMechanism.from_epsilon(items=tuple(range(900)), epsilon=1.0, delta=1e-6, k=900)
    assert many.scale < 0.5 * ExponentialMechanism.from_epsilon(items=tuple(range(900)), epsilon=1.0, k=900).scale
    assert many.guarantee.implies(1.0, 1e-6)


def test_a_cut_histogram_is_refused():
    cut = Histogram.from_counts(["a"], [5], l0=None, linf=1, complete=False)
    with pytest.raises(SensitivityError, match="all counts"):
        ExponentialMechanism(items=("a",), scale=1.0).release(cut)
