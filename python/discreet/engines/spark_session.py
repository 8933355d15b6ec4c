"""A Spark session for one table in files, for the command line."""

from __future__ import annotations

import glob
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from discreet.engines import files
from discreet.engines.entropy import fresh_bits
from discreet.errors import EntropyError, InputError, ResourceError
from discreet.startup import ENDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["opened"]

_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}


@contextmanager
def opened(path: str, master: str) -> Iterator[DataFrame]:
    """Yield a DataFrame of Parquet or CSV files, in a session that ends afterwards.

    Args:
        path: A file, folder or glob, as Spark reads it. The columns of a CSV file are text.
        master: local[*], spark://..., yarn, k8s://..., or sc://... for Spark Connect.

    Raises:
        ResourceError: No session can be started.
        InputError: There is no such file, its format is another one, or a log decides which files are live.
    """
    form, delimiter = files.form_of(path)
    if form not in ("parquet", "CSV"):
        raise InputError(
            f"cannot read {path} with Spark: this needs Parquet or CSV files; write the table as Parquet, or count it "
            "without Spark"
        )
    if "://" not in path:
        files.require_no_log([f"{name}/_" for name in (path, *glob.glob(path))])  # noqa: PTH207 - may be absolute
    session = _started(master)
    try:
        yield _table(session, path, form, delimiter)
    finally:
        session.stop()


def _started(master: str) -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ResourceError("the engine spark needs PySpark: pip install 'pyspark[connect]>=4'") from None
    builder = SparkSession.builder.appName("discreet")
    try:
        if master.startswith("sc://"):
            return builder.remote(master).getOrCreate()
        builder = builder.master(master)
        for name, value in _QUIET.items():
            builder = builder.config(name, value)
        with _java_stderr_hidden(), _interrupts_deferred() as interrupts:
            session = builder.getOrCreate()
    except Exception:
        raise ResourceError(
            f"no Spark session could be started at {master}: check the address, and except for sc:// that Java 17 or "
            "newer is on the PATH or at JAVA_HOME"
        ) from None
    if interrupts:
        session.stop()
        raise KeyboardInterrupt
    return session


@contextmanager
def _java_stderr_hidden() -> Iterator[None]:
    """Redirect the standard error of the Java process that starts here: its warnings may quote the data."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _interrupts_deferred() -> Iterator[list[int]]:
    """Defer interrupts while Java starts, because PySpark would leave the Java process behind."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def note(number: int, frame: object) -> None:
        seen.append(number)

    before = {number: signal.signal(number, note) for number in ENDS if signal.getsignal(number) != signal.SIG_IGN}
    try:
        yield seen
    finally:
        for number, handler in before.items():  # replaces PySpark's handler too, which calls Java from a signal
            signal.signal(number, handler)


def _table(session: SparkSession, path: str, form: str, delimiter: str) -> DataFrame:
    found = re.sub(r"([][{}*?\\])", r"\\\1", path) if os.path.exists(path) else path  # noqa: PTH110 - it may be a glob
    try:
        if form == "parquet":
            return session.read.parquet(found)
        # An empty cell is NULL and a quoted empty cell is text. Spark confuses them if both are written alike, so NULL
        # gets a random text.
        null = fresh_bits(16).hex()
        return session.read.csv(
            found, header=True, sep=delimiter, escape='"', multiLine=True, enforceSchema=False, nullValue=null
        )
    except EntropyError:
        raise
    except Exception:
        raise InputError(f"cannot read {path}: Spark finds no such {form} file; check the path") from None
