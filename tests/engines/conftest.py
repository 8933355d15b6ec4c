"""Spark sessions for tests: local, on a small local cluster, and through Spark Connect to Spark or Sail."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
SPARKS = ["local[2]", "local-cluster[2,1,1024]", "connect", "sail"]


def require(form):
    """Skip the test if a form of Spark is not installed."""
    pytest.importorskip("pyspark", minversion="3.5", reason="PySpark is not installed")
    if form in ("connect", "sail"):
        pytest.importorskip("pyspark", minversion="4.0", reason="Spark Connect needs PySpark 4")
        pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    if form == "sail":
        pytest.importorskip("pysail", reason="Sail is not installed")
    elif not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("there is no Java")


@contextmanager
def spark_session(form):
    """Yield a session of one form of Spark. Afterwards stop the session and its server.

    No two sessions may exist at a time.
    """
    require(form)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if form == "sail":
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        with connected(server.listening_address[1]) as session:
            yield session
        server.stop()
    elif form == "connect":
        with connect_server() as port, connected(port) as session:
            yield session
    else:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(form)
        for name, value in QUIET.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def connected(port):
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    try:
        yield session
    finally:
        session.stop()
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # otherwise PySpark makes no other session


@contextmanager
def connect_server():
    """Run Spark's own Connect server in another process, and yield its port."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {**QUIET, "spark.connect.grpc.binding.port": str(port)}
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            time.sleep(0.2)
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
        else:
            pytest.fail("the Connect server did not start")
        yield port
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module", params=SPARKS)
def spark(request):
    """Yield a session of each form in turn."""
    with spark_session(request.param) as session:
        yield session


class Reopened:
    """A stream of Arrow that is made anew for each query."""

    def __init__(self, make):
        self.make = make

    def __arrow_c_stream__(self, requested_schema=None):
        return self.make()


@pytest.fixture(scope="module")
def rows_of():
    """A function that returns the rows of a stream that a function makes, through one DuckDB connection."""
    duckdb = pytest.importorskip("duckdb")

    def rows(make):
        connection.register("given", Reopened(make))
        return connection.execute("SELECT * FROM given").fetchall()

    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield rows


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A file that each example overwrites."""
    return tmp_path_factory.mktemp("rows") / "log"
