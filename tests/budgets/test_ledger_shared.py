"""One ledger file that copied ledgers, threads and forked processes use together."""

import copy
import os
import pickle
import threading
from fractions import Fraction

import pytest

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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_processes_never_exceed_one_budget(path):
    ledger = Ledger.open(path)
    dataset = ledger.dataset("views", rho=1.0, delta=1e-6)
    dataset.charge(Guarantee(0.1, 0))
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            fitted = 0
            try:
                for _ in range(5):
                    dataset.charge(Guarantee(0.1, 0))
                    fitted += 1
            except BudgetExceeded:
                os._exit(fitted)
            except BaseException:
                os._exit(99)
            os._exit(fitted)
        children.append(child)
        dataset.remaining  # noqa: B018 - the parent reads while its children charge
    fitted = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sum(fitted) == 9
    assert len(dataset.history) == 10
    ledger.check()


def test_threads_never_exceed_one_budget(path):
    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    fitted, failed = [], []

    def charge():
        try:
            for _ in range(10):
                dataset.charge(Guarantee(0.03, 0))
                fitted.append(1)
        except BudgetExceeded:
            pass
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=charge) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(fitted) == 33
    assert Fraction(dataset.spent.rho) <= 1


def test_threads_that_open_the_same_new_file_get_one_ledger(path):
    ledgers, threads = [], []
    for _ in range(8):
        threads.append(threading.Thread(target=lambda: ledgers.append(Ledger.open(path))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    for ledger in ledgers:
        ledger.dataset("views", rho=1.0, delta=1e-6).charge(Guarantee(0.1, 0))
    assert len(ledgers) == 8
    assert len(Ledger.open(path).history) == 8
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []
