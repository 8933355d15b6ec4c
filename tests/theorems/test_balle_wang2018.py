"""The exact (epsilon, delta) of Gaussian noise, and of discrete Gaussian noise on fine lattices."""

import math

import numpy as np
import pytest

from discreet.theorems.balle_wang2018 import LatticeGaussian, gaussian_delta, lattice_delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [
        (1, 1e-6, 4.2246788893268),
        (0.1, 1e-6, 36.304690426196),
        (3, 1e-10, 2.0622531789074),
        (0.5, 1e-5, 7.0318266755825),
    ],
)
def test_gaussian_delta_matches_known_values(epsilon, delta, sigma):
    assert gaussian_delta(epsilon, 1 / sigma) == pytest.approx(delta, rel=1e-9)


def test_gaussian_delta_is_rounded_up():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60

    def exact(epsilon, mu):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)

    rng = np.random.default_rng(3)
    for _ in range(300):
        epsilon, mu = float(10 ** rng.uniform(-4, 2)), float(10 ** rng.uniform(-3, 1.3))
        true, found = exact(epsilon, mu), gaussian_delta(epsilon, mu)
        assert true <= found <= min(1.0, true + 1e-9 * mpmath.ncdf(mu / 2 - epsilon / mu) + 1e-299)


def exact_delta(epsilon, sigma, moves):
    """Return a hockey-stick divergence by convolution.

    It is between discrete Gaussian noise on a few numbers and the same noise moved.
    """
    reach = math.ceil(13 * sigma) + max(moves)
    x = np.arange(-reach, reach + 1)
    masses = np.exp(-(x**2) / (2 * sigma**2))
    law = np.ones(1)
    for move in moves:
        spread = np.zeros(2 * reach * move + 1)
        spread[::move] = masses / masses.sum()
        law = np.convolve(law, spread)
    inner = np.arange(len(law)) - len(law) // 2
    losses = (sum(move**2 for move in moves) - 2 * inner) / (2 * sigma**2)
    return float(law @ np.maximum(0, -np.expm1(np.minimum(epsilon - losses, 0))))


MOVES = [(2,), (1, 1), (3, 2), (2, 1, 1), (5, 4), (10,), (4, 4, 4, 4)]


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("sigma", [3.0, 5.0, 12.0])
def test_lattice_delta_bounds_discrete_noise(moves, sigma):
    change = math.sqrt(sum(move**2 for move in moves))
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        bound = lattice_delta(epsilon, [LatticeGaussian(sigma=sigma, change=change, entries=len(moves))])
        assert exact_delta(epsilon, sigma, moves) <= bound * (1 + 1e-9) + 1e-15


def test_gaussian_delta_is_too_small_for_discrete_noise():
    assert exact_delta(1.0, 3.0, (2,)) > 1.01 * gaussian_delta(1.0, 2 / 3)


def test_a_fine_lattice_adds_less_than_one_in_a_thousand():
    part = LatticeGaussian(sigma=4.2246788893268 * 2**26, change=2.0**26, entries=2**32)
    assert 1e-6 < lattice_delta(1.0, [part]) < 1.001e-6
    few = LatticeGaussian(sigma=4.2246788893268 * 2**26, change=2.0**26, entries=100)
    assert lattice_delta(1.0, [few]) < 1e-6 * (1 + 1e-6)


def test_sequential_releases_cost_one_of_the_joint_scale():
    parts = [LatticeGaussian(sigma=scale * 2**28, change=2.0**28, entries=10) for scale in (6.0, 8.0)]
    joint = 1 / math.sqrt(1 / 36 + 1 / 64)
    assert lattice_delta(1.0, parts) == pytest.approx(gaussian_delta(1.0, 1 / joint), rel=1e-6)


def test_distortion_bounds_discrete_over_rounded_masses():
    for sigma in (1.0, 2.0, 5.0):
        reach = math.ceil(20 * sigma)
        x = np.arange(-reach, reach + 1)
        discrete = np.exp(-(x**2) / (2 * sigma**2))
        discrete /= discrete.sum()
        edges = (np.abs(x)[:, None] + np.array([-0.5, 0.5])) / sigma / math.sqrt(2)
        rounded = np.array([math.erfc(low) - math.erfc(high) for low, high in edges]) / 2
        part = LatticeGaussian(sigma=sigma, change=1.0, entries=1)
        seen = rounded > 1e-280
        assert (discrete[seen] <= math.exp(part.distortion) * rounded[seen] * (1 + 1e-12)).all()
