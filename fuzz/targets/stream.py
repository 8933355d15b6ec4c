"""Fuzz target for streams on disk of which one file is damaged in one place.

Opening the stream must raise StateError or give the unchanged stream.
"""

import os
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["discreet.streams"]):
    from discreet.streams import file as stream_file

import discreet as dp

ROUNDS = 3
# In shared memory, syncing costs nothing.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
FOLDER = tempfile.TemporaryDirectory(dir=MEMORY)
PATH = Path(FOLDER.name) / "stream"


def state():
    """Return the round, key, mechanism and items of the stream; raise StateError if the file cannot be opened."""
    file = stream_file.StreamFile.open(PATH, None)
    try:
        return file.round, file.key, file.mechanism, dict(file.items())
    finally:
        file.close()


def genuine():
    """Create a stream of some rounds, and return the content of its files by name."""
    with dp.Stream.open(PATH, dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=8)) as stream:
        for number in range(ROUNDS):
            stream.step([["common"]] * 30 + [[f"rare {number}"]])
    return {path.name: path.read_bytes() for path in PATH.parent.iterdir()}


FILES = genuine()
STATE = state()


def test(content):
    """Damage one place of one file, and open the stream."""
    given = atheris.FuzzedDataProvider(content)
    for path in PATH.parent.iterdir():
        if path.name not in FILES:
            path.unlink()
    for name, whole in FILES.items():
        PATH.with_name(name).write_bytes(whole)
    name = given.PickValueInList(sorted(FILES))
    whole = FILES[name]
    start = given.ConsumeIntInRange(0, len(whole))
    end = start + given.ConsumeIntInRange(0, len(whole) - start)
    PATH.with_name(name).write_bytes(whole[:start] + given.ConsumeBytes(4096) + whole[end:])
    try:
        found = state()
    except dp.errors.StateError:
        return
    assert found == STATE, "a damaged stream was opened with another content"


atheris.Setup(sys.argv, test)
atheris.Fuzz()
