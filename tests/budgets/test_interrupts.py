"""Exceptions at any line of a release: if noise was drawn, the budget has been charged, and the ledger is valid."""

import linecache
import os
import time

import pytest
from lines import at_line
from small import histogram, top

import discreet
from discreet import Budget, Guarantee, GumbelTopK, Ledger
from discreet.budgets import ledger_file
from discreet.errors import InputError, LedgerError


class Interrupted(BaseException):
    """An exception that stands for an interrupt."""


def fail(*_, **__):
    raise RuntimeError


def is_line_of_lock(frame):
    """Return whether the line takes or releases a lock. Python handles no signal between the block and its lock."""
    return "_lock:" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def interrupted_at(number, call):
    """Raise an exception at line `number` of `call` inside the package. Return it if the call reached this line."""

    def interrupt():
        raise Interrupted

    try:
        at_line(number, call, interrupt, counts=lambda frame: not is_line_of_lock(frame))
    except Interrupted as error:
        return error
    return None


def interrupt_everywhere(budget_of, stride, monkeypatch):
    """Interrupt a release at every `stride`-th line, and check the budget.

    Returns the number of lines, and the pairs of whether the budget was charged and whether noise was drawn.
    """
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
        error = interrupted_at(number, lambda budget=budget: budget.release(mechanism, data))
        finished = error is None
        charged = budget.spent.rho > 0
        told = getattr(error, "charged", None)
        if told is None:  # an error without this field says that nothing was charged
            assert finished or not charged
        else:
            assert charged or not told.certain
            assert (told.dataset, told.rho) == (getattr(budget, "name", ""), pytest.approx(0.1))
            assert error.__notes__ == [str(told)]
        assert charged or not drawn
        assert budget.spent == Guarantee(0, 0) or budget.spent.rho == pytest.approx(mechanism.guarantee.rho)
        assert len(budget.history) == charged
        kinds.add((charged, bool(drawn)))
        budget.charge(Guarantee(0.5, 0))
        assert len(budget.history) == charged + 1
        if finished:
            return number, kinds
        number += stride


def test_no_interrupt_leaves_a_draw_without_a_charge(monkeypatch):
    lines, kinds = interrupt_everywhere(lambda _: Budget(rho=1.0, delta=1e-6), 1, monkeypatch)
    assert lines > 50
    assert kinds == {(False, False), (True, False), (True, True)}


def test_no_interrupt_leaves_a_draw_the_ledger_lacks(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # syncing hundreds of charges would take long

    def budget_of(number):
        return Ledger.open(tmp_path / f"ledger {number}").dataset("views", rho=1.0, delta=1e-6)

    lines, kinds = interrupt_everywhere(budget_of, 3, monkeypatch)
    assert lines > 200
    assert kinds >= {(False, False), (True, False), (True, True)}
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("ledger ")] == []
    for path in tmp_path.iterdir():
        Ledger.open(path).check()


@pytest.mark.parametrize("nameless", [True, False])
def test_an_interrupted_creation_leaves_a_valid_file_or_none(monkeypatch, tmp_path, nameless):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    number = 1
    while interrupted_at(number, lambda: Ledger.open(tmp_path / "ledger")):
        assert len(list(tmp_path.glob("ledger"))) == len(list(tmp_path.iterdir())) or not nameless
        Ledger.open(tmp_path / "ledger").check()
        (tmp_path / "ledger").unlink()
        number += 1
    assert number > 30


def test_only_an_error_after_the_draw_costs_budget(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")

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


def test_a_release_that_is_not_recorded_is_in_the_error(monkeypatch, tmp_path):
    ledger = Ledger.open(tmp_path / "ledger").dataset("views", rho=1.0, delta=1e-6)

    def full(*_):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(type(ledger), "_settle", full)
    with pytest.raises(LedgerError) as failed:
        ledger.release(top(rho=0.1, delta=1e-8), histogram())
    told = failed.value.charged
    assert (told.dataset, told.certain, told.release.items) == ("views", True, [f"item-0{n}" for n in range(3)])
    assert "The release is complete" in str(told)


LOG = {"user": list(range(2_000)), "item": ["home", "help"] * 1_000}
PAIRS = {"data": LOG, "user": "user", "item": "item", "rho": 100, "delta": 1e-7}
RELEASES = {
    "items": lambda budget: discreet.count(**PAIRS, items=["home", "none"], budget=budget),
    "discover+peel": lambda budget: discreet.top_k(**PAIRS, k=1, l0=1, method="discover+peel", budget=budget),
    "answers": lambda budget: discreet.answer_queries([9, 8], rho=100, delta=1e-7, budget=budget),
}


@pytest.mark.parametrize("call", RELEASES.values(), ids=RELEASES)
def test_a_release_in_an_error_is_the_one_that_was_to_be_returned(monkeypatch, call):
    usual = call(Budget(rho=1000, delta=1e-6))
    monkeypatch.setattr(Budget, "_settle", fail)
    with pytest.raises(RuntimeError) as failed:
        call(Budget(rho=1000, delta=1e-6))
    rescued = failed.value.charged.release
    facts = ("notes", "listed", "guarantee", "made_by")
    assert [getattr(rescued, name, "") for name in facts] == [getattr(usual, name, "") for name in facts]
    assert usual.notes or usual.listed == "all"


@pytest.mark.parametrize(
    ("at", "kind", "error", "spent", "certain"),
    [
        (1, OSError, LedgerError, 0, None),
        (1, KeyboardInterrupt, KeyboardInterrupt, 0, False),
        (2, OSError, LedgerError, 0.25, False),
        (2, KeyboardInterrupt, KeyboardInterrupt, 0.25, False),
    ],
)
def test_a_failing_disk_says_whether_it_was_charged(monkeypatch, tmp_path, at, kind, error, spent, certain):
    dataset = Ledger.open(tmp_path / "ledger").dataset("views", rho=1.0, delta=1e-6)
    write, writes = ledger_file._write, []

    def failing(raw, place, line):
        writes.append(line)
        if len(writes) == at:
            write(raw, place, line[:40])  # a disk is full in the middle of a line
            raise kind
        write(raw, place, line)

    monkeypatch.setattr(ledger_file, "_write", failing)
    with pytest.raises(error) as failed:
        dataset.charge(Guarantee(0.25, 0))
    monkeypatch.undo()
    told = getattr(failed.value, "charged", None)
    assert (None if told is None else told.certain) == certain
    assert told is None or str(told).endswith("delta 0. Look at the budget's history before you charge it again.")
    assert dataset.spent.rho == spent
