"""Threshold and top-k mechanisms: the Python reference, truncated tables and parameters out of range."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import (
    GaussianThreshold,
    GaussianTopK,
    GumbelTopK,
    Histogram,
    LaplaceThreshold,
    LaplaceTopK,
    OptimalSelection,
    TruncatedGeometric,
)
from discreet.errors import ParameterError, SensitivityError
from discreet.reference.threshold import threshold_release
from discreet.testing import seeded_rng

THRESHOLDS = [
    LaplaceThreshold(scale=2.0, delta=1e-3, l0=2),
    GaussianThreshold(sigma=2.0, delta=1e-3, l0=2),
    TruncatedGeometric(epsilon=0.5, delta=1e-3),
]
RANKED = [
    LaplaceTopK(scale=1.0, delta=1e-2, l0=1, k_bar=3),
    GaussianTopK(sigma=1.0, delta=1e-2, l0=1, k_bar=3),
    GumbelTopK(k=2, scale=1.0, delta=1e-2, k_bar=3),
]


def kind(mechanism):
    return type(mechanism).__name__


def table(mechanism, counts, **changes):
    given = {"l0": mechanism.protects.l0, "linf": 1, "complete": True, **changes}
    return Histogram.from_counts([f"i{n:03d}" for n in range(len(counts))], counts, **given)


@pytest.mark.parametrize("mechanism", THRESHOLDS, ids=kind)
@settings(max_examples=30, deadline=None)
@given(counts=st.lists(st.integers(0, 40), max_size=60), seed=st.integers(0, 2**64 - 1))
def test_releases_match_the_python_reference(mechanism, counts, seed):
    counts = sorted(counts, reverse=True)
    release = mechanism.release(table(mechanism, counts), rng=seeded_rng(seed))
    rows, noisy = threshold_release(
        np.array(counts, np.int64),
        mechanism.threshold.value,
        lambda rng, size: rng.sample(mechanism.noise, size),
        seeded_rng(seed),
    )
    assert sorted(zip(release.items, release.counts.tolist(), strict=True)) == [
        (f"i{row:03d}", count) for row, count in zip(rows, noisy.tolist(), strict=True)
    ]


@pytest.mark.parametrize("mechanism", [*THRESHOLDS, OptimalSelection(epsilon=1.0, delta=1e-3)], ids=kind)
def test_threshold_mechanisms_refuse_truncated_tables(mechanism):
    cut = table(mechanism, [50, 40, 30], complete=False)
    with pytest.raises(SensitivityError, match="complete=True"):
        mechanism.release(cut)


@pytest.mark.parametrize("mechanism", RANKED, ids=kind)
def test_top_k_mechanisms_need_k_bar_plus_one_counts(mechanism):
    short = table(mechanism, [50, 40, 30], complete=False)
    with pytest.raises(SensitivityError, match=r"k_bar \+ 1 = 4"):
        mechanism.release(short)
    enough = table(mechanism, [50, 40, 30, 2], complete=False)
    assert len(mechanism.release(enough)) >= 1
    # Fewer rows than the limit mean that there are no more counts.
    few = table(mechanism, [50, 40], complete=False, limit=4)
    assert len(mechanism.release(few)) >= 1


@pytest.mark.parametrize("mechanism", RANKED, ids=kind)
def test_items_beyond_k_bar_are_never_released(mechanism):
    equal = table(mechanism, [1000] * 10)
    for seed in range(20):
        assert set(mechanism.release(equal, rng=seeded_rng(seed)).items) <= {"i000", "i001", "i002"}


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianThreshold(sigma=1e9, delta=1e-290, l0=2**30),
        LaplaceThreshold(scale=1e9, delta=1e-290, l0=2**30),
        GaussianTopK(sigma=7e8, delta=1e-280, l0=2**30),
        LaplaceTopK(scale=1e9, delta=1e-280, l0=2**30),
        GumbelTopK(k=1, scale=1e12, delta=1e-300, k_bar=2**30),
    ],
    ids=kind,
)
def test_the_widest_noise_and_smallest_delta_work(mechanism):
    assert len(mechanism.release(table(mechanism, [2**35]), rng=seeded_rng(1))) == 0


@pytest.mark.parametrize("make", [LaplaceThreshold, GaussianThreshold, LaplaceTopK, GaussianTopK])
@pytest.mark.parametrize(("l0", "linf"), [(1, 1), (7, 2), (300, 1)])
@pytest.mark.parametrize(("epsilon", "rho", "delta"), [(0.1, 0.01, 1e-8), (1.0, 0.5, 1e-6), (5.0, 4.0, 1e-3)])
def test_guarantees_are_met_and_nearly_used_up(make, l0, linf, epsilon, rho, delta):
    by_rho = make.from_rho(rho=rho, delta=delta, l0=l0, linf=linf)
    assert rho * 0.999 < by_rho.guarantee.rho <= rho
    assert by_rho.guarantee.delta <= delta
    by_epsilon = make.from_epsilon(epsilon=epsilon, delta=delta, l0=l0, linf=linf)
    assert 0.9 * epsilon < by_epsilon.guarantee.epsilon(delta) <= epsilon


@pytest.mark.parametrize("kind", [LaplaceTopK, GaussianTopK])
def test_released_counts_exceed_the_next_by_the_margin(kind):
    mechanism = kind(**{"scale" if kind is LaplaceTopK else "sigma": 1.0}, delta=0.4, l0=1, k_bar=3)
    counts, ties, empty = np.array([3, 2, 0, 0]), 0, 0
    for seed in range(300):
        noise = seeded_rng(seed).sample(mechanism.noise, 4)
        above = counts[:3] + noise[1:] - (counts[3] + noise[0]) - mechanism.margin
        release = mechanism.release(table(mechanism, counts.tolist()), rng=seeded_rng(seed))
        assert sorted(release.items) == [f"i{row:03d}" for row in range(3) if above[row] > 0 and counts[row] > 0]
        ties += 0 in above[:2]
        empty += above[2] > 0
    assert ties > 10
    assert empty > 10


@pytest.mark.parametrize("linf", [1, 3, 7])
def test_epsilon_covers_the_rounding_of_gamma(linf):
    for scale in (0.1, 0.7, 3.0, 49.0, 1e6 / 3):
        mechanism = GumbelTopK(k=1, scale=scale, delta=1e-6, linf=linf)
        assert Fraction(mechanism.gamma) * Fraction(scale) <= 1
        assert linf * Fraction(mechanism.gamma) <= Fraction(mechanism.epsilon)


def test_bounded_noise_without_counts_needs_no_larger_counts_than_its_cap():
    for epsilon, delta, l0 in ((1.0, 1e-6, 1), (0.3, 1e-4, 2), (2.0, 0.2, 1)):
        mechanism = TruncatedGeometric(epsilon=epsilon, delta=delta, l0=l0, with_counts=False)
        shown = TruncatedGeometric(epsilon=epsilon, delta=delta, l0=l0)
        assert mechanism.cap == 2 * mechanism.bound + 1
        assert shown.cap is None
        assert mechanism.release_chance(mechanism.cap) == 1.0 > mechanism.release_chance(mechanism.cap - 1)
        # The same draws decide, with and without counts.
        table = Histogram.from_counts(range(200), range(200), l0=l0, linf=1, complete=True)
        for seed in range(5):
            with_counts = shown.release(table, rng=seeded_rng(seed))
            alone = mechanism.release(table, rng=seeded_rng(seed))
            assert sorted(with_counts.items) == alone.items
            assert alone.counts is None


def test_counting_stops_at_the_cap_of_bounded_noise():
    users = np.arange(3000)
    rows = {"u": np.append(users, users[:40]), "i": np.append(np.zeros(3000, np.int64), np.ones(40, np.int64))}
    mechanism = TruncatedGeometric(epsilon=1.0, delta=1e-6, l0=2, with_counts=False)
    short = Histogram.from_table(rows, user="u", item="i", l0=2, cap=mechanism.cap)
    assert max(short._counts()) == mechanism.cap < 3000
    rng, seen = seeded_rng(3), 0
    for _ in range(300):
        items = mechanism.release(short, rng=rng).items
        assert 0 in items
        seen += 1 in items
    chance = mechanism.release_chance(40)
    assert abs(seen - 300 * chance) <= 5 * np.sqrt(300 * chance * (1 - chance)) + 1e-9
    for other in (TruncatedGeometric(epsilon=1.0, delta=1e-6, l0=2), LaplaceThreshold(scale=1.0, delta=1e-3, l0=2)):
        with pytest.raises(SensitivityError, match="stop at"):
            other.release(short)
    with pytest.raises(SensitivityError, match="stop at"):
        mechanism.release(Histogram.from_table(rows, user="u", item="i", l0=2, cap=mechanism.cap - 1))


@pytest.mark.parametrize("kind", [TruncatedGeometric, OptimalSelection])
def test_zero_delta_and_zero_epsilon_are_refused_with_the_reason(kind):
    for make in (kind, kind.from_epsilon):
        with pytest.raises(ParameterError, match="no item can ever be released"):
            make(epsilon=1.0, delta=0)
        with pytest.raises(ParameterError, match="n delta"):
            make(epsilon=0.0, delta=1e-6)
    with pytest.raises(ParameterError, match="no item can ever be released"):
        kind.from_rho(rho=1.0, delta=0.0)


@pytest.mark.parametrize("given", [{"rho": 0.5}, {"epsilon": 1.0}])
def test_a_mechanism_without_counts_is_made_for_a_guarantee(given):
    maker = TruncatedGeometric.from_rho if "rho" in given else TruncatedGeometric.from_epsilon
    plain, counted = (maker(**given, delta=1e-6, l0=2, with_counts=flag) for flag in (False, True))
    assert (plain.with_counts, counted.with_counts) == (False, True)
    assert plain.guarantee == counted.guarantee == maker(**given, delta=1e-6, l0=2).guarantee
    with pytest.raises(ParameterError, match="with_counts must be True or False"):
        maker(**given, delta=1e-6, with_counts=1)
