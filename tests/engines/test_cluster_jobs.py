"""Jobs on a cluster: an interrupt also ends the job, and results and errors are returned."""

import _thread
import signal
import sys
import threading
from types import SimpleNamespace

import pytest

from discreet.engines.cluster_jobs import awaited
from discreet.engines.spark_session import _started
from discreet.startup import ENDS, state


class Cluster:
    """A session with a single job that ends when it is interrupted."""

    def __init__(self):
        self.tags = []
        self.interrupted = threading.Event()

    def addTag(self, tag):  # noqa: N802 - Spark's name
        self.tags.append(tag)

    def interruptTag(self, tag):  # noqa: N802 - Spark's name
        assert self.tags == [tag]
        self.interrupted.set()

    def job(self):
        assert self.interrupted.wait(60)
        raise RuntimeError("cancelled")


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("how", ENDS)
def test_an_interrupt_that_also_ends_java_is_raised(monkeypatch, how):
    class Builder:
        def __getattr__(self, name):
            return lambda *_: self

        def getOrCreate(self):  # noqa: N802 - Spark's name
            signal.raise_signal(how)
            raise RuntimeError("Java gateway process exited before sending its port number")

    modules = {"pyspark": SimpleNamespace(), "pyspark.sql": SimpleNamespace(SparkSession=SimpleNamespace())}
    modules["pyspark.sql"].DataFrame = SimpleNamespace(metadataColumn=None)
    modules["pyspark.sql"].SparkSession.builder = Builder()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(state, "received", [])
    with pytest.raises(KeyboardInterrupt):
        _started("local[1]")
    assert state.code == 128 + how


def test_an_interrupt_ends_the_job_and_is_raised(interrupts):
    cluster = Cluster()
    with pytest.raises(KeyboardInterrupt):
        awaited(cluster, cluster.job, _thread.interrupt_main)
    assert cluster.interrupted.is_set()


def test_an_error_in_progress_ends_the_job():
    cluster = Cluster()

    def progress():
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        awaited(cluster, cluster.job, progress)
    assert cluster.interrupted.is_set()


def test_results_and_errors_of_a_job_are_returned():
    cluster = Cluster()
    assert awaited(cluster, lambda: 7, None) == 7
    cluster.interrupted.set()
    with pytest.raises(RuntimeError, match="cancelled"):
        awaited(cluster, cluster.job, None)
