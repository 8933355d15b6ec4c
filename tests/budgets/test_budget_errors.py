"""Errors of `Budget`: the advice of BudgetExceeded, and names that a history cannot hold."""

import pickle

import pytest

import discreet
from discreet import Budget, BudgetExceeded, Guarantee
from discreet.errors import Charged, ParameterError


@pytest.mark.parametrize("name", [3, b"text", "\ud800", "a\udcff", "x" * 1001])
def test_made_by_must_be_valid_text_of_at_most_1000_characters(name):
    budget = Budget(rho=1.0, delta=1e-6)
    remedy = "have at most 1,000 characters" if name == "x" * 1001 else "be text that UTF-8 can encode"
    with pytest.raises(ParameterError, match=f"made_by must {remedy}"):
        budget.charge(Guarantee(0.25, 0), made_by=name)
    assert budget.history == []


def test_budget_exceeded_survives_a_pickle():
    error = pickle.loads(pickle.dumps(BudgetExceeded(Guarantee(1, 0), Guarantee(0.5, 0))))
    assert error.requested == Guarantee(1, 0)
    error.charged = Charged("views", 1.0, 0.0, certain=True)
    error.add_note(str(error.charged))
    again = pickle.loads(pickle.dumps(error))
    assert (again.charged, again.__notes__, again.remedy) == (error.charged, error.__notes__, error.remedy)
    assert str(error).startswith("Privacy budget exceeded: this release costs rho=1; rho=0.5 is left.")


def test_budget_exceeded_suggests_parameters_that_fit():
    log = {"user": list(range(3000)), "item": ["home"] * 3000}
    columns = {"user": "user", "item": "item", "l0": 3}
    budget = discreet.Budget(epsilon=1.0, delta=1e-6)
    with pytest.raises(BudgetExceeded, match=r"Try epsilon=1 and delta=1e-06\."):
        discreet.count(log, **columns, epsilon=1.1, delta=1e-6, budget=budget)
    budget.charge(Guarantee(1e-4, 0))
    with pytest.raises(BudgetExceeded, match=r"Try epsilon=0\.\d+ and delta=5e-07") as error:
        discreet.top_k(log, user="user", item="item", k=1, epsilon=1.0, delta=1e-6, budget=budget)
    assert error.value.remaining.rho > 0
    discreet.count(log, **columns, rho=0.0228, delta=5e-7, budget=budget)
    spent = discreet.Budget(rho=0.1, delta=1e-6)
    spent.charge(discreet.Guarantee(0.1, 1e-6))
    with pytest.raises(BudgetExceeded) as error:
        spent.charge(discreet.Guarantee(0.1, 1e-6))
    assert "No rho is left" in str(error.value)


def test_what_rounding_leaves_is_not_offered():
    log = {"user": list(range(3000)), "item": ["home"] * 3000}
    by_pair, by_rho = discreet.Budget(epsilon=1, delta=1e-5), discreet.Budget(rho=1, delta=1e-5)
    for _ in range(3):
        by_pair.charge(Guarantee.from_dp(1 / 3, 1e-7))
    by_rho.charge(Guarantee(1 - 1e-10, 1e-7))
    for budget, nothing in ((by_pair, "No epsilon is left"), (by_rho, "No rho is left")):
        for cost in ({"epsilon": 0.1}, {"rho": 0.1}, {"epsilon": 0.1, "l0": 1}, {"rho": 0.1, "l0": 1}):
            with pytest.raises(BudgetExceeded, match=nothing) as caught:
                discreet.count(log, user="user", item="item", **cost, delta=1e-7, budget=budget)
            assert "inf" not in str(caught.value)


def test_a_release_beyond_a_budget_in_epsilon_states_its_own_cost():
    budget = discreet.Budget(epsilon=1, delta=1e-5)
    budget.charge(Guarantee.from_dp(1 / 3, 1e-7))
    for guarantee, cost in ((Guarantee(50, 1e-7), "rho=50.0 and delta=1e-07"), (Guarantee.from_dp(30), "epsilon=30.0")):
        with pytest.raises(BudgetExceeded, match=f"this needs {cost}.*Try epsilon=0.666 and delta=9.9e-06"):
            budget.charge(guarantee)


@pytest.mark.parametrize(("rho", "needed"), [(1e-9, r"epsilon=0\.00019\d* and delta=3\.8"), (1.0, "rho=0.99999")])
def test_an_epsilon_is_left_for_releases_without_delta(rho, needed):
    log = {"user": [*range(300)], "item": ["a"] * 300}
    columns = {"user": "user", "item": "item"}
    budget = discreet.Budget(epsilon=0.5, delta=1e-6)
    budget.charge(Guarantee.from_dp(0.25, 1e-6))
    left = r"epsilon=0\.25 and delta=0\.0 are left.*No delta is left\. Try epsilon=0\.25 without a delta"
    with pytest.raises(BudgetExceeded, match=f"this needs {needed}.*{left}"):
        discreet.count(log, **columns, items=["a"], rho=rho, budget=budget)
    with pytest.raises(BudgetExceeded, match="No delta is left: give each release a share"):
        discreet.count(log, **columns, rho=rho, delta=1e-9, budget=budget)
    assert discreet.count(log, **columns, items=["a"], epsilon=0.25, budget=budget).items == ["a"]


def test_budget_exceeded_names_the_parameter_used_up():
    budget = discreet.Budget(rho=1.0, delta=1e-6)
    for _ in range(9):
        budget.charge(discreet.Guarantee(0.1, 1e-6 / 10))
    budget.charge(discreet.Guarantee(0, 1e-7))
    with pytest.raises(BudgetExceeded, match="No delta is left: give each release a share"):
        budget.charge(discreet.Guarantee(0.1, 1e-7))
    with pytest.raises(BudgetExceeded, match=r"Try rho=0\.0999\."):
        budget.charge(discreet.Guarantee(0.2, 0))
    budget.charge(discreet.Guarantee(0.1 - 1e-13, 0))
    with pytest.raises(BudgetExceeded, match="No rho is left"):
        budget.charge(discreet.Guarantee(0.1, 0))
