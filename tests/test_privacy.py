"""Sensitivity and Guarantee: validation, composition and conversion."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet import Budget, Guarantee
from discreet.errors import ParameterError
from discreet.privacy import Sensitivity
from discreet.privacy.guarantee import resolve_rho, unusual
from discreet.wording import shown_down, shown_up

NOT_NUMBERS = [-1, math.nan, math.inf, 1e308, True, "1", 10**400, np.array([1.0]), None, 1j]


def test_guarantees_compose_by_the_sum_and_the_product():
    both = Guarantee(0.5, 1e-6) + Guarantee(0.25, 2e-6)
    assert both.rho == 0.75
    assert both.delta == pytest.approx(2.999998e-6, rel=1e-12)


def test_a_thousand_small_deltas_compose_to_the_product_form():
    total = Guarantee(0, 0)
    for _ in range(1000):
        total += Guarantee(0, 1e-9)
    assert total.delta == pytest.approx(9.9999950050017e-7, rel=1e-12)
    assert Fraction(total.delta) >= 1 - (1 - Fraction(1e-9)) ** 1000


def test_sums_of_rho_are_rounded_up():
    a, b = 0.1, 0.2
    total = (Guarantee(a, 0) + Guarantee(b, 0)).rho
    assert Fraction(total) >= Fraction(a) + Fraction(b)
    assert total == pytest.approx(0.3)


def test_guarantees_are_multiplied_and_summed():
    one = Guarantee(0.1, 1e-6, dp=(0.5, 1e-6))
    assert one * 1 == one
    assert one * 3 == 3 * one == one + one + one
    assert sum([one, one]) == 2 * one
    many = 1000 * one
    assert Fraction(many.rho) >= 1000 * Fraction(0.1)
    assert Fraction(many.delta) >= 1 - (1 - Fraction(1e-6)) ** 1000
    assert many.dp[0] >= 500
    assert many.rho == pytest.approx(100)
    for wrong in (0, -1, 1.5, True, "2", math.nan):
        with pytest.raises(ParameterError, match="n must be a whole number"):
            one * wrong
    for wrong in (lambda: one * one, lambda: one + 1, lambda: 1 + one, lambda: sum([one], 1)):
        with pytest.raises(TypeError):
            wrong()


def test_guarantees_of_different_units_do_not_add():
    with pytest.raises(ParameterError, match="do not add"):
        Guarantee(1, 0) + Guarantee(1, 0, "event")


def test_epsilon_takes_the_total_delta():
    assert Guarantee(1, 0).epsilon(1e-6) == pytest.approx(7.7662166253117, rel=1e-12)
    mine = Guarantee(1, 1e-6)
    assert mine.epsilon(2e-6) == pytest.approx(Guarantee(1, 0).epsilon(1e-6), rel=1e-6)
    for small in (1e-6, 1e-7):
        with pytest.raises(ParameterError, match=r"give a delta above 1e-06$"):
            mine.epsilon(small)
        assert not mine.implies(1e300, small)
    proved = Guarantee(0.5, 1e-7, dp=(1.0, 1e-8))
    assert proved.epsilon(1e-8) == 1.0
    with pytest.raises(ParameterError, match=r"above 1e-07, or 1e-08 or more$"):
        proved.epsilon(5e-9)
    assert Guarantee(1, 0.9).promise
    assert Guarantee(0, 1e-6).epsilon(1e-6) == 0


@pytest.mark.parametrize("rho", [1e-12, 0.1, 0.5, 1, 2, 1000])
def test_a_printed_epsilon_is_implied(rho):
    guarantee = Guarantee(rho, 1e-6)
    epsilon, delta = guarantee.quoted
    assert f"({epsilon:.4g}, {delta:.4g})-DP" in guarantee.promise
    assert float(f"{epsilon:.4g}") >= guarantee.epsilon(delta)


@pytest.mark.parametrize("digits", [3, 4, 6])
@pytest.mark.parametrize("value", [2 / 3, 1.0004, 1.0000004, 0.9999996, 123456.7, 1.2345678e-300, 0.1 + 0.2])
def test_costs_are_shown_rounded_up_and_rests_rounded_down(value, digits):
    up, down = shown_up(value, digits), shown_down(value, digits)
    assert Fraction(down) <= Fraction(value) * (1 + Fraction(1, 10**13))
    assert Fraction(up) >= Fraction(value) * (1 - Fraction(1, 10**13))
    assert Fraction(up) - Fraction(down) <= Fraction(value) * Fraction(101, 10 ** (digits + 1))
    for given in ("0.1", "0.25", "0.3", "1.5", "7e-09", "1e-06", "0"):  # also as a sum of floats
        assert shown_up(float(given), digits) == shown_down(3 * (float(given) / 3), digits) == given


def test_a_printed_guarantee_promises_no_more_than_the_guarantee():
    guarantee = Guarantee(1.0000004, 1.0000004e-6, dp=(10.004, 1.00004e-6))
    printed = "1.00001e-06-approximate 1.00001-zCDP per user (added or removed)"
    assert str(guarantee) == f"{printed}, and (10.01, 1.001e-06)-DP"
    assert guarantee.promise == f"{printed}, which implies (7.767, 2.001e-06)-DP"
    assert "<td>1.00001</td>" in guarantee._repr_html_()
    assert "<td>1.00001e-06</td>" in guarantee._repr_html_()
    weak = Guarantee(2.0, 1e-6, dp=(10.004, 1e-6))
    assert weak.promise.endswith("and (10.01, 1e-06)-DP")
    assert "epsilon 10.01 makes a weak guarantee" in unusual(weak)[0]
    assert "delta 0.00100001 makes" in unusual(Guarantee(0.1, 0.0010000001))[0]


@pytest.mark.parametrize("promise", [{"rho": 1.0}, {"epsilon": 2.0}])
def test_a_budget_shows_no_more_than_is_left(promise):
    budget = Budget(**promise, delta=1e-6)
    budget.charge(Guarantee(0.0123456789, 1.23456789e-8))
    left = budget.remaining
    texts = re.findall(r"(?:rho|delta) ([0-9.e-]+) of ([0-9.e-]+)", repr(budget))
    for (shown, _), exact in zip(texts, (left.rho, left.delta), strict=True):
        assert 0 <= exact - float(shown) < 1e-5 * exact
    cells = re.findall("<bdi>([^<]*)</bdi>", budget._repr_html_())
    assert cells[cells.index("spent") :][1:3] == ["0.0123457", "1.24e-08"]


def test_dp_and_bounded_range_become_guarantees():
    assert Guarantee.from_dp(1.0, 1e-6).rho == pytest.approx(0.5)
    assert Guarantee.from_bounded_range(1.0).rho == pytest.approx(0.125)
    assert Guarantee.from_dp(1.0, tight=True).rho == pytest.approx(0.46211715726001)
    for make in (Guarantee.from_dp, Guarantee.from_bounded_range):
        with pytest.raises(ParameterError, match="tight must be True or False"):
            make(1.0, tight="False")


@pytest.mark.parametrize("bad", NOT_NUMBERS)
def test_values_that_are_no_numbers_are_refused(bad):
    with pytest.raises(ParameterError):
        Guarantee(bad, 0)
    with pytest.raises(ParameterError):
        Guarantee(1, bad)
    with pytest.raises(ParameterError):
        resolve_rho(bad, None, 1e-6)


def test_numpy_scalars_are_numbers():
    assert Guarantee(np.float64(1), np.float32(0)).rho == 1
    assert Sensitivity(l0=np.int64(3), linf=1).l0 == 3


@pytest.mark.parametrize("tiny", [Fraction(1, 10**400), np.longdouble("1e-4000")])
def test_positive_values_that_round_to_zero_are_refused(tiny):
    with pytest.raises(ParameterError):
        resolve_rho(tiny, None, 1e-6)
    with pytest.raises(ParameterError):
        resolve_rho(1.0, None, tiny)


@pytest.mark.parametrize("rho", [Fraction(1, 3), Fraction(2, 3), np.longdouble(1) / 3, np.longdouble(2) / 3])
def test_claims_between_two_floats_are_rounded_up(rho):
    promised = Guarantee(rho, rho, dp=(rho, rho))
    for claimed in (promised.rho, promised.delta, *promised.dp):
        assert rho <= claimed <= rho * (1 + 1e-15)
    assert Guarantee(Fraction(1, 10**400), 0).rho == 5e-324


@pytest.mark.parametrize("bad", [0, -1, 1.5, "1", True, 10**400, np.array(True), np.array(1.0), np.array([1])])
def test_sensitivities_are_whole_and_positive(bad):
    with pytest.raises(ParameterError):
        Sensitivity(l0=bad, linf=1)
    with pytest.raises(ParameterError):
        Sensitivity(l0=1, linf=bad)


def test_a_sensitivity_is_within_a_larger_one():
    anything = Sensitivity(l0=None, linf=1)
    assert Sensitivity(l0=3, linf=1).within(anything)
    assert not anything.within(Sensitivity(l0=3, linf=1))
    assert not Sensitivity(l0=3, linf=2).within(anything)


def test_exactly_one_of_rho_and_epsilon_is_required():
    for both in ((None, None), (1.0, 1.0)):
        with pytest.raises(ParameterError, match="exactly one"):
            resolve_rho(*both, 1e-6)


def test_epsilon_is_the_total_guarantee():
    rho, delta = resolve_rho(None, 1.0, 1e-6)
    assert delta == 5e-7
    assert Guarantee(rho, delta).epsilon(1e-6) <= 1.0
    assert Guarantee(rho * (1 + 1e-6), delta).epsilon(1e-6) > 1.0


@pytest.mark.parametrize(("epsilon", "delta"), [(5e-324, 1e-6), (1.0, 1e-320), (1.0, 5e-324)])
def test_tiny_parameters_work_or_are_refused(epsilon, delta):
    try:
        rho, own = resolve_rho(None, epsilon, delta)
    except ParameterError:
        return
    assert rho > 0
    assert 0 < own < delta


def test_errors_name_the_parameter_of_a_wrong_type():
    for made, name in (
        (lambda: discreet.GaussianTopK.from_rho(rho=1, delta=1e-6, l0=1, k_bar=None), "k_bar"),
        (lambda: discreet.GaussianTopK.from_epsilon(epsilon=1, delta=1e-6, l0=1, k_bar="1"), "k_bar"),
        (lambda: discreet.GumbelTopK.from_rho(k=1, rho=1, delta=1e-6, linf=None), "linf"),
        (lambda: discreet.GumbelTopK.from_epsilon(k=1, epsilon=1, delta=1e-6, linf=0), "linf"),
        (lambda: discreet.mechanisms.SetUnion.from_rho(method=None, rho=1, delta=1e-6, l0=1), "method"),
        (lambda: discreet.answer_queries([1], epsilon=1, delta=1e-6, method=[1]), "method"),
        (lambda: discreet.Budget(rho=np.timedelta64(1, "s"), delta=1e-6), "rho"),
        (lambda: Guarantee(1.0, 0, dp=1), "dp"),
    ):
        with pytest.raises(ParameterError, match=name):
            made()
    assert len(discreet.answer_queries([1, 2], epsilon=np.uint8(1), delta=1e-6)) == 2
