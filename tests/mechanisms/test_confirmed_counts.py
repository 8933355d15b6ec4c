"""Confirmed counts: the contract, the price list, and the Python reference bit for bit."""

import dataclasses
import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract import MechanismContract
from discreet import Histogram, _core
from discreet.errors import ParameterError
from discreet.mechanisms import ConfirmedCounts, Replacement
from discreet.reference.confirmed_counts import Plan, confirm
from discreet.testing import seeded_rng
from discreet.theorems import confirmed_counts as theorem
from discreet.theorems.rogers2024 import UNIT


class TestConfirmedCounts(MechanismContract):
    def mechanism(self):
        return ConfirmedCounts(rho=0.5, delta=1e-6, k_bar=50)

    def histogram(self, items, counts, **changes):
        return super().histogram(items, counts, **{"users": 60_000, **changes})


class TestConfirmedCountsWithoutUsers(MechanismContract):
    def mechanism(self):
        return ConfirmedCounts(rho=0.5, delta=1e-6, k_bar=50)


# rho, delta, relative error, factor, replaced, level; epsilon, variance, price, m; the bound's variance, price, reach.
VECTORS = [
    (1, 1e-6, 0.1, 2, False, 64, 0.6875, 2.3104, 0.275494773632, 7, 0.9216, 0.542534722222, 5),
    (1, 1e-6, 0.1, 2, False, 96, 0.171875, 36.9664, 0.017218423352, 34, 14.7456, 0.0339084201389, 22),
    (1, 1e-6, 0.1, 2, False, 128, 0.04296875, 591.4624, 0.0010761514595, 146, 235.9296, 0.00211927625868, 93),
    (0.1, 1e-6, 0.1, 2, False, 112, 0.0859375, 147.8656, 0.004304605838, 65, 58.9824, 0.00847710503472, 42),
    (0.1, 1e-6, 0.1, 2, False, 144, 0.021484375, 2365.8496, 0.000269037864875, 284, 943.7184, 0.00052981906467, 180),
    (0.5, 1e-9, 0.05, 2, False, 64, 0.6875, 0.5776, 0.924733000779, 4, 0.9216, 0.542534722222, 7),
    (0.5, 1e-9, 0.05, 2, False, 128, 0.04296875, 147.8656, 0.00361223828429, 82, 235.9296, 0.00211927625868, 107),
    (1, 1e-6, 0.3, 2, False, 96, 0.171875, 104.8576, 0.00846099853516, 58, 14.7456, 0.0339084201389, 22),
    (1, 1e-6, 0.1, 1, False, 96, 0.171875, 9.2416, 0.0577958125487, 16, 3.6864, 0.135633680556, 11),
    (1, 1e-6, 0.1, 1, True, 64, 0.6875, 0.5776, 1.10197909453, 3, 0.2304, 2.17013888889, 3),
    (1, 1e-6, 0.1, 1, True, 128, 0.04296875, 147.8656, 0.004304605838, 70, 58.9824, 0.00847710503472, 45),
    (0.01, 1e-10, 0.1, 2, False, 112, 0.0859375, 147.8656, 0.004304605838, 79, 58.9824, 0.00847710503472, 50),
    (0.01, 1e-10, 0.1, 2, False, 144, 0.021484375, 2365.8496, 0.000269037864875, 335, 943.7184, 0.00052981906467, 212),
]


@pytest.mark.parametrize(
    ("rho", "delta", "error", "factor", "replaced", "number", *["_"] * 7)[:6], [v[:6] for v in VECTORS]
)
def test_scales_prices_and_margins_match_the_theorem(rho, delta, error, factor, replaced, number):
    expected = next(v[6:] for v in VECTORS if v[:6] == (rho, delta, error, factor, replaced, number))
    gamma, variance, price, margin, bound_variance, bound_price, reach = expected
    level = theorem.levels(error, factor=factor, replaced=replaced)[number - theorem.LOWEST]
    step, bound = level.steps[0], level.outside
    assert level.gamma == pytest.approx(gamma, rel=1e-12)
    assert (step.sigma**2, bound.sigma**2) == pytest.approx((variance, bound_variance), rel=1e-12)
    assert (step.price / UNIT, bound.price / UNIT) == pytest.approx((price, bound_price), rel=1e-11)
    deltas = theorem.deltas([step.price, bound.price], rho, delta)
    assert deltas == pytest.approx([delta * price / rho, delta * bound_price / rho], rel=1e-11)
    assert theorem.margin(step.sigma, deltas[0]) == margin
    assert theorem.reach(bound.sigma, deltas[1]) == reach


