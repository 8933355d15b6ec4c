"""Streams whose file and journal disagree about a round.

The journal has a digest of each round's data. A round is begun when its digest is in the journal.
"""

import shutil

import pytest
from test_stream_files import MECHANISM, batch, stream_at

from discreet import Stream
from discreet.errors import StateError
from discreet.streams import file as stream_file
from discreet.streams.journal import read_lines

BATCH = batch(4)


def changed():
    """Return batches that differ from BATCH in one event."""
    labels = {label for event in BATCH for label in event}
    yield from ([*BATCH, [label]] for label in (*sorted(labels), "unseen"))
    yield from (BATCH[:place] + BATCH[place + 1 :] for place in (0, len(BATCH) - 1))
    yield []


def interrupt_round(path, data, point, monkeypatch, number=4):
    """Add a round that is interrupted at a failure point."""

    def stop(name):
        if name == point:
            raise KeyboardInterrupt

    monkeypatch.setattr(stream_file, "failure_point", stop)
    with Stream.open(path) as stream, pytest.raises(KeyboardInterrupt):
        stream.step(data, round=number)
    monkeypatch.undo()


@pytest.fixture
def path(tmp_path):
    """The path of a stream after three rounds; `before` is a copy of its file."""
    stream_at(tmp_path / "s", 3).detach()
    shutil.copy(tmp_path / "s", tmp_path / "before")
    return tmp_path / "s"


@pytest.mark.parametrize("point", ["begun", "writing"])
def test_a_round_that_differs_from_the_begun_one_is_refused(path, monkeypatch, point):
    interrupt_round(path, BATCH, "written", monkeypatch)
    written = path.read_bytes()
    journal = path.with_name("s-rounds").read_bytes()
    for data in changed():
        shutil.copy(path.with_name("before"), path)
        path.with_name("s-rounds").write_bytes(journal)
        interrupt_round(path, data, point, monkeypatch)
        path.write_bytes(written)
        with pytest.raises(StateError, match="differs from its journal"):
            Stream.open(path)
        assert 4 not in read_lines(path.with_name("s-rounds").read_bytes()).done
    path.with_name("s-rounds").write_bytes(journal)
    with Stream.open(path) as stream:
        assert stream.round == 4


def test_every_changed_digit_of_a_begun_round_is_refused(path, monkeypatch):
    interrupt_round(path, BATCH, "written", monkeypatch)
    journal = path.with_name("s-rounds")
    whole = journal.read_bytes()
    assert whole.splitlines()[-1].startswith(b"begin 4 ")
    for place in range(2, 34):
        for other in b"0123456789abcdef":
            if other == whole[-place]:
                continue
            journal.write_bytes(whole[:-place] + bytes([other]) + whole[len(whole) - place + 1 :])
            with pytest.raises(StateError, match="differs from its journal"):
                Stream.open(path)
    journal.write_bytes(whole)
    assert Stream.open(path).round == 4


@pytest.mark.parametrize(
    ("lost", "number", "later"),
    [(BATCH, 4, [(batch(5), 5)]), (batch(5), 5, [(BATCH, None), (batch(5), None)])],
    ids=["a later release skipped it", "it comes after other rounds"],
)
def test_a_lost_round_beside_later_ones_is_refused(path, monkeypatch, lost, number, later):
    interrupt_round(path, lost, "written", monkeypatch, number=number)
    written = path.read_bytes()
    shutil.copy(path.with_name("before"), path)
    with Stream.open(path, MECHANISM) as stream:
        for events, place in later:
            stream.step(events, round=place)
    path.write_bytes(written)
    with pytest.raises(StateError, match="differs from its journal"):
        Stream.open(path)
