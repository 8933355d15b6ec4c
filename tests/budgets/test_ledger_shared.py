"""One ledger file that copied ledgers, threads and forked processes use together."""

import copy
import pickle
from contextlib import suppress
from fractions import Fraction

import pytest
from children import ended, forks, lines, start
from lines import together

from discreet import BudgetExceeded, Guarantee, Ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "privacy.ledger"


def test_a_copied_or_unpickled_ledger_uses_the_same_file(path):
    ledger = Ledger.open(path)
    dataset = ledger.dataset("views", rho=1.0, delta=1e-6)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            attempt(dataset)
    for other in (pickle.loads(pickle.dumps(ledger)), copy.deepcopy(ledger)):
        other.dataset("views").charge(Guarantee(0.4, 0))
    with pytest.raises(BudgetExceeded):
        dataset.charge(Guarantee(0.4, 0))
    assert not hasattr(dataset, "__dict__")
    with pytest.raises(AttributeError):
        dataset.name = "other"
    with pytest.raises(TypeError):
        Ledger()


@forks
def test_forked_processes_never_exceed_one_budget(path):
    ledger = Ledger.open(path)
    dataset = ledger.dataset("views", rho=1.0, delta=1e-6)
    dataset.charge(Guarantee(0.1, 0))

    def spend(tell):
        with suppress(BudgetExceeded):
            for number in range(5):
                dataset.charge(Guarantee(0.1, 0))
                tell(number)

    children = [start(spend) for _ in range(4)]
    dataset.remaining  # noqa: B018 - the parent reads while its children charge
    assert sum(len([*lines(heard)]) for _, heard in children) == 9
    assert [ended(child) for child, _ in children] == [0] * 4
    assert len(dataset.history) == 10
    ledger.check()


def test_threads_never_exceed_one_budget(path):
    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    fitted = []

    def charge():
        with suppress(BudgetExceeded):
            for _ in range(10):
                dataset.charge(Guarantee(0.03, 0))
                fitted.append(1)

    together(charge)
    assert len(fitted) == 33
    assert Fraction(dataset.spent.rho) <= 1


def test_threads_that_open_the_same_new_file_get_one_ledger(path):
    for ledger in together(lambda: Ledger.open(path)):
        ledger.dataset("views", rho=1.0, delta=1e-6).charge(Guarantee(0.1, 0))
    assert len(Ledger.open(path).history) == 8
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []
