"""Composition with rigorous bounds of delta, compared with exact sums, published values and Rényi divergences."""

import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest

from discreet import _core
from discreet.theorems import privacy_losses as losses
from discreet.theorems.privacy_losses import bounded_loss, bounded_masses, bounded_rho, delta_of, response_loss


def exact_delta(reach, power, k, epsilon):
    """Return the exact delta of one (k = 1) or two releases with bounded noise, by enumeration with 40 digits."""
    with mp.workdps(40):
        x = range(1 - reach, reach)
        weight = {v: mp.mpf(reach**2 - v**2) ** power for v in x}
        total = sum(weight.values())
        p = [(weight[v] / total, weight.get(v - 1, mp.mpf(0)) / total) for v in x]
        pairs = p if k == 1 else [(a * c, b * d) for a, b in p for c, d in p]
        return sum(max(mp.mpf(0), a - mp.exp(epsilon) * b) for a, b in pairs)


@pytest.mark.parametrize(
    ("reach", "power", "p0", "edge", "variance"),
    [
        (189, 8, 0.0088319324311756, 1.3595577901744e-18, 1880.0526315789),
        (471, 4, 0.0026124601910828, 8.4574788037529e-13, 20167.363636364),
    ],
)
def test_masses_follow_the_bounded_law(reach, power, p0, edge, variance):
    masses = bounded_masses(reach, power)
    assert masses[0] == pytest.approx(p0, rel=1e-12)
    assert masses[-1] == pytest.approx(edge, rel=1e-12)
    assert 2 * float(masses @ np.arange(reach) ** 2) == pytest.approx(variance, rel=1e-12)


@pytest.mark.parametrize(("reach", "power"), [(3, 1), (6, 2), (15, 4), (40, 3)])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_delta_is_at_most_3_percent_above_the_exact_one(reach, power, k, epsilon):
    exact = float(exact_delta(reach, power, k, epsilon))
    found = delta_of([(bounded_loss(reach, power), k)], epsilon)
    assert exact <= found <= max(exact * 1.03, exact + 1e-12)


@pytest.mark.parametrize(
    ("power", "reach", "k", "epsilon", "known"),
    [(8, 189, 100, 1.0, 9.88e-7), (4, 471, 1000, 1.0, 9.66e-7), (5, 276, 300, 1.0, 9.90e-7)],
)
def test_delta_matches_an_independent_accountant(power, reach, k, epsilon, known):
    assert delta_of([(bounded_loss(reach, power), k)], epsilon, spare=1e-9) == pytest.approx(known, rel=0.01)


@pytest.mark.parametrize(("e", "k", "epsilon"), [(0.1, 10, 0.5), (0.05, 100, 1.0), (0.5, 20, 3.0), (0.01, 3000, 0.7)])
def test_randomised_responses_compose_as_binomials(e, k, epsilon):
    with mp.workdps(40):
        q = mp.exp(e) / (1 + mp.exp(e))
        terms = (
            mp.binomial(k, j) * q**j * (1 - q) ** (k - j) * max(0, 1 - mp.exp(epsilon - (2 * j - k) * mp.mpf(e)))
            for j in range(k + 1)
        )
        exact = float(mp.fsum(terms))
    assert exact <= delta_of([(response_loss(e), k)], epsilon) <= exact * (1 + 1e-6)


def test_different_mechanisms_compose():
    # The joint law has four outcomes and is enumerated.
    a, b = response_loss(0.4), response_loss(0.25)
    exact = sum(
        p * q * max(0.0, 1 - math.exp(0.3 - x - y))
        for p, x in zip(a.masses, a.losses, strict=True)
        for q, y in zip(b.masses, b.losses, strict=True)
    )
    assert exact <= delta_of([(a, 1), (b, 1)], 0.3) <= exact * 1.05


def test_delta_is_zero_if_epsilon_covers_all_losses():
    assert delta_of([(response_loss(0.1), 10)], 1.01) == 0
    assert delta_of([(response_loss(3.0), 50)], 0.01) == 1.0


@pytest.mark.parametrize("k", [1, 2, 10, 100, 1000, 2**24])
@pytest.mark.parametrize("e", [0.1, 0.37, 1.0, 1 / 3])
def test_delta_is_zero_from_the_sum_of_all_losses_on(k, e):
    whole = Fraction(e) * k
    least = float(whole) if Fraction(float(whole)) >= whole else math.nextafter(float(whole), math.inf)
    parts = [(response_loss(e), k)]
    assert delta_of(parts, least) == 0
    below = least * (1 - 1e-12)
    assert 0 < delta_of(parts, below) <= float(whole - Fraction(below)) * (1 + 1e-9)


@pytest.mark.parametrize(("reach", "power", "k", "delta"), [(189, 8, 100, 1e-6), (60, 20, 10, 1e-5), (12, 2, 3, 1e-2)])
def test_rho_bounds_the_divergence_of_every_order(reach, power, k, delta):
    rho, lost = bounded_rho(reach, power, k, delta)
    assert 0 < lost <= delta
    masses = bounded_masses(reach, power)
    each = 1 - (1 - lost) ** (1 / k)
    # The values from 1 - c to c are kept, for the c that excludes this much mass.
    c = next(c for c in range(1, reach) if masses[c + 1 :].sum() + masses[c:].sum() <= each * (1 + 1e-6))
    x = np.arange(1 - c, c + 1)
    p, q = masses[np.abs(x)], masses[np.abs(x - 1)]
    p, q = p / p.sum(), q / q.sum()
    orders = np.geomspace(1.0001, 1e4, 4000)
    logs = np.log(p / q)
    ratios = [float(np.logaddexp.reduce(np.log(p) + (order - 1) * logs)) / (order - 1) / order * k for order in orders]
    assert max(ratios) <= rho <= max(ratios) * 1.01


@pytest.mark.parametrize("case", [(9000, 48, 1, 1e-6), (13068, 160, 10, 1e-6), (8000, 96, 300, 1e-9)])
def test_rho_of_a_grid_is_larger_by_less_than_1_in_100000(case, monkeypatch):
    rho, lost = bounded_rho(*case)
    monkeypatch.setattr(losses, "_PLACES", 1 << 20)
    exact, same = bounded_rho(*case)
    assert exact < rho <= exact * (1 + 1e-5)
    assert lost == same


@pytest.mark.parametrize("places", [2, 16, 64])
@pytest.mark.parametrize("case", [(189, 8, 100, 1e-6), (60, 20, 10, 1e-5), (300, 160, 1, 1e-6)])
def test_rho_of_any_grid_is_an_upper_bound(case, places, monkeypatch):
    exact, _ = bounded_rho(*case)
    monkeypatch.setattr(losses, "_PLACES", places)
    rho, _ = bounded_rho(*case)
    assert exact < rho <= exact * (1 + 60 / places**2)


@pytest.mark.parametrize("off", [1e-9, 1e-5])
def test_the_error_of_a_convolution_is_added_to_delta(off, monkeypatch):
    parts = [(bounded_loss(40, 3), 30), (response_loss(0.1), 20)]
    exact = delta_of(parts, 3.0)

    def compose_too_low(laws):
        law, error = _core.compose(laws)
        return law - off, error + off

    # A convolution that is too low by its stated error must not lower delta.
    monkeypatch.setattr(losses, "_core", SimpleNamespace(compose=compose_too_low))
    assert delta_of(parts, 3.0) >= exact * (1 - 1e-12)
