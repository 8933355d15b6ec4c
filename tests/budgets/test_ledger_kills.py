"""Writers that are killed at any moment, with damage to all other files in the folder of the ledger."""

import os
import random
import signal

import pytest
from children import charges, forks, lines, make, spend, start

STRAYS = ("-wal", "-shm", "-journal", ".lock", "-journal2", "~", ".tmp")


def damage_other_files(path, generator, before):
    """Delete, cut, flip or restore the other files in the folder, and plant files that SQLite or editors would use."""
    for other in sorted(path.parent.iterdir()):
        if other == path:
            continue
        content = bytearray(other.read_bytes())
        kind = generator.randrange(4)
        if kind == 0:
            other.unlink()
        elif kind == 1:
            other.write_bytes(content[: generator.randrange(len(content) + 1)])
        elif kind == 2 and content:
            content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
            other.write_bytes(content)
        elif other.name in before:
            other.write_bytes(before[other.name])
    planted = path.with_name(path.name + generator.choice(STRAYS))
    if not planted.exists():
        planted.write_bytes(generator.choice([b"", generator.randbytes(600), path.read_bytes()]))


def check_kills(folder, kills, seed):
    """Kill one writer after another, and check that the ledger has every charge that returned and at most the total."""
    generator, path, parts = random.Random(seed), folder / "ledger", 10 * kills
    make(path, parts)
    told, before, killed = [], {}, 0
    for _ in range(kills):
        child, heard = start(spend, path)
        hearing = lines(heard)
        for _ in range(generator.randrange(1, 8)):
            told += [name for name in [next(hearing, None)] if name]
        # Wait for a random part of the next charge, which takes some milliseconds.
        for _ in range(generator.randrange(20_000)):
            pass
        os.kill(child, signal.SIGKILL)
        told += hearing
        killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        others = {other.name: other.read_bytes() for other in folder.iterdir() if other != path}
        damage_other_files(path, generator, before)
        before = others
        there = charges(path)
        assert len(there) <= parts
        assert set(told) <= set(there)
    child, heard = start(spend, path)
    told += lines(heard)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    there = charges(path)
    assert len(there) == len(set(there)) == parts
    assert set(told) <= set(there)
    return killed


@forks
def test_damage_to_other_files_changes_no_charge(tmp_path):
    assert check_kills(tmp_path, 20, 1) > 10


@forks
@pytest.mark.statistical
def test_300_damages_to_other_files_change_no_charge(tmp_path):
    assert check_kills(tmp_path, 300, 2) > 150
