"""Writers that are killed at any moment, with damage to all other files in the folder of the ledger."""

import random

import pytest
from children import charges, forks, killed, make, spent

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


@forks
@pytest.mark.parametrize("kills", [20, pytest.param(300, marks=pytest.mark.statistical)])
def test_damage_to_other_files_changes_no_charge(tmp_path, kills):
    """The ledger has every charge that returned and at most the total, whenever a writer is killed."""
    generator, path, parts = random.Random(kills), tmp_path / "ledger", 10 * kills
    make(path, parts)
    told, before, ended_early = [], {}, 0
    for _ in range(kills):
        # A charge takes some milliseconds.
        names, is_killed = killed(path, generator.randrange(1, 8), wait=generator.randrange(20_000))
        told += names
        ended_early += is_killed
        others = {other.name: other.read_bytes() for other in tmp_path.iterdir() if other != path}
        damage_other_files(path, generator, before)
        before = others
        there = charges(path)
        assert len(there) <= parts
        assert set(told) <= set(there)
    told += spent(path)
    there = charges(path)
    assert len(there) == len(set(there)) == parts
    assert set(told) <= set(there)
    assert ended_early > kills // 2
