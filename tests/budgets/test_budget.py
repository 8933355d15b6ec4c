"""`Budget`: charges, errors, refunds, the odometer, copies and forks.

The odometer is the (epsilon, delta) guarantee of everything charged so far.
"""

import copy
import dataclasses
import math
import multiprocessing
import os
import pickle
from fractions import Fraction

import numpy as np
import pytest
from small import histogram, top

import discreet
import discreet as dp
from discreet import (
    BinaryMechanism,
    Budget,
    BudgetExceeded,
    GaussianThreshold,
    Guarantee,
    GumbelTopK,
    LaplaceTopK,
    OptimalSelection,
    Plume,
    PrivateCountRelease,
)
from discreet.budgets.charge import Account, Charge
from discreet.errors import ParameterError, SchemaError, SensitivityError
from discreet.mechanisms import ClippedSums, ContributionBound, Refinement, Replacement, SetUnion
from discreet.tables import UserItems
from discreet.testing import seeded_rng


def histogram_of(item, count):
    return discreet.Histogram.from_counts([item], [count], l0=None, linf=1, complete=True)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, 1e308, True, "1", 10**400, np.array([1.0]), None])
def test_an_invalid_total_is_refused(bad):
    with pytest.raises(ParameterError):
        Budget(rho=bad, delta=1e-6)
    if bad != 0:
        with pytest.raises(ParameterError):
            Budget(rho=1.0, delta=bad)
    with pytest.raises(ParameterError):
        Budget(rho=1.0, delta=1.0)


@pytest.mark.parametrize("cost", [0.1, (0.1, 1e-6), None, "0.1", math.nan, histogram, GumbelTopK])
def test_only_mechanisms_and_guarantees_are_charged(cost):
    with pytest.raises(ParameterError, match="mechanisms and Guarantees"):
        Budget(rho=1.0, delta=1e-6).charge(cost)


def test_units_must_match():
    events = Budget(rho=1.0, delta=1e-6, unit="event")
    events.charge(Guarantee(0.5, 0, "event"))
    for mechanism in (Guarantee(0.1, 0), top()):
        with pytest.raises(ParameterError, match="per event"):
            events.charge(mechanism)
    with pytest.raises(ParameterError, match="unit"):
        Budget(rho=1.0, delta=1e-6, unit="row")


DAYS = {"user": "user", "item": "page", "time": "ts", "unit": "user-day"}


@pytest.mark.parametrize("of", [{"rho": 9.0}, {"epsilon": 30.0}])
@pytest.mark.parametrize("ask", [{"rho": 0.01, "delta": 1e-8}, {"epsilon": 0.2, "delta": 1e-8}])
def test_a_budget_pays_for_its_own_unit_before_data_is_read(of, ask):
    """The data is no table at all, which only a release that is not refused would find out."""
    budgets = {unit: Budget(**of, delta=1e-6, unit=unit) for unit in ("user", "user-day", "user-week", "event")}
    log = {"user": [*range(3000)], "page": ["home"] * 3000, "ts": ["2026-01-01"] * 3000}
    table, counts = dp.Table(log, **DAYS), dp.Histogram.from_table(log, **DAYS)
    plume = dp.Plume(rho=0.01, delta=1e-8, m=2, m_prime=2)
    for unit, budget in budgets.items():
        ways = (
            lambda data, budget=budget: dp.count(data, **DAYS, **ask, budget=budget),
            lambda data, budget=budget: dp.select(data, **DAYS, l0=1, **ask, budget=budget),
            lambda data, budget=budget: budget.release(plume, data, **DAYS),
            lambda data, budget=budget: budget.release(plume, table if data is log else dp.Table(data, **DAYS)),
            lambda _, budget=budget: budget.release(top(rho=0.01), counts),
            lambda _, budget=budget: budget.release(
                SetUnion.from_rho(rho=0.01, delta=1e-8, l0=1), UserItems.from_table(log, **DAYS)
            ),
        )
        for way in ways:
            if unit == "user-day":
                assert way(log).guarantee.unit == unit
            else:
                with pytest.raises(ParameterError, match="open one with unit='user-day'"):
                    way("no such file")
        assert (budget.spent.rho > 0) == (unit == "user-day")
        assert budget.spent.unit == budget.remaining.unit == unit
    budget = budgets["user-day"]
    with pytest.raises(ParameterError, match="open one with unit='user'"):
        dp.count(log, user="user", item="page", **ask, budget=budget)
    with pytest.raises(BudgetExceeded, match="Try epsilon=") as refused:
        dp.count(log, **DAYS, epsilon=90, delta=1e-7, budget=budget)
    assert "per user (" not in str(refused.value)
    if "rho" in of:
        exchange = budget.pay_what_you_get(outcomes=2, queries=2, epsilon=0.1, delta=1e-9)
        assert exchange.top_k(counts, k=1).guarantee.unit == exchange.guarantee.unit == exchange.spent.unit
        with pytest.raises(ParameterError, match="per user"):
            exchange.top_k(histogram(), k=1)
        assert exchange.outcomes_left == 1