@pytest.mark.parametrize("factor", [1, 2])
def test_every_price_covers_its_scales(factor):
    for level in theorem.levels(0.1, factor=factor, replaced=False):
        for step in level.steps:
            exact = Fraction(level.gamma) ** 2 / 8 + 1 / (2 * Fraction(step.sigma) ** 2)
            assert exact <= Fraction(step.price, UNIT) <= exact + Fraction(1, UNIT)
        assert Fraction(level.outside.price, UNIT) >= 1 / (2 * Fraction(level.outside.sigma) ** 2)


def test_no_share_of_delta_exceeds_its_share_of_rho():
    prices = [level.steps[0].price for level in theorem.levels(0.1, factor=2, replaced=False)]
    for rho, delta in [(0.003, 1e-4), (1.0, 1e-6), (30.0, 1e-15)]:
        for price, share in zip(prices, theorem.deltas(prices, rho, delta), strict=True):
            assert Fraction(share) <= Fraction(delta) * price / (Fraction(rho) * UNIT)


@given(st.integers(1, 2**36))
def test_octaves_match_logarithms(number):
    assert abs(theorem.octaves(number) - 256 * math.log2(number)) <= 0.5 + 1e-9


@settings(max_examples=80, deadline=None)
@given(
    counts=st.lists(st.integers(0, 3000) | st.integers(0, 40), max_size=40),
    slack=st.one_of(st.none(), st.integers(0, 5)),
    more=st.one_of(st.none(), st.integers(0, 2000)),
    k_bar=st.integers(1, 12),
    most=st.sampled_from([3, 1000]),
    rho=st.sampled_from([0.05, 1.0, 8.0]),
    error=st.sampled_from([0.03, 0.1, 0.5]),
    start=st.integers(300, 4000),
    seed=st.integers(0, 2**64 - 1),
)
def test_rust_and_python_release_the_same_rows(counts, slack, more, k_bar, most, rho, error, start, seed):
    counts = np.array(sorted(counts, reverse=True), dtype=np.int64)
    users = 0 if more is None else int(counts.max(initial=0)) + more
    factor = 1 if more is None else 2
    noisy = 0 if more is None else users + seed % 20 - 10
    limit = None if slack is None else len(counts) + slack
    levels = theorem.levels(error, factor=factor, replaced=False)
    deltas = theorem.deltas([step.price for level in levels for step in level.steps], rho, 1e-6)
    bounds = theorem.deltas([level.outside.price for level in levels], rho, 1e-6)
    budget = int(rho * UNIT)
    setting = (theorem.LOWEST, budget, k_bar, most, factor, users, noisy, start, start + 256)
    plan = Plan(
        levels, theorem.LOWEST, deltas, bounds, budget, k_bar, most, factor, users, noisy,
        theorem.margin, theorem.reach, theorem.octaves, start, start + 256,
    )  # fmt: skip
    ours, same_rng = seeded_rng(seed), seeded_rng(seed)
    rust = _core.confirm(counts, limit, _core.Levels(levels, deltas, bounds), setting, ours)
    python = confirm(counts, limit, plan, same_rng)
    assert [np.asarray(part).tolist() for part in rust] == [np.asarray(part).tolist() for part in python]
    assert ours.bits64() == same_rng.bits64()


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 3000) | st.integers(0, 40), max_size=40),
    more=st.one_of(st.none(), st.integers(0, 2000)),
    k_bar=st.integers(1, 12),
    rho=st.sampled_from([0.05, 1.0, 8.0]),
    pause=st.floats(0, 1),
    start=st.integers(300, 4000),
    seed=st.integers(0, 2**64 - 1),
)
def test_a_paused_release_goes_on_as_if_it_had_not_paused(counts, more, k_bar, rho, pause, start, seed):
    counts = np.array(sorted(counts, reverse=True), dtype=np.int64)
    users, factor = (0, 1) if more is None else (int(counts.max(initial=0)) + more, 2)
    levels = theorem.levels(0.1, factor=factor, replaced=False)
    deltas = theorem.deltas([step.price for level in levels for step in level.steps], rho, 1e-6)
    bounds = theorem.deltas([level.outside.price for level in levels], rho, 1e-6)
    budget = int(rho * UNIT)
    setting = (theorem.LOWEST, budget, k_bar, 1000, factor, users, users, start, start + 256)
    plan = Plan(
        levels, theorem.LOWEST, deltas, bounds, budget, k_bar, 1000, factor, users, users,
        theorem.margin, theorem.reach, theorem.octaves, start, start + 256,
    )  # fmt: skip
    made = _core.Levels(levels, deltas, bounds)
    share = int(pause * budget)

    def rust(rng, **more):
        return _core.confirm(counts, None, made, setting, rng, **more)

    def python(rng, **more):
        return confirm(counts, None, plan, rng, **more)

    found = {}
    for name, run in (("rust", rust), ("python", python)):
        whole, rng = run(seeded_rng(seed)), seeded_rng(seed)
        part = run(rng, pause=share)
        assert part[3] <= share or part[-1] != "pause"
        given = part if name == "python" else part[:-1]
        ended = run(rng, resumed=given) if part[-1] == "pause" else part
        assert [np.asarray(one).tolist() for one in ended] == [np.asarray(one).tolist() for one in whole]
        found[name] = [np.asarray(one).tolist() for one in part]
    assert found["rust"] == found["python"]


