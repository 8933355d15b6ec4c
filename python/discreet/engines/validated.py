"""pyarrow tables and readers whose buffers are as long as their layout says: the C interface gives no sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Reading", "reading", "validated"]


class Reading:
    """One call that reads tables: whether Ctrl-C ended one of its readers, on whatever thread Arrow asked for rows.

    It keeps no exception, whose traceback would hold rows.
    """

    interrupted = False


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)
"""The call that makes readers at the moment, in each thread."""


@contextmanager
def reading() -> Iterator[Reading]:
    """Begin a call: readers that `validated` makes in it tell this call of an interrupt, and no other."""
    call = Reading()
    token = _reading.set(call)
    try:
        yield call
    finally:
        _reading.reset(token)


def validated(data: Any) -> Any:
    """Return a pyarrow table, batch or reader after its layout is checked; a reader's batches are checked one by one.

    The check costs a few microseconds a chunk: sizes of buffers, the first and the last offset. Rust checks each cell
    against these. A validation in full would refuse text that is not UTF-8, which one user's row may hold.

    Raises:
        pyarrow.ArrowInvalid: a buffer is shorter than its layout says. A reader raises it when the batch is read.
    """
    if hasattr(data, "read_next_batch"):
        return type(data).from_batches(data.schema, _checked(data, _reading.get() or Reading()))
    data.validate()
    return data


def _checked(reader: pyarrow.RecordBatchReader, call: Reading) -> Iterator[pyarrow.RecordBatch]:
    try:
        for batch in reader:
            batch.validate()
            yield batch
    except KeyboardInterrupt:
        call.interrupted = True  # Arrow makes an error of it: this tells the caller what it was
        raise
