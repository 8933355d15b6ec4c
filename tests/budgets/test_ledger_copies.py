"""A process remembers the ledgers that it has read, and refuses older and diverged copies of these ledgers."""

import os
import threading
from contextlib import suppress

import pytest
from children import forks, in_child
from lines import together

from discreet import Guarantee, Ledger
from discreet.errors import LedgerError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "privacy.ledger"


def opened(path, rho=1.0):
    return Ledger.open(path).dataset("views", rho=rho, delta=1e-6)


def test_an_older_copy_is_refused_by_every_object(path, tmp_path):
    dataset = opened(path)
    backup = path.read_bytes()
    dataset.charge(Guarantee(0.9, 0))
    del dataset
    path.unlink()
    path.write_bytes(backup)
    with pytest.raises(LedgerError, match="rolled back"):
        opened(path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(backup)
    for place in (path, elsewhere):
        with pytest.raises(LedgerError, match="rolled back"):
            Ledger.open(place)


def test_a_copy_that_has_diverged_is_refused(path, tmp_path):
    copy = tmp_path / "copy"
    first = opened(path)
    copy.write_bytes(path.read_bytes())
    second = Ledger.open(copy).dataset("views")
    first.charge(Guarantee(0.6, 0))
    with pytest.raises(LedgerError, match="rolled back"):
        second.charge(Guarantee(0.6, 0))
    with pytest.raises(LedgerError, match="rolled back"):
        second.remaining  # noqa: B018
    first.charge(Guarantee(0.1, 0))


@forks
def test_a_copy_that_another_process_charged_is_refused(path, tmp_path):
    copy = tmp_path / "copy"
    dataset = opened(path)
    copy.write_bytes(path.read_bytes())

    def go_on():
        other = Ledger.open(copy).dataset("views")
        for _ in range(3):
            other.charge(Guarantee(0.2, 0))

    in_child(go_on)  # in a child, so that this process has not read this state
    dataset.charge(Guarantee(0.6, 0))
    with pytest.raises(LedgerError, match="rolled back"):
        Ledger.open(copy)
    Ledger.open(path).check()
    copy.replace(path)
    with pytest.raises(LedgerError, match="rolled back"):
        dataset.charge(Guarantee(0.1, 0))


@forks
def test_a_forked_child_remembers_what_its_parent_has_read(path):
    dataset = opened(path)
    backup = path.read_bytes()
    dataset.charge(Guarantee(0.9, 0))
    path.write_bytes(backup)

    def attempt():
        try:
            Ledger.open(path)
        except LedgerError as error:
            return "rolled back" in str(error)
        return False

    assert in_child(attempt)


def test_two_threads_cannot_spend_two_copies(path, tmp_path):
    for trial in range(20):
        first = tmp_path / f"first {trial}"
        copy = tmp_path / f"copy {trial}"
        opened(first)
        copy.write_bytes(first.read_bytes())
        payers = [Ledger.open(name).dataset("views") for name in (first, copy)]
        both, paid = threading.Barrier(2), []

        def charge(payers=payers, both=both, paid=paid):
            payer = payers[both.wait()]
            with suppress(LedgerError):
                payer.charge(Guarantee(0.6, 0))
                paid.append(payer)

        together(charge, threads=2)
        assert len(paid) == 1


def test_another_ledger_at_the_same_path_is_refused(path, tmp_path):
    dataset = opened(path)
    opened(tmp_path / "another")
    os.replace(tmp_path / "another", path)
    with pytest.raises(LedgerError, match="another ledger"):
        dataset.charge(Guarantee(0.1, 0))
    opened(path).charge(Guarantee(0.1, 0))