def test_neighbours_must_match():
    replaced = Replacement.from_rho(GumbelTopK, k=3, rho=0.1, delta=1e-7)
    with pytest.raises(ParameterError, match="replaced"):
        Budget(rho=1.0, delta=1e-6).release(replaced, histogram())
    budget = Budget(rho=1.0, delta=1e-6, neighbours="replaced")
    assert not budget.release(replaced, histogram()).seeded
    assert budget.guarantee.neighbours == budget.remaining.neighbours == "replaced"
    with pytest.raises(ParameterError, match="added"):
        budget.charge(top())
    with pytest.raises(ParameterError, match="neighbours"):
        Budget(rho=1.0, delta=1e-6, neighbours="changed")


def test_a_table_mechanism_is_charged_after_reading_the_table():
    log = {"user": list(range(3000)), "item": ["x"] * 3000, "value": [1.0] * 3000}
    budget = Budget(rho=1.0, delta=1e-6)
    bound = ContributionBound.from_rho(rho=0.1)
    sums = ClippedSums(items=("x",), rho=0.1, low=0, high=5)
    with pytest.raises(SchemaError):
        budget.release(bound, log, user="usr", item="item")
    with pytest.raises(SchemaError):
        budget.release(sums, log, user="user", item="item", value="vale")
    assert budget.spent == Guarantee(0, 0)
    assert budget.release(bound, log, user="user", item="item").items == [1]
    assert budget.release(sums, log, user="user", item="item", value="value").items == ["x"]
    assert budget.spent.rho == pytest.approx(0.2)
    first = discreet.count(log, user="user", item="item", rho=0.1, delta=1e-7, budget=budget)
    refined = budget.release(Refinement(of=first, rho=0.2), histogram_of("x", 3000), charge="spent")
    assert refined.items == first.items
    assert "'x'" not in budget.history[-1].parameters


def test_a_stream_is_charged_before_it_starts():
    mechanism = BinaryMechanism.from_rho(rho=0.4, delta=1e-7, l0=1, horizon=8, unit="event")
    budget = Budget(rho=0.5, delta=1e-6, unit="event")
    budget.charge(mechanism)
    stream = mechanism.start()
    for _ in range(3):
        stream.step([["a"], ["b"]])
    assert budget.spent.rho == pytest.approx(mechanism.guarantee.rho)
    assert budget.history[0].mechanism == "BinaryMechanism"
    with pytest.raises(BudgetExceeded):
        budget.charge(mechanism)
    with pytest.raises(ParameterError):
        budget.release(mechanism, [["a"]])


