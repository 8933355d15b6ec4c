"""The noise of an item at a node, from ChaCha20 in Python integers and the rational sampler."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from discreet.reference import noise

__all__ = ["node_noise"]

_MASK = 0xFFFFFFFF
_sampler = lru_cache(maxsize=16)(noise.discrete_gaussian)


def node_noise(key: bytes, node: int, sigma: float) -> int:
    """Return the discrete Gaussian noise of the item with this 32-byte key."""
    return _sampler(sigma).draw(_Tape(key, node))


class _Tape:
    """Two words of the block that eight nodes share, then the words of the node's own stream."""

    def __init__(self, key: bytes, node: int) -> None:
        place = 2 * (node % 8)
        self._words = iter(_words(key, node, _block(key, node // 8 | 1 << 63, 0)[place : place + 2]))

    def bits32(self) -> int:
        return next(self._words)

    def bits64(self) -> int:
        low = self.bits32()
        return low | self.bits32() << 32


def _words(key: bytes, node: int, shared: list[int]) -> Iterator[int]:
    yield from shared
    counter = 0
    while True:
        yield from _block(key, node, counter)
        counter += 1


def _block(key: bytes, nonce: int, counter: int) -> list[int]:
    """Return a ChaCha20 block with a 64-bit counter and a 64-bit nonce (Bernstein 2008), as 16 words."""
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key)]
    start += [counter & _MASK, counter >> 32, nonce & _MASK, nonce >> 32]
    state = list(start)
    for _ in range(10):
        for a in range(4):
            _quarter(state, a, 4 + a, 8 + a, 12 + a)
        for a in range(4):
            _quarter(state, a, 4 + (a + 1) % 4, 8 + (a + 2) % 4, 12 + (a + 3) % 4)
    return [(a + b) & _MASK for a, b in zip(state, start, strict=True)]


def _quarter(s: list[int], a: int, b: int, c: int, d: int) -> None:
    for i, j, k, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[i] = (s[i] + s[j]) & _MASK
        mixed = s[k] ^ s[i]
        s[k] = (mixed << turn | mixed >> (32 - turn)) & _MASK
