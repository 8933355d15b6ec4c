"""Forked processes for tests of ledgers. They do not share memory, so they know only the ledgers they have opened."""

import json
import os
import traceback
from contextlib import contextmanager

import pytest

from discreet import BudgetExceeded, Guarantee, Ledger

PART = 2.0**-13

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")


def start(work, *arguments):
    """Fork a process that runs `work(tell, *arguments)`; return its id and a pipe that receives what it tells."""
    heard, told = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        return child, heard
    code = 99
    try:
        os.close(heard)
        work(lambda line: os.write(told, (json.dumps(line) + "\n").encode()), *arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def lines(heard):
    """Yield the messages of a child until it ends."""
    with os.fdopen(heard, "rb") as pipe:
        for line in pipe:
            yield json.loads(line)


def asked(work, *arguments):
    """Run `work(*arguments)` in a child process; return its result."""
    child, heard = start(lambda tell: tell(work(*arguments)))
    (answer,) = lines(heard)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return answer


def make(path, parts):
    """Create a ledger with one dataset, in a child process."""

    def work():
        Ledger.open(path).dataset("views", rho=parts * PART, delta=0)

    asked(work)


def spend(tell, path):
    """Charge parts until no more fits, and send the name of each charge that has returned."""
    dataset = Ledger.open(path, timeout=120).dataset("views")
    count = 0
    while True:
        name = f"{os.getpid()}.{count}"
        try:
            dataset.charge(Guarantee(PART, 0), made_by=name)
        except BudgetExceeded:
            return
        tell(name)
        count += 1


def charges(path):
    """Return the names of the charges in a ledger, verified by a child process that has not seen it before."""

    def work():
        ledger = Ledger.open(path, create=False)
        names = [row.mechanism for row in ledger.history]
        assert ledger.dataset("views").spent.rho == len(names) * PART
        return names

    return asked(work)


@contextmanager
def held_lock(path):
    """Hold a ledger's lock, as another process does during a charge."""
    fcntl = pytest.importorskip("fcntl")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
