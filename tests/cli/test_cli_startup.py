"""The start of `discreet`: interrupts during imports, closed streams and bytes that are not UTF-8."""

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from command import BUDGET, COUNT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the tests need POSIX signals and descriptors")
SCRIPT = Path(sysconfig.get_path("scripts")) / "discreet"
COMMANDS = {"module": [sys.executable, "-m", "discreet"], "script": [str(SCRIPT)]}
HOOK = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            exec("signal.raise_signal(getattr(signal, os.environ['INTERRUPT_BY']))")

sys.meta_path.insert(0, Interrupting())
"""
"""A startup hook that interrupts the process at the import of a module, so that no test depends on timing.

The interrupt passes through an `exec` of text, as in the imports of modules with dataclasses.
"""


@pytest.fixture
def interrupted_at(tmp_path):
    """Return a function that runs a command with an interrupt at the import of a module."""
    (tmp_path / "sitecustomize.py").write_text(HOOK)

    def run(command, module, by="SIGINT", *arguments):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "INTERRUPT_AT": module, "INTERRUPT_BY": by}
        done = subprocess.run([*command, *(arguments or ["doctor"])], capture_output=True, env=environment, timeout=60)
        return done.returncode, done.stdout, done.stderr.decode()

    return run


INTERRUPTED = {
    "numpy": ["doctor"],
    "duckdb": ["doctor"],
    "rich.table": ["demo"],
    "discreet.budgets.chain": ["budget", "show", "no.ledger"],
    "discreet.budgets.ledger": ["count", "no.csv", *COUNT, *BUDGET, "--ledger", "x", "--dataset", "x"],
    "discreet.cli.without_data": ["audit", "count", *BUDGET, "--l0", "1"],
    "discreet.theorems.wilkins2022": ["count", "no.csv", *COUNT, *BUDGET],
}
"""Modules that a command imports, from the first one on."""


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize(
    ("command", "module", "by"),
    [
        *(("module", module, "SIGINT") for module in INTERRUPTED),
        ("module", "discreet.cli.without_data", "SIGHUP"),
        ("script", "discreet.cli.without_data", "SIGTERM"),
    ],
)
def test_an_interrupt_in_an_import_ends_the_command(interrupted_at, command, module, by):
    if command == "script" and not SCRIPT.exists():
        pytest.skip("the script is not installed")
    code, _, err = interrupted_at(COMMANDS[command], module, by, *INTERRUPTED[module])
    assert code == 128 + getattr(signal, by)
    assert err.endswith("discreet: interrupted; nothing was published\n")
    assert "Traceback" not in err


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_of_running_work_lets_an_import_end(tmp_path):
    (tmp_path / "slow.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nended = True")
    code = "from discreet import startup\nstartup.hold()\ntry:\n    import slow, time\n    time.sleep(60)\n"
    code += "except KeyboardInterrupt:\n    print(slow.ended, startup.state.received)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.stdout == f"True [{int(signal.SIGINT)}]\n"


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("module", ["numpy", "numpy.lib", "numpy.linalg"])
def test_an_interrupt_of_numpys_import_stays_an_interrupt(interrupted_at, module):
    code = "from discreet import _core\n_core.Rng().words(4)"
    code, _, err = interrupted_at([sys.executable, "-c", code], module)
    assert (code, err.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")


def test_a_numpy_that_does_not_fit_is_no_interrupt():
    code = "import numpy\nnumpy._core.multiarray._ARRAY_API = None\nfrom discreet import _core"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1][:43]) == (1, "ImportError: this version of numpy does not")


HASTENED = """
import gc, os
from discreet import startup
assert gc.isenabled() and "OPENBLAS_NUM_THREADS" not in os.environ and not startup._hastened
startup.release()
assert gc.isenabled() and gc.get_freeze_count() == 0
os.environ.update(given)
startup.hasten()
assert not gc.isenabled() and os.environ["OPENBLAS_NUM_THREADS"] == given.get("OPENBLAS_NUM_THREADS", "1")
startup.release()
assert gc.isenabled() and gc.get_freeze_count() > 0
print({name: os.environ[name] for name in ["OPENBLAS_NUM_THREADS"] if name in os.environ} == given)
"""


@pytest.mark.parametrize("given", [{}, {"OPENBLAS_NUM_THREADS": "3"}])
def test_a_command_collects_no_garbage_until_it_runs(given):
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    program = f"given = {given}\n{HASTENED}"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_an_ignored_interrupt_stays_ignored():
    ignored = f'trap "" INT; exec {sys.executable} -c "{"; ".join(IGNORED)}"'
    done = subprocess.run(["bash", "-c", ignored], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"


IGNORED = [
    "import signal",
    "from discreet import startup",
    "startup.hold()",
    "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)",
]


def shell(line):
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr.decode()


def quoted(*words):
    return " ".join(f"'{word}'" for word in words)


DISCREET = quoted(sys.executable, "-m", "discreet")


@pytest.mark.parametrize("verb", ["count", "top-k -k 1", "select --l0 1"])
def test_a_closed_standard_input_prints_one_message(verb):
    code, out, err = shell(f"{DISCREET} {verb} - {quoted(*COUNT, *BUDGET)} <&-")
    assert (code, out) == (2, b"")
    assert "Standard input is closed" in err


def test_a_closed_standard_input_cannot_confirm(tmp_path):
    stream = tmp_path / "kept.stream"
    begun = "--rho 1 --delta 1e-6 --l0 1 --horizon 9"
    assert shell(f"{DISCREET} stream init {quoted(stream)} {begun} <&- >&-")[0] == 0
    code, _, err = shell(f"{DISCREET} stream close {quoted(stream)} <&-")
    assert (code, "Pass --yes" in err) == (2, True)
    assert shell(f"{DISCREET} stream show {quoted(stream)} -q")[0] == 0


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("count missing.csv --user u --item i --rho 1 --delta 1e-6 2>&-", 1),
        ("count missing.csv --user u --item i --rho 0 --delta 1e-6 2>&-", 2),
        ("count --nothing <&- >&- 2>&-", 2),
        ("budget show missing.ledger <&- >&- 2>&-", 1),
    ],
)
def test_closed_streams_change_no_exit_code(line, code):
    assert shell(f"{DISCREET} {line}")[0] == code


def test_no_file_is_opened_as_a_closed_standard_stream(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(AT_EXIT)
    for closed in ("<&-", ">&-", "<&- >&- 2>&-"):
        assert shell(f"PYTHONPATH={quoted(tmp_path)} {DISCREET} --version {closed}")[0] == 0, closed


AT_EXIT = """
import atexit, os

def check():
    if os.open(os.devnull, os.O_RDONLY) < 3:
        os._exit(9)

atexit.register(check)
"""


ASKED = b"--user u --item i --rho 1 --delta 1e-6".split()


@pytest.mark.parametrize(
    "arguments",
    [
        [b"count", b"\xff.csv", *ASKED],
        [b"count", b"x.csv", b"--user", b"\xff", *ASKED[2:]],
        [b"count", b"--sql", b"SELECT '\xff'", *ASKED],
        [b"budget", b"init", b"x.ledger", b"--dataset", b"\xff", *ASKED[4:]],
        [b"stream", b"init", b"\xff", *ASKED[4:], b"--l0", b"1"],
        [b"\xff"],
    ],
)
def test_arguments_that_are_not_utf_8_are_refused(tmp_path, arguments):
    command = [os.fsencode(sys.executable), b"-m", b"discreet", *arguments]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(command, capture_output=True, timeout=60, cwd=tmp_path, env=environment)
    assert done.returncode == 2
    assert b"bytes that are not UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
