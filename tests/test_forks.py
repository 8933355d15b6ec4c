"""Forks: a child that is forked while its parent counts can count, and the child draws its own noise."""

import faulthandler
import os
import signal
import subprocess
import sys
import threading

import pytest

import discreet as dp
from discreet import _core
from discreet.engines import local, validated
from discreet.engines.validated import interrupted_with_call, interruptible
from discreet.errors import ResourceError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

TABLE = {"user": list(range(300)), "item": ["a", "b", "c"] * 100}
FORKS = 40


def counted():
    """Return a release by a new mechanism and the bits of a new random stream, as text."""
    histogram = dp.Histogram.from_table(TABLE, user="user", item="item", l0=1)
    release = dp.GaussianThreshold(sigma=20.0, delta=1e-6, l0=1).release(histogram)
    return f"{release.counts.tolist()} {_core.Rng().words(4).tolist()}"


def forked(work):
    """Return the text that `work` returns in a forked child. If the child takes a minute, return where it hangs."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.register(signal.SIGALRM, file=write, chain=True)
        signal.alarm(60)
        try:
            os.write(write, work().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as source:
        output = source.read()
    os.waitpid(child, 0)
    return output


def test_a_fork_during_a_count_can_count():
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
        output = [forked(counted) for _ in range(FORKS)]
    finally:
        done.set()
        thread.join()
    assert failures == []
    assert [text for text in output if not text.startswith("[")] == []
    assert len(set(output)) == FORKS


FORK_IN_AN_IMPORT = """
import os, signal, sys, threading
import discreet as dp
from discreet import imports

imports._LONGEST = 600

table = {"user": [1, 2, 3], "item": ["a", "b", "c"], "value": [1.0, 2.0, 3.0]}
release = lambda: dp.sum(table, user="user", item="item", value="value", bounds=(0, 1), items=["a"], rho=1.0)
call = lambda: (release().to_pandas(), sys.modules["discreet.engines.sql"].connect())
began, forking = threading.Event(), threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1] and not began.is_set():
            began.set()
            forking.wait()

sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=call)
thread.start()
assert began.wait(200)
os.register_at_fork(before=forking.set)
child = os.fork()
if child == 0:
    signal.alarm(60)
    call()
    os._exit(0)
thread.join()
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("module", ["discreet.sums", "discreet.tables.user_items", "duckdb", "numpy.ma", "pandas"])
def test_a_fork_waits_for_the_imports_of_another_thread(module):
    command = [sys.executable, "-W", "ignore", "-c", FORK_IN_AN_IMPORT, module]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "0\n"


def test_a_child_ends_no_call_of_its_parent():
    """A signal in the child, or the end of the call there, would stop the parent's DuckDB."""

    def work():
        validated._end_all()
        return f"{signal.set_wakeup_fd(-1)} {validated._calls}"

    with interruptible():
        interrupted_with_call(local.connect())
        (call,) = validated._calls
        assert forked(work) == "-1 set()"
        assert call._helper.is_alive()
    assert not call._helper.is_alive()


NAMESPACE = 0x20000000


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux namespaces")
def test_a_fork_with_its_parents_process_id_draws_no_noise():
    """In a new namespace, a child may have the process id of its parent."""
    ctypes = pytest.importorskip("ctypes")
    libc = ctypes.CDLL(None, use_errno=True)

    def first():
        # The first process of one namespace forks the first process of another one.
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

    output = forked(outer)
    if output == "refused":
        pytest.skip("this process may not create namespaces")
    assert output == "1 drew nothing"
