"""Shared fixtures and import paths of all tests."""

import gc
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from discreet.engines import local

gc.disable()  # until all tests are collected

for folder in ("", "audit", "budgets", "cli", "engines", "kernels", "mechanisms", "release", "statistical", "streams"):
    sys.path.insert(0, str(Path(__file__).parent / folder))


def pytest_collection_finish():
    """Leave imported modules and collected tests out of garbage collection, which some tests run hundreds of times."""
    gc.freeze()
    gc.enable()


def _leave_garbage_of_the_parent():
    gc.freeze()
    gc.enable()


if hasattr(os, "register_at_fork"):
    # A child must not collect garbage of earlier tests: that would end DuckDB's threads, which the child does not have.
    # Python's own code after a fork runs first, and may collect.
    os.register_at_fork(before=gc.disable, after_in_parent=gc.enable, after_in_child=_leave_garbage_of_the_parent)


def pytest_unconfigure():
    """Discard standard error at exit, where DuckDB's binding prints 200 lines, so that the result is the last line."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@pytest.fixture
def interrupts():
    """Use Python's own handlers, because a shell starts jobs with interrupts ignored, and `nohup` with hang-ups."""
    usual = {signal.SIGINT: signal.default_int_handler}
    usual |= {signal.SIGHUP: signal.SIG_DFL} if hasattr(signal, "SIGHUP") else {}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def quick_folder():
    """A folder in memory if the system has one, for tests that sync thousands of files."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """A Parquet file with two items of 3000 users each, one of them a formula, and 50 items of one user each."""
    path = tmp_path_factory.mktemp("cli") / "log.parquet"
    query = "SELECT u AS \"user\", i AS item FROM range(3000) a(u), (VALUES ('everyone'), ('=all')) b(i) " \
        "UNION ALL SELECT u, 'secret-' || u FROM range(50) c(u)"  # fmt: skip
    local.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path
