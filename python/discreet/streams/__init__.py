"""Continual mechanisms, which release running counts after every round, and the streams that hold their state.

The package imports all of its modules, because `Stream` registers itself with the mechanisms that start it.
"""

from discreet.streams.base import StreamMechanism
from discreet.streams.binary import BinaryMechanism
from discreet.streams.epochs import EpochMechanism
from discreet.streams.honaker import HonakerMechanism
from discreet.streams.hybrid import HybridMechanism
from discreet.streams.square_root import SquareRootMechanism
from discreet.streams.stream import Stream

__all__ = [
    "BinaryMechanism",
    "EpochMechanism",
    "HonakerMechanism",
    "HybridMechanism",
    "SquareRootMechanism",
    "Stream",
    "StreamMechanism",
]


def __dir__() -> list[str]:
    return __all__
