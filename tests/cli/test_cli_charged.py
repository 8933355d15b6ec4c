"""What a command says after a charge, however it ends: the dataset, the cost, and where the rows are."""

import io
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from command import COUNT, discreet, errors_of
from lines import at_line

import discreet as dp
from discreet import Release, startup
from discreet.budgets import filter as filters
from discreet.budgets.ledger import Dataset
from discreet.cli import endings, report
from discreet.cli import stream as streams
from discreet.errors import InputError, LedgerError
from discreet.release import replacing
from discreet.startup import ENDS
from discreet.streams.key import KeyFile

PRICE = ["--rho", "0.5", "--delta", "1e-6"]
PAID = ["--ledger", "l", "--dataset", "views"]
CHARGED = "harged to views: rho 0.5 and delta 1e-06."
COMMANDS = {
    "count": ["count", "log.csv", *COUNT, "--l0", "1"],
    "top-k": ["top-k", "log.csv", *COUNT, "-k", "2"],
    "select": ["select", "log.csv", *COUNT, "--l0", "1"],
    "sum": ["sum", "log.csv", *COUNT, "--column", "n", "--bounds", "0", "9", "--l0", "1"],
    "aggregate": ["aggregate", "log.csv", *COUNT, "--sum", "n", "0", "9", "--l0", "1"],
}
INIT = ["stream", "init", "s", "--l0", "1", "--horizon", "9", "--unit", "user", "--linf", "1"]
COUNTED = [*COMMANDS["count"], *PRICE, *PAID]
BROKEN, FULL = partial(InputError, "it broke"), partial(OSError, 28, "No space left on device")
posix = pytest.mark.skipif(os.name == "nt", reason="the test needs POSIX signals, links and modes")


