"""Convolution powers, compared with exact fractions, with the stated error bound, and with the reference."""

from fractions import Fraction

import numpy as np
import pytest

from discreet import _core
from discreet.errors import ParameterError
from discreet.reference.compose import compose


def convolved(parts):
    """Return the exact cyclic convolution."""
    size = len(parts[0][0])
    total = [Fraction(1)] + [Fraction(0)] * (size - 1)
    for masses, power in parts:
        for _ in range(power):
            law = [Fraction(float(mass)) for mass in masses]
            total = [sum(total[j] * law[(i - j) % size] for j in range(size)) for i in range(size)]
    return total


@pytest.mark.parametrize("size", [1, 2, 8, 16])
def test_the_error_bound_holds_against_exact_fractions(size):
    rng = np.random.default_rng(size)
    parts = [(rng.dirichlet(np.ones(size)), 3), (rng.dirichlet(np.full(size, 0.1)), 4), (np.eye(size)[size // 2], 1)]
    law, error = _core.compose(parts)
    exact = convolved(parts)
    assert max(abs(Fraction(float(a)) - b) for a, b in zip(law, exact, strict=True)) <= Fraction(error)
    assert 0 < error < 1e-13


def test_the_error_bound_holds_for_20_000_coin_flips():
    chance, runs = 0.3, 20_000
    masses = np.zeros(1 << 15)
    masses[:2] = 1 - chance, chance
    law, error = _core.compose([(masses, runs)])
    # The binomial law by its recurrence of ratios from the mode.
    j = np.arange(1, runs + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((runs - j + 1) / j) + np.log(chance / (1 - chance)))])
    exact = np.exp(logs - logs.max())
    exact /= exact.sum()
    assert np.abs(law[: runs + 1] - exact).max() <= error + 1e-12
    assert error < 1e-10


def derived_bound(parts):
    """Return the derived error: the mean over all outputs for a transform that errs by 6 L u, and its power."""
    u, size = 2.0**-53, len(parts[0][0])
    each = 6 * max(1, size.bit_length() - 1) * u
    sizes, losses = np.ones(size), np.zeros(size)
    for masses, power in parts:
        reach = np.abs(np.fft.fft(masses)) + each * masses.sum()
        sizes *= reach**power
        losses += power * (each * masses.sum() / reach + 3 * u)
    return float(np.mean(sizes * (np.minimum(np.expm1(losses), 2.1) + each)))


@pytest.mark.parametrize(("size", "powers"), [(2, (1,)), (8, (1, 5)), (1024, (3,)), (1 << 15, (40, 7))])
def test_the_error_bound_equals_the_derivation(size, powers):
    # Rounding errors are far below their bound. So a comparison of values cannot detect a missing term of the bound.
    rng = np.random.default_rng(size)
    parts = [(rng.dirichlet(np.full(size, 0.3)), power) for power in powers]
    bound = derived_bound(parts)
    _, error = _core.compose(parts)
    assert bound * (1 - 1e-9) <= error <= bound * (1 + 1e-3) + 1e-300


def test_reference_and_kernel_agree():
    rng = np.random.default_rng(3)
    parts = [(rng.dirichlet(np.ones(4096)), 50), (rng.dirichlet(np.ones(4096)), 7)]
    law, error = _core.compose(parts)
    assert np.abs(law - compose(parts)).max() <= 100 * error


@pytest.mark.parametrize("parts", [[], [(np.ones(3), 1)], [(np.array([np.inf, 0.0]), 1)], [(np.array([-1.0, 2.0]), 1)]])
def test_invalid_distributions_are_refused(parts):
    with pytest.raises(ParameterError, match="power of two"):
        _core.compose(parts)
