"""Signal handlers that charge a budget during another charge: the handler does not wait, and no total is exceeded.

A test raises the signal at each line of the interrupted call in turn.
"""

import os
import signal
import sys
from pathlib import Path

import pytest
from small import histogram, top

import discreet
from discreet import Budget, BudgetExceeded, DiscreetError, Guarantee, Ledger
from discreet.budgets import ledger_file

PACKAGE = str(Path(discreet.__file__).parent)
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
    seen, ends = 0, {}

    def noted(name, run):
        try:
            ends[name] = run()
        except DiscreetError as error:
            ends[name] = error

    def handle(*_):
        sys.settrace(None)
        noted("handler", handler)

    def trace(frame, event, _):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            seen += 1
            if seen == number:
                signal.raise_signal(signal.SIGUSR1)
        return trace

    before = signal.signal(signal.SIGUSR1, handle)
    sys.settrace(trace)
    try:
        noted("call", call)
    finally:
        sys.settrace(None)
        signal.signal(signal.SIGUSR1, before)
    return ends


def handle_everywhere(budget_of, stride=1):
    """Interrupt a charge with a second charge, at every `stride`-th line.

    Returns the number of lines and the types of errors.
    """
    number, errors = 1, set()
    while True:
        budget = budget_of(number)
        ends = handled_at(
            number, lambda budget=budget: budget.charge(CHARGE), lambda budget=budget: budget.charge(CHARGE)
        )
        errors |= {type(end) for end in ends.values() if end is not None}
        paid = sum(end is None for end in ends.values())
        assert paid <= len(budget.history) <= len(ends)
        assert budget.spent.rho == pytest.approx(0.4 * len(budget.history))
        while budget.fits(CHARGE):
            budget.charge(CHARGE)
        assert len(budget.history) == 2
        if "handler" not in ends:
            return number, errors
        number += stride


def test_a_handler_charges_the_budget_that_it_interrupts():
    lines, errors = handle_everywhere(lambda _: Budget(rho=1.0, delta=1e-6))
    assert lines > 30
    assert errors == set()


def test_only_one_of_a_charge_and_its_handlers_charge_fits():
    number, refused = 1, set()
    while True:
        budget = Budget(rho=0.6, delta=1e-6)
        ends = handled_at(
            number, lambda budget=budget: budget.charge(CHARGE), lambda budget=budget: budget.charge(CHARGE)
        )
        assert len(budget.history) == 1
        assert budget.spent.rho == pytest.approx(0.4)
        refused |= {name for name, end in ends.items() if isinstance(end, BudgetExceeded)}
        if "handler" not in ends:
            break
        number += 1
    assert refused == {"call", "handler"}


def test_a_handler_charges_the_ledger_that_it_interrupts(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def budget_of(number):
        return Ledger.open(tmp_path / f"ledger {number}").dataset("views", rho=1.0, delta=1e-6)

    lines, errors = handle_everywhere(budget_of)
    assert lines > 200
    assert errors == {discreet.errors.LedgerError}
    for path in tmp_path.iterdir():
        Ledger.open(path).check()
    assert not ledger_file._held


def test_a_handler_uses_the_exchange_that_it_interrupts():
    number, lists = 1, 0
    while True:
        budget = Budget(rho=1.0, delta=1e-6)
        exchange = budget.pay_what_you_get(outcomes=1, queries=2, epsilon=1.0, delta=1e-8)

        def ask(exchange=exchange):
            return exchange.top_k(histogram(), k=1)

        ends = handled_at(number, ask, ask)
        lists += sum(not isinstance(end, DiscreetError) for end in ends.values())
        assert exchange.outcomes_left in (0, 1)
        assert exchange.queries_left in (0, 1)
        assert {type(end) for end in ends.values()} <= {discreet.Release, BudgetExceeded}
        if "handler" not in ends:
            break
        number += 3
    assert number > 100


def test_a_release_interrupted_by_a_handler_is_charged():
    number = 1
    while True:
        budget = Budget(rho=1.0, delta=1e-6)
        mechanism = top(rho=0.4, delta=1e-8)
        ends = handled_at(
            number,
            lambda budget=budget, mechanism=mechanism: budget.release(mechanism, histogram()),
            lambda budget=budget, mechanism=mechanism: budget.release(mechanism, histogram()),
        )
        released = sum(isinstance(end, discreet.Release) for end in ends.values())
        assert len(budget.history) == released == len(ends)
        assert {row.status for row in budget.history} == {"released"}
        if "handler" not in ends:
            break
        number += 3
    assert number > 100
