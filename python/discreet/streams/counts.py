"""The running counts of a stream and the noise of its items. SENSITIVE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.mechanisms.published import noted
from discreet.private import Private
from discreet.release.release import Release, later
from discreet.streams.base import NodeSums, StreamMechanism
from discreet.streams.seal import Item, UserName, keyed, label_bytes
from discreet.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RunningCounts"]


class Tally(Private):
    """A count for each label of one type, in the order in which the labels were added."""

    def __init__(self) -> None:
        self.labels = _core.ItemTable()
        self.counts = np.zeros(0, np.int64)

    def add(self, added: Mapping[Item, int]) -> list[Item]:
        """Add counts to labels, and return the new labels, which go to the end."""
        if not added:
            return []
        rows = self.labels.find(list(added))
        # Sorted, so that the order in memory does not depend on the order of the events.
        new = sorted(label for label, row in zip(added, rows.tolist(), strict=True) if row < 0)
        if new:
            self.labels.extend(new)
            self.counts = np.concatenate([self.counts, np.zeros(len(new), np.int64)])
            rows = self.labels.find(list(added))
        # `added` has each label once. If a row occurred twice, NumPy would make only one of the additions.
        self.counts[rows] += np.fromiter(added.values(), np.int64, len(added))
        return new

    def of(self, labels: Iterable[Item]) -> list[int]:
        """Return the counts of labels, zero for a label that has none."""
        if not (labels := list(labels)):
            return []
        rows = self.labels.find(labels)
        found = np.zeros(len(rows), np.int64)
        found[rows >= 0] = self.counts[rows[rows >= 0]]
        return found.tolist()


class RunningCounts(Private):
    """The exact number of events with each item so far, and the noise of each item.

    The noise is a function of the item's label, the stream's key and the round.
    """

    def __init__(self, mechanism: StreamMechanism, empty_type: str) -> None:
        self.mechanism = mechanism
        self.empty_type = empty_type
        self.items = Tally()
        self.users = Tally()
        self.noise = _core.NodeNoise()
        self._sums: NodeSums | None = None

    def add(self, added: dict[Item, int], key: bytes) -> None:
        """Add counts to items, and rounds to users. New items go to the end."""
        items, users = self._split(added)
        self.noise.extend(b"".join(_item_key(key, item) for item in self.items.add(items)))
        self.users.add(users)

    def of(self, added: dict[Item, int]) -> list[int]:
        """Return the counts of items, and the rounds of users after them, zero for one that has none."""
        items, users = self._split(added)
        return [*self.items.of(items), *self.users.of(users)]

    def rounds_of(self, users: Iterable[UserName]) -> list[int]:
        """Return in how many rounds each of these users was counted."""
        return self.users.of(users)

    def _split(self, added: dict[Item, int]) -> tuple[dict[Item, int], dict[Item, int]]:
        """Return the counts of items, and the rounds of users."""
        if self.mechanism.rounds is None:
            return added, {}
        users: dict[Item, int] = {name: count for name, count in added.items() if isinstance(name, UserName)}
        return {item: count for item, count in added.items() if not isinstance(item, UserName)}, users

    def release(self, number: int) -> Release:
        """Return the noisy counts above the threshold of a round. Rounds must not decrease from call to call."""
        if number == 0:
            return self.empty(0)
        # An interrupt may leave the sums half advanced. So this object holds no sums while they change, and the
        # next call after an interrupt makes new sums, with the same noise.
        sums, self._sums = self._sums, None
        sums = self.mechanism.sums() if sums is None else sums
        noisy = sums.advance(self.noise, number)
        noisy += self.items.counts
        self._sums = sums
        rows = np.flatnonzero(self.mechanism.rule(number).passed(noisy))
        labels = self.items.labels.select(rows) if len(rows) else _core.Labels.from_sequence([])
        return self._published(number, labels, noisy[rows])

    def empty(self, number: int) -> Release:
        """Return a release without rows."""
        return self._published(number, _core.Labels.from_sequence([]), np.zeros(0, np.int64))

    def _published(self, number: int, labels: _core.Labels, noisy: NDArray[np.int64]) -> Release:
        named, order = labels.ordered(np.arange(len(noisy)), noisy)
        what = f"round {number}" if number else "no round yet"
        notes = [f"{what}; the guarantee is for all rounds together"]
        if self.mechanism.assumes is not None:
            notes.append(f"it holds if {self.mechanism.assumes}")
        if self.mechanism.rounds is not None:
            rounds, each = counted(self.mechanism.rounds, "round"), counted(self.mechanism.l0, "item")
            first = f"a user counts in the user's first {rounds} only, with at most {each} in each"
            notes.append(f"{first}: later rounds show new users")
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
            l0=self.mechanism.protects.l0,
            most=self.mechanism.alone if self.mechanism.alone > 1 else None,
            kind=self.mechanism.releases,
            # An empty release must not reveal the type of the items in the data.
            item_type=labels.type_name if len(order) else self.empty_type,
        )
        return noted(release)


def _item_key(key: bytes, item: Item) -> bytes:
    """Return the secret key of an item's noise: a keyed hash of its label."""
    return keyed(key, b"noise", label_bytes(item))
