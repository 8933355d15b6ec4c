"""An operating system that refuses randomness or threads.

Without randomness the library raises its own error and releases no number. Without threads the library raises its own
error, or counts the same as with threads.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dp
from discreet.engines import local

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler for a preloaded library"
)

SOURCE = Path(__file__).with_name("refusing.c")
START = """
import ctypes, sys
system = ctypes.CDLL(None)
import numpy as np
"""
TABLE = """
import discreet as dp
from discreet import _core
table = {"user": [1, 2, 3] * 900, "item": ["a", "b", "c"] * 900}
columns = {"user": "user", "item": "item"}
"""

RELEASES = {
    "count": "dp.count(table, **columns, epsilon=1.0, delta=1e-6, l0=1)",
    "top_k": "dp.top_k(table, **columns, k=1, epsilon=1.0, delta=1e-6)",
    "select": "dp.select(table, **columns, epsilon=1.0, delta=1e-6, l0=2)",
    "listed": 'dp.Histogram.from_table(table, **columns, only=["a"])',
    "histogram": "dp.Histogram.from_table(table, **columns)",
    "bounded": "dp.Histogram.from_table(table, **columns, l0=1)",
    "pairs": "dp.Histogram.from_pairs(table['user'], table['item'])",
    "counts": 'dp.Histogram.from_counts(["a"], [3], l0=1, linf=1, complete=True)',
    "items": "dp.tables.UserItems.from_table(table, **columns)",
    "item pairs": "dp.tables.UserItems.from_pairs(table['user'], table['item'])",
    "labels": '_core.Labels.from_sequence(["a"])',
    "known": '_core.KnownLabels.from_sequence(["a"])',
    "stream": "dp.BinaryMechanism.from_rho(rho=1.0, delta=1e-6, horizon=4, l0=1).start()",
    "table": "_core.ItemTable().extend(['a'])",
    "bits": "_core.Rng()",
    "answers": "dp.queries.AboveThreshold(epsilon=1.0, threshold=3).release([1, 2, 3])",
}


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    library = tmp_path_factory.mktemp("refusing") / "refusing.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def ran(library, code):
    """Return the output of a process that preloads the library."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_no_number_is_released_without_entropy(refusing):
    code = START + TABLE
    for name, call in RELEASES.items():
        code += f"""
system.refuse_entropy(1)
try:
    found = {call}
    print({name!r}, "worked")
except BaseException as error:
    print({name!r}, type(error).__name__, "randomness" in str(error))
system.refuse_entropy(0)
"""
    assert ran(refusing, code) == [f"{name} EntropyError True" for name in RELEASES]


def test_an_import_without_entropy_is_an_entropy_error(refusing):
    code = (
        START + "system.refuse_entropy(1)\ntry:\n    import discreet\n    discreet.count\nexcept Exception as error:\n"
    )
    code += "    print(type(error).__module__, type(error).__name__)\n"
    assert ran(refusing, code) == ["discreet.errors EntropyError"]


def test_all_32_bytes_of_a_key_come_from_the_system(refusing):
    """One byte of the 32 is 1 and the others are 0: each position of this byte gives a different stream."""
    code = START + TABLE + "from discreet.testing import seeded_rng\n"
    code += """
streams = []
for place in range(32):
    system.fix_entropy(place)
    streams.append(tuple(_core.Rng().words(4).tolist()))
print(len(set(streams)), tuple(seeded_rng(1).words(4).tolist()) == streams[0])
"""
    assert ran(refusing, code) == ["32 True"]


