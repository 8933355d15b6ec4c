"""A signal at each of the last system calls of a command: the exit code is right, and every charge is said."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dp

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler for a preloaded library"
)
SOURCE = Path(__file__).with_name("interrupting.c")
LAST = 60
"""The calls before the end of the process at which the signal comes."""
COUNT = ["--user", "user", "--item", "item", "--l0", "1"]
COMMANDS = {
    "count": ["count", "log.csv", *COUNT],
    "file": ["count", "log.csv", *COUNT, "-o", "r.csv", "--certificate"],
    "parquet": ["count", "log.parquet", *COUNT],
    "top-k": ["top-k", "log.csv", "--user", "user", "--item", "item", "-k", "2"],
    "select": ["select", "log.csv", *COUNT],
    "sum": ["sum", "log.csv", *COUNT, "--column", "n", "--bounds", "0", "9"],
    "aggregate": ["aggregate", "log.csv", *COUNT, "--sum", "n", "0", "9"],
    "init": ["stream", "init", "s", "--l0", "1", "--horizon", "9", "--unit", "user", "--linf", "1"],
}
PAID = ["--rho", "0.5", "--delta", "1e-6", "--ledger", "l", "--dataset", "views"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("interrupting") / "interrupting.so"
    # The source declares functions of the C library with types that fit all of them.
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-fno-builtin", "-o", made, SOURCE, "-ldl"], check=True)
    return made


@pytest.fixture
def interrupted(library, tmp_path):
    """Return a function that runs a command with a signal at a call of its main thread, or at none.

    It checks how the command ended, and returns the number of calls.
    """
    kept = tmp_path / "kept"
    kept.mkdir()
    dp.Ledger.open(kept / "l").dataset("views", rho=1, delta=1e-5, unit="user")
    (kept / "log.csv").write_text("user,item,n\n" + "".join(f"{n},home,3\n" for n in range(600)))
    duckdb = pytest.importorskip("duckdb")
    duckdb.sql(f"COPY (FROM '{kept / 'log.csv'}') TO '{kept / 'log.parquet'}'")

    def run(command, how, at, *, closed=False):
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)
        (folder / "calls").write_bytes(bytes(8))
        process = subprocess.Popen(
            [sys.executable, "-m", "discreet", *command, *PAID],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPYCACHEPREFIX": os.environ["PYTHONPYCACHEPREFIX"],
                "LD_PRELOAD": str(library),
                "INTERRUPT_COUNT": "calls",
                "INTERRUPT_AT": str(at),
                "INTERRUPT_BY": str(int(how)),
            },
        )
        err = b""
        if closed:
            process.stdout.close()
            process.stderr.close()
            process.wait(timeout=120)
        else:
            _, err = process.communicate(timeout=120)
        place = f"at call {at} by {how}: {process.returncode}, {err.decode()}"
        assert process.returncode in ((0, 1, 128 + how) if closed else (0, 128 + how)), place
        assert not {b"Traceback", b"Exception ignored", b"FATAL"} & {*err.split(b":"), *err.split()}, place
        charged = (folder / "l").stat().st_size > (kept / "l").stat().st_size
        assert closed or not charged or b"harged to views: " in err, place
        assert not [*folder.glob(".discreet-*")], place
        if b"The rows are in r.csv" in err:
            assert dp.release.Release.read(folder / "r.csv").items, place
        return int.from_bytes((folder / "calls").read_bytes(), sys.byteorder)

    return run


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize(("how", "stride"), [(signal.SIGINT, 1), (signal.SIGTERM, 10)])
def test_a_signal_at_the_last_calls_ends_a_count(interrupted, how, stride):
    sweep(interrupted, COMMANDS["count"], how, range(0, LAST, stride))


@pytest.mark.statistical
@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=[*COMMANDS])
def test_a_signal_at_the_last_calls_ends_a_command(interrupted, command, how, closed):
    sweep(interrupted, command, how, range(LAST), closed=closed)


def sweep(interrupted, command, how, back, **options):
    """Send a signal at calls before the last one, which is nearly the same in each run once bytecode is compiled."""
    calls = [interrupted(command, how, 0, **options) for _ in range(2)][-1]
    assert calls > 1000
    for number in back:
        interrupted(command, how, calls - number, **options)
