"""Every sampler is compared with its law; the same tests must reject samplers that are broken on purpose.

The small version runs with all other tests. The full version draws 10^8 values for each law. It is selected with
`-m statistical` and writes its p-values to `benches/record/goodness.json`.
"""

import math
import os
import runpy
from pathlib import Path

import numpy as np
import pytest
from goodness import gaussian, laplace, p_values, truncated

from discreet import _core
from discreet.testing import seeded_rng

FAMILY_ALPHA = 1e-6
REJECTED = 1e-9
BENCHES = Path(__file__).resolve().parents[2] / "benches"

SIGMAS = [
    *(1e-3, 0.1, 0.25, 0.5, math.sqrt(2 / 3), 1.0, 1.5, math.sqrt(22 / 7), 2.5, 7.3, 10.0, 33.3, 100.0, 517.0, 1000.0),
    *(1023.99, 1024.0, 4605.2, 50_000.0, math.sqrt(1e12 + 1 / 3), 3e7, 1e9),
]
SCALES = [
    *(2.0**-10, 0.1, 0.5, 2 / 3, 1.0, math.e, 22 / 7, 10.0, 33.3, 100.0, 517.0, 1000.0, 1023.99, 1024.0, 5000.0),
    *(2.0**16, 2.0**17, 1e6 + 1 / 3, 2.0**30, 2.0**40),
]
BOUNDS = [
    *(
        (2.0**-10, 3),
        (0.5, 1),
        (0.5, 12),
        (2 / 3, 0),
        (1.0, 11),
        (2.0, 4),
        (22 / 7, 40),
        (10.0, 109),
        (10.0, 3),
        (33.3, 400),
    ),
    *(
        (100.0, 1000),
        (1000.0, 100),
        (1000.0, 12_000),
        (1024.0, 9999),
        (1e6, 1500),
        (2.0**20, 12_345_678),
        (2.0**30, 65),
    ),
    *((2.0**40, 2**20), (2.0**40, 2**42), (2.0**40, 2**45)),
]
LAWS = (
    [("discrete_gaussian", (sigma,), gaussian) for sigma in SIGMAS]
    + [("discrete_laplace", (scale,), laplace) for scale in SCALES]
    + [("truncated_geometric", bound, truncated) for bound in BOUNDS]
)


def sample(name, parameters, rng):
    law = getattr(_core.Noise, name)(*parameters)
    return lambda size: rng.sample(law, size)


def smallest(results):
    """Return the least p-value times the number of tests, and the name of the test with this p-value."""
    test = min(results, key=results.get)
    return results[test] * len(results), test


def run(n, seed):
    table = {}
    for number, (name, parameters, law) in enumerate(LAWS):
        rng = seeded_rng(seed + number) if seed is not None else _core.Rng()
        table[law(*parameters).name] = p_values(law(*parameters), sample(name, parameters, rng), n)
    return table


def assert_good(table):
    family = sum(len(results) for results in table.values())
    for law, results in table.items():
        for test, p in results.items():
            assert p > FAMILY_ALPHA / family, f"{law}, {test}: p = {p:.3g}"


def test_each_sampler_has_at_least_20_parameter_sets():
    assert min(len(SIGMAS), len(SCALES), len(BOUNDS)) >= 20


def test_every_sampler_follows_its_law():
    assert_good(run(1_000_000, seed=1))


@pytest.mark.statistical
def test_every_sampler_follows_its_law_at_full_size():
    draws = int(float(os.environ.get("DISCREET_DRAWS", "1e8")))
    table = run(draws, seed=None)
    assert_good(table)
    if draws >= 10**8:
        ordered = sorted(p for results in table.values() for p in results.values())
        record = {
            "draws": draws,
            "tests": len(ordered),
            "family_alpha": FAMILY_ALPHA,
            "smallest_p_times_tests": ordered[0] * len(ordered),
            "p_values": {
                law: {test: float(f"{p:.4g}") for test, p in results.items()} for law, results in table.items()
            },
        }
        runpy.run_path(str(BENCHES / "records.py"))["write"](BENCHES / "record" / "goodness.json", record)


# Samplers with one defect each, made from correct draws and numpy.

DRAWS = 5_000_000
SCALE, SIGMA = 3.0, 10.0