def test_seeded_randomness_is_refused():
    budget = Budget(rho=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="seeded"):
        budget.release(top(), histogram(), rng=seeded_rng(1))
    assert budget.spent == Guarantee(0, 0)
    with pytest.raises(ParameterError, match="seeded"):
        budget.publish(top(), lambda open_rng: top().release(histogram(), rng=seeded_rng(1)))
    with pytest.raises(ParameterError, match="seeded"):
        budget.publish(top(), lambda open_rng: (open_rng(), top().release(histogram(), rng=seeded_rng(1)))[1])
    assert budget.spent == top().guarantee or budget.spent.rho == pytest.approx(top().guarantee.rho)


def test_what_is_refused_before_the_draw_costs_nothing():
    budget = Budget(rho=1.0, delta=1e-6)
    log = {"user": [1, 2], "item": ["a", "b"]}
    cut = histogram()
    cut = discreet.Histogram.from_counts(["a"], [5], l0=None, linf=1, complete=False)
    bounded = discreet.Histogram.from_counts(["a"], [5], l0=3, linf=1, complete=False)
    threshold = GaussianThreshold.from_rho(rho=0.1, delta=1e-7, l0=3)
    plume = Plume(rho=0.1, delta=1e-7, m=2, m_prime=2)
    for error, call in [
        (ParameterError, lambda: budget.release(top(), {"a": 1})),
        (ParameterError, lambda: budget.release(histogram(), top())),
        (ParameterError, lambda: budget.release(top(), histogram(), charge="half")),
        (TypeError, lambda: budget.release(top(), histogram(), seed=1)),
        (SensitivityError, lambda: budget.release(top(), cut)),
        (SensitivityError, lambda: budget.release(threshold, histogram())),
        (SensitivityError, lambda: budget.release(threshold, bounded)),
        (SchemaError, lambda: budget.release(plume, log, user="usr", item="item")),
        (ParameterError, lambda: budget.release(plume, histogram(), user="user", item="item")),
        (SchemaError, lambda: discreet.count(log, user="usr", item="item", rho=0.1, delta=1e-7, budget=budget)),
        (ParameterError, lambda: discreet.top_k(log, user="user", item="item", k=0, rho=1, delta=1e-7, budget=budget)),
        (ParameterError, lambda: discreet.count(log, user="user", item="item", rho=0.1, delta=1e-7, budget=1.0)),
    ]:
        with pytest.raises(error):
            call()
    assert budget.spent == Guarantee(0, 0)
    assert budget.history == []


def test_each_public_function_charges_its_guarantee_once():
    log = {"user": list(range(3000)), "item": ["x"] * 3000}
    budget = Budget(rho=1.0, delta=1e-5)
    for release in (
        discreet.count(log, user="user", item="item", rho=0.1, delta=1e-6, budget=budget),
        discreet.count(log, user="user", item="item", rho=0.1, delta=1e-6, l0=2, budget=budget),
        discreet.top_k(log, user="user", item="item", k=1, rho=0.1, delta=1e-6, budget=budget),
        discreet.select(log, user="user", item="item", l0=1, rho=0.1, delta=1e-6, budget=budget),
        budget.release(Plume(rho=0.1, delta=1e-6, m=1, m_prime=1), log, user="user", item="item"),
    ):
        assert not release.seeded
        assert release.items == ["x"]
    rows = budget.history
    assert [row.status for row in rows] == ["released"] * 5
    assert Fraction(budget.spent.rho) >= sum(Fraction(row.rho) for row in rows) - Fraction(1, 2**60)
    assert rows[2].parameters.startswith("k=1, ")


def test_data_is_not_read_if_the_budget_is_insufficient():
    budget = Budget(rho=0.1, delta=1e-6)
    for verb, more in ((discreet.count, {"l0": 1}), (discreet.top_k, {"k": 1}), (discreet.select, {"l0": 1})):
        with pytest.raises(BudgetExceeded):
            verb("nowhere.csv", user="user", item="item", rho=0.2, delta=1e-6, budget=budget, **more)