def test_a_release_of_other_counts_is_not_resumed():
    counts, levels = np.array([900, 500, 400], np.int64), theorem.levels(0.1, factor=1, replaced=False)
    made = _core.Levels(
        levels,
        theorem.deltas([step.price for level in levels for step in level.steps], 1.0, 1e-6),
        theorem.deltas([level.outside.price for level in levels], 1.0, 1e-6),
    )
    setting = (theorem.LOWEST, UNIT, 2, 1000, 1, 0, 0, 2600, 2856)
    one, state = np.zeros(1, np.int64), (2600, 0, 1 << 40)
    for rows, scales in ([3], [0]), ([2], [0]), ([-1], [0]), ([0], [-1]), ([0], [10**6]), ([0, 0], [0, 0]), ([0], []):
        given = (np.array(rows, np.int64), np.zeros(len(rows), np.int64), np.array(scales, np.int64), 0, 0, state)
        with pytest.raises(ParameterError, match="resumed"):
            _core.confirm(counts, None, made, setting, seeded_rng(1), resumed=given)
    assert len(_core.confirm(counts, None, made, setting, seeded_rng(1), resumed=(one, one, one, 0, 0, state))[0])


@pytest.mark.parametrize("rho", [0.001, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("error", [0.005, 0.1, 0.5])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-10])
@pytest.mark.parametrize("factor", [1, 2])
def test_the_noise_of_every_affordable_step_is_bounded_by_the_least_confirmed_count(rho, error, delta, factor):
    quantile, checked = -NormalDist().inv_cdf(delta), 0
    for level in theorem.levels(error, factor=factor, replaced=False)[::5]:
        for step in level.steps:
            if step.price <= rho * UNIT:
                (share,) = theorem.deltas([step.price], rho, delta)
                checked += 1
                assert theorem.margin(step.sigma, share) + 2 >= quantile * step.sigma
    assert checked > 100


@pytest.mark.parametrize("rho", [0.03, 0.5, 8.0])
@pytest.mark.parametrize("error", [0.02, 0.1, 0.5])
def test_sigma_is_usually_near_the_target_and_at_most_a_quarter_of_the_count(rho, error):
    share, shares = min(0.475 * error, 0.08), []
    tables = [(zipf(), 70_000), (np.full(300, 400), 9_000), (np.full(3, 2_000), 9_000), (np.full(500, 20), 4_000)]
    for seed, (counts, users) in enumerate(tables * 3):
        for known in (users, None):
            mechanism = ConfirmedCounts(rho=rho, delta=1e-6, relative_error=error)
            release = mechanism.release(histogram(counts, known), rng=seeded_rng(seed))
            shares += (release.sigmas / release.counts).tolist()
    assert len(shares) > 20
    assert max(shares) <= 0.25
    assert 0.75 * share <= np.median(shares) <= 1.35 * share
    # The level, and not the count, determines the noise: so no multiple of the target bounds sigma.
    assert max(shares) > share


def zipf(items=3000, users=60_000, seed=1):
    return np.sort(np.random.default_rng(seed).poisson(users / np.arange(1, items + 1)))[::-1]


def histogram(counts, users=None, complete=True):
    return Histogram.from_counts(list(range(len(counts))), counts, l0=None, linf=1, complete=complete, users=users)