class Broken:
    """Methods that draw correctly from two laws, and methods that draw with one defect each."""

    def __init__(self, seed=11):
        self.rng, self.numpy = seeded_rng(seed), np.random.default_rng(seed)
        self.kept = np.zeros(0, dtype=np.int64)

    def laplace(self, size):
        return self.rng.sample(_core.Noise.discrete_laplace(SCALE), size)

    def gaussian(self, size):
        return self.rng.discrete_gaussian(SIGMA, size)

    def scale_too_large(self, size):
        return self.rng.discrete_gaussian(SIGMA * 1.005, size)

    def scale_too_small(self, size):
        return self.rng.sample(_core.Noise.discrete_laplace(SCALE / 1.005), size)

    def zero_counted_twice(self, size):
        """Return geometric magnitudes with a fair sign, without rejecting one of the two zeros."""
        return (self.numpy.geometric(-math.expm1(-1 / SCALE), size) - 1) * (1 - 2 * self.numpy.integers(0, 2, size))

    def biased_sign(self, size):
        draws = np.abs(self.gaussian(size))
        return np.where(self.numpy.random(size) < 0.503, draws, -draws)

    def tail_cut_at_four_sigma(self, size):
        draws = self.gaussian(size)
        far = np.abs(draws) > 4 * SIGMA
        draws[far] = np.sign(draws[far]) * int(4 * SIGMA)
        return draws

    def repeated_block(self, size):
        """Return draws in which one of every 64 blocks of 64 draws repeats the previous block."""
        blocks = self.gaussian(size).reshape(-1, 64)
        blocks[63::64] = blocks[62::64]
        return blocks.reshape(-1)

    def dependence_on_the_last(self, size):
        draws = self.gaussian(size)
        again = np.flatnonzero(self.numpy.random(size - 1) < 0.01) + 1
        draws[again] = draws[again - 1]
        return draws

    def modulo_bias(self, size):
        """Return inversions of a 16-bit number reduced modulo 60,000."""
        uniform = (self.numpy.integers(0, 2**16, size) % 60_000 + 0.5) / 60_000
        return self.invert(uniform)

    def few_bits(self, size):
        """Return inversions of a 16-bit uniform number, whose tails are coarse."""
        return self.invert((self.numpy.integers(0, 2**16, size) + 0.5) / 2**16)

    def invert(self, uniform):
        support = np.arange(-200, 201)
        return support[np.searchsorted(gaussian(SIGMA).below(support), uniform)]

    def rounded_continuous(self, size):
        """Return rounded continuous Laplace noise, which does not follow the discrete law."""
        return np.rint(self.numpy.laplace(0, SCALE, size)).astype(np.int64)

    def truncated_continuous(self, size):
        return self.numpy.normal(0, SIGMA, size).astype(np.int64)

    def odd_values_too_rare(self, size):
        draws = self.gaussian(size)
        moved = (draws % 2 == 1) & (self.numpy.random(size) < 0.01)
        return draws + moved

    def one_added_now_and_then(self, size):
        return self.laplace(size) + (self.numpy.random(size) < 0.02)


BROKEN = {
    "scale_too_large": gaussian(SIGMA),
    "scale_too_small": laplace(SCALE),
    "zero_counted_twice": laplace(SCALE),
    "biased_sign": gaussian(SIGMA),
    "tail_cut_at_four_sigma": gaussian(SIGMA),
    "repeated_block": gaussian(SIGMA),
    "dependence_on_the_last": gaussian(SIGMA),
    "modulo_bias": gaussian(SIGMA),
    "few_bits": gaussian(SIGMA),
    "rounded_continuous": laplace(SCALE),
    "truncated_continuous": gaussian(SIGMA),
    "odd_values_too_rare": gaussian(SIGMA),
    "one_added_now_and_then": laplace(SCALE),
}


@pytest.mark.parametrize("defect", BROKEN)
def test_a_broken_sampler_is_rejected(defect):
    p, test = smallest(p_values(BROKEN[defect], getattr(Broken(), defect), DRAWS))
    assert p < REJECTED, f"{test}: {p:.3g}"


def test_the_correct_draws_behind_the_defects_are_accepted():
    for law, draw in [(gaussian(SIGMA), Broken().gaussian), (laplace(SCALE), Broken().laplace)]:
        assert smallest(p_values(law, draw, DRAWS))[0] > FAMILY_ALPHA
