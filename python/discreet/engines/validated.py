"""Validation of pyarrow buffers against their layout: Arrow's C interface passes no buffer sizes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from discreet.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow
    from duckdb import DuckDBPyConnection

__all__ = ["Reading", "interrupted_with_call", "reading", "validated"]

_begun: WeakSet[object] = WeakSet()
"""The readers whose batches were read here. A reader that is read again gives no rows, as an empty table does."""

_Data = TypeVar("_Data", "pyarrow.Table", "pyarrow.RecordBatch", "pyarrow.RecordBatchReader")


class Reading:
    """One call that reads tables, with a flag for a Ctrl-C in it, or in a reader on any of Arrow's threads.

    It keeps no exception, because the traceback would hold rows.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._connections: WeakSet[DuckDBPyConnection] = WeakSet()
        self._over = threading.Event()

    def interrupt(self) -> None:
        """Note an interrupt, and interrupt DuckDB until the call ends.

        DuckDB itself stops a query after an interrupt, but may then wait for its tasks without end.
        """
        self.interrupted = True
        if self._connections:
            with suppress(RuntimeError):  # the system refused the thread
                threading.Thread(target=self._stop, daemon=True).start()

    def _stop(self) -> None:
        while not self._over.wait(0.02):
            for connection in [*self._connections]:
                with suppress(Exception):
                    connection.interrupt()

    def end(self) -> None:
        """Let no thread interrupt DuckDB any more."""
        self._over.set()
        self._connections.clear()


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)
"""The current call in each thread."""


@contextmanager
def reading() -> Iterator[Reading]:
    """Begin a call: readers that `validated` makes in it report an interrupt to this call only."""
    call = Reading()
    token = _reading.set(call)
    try:
        yield call
    finally:
        _reading.reset(token)
        call.end()


def interrupted_with_call(connection: DuckDBPyConnection) -> None:
    """Let an interrupt of the current call interrupt this connection."""
    if (call := _reading.get()) is not None:
        call._connections.add(connection)  # noqa: SLF001 - of this module


def validated(data: _Data) -> _Data:
    """Return a pyarrow table, batch or reader after checking its layout; a reader's batches are checked one by one.

    The check takes a few microseconds per chunk. It covers the sizes of buffers and the first and last offset, and Rust
    checks each cell against these. A full validation would refuse text that is not UTF-8, which a single user's row may
    hold.

    Raises:
        pyarrow.ArrowInvalid: A buffer is shorter than its layout requires. A reader raises it when the batch is read.
        ParameterError: The reader was read before by this function.
    """
    if hasattr(data, "read_next_batch"):
        if data in _begun:
            raise ParameterError(
                "the reader was already read, and gives its rows once: make a new one, or read it into a table first"
            )
        return type(data).from_batches(data.schema, _checked(data, _reading.get() or Reading()))
    data.validate()
    _require_indices(data)
    return data


def _require_indices(data: pyarrow.Table | pyarrow.RecordBatch) -> None:
    """Raise ArrowInvalid for an index of a dictionary that is out of range: DuckDB reads it without a check."""
    for column in data.columns:
        if hasattr(column.type, "index_type"):
            import pyarrow

            for chunk in getattr(column, "chunks", [column]):
                # Full validation of the values would refuse text that is not UTF-8.
                pyarrow.DictionaryArray.from_arrays(chunk.indices, pyarrow.nulls(len(chunk.dictionary)))


def _checked(reader: pyarrow.RecordBatchReader, call: Reading) -> Iterator[pyarrow.RecordBatch]:
    _begun.add(reader)
    try:
        for batch in reader:
            batch.validate()
            _require_indices(batch)
            yield batch
    except KeyboardInterrupt:
        call.interrupted = True  # Arrow raises another error instead; the flag marks it as an interrupt
        raise
