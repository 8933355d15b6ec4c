"""How much memory a stream takes for one item, beside its label: what a fresh process grows by."""

import ctypes
import resource
import subprocess
import sys
from pathlib import Path

from discreet import BinaryMechanism
from discreet.streams import HonakerMechanism, SquareRootMechanism

KINDS = {kind.__name__: kind for kind in (BinaryMechanism, HonakerMechanism, SquareRootMechanism)}
LABEL = 8
"""The bytes of an item's own label, an integer."""


def bytes_per_item(kind: str, horizon: int, items: int) -> float:
    """Measured in a process of its own, in the last rounds before the widest, beside the label."""
    command = [sys.executable, __file__, kind, str(horizon), str(items)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return float(ended.stdout)


def resident() -> int:
    """The bytes of memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize()


def grown(kind: str, horizon: int, items: int) -> float:
    stream = KINDS[kind].from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon).start()
    last, some = stream.mechanism.widest, 10_000
    begin = last - 8
    # A first stream takes what is taken once.
    warm = KINDS[kind].from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon).start()
    warm.step([[item] for item in range(some)], round=begin)
    before = resident()
    for first in range(0, items, some):
        stream.step([[item] for item in range(first, min(items, first + some))], release=False)
    sums = stream.mechanism.sums()
    for number in range(begin, last + 1):
        # A release that shows nothing is noise for all items all the same.
        sums.advance(stream._running.noise, number)
    ctypes.CDLL(None).malloc_trim(0)
    return (resident() - before) / items - LABEL


if __name__ == "__main__":
    print(grown(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
