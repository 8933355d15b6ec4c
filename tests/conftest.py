"""What all tests share: modules without tests importable from every folder, interrupts, and a log as a file."""

import os
import signal
import sys
from pathlib import Path

import pytest

from discreet.engines import local

for folder in ("", "statistical", "budgets", "engines", "kernels", "mechanisms"):
    sys.path.insert(0, str(Path(__file__).parent / folder))


def pytest_unconfigure():
    """Keeps the result the last line: DuckDB's binding ends every process with 200 lines about its own objects."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@pytest.fixture
def interrupts():
    """Interrupts as in the foreground: a shell starts its background jobs with them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """Two items that 3000 users have, one of them a formula to a spreadsheet, and fifty that one user has each."""
    path = tmp_path_factory.mktemp("cli") / "log.parquet"
    query = "SELECT u AS \"user\", i AS item FROM range(3000) a(u), (VALUES ('everyone'), ('=all')) b(i) " \
        "UNION ALL SELECT u, 'secret-' || u FROM range(50) c(u)"  # fmt: skip
    local.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path
