"""Helpers that run the command `discreet` in this process or in a new one."""

import io
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from unittest.mock import patch

import pytest

from discreet.cli import main

COUNT = ["--user", "user", "--item", "item"]
BUDGET = ["--rho", "1", "--delta", "1e-6"]
SURE = ["--rho", "1", "--delta", "1e-13"]
"""A delta that keeps out 50 items of one user each, except with a chance of 50 * 1e-13."""
WIDTH = {"NO_COLOR": "1", "COLUMNS": "100"}


@contextmanager
def standard_input(content):
    """Make these bytes the standard input of this process."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(before, 0)
            os.close(before)


def discreet(*arguments, stdin=b""):
    """Run the command in this process; return its exit code, output and errors."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    given = patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    with patch.dict(os.environ, WIDTH), given, redirect_stdout(out), redirect_stderr(err), standard_input(stdin):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out.flush()
        err.flush()
    return ended.value.code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


def process(*arguments, stdin=b"", encoding="utf-8"):
    """Run the command in a new process; return its exit code, output and errors."""
    environment = {**os.environ, **WIDTH, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "discreet", *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=60)
    assert b"Traceback" not in done.stderr
    assert b"nanobind" not in done.stderr
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode(encoding)


def output(*arguments, **options):
    """Return the output and errors of a command that succeeds."""
    code, out, err = discreet(*arguments, **options)
    assert code == 0, err
    return out, err


def errors_of(*arguments, code=2, **options):
    """Return the errors, as one line, of a command that fails with this exit code and prints no rows."""
    found, out, err = discreet(*arguments, **options)
    assert (found, out) == (code, ""), err
    return " ".join(err.split())
