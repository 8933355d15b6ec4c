"""Memory of a stream per item, without the item's label, measured as the growth of a new process."""

import ctypes
import resource
import subprocess
import sys
from pathlib import Path

from discreet import BinaryMechanism
from discreet.streams import HonakerMechanism, SquareRootMechanism

KINDS = {kind.__name__: kind for kind in (BinaryMechanism, HonakerMechanism, SquareRootMechanism)}
LABEL = 8
"""Bytes of an item's label, an integer."""


def bytes_per_item(kind: str, horizon: int, items: int) -> float:
    """Return the bytes per item without the label, measured in a new process.

    The process advances the noise up to the round with the widest noise.
    """
    command = [sys.executable, __file__, kind, str(horizon), str(items)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return float(ended.stdout)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize()


def grown(kind: str, horizon: int, items: int) -> float:
    """Return by how many bytes per item this process grows, without the label."""
    stream = KINDS[kind].from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon).start()
    last, some = stream.mechanism.widest, 10_000
    begin = last - 8
    # The first stream allocates memory that later streams share.
    warm = KINDS[kind].from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon).start()
    warm.step([[item] for item in range(some)], round=begin)
    before = resident()
    for first in range(0, items, some):
        stream.step([[item] for item in range(first, min(items, first + some))], release=False)
    sums = stream.mechanism.sums()
    for number in range(begin, last + 1):
        # Noise is drawn for all items even if nothing is released.
        sums.advance(stream._running.noise, number)
    ctypes.CDLL(None).malloc_trim(0)
    return (resident() - before) / items - LABEL


if __name__ == "__main__":
    print(grown(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
