"""Conversions between privacy definitions, compared with numbers computed with sixty digits."""

import math

import mpmath
import pytest

from discreet.privacy import conversion
from discreet.privacy.conversion import bounded_range_rho, cdp_delta, cdp_epsilon, cdp_rho, pure_rho


@pytest.mark.parametrize(
    ("rho", "delta", "bun_steinke", "best"),
    [
        (0.1, 1e-6, 2.4507880004768, 2.1419389283855),
        (0.5, 1e-6, 5.7565217697569, 5.2215344445302),
        (1.0, 1e-6, 8.4338443776997, 7.7662166253117),
        (0.1, 1e-10, 3.1348542587703, 2.8818280091742),
        (1e-4, 1e-6, 0.074438443776997, 0.05372712063486),
    ],
)
def test_rho_and_delta_give_epsilon(rho, delta, bun_steinke, best):
    assert conversion.bun_steinke_epsilon(rho, delta) == pytest.approx(bun_steinke, rel=1e-12)
    assert cdp_epsilon(rho, delta) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        (1, 1e-6, 0.024355970359538),
        (0.1, 1e-6, 3.2104769034574e-4),
        (3, 1e-10, 0.10788658433886),
        (0.5, 1e-5, 0.0085055305911819),
    ],
)
def test_epsilon_and_delta_give_rho(epsilon, delta, rho):
    assert cdp_rho(epsilon, delta) == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize(
    ("rho", "epsilon", "delta"),
    [(0.1, 1, 0.0089332457718184), (0.5, 4, 1.9579541695772e-4), (1, 8, 4.3453415166485e-7)],
)
def test_rho_and_epsilon_give_delta(rho, epsilon, delta):
    assert cdp_delta(rho, epsilon) == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "pure", "bounded_range"),
    [
        (0.1, 0.004995837495788, 0.0012498264274598),
        (0.5, 0.12245933120185, 0.031142092261156),
        (1, 0.46211715726001, 0.12330156148224),
        (2, 1.5231883119115, 0.47447464707053),
    ],
)
def test_tight_rhos_match_known_values(epsilon, pure, bounded_range):
    assert pure_rho(epsilon, tight=True) == pytest.approx(pure, rel=1e-11)
    assert bounded_range_rho(epsilon, tight=True) == pytest.approx(bounded_range, rel=1e-11)
    assert pure_rho(epsilon) == pytest.approx(epsilon**2 / 2)
    assert bounded_range_rho(epsilon) == pytest.approx(epsilon**2 / 8)


def near_order(rho, epsilon):
    """Return about the logarithm of the best order minus one.

    There (2t + 1) rho - epsilon - log(1 + 1/t) is zero.
    """
    low, high = -(rho + 60), math.log((epsilon + 1) / (2 * rho) + 2)
    for _ in range(60):
        middle = (low + high) / 2
        t = math.exp(middle)
        low, high = (middle, high) if (2 * t + 1) * rho - epsilon - math.log1p(1 / t) < 0 else (low, middle)
    return high


def exact_delta(rho, epsilon):
    """Return the infimum over orders with fifty digits; any order gives an upper bound."""
    with mpmath.workdps(50):
        r, e = mpmath.mpf(rho), mpmath.mpf(epsilon)
        x = mpmath.mpf(near_order(rho, epsilon))
        for _ in range(3):
            t = mpmath.exp(x)
            x -= ((2 * t + 1) * r - e - mpmath.log1p(1 / t)) / (2 * t * r + 1 / (1 + t))
        t = mpmath.exp(x)
        value = mpmath.exp(t * ((1 + t) * r - e) - mpmath.log(t) - (1 + t) * mpmath.log1p(1 / t))
        return min(mpmath.mpf(1), value)


def cases(number):
    import numpy as np

    random = np.random.default_rng(4)
    for _ in range(number):
        yield 10 ** random.uniform(-6, 1.5), 10 ** random.uniform(-3, 1.7), 10 ** random.uniform(-14, -2)


def check_delta(rho, epsilon):
    claimed, true = cdp_delta(rho, epsilon), exact_delta(rho, epsilon)
    assert true <= claimed <= true * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-300")


def check_rounding(rho, epsilon, delta):
    check_delta(rho, epsilon)
    assert exact_delta(rho, cdp_epsilon(rho, delta)) <= delta
    assert exact_delta(cdp_rho(epsilon, delta), epsilon) <= delta


def test_conversions_are_rounded_to_the_safe_side():
    for case in cases(60):
        check_rounding(*case)


@pytest.mark.statistical
def test_conversions_are_rounded_to_the_safe_side_at_full_size():
    for rho, epsilon, _ in cases(100_000):
        check_delta(rho, epsilon)
    for case in cases(20_000):
        check_rounding(*case)


def test_extreme_arguments_neither_overflow_nor_return_nan():
    assert cdp_delta(0, 0) == 0
    assert cdp_epsilon(0, 1e-6) == 0
    assert cdp_delta(1e4, 1e-3) == 1
    assert cdp_delta(1e-300, 1) <= 1e-200
    for rho in (1e-300, 1e-12, 1e4):
        for delta in (1e-320, 1e-300, 0.5, 1 - 1e-16):
            assert math.isfinite(cdp_epsilon(rho, delta))
    for epsilon in (5e-324, 1e-12, 1e3):
        assert cdp_rho(epsilon, 1e-6) >= 0
    for epsilon in (699.0, 701.0, 710.0, 1e4, 1e12):
        assert 0 <= bounded_range_rho(epsilon, tight=True) - (epsilon - 1 - math.log(epsilon)) <= epsilon * 1e-14


def test_a_tight_rho_is_continuous_where_its_formula_changes():
    below, above = (bounded_range_rho(epsilon, tight=True) for epsilon in (0.05 * (1 - 1e-9), 0.05))
    assert below == pytest.approx(above, rel=1e-8)


@pytest.mark.parametrize("geometric", [False, True])
def test_an_estimate_changes_no_result_of_a_bisection(geometric):
    border = math.pi
    tested = []

    def holds(x):
        tested.append(x)
        return x >= border

    def found(near, precision=1e-12):
        tested.clear()
        return conversion.bisect(1.0, 9.0, holds, near, precision=precision, geometric=geometric), len(tested)

    plain, many = found(math.nan)
    near, few = found(border * (1 + 1e-12))
    assert plain == near >= border > plain * (1 - 1e-11)
    assert few < many / 2
    for wrong in (1e-300, 1.5, border * (1 - 1e-9), border * (1 + 1e-9), 50.0, math.inf):
        assert found(wrong)[0] == plain


def test_conversions_imply_what_their_epsilon_says():
    for rho, epsilon, delta in cases(200):
        assert conversion.cdp_implies(rho, epsilon, delta) is (cdp_epsilon(rho, delta) <= epsilon)
        for factor in (1 - 1e-13, 1 - 1e-15, 1, 1 + 1e-15, 1 + 1e-13):
            close = cdp_epsilon(rho, delta) * factor
            assert conversion.cdp_implies(rho, close, delta) is (cdp_epsilon(rho, delta) <= close)
    for epsilon in (0.0, -1.0, -5.0, math.inf):
        assert conversion.cdp_implies(0.1, epsilon, 1e-6) is (epsilon > 1)
