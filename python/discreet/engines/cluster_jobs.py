"""Jobs on a Spark cluster: they end when they are interrupted, and their errors and logs show no cells."""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from discreet.engines.engine import Progress
from discreet.engines.entropy import fresh_bits
from discreet.engines.validated import interruptible
from discreet.errors import DiscreetError, InputError, ResourceError, raise_alone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["awaited", "hidden_cells", "translated_errors"]

_INTERRUPT_SECONDS = 10.0
"""Seconds to wait for an interrupted job to end."""
_counting: ContextVar[bool] = ContextVar("counting", default=False)
"""Whether the current thread counts a table."""

_Result = TypeVar("_Result")


def awaited(session: SparkSession, work: Callable[[], _Result], tick: Progress | None) -> _Result:
    """Return the result of Spark's work, done in another thread, so that an interrupt cancels the job and is raised."""
    tag = f"discreet-{fresh_bits(8).hex()}"
    # A session of classic PySpark finds only the tags of the thread that asks.
    context = getattr(session, "sparkContext", None)
    add = session.addTag if context is None else context.addJobTag
    cancel = session.interruptTag if context is None else context.cancelJobsWithTag
    results: list[_Result] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            add(tag)  # tags belong to a thread
            with hidden_cells():
                results.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    # An event instead of join: Python 3.11 takes a thread for ended if its join is interrupted.
    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError:
        raise_alone(ResourceError("the operating system refused to start a thread; close other programs"))
    try:
        while not ended.wait(0.1):
            if tick is not None:
                tick()
    except BaseException:
        last = time.monotonic() + _INTERRUPT_SECONDS
        while (
            not ended.is_set() and time.monotonic() < last
        ):  # repeated, because an interrupt between two jobs has no effect
            with suppress(Exception):
                cancel(tag)
            ended.wait(0.2)
        raise
    if errors:
        raise errors[0]
    return results[0]


@contextmanager
def hidden_cells() -> Iterator[None]:
    """Hide the cell on which a query of this thread fails: PySpark would log it, or warn with it.

    Every engine that may run a query of PySpark, such as Ibis, runs it in this context.
    """
    if "pyspark" in sys.modules:  # otherwise there is no session that could run a query
        with suppress(ImportError):  # PySpark 3.5 prints no cells
            from pyspark.logger import PySparkLogger

            for kind in ("DataFrame", "SQL"):
                PySparkLogger.getLogger(f"{kind}QueryContextLogger").addFilter(_is_of_others)
        # `toPandas`, which Ibis calls, warns with the text of the error that it raises. The filter stays, because
        # `catch_warnings` of another thread would remove one that ends.
        warnings.filterwarnings("ignore", "toPandas attempted Arrow optimization", module=r"pyspark\.")
    before = _counting.set(True)
    try:
        yield
    finally:
        _counting.reset(before)


def _is_of_others(_: logging.LogRecord) -> bool:
    return not _counting.get()


@contextmanager
def translated_errors(session: SparkSession) -> Iterator[None]:
    """Translate Spark's errors, without their texts."""
    with interruptible(), hidden_cells():
        try:
            yield
        except (DiscreetError, MemoryError):
            raise
        except Exception:
            if _is_stopped(session):
                raise_alone(
                    ResourceError(
                        "the Spark session has stopped; make a new one and make the DataFrame again. If Java ran out "
                        "of memory, give it more by spark.driver.memory in spark-defaults.conf"
                    )
                )
            raise_alone(
                InputError(
                    "Spark could not count the table; its own log, which may quote the data, gives the reason. "
                    "Executors must be running, and spark.driver.maxResultSize must be large enough for the counts. "
                    "If Python functions make the table, PYSPARK_PYTHON must name a Python that every executor has. If "
                    "the table casts cells, use try_cast"
                )
            )


def _is_stopped(session: SparkSession) -> bool:
    try:
        if hasattr(session, "is_stopped"):  # Spark Connect
            return bool(session.is_stopped)
        context = session.sparkContext._jsc  # noqa: SLF001 - PySpark has no public property for it
        return context is None or bool(context.sc().isStopped())
    except Exception:  # its Java process has ended
        return True
