"""Streams that are interrupted at every line, and again while they handle the interrupt."""

import gc
import itertools
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from discreet import BinaryMechanism, Stream
from discreet.errors import StateError
from discreet.streams.file import StreamFile
from discreet.streams.journal import Journal
from discreet.streams.key import KeyFile

MECHANISM = BinaryMechanism.from_rho(rho=5.0, delta=1e-6, l0=2, horizon=50)
ROOM = Path("discreet", "streams")
FILES = tuple(str(ROOM / f"{name}.py") for name in ("stream", "file", "journal", "counts", "key", "paths"))


@pytest.fixture
def folder(quick_folder):
    gc.freeze()  # `opened` collects garbage often
    return quick_folder


def batch(number):
    return [["common", f"new-{number}"]] * 40


class Interrupts:
    """Raises KeyboardInterrupt at one line of the stream's code, and again at a line of the code that handles it."""

    HANDLERS = ((Stream, "detach"), (Stream, "_let_go"), (StreamFile, "close"), (Journal, "close"), (KeyFile, "close"))

    def __init__(self, first, second=None):
        self._left = [first] if second is None else [first, second]
        self.raised = 0

    def __enter__(self):
        self._patched = pytest.MonkeyPatch()
        for owner, name in self.HANDLERS:
            self._patched.setattr(owner, name, self._traced(getattr(owner, name)))
        sys.settrace(self._call)
        return self

    def __exit__(self, *_):
        sys.settrace(None)
        self._patched.undo()

    def _traced(self, method):
        """Return the method with tracing switched on again, since an exception in a trace function ends tracing."""

        def traced(*given):
            if self.raised == 1 and self._left and sys.gettrace() is None:
                sys.settrace(self._call)
            return method(*given)

        return traced

    def _call(self, frame, event, _):
        return self._line if frame.f_code.co_filename.endswith(FILES) else None

    def _line(self, frame, event, _):
        if event == "line" and self._left:
            if self._left[0] == 0:
                self._left.pop(0)
                self.raised += 1
                raise KeyboardInterrupt
            self._left[0] -= 1
        return self._line


@contextmanager
def closed_at_most():
    """Ignore the error that a stream is closed, and no other error."""
    try:
        yield
    except StateError as error:
        if "is closed" not in str(error):
            raise


def opened(path):
    """Open the stream in a file. A stream whose opening was interrupted holds the file until garbage collection."""
    try:
        return Stream.open(path, MECHANISM)
    except StateError as error:
        if "open elsewhere" not in str(error):
            raise
    gc.collect()
    return Stream.open(path, MECHANISM)


def begun(path):
    stream = Stream.open(path, MECHANISM) if path else MECHANISM.start()
    stream.step(batch(1), release=False)
    return stream


def counts(stream):
    running, names = stream._running.items, ["common", "new-1", "new-2", "new-3"]
    rows = running.labels.find(names).tolist()
    return {name: int(running.counts[row]) for name, row in zip(names, rows, strict=True) if row >= 0}


def interrupted(stream, first, second):
    """Interrupt a step; return the number of interrupts."""
    with Interrupts(first, second) as interrupts, suppress(KeyboardInterrupt):
        stream.step(batch(2), release=False)
    return interrupts.raised


def check_file(folder, first, second):
    """Interrupt a step of a stream in a file. Its counts must then be those of a stream without an interrupt."""
    path = folder / f"{first}-{second}"
    stream = begun(path)
    raised = interrupted(stream, first, second)
    with closed_at_most():
        assert stream.round in (1, 2)
        if stream.round == 1:
            stream.step(batch(2), release=False)
        stream.step(batch(3), release=False)
    stream.detach()
    with opened(path) as again:
        for number in range(again.round + 1, 4):
            again.step(batch(number), release=False)
    with Stream.open(path) as again:
        assert counts(again) == {"common": 120, "new-1": 40, "new-2": 40, "new-3": 40}
    return raised


def test_two_interrupts_in_a_step_leave_a_valid_file(folder):
    for first in itertools.count():
        # The handler has about a dozen lines, so each distance from 0 to 12 occurs many times.
        if check_file(folder, first, first * 5 % 13) == 0:
            break
    assert first > 50


@pytest.mark.statistical
def test_every_pair_of_interrupts_leaves_a_valid_file(folder):
    for second in range(20):
        for first in itertools.count():
            if check_file(folder, first, second) == 0:
                break


def test_two_interrupts_never_count_an_event_twice():
    whole = {"common": 80, "new-1": 40, "new-2": 40}
    for second in range(14):
        for first in itertools.count():
            stream = begun(None)
            raised = interrupted(stream, first, second)
            with closed_at_most():
                if stream.round == 1:
                    stream.step(batch(2), release=False)
                stream.show()
                assert counts(stream) == whole
            if raised == 0:
                break
        assert first > 20


@pytest.mark.parametrize("second", [None, 2])
def test_a_file_can_be_opened_after_an_interrupted_open(folder, second):
    for first in itertools.count(0, 1 if second is None else 3):
        path = folder / f"{first}"
        with Interrupts(first, second) as interrupts, suppress(KeyboardInterrupt):
            Stream.open(path, MECHANISM).detach()
        with opened(path) as stream:
            stream.step(batch(1))
        assert Stream.open(path).round == 1
        if interrupts.raised == 0:
            break
    assert first > 50


@pytest.mark.parametrize("second", [None, 0, 2, 5])
def test_an_interrupted_close_is_finished(folder, second):
    for first in itertools.count():
        path = folder / f"{first}"
        stream = begun(path)
        with Interrupts(first, second) as interrupts, suppress(KeyboardInterrupt):
            stream.close()
        stream.detach()
        with closed_at_most():
            opened(path).close()
        assert not (folder / f"{first}-key").exists()
        assert b"common" not in path.read_bytes()
        if interrupts.raised == 0:
            break
    assert first > 30
