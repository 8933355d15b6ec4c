"""Thresholds, margins and offsets for unknown domains, compared with numbers computed with at least forty digits."""

import math

import mpmath
import pytest

from discreet import LaplaceTopK, _core
from discreet.theorems import durfee_rogers2019, rogers2023

DELTA0S = [
    # epsilon, delta, l0, linf; Laplace by the union bound and by the product; Gaussian likewise.
    (1.0, 1e-6, 1, 1, 14.122363377404, 14.122363377404, 5.7534243088229, 5.7534243088229),
    (0.5, 1e-8, 10, 1, 41.060237312773, 41.060237303773, 12.995614030015, 12.995614028553),
    (0.1, 1e-10, 100, 3, 811.13621806106, 811.13621805957, 214.03451475903, 214.03451475883),
    (2.0, 1e-5, 5, 2, 14.429216196844, 14.429212196828, 6.6113823623027, 6.6113815309513),
]


@pytest.mark.parametrize(("epsilon", "delta", "l0", "linf", "union", "product", "by_union", "by_product"), DELTA0S)
def test_continuous_thresholds_match_theorem_7(epsilon, delta, l0, linf, union, product, by_union, by_product):
    scale, p = linf / epsilon, rogers2023.novel_chance(delta, l0)
    assert rogers2023.laplace_threshold(scale, delta / l0, linf) == pytest.approx(union, rel=1e-12)
    assert rogers2023.laplace_threshold(scale, p, linf) == pytest.approx(product, rel=1e-12)
    assert rogers2023.gaussian_threshold(scale, delta / l0, linf) == pytest.approx(by_union, rel=1e-12)
    assert rogers2023.gaussian_threshold(scale, p, linf) == pytest.approx(by_product, rel=1e-12)


@pytest.mark.parametrize(
    ("noise", "error", "epsilon", "delta", "l0", "linf", "threshold", "tail"),
    [
        ("laplace", 1e-11, 1.0, 1e-6, 1, 1, 14, 6.0789620347788e-7),
        ("laplace", 1e-11, 0.5, 1e-8, 10, 1, 41, 7.7816931711117e-10),
        ("laplace", 1e-11, 0.1, 1e-10, 100, 3, 811, 9.8780996081294e-13),
        ("laplace", 1e-11, 2.0, 1e-5, 5, 2, 14, 1.6524332035032e-6),
        ("laplace", 1e-11, 0.01, 1e-6, 1, 1, 1313, 9.9735438328506e-7),
        ("gaussian", 1e-9, 1.0, 1e-6, 1, 1, 6, 6.0850225909724e-9),
        ("gaussian", 1e-9, 0.5, 1e-8, 10, 1, 13, 1.3816947445476e-10),
        ("gaussian", 1e-9, 0.1, 1e-10, 100, 3, 214, 8.9249374518034e-13),
        ("gaussian", 1e-9, 2.0, 1e-5, 5, 2, 6, 1.4928045293705e-6),
        ("gaussian", 1e-9, 0.3, 1e-6, 1, 1, 17, 3.3759441826971e-7),
        ("gaussian", 1e-9, 0.7, 1e-9, 3, 1, 10, 6.431706691661e-12),
    ],
)
def test_integer_thresholds_are_minimal(noise, error, epsilon, delta, l0, linf, threshold, tail):
    law = getattr(_core.Noise, f"discrete_{noise}")(linf / epsilon)
    found = _core.Threshold.for_chance(law, linf, delta / l0)
    assert found.value == threshold
    assert found.chance(linf) == pytest.approx(tail, rel=error)


