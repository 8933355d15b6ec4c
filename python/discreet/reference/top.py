"""The largest counts by a full sort."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["top"]


def top(labels: Sequence[object], counts: Sequence[int], n: int) -> list[int]:
    """Return the row numbers of the `n` largest counts, by count in descending order, then by label.

    Text labels are compared by their UTF-8 bytes.
    """

    def key(row: int) -> tuple[int, object]:
        label = labels[row]
        return -counts[row], label.encode() if isinstance(label, str) else label

    return sorted(range(len(counts)), key=key)[:n]
