"""Refinement: released counts measured again."""

import dataclasses
import math

import numpy as np
import pytest

from discreet import GaussianThreshold, Guarantee, GumbelTopK, Histogram, PrivateCountRelease
from discreet.errors import ParameterError, SensitivityError
from discreet.mechanisms import ClippedSums, KeptPairs, Refinement
from discreet.testing import seeded_rng
from discreet.theorems.rogers2024 import measurement_sigma, refined_sigma

COUNTS = [4000, 2500, 900, 700, 400, 300, 200]


def histogram(counts=COUNTS, complete=True):
    return Histogram.from_counts(list(range(len(counts))), counts, l0=None, linf=1, complete=complete)


def rough():
    release = PrivateCountRelease(rho=0.05, delta=1e-6, epsilon_star=0.01, k_bar=20).release(histogram())
    assert len(release) >= 4
    return release


def test_scales_of_means_match_brownian_noise():
    found = [refined_sigma(*(measurement_sigma(rho) for rho in (0.001, 0.003, 0.01)[:n])) for n in (1, 2, 3)]
    assert found == pytest.approx([22.360679774998, 11.180339887499, 5.976143046672], rel=1e-12)


def test_counts_reach_the_relative_error():
    refined = Refinement(of=rough(), rho=5.0, relative_error=0.01).release(histogram())
    assert np.all(1.5 * refined.sigmas <= np.maximum(0.0101 * refined.counts, 0.46))
    truth = np.array(COUNTS)[refined.items]
    # 7 counts with 8 standard deviations: a chance of 1e-14.
    assert np.all(np.abs(refined.counts - truth) <= 8 * refined.sigmas + 0.5)
    assert not refined.seeded
    assert "refines" in refined.notes[0]


def test_the_cost_matches_the_gained_precision():
    before = rough()
    after = Refinement(of=before, rho=0.01, relative_error=0.001).release(histogram())
    sigma = dict(zip(before.items, before.sigmas, strict=True))
    gained = sum(1 / (2 * s**2) - 1 / (2 * sigma[item] ** 2) for item, s in zip(after.items, after.sigmas, strict=True))
    assert after.spent.rho == pytest.approx(gained, rel=1e-9)
    assert after.spent.rho <= 0.01
    assert after.guarantee == before.guarantee + Guarantee(0.01, 0.0)
    assert Refinement(of=before, rho=0.01).guarantee == Guarantee(0.01, 0.0)


def test_a_rho_below_one_step_changes_no_count():
    before = rough()
    after = Refinement(of=before, rho=1e-9, relative_error=0.001).release(histogram())
    assert list(after) == list(before)
    assert after.spent.rho == 0


def test_noise_has_the_published_scale():
    before = rough()
    errors = []
    rng = seeded_rng(8)
    for _ in range(400):
        # The first count is exact, so only later noise causes errors.
        start = dataclasses.replace(before, items=[0], counts=np.array([4000]), sigmas=np.array([1e9]))
        after = Refinement(of=start, rho=1.0, relative_error=0.01).release(histogram([4000]), rng=rng)
        errors.append((after.counts[0] - 4000) / after.sigmas[0])
    assert np.std(errors) == pytest.approx(1, abs=0.15)
    assert abs(np.mean(errors)) < 0.25


def test_refining_a_seeded_release_stays_seeded():
    seeded = PrivateCountRelease(rho=1.0, delta=1e-6, k_bar=20).release(histogram(), rng=seeded_rng(1))
    assert Refinement(of=seeded, rho=0.1).release(histogram()).seeded


def test_cut_histograms_and_ranks_are_refused():
    with pytest.raises(SensitivityError, match="complete"):
        Refinement(of=rough(), rho=0.1).release(histogram(complete=False))
    ranks = GumbelTopK.from_rho(k=2, rho=1.0, delta=1e-6).release(histogram())
    for bad in (ranks, None, "release"):
        with pytest.raises(ParameterError, match="counts"):
            Refinement(of=bad, rho=0.1)
    data = {"user": [1, 2], "item": ["a", "a"], "value": [3, 4]}
    sums = ClippedSums(items=["a"], rho=1.0, low=0, high=5).release(data, user="user", item="item", value="value")
    with pytest.raises(ParameterError, match="sums"):
        Refinement(of=sums, rho=0.1)
    for rho in (0, -1, math.nan, True):
        with pytest.raises(ParameterError, match="rho"):
            Refinement(of=rough(), rho=rho)


def test_a_release_of_pairs_is_refused():
    numbers = Histogram.from_counts(range(900), [4] * 900, l0=1, linf=60, complete=True)
    pairs = KeptPairs(l0=3, most=60, rho=1).release(numbers)
    with pytest.raises(ParameterError, match="pairs"):
        Refinement(of=pairs, rho=1)


def test_items_without_users_count_zero():
    wide = Histogram.from_counts(["a", "b"], [900, 800], l0=1, linf=1, complete=True)
    before = GaussianThreshold.from_rho(rho=0.5, delta=1e-6, l0=1).release(wide)
    gone = Histogram.from_counts(["a"], [900], l0=1, linf=1, complete=True)
    after = dict(Refinement(of=before, rho=2.0, relative_error=0.01).release(gone))
    assert after["b"] < after["a"]
