"""The running counts of a stream, with the noise that hides them. SENSITIVE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.private import Private
from discreet.release.release import Release
from discreet.streams.base import NodeSums, StreamMechanism
from discreet.streams.seal import Item, keyed, label_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RunningCounts"]


class RunningCounts(Private):
    """How many events had each item so far, and the item's noise: a function of its label, the key and the round."""

    def __init__(self, mechanism: StreamMechanism, empty_type: str) -> None:
        self.mechanism = mechanism
        self.empty_type = empty_type
        self.items = _core.ItemTable()
        self.counts = np.zeros(0, np.int64)
        self.noise = _core.NodeNoise()
        self._sums: NodeSums | None = None

    def add(self, added: dict[Item, int], key: bytes) -> None:
        """Adds counts to items, new ones at the end."""
        if not added:
            return
        items = list(added)
        rows = self.items.find(items)
        # The order of items in memory is their own, not that of the events.
        new = sorted(item for item, row in zip(items, rows.tolist(), strict=True) if row < 0)
        if new:
            self.items.extend(new)
            self.noise.extend(b"".join(_item_key(key, item) for item in new))
            self.counts = np.concatenate([self.counts, np.zeros(len(new), np.int64)])
            rows = self.items.find(items)
        # Each item comes once, so that no two additions meet.
        self.counts[rows] += np.fromiter(added.values(), np.int64, len(added))

    def release(self, number: int) -> Release:
        """The counts that exceed the threshold of a round, not before those asked for until now."""
        if number == 0:
            return self.empty(0)
        # Sums that an interrupt left between two states are never used: noise is drawn for them anew, the same.
        sums, self._sums = self._sums, None
        sums = self.mechanism.sums() if sums is None else sums
        noisy = self.counts + sums.advance(self.noise, number)
        self._sums = sums
        rows = np.flatnonzero(self.mechanism.rule(number).passed(noisy))
        labels = self.items.select(rows) if len(rows) else _core.Labels.from_sequence([])
        return self._published(number, labels, noisy[rows])

    def empty(self, number: int) -> Release:
        """A release of nothing."""
        return self._published(number, _core.Labels.from_sequence([]), np.zeros(0, np.int64))

    def _published(self, number: int, labels: _core.Labels, noisy: NDArray[np.int64]) -> Release:
        order = _core.top(labels, noisy, len(noisy))
        what = f"round {number}" if number else "no round yet"
        notes = [f"{what}; the guarantee is for all rounds together"]
        if self.mechanism.unit == "user":
            held = f"at most {self.mechanism.l0} items, each at most {self.mechanism.linf} times"
            notes.append(f"it is for users who have {held}, in all rounds together, which nothing here sees to")
        return Release(
            items=labels.take(order),
            counts=noisy[order],
            sigmas=np.full(len(noisy), self.mechanism.deviation(number) if number else 0.0),
            guarantee=self.mechanism.guarantee,
            spent=self.mechanism.guarantee,
            made_by=repr(self.mechanism),
            notes=tuple(notes),
            round=number,
            # Where nothing is released the type tells nothing of what was seen.
            item_type=labels.type_name if len(order) else self.empty_type,
        )


def _item_key(key: bytes, item: Item) -> bytes:
    """The secret of an item's noise: a keyed hash of its label."""
    return keyed(key, b"noise", label_bytes(item))
