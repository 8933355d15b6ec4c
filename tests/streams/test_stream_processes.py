"""Streams whose process is killed or forked."""

import os
import random
import signal
import threading

import pytest
from test_stream_files import MECHANISM, batch

from discreet import Stream
from discreet.errors import StateError
from discreet.streams import file as stream_file

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def write_rounds(path, steps):
    stream_file.failure_point = lambda _: os.write(steps, b".")
    with Stream.open(path, MECHANISM) as stream:
        for number in range(stream.round + 1, 480):
            stream.step(batch(number))


def kill_at_random(tmp_path, times):
    """Kill a writer again and again, each time after a random number of failure points."""
    path, chance, before = tmp_path / "s", random.Random(5), 0
    for _ in range(times):
        steps, told = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(steps)
            write_rounds(path, told)
            os._exit(0)
        os.close(told)
        left = chance.randrange(1, 60)
        while left and (done := os.read(steps, left)):
            left -= len(done)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(steps)
        with Stream.open(path, MECHANISM) as stream:
            assert before <= stream.round
            before = stream.round
            if before >= 470:
                return
            stream.show()
    # A round has four durable steps.
    assert before >= times


def test_a_stream_survives_repeated_kills(tmp_path):
    kill_at_random(tmp_path, 15)


@pytest.mark.statistical
def test_a_stream_survives_a_thousand_kills(tmp_path):
    for run in range(40):
        (tmp_path / str(run)).mkdir()
        kill_at_random(tmp_path / str(run), 25)


def test_a_forked_process_cannot_use_the_stream():
    stream = MECHANISM.start()
    child = os.fork()
    if child == 0:
        try:
            stream.step([["a"]])
        except StateError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_fork_with_its_parents_process_id_is_refused(monkeypatch):
    stream, parent = MECHANISM.start(), os.getpid()
    child = os.fork()
    if child == 0:
        # In a new process namespace the child may have the same process id.
        monkeypatch.setattr(os, "getpid", lambda: parent)
        refused = 0
        for call in (stream.show, stream.close, lambda: stream.step([["a"]])):
            try:
                call()
            except StateError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_a_fork_during_a_step_is_refused_without_waiting():
    stream = MECHANISM.start()
    taken, done = threading.Event(), threading.Event()

    def hold():
        with stream._lock:
            taken.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        refused = 0
        for call in (stream.show, stream.close, lambda: stream.step(batch(1))):
            try:
                call()
            except StateError:
                refused += 1
        stream.detach()
        os._exit(0 if refused == 3 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    done.set()
    holder.join()


def test_a_fork_does_not_keep_the_lock_of_a_detached_stream(tmp_path):
    stream = Stream.open(tmp_path / "s", MECHANISM)
    waiting, ending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ending)
        os.read(waiting, 1)
        os._exit(0)
    stream.detach()
    try:
        Stream.open(tmp_path / "s").detach()
    finally:
        os.close(ending)
        os.waitpid(child, 0)
        os.close(waiting)


def test_a_fork_that_detaches_leaves_the_lock_to_its_parent(tmp_path):
    stream = Stream.open(tmp_path / "s", MECHANISM)
    child = os.fork()
    if child == 0:
        stream.detach()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(StateError, match="open elsewhere"):
        Stream.open(tmp_path / "s")
    stream.detach()


@pytest.mark.parametrize("place", ["memory", "file"])
def test_a_process_forked_by_the_events_adds_no_round(tmp_path, place):
    stream = MECHANISM.start() if place == "memory" else Stream.open(tmp_path / "s", MECHANISM)
    parent, children = os.getpid(), []

    def events():
        children.append(os.fork())
        yield from batch(1)

    try:
        stream.step(events(), release=False)
    except StateError:
        if os.getpid() != parent:
            os._exit(7)
        raise
    finally:
        if os.getpid() != parent:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 7
    assert stream.round == 1
    stream.detach()