def test_charge_spent_costs_only_the_calls_that_were_made():
    few = discreet.Histogram.from_counts(["a", "b"], [50_000, 40_000], l0=None, linf=1, complete=True)
    mechanism = GumbelTopK(k=10, scale=10.0, delta=1e-8, k_bar=20)
    budget = Budget(rho=1.0, delta=1e-6)
    release = budget.release(mechanism, few, charge="spent")
    # Two items and the stop element.
    assert release.items == ["a", "b"]
    assert release.calls == 3
    assert budget.spent.rho == pytest.approx(3 * 0.1**2 / 8, rel=1e-12)
    assert budget.spent.delta == pytest.approx(1e-8, rel=1e-12)
    assert budget.history[0].rho == pytest.approx(budget.spent.rho)
    full = budget.release(GumbelTopK(k=2, scale=10.0, delta=1e-8, k_bar=20), few, charge="spent")
    assert full.calls == 2
    assert budget.spent.rho == pytest.approx(5 * 0.1**2 / 8, rel=1e-12)
    budget.release(mechanism, few)
    assert budget.spent.rho == pytest.approx(15 * 0.1**2 / 8, rel=1e-12)


def test_charge_spent_refuses_a_guarantee_over_the_budget():
    few = discreet.Histogram.from_counts(["a"], [50_000], l0=None, linf=1, complete=True)
    with pytest.raises(BudgetExceeded):
        Budget(rho=0.01, delta=1e-6).release(GumbelTopK(k=10, scale=10.0, delta=1e-8), few, charge="spent")


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (GumbelTopK, {"k": 10}),
        (PrivateCountRelease, {}),
        (GaussianThreshold, {"l0": 3}),
        (LaplaceTopK, {"l0": 2, "k_bar": 100}),
        (OptimalSelection, {"l0": 1}),
        (Plume, {"m": 2, "m_prime": 2}),
        (ContributionBound, {"percentile": 90}),
    ],
)
def test_an_afforded_mechanism_uses_almost_all_rho_or_delta(kind, parameters):
    budget = Budget(rho=0.5, delta=1e-6)
    budget.charge(Guarantee(0.1, 1e-7))
    mechanism = budget.afford(kind, **parameters)
    assert isinstance(mechanism, kind)
    assert budget.fits(mechanism)
    assert budget.cost(mechanism).rho == pytest.approx(mechanism.guarantee.rho)
    half = budget.afford(kind, share=0.5, **parameters)
    assert half.guarantee.rho < mechanism.guarantee.rho
    budget.charge(mechanism)
    assert budget.remaining.delta < 1e-9 or budget.remaining.rho < 1e-9
    if kind in (GumbelTopK, GaussianThreshold):
        assert budget.remaining.rho < 1e-9


def test_an_empty_budget_affords_no_mechanism():
    budget = Budget(rho=0.5, delta=1e-6)
    budget.charge(budget.remaining)
    with pytest.raises(BudgetExceeded):
        budget.afford(GumbelTopK, k=1)
    with pytest.raises(ParameterError, match="from_rho"):
        budget.afford(ClippedSums, items=("a",))
    replacing = Budget(rho=0.5, delta=1e-6, neighbours="replaced")
    assert isinstance(replacing.afford(Replacement, kind=GumbelTopK, k=3), Replacement)
    with pytest.raises(ParameterError, match="share"):
        budget.afford(GumbelTopK, k=1, share=2)


def test_the_odometer_rises_and_starts_below_the_total():
    budget = Budget(rho=0.5, delta=1e-6)
    readings = [budget.odometer(1e-6)]
    for _ in range(5):
        budget.charge(Guarantee(0.1, 1e-7))
        readings.append(budget.odometer(1e-6))
    assert readings == sorted(readings)
    assert readings[1][0] == pytest.approx(2.7388522504138, rel=1e-9)
    assert readings[-1] == (pytest.approx(6.0456029174127, rel=1e-9), pytest.approx(2e-6))
    assert readings[2][0] < budget.guarantee.epsilon(2e-6)
    with pytest.raises(ParameterError):
        budget.odometer(0)