@pytest.mark.parametrize("users", [None, 150_000])
def test_spent_covers_the_published_scales(users):
    mechanism = ConfirmedCounts(rho=1.0, delta=1e-6)
    release = mechanism.release(histogram(zipf(), users))
    factor = 1 if users is None else 2
    counts = float((1 / (2 * (factor * release.sigmas) ** 2)).sum())
    assert counts < release.spent.rho <= 1.0
    assert 0 < release.spent.delta <= 1e-6
    assert release.spent.delta == pytest.approx(1e-6 * release.spent.rho, rel=1e-9)


def test_a_known_number_of_users_releases_more_items():
    counts = zipf()
    mechanism = ConfirmedCounts(rho=0.5, delta=1e-6)
    with_users = mechanism.release(histogram(counts, 150_000), rng=seeded_rng(1))
    without = mechanism.release(histogram(counts), rng=seeded_rng(1))
    assert len(with_users) > 1.2 * len(without)
    errors = np.array([n / counts[item] - 1 for item, n in with_users])
    assert 0.03 < float(np.sqrt((errors**2).mean())) < 0.066
    assert (abs(errors) > 0.1).mean() < 0.11


def test_too_many_similar_items_end_the_release():
    release = ConfirmedCounts(rho=1.0, delta=1e-6, k_bar=10).release(histogram([900] * 40, 1000), rng=seeded_rng(1))
    assert len(release) == 0
    assert any("a larger k_bar" in note for note in release.notes)
    assert release.spent.rho < 0.5


def test_a_stop_by_noise_alone_is_not_stated_as_a_fact():
    notes = ConfirmedCounts(rho=1.0, delta=1e-6).release(histogram([1], 1), rng=seeded_rng(224)).notes
    (stop,) = [note for note in notes if "k_bar" in note]
    assert "may be nearly as common" in stop
    assert "or it is noise alone" in stop


def test_a_cut_histogram_ends_before_a_missing_count():
    release = ConfirmedCounts(rho=5.0, delta=1e-6, k_bar=3).release(
        histogram([90_000, 80_000, 70_000, 10, 9], 150_000, complete=False), rng=seeded_rng(1)
    )
    assert release.stopped_early
    assert len(release) <= 2


def test_a_number_of_users_below_a_count_is_refused():
    for users in (8, -1, 2.5, 2**36):
        with pytest.raises(ParameterError, match="users"):
            histogram([9, 3], users)


@pytest.mark.parametrize("rho", [0.003, 0.1, 30])
@pytest.mark.parametrize("delta", [1e-4, 1e-15])
@pytest.mark.parametrize("error", [0.02, 0.1, 0.3])
def test_extreme_parameters_release_within_rho(rho, delta, error):
    mechanism = ConfirmedCounts(rho=rho, delta=delta, relative_error=error)
    for users in (None, 150_000):
        release = mechanism.release(histogram(zipf(), users), rng=seeded_rng(2))
        assert release.spent.rho <= rho


def test_release_chance_grows_with_the_count():
    mechanism = ConfirmedCounts(rho=0.1, delta=1e-6)
    chances = [mechanism.release_chance(users) for users in (1, 10, 100, 1_000, 100_000)]
    assert chances == sorted(chances)
    assert chances[0] < 1e-3
    assert chances[-1] > 0.99


def test_a_release_states_the_number_of_users():
    mechanism, counts = ConfirmedCounts(rho=1.0, delta=1e-6), zipf()
    table = histogram(counts, 70_000)
    users, deviation = np.array([mechanism.release(table, rng=seeded_rng(seed)).users for seed in range(40)]).T
    assert np.all(abs(users - 70_000) < 6 * deviation + 1)
    assert 0.5 < np.std((users - 70_000) / deviation) < 1.6
    assert mechanism.release(histogram(counts)).users is None
    (note,) = [note for note in mechanism.release(histogram(counts, 70_000)).notes if "number of users" in note]
    assert "Half of the error of this number" in note


# The largest count and the exponent of Zipf's law; the items and the smallest count at rho 0.1, 0.5 and 1.
FORECASTS = [
    (10**3, 1.0, [(10, 100), (20, 50), (27, 37)]),
    (10**4, 0.8, [(125, 210), (241, 124), (318, 99)]),
    (10**4, 1.0, [(65, 153), (116, 86), (149, 67)]),
    (10**5, 1.0, [(332, 301), (577, 173), (730, 136)]),
    (10**6, 1.0, [(1589, 629), (2730, 366), (3445, 290)]),
    (10**6, 0.5, [(52_850, 4349), (65_536, 3906), (65_536, 3906)]),
]


