"""Malformed Arrow producers: reading must raise an error of discreet, and never crash.

The malformed C structures are in hostile.py. Only metadata that cannot be read raises no error.
"""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from pairs import as_dict

from discreet import Histogram, _core
from discreet.engines.validated import interruptible, validated
from discreet.errors import InputError
from discreet.mechanisms import ClippedSums
from discreet.tables import UserItems

HOSTILE = Path(__file__).with_name("hostile.py")

ACCEPTED = {"no defect", "a negative number of metadata entries"}
"""Streams that are counted: metadata is not read."""
SCHEMA_ERRORS = {
    "no format of the table",
    "a format that is not a table",
    "a format that is empty",
    "a width that is not a number",
    "a list without children",
    "a union without children",
    "a name that is not UTF-8",
    "a dictionary that contains itself",
    "no name",
}


@pytest.mark.skipif(sys.platform != "linux", reason="every stream is read in a fork")
def test_malformed_streams_never_crash_or_panic():
    done = subprocess.run([sys.executable, HOSTILE], capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    found = [line.split("; ") for line in done.stdout.splitlines()]
    assert len(found) > 140
    for defect, kind, outcome in found:
        expected = "counted 2" if defect in ACCEPTED else "SchemaError" if defect in SCHEMA_ERRORS else "InputError"
        assert outcome == expected, f"{defect} in a column of {kind}"


def corruptible(pa, kind):
    """Return a column of three strings, and a function that moves its last offset beyond its bytes."""
    honest = np.array([0, 1, 2, 3], np.int64 if kind == pa.large_string() else np.int32)
    column = pa.Array.from_buffers(kind, 3, [None, pa.py_buffer(honest), pa.py_buffer(b"abc")])

    def corrupt(last):
        honest[3] = last  # in place, because pyarrow refuses to create such an array

    return column, corrupt


def interrupted_reader(pa):
    """Return a reader that raises SIGINT before its third batch."""
    batch = pa.record_batch([np.arange(1000)] * 2, names=["u", "i"])

    def batches():
        yield from [batch] * 2
        signal.raise_signal(signal.SIGINT)
        yield batch

    return pa.RecordBatchReader.from_batches(batch.schema, batches())


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow")


def frames(pa, column):
    """Yield the column in every pyarrow object that has rows."""
    table = pa.table({"u": [1, 2, 3], "i": column, "v": [1, 1, 1]})
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), column, safe=False)
    yield table
    yield table.to_batches()[0]
    yield table.to_reader()
    yield pa.table({"u": [1, 2, 3], "i": encoded, "v": [1, 1, 1]})
    yield pytest.importorskip("pyarrow.dataset").dataset(table)


@pytest.mark.parametrize("kind", ["string", "large_string"])
@pytest.mark.parametrize("last", [4, 2**30])
def test_offsets_beyond_the_bytes_are_an_input_error(pa, kind, last):
    def histogram(frame):
        Histogram.from_table(frame, user="u", item="i")

    def lists(frame):
        UserItems.from_table(frame, user="u", item="i")

    def sums(frame):
        ClippedSums(items=("a",), rho=1.0, low=0, high=1).release(frame, user="u", item="i", value="v")

    for read in (histogram, lists, sums):
        column, corrupt = corruptible(pa, getattr(pa, kind)())
        made = list(frames(pa, column))
        corrupt(last)
        for frame in made:
            with pytest.raises(InputError):
                read(frame)


def test_pandas_offsets_beyond_the_bytes_are_an_input_error(pa):
    pandas = pytest.importorskip("pandas")
    for kind in (pandas.ArrowDtype(pa.large_string()), "str"):
        column, corrupt = corruptible(pa, pa.large_string())
        frame = pandas.DataFrame({"u": [1, 2, 3], "i": pandas.arrays.ArrowExtensionArray(column)})
        frame = frame.astype({"i": kind})
        corrupt(2**30)
        with pytest.raises(InputError):
            Histogram.from_table(frame, user="u", item="i")


def test_text_that_is_not_utf8_is_dropped_without_an_error(pa):
    """Full validation would turn one user's cell into an error."""
    column = pa.array([b"a", b"\xff", b"b"]).view(pa.string())
    for frame in frames(pa, column):
        histogram = Histogram.from_table(frame, user="u", item="i")
        assert histogram._labels.take(np.arange(2)) == ["a", "b"]


def test_a_wrong_null_count_is_an_input_error(pa):
    bitmap = pa.py_buffer(b"\x05")
    for stated in (2, 3):
        cells = [bitmap, pa.py_buffer(np.array([7, 7, 8]))]
        column = pa.Array.from_buffers(pa.int64(), 3, cells, null_count=stated)
        with pytest.raises(InputError):
            _core.count_distinct(pa.table({"u": [1, 2, 3], "i": column}), "u", "i")
    for stated in (1, -1):
        column = pa.Array.from_buffers(pa.int64(), 3, cells, null_count=stated)
        assert as_dict(_core.count_distinct(pa.table({"u": [1, 2, 3], "i": column}), "u", "i")) == {7: 1, 8: 1}


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_in_a_reader_raises_keyboard_interrupt(pa):
    with pytest.raises(KeyboardInterrupt):
        Histogram.from_table(interrupted_reader(pa), user="u", item="i")


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_of_another_call_is_ignored(pa):
    with pytest.raises(KeyboardInterrupt):  # a reader that discreet does not read
        validated(interrupted_reader(pa)).read_all()
    with pytest.raises(ValueError, match="unrelated"), interruptible():
        raise ValueError("unrelated")


@pytest.mark.usefixtures("interrupts")
def test_another_thread_does_not_receive_the_interrupt(pa):
    def other():
        with interruptible():
            raise ValueError("unrelated")

    def call():
        with interruptible():
            with pytest.raises(KeyboardInterrupt):
                validated(interrupted_reader(pa)).read_all()
            with ThreadPoolExecutor(1) as threads:
                raised.append(type(threads.submit(other).exception()))
            raise ValueError("Arrow's error for an interrupt")

    raised = []
    with pytest.raises(KeyboardInterrupt):
        call()
    assert raised == [ValueError]
