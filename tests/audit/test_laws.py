"""Exact laws of mechanisms on small tables."""

import math

import numpy as np
import pytest
from audited import SETS, names

from discreet import GaussianThreshold, GumbelTopK, LaplaceThreshold, LaplaceTopK, TruncatedGeometric
from discreet.audit.neighbours import neighbours
from discreet.laws import joint_law
from discreet.laws.ranked import plackett_luce, ranked
from discreet.testing import seeded_rng


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("tight", [False, True])
def test_tight_charges_cover_discrete_noise(scale, tight):
    for mechanism in (
        LaplaceThreshold(scale=scale, delta=1e-3, l0=2, tight=tight),
        LaplaceTopK(scale=scale, delta=1e-3, l0=2, k_bar=1, tight=tight),
    ):
        x = np.arange(-4000, 4001)
        p = np.exp(-np.abs(x) / scale)
        q = np.exp(-np.abs(x - 1) / scale)
        divergence = np.sum(p / p.sum() * (np.abs(x - 1) - np.abs(x)) / scale) + math.log(q.sum() / p.sum())
        assert mechanism.guarantee.rho >= 2 * divergence * (1 - 1e-9)


@pytest.mark.parametrize("case", [(kind, 1) for kind in SETS], ids=names)
def test_laws_sum_to_one(case):
    kind, number = case
    mechanism = kind(**SETS[kind][number])
    for first, second in neighbours(mechanism, 12, 5):
        for law in joint_law(mechanism, first, second):
            assert law.min() >= 0
            assert law.sum() == pytest.approx(1, abs=1e-12)


GUMBEL_LAWS = [
    ({"a": 5, "b": 3, "c": 1}, 1, 1, {("a",): 0.46924637821982, ("b",): 0.063505591504133, (None,): 0.46724803027605}),
    (
        {"a": 5, "b": 3, "c": 1},
        2,
        1,
        {
            ("a", "b"): 0.056146143120176,
            ("a", None): 0.41310023509964,
            ("b", "a"): 0.03182055177231,
            ("b", None): 0.031685039731823,
            (None,): 0.46724803027605,
        },
    ),
    ({"a": 5}, 1, 1, {("a",): 0.73189683670287}),
    ({"a": 5, "b": 3, "c": 1}, 1, 2, {("a",): 0.11460702963726, ("b",): 0.042161570017273, (None,): 0.84323140034547}),
]


@pytest.mark.parametrize(("counts", "k", "linf", "law"), GUMBEL_LAWS)
def test_gumbel_laws_match_theorem_9(counts, k, linf, law):
    mechanism = GumbelTopK(k=k, scale=float(linf), delta=0.1, k_bar=2, linf=linf)
    found = plackett_luce(mechanism, counts)
    for outcome, chance in law.items():
        assert found[outcome] == pytest.approx(chance, rel=1e-12)


@pytest.mark.parametrize("draws", [20_000, pytest.param(200_000, marks=pytest.mark.statistical)])
def test_selections_follow_their_laws(draws):
    mechanism, counts = GumbelTopK(k=2, scale=1.0, delta=0.1, k_bar=2), {"a": 5, "b": 3, "c": 1}
    law = plackett_luce(mechanism, counts)
    _, histogram = ranked(counts)
    seen, rng = dict.fromkeys(law, 0), seeded_rng(5)
    for _ in range(draws):
        items = tuple(mechanism.release(histogram, rng=rng).items)
        seen[items if len(items) == mechanism.k else (*items, None)] += 1
    for outcome, chance in law.items():
        assert abs(seen[outcome] / draws - chance) < 5 * math.sqrt(chance * (1 - chance) / draws) + 1e-9, outcome


def test_release_rates_match_the_threshold_laws():
    for kind in (LaplaceThreshold, GaussianThreshold, TruncatedGeometric):
        mechanism = kind(**SETS[kind][0])
        for count in (1, 3, mechanism.threshold.value + 1):
            rows, _ = mechanism.threshold.release(np.full(1_000_000, count), seeded_rng(count))
            chance = mechanism.release_chance(count)
            assert abs(len(rows) / 1e6 - chance) < 5 * math.sqrt(chance * (1 - chance) / 1e6)
