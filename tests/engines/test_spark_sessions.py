"""Spark sessions that stop, are interrupted or cannot start, and commands with `--engine spark`."""

import os
import subprocess
import sys
import time

import pytest
from counting import counted

from conftest import require, spark_session
from discreet.errors import ResourceError

pytestmark = pytest.mark.spark


ROW = "SELECT 1L AS user, 'a' AS item"


@pytest.mark.parametrize("form", ["local[2]", "sail"])
def test_a_stopped_session_is_a_resource_error(form):
    with spark_session(form) as session:
        rows = session.sql(ROW)
        session.stop()
        with pytest.raises(ResourceError, match="make a new one"):
            counted(rows)


@pytest.mark.parametrize("form", ["local[2]", "connect"])
def test_an_interrupt_ends_the_job_on_the_cluster(form):
    with spark_session(form) as session:
        endless = session.sql("SELECT a.id AS user, b.id % 1000003 AS item FROM range(10000000) a, range(100000) b")
        last = time.monotonic() + 8
        # Spark Connect shows no jobs. A job that begins after the interrupt must end, too.
        jobs = None if form == "connect" else session.sparkContext.statusTracker()

        def progress():  # not a signal, at which PySpark itself may cancel all jobs
            if time.monotonic() > last if jobs is None else jobs.getActiveJobsIds():
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            counted(endless, limit=3, progress=progress)
        assert counted(session.sql(ROW)) == {"a": 1}  # the endless job would leave it no cores


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "discreet", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


PROMISE = ["--user", "user", "--item", "item", "--epsilon", "2", "--delta", "1e-6"]


@pytest.fixture
def log(tmp_path):
    pyarrow, path = pytest.importorskip("pyarrow"), tmp_path / "log 1.parquet"
    rows = [(user, f"i,{item}") for user in range(2000) for item in range(2)]
    users, items = zip(*rows, (None, "a"), (3, None), strict=True)
    pytest.importorskip("pyarrow.parquet").write_table(
        pyarrow.table({"user": users, "item": items, "cents": [50] * len(users)}), path
    )
    return str(path)


def test_the_command_count_runs_on_local_spark(log):
    require("local[2]")
    done = command("count", log, *PROMISE, "--engine", "spark", "--master", "local[2]", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert {line.rsplit(",", 3)[0] for line in done.stdout.splitlines()[1:]} == {'"i,0"', '"i,1"'}
    cents = ["--column", "cents", "--bounds", "0", "60", "--l0", "2", "--engine", "spark", "--master", "local[2]", "-q"]
    done = command("sum", log, *PROMISE, *cents)
    assert (done.returncode, done.stderr) == (0, "")
    sums = dict(line.rsplit(",", 2)[:2] for line in done.stdout.splitlines()[1:])
    # 2,000 users of 50 cents; a sigma is below 300, so an error of 9,000 has a chance below 1e-190
    assert {item: abs(int(total) - 100_000) < 9_000 for item, total in sums.items()} == {'"i,0"': True, '"i,1"': True}


def test_the_command_select_runs_dp_sips_on_local_spark(log):
    require("local[2]")
    union = ["--l0", "2", "--method", "dp_sips", "--engine", "spark", "--master", "local[2]", "--quiet"]
    done = command("select", log, *PROMISE, *union)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == ['"i,0"', '"i,1"']
    policy = command("select", log, *PROMISE, *[{"dp_sips": "policy_laplace"}.get(word, word) for word in union])
    assert policy.returncode == 2
    assert "dp_sips" in policy.stderr


def test_the_command_top_k_runs_on_sail_by_spark_connect(log):
    with spark_session("sail") as session:
        address = session.client._builder.url.netloc
        done = command("top-k", log, *PROMISE, "-k", "2", "--engine", "spark", "--master", f"sc://{address}", "-q")
    assert done.returncode == 0
    assert {line.rsplit(",", 1)[0] for line in done.stdout.splitlines()[1:]} == {'"i,0"', '"i,1"'}


def test_errors_name_a_missing_java_or_a_missing_file(log, tmp_path):
    require("local[2]")
    nowhere = {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    absent = command("select", log, *PROMISE, "--l0", "2", "--engine", "spark", **nowhere)
    assert absent.returncode == 1
    assert absent.stderr.startswith("discreet: no Spark session could be started at local[*]")
    assert "Java 17" in absent.stderr
    missing = command("top-k", "gone.parquet", *PROMISE, "-k", "1", "--engine", "spark", "--master", "local[1]")
    assert missing.returncode == 1
    assert missing.stderr == "discreet: cannot read gone.parquet: Spark finds no such parquet file; check the path\n"
