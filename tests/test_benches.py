"""The benchmarks that are scripts still run, on tables that take no time."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parent.parent / "benches"

SCRIPTS = [
    ["compare.py", "--rows", "2000", "--rounds", "1", "--case", "strings, few"],
    ["selection.py", "--items", "1000", "--rounds", "1"],
    ["memory.py", "--rows", "20000", "--memory", "256MiB"],
]


@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from /proc")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script[0])
def test_every_contestant_agrees(script):
    for name in ("duckdb", "polars", "pyarrow", "pandas"):
        pytest.importorskip(name)
    name, *options = script
    done = subprocess.run([sys.executable, str(BENCHES / name), *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "core" in done.stdout
    assert "failed" not in done.stdout
