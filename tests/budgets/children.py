"""Forked processes for tests of ledgers.

A process remembers the ledgers that it has read, and a forked child starts with a copy of this memory. So these helpers
open a ledger only in children: each child reads the ledger for the first time.
"""

import json
import os
import signal
import traceback
from contextlib import contextmanager

import pytest

from discreet import BudgetExceeded, Guarantee, Ledger

PART = 2.0**-13
"""The rho of one charge."""

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def start(work, *arguments):
    """Fork a process that runs `work(tell, *arguments)`.

    Returns the id of the process and a pipe. `tell(message)` in the child writes a message to the pipe.
    """
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
    """Yield the messages of a child until the child ends."""
    with os.fdopen(heard, "rb") as pipe:
        for line in pipe:
            yield json.loads(line)


def in_child(work, *arguments):
    """Run `work(*arguments)` in a child process, and return its result."""
    child, heard = start(lambda tell: tell(work(*arguments)))
    (answer,) = lines(heard)
    assert ended(child) == 0
    return answer


def make(path, parts):
    """Create a ledger with one dataset, whose total is `parts` charges, in a child process."""

    def work():
        Ledger.open(path).dataset("views", rho=parts * PART, delta=0)

    in_child(work)


def spend(tell, path):
    """Charge one part after another until the budget is used up, and tell the name of each charge that has returned."""
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


def ended(child):
    """Wait for the end of a child, and return its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spent(path):
    """Use up the budget in a child process. Return the names of its charges."""
    child, heard = start(spend, path)
    told = [*lines(heard)]
    assert ended(child) == 0
    return told


def killed(path, number, wait=0):
    """Kill a child process once `number` of its charges have returned. Return their names, and whether it was killed.

    Before that, wait for some steps, so that the kill comes in the middle of a charge.
    """
    child, heard = start(spend, path)
    hearing = lines(heard)
    told = [name for name in [next(hearing, None) for _ in range(number)] if name]
    for _ in range(wait):
        pass
    os.kill(child, signal.SIGKILL)
    told += hearing
    return told, ended(child) == -signal.SIGKILL


def charges(path):
    """Return the names of the charges in a ledger, read in a child process that checks their sum."""

    def work():
        ledger = Ledger.open(path, create=False)
        names = [row.mechanism for row in ledger.history]
        assert ledger.dataset("views").spent.rho == len(names) * PART
        return names

    return in_child(work)


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
