"""Forks: a child of a process that is counting counts on, and draws noise of its own."""

import os
import signal
import sys
import threading

import pytest

import discreet as dp
from discreet import _core
from discreet.errors import ResourceError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

TABLE = {"user": list(range(300)), "item": ["a", "b", "c"] * 100}
FORKS = 40


def counted():
    """Counts, and then a release by a mechanism that has computed nothing yet; the bits of a fresh stream."""
    histogram = dp.Histogram.from_table(TABLE, user="user", item="item", l0=1)
    release = dp.GaussianThreshold(sigma=20.0, delta=1e-6, l0=1).release(histogram)
    return f"{release.counts.tolist()} {_core.Rng().words(4).tolist()}"


def forked(work):
    """What a fork writes that does some work, or that it hangs; it ends by itself after a minute."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os.write(write, work().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as source:
        told = source.read()
    os.waitpid(child, 0)
    return told or "hung"


def test_a_fork_counts_while_another_thread_counted():
    counted()
    done, failures = threading.Event(), []

    def work():
        while not done.is_set():
            try:
                counted()
            except BaseException as error:  # pragma: no cover
                failures.append(error)
                raise

    thread = threading.Thread(target=work)
    thread.start()
    try:
        told = [forked(counted) for _ in range(FORKS)]
    finally:
        done.set()
        thread.join()
    assert failures == []
    assert told.count("hung") == 0
    assert len(set(told)) == FORKS


NAMESPACE = 0x20000000


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
def test_a_fork_with_its_parents_process_id_draws_nothing():
    """In a namespace of its own a child may have the process id of its parent."""
    ctypes = pytest.importorskip("ctypes")
    libc = ctypes.CDLL(None, use_errno=True)

    def first():
        # The first process of one namespace, of which a fork is the first of another.
        rng = _core.Rng()
        if libc.unshare(NAMESPACE):
            return "refused"

        def second():
            try:
                return f"{os.getpid()} drew {rng.bits64()}"
            except ResourceError:
                return f"{os.getpid()} drew nothing"

        return forked(second) if os.getpid() == 1 else "no namespace"

    def outer():
        return "refused" if libc.unshare(NAMESPACE) else forked(first)

    told = forked(outer)
    if told == "refused":
        pytest.skip("this process may not make namespaces")
    assert told == "1 drew nothing"
