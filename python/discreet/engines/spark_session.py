"""A Spark session for one table in Parquet files, for the command line."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from discreet.engines import files
from discreet.engines.entropy import fresh_bits
from discreet.engines.validated import interruptible
from discreet.errors import InputError, ResourceError, raise_alone
from discreet.formats import PARQUET
from discreet.imports import handling
from discreet.startup import ENDS, state

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["opened"]

_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}


@contextmanager
def opened(path: str, master: str, columns: Sequence[str]) -> Iterator[DataFrame]:
    """Yield a DataFrame of Parquet files, in a session that ends afterwards.

    Spark reads no CSV for a command: a line of 20,481 cells would fail the job, and text that is not UTF-8 would become
    other text. So one row would decide whether there is a release.

    The path is a file, folder or glob as Spark reads it, except that a backslash is no escape.

    Raises:
        ResourceError: No session can be started.
        InputError: There is no such file, its format is another one, or a log decides which files are live.
        SchemaError: A folder's key is also a column of the files, in another spelling.
    """
    if Path(path).suffix and files.form_of(path)[0] is not PARQUET:
        raise InputError(
            f"cannot read {path} with Spark: this needs Parquet files; write the table as Parquet, or count it without "
            "Spark"
        )
    import logging  # takes milliseconds

    # PySpark logs an interrupt with its traceback, which the standard library prints if the root logger has no handler.
    logging.getLogger().addHandler(logging.NullHandler())
    session = _started(master)
    try:
        yield _table(session, path, columns)
    finally:
        with suppress(Exception):  # its Java process may have ended
            session.stop()


def _started(master: str) -> SparkSession:
    try:
        from pyspark.sql import DataFrame, SparkSession

        if not hasattr(DataFrame, "metadataColumn"):
            raise ImportError
    except ImportError:
        raise ResourceError("the engine spark needs PySpark 4: pip install 'pyspark[connect]>=4'") from None
    builder = SparkSession.builder.appName("discreet")
    interrupts: list[int] = []
    try:
        if master.startswith("sc://"):
            return builder.remote(master).getOrCreate()
        builder = builder.master(master)
        for name, value in _QUIET.items():
            builder = builder.config(name, value)
        with _java_stderr_hidden(), _interrupts_deferred() as interrupts:
            session = builder.getOrCreate()
    except Exception:
        if interrupts:  # they may have ended Java too
            raise_alone(KeyboardInterrupt())
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

    def note(number: int, frame: object) -> None:
        seen.append(number)
        state.received.append(number)

    # At the end this replaces PySpark's handler too, which calls Java from a signal.
    with handling({number: note for number in ENDS if signal.getsignal(number) != signal.SIG_IGN}):
        yield seen


@interruptible()
def _table(session: SparkSession, path: str, columns: Sequence[str]) -> DataFrame:
    """Return Parquet files as a table, with the columns among `columns` that only the names of folders have.

    Spark would prefer a folder's key to a column of the files, compare both without case, and guess types from values.
    """
    given = _escaped(path) if os.path.exists(path) else path.replace("\\", r"\\")  # noqa: PTH110 - it may be a glob
    options = {"recursiveFileLookup": "true", "mergeSchema": "true"}
    try:
        table = session.read.options(**options).parquet(given)
        names, found = {name.lower() for name in table.columns}, table.inputFiles()
    except Exception as error:
        if getattr(error, "getCondition", str)() != "PATH_NOT_FOUND":
            raise_alone(
                InputError(
                    f"cannot read {path}: Spark must be able to read all files as Parquet, with types that Spark has, "
                    "the same types in all files, and names that differ by more than case, and a glob must meet no "
                    "name with a colon; give a folder, write the table anew, or count it without Spark"
                )
            )
        found = []
    if not found:
        raise InputError(f"cannot read {path}: Spark finds no such parquet file; check the path")
    source = files.Source(shown=path, paths=[unquote(urlsplit(name).path) for name in found], form=PARQUET)
    if found[0].startswith("file:"):
        files.require_no_log(source.paths)
    _require_no_log(session, found)
    source.require_no_folder(name for name in columns if name.lower() in names)
    of_folders = [name for name in columns if name.lower() not in names and name in source.partitions]
    source.require_one_key(of_folders)
    return _with_folders(table, of_folders, source)


def _require_no_log(session: SparkSession, found: Sequence[str]) -> None:
    """Raise InputError if Spark sees a log above the files that decides which of them are live.

    Folders named by keys are skipped at the end of a path, because they may be many, and no table begins there.
    """
    folders = set()
    for name in found:
        path = urlsplit(name).path
        *above, _ = unquote(path).split("/")
        while above and "=" in above[-1]:
            above.pop()
        folders |= {(name.removesuffix(path), "/".join(above[:depth])) for depth in range(1, len(above) + 1)}
    logs = ",".join(log for log, _ in files.LOGS.values())
    for disk, folder in sorted(folders):
        try:
            has_log = session.read.format("binaryFile").load(f"{disk}{_escaped(folder)}/{{{logs}}}").inputFiles()
        except Exception:  # there is none, or Spark may not list the folder
            continue
        if has_log:
            raise InputError(
                f"cannot read the files of {disk}{folder}: its log decides which files are live, and others may have "
                "deleted rows; in Python give the Spark DataFrame of the table"
            )


def _escaped(path: str) -> str:
    """Return a path as a glob of Hadoop that matches it alone."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def _with_folders(table: DataFrame, keys: Sequence[str], source: files.Source) -> DataFrame:
    """Return the rows of folders whose values of some keys are text, with the values as columns."""
    from pyspark.sql import functions
    from pyspark.sql.functions import lit

    if not keys:
        return table
    # A plus sign is no space in a path.
    path = functions.replace(table.metadataColumn("_metadata")["file_path"], lit("+"), lit("%2B"))
    parts = functions.split(functions.url_decode(path), "/")

    def of_path(key: str) -> Column:
        found = functions.filter(parts, lambda name: functions.startswith(name, lit(f"{key}=")))
        return functions.substring(found[0], len(key) + 2, 2**31 - 1)

    mark = fresh_bits(8).hex()
    table = table.withColumns({f"{mark}{place}": of_path(key) for place, key in enumerate(keys)})
    for place, key in enumerate(keys):
        texts = source.texts(key).items()
        pairs = ",".join(f"{raw.encode().hex()}:{text.encode().hex()}" for raw, text in texts)
        rows = table.sparkSession.range(1).select(functions.explode(functions.split(lit(pairs), ",")).alias("x"))
        cells = [functions.unhex(functions.split_part("x", lit(":"), lit(n))).cast("string") for n in (1, 2)]
        values = rows.select(cells[0].alias(f"{mark}{place}"), cells[1].alias(key))
        table = table.join(functions.broadcast(values), f"{mark}{place}")
    return table