@pytest.mark.parametrize(("largest", "exponent", "expected"), FORECASTS)
def test_a_forecast_matches_the_formula(largest, exponent, expected):
    found = [theorem.forecast(rho, 0.1, largest, exponent) for rho in (0.1, 0.5, 1.0)]
    assert np.array(found) == pytest.approx(np.array(expected), abs=1)


@pytest.mark.parametrize(("rho", "largest"), [(0.1, 30_000), (1.0, 3_000), (1.0, 100_000), (10.0, 3_000)])
def test_a_release_has_about_as_many_items_as_forecast(rho, largest):
    mechanism = ConfirmedCounts(rho=rho, delta=1e-6)
    counts = np.floor(largest / np.arange(1, 20_001)).astype(int)
    items, smallest = mechanism.forecast(largest)
    release = mechanism.release(histogram(counts, 2 * largest), rng=seeded_rng(3))
    assert items / 1.2 <= len(release) <= 1.2 * items
    assert smallest / 1.3 <= np.quantile(counts[release.items], 0.05) <= 1.3 * smallest


def test_a_forecast_has_at_most_k_bar_items():
    assert ConfirmedCounts(rho=1.0, delta=1e-6, k_bar=50).forecast(10**6) == (50, 20_000)


class TestConfirmedCountsReplaced(MechanismContract):
    def mechanism(self):
        return Replacement.from_rho(ConfirmedCounts, rho=0.5, delta=1e-6, k_bar=50)


def test_replacement_ignores_the_number_of_users():
    counts = zipf()
    whole = ConfirmedCounts(rho=1.0, delta=1e-6)
    replaced = Replacement(mechanism=whole)
    assert replaced.guarantee == dataclasses.replace(whole.guarantee, neighbours="replaced")
    release = replaced.release(histogram(counts, 70_000), rng=seeded_rng(1))
    assert release.items == replaced.release(histogram(counts), rng=seeded_rng(1)).items
    assert release.users is None
    plain = whole.release(histogram(counts), rng=seeded_rng(1))
    assert 15 < len(release) < len(plain)
    assert replaced.release_chance(10) < replaced.release_chance(100)


def test_a_note_says_if_the_number_of_users_is_unknown():
    mechanism = ConfirmedCounts(rho=1.0, delta=1e-6)
    for users, noted in ((None, True), (20_000, False)):
        given = {} if users is None else {"users": users}
        table = Histogram.from_counts(["a"], [9_000], l0=None, linf=1, complete=True, **given)
        assert any("does not know the number of users" in note for note in mechanism.release(table).notes) is noted
        replaced = Replacement(mechanism=mechanism).release(table)
        assert not any("does not know" in note for note in replaced.notes)


def test_a_forecast_knows_what_a_small_delta_confirms():
    wide = ConfirmedCounts(rho=1.0, delta=1e-6).forecast(10**6)[0]
    narrow = ConfirmedCounts(rho=1.0, delta=1e-30).forecast(10**6)[0]
    assert 0.5 * wide < narrow < 0.9 * wide
    assert ConfirmedCounts(rho=1.0, delta=1e-100).forecast(10**6)[0] == 0
    for largest, exponent in ((0, 1.0), (10, 0.0), (10, float("nan"))):
        with pytest.raises(ParameterError):
            ConfirmedCounts(rho=1.0, delta=1e-6).forecast(largest, exponent)


def test_a_chance_tries_all_choices_of_noise():
    mechanism = ConfirmedCounts(rho=1.0, delta=1e-10, relative_error=0.17)
    assert mechanism.release_chance(10_000) > 0.9


@pytest.mark.parametrize(("delta", "k_bar", "reason"), [(1e-100, 2**14, "raise delta"), (1e-6, 2, "larger k_bar")])
def test_a_note_names_why_no_further_count_is_confirmed(delta, k_bar, reason):
    mechanism = ConfirmedCounts(rho=1.0, delta=delta, k_bar=k_bar)
    notes = mechanism.release(histogram([1000] * 40, 1500), rng=seeded_rng(1)).notes
    assert any(reason in note for note in notes)
