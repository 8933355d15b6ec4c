"""Import time of the package, of numpy (which it needs) and of polars, each in a new process."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["discreet", "numpy", "polars"])
@pytest.mark.benchmark(group="import")
def test_import(benchmark, package):
    pytest.importorskip(package)
    command = [sys.executable, "-c", f"import {package}"]
    benchmark.pedantic(lambda: subprocess.run(command, check=True), rounds=9, warmup_rounds=1)
