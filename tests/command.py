"""Runs the command `discreet` as a process of its own."""

import os
import subprocess
import sys

COUNT = ["--user", "user", "--item", "item"]
BUDGET = ["--rho", "1", "--delta", "1e-6"]


def discreet(*arguments, stdin=b"", encoding="utf-8", **options):
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "discreet", *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=60, **options)
    assert b"Traceback" not in done.stderr
    assert b"nanobind" not in done.stderr
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode(encoding)
