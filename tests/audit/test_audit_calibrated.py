"""Audits of calibrated counts pass, and find wrong prices, wrong laws and releases that do not follow their law."""

import json

import numpy as np
import pytest

from discreet import CalibratedCounts, _core
from discreet.audit import audit, calibrated, trial
from discreet.errors import ParameterError
from discreet.mechanisms.counts.calibrated_counts import CalibratedSteps
from discreet.testing import seeded_rng
from discreet.theorems import calibrated_counts as theorem

MECHANISM = CalibratedCounts(rho=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("given", "pairs"),
    [
        ({"rho": 1.0, "delta": 1e-6}, 30),
        ({"rho": 0.1, "delta": 1e-3}, 30),
        ({"rho": 20.0, "delta": 1e-9}, 30),
        pytest.param({"rho": 1.0, "delta": 1e-2}, 10_000, marks=pytest.mark.statistical),
        pytest.param({"rho": 0.05, "delta": 1e-8, "k_bar": 100}, 1_000, marks=pytest.mark.statistical),
    ],
)
def test_calibrated_counts_keep_their_promise(given, pairs):
    found = audit(CalibratedCounts(**given), pairs=pairs, runs=100, rng=seeded_rng(pairs))
    assert not found.failed, str(found)
    assert 0.2 < found.tightest.ratio <= 1
    # Most releases of all tables weigh items. In the others noise alone hid the weight of rank 20, which is one.
    assert (found.tables, found.releases > 240) == (3, True)
    facts = json.loads(found.to_json())
    assert facts["failed"] is False
    assert [*found.compared] == facts["compared"]
    assert any("confirms the most common items" in limit for limit in facts["cannot_show"])


def test_the_given_epsilon_must_follow_from_the_promise():
    assert audit(MECHANISM, pairs=1, runs=0, dp=(9.0, 1e-5)).guarantee.dp == (9.0, 1e-5)
    with pytest.raises(ParameterError, match="does not imply"):
        audit(MECHANISM, pairs=1, runs=0, dp=(1.0, 1e-6))


def test_a_trial_takes_no_calibrated_counts():
    with pytest.raises(ParameterError, match="use audit"):
        trial(MECHANISM, {"a": 1}, {})


price, threshold, weights = theorem.ordered_price, theorem.threshold_of, theorem.weights_price
# Each entry breaks the fact that its key states.
WRONG = {
    "an order statistic costs its price": {"ordered_price": lambda sigma: price(sigma) // 2},
    "weights cost their price": {"weights_price": lambda sigma, full: weights(sigma, full) // 2},
    "own items have their share of delta": {
        "threshold_of": lambda sigma, full, most, bits, delta: threshold(sigma, full, most, bits, 1.5 * delta),
    },
    "the threshold covers all numbers of items": {
        "threshold_of": lambda sigma, full, most, bits, delta: threshold(sigma, full, full, bits, delta),
    },
    "a user with many items weighs less": {"weight": lambda number, full, bits: 1 << bits},
}


@pytest.mark.parametrize("fact", WRONG)
def test_a_wrong_step_is_found(fact, monkeypatch):
    for name, wrong in WRONG[fact].items():
        monkeypatch.setattr(theorem, name, wrong)
    found = audit(CalibratedCounts(rho=0.1, delta=1e-6), pairs=40, runs=0)
    assert found.violations
    assert "VIOLATION" in str(found)


passed, named = CalibratedSteps._passed, CalibratedSteps._named


def exact(steps, rule, weights):
    rows = np.flatnonzero(weights > rule.value)
    return rows, weights[rows]


def lower(by):
    """Return a release whose threshold is lower by a share of itself."""
    return lambda steps, rule, weights: passed(
        steps, _core.Threshold(_core.Noise.discrete_gaussian(0.77 * 2**26), round(rule.value * (1 - by))), weights
    )


def half_the_noise(steps, rule, weights):
    noisy = weights + (steps.rng.discrete_gaussian(0.38 * 2**26, len(weights)))
    rows = np.flatnonzero((weights > 0) & (noisy > rule.value))
    return rows, noisy[rows]


def also_without_users(steps, rule, weights):
    return passed(steps, rule, weights + (weights == 0) * 2 * rule.value)


LIARS = {
    "exact weights": ("_passed", exact),
    "a lower threshold": ("_passed", lower(0.1)),
    "half the noise": ("_passed", half_the_noise),
    "confirmed items again": ("_passed", also_without_users),
    "weights that are too high": ("_named", lambda steps, weights, *given: named(steps, weights * 2, *given)),
    # Only the reference finds these.
    "another number of users": (
        "_measure_users",
        lambda steps: steps.__dict__.update(noisy_users=steps.noisy_users + 500, precision=2 * steps.precision),
    ),
    "noise of its own price only": (
        "_measured",
        lambda steps, value, users, sigma, bits=0: float(value),
    ),
}

BY_LAW = [*LIARS][:5]


@pytest.mark.parametrize("lie", LIARS)
def test_a_release_that_does_not_follow_its_law_is_found(lie, monkeypatch):
    monkeypatch.setattr(CalibratedSteps, *LIARS[lie])
    runs = 1
    if lie in BY_LAW:  # the law alone, without the reference
        monkeypatch.setattr(calibrated, "_twins", lambda *_: [])
        runs = 300 if lie == "half the noise" else 100
    found = calibrated.audited(MECHANISM, pairs=1, seed=0, dp=None, runs=runs, rng=seeded_rng(5))
    assert not found.violations
    assert found.misfits
    assert "does NOT FOLLOW its exact law" in str(found)
