"""`Exchange`: a fixed number of top-k lists and of outcomes, each charged when it is returned.

An outcome is an item of a list or the stop element that ends a list early.
"""

import contextlib
import math
import pickle
import random

import mpmath
import pytest
from lines import together
from small import histogram

from discreet import Budget, BudgetExceeded, Guarantee, Histogram, Ledger
from discreet.budgets.exchange import Exchange
from discreet.errors import ParameterError, SensitivityError
from discreet.privacy.conversion import cdp_epsilon

EXCHANGE = {"outcomes": 50, "queries": 20, "epsilon": 0.1, "delta": 1e-8}


def few():
    return Histogram.from_counts(["a", "b"], [50_000, 40_000], l0=None, linf=1, complete=True)


def test_the_guarantee_covers_all_outcomes_and_lists():
    exchange = Budget(rho=1.0, delta=1e-6).pay_what_you_get(**EXCHANGE)
    assert exchange.guarantee.rho == pytest.approx(0.0625, rel=1e-12)
    assert exchange.guarantee.rho >= 0.0625
    assert exchange.guarantee.delta == pytest.approx(1.99999981e-7, rel=1e-12)
    assert exchange.guarantee.dp == (pytest.approx(5.0), exchange.guarantee.delta)
    assert cdp_epsilon(0.0625, 1e-6) == pytest.approx(1.6599790499689, rel=1e-12)


@pytest.mark.parametrize("number", [500, pytest.param(100_000, marks=pytest.mark.statistical)])
def test_guarantees_are_rounded_up_only_slightly(number):
    generator, slack = random.Random(7), 1 + mpmath.mpf("1e-9")
    for _ in range(number):
        outcomes, queries = generator.randrange(1, 10_000), generator.randrange(1, 10_000)
        epsilon, delta = 10 ** generator.uniform(-6, -1), 10 ** generator.uniform(-15, -6)
        budget = Budget(rho=1000.0, delta=0.5)
        made = budget.pay_what_you_get(outcomes=outcomes, queries=queries, epsilon=epsilon, delta=delta).guarantee
        with mpmath.workdps(40):
            rho = outcomes * mpmath.mpf(epsilon) ** 2 / 8
            assert rho <= made.rho <= rho * slack
            whole = 1 - (1 - mpmath.mpf(delta)) ** queries
            assert whole <= made.delta <= whole * slack
            assert outcomes * mpmath.mpf(epsilon) <= made.dp[0] <= outcomes * mpmath.mpf(epsilon) * slack


def test_bounded_range_composition_beats_the_conversion():
    exchange = Budget(rho=1.0, delta=1e-6).pay_what_you_get(**EXCHANGE)
    total = 1e-6 + exchange.guarantee.delta
    assert exchange.epsilon(total) < 0.97 * exchange.guarantee.epsilon(total)
    assert exchange.epsilon(exchange.guarantee.delta) == exchange.guarantee.dp[0]
    with pytest.raises(ParameterError, match="or more"):
        exchange.epsilon(1e-9)
    one = Budget(rho=1.0, delta=1e-6).pay_what_you_get(outcomes=1, queries=1, epsilon=0.1, delta=1e-8)
    assert one.epsilon(1e-6) <= 0.1 * (1 + 1e-12)


def test_a_list_costs_its_items_its_stop_element_and_one_delta():
    budget = Budget(rho=1.0, delta=1e-6)
    exchange = budget.pay_what_you_get(**EXCHANGE)
    assert budget.spent == Guarantee(0, 0)
    assert exchange.top_k(histogram(), k=5).items == [f"item-{n:02d}" for n in range(5)]
    assert (exchange.outcomes_left, exchange.queries_left) == (45, 19)
    assert exchange.top_k(few(), k=10, k_bar=20).items == ["a", "b"]
    assert (exchange.outcomes_left, exchange.queries_left) == (42, 18)
    empty = Histogram.from_counts([], [], l0=None, linf=1, complete=True)
    assert exchange.top_k(empty, k=10, k_bar=20).items == []
    assert (exchange.outcomes_left, exchange.queries_left) == (41, 17)
    assert budget.spent.rho == pytest.approx(9 * 0.1**2 / 8, rel=1e-12)
    assert budget.spent.delta == pytest.approx(3e-8, rel=1e-12)
    assert exchange.spent.rho == pytest.approx(9 * 0.1**2 / 8, rel=1e-12)
    assert budget.spent.rho <= exchange.spent.rho * (1 + 1e-12)


