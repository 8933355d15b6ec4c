"""Estimates of true counts from weighted counts and medians of bands."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.theorems import calibration
from discreet.theorems.calibration import Band, Measured

counts = st.lists(st.floats(1, 1e6), max_size=400).map(lambda values: np.sort(np.array(values))[::-1])


@given(counts)
def test_bands_cover_all_items_once(values):
    made = calibration.bands(values)
    assert [band.start for band in made] == [0, *(band.stop for band in made[:-1])][: len(made)]
    assert (made[-1].stop if made else 0) == len(values)
    assert all(band.stop - band.start >= 24 for band in made) or len(made) == 1
    assert all(band.centre == np.median(values[band.start : band.stop]) for band in made)


def test_bands_have_a_ratio_of_about_1_6():
    values = 1000 * 1.001 ** -np.arange(3000.0)
    made = calibration.bands(values)
    ratios = [values[band.start] / values[band.stop - 1] for band in made]
    assert ratios[:-1] == pytest.approx([1.6] * (len(made) - 1), rel=0.002)
    assert len(made) == pytest.approx(3000 * math.log(1.001) / math.log(1.6), abs=1)


@given(st.integers(1, 5000))
def test_the_ranks_of_both_ends_are_symmetric(size):
    low, high = calibration.end_ranks(size)
    assert 0 <= low <= high < size
    assert low == size - 1 - high


@given(counts, st.floats(0.5, 20))
def test_offsets_are_whole_numbers_below(values, ratio):
    found = calibration.offsets(values, ratio)
    assert np.all(found <= ratio * values)
    assert np.all(found + 1 > ratio * values - 1e-6)


def test_a_selected_count_is_corrected_by_its_mean():
    rng = np.random.default_rng(1)
    truth, sigma, threshold = 10 * (1 - rng.random(2_000_000)) ** (-1 / 1.5), 6.0, 32.0
    noisy = truth + sigma * rng.standard_normal(len(truth))
    truth, noisy = truth[noisy > threshold], noisy[noisy > threshold]
    values, sigmas = calibration.unbiased(noisy, sigma, threshold)
    for low, high in ((32, 36), (36, 45), (45, 70)):
        near = (noisy > low) & (noisy < high)
        error = (values - truth)[near]
        assert abs(error.mean()) < 0.25 * abs((noisy - truth)[near].mean())
        assert error.std() == pytest.approx(sigmas[near].mean(), rel=0.05)


def test_a_correction_is_at_most_half():
    values, sigmas = calibration.unbiased(np.array([10.0, 9.5, 9.1]), 8.0, 9.0)
    assert values == pytest.approx([5.0, 4.75, 4.55])
    assert np.all(sigmas > 8)
    assert len(calibration.unbiased(np.zeros(0), 1.0, 5.0)[0]) == 0


def measure(values, truth, sigma, rng):
    """Return the bands of descending values, and their measured values with noise of scale `sigma`."""
    made, found, ratio = calibration.bands(values), [], 1.0

    def of_rank(numbers, rank, scale):
        return float(np.sort(numbers)[rank] + scale * rng.standard_normal())

    for band in made:
        own, exact = values[band.start : band.stop], truth[band.start : band.stop]
        scale = calibration.least_sigma(sigma, band.centre)
        median = of_rank(exact - calibration.offsets(own, ratio), len(own) // 2, scale)
        ratio = calibration.ratio_of(ratio, median, band.centre)
        rest = exact - calibration.offsets(own, ratio)
        ends = [of_rank(rest, rank, 2 * scale) for rank in calibration.end_ranks(len(own))]
        found.append(Measured(ratio, *ends, scale))
    return made, found


def generated(curve, spread, sigma, seed, items=2000):
    """Return weighted counts with noise, descending, and true counts."""
    rng = np.random.default_rng(seed)
    exact = np.minimum(40 * (1 - rng.random(items)) ** (-1 / 1.2), 600)
    truth = np.round(exact * curve(exact) * np.exp(spread * rng.standard_normal(items) - spread**2 / 2))
    noisy = exact + sigma * rng.standard_normal(items)
    order = np.argsort(-noisy)
    return noisy[order], truth[order], rng


CURVES = {
    "constant": lambda exact: np.full_like(exact, 1.7),
    "one": lambda exact: np.ones_like(exact),
    "falling": lambda exact: 1 + 2 * (40 / exact) ** 0.5,
    "rising": lambda exact: 1.2 + 0.3 * np.log(exact / 40),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("spread", [0.0, 0.15])
@pytest.mark.parametrize("sigma", [3.0, 12.0])
def test_estimates_are_unbiased_and_covered(name, spread, sigma):
    inside, errors, widths = [], [], []
    for seed in range(12):
        values, truth, rng = generated(CURVES[name], spread, 4.0, seed)
        made, found = measure(values, truth, sigma, rng)
        curve = calibration.curve(made, found, 4.0, 2.0)
        counts, sigmas = calibration.estimates(values, np.full(len(values), 4.0), curve)
        inside.append((abs(counts - truth) <= 1.96 * sigmas).mean())
        errors.append(np.median(counts / truth))
        widths.append(np.median(sigmas / counts))
    assert np.mean(inside) >= 0.9
    # Noisy medians, of up to 27 % of a count, are drawn towards a smooth curve.
    assert np.mean(errors) == pytest.approx(1, abs=0.05 if sigma < 10 else 0.15)
    assert np.mean(widths) < 0.1 + 0.01 * sigma + 1.5 * spread


def test_the_spread_is_measured():
    for spread in (0.1, 0.3):
        values, truth, rng = generated(CURVES["constant"], spread, 0.5, 5)
        made, found = measure(values, truth, 0.5, rng)
        curve = calibration.curve(made, found, 0.5, 0.0)
        # The width of a band adds to the spread.
        assert spread < np.median(curve.spreads) < 1.7 * spread


def test_a_band_of_its_own_keeps_its_spread():
    made = [Band(0, 100, 1000.0), Band(100, 200, 600.0), Band(200, 300, 375.0)]
    wide = [Measured(1.0, -40.0, 40.0, 3.0), Measured(1.0, -24.0, 24.0, 3.0), Measured(1.0, -15.0, 700.0, 3.0)]
    curve = calibration.curve(made, wide, 0.5, 0.0)
    assert curve.spreads[0] > 0.85
    assert curve.spreads[2] < 0.3


def test_the_error_of_users_is_in_every_ratio():
    made, found = [Band(0, 300, 80.0)], [Measured(2.0, -1.0, 1.0, 0.1)]
    without, with_error = (calibration.curve(made, found, 1.0, error).errors[0, 0] for error in (0.0, 20.0))
    assert with_error == pytest.approx(without + (20 / 160) ** 2, rel=0.01)
    made = [Band(300 * place, 300 * place + 300, 3000 / 1.6**place) for place in range(8)]
    few, many = (calibration.curve(made, found * 8, 1.0, error).errors for error in (0.0, 20.0))
    assert np.all(np.diag(many) > np.diag(few))


def test_one_band_has_one_ratio():
    made, found = [Band(0, 30, 100.0)], [Measured(1.5, -30.0, 30.0, 5.0)]
    curve = calibration.curve(made, found, 8.0, 1.0)
    counts, sigmas = calibration.estimates(np.array([200.0, 100.0, 50.0]), np.full(3, 8.0), curve)
    assert counts == pytest.approx([300, 150, 75])
    # Below the band the ratio may change.
    assert sigmas[2] / counts[2] > sigmas[1] / counts[1]


@settings(max_examples=40, deadline=None)
@given(
    ratios=st.lists(st.floats(0.5, 1e4), min_size=1, max_size=12),
    ends=st.floats(-1e6, 1e6),
    sigma=st.floats(1e-3, 1e6),
    deviation=st.floats(0, 1e6),
)
def test_any_measured_values_give_finite_estimates(ratios, ends, sigma, deviation):
    centres = 10_000 / 1.6 ** np.arange(len(ratios))
    made = [Band(24 * place, 24 * place + 24, float(centre)) for place, centre in enumerate(centres)]
    found = [Measured(ratio, -ends, ends, sigma) for ratio in ratios]
    curve = calibration.curve(made, found, 1.0, deviation)
    values = np.geomspace(20_000, 1, 50)
    counts, sigmas = calibration.estimates(values, np.ones(50), curve)
    assert np.all(np.isfinite(counts))
    assert np.all(counts > 0)
    assert np.all(np.isfinite(sigmas))
    assert np.all(sigmas > 0)


def test_scores_of_ends_are_normal():
    rng = np.random.default_rng(3)
    for size in (24, 100, 1000):
        _, high = calibration.end_ranks(size)
        ends = np.sort(rng.standard_normal((4000, size)), axis=1)[:, high]
        assert np.mean(ends) == pytest.approx(calibration._score(size), rel=0.03)
    assert calibration._score(1) == 0.5
    assert calibration._score(10**6) == pytest.approx(NormalDist().inv_cdf(0.975), rel=1e-3)
