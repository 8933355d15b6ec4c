"""The sums of every item's noise over the nodes of a round, as arrays of numpy, from any object that draws noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["NodeDraws", "NodeSums"]

Noise = TypeVar("Noise", contravariant=True)


class NodeDraws(Protocol[Noise]):
    """The noise of items at nodes: `_core.NodeNoise`, or a replacement whose law is known."""

    def items(self) -> int:
        """Return the number of items."""

    def draw(self, node: int, noise: Noise) -> NDArray[np.int64]:
        """Draw the noise of every item at a node."""

    def draw_from(self, first: int, node: int, noise: Noise) -> NDArray[np.int64]:
        """Draw the noise at a node for the items from index `first` on."""


class NodeSums:
    """A table with a row for each node. A row holds the sums of the noise at this node and at the nodes before it."""

    def __init__(self) -> None:
        self._nodes: list[tuple[int, float]] = []
        self._rows: list[NDArray[np.int64]] = []

    def advance(self, noise: NodeDraws[Noise], nodes: Sequence[tuple[int, float, Noise]]) -> NDArray[np.int64]:
        """Return the sums of all items over these nodes. A node is a number, the scale of its noise, and this noise."""
        names = [(node, scale) for node, scale, _ in nodes]
        kept = 0
        while kept < min(len(names), len(self._nodes)) and names[kept] == self._nodes[kept]:
            kept += 1
        rows: list[NDArray[np.int64]] = []
        total = np.zeros(noise.items(), np.int64)
        for depth, (node, _, law) in enumerate(nodes):
            known = self._rows[depth] if depth < kept else np.zeros(0, np.int64)
            drawn = noise.draw_from(len(known), node, law) if depth < kept else noise.draw(node, law)
            total = np.concatenate([known, total[len(known) :] + drawn])
            rows.append(total)
        self._nodes, self._rows = names, rows
        return total.copy()
