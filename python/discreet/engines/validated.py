"""Validation of pyarrow buffers against their layout: Arrow's C interface passes no buffer sizes."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import threading
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from discreet.errors import ParameterError, raise_alone
from discreet.imports import Handler, handling
from discreet.startup import ENDS, handle, state

if TYPE_CHECKING:
    import socket

    import pyarrow
    from duckdb import DuckDBPyConnection
    from pyarrow.dataset import Dataset

__all__ = ["interrupted_with_call", "interruptible", "scanned", "validated"]

_STOP = b"\xff"
"""The byte that tells the helper thread to stop DuckDB. No signal has this number."""
_PAUSE = 0.02
"""The seconds between two interrupts of DuckDB."""
_DEAF, _LONGEST = 50, 500
"""The interrupts after which the command ends, because DuckDB goes on in a long function; and the most of a signal."""

_begun: WeakSet[object] = WeakSet()
"""The readers whose batches were read here. A reader that is read again gives no rows, as an empty table does."""

_Data = TypeVar("_Data", "pyarrow.Table", "pyarrow.RecordBatch", "pyarrow.RecordBatchReader")


class _Call:
    """One call that reads tables, with the interrupt that ends it, or that ends a reader on any of Arrow's threads.

    The main thread owns the connections of its call: the destructor of a connection joins threads, and would end the
    process if it ran in a helper thread while the interpreter ends. So the list is cleared after the helper has ended.
    """

    def __init__(self) -> None:
        self._noted: tuple[type[BaseException], tuple[object, ...]] | None = None
        """The class and the arguments of an interrupt, because its traceback would hold rows."""
        self._connections: list[DuckDBPyConnection] = []
        self._pipe: socket.socket | None = None
        """The socket that signals are written to."""
        self._before = -1
        self._helper: threading.Thread | None = None

    def note(self, error: BaseException) -> None:
        """Note KeyboardInterrupt, SystemExit or another interrupt, which Arrow or DuckDB turns into an error."""
        if not isinstance(error, Exception | GeneratorExit):
            self._noted = type(error), error.args

    def raise_noted(self) -> None:
        """Raise an exception like the one that was noted, if there was one."""
        noted, self._noted = self._noted, None
        if noted is not None:
            kind, given = noted
            try:
                error = kind(*given)
            except TypeError:  # a class with other parameters
                error = KeyboardInterrupt()
            raise_alone(error)

    def noting(self, handler: Handler) -> Handler:
        """Return a signal handler that notes whether `handler` raises an interrupt, and then stops DuckDB."""

        def run(number: int, frame: FrameType | None) -> None:
            try:
                handler(number, frame)
            except BaseException as error:
                self.note(error)
                if self._noted is not None and self._pipe is not None:
                    # DuckDB itself stops a query after an interrupt, but may then wait for its tasks without end.
                    with suppress(OSError):
                        self._pipe.send(_STOP)
                raise

        run.is_ending = _is_ending(handler)  # type: ignore[attr-defined]
        return run

    def interrupts(self, connection: DuckDBPyConnection) -> None:
        """Let an interrupt of this call interrupt this connection."""
        self._connections.append(connection)
        if self._helper is None and threading.current_thread() is threading.main_thread():
            self._listen()

    def _listen(self) -> None:
        """Hear of signals in another thread, because a task of DuckDB in this one may last for ever.

        Python's handlers run in the main thread alone, when DuckDB returns to it.
        """
        import socket

        ending = {number for number in ENDS if _is_ending(signal.getsignal(number))}
        with suppress(OSError, RuntimeError):  # the system refused the sockets or the thread
            heard, self._pipe = socket.socketpair()
            self._pipe.setblocking(False)
            self._before = signal.set_wakeup_fd(self._pipe.fileno(), warn_on_full_buffer=False)
            given = (heard, ending, self._connections, self._before)
            self._helper = threading.Thread(target=_hear, args=given, daemon=True)
            self._helper.start()

    def end(self) -> None:
        """Let no thread interrupt DuckDB any more: a connection may be the caller's own."""
        if self._pipe is not None and self._helper is not None:
            if threading.current_thread() is not threading.main_thread():
                return  # garbage is collected in another thread: the call ends with the process
            signal.set_wakeup_fd(self._before)
            with suppress(OSError, RuntimeError):  # the thread did not start
                self._pipe.shutdown(1)
                self._helper.join(10)
            self._pipe.close()
        self._connections.clear()
        _calls.discard(self)

    def forget(self) -> list[DuckDBPyConnection]:
        """Forget the helper thread in a child process, which has none, and must not write to that of its parent."""
        if self._pipe is not None:
            signal.set_wakeup_fd(-1)
            self._pipe.close()
            self._pipe = None
        return [*self._connections]


