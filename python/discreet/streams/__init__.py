"""Running counts, released after every round: continual mechanisms, and the streams that keep their rounds."""

from discreet.streams.base import StreamMechanism
from discreet.streams.binary import BinaryMechanism
from discreet.streams.honaker import HonakerMechanism
from discreet.streams.hybrid import HybridMechanism
from discreet.streams.square_root import SquareRootMechanism
from discreet.streams.stream import Stream

__all__ = [
    "BinaryMechanism",
    "HonakerMechanism",
    "HybridMechanism",
    "SquareRootMechanism",
    "Stream",
    "StreamMechanism",
]
