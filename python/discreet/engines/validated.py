"""Validation of pyarrow buffers against their layout: Arrow's C interface passes no buffer sizes."""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import threading
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakSet

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from _thread import LockType

    import pyarrow
    from duckdb import DuckDBPyConnection
    from pyarrow.dataset import Dataset

__all__ = ["Reading", "interrupted_with_call", "living", "reading", "scanned", "validated"]

_END = b"\0"
"""What ends a thread that hears of signals. No signal has this number."""
_listening: list[int] = []
"""The pipes that signals are written to. A child process must not write to those of its parent."""


def _forget_pipes() -> None:
    if _listening:
        with suppress(ValueError):
            signal.set_wakeup_fd(-1)
    for call in [*_calls]:
        call.forget()
    _calls.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pipes)

_begun: WeakSet[object] = WeakSet()
"""The readers whose batches were read here. A reader that is read again gives no rows, as an empty table does."""

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Data = TypeVar("_Data", "pyarrow.Table", "pyarrow.RecordBatch", "pyarrow.RecordBatchReader")


class Reading:
    """One call that reads tables, with the interrupt that ends it, or that ends a reader on any of Arrow's threads.

    It keeps the class and the arguments of an exception, because the traceback would hold rows.

    `ending` are the signals whose handlers are sure to raise an interrupt.
    """

    def __init__(self, ending: Collection[int] = ()) -> None:
        self._ending = ending
        self._pipe: tuple[int, int] | None = None
        """The end of the pipe that signals are written to, and the former one."""
        self._noted: tuple[type[BaseException], tuple[object, ...]] | None = None
        self._connections: WeakSet[DuckDBPyConnection] = WeakSet()
        self._over = threading.Event()
        self._living = _living.get()
        _calls.add(self)
        self._interrupting = threading.Lock()
        """Held by a thread while it interrupts DuckDB. No signal handler waits for it."""

    @property
    def interrupted(self) -> bool:
        """Whether an interrupt was noted."""
        return self._noted is not None

    def note(self, error: BaseException) -> None:
        """Note KeyboardInterrupt, SystemExit or another interrupt, which Arrow or DuckDB turns into an error."""
        if not isinstance(error, Exception | GeneratorExit):
            self._noted = type(error), error.args

    def again(self) -> BaseException:
        """Return a new exception like the one that was noted."""
        kind, given = self._noted or (KeyboardInterrupt, ())
        try:
            return kind(*given)
        except TypeError:  # a class with other parameters
            return KeyboardInterrupt()

    def stop(self) -> None:
        """Interrupt DuckDB until the call ends, from a signal handler.

        DuckDB itself stops a query after an interrupt, but may then wait for its tasks without end.
        """
        if self._connections:
            with suppress(RuntimeError):  # the system refused the thread
                # A signal may interrupt `Thread.start`, which holds a lock. A second `Thread.start` would wait for it.
                _thread.start_new_thread(self._stop, ())

    def interrupts(self, connection: DuckDBPyConnection) -> None:
        """Let an interrupt of this call interrupt this connection."""
        self._connections.add(connection)
        if self._ending and self._pipe is None:
            self._listen()

    def _listen(self) -> None:
        """Hear of signals in another thread, because a task of DuckDB in this one may last for ever.

        Python's handlers run in the main thread alone, when DuckDB returns to it.
        """
        with suppress(OSError):
            heard, written = os.pipe()
            try:
                os.set_blocking(written, False)
                before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
            except (AttributeError, ValueError):  # not the main thread, or Windows
                os.close(heard)
                os.close(written)
                return
            self._pipe = written, before
            _listening.append(written)
            try:
                _thread.start_new_thread(self._hear, (heard, before))
            except RuntimeError:  # the system refused the thread
                os.close(heard)

    def _hear(self, heard: int, before: int) -> None:
        """Stop DuckDB after a signal that ends the call, and pass all signals on."""
        try:
            while (number := os.read(heard, 1)) not in (b"", _END):
                if before != -1:
                    with suppress(OSError):
                        os.write(before, number)
                if number[0] in self._ending:
                    self._stop()
        finally:
            os.close(heard)

    def _stop(self) -> None:
        while not self._over.wait(0.02) and (self._living is None or self._living.locked()):
            with self._interrupting, suppress(RuntimeError):  # the set grows meanwhile
                for connection in [*self._connections]:
                    with suppress(Exception):
                        connection.interrupt()

    def forget(self) -> None:
        """Forget the threads and the pipe in a child process, which has neither."""
        self._pipe, self._over, self._interrupting = None, threading.Event(), threading.Lock()

    def end(self) -> None:
        """Let no thread interrupt DuckDB any more: a connection may be the caller's own."""
        self._over.set()
        if self._pipe is not None:
            (written, before), self._pipe = self._pipe, None
            with suppress(ValueError):  # not the main thread
                signal.set_wakeup_fd(before)
            _listening.remove(written)
            with suppress(OSError):
                os.write(written, _END)
            os.close(written)
        with self._interrupting:
            self._connections.clear()


_living: ContextVar[LockType | None] = ContextVar("living", default=None)
"""The lock that the outermost `living` function of each thread holds."""
_calls: WeakSet[Reading] = WeakSet()
"""The calls that may not have ended yet."""


@atexit.register
def _end_all() -> None:
    """Let no thread interrupt DuckDB while the interpreter ends: it would end the process by a signal."""
    for call in [*_calls]:
        call.end()


def living(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Let no thread interrupt DuckDB for the calls in a function after it has ended.

    An interrupt at the first step of the end of a `reading` skips its end. The end of a lock cannot be skipped: it is
    no code of Python.
    """

    @wraps(function)
    def run(*args: _Given.args, **options: _Given.kwargs) -> _Result:
        outer = _living.get()
        if outer is not None and outer.locked():
            return function(*args, **options)
        lock = _thread.allocate_lock()
        token = _living.set(lock)
        try:
            with lock:
                return function(*args, **options)
        finally:
            _living.reset(token)

    return run


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)
"""The current call in each thread."""


@contextmanager
def reading(ending: Collection[int] = ()) -> Iterator[Reading]:
    """Begin a call: readers that `validated` makes in it report an interrupt to this call only."""
    call = Reading(ending)
    token = _reading.set(call)
    try:
        yield call
    finally:
        # An interrupt at the end of a call may delay this until its garbage is collected.
        if _reading.get() is call:
            _reading.reset(token)
        call.end()


def interrupted_with_call(connection: DuckDBPyConnection) -> None:
    """Let an interrupt of the current call interrupt this connection."""
    if (call := _reading.get()) is not None:
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
        return type(data).from_batches(data.schema, _checked(lambda: data, _reading.get() or Reading()))
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
    batches = _checked(scanner.to_reader, _reading.get() or Reading())
    return pyarrow.RecordBatchReader.from_batches(scanner.projected_schema, batches)


def _checked(
    opened: Callable[[], pyarrow.RecordBatchReader], call: Reading
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
