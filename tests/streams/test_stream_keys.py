"""The key file of a stream: created before the first release, and destroyed for good."""

import os
import shutil
import signal

import pytest

from discreet import BinaryMechanism, Stream
from discreet.errors import StateError
from discreet.streams import file as stream_file
from discreet.streams.key import read_key

MECHANISM = BinaryMechanism.from_rho(rho=5.0, delta=1e-6, l0=2, horizon=50)
EVENTS = [["common", "secret-label"]] * 40
BESIDE = ("key", "rounds", "journal")
posix = pytest.mark.skipif(os.name == "nt", reason="the system has no POSIX links and signals")


def begun(path, rounds=3):
    stream = Stream.open(path, MECHANISM)
    for _ in range(rounds):
        stream.step(EVENTS)
    return stream


def killed_at(point, run):
    """Call `run` in a child process that is killed at a failure point; return whether it reached the point."""
    child = os.fork()
    if child == 0:
        try:
            stream_file.failure_point = lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == point else None
            run()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def contents(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_the_key_is_only_in_its_own_file(tmp_path):
    with begun(tmp_path / "s") as stream:
        key = stream._keys[0]
        assert read_key((tmp_path / "s-key").read_bytes()) == key
        shutil.move(tmp_path / "s-key", tmp_path.parent / f"{tmp_path.name}-moved")
        found = contents(tmp_path)
        assert b"secret-label" in found
        assert key not in found
        assert key.hex().encode() not in found


@posix
def test_closing_overwrites_key_counts_and_old_counts(tmp_path):
    stream = begun(tmp_path / "s")
    (tmp_path / "links").mkdir()
    for name in ("s", "s-key", "s-journal"):
        os.link(tmp_path / name, tmp_path / "links" / name)
    assert b"secret-label" in (tmp_path / "s-journal").read_bytes()
    stream.close()
    assert not (tmp_path / "s-key").exists()
    assert not (tmp_path / "s-journal").exists()
    for name in ("s-key", "s-journal"):
        assert not (tmp_path / "links" / name).read_bytes().strip(b"\0"), name
    assert b"secret-label" not in (tmp_path / "links" / "s").read_bytes()


def test_a_missing_key_file_is_named(tmp_path):
    begun(tmp_path / "s").detach()
    os.rename(tmp_path / "s-key", tmp_path / "away")
    with pytest.raises(StateError, match=r"s-key is missing: restore"):
        Stream.open(tmp_path / "s")
    os.rename(tmp_path / "away", tmp_path / "s-key")
    assert Stream.open(tmp_path / "s").round == 3


def test_the_key_of_another_stream_is_refused(tmp_path):
    for name in "st":
        begun(tmp_path / name).detach()
    os.replace(tmp_path / "t-key", tmp_path / "s-key")
    with pytest.raises(StateError, match=r"key in .* belongs to another stream"):
        Stream.open(tmp_path / "s")


def test_a_damaged_key_file_is_refused(tmp_path):
    begun(tmp_path / "s").detach()
    whole = (tmp_path / "s-key").read_bytes()
    for damaged in (b"", whole[:-9], whole[:-2] + b"g\n", whole + b"\n", bytes(len(whole)), b"x" * len(whole)):
        (tmp_path / "s-key").write_bytes(damaged)
        with pytest.raises(StateError, match=r"damaged|key in .* belongs to another stream"):
            Stream.open(tmp_path / "s")
        assert (tmp_path / "s-key").read_bytes() == damaged
    (tmp_path / "s-key").write_bytes(whole)
    assert Stream.open(tmp_path / "s").round == 3


@posix
@pytest.mark.parametrize("purpose", BESIDE)
def test_a_new_stream_follows_no_link(tmp_path, purpose):
    os.symlink(tmp_path / "victim", tmp_path / f"s-{purpose}")
    with pytest.raises(StateError):
        Stream.open(tmp_path / "s", MECHANISM)
    assert not (tmp_path / "victim").exists()
    # The same for an empty file, which an interrupted creation leaves.
    (tmp_path / "s").touch()
    with pytest.raises(StateError):
        Stream.open(tmp_path / "s", MECHANISM)
    assert not (tmp_path / "victim").exists()


@posix
@pytest.mark.parametrize("purpose", BESIDE)
def test_an_existing_stream_follows_no_link(tmp_path, purpose):
    begun(tmp_path / "s").detach()
    os.rename(tmp_path / f"s-{purpose}", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", tmp_path / f"s-{purpose}")
    before = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(StateError):
        begun(tmp_path / "s", 1)
    assert (tmp_path / "elsewhere").read_bytes() == before


@posix
def test_a_broken_link_does_not_start_a_stream(tmp_path):
    os.symlink(tmp_path / "victim", tmp_path / "s")
    with pytest.raises(StateError, match="link to a file that is missing"):
        Stream.open(tmp_path / "s", MECHANISM)
    assert not (tmp_path / "victim").exists()


@posix
def test_all_links_to_a_stream_lead_to_one_key(tmp_path):
    begun(tmp_path / "s").detach()
    os.symlink(tmp_path / "s", tmp_path / "link")
    with Stream.open(tmp_path / "link") as stream:
        assert stream.round == 3
        with pytest.raises(StateError, match="open elsewhere"):
            Stream.open(tmp_path / "s")


@posix
@pytest.mark.parametrize("purpose", ["key", "rounds"])
def test_a_named_pipe_for_key_or_journal_is_refused(tmp_path, purpose):
    begun(tmp_path / "s").detach()
    os.remove(tmp_path / f"s-{purpose}")
    os.mkfifo(tmp_path / f"s-{purpose}")
    with pytest.raises(StateError, match="cannot be opened"):
        Stream.open(tmp_path / "s")


@posix
@pytest.mark.parametrize("point", ["named", "journal made", "key made", "making"])
def test_a_killed_creation_can_be_repeated(tmp_path, point):
    path = tmp_path / "s"
    assert killed_at(point, lambda: Stream.open(path, MECHANISM))
    with pytest.raises(StateError, match="holds no stream"):
        Stream.open(path)
    with begun(path, 2) as stream:
        assert stream.round == 2
    assert Stream.open(path).round == 2


def test_an_incomplete_key_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "s"

    def stop(name):
        if name == "key made":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(stream_file, "failure_point", stop)
        with pytest.raises(KeyboardInterrupt):
            Stream.open(path, MECHANISM)
    (tmp_path / "s-key").write_bytes((tmp_path / "s-key").read_bytes()[:50])
    with begun(path, 1) as stream:
        assert read_key((tmp_path / "s-key").read_bytes()) == stream._keys[0]


def test_a_key_is_not_used_for_a_second_stream(tmp_path):
    begun(tmp_path / "s").detach()
    key = (tmp_path / "s-key").read_bytes()
    os.remove(tmp_path / "s")
    with pytest.raises(StateError, match="of a stream that is missing"):
        Stream.open(tmp_path / "s", MECHANISM)
    os.remove(tmp_path / "s-rounds")
    (tmp_path / "s").touch()
    with pytest.raises(StateError, match="restore a copy"):
        Stream.open(tmp_path / "s", MECHANISM)
    assert (tmp_path / "s-key").read_bytes() == key


@posix
@pytest.mark.parametrize("point", ["closing", "key destroyed", "counts destroyed"])
def test_a_killed_close_is_finished_by_the_next_open(tmp_path, point):
    path = tmp_path / "s"
    begun(path).detach()
    key = read_key((tmp_path / "s-key").read_bytes())
    assert killed_at(point, lambda: Stream.open(path).close())
    for _ in range(2):
        with pytest.raises(StateError, match="is closed"):
            Stream.open(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["s", "s-rounds"]
    found = contents(tmp_path)
    assert key.hex().encode() not in found
    assert b"secret-label" not in found


def test_a_copy_restored_after_close_stays_closed(tmp_path):
    begun(tmp_path / "s").detach()
    for name in ("s", "s-key"):
        shutil.copy(tmp_path / name, tmp_path / f"copy-of-{name}")
    Stream.open(tmp_path / "s").close()
    for name in ("s", "s-key"):
        shutil.copy(tmp_path / f"copy-of-{name}", tmp_path / name)
    with pytest.raises(StateError, match="is closed"):
        Stream.open(tmp_path / "s")
    assert not (tmp_path / "s-key").exists()


def test_opening_a_closed_stream_destroys_a_damaged_key(tmp_path):
    path = tmp_path / "s"
    begun(path).detach()
    shutil.copy(tmp_path / "s-key", tmp_path / "copy")
    Stream.open(path).close()
    damaged = (tmp_path / "copy").read_bytes()[:-2] + b"x\n"
    (tmp_path / "s-key").write_bytes(damaged)
    with pytest.raises(StateError, match="is closed"):
        Stream.open(path)
    assert not (tmp_path / "s-key").exists()