@pytest.fixture(autouse=True)
def dataset(tmp_path, monkeypatch):
    """Return the dataset of a ledger, in a folder with a CSV file of 600 users."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("user,item,n\n" + "".join(f"{n},home,3\n" for n in range(600)))
    return dp.Ledger.open("l").dataset("views", rho=1, delta=1e-5, unit="user")


def once(end):
    """Return a function that sends a signal to this process, or raises the error that `end` makes."""

    def fail(*_, **__):
        if isinstance(end, int):
            os.kill(os.getpid(), end)
        else:
            raise end()

    return fail


REFUSED = {
    "a report with a certificate": ["-o", "r.html", "--certificate"],
    "a long name": ["-o", "n" * 252 + ".csv"],
    "a long name of a certificate": ["-o", "n" * 240 + ".csv", "--certificate"],
    "a folder": ["-o", "folder.csv"],
    "a pipe": ["-o", "pipe.csv"],
    "a missing folder": ["-o", "missing/r.csv"],
    "a link into a missing folder": ["-o", "nowhere.csv"],
    "a link to itself": ["-o", "loop.csv"],
    "another ledger": ["-o", "other.csv"],
    "a database": ["-o", "base.csv"],
    "a database of DuckDB": ["-o", "duck.csv"],
}


@posix
@pytest.mark.parametrize("output", REFUSED.values(), ids=[*REFUSED])
def test_what_can_be_refused_is_refused_before_a_charge(dataset, output):
    Path("folder.csv").mkdir()
    os.mkfifo("pipe.csv")
    Path("nowhere.csv").symlink_to("missing/r.csv")
    Path("loop.csv").symlink_to("loop.csv")
    dp.Ledger.open("other.csv")
    Path("base.csv").write_bytes(b"SQLite format 3\0")
    Path("duck.csv").write_bytes(bytes(8) + b"DUCK" + bytes(8))
    before = {path.name: path.lstat().st_mtime_ns for path in Path().iterdir()}
    code, out, err = discreet(*COUNTED, *output)
    assert (code in (1, 2), out, "harged" in err) == (True, "", False)
    assert dataset.spent.rho == 0
    assert {path.name: path.lstat().st_mtime_ns for path in Path().iterdir()} == before


def test_a_full_disk_is_refused_before_a_charge(dataset, monkeypatch):
    monkeypatch.setattr(replacing.os, "fsync", once(FULL))
    assert "No space left" in errors_of(*COUNTED, "-o", "r.csv", code=1)
    assert dataset.spent.rho == 0


ENDINGS = [
    pytest.param(KeyboardInterrupt, 130, id="KeyboardInterrupt"),
    pytest.param(MemoryError, 1, id="MemoryError"),
    pytest.param(BROKEN, 1, id="InputError"),
    *(pytest.param(end, 128 + end, id=signal.Signals(end).name) for end in ENDS if os.name != "nt"),
]


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("error", "code"), ENDINGS)
def test_an_end_between_charge_and_rows_is_told(dataset, monkeypatch, command, error, code):
    monkeypatch.setattr(filters, "debug", once(error))  # the first step after a charge
    ended, out, err = discreet(*COMMANDS[command], *PRICE, *PAID, "-q")
    assert (ended, out) == (code, "")
    assert CHARGED in err
    assert err.endswith("No rows were published, and a new release is charged again.\n")
    assert "nothing was published" not in err
    assert dataset.spent.rho == pytest.approx(0.5)


@posix
def test_a_hangup_that_nohup_ignores_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        monkeypatch.setattr(filters, "debug", once(signal.SIGHUP))
        code, out, _ = discreet(*COUNTED, "-q")
        assert (code, "home" in out, signal.getsignal(signal.SIGHUP)) == (0, True, signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_command_that_duckdb_does_not_end_tells_its_charge(monkeypatch):
    """A thread ends the process. Here the exit raises instead."""
    monkeypatch.setattr(endings.os, "_exit", once(partial(SystemExit, 9)))
    monkeypatch.setattr(filters, "debug", lambda *_: endings._leave_at_once())
    code, out, err = discreet(*COUNTED, "-q")
    assert (code, out) == (9, "")
    assert err.startswith(f"discreet: interrupted\nC{CHARGED}")


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("output", [[], ["-o", "r.csv", "--certificate"]], ids=["printed", "written"])
@pytest.mark.parametrize(("error", "code"), [*ENDINGS, pytest.param(LedgerError, 1, id="LedgerError")])
def test_rows_that_are_paid_for_are_published(monkeypatch, output, error, code):
    settle = Dataset._settle
    monkeypatch.setattr(Dataset, "_settle", lambda *given: (settle(*given), once(error)()))
    ended, out, err = discreet(*COUNTED, *output)
    rows = Path("r.csv").read_text() if output else out
    assert (ended, "home,6" in rows or "home,5" in rows) == (code, True)
    assert f"{CHARGED} The rows are {'in r.csv' if output else 'on standard output'}." in err
    assert not output or discreet("verify", "r.csv", "--ledger", "l")[0] == 0


LOST = {
    "moved": lambda: Path("l").rename("moved"),
    "removed": lambda: Path("l").unlink(),
    "damaged": lambda: Path("l").write_bytes(b"discreet ledger"),
    "locked": lambda: dp.Ledger.open("l")._chain.path.chmod(0),
}


@posix
@pytest.mark.parametrize("how", LOST)
@pytest.mark.parametrize("command", [*COMMANDS.values(), INIT], ids=[*COMMANDS, "stream init"])
def test_a_charge_is_told_without_its_ledger(monkeypatch, command, how):
    """The ledger is lost once the rows are out, or the stream is made."""
    owner, name = (streams.Stream, "detach") if command is INIT else (report, "write_release")
    work = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given, **options: (work(*given, **options), LOST[how]()))
    code, out, err = discreet(*command, *PRICE, *PAID)
    assert (code, "home" in out) == (0, command is not INIT)
    assert re.search("Charged to views: (the whole guarantee, )?rho 0.5 and delta 1e-06", err)


def is_told(frame):
    """Return whether the command has printed its rows and has not ended."""
    return startup.state.stage and endings.current().where


@posix
@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.statistical)])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=[*COMMANDS])
def test_a_signal_at_any_line_leaves_no_charge_untold(command, stride):
    """A signal comes at each line of the package after the rows are out, and no line of the command is left out."""
    number, interrupted, codes = 1, True, set()
    while interrupted:
        interrupted = []
        endings.begin()

        def interrupt(sent=interrupted):
            sent.append(True)
            signal.raise_signal(signal.SIGTERM)

        call = partial(discreet, *command, "--rho", "1e-3", "--delta", "1e-9", *PAID)
        code, out, err = at_line(number, call, interrupt, counts=is_told)
        assert (code, "item" in out, "Traceback" in err) in [(0, True, False), (143, True, False)]
        assert "harged to views: " in err
        assert code == 0 or err.endswith("The rows are on standard output.\n")
        codes.add(code)
        number += stride
    assert codes == {0, 143}
    assert number > 40


def test_a_charge_of_what_was_spent_is_told(dataset, monkeypatch):
    monkeypatch.setattr(Release, "write", once(BROKEN))
    spent = ["-k", "50", *PRICE, *PAID, "--charge", "spent", "-o", "r.csv"]
    code, _, err = discreet(*COMMANDS["top-k"], *spent)
    assert (code, dataset.spent.rho < 0.1) == (1, True)
    assert f"Charged to views: rho {dataset.spent.rho:.6g} and delta 1e-06." in err


@posix
@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("how", ENDS)
def test_an_interrupt_waits_for_rows_and_certificate(monkeypatch, how):
    rename = replacing._rename
    monkeypatch.setattr(replacing, "_rename", lambda *given: (once(how)(), rename(*given)))
    code, out, err = discreet(*COUNTED, "-o", "r.csv", "--certificate")
    assert (code, out) == (128 + how, "")
    assert f"discreet: interrupted\nC{CHARGED} The rows are in r.csv." in err
    assert discreet("verify", "r.csv")[0] == 0


@pytest.mark.parametrize("output", ["open", "closed", "full"])
def test_rows_that_are_lost_are_not_said_to_be_printed(monkeypatch, output):
    if output == "full" and not Path("/dev/full").exists():
        pytest.skip("the system has no /dev/full")

    full = io.TextIOWrapper(io.BufferedWriter(io.FileIO("/dev/full", "w")) if output == "full" else io.BytesIO())

    def fail(*_, **__):
        if output != "open":  # the test's own output comes back when the command has ended
            sys.stdout = None if output == "closed" else full
        raise InputError("cannot write r.csv: the disk is full")

    monkeypatch.setattr(Release, "write", fail)
    code, out, err = discreet(*COUNTED, "-o", "r.csv")
    assert (code, "home" in out) == (1, output == "open")
    if output == "open":
        assert "They are on standard output as CSV" in err
    else:
        assert f"{CHARGED} Not all of its rows were written." in err


def test_a_stream_is_charged_once_and_made(dataset, monkeypatch):
    start = [*INIT, *PRICE]
    monkeypatch.setattr(streams, "require_space", once(BROKEN))
    assert discreet(*start, *PAID)[0] == 1
    assert dataset.spent.rho == 0
    monkeypatch.undo()
    monkeypatch.chdir(dataset._chain.path.parent)
    with monkeypatch.context() as patch:
        patch.setattr(KeyFile, "create", once(FULL))
        code, _, err = discreet(*start, *PAID)
    assert (code, CHARGED in err) == (1, True)
    assert "The stream was not made. Once it is charged, the same command without --ledger and --dataset" in err
    assert [path.name for path in Path().glob("s*")] == []
    assert discreet(*start)[0] == 0
    assert dataset.spent.rho == pytest.approx(0.5)


@posix
@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("how", ENDS)
def test_an_interrupt_waits_for_a_stream_that_is_paid_for(monkeypatch, how):
    create = KeyFile.create
    monkeypatch.setattr(KeyFile, "create", lambda *given: (once(how)(), create(*given))[1])
    start = [*INIT, *PRICE]
    code, _, err = discreet(*start, *PAID)
    assert (code, f"{CHARGED} The stream is in s." in err) == (128 + how, True)
    assert discreet("stream", "show", "s")[0] == 0


WRITERS = {
    "count": [*COMMANDS["count"], *PRICE, "-o", "x.csv"],
    "demo": ["demo", "--write", "x.csv", "--overwrite"],
    "export": ["budget", "export", "l", "-o", "x.csv"],
}


@posix
@pytest.mark.parametrize("arguments", WRITERS.values(), ids=[*WRITERS])
def test_a_link_and_a_mode_are_kept_and_a_ledger_too(arguments):
    name, target = "x.csv", Path("folder/x.csv")
    target.parent.mkdir()
    target.write_text("before")
    target.chmod(0o640)
    Path(name).symlink_to(target)
    assert discreet(*arguments)[0] == 0
    assert (Path(name).is_symlink(), target.stat().st_mode & 0o777) == (True, 0o640)
    assert target.read_text() != "before"
    target.unlink()
    dp.Ledger.open(target).dataset("kept", rho=1, delta=1e-6)
    assert "is a ledger and would be overwritten" in errors_of(*arguments, code=1)
    assert dp.Ledger.open(target).datasets == ["kept"]


@pytest.mark.parametrize("name", ["DUCKS", "discreet ledger"])
def test_a_column_may_be_called_as_a_file_that_is_kept(name):
    Path("odd.csv").write_text(f"user,{name},k\n" + "".join(f"{n},home,3\n" for n in range(600)))
    columns = ["--user", "user", "--item", name, "--item", "k"]
    for _ in range(2):
        assert discreet("count", "odd.csv", *columns, "--l0", "1", *PRICE, "-o", "x.csv")[0] == 0
    assert Path("x.csv").read_text().startswith(f"{name},k,count")


def test_help_needs_no_docstrings():
    walk = """
import click
from discreet.cli import commands
from discreet.cli.command import cli
def helps(name, command):
    yield name, command.help
    for other, found in getattr(command, "commands", {}).items():
        if name == "discreet":
            found = cli.resolve_command(click.Context(cli), [other])[1]
        yield from helps(f"{name} {other}", found)
print([name for name, text in helps("discreet", cli) if not text], len([*helps("discreet", cli)]) > 20)
"""
    done = subprocess.run([sys.executable, "-OO", "-c", walk], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"
