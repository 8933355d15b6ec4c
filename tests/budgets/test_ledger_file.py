"""The file of a ledger: the order of its syncs, and the locks and files that a process holds."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from children import forks, held_lock, in_child, lines, make, spend, start
from small import histogram, top

from discreet import Guarantee, GumbelTopK, Ledger
from discreet.budgets import ledger_file, ledger_format
from discreet.errors import LedgerError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def dataset(path):
    return Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)


@pytest.fixture(autouse=True)
def fsync_alone(monkeypatch):
    """Make macOS sync files by os.fsync, as other systems do."""
    if sys.platform == "darwin":
        monkeypatch.setattr(ledger_file.sys, "platform", "linux")


def test_a_charge_is_synced_before_its_mark_and_the_draw(path, dataset, monkeypatch):
    steps, sync, run = [], os.fsync, GumbelTopK._run

    def noted_sync(descriptor):
        content = path.read_bytes()
        mark = int(max(content[512:1024], content[1024:1536]).split()[1])
        steps.append(("sync", mark, len(content[1536:].splitlines())))
        sync(descriptor)

    def noted_run(self, data, rng):
        steps.append("draw")
        return run(self, data, rng)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(GumbelTopK, "_run", noted_run)
    dataset.release(top(), histogram())
    # The file has two events. Each new event is synced while the mark still names the one before, then its mark is.
    assert steps == [("sync", 2, 3), ("sync", 3, 3), "draw", ("sync", 3, 4), ("sync", 4, 4)]


@pytest.mark.parametrize("nameless", [True, False])
def test_a_new_ledger_is_synced_before_it_has_its_name(path, monkeypatch, nameless):
    steps, sync, link = [], os.fsync, os.link

    def noted_sync(descriptor):
        steps.append("folder" if path.exists() else "file")
        sync(descriptor)

    def noted_link(*arguments, **options):
        steps.append("link")
        link(*arguments, **options)

    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "link", noted_link)
    Ledger.open(path)
    assert steps[:3] == ["file", "link", "folder"]
    assert [place.name for place in path.parent.iterdir()] == ["ledger"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files without a name")
def test_a_killed_creation_leaves_no_temporary_file(path):
    def work():
        os.link = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
        Ledger.open(path)

    with pytest.raises(ValueError, match="not enough values"):
        in_child(work)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("failing", [1, 2])
def test_no_noise_is_drawn_after_a_failed_sync(path, dataset, monkeypatch, failing):
    sync, calls = os.fsync, []

    def fail(descriptor):
        calls.append(descriptor)
        if len(calls) == failing:
            raise OSError(errno.EIO, "broken")
        sync(descriptor)

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", fail)
    with monkeypatch.context() as patch:
        patch.setattr(GumbelTopK, "_run", lambda *_: pytest.fail("it was drawn"))
        with pytest.raises(LedgerError, match="disk is full or fails"):
            dataset.release(top(rho=0.1), histogram())
    # An event is removed if its own sync fails. It counts if only the sync of its mark fails.
    assert (path.read_bytes() == before) is (failing == 1)
    assert dataset.spent.rho == pytest.approx(0.1 * (failing == 2))
    dataset.charge(Guarantee(0.25, 0))
    Ledger.open(path).check()


FULL = """
import resource, sys
from discreet import Guarantee, Ledger
from discreet.errors import LedgerError
path, room = sys.argv[1], int(sys.argv[2])
dataset = Ledger.open(path).dataset("views")
before = open(path, "rb").read()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, resource.RLIM_INFINITY))
try:
    dataset.charge(Guarantee(0.25, 0), made_by="full")
except LedgerError as error:
    assert "disk is full" in str(error), error
else:
    sys.exit("it fitted")
