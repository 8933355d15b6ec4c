"""The exact law of the weighted counts of calibrated counts, on small tables: all choices, weights and noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import _core
from discreet.laws.outcomes import ChancePair, Chances, NoiseLaw, product, require_few

__all__ = ["Step", "at_least", "banded", "chosen", "thresholded"]

Choices = Callable[[int, Sequence[str], int], list[tuple[tuple[str, ...], float]]]
"""The items that a user may keep, with probabilities, from the user's place, their items and the most to keep."""
_Sums = dict[tuple[int, ...], float]
"""Sums of weights, in the order of the items, and their probabilities."""


def chosen(place: int, items: Sequence[str], most: int) -> list[tuple[tuple[str, ...], float]]:
    """Return all choices of at most `most` items, which have the same probability wherever the user is."""
    number = min(len(items), most)
    return [(kept, 1 / math.comb(len(items), number)) for kept in combinations(items, number)]


class Step(NamedTuple):
    """The weights, the noise and the threshold of a release."""

    most: int
    """K, the most items of a user that weigh."""
    weight: Callable[[int], int]
    """The weight of each of a number of items."""
    noise: _core.Noise
    threshold: _core.Threshold
    choices: Choices = chosen


def thresholded(
    step: Step, users: Sequence[Collection[str]], place: int, items: Collection[str]
) -> tuple[Chances, Chances, Chances]:
    """Return the laws of the released noisy weights of two neighbours, and the part that the proof compares.

    The first law is of the table without a further user, the second of the table with this user. In the third law no
    item is released that has weight from the further user alone. Outcomes are in the same order. An item is not
    released, or it has one of the values above the threshold.

    Args:
        step: The parameters.
        users: The items of every user.
        place: The place of the further user among the users.
        items: The items of the further user.
    """
    labels = sorted({label for one in (*users, items) for label in one})
    before = _sums(step, users, labels)
    # A choice by place gives other sums if the further user moves the others. The further user's items come last.
    others = [(number + (number >= place), one) for number, one in enumerate(users)]
    moved = _sums(step, [one for _, one in others], labels, places=[number for number, _ in others])
    after: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    for sums, chance in moved.items():
        for kept, share in step.choices(place, sorted(items), step.most):
            own = step.weight(len(kept)) if kept else 0
            total = tuple(value + own * (label in kept) for label, value in zip(labels, sums, strict=True))
            hidden = tuple(value if rest else 0 for value, rest in zip(total, sums, strict=True))
            after[total, hidden] = after.get((total, hidden), 0.0) + chance * share
    law, value = NoiseLaw(step.noise), step.threshold.value
    most = max((max(total, default=0) for total, _ in after), default=0)
    most = max([most, *(max(sums, default=0) for sums in before)])
    values = np.arange(value + 1, max(value + 1, most + law.reach + 1))
    require_few((1.0 + len(values)) ** len(labels))

    def of(sums: tuple[int, ...]) -> Chances:
        parts = []
        for total in sums:
            passes = step.threshold.chance(total) if total else 0.0
            parts.append(np.concatenate([[1 - passes], law.of(values - total) if total else np.zeros(len(values))]))
        return product(parts)

    def mixed(law: list[tuple[tuple[int, ...], float]]) -> Chances:
        mixture = np.zeros((1 + len(values)) ** len(labels))
        for sums, chance in law:
            mixture += chance * of(sums)
        return mixture

    second = [(total, chance) for (total, _), chance in after.items()]
    compared = [(hidden, chance) for (_, hidden), chance in after.items()]
    return mixed([*before.items()]), mixed(second), mixed(compared)


def _sums(
    step: Step, users: Sequence[Collection[str]], labels: Sequence[str], *, places: Sequence[int] | None = None
) -> _Sums:
    """Return the law of the sums of weights, by convolution over the users."""
    found: _Sums = {(0,) * len(labels): 1.0}
    for place, items in zip(places or range(len(users)), users, strict=True):
        added: _Sums = {}
        for kept, share in step.choices(place, sorted(items), step.most):
            own = step.weight(len(kept)) if kept else 0
            for sums, chance in found.items():
                total = tuple(value + own * (label in kept) for label, value in zip(labels, sums, strict=True))
                added[total] = added.get(total, 0.0) + chance * share
        found = added
    return found


def banded(
    noise: _core.Noise, sigma: float, threshold: int, before: NDArray[np.int64], after: NDArray[np.int64]
) -> ChancePair:
    """Return the laws of noisy weights in bands of values, for two tables with given weights.

    The bands make this possible for noise of any scale. Divergences of bands are at most those of single values. Items
    of the same weight are left out.

    Args:
        noise: The noise of the weights, on their lattice.
        sigma: Its scale.
        threshold: The value that every released noisy weight exceeds.
        before: The weights of the first table.
        after: The weights of the second.
    """
    moved = np.flatnonzero(before != after)
    number = min(48, int(50_000 ** (1 / max(1, len(moved)))))
    laws: tuple[list[Chances], list[Chances]] = ([], [])
    for item in moved:
        far = max(threshold + 2 * sigma, int(after[item]) + 6 * sigma)
        edges = sorted({threshold + 1, *(round(edge) for edge in np.linspace(threshold + 1, far, number))})
        for weight, parts in zip((int(before[item]), int(after[item])), laws, strict=True):
            ends = [edge - weight for edge in edges]
            above = np.array([at_least(noise, m) if weight else 0.0 for m in ends])
            parts.append(np.concatenate([[1 - above[0]], above - np.append(above[1:], 0.0)]).clip(0))
    return product(laws[0]), product(laws[1])


def at_least(noise: _core.Noise, m: int) -> float:
    """Return P[noise >= m]."""
    return noise.tail(m) if m > 0 else 1 - noise.tail(1 - m)
