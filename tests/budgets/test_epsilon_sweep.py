"""A budget in epsilon pays for one release of its epsilon and delta, whatever their last bits are."""

import math
import re

import numpy as np
import pytest

import discreet as dp
from discreet import Budget, Guarantee
from discreet.errors import BudgetExceeded, ParameterError
from discreet.mechanisms import Aggregates, CountsWithFoundBound, CountsWithShare, DiscoverAndSum, SumsWithFoundBounds
from discreet.planning.choose import choose

EPSILONS = np.exp(np.random.default_rng(5).uniform(math.log(0.02), math.log(60), 200)).tolist()
DELTAS = (1e-6, 3.3e-9, 7.77e-5)
LOG = {"user": [*range(2000)] * 2, "item": ["a"] * 2000 + ["b"] * 2000}

# These mechanisms take 20 milliseconds or more to find.
SLOW = ("sum with found bounds", "select with l0", "count with a share", "count with l0", "select")
VERBS = {
    "count": lambda e, d: choose("count", epsilon=e, delta=d)[0],
    "count with l0": lambda e, d: choose("count", epsilon=e, delta=d, l0=3)[0],
    "count with a found l0": lambda e, d: CountsWithFoundBound.from_epsilon(epsilon=e, delta=d),
    "count with a share": lambda e, d: CountsWithShare.from_epsilon(epsilon=e, delta=d, l0=3),
    "top_k": lambda e, d: choose("top_k", epsilon=e, delta=d, k=10)[0],
    "select": lambda e, d: choose("select", epsilon=e, delta=d, l0=1)[0],
    "select with l0": lambda e, d: choose("select", epsilon=e, delta=d, l0=7)[0],
    "aggregate": lambda e, d: Aggregates.from_epsilon(epsilon=e, delta=d, l0=2, rows=3),
    "sum": lambda e, d: DiscoverAndSum.from_epsilon(epsilon=e, delta=d, l0=2, low=0, high=9),
    "sum with found bounds": lambda e, d: SumsWithFoundBounds.from_epsilon(epsilon=e, delta=d, l0=2),
}


@pytest.mark.parametrize(
    ("verb", "step"),
    [(verb, 4 if verb in SLOW else 1) for verb in VERBS]
    + [pytest.param(verb, 1, marks=pytest.mark.statistical) for verb in SLOW],
)
def test_a_budget_pays_for_a_release_of_its_own_epsilon(verb, step):
    paid = 0
    for number, epsilon in [*enumerate(EPSILONS)][::step]:
        delta = DELTAS[number % 3]
        try:
            mechanism = VERBS[verb](epsilon, delta)
        except ParameterError:  # an epsilon that the mechanism itself does not take
            continue
        budget = Budget(epsilon=epsilon, delta=delta)
        assert budget.fits(mechanism), (epsilon, delta)
        budget.charge(mechanism)
        assert not budget.fits(mechanism), (epsilon, delta)
        paid += 1
    assert paid > 150 // step


@pytest.mark.parametrize("number", range(0, 200, 40))
def test_the_functions_are_paid_for_too(number):
    epsilon, delta = EPSILONS[number], DELTAS[number % 3]
    for call in (
        lambda budget: dp.count(LOG, user="user", item="item", epsilon=epsilon, delta=delta, l0=2, budget=budget),
        lambda budget: dp.top_k(LOG, user="user", item="item", k=3, epsilon=epsilon, delta=delta, budget=budget),
        lambda budget: dp.select(LOG, user="user", item="item", l0=2, epsilon=epsilon, delta=delta, budget=budget),
    ):
        budget = Budget(epsilon=epsilon, delta=delta)
        call(budget)
        assert len(budget.history) == 1


def test_a_budget_fits_its_own_guarantee_and_its_equal_parts():
    for number, value in enumerate(EPSILONS):
        delta = DELTAS[number % 3]
        for budget in (Budget(epsilon=value, delta=delta), Budget(rho=value, delta=delta), Budget(rho=value, delta=0)):
            assert budget.fits(budget.guarantee), repr(budget)
            shares = budget.split(n := 1 + number % 13)
            assert len(shares) == n
            assert len({(share.rho, share.delta) for share in shares}) == 1
            for share in shares:
                assert isinstance(share, Guarantee)
                budget.charge(share)
            assert len(budget.history) == n


def test_a_refused_charge_prints_digits_that_differ():
    for value in EPSILONS:
        budget = Budget(rho=value, delta=1e-6)
        over = value
        for _ in range(3):  # the guarantee of a budget is the next float above its total
            over = math.nextafter(over, math.inf)
        with pytest.raises(BudgetExceeded) as refused:
            budget.charge(Guarantee(over, 0))
        costs, left = re.match(r".*costs rho=(\S+); rho=(\S+) is left", str(refused.value)).groups()
        assert costs != left
        assert float(costs) > float(left)


def test_charges_are_numbered_without_gaps(tmp_path):
    def spend(budget):
        for _ in range(3):
            dp.select(LOG, user="user", item="item", l0=1, rho=0.1, delta=1e-8, budget=budget)
        budget.charge(Guarantee(0.1, 0), made_by="another library")
        return [row.number for row in budget.history]

    assert spend(Budget(rho=1, delta=1e-6)) == [1, 2, 3, 4]
    ledger = dp.Ledger.open(tmp_path / "privacy.ledger")
    ledger.dataset("first", rho=1, delta=1e-6)
    ledger.dataset("second", rho=1, delta=1e-6)
    assert spend(ledger.dataset("first")) == [1, 2, 3, 4]
    # Numbers are those of the whole ledger, as `discreet budget history` lists them.
    assert spend(ledger.dataset("second")) == [5, 6, 7, 8]
    assert [row.number for row in ledger.history] == [*range(1, 9)]