COMMANDS = [
    ("count log.csv --user user --item item --epsilon 1 --delta 1e-6 --l0 2", 0),
    ("count log.csv --user user --item item --epsilon 1 --delta 1e-6 --l0 auto", 1),
    ("top-k log.parquet --user user --item item -k 1 --epsilon 1 --delta 1e-6", 0),
    ("select log.parquet --user user --item item --epsilon 1 --delta 1e-6 --l0 2", 0),
    ("sum log.parquet --user user --item item --column value --bounds 0 5 --epsilon 1 --delta 1e-6 --l0 2", 0),
    ("check log.csv", 0),
    # The columns get the threads, and the rows get none.
    ("check log.csv", 3),
    ("demo", 0),
    ("plan count --epsilon 1 --delta 1e-6 --l0 2 --like users=900,median=2,p95=5", 0),
]


@pytest.mark.parametrize(("command", "allowed"), COMMANDS)
def test_a_command_without_threads_ends_with_one_line(refusing, tmp_path, command, allowed):
    rows = "SELECT u AS \"user\", 'a' AS item, 3 AS value FROM range(3000) a(u)"
    for name in ("log.csv", "log.parquet"):
        local.connect().execute(f"COPY ({rows}) TO '{tmp_path / name}'")
    done = commanded(refusing, tmp_path, command, allowed)
    assert done.returncode == 1
    assert "refused to start a thread" in done.stderr.splitlines()[-1]
    assert sum(line.startswith("discreet: ") for line in done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["audit count --epsilon 1 --delta 0.01 --l0 2 --runs 0", "verify rows.csv"])
def test_a_command_that_needs_no_threads_works_without(refusing, tmp_path, command):
    table = dp.Histogram.from_counts(["a"], [3000], l0=1, linf=1, complete=True)
    mechanism = dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=1)
    mechanism.release(table).write(tmp_path / "rows.csv", certificate=True)
    assert commanded(refusing, tmp_path, command, 0).returncode == 0


def commanded(library, folder, command, allowed):
    """Return the ended process of a command whose system allows a number of threads."""
    more = {"LD_PRELOAD": str(library), "ALLOWED_THREADS": f"{allowed}", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "discreet", *command.split()],
        cwd=folder,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


WORK = {
    "numbers": "table = {'user': np.arange(90000) % 999, 'item': np.arange(90000) % 7}",
    "text": "table = {'user': [str(n % 999) for n in range(90000)], 'item': ['ab'[n % 2] for n in range(90000)]}",
}
# Users have at most seven items: a smaller bound would choose some of them at random.
COUNTS = {
    "histogram": "dp.Histogram.from_table(table, **columns)",
    "bounded": "dp.Histogram.from_table(table, **columns, l0=7)",
    "spilled": "_core.count_distinct((table['user'], table['item']), '', '', threads=4, memory=0)",
    "items": "dp.tables.UserItems.from_table(table, **columns)",
    "select": "dp.select(table, **columns, epsilon=1.0, delta=1e-6, l0=2)",
}


@pytest.mark.parametrize("kind", WORK)
def test_refused_threads_give_equal_results_or_an_error(refusing, kind):
    code = START + TABLE + WORK[kind] + "\n"
    for name, call in COUNTS.items():
        code += f"""
for allowed in (0, 1, 2, -1):
    system.allow_threads(allowed)
    try:
        found = {call}
        outcome = sorted(found._counts()) if isinstance(found, dp.Histogram) else []
    except BaseException as error:
        outcome = type(error).__name__, "threads" in str(error)
    system.allow_threads(-1)
    print({name!r}, allowed, outcome, sep="; ")
"""
    lines = [line.split("; ") for line in ran(refusing, code)]
    outcomes = {(name, allowed): outcome for name, allowed, outcome in lines}
    assert len(outcomes) == 4 * len(COUNTS)
    for (name, allowed), outcome in outcomes.items():
        refused = outcome == "('ResourceError', True)"
        # If one phase of the work uses all allowed threads, the next phase has none.
        assert refused or outcome == outcomes[name, "-1"] or name == "select", (name, allowed, outcome)
        assert not (refused and allowed == "-1"), name
    assert (
        outcomes["histogram", "0"] == outcomes["bounded", "0"] == outcomes["spilled", "0"] == "('ResourceError', True)"
    )