def test_an_interrupted_refund_of_outcomes_keeps_the_list(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    budget = Budget(rho=1.0, delta=1e-6)
    exchange = budget.pay_what_you_get(**EXCHANGE)
    monkeypatch.setattr(Exchange, "_give_back", interrupted)
    with pytest.raises(KeyboardInterrupt) as ended:
        exchange.top_k(few(), k=10, k_bar=20)
    told = ended.value.charged
    assert told.release.items == ["a", "b"]
    assert (told.rho, told.delta) == (budget.spent.rho, budget.spent.delta)
    assert told.rho == pytest.approx(3 * 0.1**2 / 8)
    assert exchange.outcomes_left == 40


def test_each_list_has_the_stop_element_of_its_own_k_bar():
    exchange = Budget(rho=1.0, delta=1e-6).pay_what_you_get(**EXCHANGE)
    for k_bar in (1, 10, 1000):
        assert f"k_bar={k_bar}," in exchange.top_k(histogram(), k=1, k_bar=k_bar).made_by


def test_a_list_of_rows_has_the_scale_of_linf():
    exchange = Budget(rho=1.0, delta=1e-6).pay_what_you_get(**EXCHANGE)
    rows = Histogram.from_counts(["a"], [90_000], l0=None, linf=5, complete=True)
    with pytest.raises(SensitivityError):
        exchange.top_k(rows, k=1)
    release = exchange.top_k(rows, k=1, linf=5)
    assert f"scale={5 / EXCHANGE['epsilon']:.0f}" in release.made_by
    assert exchange.spent.rho == pytest.approx(EXCHANGE["epsilon"] ** 2 / 8)


def test_an_exchange_ends_with_its_outcomes_or_lists():
    exchange = Budget(rho=1.0, delta=1e-6).pay_what_you_get(outcomes=5, queries=2, epsilon=0.1, delta=1e-8)
    with pytest.raises(BudgetExceeded, match="6 outcomes and one list"):
        exchange.top_k(histogram(), k=6)
    exchange.top_k(histogram(), k=4)
    with pytest.raises(BudgetExceeded, match="1 outcome and 1 list are left"):
        exchange.top_k(histogram(), k=2)
    exchange.top_k(histogram(), k=1)
    with pytest.raises(BudgetExceeded):
        exchange.top_k(histogram(), k=1)
    lists = Budget(rho=1.0, delta=1e-6).pay_what_you_get(outcomes=50, queries=1, epsilon=0.1, delta=1e-8)
    lists.top_k(histogram(), k=1)
    with pytest.raises(BudgetExceeded):
        lists.top_k(histogram(), k=1)


def test_errors_of_an_exchange_cost_nothing():
    budget = Budget(rho=0.07, delta=1e-6)
    exchange = budget.pay_what_you_get(**EXCHANGE)
    cut = Histogram.from_counts(["a"], [5], l0=None, linf=1, complete=False)
    twice = Histogram.from_counts(["a"], [5], l0=None, linf=2, complete=True)
    for error, call in [
        (SensitivityError, lambda: exchange.top_k(cut, k=1)),
        (SensitivityError, lambda: exchange.top_k(twice, k=1)),
        (ParameterError, lambda: exchange.top_k(histogram(), k=0)),
        (ParameterError, lambda: exchange.top_k(histogram(), k=10, k_bar=5)),
        (ParameterError, lambda: exchange.top_k("log.csv", k=1)),
    ]:
        with pytest.raises(error):
            call()
    assert (exchange.outcomes_left, exchange.queries_left) == (50, 20)
    assert budget.spent == Guarantee(0, 0)
    budget.charge(Guarantee(0.07, 0))
    with pytest.raises(BudgetExceeded):
        exchange.top_k(histogram(), k=1)
    assert exchange.outcomes_left == 50


@pytest.mark.parametrize("total", [{"epsilon": 1, "delta": 1e-6}, {"rho": 0.06, "delta": 1e-6}])
def test_a_refused_exchange_names_its_own_parameters(total):
    with pytest.raises(BudgetExceeded, match="Try fewer outcomes, or a smaller epsilon") as error:
        Budget(**total).pay_what_you_get(**EXCHANGE)
    assert "Try epsilon=" not in str(error.value)
    assert "Try rho=" not in str(error.value)
    assert error.value.requested.rho == pytest.approx(0.0625)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_an_exchange_short_of_delta_says_so():
    for total, advice in [
        (Budget(rho=1.0, delta=1e-7), "Try fewer queries, or a smaller delta"),
        (Budget(rho=0.06, delta=1e-7), "Try fewer outcomes and queries, or a smaller epsilon and delta"),
    ]:
        with pytest.raises(BudgetExceeded, match=advice):
            total.pay_what_you_get(**EXCHANGE)


@pytest.mark.parametrize("name", list(EXCHANGE))
@pytest.mark.parametrize("bad", [0, -1, math.nan, True, "1", None])
def test_invalid_parameters_are_refused(name, bad):
    with pytest.raises(ParameterError, match=name):
        Budget(rho=1.0, delta=1e-6).pay_what_you_get(**{**EXCHANGE, name: bad})


def test_threads_never_exceed_the_outcomes_of_an_exchange():
    budget = Budget(rho=1.0, delta=1e-5)
    exchange = budget.pay_what_you_get(outcomes=100, queries=1000, epsilon=0.1, delta=1e-9)
    returned = []

    def ask():
        for _ in range(20):
            with contextlib.suppress(BudgetExceeded):
                returned.append(exchange.top_k(histogram(), k=3, k_bar=10).calls)

    together(ask)
    assert sum(returned) == 100 - exchange.outcomes_left <= 100
    assert budget.spent.rho == pytest.approx(sum(returned) * 0.1**2 / 8, rel=1e-9)


def test_an_exchange_can_charge_a_ledger(tmp_path):
    dataset = Ledger.open(tmp_path / "l").dataset("views", rho=1.0, delta=1e-6)
    exchange = dataset.pay_what_you_get(**EXCHANGE)
    release = exchange.top_k(few(), k=10, k_bar=20)
    assert dataset.history[0].digest == release.digest
    assert dataset.spent.rho == pytest.approx(3 * 0.1**2 / 8, rel=1e-12)
    assert "47 outcomes and 19 lists left" in repr(exchange)