assert open(path, "rb").read() == before
assert dataset.spent == Guarantee(0, 0)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
dataset.charge(Guarantee(0.25, 0))
"""


@pytest.mark.skipif(os.name == "nt", reason="the system has no limits of file sizes")
@pytest.mark.parametrize("room", [0, 1, 100])
def test_a_charge_cut_short_by_a_full_disk_is_removed(path, dataset, room):
    subprocess.run([sys.executable, "-c", FULL, str(path), str(room)], check=True)
    assert dataset.spent == Guarantee(0.25, 0)


def test_a_ledger_replaced_during_a_charge_is_refused(path, dataset, monkeypatch):
    copy = path.with_name("copy")
    shutil.copyfile(path, copy)
    append = ledger_file.LedgerFile.append

    def replaced(self, end, line):
        append(self, end, line)
        os.replace(copy, path)

    monkeypatch.setattr(ledger_file.LedgerFile, "append", replaced)
    with pytest.raises(LedgerError, match="replaced by another file"):
        dataset.charge(Guarantee(0.5, 0))


def test_a_file_replaced_before_its_lock_is_opened_again(path, dataset, monkeypatch):
    copy, lock = path.with_name("copy"), ledger_file._lock
    shutil.copyfile(path, copy)

    def replaced(raw, name):
        monkeypatch.undo()
        os.replace(copy, path)
        return lock(raw, name)

    monkeypatch.setattr(ledger_file, "_lock", replaced)
    dataset.charge(Guarantee(0.5, 0))
    assert len(path.read_bytes()[1536:].splitlines()) == 3


def test_a_copy_of_the_open_file_does_not_keep_its_lock(path, dataset, monkeypatch):
    # A process that is forked while a thread has the file open has such a copy.
    lock, copies = ledger_file._lock, []

    def copied(raw, name):
        copies.append(os.dup(raw.fileno()))
        return lock(raw, name)

    monkeypatch.setattr(ledger_file, "_lock", copied)
    dataset.charge(Guarantee(0.25, 0))
    monkeypatch.undo()
    assert copies
    Ledger.open(path, timeout=0).dataset("views").charge(Guarantee(0.25, 0))
    for copy in copies:
        os.close(copy)


@forks
def test_a_file_replaced_while_waiting_is_opened_again(path):
    make(path, 100)
    copy = path.with_name("copy")
    shutil.copyfile(path, copy)
    with held_lock(path):
        child, heard = start(spend, path)
        os.replace(copy, path)
        hearing = lines(heard)
        first = next(hearing)  # the lock of the replaced file is still held
    assert first.endswith(".0")
    assert len([first, *hearing]) == 100
    os.waitpid(child, 0)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_refused(path, dataset, monkeypatch, code):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(LedgerError, match="local disk"):
        dataset.charge(Guarantee(0.1, 0))


@forks
def test_a_child_forked_in_a_charge_neither_writes_nor_unlocks(path, dataset, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    append, ended = ledger_file.LedgerFile.append, []

    def forked(self, end, line):
        monkeypatch.undo()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                append(self, end, line)
            except LedgerError as error:
                code = 0 if "fork" in str(error) else 2
            finally:
                os._exit(code)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        with open(path, "rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        append(self, end, line)

    monkeypatch.setattr(ledger_file.LedgerFile, "append", forked)
    dataset.charge(Guarantee(0.25, 0))
    assert ended == [0]
    assert dataset.spent == Guarantee(0.25, 0)
    Ledger.open(path).check()


@forks
def test_a_child_forked_while_a_thread_charges_is_not_locked_out(path, dataset, monkeypatch):
    append, charging, forked = ledger_file.LedgerFile.append, threading.Event(), threading.Event()

    def waiting(self, end, line):
        charging.set()
        forked.wait()
        append(self, end, line)

    monkeypatch.setattr(ledger_file.LedgerFile, "append", waiting)
    thread = threading.Thread(target=lambda: dataset.charge(Guarantee(0.25, 0)))
    thread.start()
    charging.wait()
    monkeypatch.undo()

    def charge(tell):
        tell("forked")
        dataset.charge(Guarantee(0.25, 0))
        tell(dataset.spent.rho)

    child, heard = start(charge)
    hearing = lines(heard)
    assert next(hearing) == "forked"
    forked.set()
    thread.join()
    # The child is still running, and holds no copy of the parent's lock.
    dataset.charge(Guarantee(0.125, 0))
    assert next(hearing) in (0.5, 0.625)
    os.waitpid(child, 0)
    assert dataset.spent == Guarantee(0.625, 0)


def test_a_lock_left_by_an_interrupt_is_released(path, dataset):
    # As if an interrupt had come between the end of an operation and the release of its lock.
    ledger_file._locked(path, 1, True)
    dataset.charge(Guarantee(0.25, 0))
    assert ledger_file._held == {}


def test_a_call_inside_a_charge_cannot_spend_twice(path, dataset, monkeypatch):
    written = ledger_format.written

    def nested(book, event, nonce):
        monkeypatch.undo()
        dataset.charge(Guarantee(0.75, 0))
        return written(book, event, nonce)

    monkeypatch.setattr(ledger_format, "written", nested)
    with pytest.raises(LedgerError, match="signal handler"):
        dataset.charge(Guarantee(0.75, 0))
    assert dataset.spent == Guarantee(0.75, 0)


@forks
def test_a_copy_made_during_charges_is_valid(path):
    make(path, 200)
    child, heard = start(spend, path)
    told, copies = [], []
    for name in lines(heard):
        told.append(name)
        if len(told) % 10 == 0:
            copy = path.with_name(f"copy {len(told)}")
            shutil.copyfile(path, copy)
            copies.append((copy, len(told)))
    os.waitpid(child, 0)
    assert len(copies) == 20
    for copy, least in copies:

        def charges(copy=copy):
            return len(Ledger.open(copy).history)

        assert least <= in_child(charges) <= 200


def test_a_missing_permission_is_no_lock_of_another_process(path, dataset, monkeypatch):
    if sys.platform == "win32":
        pytest.skip("on Windows this error means that the file is locked")

    def forbidden(*_):
        raise PermissionError(errno.EACCES, "")

    with monkeypatch.context() as patched:
        patched.setattr(ledger_file.fcntl, "flock", forbidden)
        with pytest.raises(LedgerError, match="permission denied"):
            dataset.charge(Guarantee(0.1, 0))
    with monkeypatch.context() as patched:
        patched.setattr(ledger_file.os, "access", lambda _, mode: not mode & os.R_OK)
        with pytest.raises(LedgerError, match="permission denied"):
            dataset.charge(Guarantee(0.1, 0))
    assert dataset.spent == Guarantee(0, 0)