def _hear(heard: socket.socket, ending: Collection[int], connections: list[DuckDBPyConnection], before: int) -> None:
    """Interrupt DuckDB from a signal that ends the call to the end of the call, and pass all signals on."""
    left = 0
    with heard:
        while True:
            heard.settimeout(_PAUSE if left else None)
            with suppress(TimeoutError):
                if not (number := heard.recv(1)):
                    return
                if before != -1 and number != _STOP:
                    with suppress(OSError):
                        os.write(before, number)
                if number == _STOP or number[0] in ending:
                    left = left or _LONGEST
            if left:
                left -= 1
                for place in range(len(connections)):
                    with suppress(Exception):
                        connections[place].interrupt()
                if left == _LONGEST - _DEAF:
                    state.leave()


def _is_ending(handler: object) -> bool:
    """Return whether a signal handler is sure to raise KeyboardInterrupt."""
    return handler in (signal.default_int_handler, handle) or getattr(handler, "is_ending", False)


_calls: set[_Call] = set()
"""The calls that have not ended."""
_current: ContextVar[_Call | None] = ContextVar("current", default=None)
"""The outermost call in each thread."""


@atexit.register
def _end_all() -> None:
    """Let no thread interrupt DuckDB while the interpreter ends: it would end the process by a signal."""
    for call in [*_calls]:
        call.end()


def _forget_all() -> None:
    """Forget all calls in a child process, and keep their connections: each destructor would wait for threads."""
    kept: list[object] = [call.forget() for call in _calls]
    _calls.clear()
    if kept:
        kept.append(kept)
        gc.freeze()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt, SystemExit or another interrupt again if a library or discreet made an error of it.

    As a decorator it covers all errors of a function. Libraries turn the exception of a signal handler into errors of
    their own, so the handlers note which one they raised. Calls within a call are part of it.
    """
    outer = _current.get()
    call = _Call() if outer is None else outer
    try:
        with _begun_call(call) if outer is None else nullcontext():
            yield
    except Exception:
        call.raise_noted()
        raise


@contextmanager
def _begun_call(call: _Call) -> Iterator[None]:
    """Begin a call: readers that `validated` makes in it report an interrupt to this call only."""
    _calls.add(call)
    _current.set(call)
    try:
        found = {number: handler for number in ENDS if callable(handler := signal.getsignal(number))}
        with handling({number: call.noting(handler) for number, handler in found.items()}):
            yield
    finally:
        # An interrupt at the end of a call may delay this until its garbage is collected.
        if _current.get() is call:
            _current.set(None)
        call.end()


def interrupted_with_call(connection: DuckDBPyConnection) -> None:
    """Let an interrupt of the current call interrupt this connection."""
    if (call := _current.get()) is not None:
        call.interrupts(connection)


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
        return type(data).from_batches(data.schema, _checked(lambda: data, _current.get() or _Call()))
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


def scanned(data: Dataset, columns: list[str]) -> pyarrow.RecordBatchReader:
    """Return columns of a dataset of pyarrow as a validated reader, which starts the scan at its first batch.

    pyarrow reads ahead on other threads, and ends the process if a scan that was started is neither read to its end
    nor closed. A column of another type is refused before the scan starts.
    """
    import pyarrow

    scanner = data.scanner(columns=columns)
    batches = _checked(scanner.to_reader, _current.get() or _Call())
    return pyarrow.RecordBatchReader.from_batches(scanner.projected_schema, batches)


def _checked(
    opened: Callable[[], pyarrow.RecordBatchReader], call: _Call
) -> Generator[pyarrow.RecordBatch, None, None]:
    """Yield the batches of a reader, which is closed when the generator is, also if it was not read to its end."""
    reader = opened()
    _begun.add(reader)
    try:
        for batch in reader:
            batch.validate()
            _require_indices(batch)
            yield batch
    except BaseException as error:
        call.note(error)
        raise
    finally:
        reader.close()