@pytest.mark.parametrize(
    ("noise", "scale", "threshold", "chances"),
    [
        (
            "discrete_laplace",
            1.0,
            14,
            {10: 0.0049258339560357, 14: 0.26894142137, 20: 0.99818788695695},
        ),
        (
            "discrete_gaussian",
            10.0,
            49,
            {
                1: 6.1105566864144e-7,
                20: 0.0015825589962883,
                40: 0.17095549968999,
                49: 0.48005288597993,
                60: 0.85324157276193,
            },
        ),
    ],
)
def test_release_chances_match_their_definition(noise, scale, threshold, chances):
    rule = _core.Threshold(getattr(_core.Noise, noise)(scale), threshold)
    for count, chance in chances.items():
        assert rule.chance(count) == pytest.approx(chance, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "l0", "k_bar", "linf", "threshold", "by_l0"),
    [
        (1.0, 1e-6, 1, 10, 1, 7.7223571252513, 7.7223571252513),
        (0.5, 1e-8, 10, 5, 1, 17.643012091969, 17.964360050241),
        (0.2, 1e-9, 20, 100, 2, 93.45649934779, 93.45649934779),
    ],
)
def test_gaussian_margins_match_theorem_8(epsilon, delta, l0, k_bar, linf, threshold, by_l0):
    sigma = math.sqrt(2) * linf / epsilon
    differing = rogers2023.differing_items(l0, k_bar)
    assert rogers2023.gaussian_threshold(sigma, delta / differing, linf) == pytest.approx(threshold, rel=1e-12)
    assert rogers2023.gaussian_threshold(sigma, delta / l0, linf) == pytest.approx(by_l0, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "differing", "linf", "threshold", "printed"),
    [
        (1.0, 1e-6, 1, 1, 16.278690156201, 14.815510557964),
        (0.5, 1e-8, 5, 1, 44.628204462378, 41.060237312773),
        (0.2, 1e-9, 20, 2, 258.52416883417, 239.189981105),
    ],
)
def test_laplace_margins_cover_both_noises(epsilon, delta, differing, linf, threshold, printed):
    """For continuous noise, the difference exceeds t scales with probability (2 + t) e^-t / 4."""
    scale = linf / epsilon
    t = (threshold - linf) / scale
    assert (2 + t) * math.exp(-t) / 4 == pytest.approx(delta / differing, rel=1e-9)
    mechanism = LaplaceTopK(scale=scale, delta=delta, l0=differing, linf=linf, k_bar=differing)
    assert abs(mechanism.margin - threshold) < 2
    # The printed threshold releases with probability 3.954 delta, even with the missing division restored.
    short = math.log(differing / delta)
    if (epsilon, delta) == (1.0, 1e-6):
        assert linf + scale * short == pytest.approx(printed, rel=1e-9)
        assert (2 + short) * math.exp(-short) / 4 == pytest.approx(3.954 * delta, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "p", "m", "tail"), [(1.0, 1e-6, 16, 6.8033772609033e-7), (0.5, 2e-9, 45, 1.2562745326242e-9)]
)
def test_integer_laplace_margins_are_minimal(epsilon, p, m, tail):
    difference = durfee_rogers2019.discrete_laplace_difference_tail
    assert difference(1 / epsilon, m) == pytest.approx(tail, rel=1e-11)
    assert difference(1 / epsilon, m) <= p < difference(1 / epsilon, m - 1)


def test_the_laplace_difference_tail_matches_its_sum():
    for scale in (0.3, 1.0, 7.5):
        a = math.exp(-1 / scale)
        law = [(1 - a) / (1 + a) * a ** abs(x) for x in range(-900, 901)]
        for m in (1, 3, 20):
            direct = math.fsum(
                law[y + 900] * math.fsum(law[x + 900] for x in range(max(y + m, -900), 901)) for y in range(-300, 301)
            )
            assert durfee_rogers2019.discrete_laplace_difference_tail(scale, m) == pytest.approx(direct, rel=1e-7)


@pytest.mark.parametrize(
    ("epsilon", "delta", "k_bar", "linf", "scale", "threshold"),
    [
        (1.0, 1e-6, 100, 1, 1.0, 19.420680743952),
        (0.1, 1e-10, 1000, 1, 10.0, 300.33606208923),
        (0.5, 1e-8, 50, 3, 6.0, 136.99622249628),
    ],
)
def test_stop_elements_match_theorem_9(epsilon, delta, k_bar, linf, scale, threshold):
    assert scale == pytest.approx(linf / epsilon)
    assert scale * rogers2023.gumbel_offset(linf / scale, delta, k_bar) == pytest.approx(threshold, rel=1e-12)


def test_scales_and_costs_invert_each_other():
    for rho in (1e-4, 0.1, 3.0):
        for l0, linf in ((1, 1), (10, 1), (7, 3)):
            sigma = rogers2023.gaussian_sigma(rho, l0, linf)
            assert rho * (1 - 1e-12) < rogers2023.gaussian_rho(sigma, l0, linf) <= rho
            scale = rogers2023.laplace_threshold_scale(rho, l0, linf)
            assert rho * (1 - 1e-12) < rogers2023.laplace_threshold_rho(linf / scale, l0) <= rho


@pytest.mark.parametrize(("rho", "delta", "conditioned"), [(0.1, 1e-10, 0.1000063247), (0.5, 1e-6, 0.5014152139)])
def test_the_cost_of_conditioning_matches_the_lemma(rho, delta, conditioned):
    assert rogers2023.conditioned_rho(rho, delta) == pytest.approx(conditioned, rel=1e-9)


def test_chances_are_rounded_down_and_stop_elements_up():
    for delta in (1e-12, 3e-7, 1e-3, 0.3):
        for n in (2, 3, 7, 1000):
            with mpmath.workdps(60):
                seen = 1 - (1 - mpmath.mpf(rogers2023.novel_chance(delta, n))) ** n
                assert delta * (1 - mpmath.mpf("1e-14")) < seen < delta
                offset = mpmath.mpf(0.1) + mpmath.log(n / mpmath.mpf(delta))
                assert offset < rogers2023.gumbel_offset(0.1, delta, n) < offset * (1 + mpmath.mpf("1e-14"))
