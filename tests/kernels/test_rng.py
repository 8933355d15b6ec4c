"""Random streams: every stream has a fresh key, and no bits repeat across forks, processes and threads."""

import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import random
import secrets
import threading

import numpy as np
import pytest

import discreet as dp
from discreet import _core
from discreet.errors import ResourceError
from discreet.testing import seeded_rng

WORDS = 4000  # a thousand blocks of 128 bits

forks = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")


def fresh_words(_=None):
    return _core.Rng().words(WORDS).tobytes()


def blocks(streams):
    return np.frombuffer(b"".join(streams), dtype="V16")


def assert_no_repeated_block(streams):
    seen = blocks(streams)
    assert len(np.unique(seen)) == len(seen)


@forks
def test_forked_processes_never_repeat_a_block():
    _core.Rng().bits64()
    with multiprocessing.get_context("fork").Pool(8) as pool:
        assert_no_repeated_block([*pool.map(fresh_words, range(64), chunksize=8), fresh_words()])


def forked_words(descriptor):
    with os.fdopen(descriptor, "wb") as out:
        out.write(fresh_words())


@forks
def test_forks_of_one_process_never_repeat_a_block():
    streams = []
    for _ in range(8):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            forked_words(write)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as source:
            streams.append(source.read())
        os.waitpid(child, 0)
    assert {len(stream) for stream in streams} == {4 * WORDS}
    assert_no_repeated_block(streams)


def test_spawned_workers_never_repeat_a_block():
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert_no_repeated_block(pool.map(fresh_words, range(8)))


def test_threads_and_split_streams_never_repeat_a_block():
    source = _core.Rng()
    children = [source.split() for _ in range(8)]
    grandchildren = [child.split() for child in children]
    streams = [stream.words(WORDS).tobytes() for stream in [source, *children, *grandchildren]]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert_no_repeated_block([*streams, *pool.map(fresh_words, range(64))])


@forks
def test_a_stream_raises_an_error_after_a_fork():
    rng = _core.Rng()
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (rng.bits64, rng.split, lambda: rng.discrete_gaussian(1.0, 1)):
            try:
                use()
            except ResourceError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_two_threads_cannot_use_one_stream_at_once():
    """A second thread gets an error, so no words are drawn twice."""
    rng, refused = _core.Rng(), []

    def draw():
        try:
            rng.discrete_gaussian(3.0, 20_000_000)
        except RuntimeError as error:
            refused.append(error)

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) <= 1
    assert rng.bits64() >= 0


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_streams_are_neither_copied_nor_pickled(duplicate):
    with pytest.raises(TypeError):
        duplicate(_core.Rng())


def test_fresh_streams_differ_and_seeded_streams_are_marked():
    assert _core.Rng().bits64() != _core.Rng().bits64()
    assert not _core.Rng().is_seeded
    assert not _core.Rng().split().is_seeded
    assert seeded_rng(1).is_seeded
    assert seeded_rng(1).split().is_seeded
    assert _core.Rng.scripted([1]).is_seeded


def test_a_release_uses_no_other_source_of_randomness(monkeypatch):
    """A release works, and repeats for a seed, if every generator of Python and numpy raises an error."""
    histogram = dp.Histogram.from_counts(list("abc"), [9000, 8000, 7000], l0=None, linf=1, complete=True)
    mechanism = dp.PrivateCountRelease(rho=1.0, delta=1e-6)
    before = mechanism.release(histogram, rng=seeded_rng(3)).counts.tolist()

    def fail(*_, **__):
        raise AssertionError("another source of randomness was used")

    for module in (np.random, random, secrets):
        for name in [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]:
            monkeypatch.setattr(module, name, fail)
    monkeypatch.setattr(os, "urandom", fail)
    monkeypatch.setattr(os, "getrandom", fail, raising=False)
    assert mechanism.release(histogram, rng=seeded_rng(3)).counts.tolist() == before
    assert len(mechanism.release(histogram).counts) == 3


def test_a_seeded_stream_is_the_keystream_of_chacha20():
    # Strombergson, test vectors for the ChaCha family: TC1, 256 bits, 20 rounds.
    start = bytes.fromhex("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    assert seeded_rng(0).words(8).tobytes() == start


def test_words_do_not_depend_on_the_reading_method():
    together, apart = seeded_rng(5), seeded_rng(5)
    words = together.words(3000).tolist()
    assert words[:2000] == [apart.bits32() for _ in range(2000)]
    assert words[2000:] == [
        part for _ in range(500) for word in [apart.bits64()] for part in (word % 2**32, word >> 32)
    ]


def test_scripted_words_are_read_first():
    rng = _core.Rng.scripted([1, 2, 3])
    assert (rng.bits64(), rng.bits32()) == (1 + (2 << 32), 3)
    assert rng.bits32() == seeded_rng(0).bits32()
