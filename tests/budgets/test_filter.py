"""The charges that fit into a total, exact to 2^-128 of rho and of delta. A ledger has units of 2^-64 of rho too."""

import math
import random
from contextlib import suppress
from fractions import Fraction

import pytest
from lines import together
from small import histogram, top

from discreet import Budget, BudgetExceeded, Guarantee
from discreet.errors import ParameterError

UNITS = Fraction(2) ** -128, Fraction(2) ** -128


class Model:
    """An independent implementation of a budget that computes with fractions."""

    def __init__(self, rho, delta):
        self.totals = [math.floor(Fraction(x) / u) for x, u in zip((rho, delta), UNITS, strict=True)]
        self.promised = [rho, delta]
        self.spent = [0, 0]

    def price(self, guarantee):
        asked = guarantee.rho, guarantee.delta
        plain = [math.ceil(Fraction(x) / u) for x, u in zip(asked, UNITS, strict=True)]
        # The first charge of rho or of delta may be the whole total, up to the rounding of the guarantee.
        most = [total + max(0, math.ceil(Fraction(total, 2**53)) - 1) for total in self.totals]
        within = zip(plain, asked, self.promised, most, strict=True)
        capped = [min(units, cap) if x <= promise else units for units, x, promise, cap in within]
        return capped if not self.fits(plain) and self.fits(capped) else plain

    def fits(self, price):
        def one(spent, cost, total):
            slack = Fraction(total, 2**52 if spent else 2**53) if spent < total else 0
            return cost == 0 or spent + cost <= total or spent + cost < total + slack

        return all(map(one, self.spent, price, self.totals))

    def pay(self, price):
        self.spent = [s + p for s, p in zip(self.spent, price, strict=True)]


def spent_units(budget):
    account = budget._account()
    return [account.spent.fine, account.spent.delta]


def random_guarantee(generator, budget):
    kind = generator.randrange(8)
    left = budget.remaining
    if kind == 0:
        return left
    if kind == 1:
        return Guarantee(math.nextafter(left.rho, math.inf), left.delta)
    if kind == 2:
        return Guarantee(5e-324, generator.choice([0.0, 5e-324, 1e-320]))
    if kind == 3:
        return Guarantee(left.rho * generator.random(), left.delta * generator.random())
    if kind == 4:
        return Guarantee(0.0, left.delta * generator.random())
    return Guarantee(generator.choice([0.05, 0.1, 0.01, 1 / 3]), generator.choice([1e-7, 1e-8, 0.0]))


def run_program(seed):
    generator = random.Random(seed)
    rho, delta = generator.choice([(1.0, 1e-6), (0.3, 1e-9), (1e-3, 0.5), (4999.0, 0.0)])
    budget, model, data = Budget(rho=rho, delta=delta), Model(rho, delta), histogram()
    for _ in range(generator.randrange(1, 21)):
        if generator.random() < 0.3:
            mechanism = top(rho=generator.choice([0.01, 0.1, 0.5]), delta=generator.choice([1e-8, 1e-7]))
            charge = generator.choice(["guarantee", "spent"])
            price = model.price(mechanism.guarantee)
            if not model.fits(price):
                with pytest.raises(BudgetExceeded):
                    budget.release(mechanism, data, charge=charge)
                continue
            release = budget.release(mechanism, data, charge=charge)
            model.pay(model.price(release.spent) if charge == "spent" else price)
        else:
            guarantee = random_guarantee(generator, budget)
            price = model.price(guarantee)
            assert budget.fits(guarantee) is model.fits(price)
            if model.fits(price):
                budget.charge(guarantee)
                model.pay(price)
            else:
                with pytest.raises(BudgetExceeded):
                    budget.charge(guarantee)
        assert spent_units(budget) == model.spent
    for spent, total in zip(model.spent, model.totals, strict=True):
        assert spent * 2**52 <= total * (2**52 + 1)


@pytest.mark.parametrize("seeds", [400, pytest.param(20_000, marks=pytest.mark.statistical)])
def test_random_charges_match_a_model_in_fractions(seeds):
    for seed in range(seeds):
        run_program(seed)


@pytest.mark.parametrize("parts", [2, 3, 7, 10, 20, 49, 100])
def test_equal_parts_of_a_total_fit_and_then_not_one_unit_more(parts):
    budget = Budget(rho=1.0, delta=1e-6)
    for _ in range(parts):
        budget.charge(Guarantee(1 / parts, 1e-6 / parts))
    with pytest.raises(BudgetExceeded):
        budget.charge(Guarantee(1 / parts, 0))
    rest = budget.remaining
    budget.charge(Guarantee(rest.rho, rest.delta))
    for unit in (Guarantee(2.0**-64, 0), Guarantee(0, 2.0**-128)):
        if rest == Guarantee(0, 0) or budget.remaining == Guarantee(0, 0):
            with pytest.raises(BudgetExceeded):
                budget.charge(unit)
    assert budget.spent.rho <= 1 == budget.guarantee.rho
    assert budget.spent.delta <= 1e-6 == budget.guarantee.delta


def test_the_guarantee_is_the_given_total_and_the_next_float_does_not_fit():
    for rho, delta in ((1.0, 0.0), (0.7, 1e-6), (0.1, 1e-6), (1e-3, 3e-9), (4999.0, 0.0)):
        promised = Budget(rho=rho, delta=delta).guarantee
        assert (promised.rho, promised.delta) == (rho, delta)
        for more in (Guarantee(math.nextafter(rho, math.inf), 0), Guarantee(0, math.nextafter(delta, 1))):
            with pytest.raises(BudgetExceeded):
                Budget(rho=rho, delta=delta).charge(more)


@pytest.mark.parametrize("number", [10_000, pytest.param(1_000_000, marks=pytest.mark.statistical)])
def test_the_smallest_charges_count_one_unit_each(number):
    budget = Budget(rho=1.0, delta=1e-6)
    for _ in range(number):
        budget.charge(Guarantee(5e-324, 1e-320))
    assert spent_units(budget) == [number, number]


def test_tiny_totals_work_or_are_refused_at_once():
    totals = [{"rho": rho, "delta": delta} for rho, delta in ((5e-324, 1e-320), (1e-20, 0), (5.4e-20, 0), (1, 2.9e-39))]
    for total in (*totals, {"epsilon": 1e-3, "delta": 1e-40}):
        with pytest.raises(ParameterError, match="too small"):
            Budget(**total)
    with pytest.raises(BudgetExceeded):
        Budget(rho=1e-18, delta=0).charge(Guarantee(0.1, 0))


def test_threads_never_spend_more_than_the_total():
    budget = Budget(rho=1.0, delta=1e-4)

    def charge():
        fitted = 0
        for _ in range(200):
            with suppress(BudgetExceeded):
                budget.charge(Guarantee(0.003, 1e-8))
                fitted += 1
        return fitted

    assert sum(together(charge)) == 333 == len(budget.history)
