"""Streams that are closed, detached or replaced while a round is added."""

import itertools
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import discreet
from discreet.errors import StateError
from discreet.streams import file
from discreet.streams.binary import BinaryMechanism
from discreet.streams.stream import Stream

MECHANISM = BinaryMechanism.from_rho(rho=2.0, delta=1e-3, l0=1, horizon=64)
HOME = str(Path(discreet.__file__).parent)
ENDINGS = ["detach", "close"]


@pytest.fixture
def opened(tmp_path):
    """A stream in a file, after one round."""
    stream = Stream.open(tmp_path / "s", MECHANISM, items="text")
    stream.step([["a"]] * 500)
    yield stream
    stream.detach()


def closes_in_the_middle(stream, ending):
    for number in range(400):
        if number == 200:
            getattr(stream, ending)()
        yield ["a"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_events_that_close_the_stream_stop_the_step(opened, tmp_path, ending):
    with pytest.raises(StateError, match="closed"):
        opened.step(closes_in_the_middle(opened, ending))
    for call in (opened.show, lambda: opened.step([["a"]])):
        with pytest.raises(StateError, match="closed"):
            call()
    if ending == "detach":
        with Stream.open(tmp_path / "s") as again:
            assert again.round == 1


def first_runs(path):
    """Return the position of each line's first run during a step, counted in lines run."""
    number, first = -1, {}

    def note(frame, event, argument):
        nonlocal number
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        if event == "line":
            number += 1
            first.setdefault((frame.f_code.co_filename, frame.f_lineno), number)
        return note

    with Stream.open(path, MECHANISM, items="text") as stream:
        stream.step([["a"]] * 50)
        sys.settrace(note)
        try:
            stream.step([["a"]] * 100, round=2)
        finally:
            sys.settrace(None)
    return first.values()


@pytest.mark.parametrize("ending", [*ENDINGS, "step"])
def test_no_handler_makes_a_closed_stream_release(quick_folder, ending):
    """A handler runs before each line of the code, when the line runs for the first time."""
    lines = first_runs(quick_folder / "first")
    assert len(lines) > 150
    assert sum(check_handler(quick_folder, ending, line) for line in lines) > 150


@pytest.mark.statistical
@pytest.mark.parametrize("ending", [*ENDINGS, "step"])
def test_no_handler_anywhere_makes_a_closed_stream_release(quick_folder, ending):
    """A handler runs before every third line that runs."""
    for line in itertools.count(0, 3):
        if not check_handler(quick_folder, ending, line):
            break
    assert line > 70


def check_handler(folder, ending, line):
    """Close or detach the stream, or add the round, in a handler that runs before one line of a step.

    Returns whether the step reached that line.
    """
    reached = False
    path = folder / f"s{line}"
    stream = Stream.open(path, MECHANISM, items="text")
    stream.step([["a"]] * 50)
    left = line

    def handler(frame, event, argument):
        nonlocal left, reached
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        if event == "line":
            left -= 1
            if left == -1:
                reached = True
                sys.settrace(None)
                with suppress(StateError):
                    stream.step([["b"]] * 70) if ending == "step" else getattr(stream, ending)()
        return handler

    released = None
    sys.settrace(handler)
    try:
        with suppress(StateError):
            released = stream.step([["a"]] * 100, round=2)
    finally:
        sys.settrace(None)
    if ending == "step":
        stream.detach()
    elif reached and released is None:
        with pytest.raises(StateError):
            stream.show()
    stream.detach()
    if ending != "close":
        with Stream.open(path) as again:
            # A release must be the one that the file gives for this round.
            assert again.round in (1, 2, 3 if ending == "step" else 2)
            if released is not None and again.round == 2:
                assert list(again.show()) == list(released)
            assert released is None or again.round > 1
    return reached


def test_a_stream_with_a_replaced_journal_adds_no_round(opened, tmp_path):
    journal = tmp_path / "s-rounds"
    shutil.copy(journal, tmp_path / "copy")
    os.replace(tmp_path / "copy", journal)
    with pytest.raises(StateError, match="replaced"):
        opened.step([["a"]] * 10)
    with Stream.open(tmp_path / "s") as again:
        assert again.round == 1


def test_a_file_that_is_no_journal_is_not_changed(tmp_path):
    for name, content in (("log", b"no stream"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"{name}-rounds").write_bytes(b"Notes of a meeting, without an end")
        with pytest.raises(StateError):
            Stream.open(tmp_path / name, MECHANISM)
        assert (tmp_path / f"{name}-rounds").read_bytes() == b"Notes of a meeting, without an end"


def test_the_journal_of_a_closed_stream_closes_no_other(tmp_path):
    with Stream.open(tmp_path / "s", MECHANISM, items="text") as stream:
        stream.step([["a"]] * 50)
        stream.close()
    with Stream.open(tmp_path / "t", MECHANISM, items="text") as stream:
        stream.step([["a"]] * 50)
        shown = list(stream.show())
    for end in ("", "-key"):
        os.replace(tmp_path / f"t{end}", tmp_path / f"s{end}")
    with pytest.raises(StateError, match=r"journal of .* belongs to another stream"):
        Stream.open(tmp_path / "s")
    os.replace(tmp_path / "t-rounds", tmp_path / "s-rounds")
    with Stream.open(tmp_path / "s") as stream:
        assert list(stream.show()) == shown


CALLS = {"close": Stream.close, "step": lambda stream: stream.step([["a"]])}


@pytest.mark.parametrize("point", ["closing", "begun", "written", "writing"])
def test_a_file_opened_by_a_handler_is_not_overwritten(tmp_path, monkeypatch, point):
    # The next file gets the descriptor number that the handler has freed.
    call = CALLS["close" if point == "closing" else "step"]
    Stream.open(tmp_path / "s", MECHANISM, items="text").detach()
    stream = Stream.open(tmp_path / "s")
    others = []

    def line(name):
        if name == point and not others:
            stream.detach()
            for number in range(8):
                path = tmp_path / f"other{number}"
                path.write_bytes(b"theirs")
                others.append(path.open("r+b"))

    monkeypatch.setattr(file, "failure_point", line)
    with suppress(StateError):
        call(stream)
    assert others
    for other in others:
        other.close()
        assert Path(other.name).read_bytes() == b"theirs"
    monkeypatch.undo()
    with suppress(StateError):  # it was closed for good
        Stream.open(tmp_path / "s").detach()
    assert (point == "closing") is not (tmp_path / "s-key").exists()
