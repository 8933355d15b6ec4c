"""The binary mechanism as Rogers (2023, Section 4.3) writes it, item by item, with noise from numpy."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["BinaryTable"]


class BinaryTable:
    """For each item, a running count, and the start and noise of the active node at each level."""

    def __init__(self, sigma: float, seed: int) -> None:
        self._sigma = sigma
        self._random = np.random.default_rng(seed)
        self._items: dict[object, tuple[list[int], dict[int, tuple[int, float]]]] = {}

    def step(self, number: int, events: Iterable[Iterable[object]], threshold: float) -> list[tuple[object, float]]:
        """Return the items whose estimates exceed the threshold after the events of this round."""
        for event in events:
            for item in set(event):
                count, _ = self._items.setdefault(item, ([0], {}))
                count[0] += 1
        released = []
        for item, (count, nodes) in self._items.items():
            estimate = float(count[0])
            for level in range(number.bit_length()):
                if number >> level & 1:
                    start = (number >> (level + 1)) << (level + 1)
                    if nodes.get(level, (-1, 0.0))[0] != start:
                        nodes[level] = (start, self._random.normal(0, self._sigma))
                    estimate += nodes[level][1]
            if estimate > threshold:
                released.append((item, estimate))
        return released
