"""Streams on disk: crashes, copies and damage.

A stream has three files: the state, the journal of its rounds ("-rounds") and the key of its noise ("-key"). A failure
point is a place in the code at which a test can stop the process.
"""

import gc
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections import Counter
from contextlib import closing

import pytest

from discreet import BinaryMechanism, Stream
from discreet.errors import ParameterError, StateError
from discreet.streams import EpochMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism
from discreet.streams import file as stream_file
from discreet.streams.counts import RunningCounts
from discreet.streams.key import read_key

MECHANISM = BinaryMechanism.from_rho(rho=5.0, delta=1e-6, l0=2, horizon=500)


def batch(number):
    return [["common", f"new-{number}"]] * (40 + number % 3) + [["other"]] * 30


def stream_at(path, rounds, mechanism=MECHANISM):
    stream = Stream.open(path, mechanism)
    for number in range(stream.round + 1, rounds + 1):
        stream.step(batch(number))
    return stream


@pytest.mark.parametrize(
    "mechanism",
    [
        MECHANISM,
        HonakerMechanism.from_rho(rho=5.0, delta=1e-6, l0=2, horizon=500),
        HybridMechanism.from_rho(rho=5.0, delta=1e-6, l0=2),
        EpochMechanism.from_rho(rho=5.0, delta=1e-6, l0=2, epoch=2),
        SquareRootMechanism.from_rho(rho=5.0, delta=1e-6, l0=2, horizon=500),
        BinaryMechanism.from_rho(rho=5.0, delta=1e-6, l0=2, horizon=4, restarts=True),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_reopened_stream_continues(tmp_path, mechanism):
    stream = stream_at(tmp_path / "s", 9, mechanism)
    shown = list(stream.show())
    assert shown
    stream.detach()
    with Stream.open(tmp_path / "s") as again:
        assert (again.round, again.mechanism) == (9, mechanism)
        assert list(again.show()) == shown
        again.step(batch(10))
    assert Stream.open(tmp_path / "s", mechanism).round == 10


def test_a_file_keeps_the_type_of_its_items(tmp_path):
    Stream.open(tmp_path / "s", MECHANISM, items="text").detach()
    with Stream.open(tmp_path / "s") as stream:
        assert dict(stream.step([["a", 7]] * 500)).keys() == {"a"}
    Stream.open(tmp_path / "s", MECHANISM, items="text").detach()
    with pytest.raises(StateError, match="items='text'"):
        Stream.open(tmp_path / "s", items="integer")
    with pytest.raises(ParameterError, match="items must be"):
        Stream.open(tmp_path / "new", MECHANISM, items="words")
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.name != "posix", reason="the system has no POSIX file modes")
def test_only_the_owner_may_read_the_files(tmp_path):
    stream_at(tmp_path / "s", 1)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_restored_copy_accepts_only_the_same_rounds(tmp_path):
    stream_at(tmp_path / "s", 3).detach()
    shutil.copy(tmp_path / "s", tmp_path / "copy")
    stream = stream_at(tmp_path / "s", 5)
    shown = list(stream.show())
    stream.detach()
    shutil.copy(tmp_path / "copy", tmp_path / "s")
    with Stream.open(tmp_path / "s") as back:
        assert back.round == 3
        with pytest.raises(StateError, match="was restored to round 3"):
            back.step([["somebody else"]])
        with pytest.raises(StateError, match="was restored to round 3"):
            back.step(batch(6), round=6)
        back.step(batch(4))
        back.step(batch(5))
        assert list(back.show()) == shown
        back.step([["anything"]])


def many(number, kind):
    """Return events with one to three of 150 items, old and new ones."""
    return [[kind(item)] for item in range(100 * (number % 2), 100 + 25 * number) for _ in range(1 + item % 3)]


@pytest.mark.parametrize(
    ("items", "kind"), [(None, str), ("text", str), ("integer", int), ("bytes", lambda item: b"\0" * item)]
)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_has_the_counts_of_all_rounds(tmp_path, items, kind, restarts):
    horizon = {"horizon": 3, "restarts": True} if restarts else {"horizon": 500}
    mechanism, counts = BinaryMechanism.from_rho(rho=5.0, delta=1e-6, l0=1, **horizon), Counter()
    for number in range(1, 6):
        with Stream.open(tmp_path / "s", mechanism, items=items) as stream:
            stream.step(many(number, kind))
        if mechanism.starts_over(number, number):
            counts.clear()
        counts.update(item for (item,) in many(number, kind))
        with Stream.open(tmp_path / "s") as stream:
            assert dict(stream._file.items()) == counts


def test_a_file_whose_counts_differ_from_those_in_memory_is_corrupt(tmp_path, monkeypatch):
    stream = stream_at(tmp_path / "s", 2)
    monkeypatch.setattr(RunningCounts, "of", lambda self, items: [41] * len(items))
    stream.step(batch(3))
    stream.detach()
    with pytest.raises(StateError, match="corrupt"):
        Stream.open(tmp_path / "s")


def test_the_checksum_sums_a_keyed_hash_of_each_row(tmp_path):
    stream_at(tmp_path / "s", 3).detach()
    key = read_key((tmp_path / "s-key").read_bytes())

    def keyed(purpose, text):
        return int.from_bytes(hashlib.blake2b(text, key=key, digest_size=32, person=purpose).digest(), "little")

    with closing(sqlite3.connect(tmp_path / "s")) as file:
        (text, number, digest, total), *_ = file.execute("SELECT mechanism, round, digest, total FROM stream")
        rows = file.execute("SELECT label, kind, count FROM item").fetchall()
    assert {bytes(label) for label, *_ in rows} == {b"common", b"other", b"new-1", b"new-2", b"new-3"}
    summed = keyed(b"head", f"{text}|{number}|{digest}".encode())
    for label, kind, count in rows:
        named = kind.encode() + label
        summed += keyed(b"item", len(named).to_bytes(8, "little") + named + count.to_bytes(8, "little"))
    assert (summed % 2**256).to_bytes(32, "little") == total


POINTS = ["begun", "storing", "writing", "written", "done"]
CHILD = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import test_stream_files as t
from discreet import Stream
from discreet.streams import file as stream_file
def stop(name):
    if name == {point!r} and stream.round + 1 == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
stream_file.failure_point = stop
stream = Stream.open({path!r}, t.MECHANISM)
for number in range(stream.round + 1, 7):
    stream.step(t.batch(number))
"""


@pytest.mark.skipif(os.name == "nt", reason="the system has no SIGKILL")
@pytest.mark.parametrize("point", POINTS)
def test_a_stream_continues_as_before_after_a_kill(tmp_path, point):
    path = tmp_path / "s"
    stream_at(path, 3).detach()
    for ending in ("", "-rounds", "-key"):
        shutil.copy(f"{path}{ending}", tmp_path / f"witness{ending}")
    script = CHILD.format(tests=os.path.dirname(__file__), point=point, number=5, path=str(path))
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    stream = Stream.open(path)
    assert stream.round == (5 if point in ("written", "done") else 4)
    stream.detach()
    # The witness is a copy with the same key and the same data, so both streams must release the same rows.
    with stream_at(path, 6) as crashed, stream_at(tmp_path / "witness", 6) as witness:
        assert list(crashed.show()) == list(witness.show())


@pytest.mark.parametrize("times", [40, pytest.param(5000, marks=pytest.mark.statistical)])
def test_a_flipped_bit_is_detected_or_harmless(tmp_path, times):
    stream_at(tmp_path / "s", 4).detach()
    whole, chance, refused = (tmp_path / "s").read_bytes(), random.Random(3), 0
    with Stream.open(tmp_path / "s") as stream:
        expected = list(stream.show())
    for _ in range(times):
        broken = bytearray(whole)
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        (tmp_path / "s").write_bytes(broken)
        try:
            stream = Stream.open(tmp_path / "s")
        except StateError:
            refused += 1
        else:
            assert list(stream.show()) == expected
            stream.detach()
    assert refused > times / 40


@pytest.mark.parametrize("point", POINTS)
def test_a_file_can_be_continued_after_an_interrupt(tmp_path, monkeypatch, point):
    stream = stream_at(tmp_path / "s", 3)

    def stop(name):
        if name == point:
            raise KeyboardInterrupt

    monkeypatch.setattr(stream_file, "failure_point", stop)
    with pytest.raises(KeyboardInterrupt):
        stream.step(batch(4))
    monkeypatch.undo()
    with pytest.raises(StateError, match="closed"):
        stream.step(batch(4))
    with stream_at(tmp_path / "s", 5) as again:
        assert again.round == 5
        shown = dict(again.show())
    assert abs(shown["common"] - sum(40 + n % 3 for n in range(1, 6))) < 60


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE item SET count = count + 1 WHERE label = CAST('common' AS BLOB)",
        "UPDATE item SET label = CAST('uncommon' AS BLOB) WHERE label = CAST('common' AS BLOB)",
        "UPDATE item SET kind = 'b'",
        "DELETE FROM item WHERE label = CAST('other' AS BLOB)",
        "INSERT INTO item VALUES (CAST('more' AS BLOB), 't', 500)",
        "UPDATE stream SET round = 2",
        "UPDATE stream SET mechanism = replace(mechanism, '500', '501')",
        "UPDATE stream SET total = zeroblob(32)",
    ],
)
def test_a_changed_state_is_corrupt(tmp_path, change):
    stream_at(tmp_path / "s", 3).detach()
    with closing(sqlite3.connect(tmp_path / "s")) as file, file:
        assert file.execute(change).rowcount > 0
    with pytest.raises(StateError, match="is corrupt"):
        Stream.open(tmp_path / "s")


def test_an_incomplete_journal_line_is_ignored(tmp_path):
    stream_at(tmp_path / "s", 3).detach()
    journal = tmp_path / "s-rounds"
    whole = journal.read_bytes()
    for rest in (b"begin 4", b"begin 4 12ab", b"\0\0\0"):
        journal.write_bytes(whole + rest)
        with Stream.open(tmp_path / "s") as stream:
            assert stream.round == 3
        assert journal.read_bytes() == whole
    journal.write_bytes(whole[:-40] + b"x" + whole[-39:])
    with pytest.raises(StateError, match="damaged"):
        Stream.open(tmp_path / "s")


def test_reading_the_files_does_not_release_their_locks(tmp_path):
    with stream_at(tmp_path / "s", 2):
        (tmp_path / "s").read_bytes()
        (tmp_path / "s-rounds").read_bytes()
        script = f"from discreet import Stream\nStream.open({str(tmp_path / 's')!r})"
        ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=60, capture_output=True, text=True)
        assert "open elsewhere" in ended.stderr


def test_a_restored_copy_of_round_0_needs_its_journal(tmp_path):
    Stream.open(tmp_path / "s", MECHANISM).detach()
    shutil.copy(tmp_path / "s", tmp_path / "copy")
    stream_at(tmp_path / "s", 1).detach()
    shutil.copy(tmp_path / "copy", tmp_path / "s")
    with Stream.open(tmp_path / "s") as back, pytest.raises(StateError, match="was restored to round 0"):
        back.step([["other"]])
    os.remove(tmp_path / "s-rounds")
    with pytest.raises(StateError, match="journal"):
        Stream.open(tmp_path / "s")


def test_a_stream_in_a_missing_folder_names_the_remedy(tmp_path):
    with pytest.raises(StateError, match="make its folder first"):
        Stream.open(tmp_path / "missing" / "s", MECHANISM)


def test_a_file_has_one_writer(tmp_path):
    stream = stream_at(tmp_path / "s", 2)
    with pytest.raises(StateError, match="open elsewhere") as caught:
        Stream.open(tmp_path / "s")
    assert "-rounds" not in str(caught.value)
    stream.detach()
    Stream.open(tmp_path / "s").detach()


def test_a_garbage_collected_stream_releases_its_file(tmp_path, monkeypatch):
    stream = stream_at(tmp_path / "s", 2)
    del stream
    gc.collect()
    monkeypatch.setattr(RunningCounts, "add", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        Stream.open(tmp_path / "s")
    monkeypatch.undo()
    with Stream.open(tmp_path / "s") as stream:
        assert stream.round == 2
    with pytest.raises(StateError, match="make its folder first"):
        Stream.open(tmp_path / "blocked" / "s", MECHANISM)


def test_a_closed_stream_has_no_key_and_no_counts(tmp_path):
    stream = stream_at(tmp_path / "s", 2)
    key = stream._keys[0]
    stream.close()
    for path in tmp_path.iterdir():
        assert key not in path.read_bytes()
        assert b"common" not in path.read_bytes()
    with pytest.raises(StateError, match="closed"):
        Stream.open(tmp_path / "s")
    with pytest.raises(StateError, match="closed"):
        stream.show()


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("no stream at all, but text\n" * 100)
    (tmp_path / "folder").mkdir()
    stream_at(tmp_path / "s", 1).detach()
    for path, mechanism, text in (
        ("text", MECHANISM, "no stream"),
        ("folder", MECHANISM, "cannot be used"),
        ("missing", None, "there is no stream"),
        ("s", BinaryMechanism.from_rho(rho=1.0, delta=1e-6, l0=2, horizon=500), "has the mechanism"),
    ):
        with pytest.raises(StateError, match=text):
            Stream.open(tmp_path / path, mechanism)
    with pytest.raises(ParameterError, match="BinaryMechanism"):
        Stream.open(tmp_path / "new", "BinaryMechanism")
    assert not (tmp_path / "new").exists()


def test_a_missing_or_leftover_journal_is_refused(tmp_path):
    stream_at(tmp_path / "s", 2).detach()
    os.rename(tmp_path / "s-rounds", tmp_path / "elsewhere")
    with pytest.raises(StateError, match="journal"):
        Stream.open(tmp_path / "s")
    os.rename(tmp_path / "elsewhere", tmp_path / "s-rounds")
    os.remove(tmp_path / "s")
    with pytest.raises(StateError, match="journal"):
        Stream.open(tmp_path / "s", MECHANISM)


def test_an_emptied_file_does_not_change_its_journal(tmp_path):
    path = tmp_path / "s"
    stream_at(path, 2).detach()
    copy = path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(StateError, match="restore a copy"):
        Stream.open(path, MECHANISM)
    path.write_bytes(copy)
    assert Stream.open(path).round == 2


def test_equal_rounds_have_different_digests(tmp_path):
    with Stream.open(tmp_path / "s", MECHANISM) as stream:
        for _ in range(3):
            stream.step([])
    done = [line for line in (tmp_path / "s-rounds").read_text().splitlines() if line.startswith("done")]
    assert len({line.split()[2] for line in done}) == len(done) == 4


def test_the_journal_of_another_stream_is_refused(tmp_path):
    for name in "st":
        stream_at(tmp_path / name, 2).detach()
    os.replace(tmp_path / "t-rounds", tmp_path / "s-rounds")
    with pytest.raises(StateError, match=r"journal of .* belongs to another stream"):
        Stream.open(tmp_path / "s")


def test_the_failure_points_of_the_tests_exist():
    with open(stream_file.__file__, encoding="utf-8") as source:
        text = source.read()
    assert [f'failure_point("{name}")' in text for name in POINTS] == [True] * len(POINTS)
