"""Signal handlers that charge a budget during another charge: the handler does not wait, and no total is exceeded.

A test raises the signal at each line of the interrupted call in turn.
"""

import os
import signal

import pytest
from lines import at_line
from small import histogram, top

import discreet
from discreet import Budget, BudgetExceeded, DiscreetError, Guarantee, Ledger
from discreet.budgets import ledger_file

CHARGE = Guarantee(0.4, 1e-8)
pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="the system has no POSIX signals")


@pytest.fixture(autouse=True)
def end_a_hanging_test():
    """Fail a test that takes ten minutes."""

    def hung(*_):
        raise AssertionError("a charge waits for the charge that it interrupts")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(600)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def handled_at(number, call, handler):
    """Raise a signal at line `number` of a call. Return the results or errors of the call and of the signal handler."""
    ends = {}

    def noted(name, run):
        try:
            ends[name] = run()
        except DiscreetError as error:
            ends[name] = error

    before = signal.signal(signal.SIGUSR1, lambda *_: noted("handler", handler))
    try:
        at_line(number, lambda: noted("call", call), lambda: signal.raise_signal(signal.SIGUSR1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    return ends


def handled_everywhere(budget_of, spend, least, stride=1):
    """Spend a new budget, and again at every `stride`-th line, until the call has fewer lines: more than `least`.

    Yields what `budget_of` made, and the results or errors.
    """
    number, ends = 1, {"handler": None}
    while "handler" in ends:
        budget = budget_of(number)
        ends = handled_at(number, lambda budget=budget: spend(budget), lambda budget=budget: spend(budget))
        yield budget, ends
        number += stride
    assert number > least


def charge(budget):
    return budget.charge(CHARGE)


def charged_twice(budget_of, least):
    """Interrupt a charge with a second charge, at every line. Return the types of errors."""
    errors = set()
    for budget, ends in handled_everywhere(budget_of, charge, least):
        errors |= {type(end) for end in ends.values() if end is not None}
        paid = sum(end is None for end in ends.values())
        assert paid <= len(budget.history) <= len(ends)
        assert budget.spent.rho == pytest.approx(0.4 * len(budget.history))
        while budget.fits(CHARGE):
            budget.charge(CHARGE)
        assert len(budget.history) == 2
    return errors


def test_a_handler_charges_the_budget_that_it_interrupts():
    assert charged_twice(lambda _: Budget(rho=1.0, delta=1e-6), least=30) == set()


def test_only_one_of_a_charge_and_its_handlers_charge_fits():
    refused = set()
    for budget, ends in handled_everywhere(lambda _: Budget(rho=0.6, delta=1e-6), charge, least=30):
        assert len(budget.history) == 1
        assert budget.spent.rho == pytest.approx(0.4)
        refused |= {name for name, end in ends.items() if isinstance(end, BudgetExceeded)}
    assert refused == {"call", "handler"}


def test_a_handler_charges_the_ledger_that_it_interrupts(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def budget_of(number):
        return Ledger.open(tmp_path / f"ledger {number}").dataset("views", rho=1.0, delta=1e-6)

    assert charged_twice(budget_of, least=200) == {discreet.errors.LedgerError}
    for path in tmp_path.iterdir():
        Ledger.open(path).check()
    assert not ledger_file._held


def test_a_handler_uses_the_exchange_that_it_interrupts():
    def exchange_of(_):
        return Budget(rho=1.0, delta=1e-6).pay_what_you_get(outcomes=1, queries=2, epsilon=1.0, delta=1e-8)

    for exchange, ends in handled_everywhere(exchange_of, lambda e: e.top_k(histogram(), k=1), least=100, stride=3):
        assert exchange.outcomes_left in (0, 1)
        assert exchange.queries_left in (0, 1)
        assert {type(end) for end in ends.values()} <= {discreet.Release, BudgetExceeded}


def test_a_release_interrupted_by_a_handler_is_charged():
    mechanism = top(rho=0.4, delta=1e-8)

    def release(budget):
        return budget.release(mechanism, histogram())

    for budget, ends in handled_everywhere(lambda _: Budget(rho=1.0, delta=1e-6), release, least=100, stride=3):
        released = sum(isinstance(end, discreet.Release) for end in ends.values())
        assert len(budget.history) == released == len(ends)
        assert {row.status for row in budget.history} == {"released"}
