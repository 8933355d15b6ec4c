"""Tables on standard input: counted like files, and never copied to a named file."""

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from command import BUDGET, COUNT, discreet, process

SECRET = b"secret-of-a-user"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc")


def table(rows=3000):
    return b"user,item\n" + b"".join(b"%d,home\n" % n for n in range(rows))


def parquet(tmp_path):
    path = tmp_path / "rows.parquet"
    query = f"SELECT n AS \"user\", 'home' AS item, '{SECRET.decode()}' || n AS note FROM range(3000) AS t(n)"
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)")
    content = path.read_bytes()
    path.unlink()
    return content


def test_every_format_on_standard_input_is_counted(tmp_path):
    for content in (table(), gzip.compress(table()), parquet(tmp_path), b"\xef\xbb\xbf" + table()):
        code, out, err = discreet("count", "-", *COUNT, *BUDGET, stdin=content)
        assert (code, out.splitlines()[1].split(",")[0]) == (0, "home"), err


@pytest.mark.parametrize("command", [["top-k", "-k", "1"], ["select", "--l0", "1"], ["select", "--l0", "50"]])
def test_every_command_reads_standard_input(command):
    code, out, err = discreet(command[0], "-", *COUNT, *command[1:], *BUDGET, stdin=table())
    assert (code, "home" in out) == (0, True), err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input: it is empty"),
        (b"user;item\n1;a\n", "commas"),
        (b"user\n1\n", "no column 'item'"),
        (gzip.compress(table())[:-9], "cannot read standard input"),
        (b"PAR1\x15\x04\x15" + b"x" * 100, "cannot read standard input"),
        (b"\n\n", "cannot read standard input"),
    ],
)
def test_an_unreadable_table_is_an_error_of_standard_input(content, message):
    code, out, err = discreet("count", "-", *COUNT, *BUDGET, stdin=content)
    assert (code, out) == (1, "")
    assert message in err


def test_a_quoted_cell_on_standard_input_forges_no_rows():
    cell = b'"' + b"\n9,forged,\n" * 100_000 + b'"'
    rows = b"".join(b"%d,home,%d\n" % (n, n) for n in range(600_000))
    code, out, err = process("count", "-", *COUNT, *BUDGET, stdin=b"user,item,note\n" + rows[:-1] + cell + b"\n" + rows)
    assert (code, "forged" in out, "home" in out) == (0, False, True), err


def started(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "100"}
    command = [sys.executable, "-m", "discreet", "count", "-", *COUNT, *BUDGET]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    def enable_interrupts():
        # A shell may run these tests as a background job, which ignores interrupts. A child process inherits this.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return subprocess.Popen(command, env=environment, preexec_fn=enable_interrupts, **pipes)


@LINUX
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_killed_command_leaves_no_byte_of_standard_input(tmp_path, form):
    folder = tmp_path / "temporary"
    folder.mkdir()
    content = parquet(tmp_path) if form == "parquet" else table().replace(b"home", SECRET)
    process = started(folder)
    # This is more than a pipe holds. Once it is written, the command has read the rest and waits for more.
    process.stdin.write(content + b"1,home\n" * 100_000)
    process.stdin.flush()
    names = [os.readlink(link) for link in Path(f"/proc/{process.pid}/fd").iterdir() if link.is_symlink()]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [name for name in names if name.startswith(str(folder))] == []
    assert [*folder.rglob("*")] == []


@LINUX
@pytest.mark.parametrize("sent", [b"", table()])
def test_an_interrupt_ends_the_wait_for_standard_input(tmp_path, sent):
    process = started(tmp_path)
    if sent:
        process.stdin.write(sent + b"1,home\n" * 100_000)
        process.stdin.flush()
    else:
        # Wait until the process sleeps in a system call that reads file 0.
        while not Path(f"/proc/{process.pid}/syscall").read_text().startswith("0 0x0 "):
            assert process.poll() is None
    process.send_signal(signal.SIGINT)
    # Standard input stays open until the command ends.
    assert process.wait(timeout=60) == 130
    err = process.communicate()[1]
    assert b"interrupted" in err
    assert b"Traceback" not in err


@LINUX
def test_parquet_on_standard_input_obeys_its_memory_limit():
    content = b"PAR1\x15\x04\x15" + b"x" * (65 << 20)
    code, out, err = process("count", "-", *COUNT, *BUDGET, "--memory", "256MiB", stdin=content)
    assert (code, out) == (1, "")
    assert "quarter" in err
    assert "by its name" in " ".join(err.split())
