"""Optimal partition selection, compared with Google's values and numbers computed with fifty digits."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from discreet.theorems import desfontaines2020 as theory

CROSSOVERS = [
    (1.0, 1e-5, 11, 22, 0.34844773845331),
    (0.1, 1e-5, 86, 171, 0.51636514073756),
    (0.5, 0.02, 6, 11, 0.58840484458263),
    (2.0, 1e-10, 12, 24, 0.41460149541146),
    (0.01, 1e-10, 1773, 3546, 0.4987327336795),
    (5.0, 0.3, 1, 2, 0.3),
]
CHANCES = [
    (
        1.0,
        1e-5,
        {
            1: 1e-5,
            5: 8.5791024883722e-4,
            10: 0.12818308050525,
            12: 0.76031099692263,
            13: 0.91182702228737,
            15: 0.98807211723469,
            20: 0.9999254111119,
        },
    ),
    (0.1, 1e-6, {1: 1e-6, 50: 0.0014016532497752, 100: 0.20942544001531, 150: 0.99197354785792, 200: 0.99995536245618}),
    (0.5, 0.02, {8: 0.86807080625387}),
]


@pytest.mark.parametrize(("epsilon", "delta", "n1", "n2", "at_n1"), CROSSOVERS)
def test_crossovers_match_theorem_1(epsilon, delta, n1, n2, at_n1):
    assert theory.crossovers(epsilon, delta) == (n1, n2)
    assert theory.release_chance(epsilon, delta, n1) == pytest.approx(at_n1, rel=1e-12)
    assert theory.release_chance(epsilon, delta, n2 + 1) == 1.0


@pytest.mark.parametrize(("epsilon", "delta", "chances"), CHANCES)
def test_chances_match_theorem_1(epsilon, delta, chances):
    for users, chance in chances.items():
        assert theory.release_chance(epsilon, delta, users) == pytest.approx(chance, rel=1e-11)


@pytest.mark.parametrize(("epsilon", "delta"), [row[:2] for row in CROSSOVERS])
def test_the_closed_form_the_recurrence_and_the_table_agree(epsilon, delta):
    closed = theory.release_chances(epsilon, delta)
    table = theory.chance_table(epsilon, delta)
    chance = 0.0
    for users, value in enumerate(closed[:-1]):
        assert value == pytest.approx(chance, rel=1e-9, abs=1e-15)
        assert table[users] / 2**64 == pytest.approx(chance, rel=1e-8)
        # Lemma 1: the largest probability that (epsilon, delta)-DP allows.
        chance = min(math.exp(epsilon) * chance + delta, 1 - math.exp(-epsilon) * (1 - chance - delta), 1.0)
    assert len(closed) in (len(table), len(table) + 1)


LARGE = [(100.0, 1e-6), (50.0, 1e-3), (22.49, 4.96e-11), (14.82, 1.02e-14), (6.42, 1.52e-18), (1.96, 4.2e-18)]


@pytest.mark.parametrize(("epsilon", "delta"), [*(row[:2] for row in CROSSOVERS), *LARGE])
def test_the_table_satisfies_the_definition_exactly(epsilon, delta):
    import mpmath

    with mpmath.workdps(80):
        growth, share = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
        exact = [mpmath.mpf(int(chance)) / 2**64 for chance in theory.chance_table(epsilon, delta)] + [mpmath.mpf(1)]
        for now, following in pairwise(exact):
            assert now <= following <= growth * now + share
            assert 1 - now <= growth * (1 - following) + share


@pytest.mark.parametrize(("epsilon", "delta", "k"), [(1.0, 1e-5, 11), (0.1, 1e-6, 109), (2.0, 1e-10, 12)])
def test_the_truncation_bound_matches_definition_6(epsilon, delta, k):
    assert theory.truncation_bound(epsilon, delta) == k


def test_small_epsilons_lose_no_digits():
    for users, chance in {1000: 0.0010000004995002, 500_000: 0.50012502057025}.items():
        assert theory.release_chance(1e-9, 1e-6, users) == pytest.approx(chance, rel=1e-10)


def test_chances_never_leave_their_range():
    for epsilon in (1e-3, 0.7, 30.0):
        chances = theory.release_chances(epsilon, 0.01)
        assert chances[0] == 0.0
        assert np.all(np.diff(chances) >= 0)
        assert Fraction(float(chances[1])) <= Fraction(0.01) * (1 + Fraction(1, 2**50))
