"""The exit codes and errors of `discreet`; released rows are never lost."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import BUDGET, COUNT, discreet, errors_of, process

# One function call that takes most of a minute, during which DuckDB ignores interrupts.
DEAF = "SELECT levenshtein(repeat('a', 150000 + range), repeat('b', 150000)) AS u, 1 AS i FROM range(1)"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["LOG", *COUNT, "--rho", "0", "--delta", "1e-6"], 2, "rho must be"),
        (["LOG", *COUNT, "--rho", "-1", "--delta", "1e-6"], 2, "rho must be"),
        (["LOG", *COUNT, "--rho", "nan", "--delta", "1e-6"], 2, "rho must be"),
        (["LOG", *COUNT, "--rho", "1e308", "--delta", "1e-6"], 2, "rho must be"),
        (["LOG", *COUNT, "--rho", "x", "--delta", "1e-6"], 2, "not a valid float"),
        (["LOG", *COUNT, "--rho", "1_0", "--delta", "1e-6"], 2, "'1_0' is not a valid float. Use the digits 0 to 9"),
        (["LOG", *COUNT, "--rho", "\u0661", "--delta", "1e-6"], 2, "is not a valid float. Use the digits 0 to 9"),
        (["LOG", *COUNT, *BUDGET, "--k-bar", "1_0"], 2, "is not a valid integer. Use the digits 0 to 9"),
        (["LOG", *COUNT, *BUDGET, "--l0", "\u0661"], 2, "is not a valid integer or auto"),
        (["LOG", *COUNT, "--rho", "1"], 2, "'--delta'. Choose it far below 1 / number of users"),
        (["LOG", *COUNT, "--rho", "0,5", "--delta", "1e-6"], 2, "Use a point"),
        (["LOG", *COUNT, "--rho", "1", "--delta", "0"], 2, "delta must be"),
        (["LOG", *COUNT, "--rho", "1", "--delta", "1"], 2, "above 0 and below 1"),
        (["LOG", *COUNT, *BUDGET, "--k-bar", "0"], 2, "--k-bar must be"),
        (["LOG", *COUNT, *BUDGET, "--k-bar", "1.5"], 2, "not a valid int"),
        (["LOG", *COUNT, *BUDGET, "--seed", "1"], 2, "No such option '--seed'. There is no seed"),
        (["LOG", "LOG", *COUNT, *BUDGET], 2, "one quoted glob"),
        (["LOG", *COUNT, *BUDGET, "--relative-eror", "1"], 2, "--relative-error"),
        (["LOG", *COUNT, *BUDGET, "-f", "xml"], 2, "xml"),
        (["LOG", *COUNT, *BUDGET, "-f", "parquet"], 2, "-o"),
        (["LOG", *COUNT, *BUDGET, "-f", "html"], 2, "give -o report.html"),
        (["missing.csv", *COUNT, *BUDGET, "-o", "x.xlsx"], 2, "suffix"),
        (["LOG", *COUNT, *BUDGET, "--sql", "SELECT 1"], 2, "exactly one of FILE"),
        ([*COUNT, *BUDGET], 2, "- for standard input"),
        (["LOG", "--user", "usr", "--item", "item", *BUDGET], 1, "did you mean 'user'"),
        (["missing.parquet", *COUNT, *BUDGET], 1, "missing.parquet"),
        (["https://example.org/x.csv", *COUNT, *BUDGET], 1, "Download it first"),
        (["--sql", "SELEC 1", *COUNT, *BUDGET], 1, "query"),
        (["--sql", "WITH x AS (COPY (SELECT 1) TO 'x') FROM x", *COUNT, *BUDGET], 1, "does not only read"),
    ],
)
def test_a_bad_argument_has_an_exit_code_and_a_message(log, arguments, code, message):
    arguments = [str(log) if argument == "LOG" else argument for argument in arguments]
    assert message in errors_of("count", *arguments, code=code)


@pytest.mark.parametrize("arguments", [["LOG", *COUNT, "--rho", "0", "--delta", "1e-6"], ["none.csv", *COUNT, *BUDGET]])
def test_a_new_process_ends_like_the_command_in_this_one(log, arguments):
    arguments = ["count", *(str(log) if argument == "LOG" else argument for argument in arguments)]
    assert process(*arguments) == discreet(*arguments)


def shell(log, rest, **variables):
    """Count in a shell, with the rest of its line; return the exit code and errors."""
    command = f"{sys.executable} -m discreet count {log} --user user --item item --rho 1 --delta 1e-6 {rest}"
    environment = {**os.environ, **variables}
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment, timeout=60)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="the test needs a POSIX shell")
def test_a_closed_pipe_prints_no_traceback(log):
    shell(log, "| head -c 1")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_prints_one_message(log, unbuffered):
    code, err = shell(log, "> /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert (code, b"check standard output" in err, b"Exception ignored" in err) == (1, True, False)


@pytest.mark.skipif(os.name == "nt", reason="the test needs POSIX limits")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_go_to_standard_output_if_the_file_fails(log, tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    (tmp_path / "items").write_text("".join(f"item {number}\n" for number in range(9000)))
    tiny = f'ulimit -f 4; trap "" XFSZ; exec {sys.executable} -m discreet count {log} -o {path} "$@"'
    listed = ["--items", str(tmp_path / "items"), "--l0", "1"]
    # Python 3.11 would keep the part of a module's bytecode that the limit lets it write.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["bash", "-c", tiny, "bash", *COUNT, *BUDGET, *listed]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60)
    assert done.returncode == 1
    assert done.stdout.startswith(b"item,count,sigma\n")
    assert done.stdout.count(b"\n") == 9001
    assert b"They are on standard output as CSV" in done.stderr
    assert b"cannot write" in done.stderr
    assert b"Traceback" not in done.stderr
    assert [place.name for place in tmp_path.iterdir()] == ["items"]


@pytest.mark.skipif(os.name == "nt", reason="the test needs a POSIX shell")
def test_a_closed_standard_output_is_refused_before_counting(log, tmp_path):
    code, err = shell(log, ">&-")
    assert (code, b"Give -o FILE" in err) == (2, True)
    assert shell(log, f"-o {tmp_path / 'out.csv'} >&- 2>&-")[0] == 0
    assert b"everyone" in (tmp_path / "out.csv").read_bytes()


def wait_until_it_counts(process):
    """Wait until a process has loaded DuckDB and has then used half a second of CPU time (Linux), or 4 seconds.

    Fails after five minutes, and ends the process.

    Returns the CPU time that it has used, on Linux.
    """
    folder = Path(f"/proc/{process.pid}")
    if not folder.exists():
        time.sleep(4)
        return None

    def used():
        """Return the seconds in user mode and in system mode."""
        times = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    last = time.monotonic() + 300
    try:
        while "duckdb" not in (folder / "maps").read_text("utf-8"):
            assert process.poll() is None
            assert time.monotonic() < last
            time.sleep(0.05)
        before = used()
        while used() < before + 0.5:
            assert process.poll() is None
            assert time.monotonic() < last
            time.sleep(0.02)
        return used()
    except BaseException:
        process.kill()
        raise


def seconds_of_children():
    """Return the CPU time of all child processes that have ended."""
    return os.times().children_user + os.times().children_system


@pytest.mark.skipif(os.name == "nt", reason="the test needs POSIX signals")
@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("sql", ["SELECT range % 1000 AS u, range % 7 AS i FROM range(1000000000000)", DEAF])
def test_an_interrupt_ends_a_query_and_leaves_no_file(tmp_path, how, sql):
    command = [sys.executable, "-m", "discreet", "count", "--sql", sql, "--user", "u", "--item", "i", *BUDGET]
    before = seconds_of_children()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    used = wait_until_it_counts(process)
    process.send_signal(how)
    _, err = process.communicate(timeout=300)
    # The query takes far more CPU time. On a busy machine, the second until the process ends may be a long one.
    assert used is None or seconds_of_children() - before - used < 8
    assert process.returncode == 128 + how
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


MACHINE = {
    "HOME": "/",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "TERM": "xterm",
}
"""Variables of some machines, which change nothing."""
needed = {name: os.environ[name] for name in ("PATH", "PYTHONPYCACHEPREFIX", "SYSTEMROOT") if name in os.environ}


@pytest.mark.skipif(os.name == "nt", reason="the test needs POSIX signals")
@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("machine", [{}, MACHINE], ids=["empty", "full"])
def test_an_interrupt_ends_a_command_with_closed_pipes(machine):
    command = [sys.executable, "-m", "discreet", "count", "--sql", DEAF, "--user", "u", "--item", "i", *BUDGET]
    environment = {**needed, **machine}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    process.stdout.close()
    process.stderr.close()
    wait_until_it_counts(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=300) == 130


REPRESENTATIVE = {
    "help": ["--help"],
    "count": ["count", "LOG", *COUNT, *BUDGET, "-q", "--items", "ITEMS", "--l0", "2"],
    "error": ["count", "LOG", "--user", "usr", "--item", "item", *BUDGET],
    "plan": ["plan", "count", *BUDGET, "--l0", "1"],
    "check": ["check", "LOG", *COUNT],
    "completion": [],
}


@pytest.mark.skipif(os.name == "nt", reason="the shell's completion is for POSIX shells")
@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_no_variable_of_a_machine_changes_a_command(log, tmp_path, name):
    (tmp_path / "items").write_text("everyone\nä\n", "utf-8")
    places = {"LOG": str(log), "ITEMS": str(tmp_path / "items")}
    command = [sys.executable, "-m", "discreet", *(places.get(word, word) for word in REPRESENTATIVE[name])]
    more = {"_DISCREET_COMPLETE": "bash_complete", "COMP_WORDS": "discreet co", "COMP_CWORD": "1"}
    outcomes = []
    for machine in ({}, MACHINE):
        environment = {**needed, **(more if name == "completion" else {}), **machine}
        done = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, timeout=60, check=False)
        rows = done.stdout.decode("utf-8").splitlines()
        # The numbers of a count are random.
        shown = sorted(row.partition(",")[0] for row in rows) if name == "count" else rows
        outcomes.append((done.returncode, shown, done.stderr))
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0][0], bool(outcomes[0][1])) == ((1, False) if name == "error" else (0, True))
