"""Lower bounds of delta from runs of a mechanism."""

import math

import numpy as np
import pytest

from discreet import GaussianThreshold, GumbelTopK, LaplaceThreshold, PrivateCountRelease, _core
from discreet.audit import trial
from discreet.audit.findings import hockey_stick
from discreet.audit.sampled import _least_chance
from discreet.errors import ParameterError
from discreet.laws import joint_law
from discreet.testing import seeded_rng

HONEST = [
    LaplaceThreshold(scale=1.0, delta=0.1, l0=2),
    GaussianThreshold(sigma=12.0, delta=0.1, l0=1),
    GumbelTopK(k=2, scale=1.0, delta=0.1, k_bar=3),
    PrivateCountRelease(rho=0.6, delta=0.1, epsilon_star=1.0, delta_star=0.05, k_bar=2),
]


@pytest.mark.parametrize("mechanism", HONEST, ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize("pair", [({}, {"a": 1}), ({"a": 9, "b": 4}, {"a": 10, "b": 4})])
def test_trials_of_correct_mechanisms_find_no_violation(mechanism, pair):
    found = trial(mechanism, *pair, runs=1500, rng=seeded_rng(3))
    assert not found.violates, str(found)
    p, q = joint_law(mechanism, *pair)
    exact = max(hockey_stick(p, q, found.epsilon), hockey_stick(q, p, found.epsilon))
    assert found.delta <= exact


@pytest.mark.parametrize("runs", [20_000, pytest.param(40_000, marks=pytest.mark.statistical)])
def test_the_bound_is_at_least_80_percent_of_the_delta(runs):
    mechanism = LaplaceThreshold(scale=1.0, delta=0.1, l0=1)
    found = trial(mechanism, {}, {"a": 1}, runs=runs, rng=seeded_rng(4))
    p, q = joint_law(mechanism, {}, {"a": 1})
    assert 0.8 * hockey_stick(q, p, found.epsilon) < found.delta <= hockey_stick(q, p, found.epsilon)


class Careless(LaplaceThreshold):
    """A mechanism that publishes all counts, without a threshold."""

    def _run(self, histogram, rng):
        noisy = histogram._counts() + rng.sample(self.noise, len(histogram._counts()))
        rows = np.arange(len(noisy))
        return self._published(histogram, rows, rng, noisy=noisy, sigmas=np.ones(len(rows)))


class Exposed(GaussianThreshold):
    """A mechanism with a quarter of the stated noise. The exact law of its parameters does not contain this error."""

    def _run(self, histogram, rng):
        counts = histogram._counts()
        noisy = counts + rng.sample(_core.Noise.discrete_gaussian(self.sigma / 4), len(counts))
        rows = np.flatnonzero(noisy > self.threshold.value)
        return self._published(histogram, rows, rng, noisy=noisy[rows], sigmas=np.ones(len(rows)))


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (Careless(scale=1.0, delta=1e-3, l0=1), ({}, {"a": 1})),
        (Exposed(sigma=8.0, delta=1e-3, l0=1), ({"a": 90}, {"a": 91})),
    ],
)
def test_trials_find_code_that_breaks_its_guarantee(mechanism, pair):
    found = trial(mechanism, *pair, runs=10_000, rng=seeded_rng(5))
    assert found.violates, str(found)
    assert "VIOLATION" in str(found)


def test_probability_bounds_match_clopper_and_pearson():
    for hits, runs in ((1, 100), (50, 100), (100, 100), (3, 500)):
        low = _least_chance(hits, runs, 0.01)
        tail = math.fsum(math.comb(runs, k) * low**k * (1 - low) ** (runs - k) for k in range(hits, runs + 1))
        assert tail == pytest.approx(0.01, rel=1e-6)
    assert _least_chance(0, 10, 0.01) == 0


@pytest.mark.parametrize("bad", [{"runs": 10}, {"confidence": 1.0}, {"confidence": 0.2}])
def test_parameters_out_of_range_are_refused(bad):
    with pytest.raises(ParameterError):
        trial(HONEST[0], {}, {"a": 1}, **bad)
