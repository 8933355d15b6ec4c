"""An exception at any line: what was drawn is paid for, and nothing is half-written."""

import linecache
import os
import sys
import time
from pathlib import Path

import pytest
from small import histogram, top

import discreet
from discreet import Budget, Guarantee, GumbelTopK, Ledger
from discreet.errors import InputError

PACKAGE = str(Path(discreet.__file__).parent)


class Struck(BaseException):
    """Stands for an interrupt."""


def is_release_of_lock(frame):
    """Whether the line is that of a lock: Python handles signals after calls, not between a block and its lock."""
    return "_lock:" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def struck_at(number, call):
    """Whether `call` was interrupted at the line of the package with this number."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and not is_release_of_lock(frame):
            seen += 1
            if seen == number:
                sys.settrace(None)
                raise Struck
        return trace

    sys.settrace(trace)
    try:
        call()
    except Struck:
        return True
    finally:
        sys.settrace(None)
    return False


def strike_everywhere(budget_of, stride, monkeypatch):
    mechanism, data, drawn = top(rho=0.1, delta=1e-8), histogram(), []
    run = GumbelTopK._run

    def noted(self, given, rng):
        drawn.append(1)
        return run(self, given, rng)

    monkeypatch.setattr(GumbelTopK, "_run", noted)
    number, kinds = 1, set()
    while True:
        budget = budget_of(number)
        drawn.clear()
        finished = not struck_at(number, lambda budget=budget: budget.release(mechanism, data))
        charged = budget.spent.rho > 0
        assert charged or not drawn
        assert budget.spent == Guarantee(0, 0) or budget.spent.rho == pytest.approx(mechanism.guarantee.rho)
        assert len(budget.history) == charged
        kinds.add((charged, bool(drawn)))
        budget.charge(Guarantee(0.5, 0))
        assert len(budget.history) == charged + 1
        if finished:
            return number, kinds
        number += stride


def test_a_budget_charges_what_was_drawn_wherever_it_is_interrupted(monkeypatch):
    lines, kinds = strike_everywhere(lambda _: Budget(rho=1.0, delta=1e-6), 1, monkeypatch)
    assert lines > 50
    assert kinds == {(False, False), (True, False), (True, True)}


def test_a_ledger_charges_what_was_drawn_wherever_it_is_interrupted(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of charges, none of which a power cut threatens

    def budget_of(number):
        return Ledger.open(tmp_path / f"ledger {number}").dataset("views", rho=1.0, delta=1e-6)

    lines, kinds = strike_everywhere(budget_of, 3, monkeypatch)
    assert lines > 200
    assert kinds >= {(False, False), (True, False), (True, True)}
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("ledger ")] == []
    for path in tmp_path.iterdir():
        Ledger.open(path).check()


@pytest.mark.parametrize("nameless", [True, False])
def test_an_interrupted_creation_leaves_all_or_nothing(monkeypatch, tmp_path, nameless):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    number = 1
    while struck_at(number, lambda: Ledger.open(tmp_path / "ledger")):
        assert len(list(tmp_path.glob("ledger"))) == len(list(tmp_path.iterdir())) or not nameless
        Ledger.open(tmp_path / "ledger").check()
        (tmp_path / "ledger").unlink()
        number += 1
    assert number > 30


def test_a_progress_that_fails_costs_nothing_and_a_draw_that_fails_is_paid_for(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")

    def fail(*_, **__):
        raise RuntimeError

    budget = Budget(rho=1.0, delta=1e-6)
    log = {"user": list(range(2_000)), "item": ["x"] * 2_000}

    def batches():
        for _ in range(40):
            time.sleep(0.05)
            yield pyarrow.record_batch(log)

    slow = pyarrow.RecordBatchReader.from_batches(pyarrow.record_batch(log).schema, batches())
    with pytest.raises((RuntimeError, InputError)):
        discreet.count(slow, user="user", item="item", rho=0.1, delta=1e-7, budget=budget, progress=fail)
    assert budget.spent == Guarantee(0, 0)
    monkeypatch.setattr(GumbelTopK, "_published", fail)
    with pytest.raises(RuntimeError):
        discreet.top_k(log, user="user", item="item", k=1, rho=0.1, delta=1e-7, budget=budget)
    assert budget.spent.rho == pytest.approx(0.1)
    assert [row.status for row in budget.history] == ["reserved"]