def test_the_delta_of_the_odometer_is_fixed_beforehand():
    # An analyst who stops at the first failure of a mechanism fails with probability one. The deltas charged by then
    # add up to little. So the odometer may state only the total delta, not a sum that depends on outputs.
    budget = Budget(rho=0.5, delta=1e-3)
    stated = set()
    for delta in (0.0, 1e-9, 5e-4):
        budget.charge(Guarantee(0.01, delta))
        stated.add(budget.odometer(1e-6)[1])
    assert len(stated) == 1
    assert stated.pop() >= 1e-3 + 1e-6
    assert Budget(rho=0.5, delta=0).odometer(1e-6)[1] == pytest.approx(1e-6)


def test_the_odometer_of_a_used_up_budget_is_its_total():
    budget = Budget(epsilon=1.0, delta=1e-6)
    budget.charge(GumbelTopK.from_epsilon(k=1, epsilon=1.0, delta=1e-6))
    assert budget.odometer(1e-7) == (1.0, 1e-6)


def test_a_budget_cannot_be_copied_pickled_or_changed():
    budget = Budget(rho=1.0, delta=1e-6)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps, multiprocessing.reduction.ForkingPickler.dumps):
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            attempt(budget)
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            attempt(budget.pay_what_you_get(outcomes=2, queries=1, epsilon=0.1, delta=1e-8))
    assert not hasattr(budget, "__dict__")
    for name in ("_log", "_process", "remaining", "rho", "other"):
        with pytest.raises(AttributeError):
            setattr(budget, name, 0)
        with pytest.raises(AttributeError):
            delattr(budget, name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_cannot_charge_a_budget():
    budget = Budget(rho=1.0, delta=1e-6)
    exchange = budget.pay_what_you_get(outcomes=5, queries=2, epsilon=0.1, delta=1e-8)
    for attempt in (
        lambda: budget.charge(Guarantee(0.1, 0)),
        lambda: budget.release(top(), histogram()),
        lambda: exchange.top_k(histogram(), k=1),
        lambda: budget.remaining,
    ):
        child = os.fork()
        if child == 0:
            try:
                attempt()
            except ParameterError as error:
                os._exit(0 if "forked" in str(error) else 3)
            except BaseException:
                os._exit(2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert budget.spent == Guarantee(0, 0)


def test_the_repr_shows_the_remaining_budget():
    budget = Budget(rho=1.0, delta=1e-6)
    budget.charge(Guarantee(0.25, 0), made_by="another library")
    assert "0.75" in repr(budget)
    assert budget.history[0].mechanism == "another library"
    assert budget.history[0].status == "charged"


def test_a_budget_in_epsilon_has_the_rho_that_implies_it():
    budget = discreet.Budget(epsilon=1.0, delta=1e-6)
    assert budget.guarantee == discreet.Budget.from_epsilon(epsilon=1.0, delta=1e-6).guarantee
    assert budget.guarantee.epsilon(1e-6) <= 1.0
    for wrong in ({}, {"rho": 1.0, "epsilon": 1.0}):
        with pytest.raises(ParameterError, match="exactly one"):
            discreet.Budget(delta=1e-6, **wrong)


def test_a_total_is_rounded_down_to_whole_units():
    account = Account.holding(1e-15, 1e-33, "user", "added")
    assert account.total == Charge(18446, 340282)


def test_a_release_that_overstates_its_cost_gets_no_refund():
    class Wrong:
        guarantee = Guarantee(0.1, 1e-6)

        def release(self, data, rng):
            return dataclasses.replace(top().release(data, rng=rng), spent=Guarantee(0.05, 1e-5))

    budget = Budget(rho=1.0, delta=1e-4)
    budget.release(Wrong(), histogram(), charge="spent")
    assert budget.spent == Guarantee(0.1, 1e-6)
