"""The running counts of a stream and the noise of its items. SENSITIVE."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.mechanisms.published import noted
from discreet.private import Private
from discreet.release.release import Release, later
from discreet.streams.base import NodeSums, StreamMechanism
from discreet.streams.seal import Item, keyed, label_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RunningCounts"]


class RunningCounts(Private):
    """The exact number of events with each item so far, and the noise of each item.

    The noise is a function of the item's label, the stream's key and the round.
    """

    def __init__(self, mechanism: StreamMechanism, empty_type: str) -> None:
        self.mechanism = mechanism
        self.empty_type = empty_type
        self.items = _core.ItemTable()
        self.counts = np.zeros(0, np.int64)
        self.noise = _core.NodeNoise()
        self._sums: NodeSums | None = None

    def add(self, added: dict[Item, int], key: bytes) -> None:
        """Add counts to items. New items go to the end."""
        if not added:
            return
        items = list(added)
        rows = self.items.find(items)
        # Sorted, so that the order of items in memory does not depend on the order of the events.
        new = sorted(item for item, row in zip(items, rows.tolist(), strict=True) if row < 0)
        if new:
            self.items.extend(new)
            self.noise.extend(b"".join(_item_key(key, item) for item in new))
            self.counts = np.concatenate([self.counts, np.zeros(len(new), np.int64)])
            rows = self.items.find(items)
        # `added` has each item once. If a row occurred twice, NumPy would make only one of the additions.
        self.counts[rows] += np.fromiter(added.values(), np.int64, len(added))

    def of(self, items: Iterable[Item]) -> list[int]:
        """Return the counts of items, zero for an item that has none."""
        rows = self.items.find(list(items))
        found = np.zeros(len(rows), np.int64)
        found[rows >= 0] = self.counts[rows[rows >= 0]]
        return found.tolist()

    def release(self, number: int) -> Release:
        """Return the noisy counts above the threshold of a round. Rounds must not decrease from call to call."""
        if number == 0:
            return self.empty(0)
        # An interrupt may leave the sums half advanced. So this object holds no sums while they change, and the
        # next call after an interrupt makes new sums, with the same noise.
        sums, self._sums = self._sums, None
        sums = self.mechanism.sums() if sums is None else sums
        noisy = self.counts + sums.advance(self.noise, number)
        self._sums = sums
        rows = np.flatnonzero(self.mechanism.rule(number).passed(noisy))
        labels = self.items.select(rows) if len(rows) else _core.Labels.from_sequence([])
        return self._published(number, labels, noisy[rows])

    def empty(self, number: int) -> Release:
        """Return a release without rows."""
        return self._published(number, _core.Labels.from_sequence([]), np.zeros(0, np.int64))

    def _published(self, number: int, labels: _core.Labels, noisy: NDArray[np.int64]) -> Release:
        named, order = labels.ordered(np.arange(len(noisy)), noisy)
        what = f"round {number}" if number else "no round yet"
        notes = [f"{what}; the guarantee is for all rounds together"]
        if self.mechanism.unit == "user":
            held = f"at most {self.mechanism.l0} items, each at most {self.mechanism.linf} times"
            notes.append(f"it holds if every user has {held}, in all rounds together; discreet does not check this")
        release = Release(
            items=later(named),
            counts=noisy[order],
            sigmas=np.full(len(noisy), self.mechanism.deviation(number) if number else 0.0),
            guarantee=self.mechanism.guarantee,
            spent=self.mechanism.guarantee,
            made_by=repr(self.mechanism),
            notes=tuple(notes),
            round=number,
            clipped=True,
            l0=self.mechanism.l0,
            kind=self.mechanism.releases,
            # An empty release must not reveal the type of the items in the data.
            item_type=labels.type_name if len(order) else self.empty_type,
        )
        return noted(release)


def _item_key(key: bytes, item: Item) -> bytes:
    """Return the secret key of an item's noise: a keyed hash of its label."""
    return keyed(key, b"noise", label_bytes(item))
