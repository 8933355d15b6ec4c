"""Distinct users per item with a set of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_distinct", "count_pairs"]


def count_pairs(users: Sequence[Any], items: Sequence[Any]) -> dict[Any, int]:
    """How many distinct users each item has; a pair with None is left out."""
    pairs = set(zip(users, items, strict=True))
    return dict(Counter(item for user, item in pairs if user is not None and item is not None))


def count_distinct(users: NDArray[Any], items: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct items, sorted, and their distinct users: numpy's way, by sorting codes of both."""
    user_codes = np.unique(users, return_inverse=True)[1]
    labels, item_codes = np.unique(items, return_inverse=True)
    pairs = np.unique(item_codes.astype(np.int64) * (user_codes.max(initial=0) + 1) + user_codes)
    return labels, np.bincount(pairs // (user_codes.max(initial=0) + 1), minlength=len(labels))
