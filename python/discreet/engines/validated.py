"""pyarrow tables and readers whose buffers are as long as their layout says: the C interface gives no sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

__all__ = ["validated", "was_interrupted"]

_interrupts: list[KeyboardInterrupt] = []
"""Those of readers whose callers have not met them yet."""


def validated(data: Any) -> Any:
    """Return a pyarrow table, batch or reader after its layout is checked; a reader's batches are checked one by one.

    The check costs a few microseconds a chunk: sizes of buffers, the first and the last offset. Rust checks each cell
    against these. A validation in full would refuse text that is not UTF-8, which one user's row may hold.

    Raises:
        pyarrow.ArrowInvalid: a buffer is shorter than its layout says. A reader raises it when the batch is read.
    """
    if hasattr(data, "read_next_batch"):
        return type(data).from_batches(data.schema, _checked(data))
    data.validate()
    return data


def _checked(reader: pyarrow.RecordBatchReader) -> Iterator[pyarrow.RecordBatch]:
    try:
        for batch in reader:
            batch.validate()
            yield batch
    except KeyboardInterrupt as interrupt:
        # Arrow makes an error of it: `was_interrupted` tells the caller what it was.
        _interrupts.append(interrupt)
        raise


def was_interrupted() -> bool:
    """Return whether Ctrl-C ended a reader since the last call."""
    found = bool(_interrupts)
    _interrupts.clear()
    return found
