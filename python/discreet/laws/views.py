"""The exact output distribution (law) of a mechanism on one small histogram, to compare with runs. A run is a release.

A view is a function from the rows of a release to a cell, with the probability of each cell. A cell is a value of the
view, or a group of values. Rows that the mechanism cannot publish are in a cell of probability zero. Examples are an
unknown item, a count at or below the threshold, and rows out of the order of their published counts. A band is an
interval of noisy counts. The exact count has a band of its own.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _core
from discreet.errors import ParameterError
from discreet.laws.outcomes import Chances, Counts, NoiseLaw, RoundedMean, require_few
from discreet.laws.ranked import draws, plackett_luce, ranked, selections
from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
from discreet.mechanisms.counts.given_counts import GivenCounts
from discreet.mechanisms.counts.kept_pairs import KeptPairs
from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
from discreet.mechanisms.threshold.truncated_geometric import TruncatedGeometric
from discreet.mechanisms.top_k.base import NoisyTopK, largest
from discreet.mechanisms.top_k.exponential_mechanism import ExponentialMechanism
from discreet.mechanisms.top_k.gumbel import GumbelTopK
from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.mechanisms.wrappers.replacement import Replacement
from discreet.release.release import Release

__all__ = ["PlainRow", "View", "plain_rows", "views"]

PlainRow = tuple[str, int | None, float | None]
"""An item, its noisy count and the standard deviation of the noise; None if not published."""
PlainRows = tuple[PlainRow, ...]
Cell = Hashable
Distribution = Mapping[Any, float]
"""The probability of each cell, of which a mapping has one type."""
_UNSEEN = "not published"
_IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class View:
    """The probabilities of some cells, and the function that maps a release to its cell."""

    name: str
    distribution: Distribution
    cell: Callable[[PlainRows], Cell]


def plain_rows(release: Release) -> PlainRows:
    """Return the rows of a release in the order of their publication."""
    size = len(release)
    counts = [None] * size if release.counts is None else release.counts.tolist()
    sigmas = [None] * size if release.sigmas is None else release.sigmas.tolist()
    return tuple(zip(release.items, counts, sigmas, strict=True))


@singledispatch
def views(mechanism: HistogramMechanism, counts: Counts) -> list[View]:
    """Return the views of a release of `counts`.

    Raises ParameterError if the law of the mechanism is not known, or has too many outcomes.
    """
    raise ParameterError(f"the exact law of {type(mechanism).__name__} is not known")


@views.register
def _(mechanism: ThresholdMechanism, counts: Counts) -> list[View]:
    if isinstance(mechanism, TruncatedGeometric) and not mechanism.with_counts:
        return [_selected(mechanism, counts)]
    noise, least = NoiseLaw(mechanism.noise), mechanism.threshold.value + 1
    slots = {label: _Slot.of(noise, mechanism.deviation, count, least) for label, count in _present(counts).items()}
    return _independent(slots)


@views.register
def _(mechanism: KnownItems, counts: Counts) -> list[View]:
    inner = mechanism.mechanism
    noise = NoiseLaw(inner.noise)
    slots = {}
    for label in dict.fromkeys([*_present(counts), *map(str, mechanism.items)]):
        least: int | None = mechanism.least if label in mechanism.items else inner.threshold.value + 1
        slots[label] = _Slot.of(noise, inner.deviation, counts.get(label, 0), least)
    return _independent(slots)


@views.register
def _(mechanism: GivenCounts, counts: Counts) -> list[View]:
    noise = NoiseLaw(mechanism.noise)
    exact = {str(item): counts.get(str(item), 0) for item in mechanism.items}
    return _independent({item: _Slot.of(noise, mechanism.deviation, n, None) for item, n in exact.items()})


@views.register
def _(mechanism: CorrelatedCounts, counts: Counts) -> list[View]:
    own, common = NoiseLaw(mechanism.noise), NoiseLaw(mechanism.users_noise)
    noise, items = RoundedMean(own, common), [str(item) for item in mechanism.items]
    slots = {item: _Slot.of(noise, mechanism.deviation, counts.get(item, 0), None) for item in items}
    shared = np.arange(-common.reach, common.reach + 1)
    # A count exceeds its exact count if the sum of both noises is at least 2, or 1 with heads.
    above = (own.at_least(2 - shared) + own.at_least(1 - shared)) / 2
    parts, weights = (1 - above, above), common.of(shared)
    joint = {
        tuple(_COARSE[1 + high] for high in cells): float(
            math.prod((parts[high] for high in cells), start=weights).sum()
        )
        for cells in itertools.product((0, 1), repeat=len(items))
    }
    return _of_slots(slots, joint)


@views.register
def _(mechanism: KeptPairs, counts: Counts) -> list[View]:
    noise = NoiseLaw(mechanism.noise)
    exact = mechanism._sums(np.array(list(counts.values()), np.int64))
    named = zip(("kept", "dropped"), exact, strict=True)
    return _independent({name: _Slot.of(noise, mechanism.deviation, n, None) for name, n in named})


@views.register
def _(mechanism: Replacement, counts: Counts) -> list[View]:
    return views(mechanism.mechanism, counts)


@views.register
def _(mechanism: OptimalSelection, counts: Counts) -> list[View]:
    return [_selected(mechanism, counts)]


def _selected(mechanism: OptimalSelection | TruncatedGeometric, counts: Counts) -> View:
    """Return the view of the items of a mechanism that decides about each item by its release probability."""
    present = _present(counts)
    joint: dict[Cell, float] = {}
    for seen in itertools.product((False, True), repeat=len(present)):
        chances = zip(present.values(), seen, strict=True)
        parts = (mechanism.release_chance(n) if yes else 1 - mechanism.release_chance(n) for n, yes in chances)
        joint[tuple(label for label, yes in zip(present, seen, strict=True) if yes)] = math.prod(parts)
    order = {label: place for place, label in enumerate(present)}

    def cell(rows: PlainRows) -> Cell:
        items = [item for item, *_ in rows]
        known = all(item in order and count is None for item, count, _ in rows) and items == sorted(items)
        return tuple(sorted(items, key=order.__getitem__)) if known else _IMPOSSIBLE

    return View("the published items", joint, cell)


@views.register
def _(mechanism: NoisyTopK, counts: Counts) -> list[View]:
    labels, histogram = ranked(counts)
    shown, bottom = largest(histogram, mechanism.k_bar)
    noise = NoiseLaw(mechanism.noise)
    margin = bottom + mechanism.margin
    # A count is published if it exceeds this noisy threshold.
    grid = np.arange(margin - noise.reach, margin + noise.reach + 1)
    weights = noise.of(grid - margin)
    fine, coarse = {}, []
    for label, count in zip(labels, shown.tolist(), strict=False):
        slot = _Slot.of(noise, mechanism.deviation, count, None, near=margin)
        given = slot.given_threshold(noise, grid)
        fine[label] = _Slot(slot.count, slot.cuts, given @ weights)
        coarse.append(slot.coarsened(given))
    joint = {}
    for cells in itertools.product(range(3), repeat=len(fine)):
        parts = (part[cell] for part, cell in zip(coarse, cells, strict=True))
        joint[tuple(_COARSE[cell] for cell in cells)] = float(math.prod(parts, start=weights).sum())
    return _of_slots(fine, joint)


@views.register
def _(mechanism: GumbelTopK, counts: Counts) -> list[View]:
    return [_list_view(plackett_luce(mechanism, counts), mechanism.k)]


@views.register
def _(mechanism: ExponentialMechanism, counts: Counts) -> list[View]:
    return [_list_view(draws(mechanism, counts), mechanism.k)]


@views.register
def _(mechanism: PrivateCountRelease, counts: Counts) -> list[View]:
    law = selections(mechanism, counts)
    sets: dict[frozenset[tuple[str, float]], float] = {}
    for chosen, chance in law.items():
        named = frozenset((label, mechanism.levels[level].sigma) for label, level in chosen)
        sets[named] = sets.get(named, 0.0) + chance
    found = [View("items and scales", sets, lambda rows: frozenset((item, sigma) for item, _, sigma in rows))]
    for label, count in _present(counts).items():
        slots = {
            level.sigma: _Slot.of(NoiseLaw(_core.Noise.discrete_gaussian(level.sigma)), level.sigma, count, None)
            for level in mechanism.levels
        }
        chances: dict[Cell, float] = {_UNSEEN: 1.0}
        for named, chance in sets.items():
            for item, sigma in named:
                if item == label:
                    chances[_UNSEEN] -= chance
                    for band, part in slots[sigma].distribution.items():
                        if band != _UNSEEN:
                            chances[sigma, band] = chances.get((sigma, band), 0.0) + chance * part
        chances[_UNSEEN] = max(0.0, chances[_UNSEEN])

        def cell(rows: PlainRows, label: str = label, slots: dict[float, _Slot] = slots) -> Cell:
            mine = [(noisy, sigma) for item, noisy, sigma in rows if item == label]
            if len(mine) != 1 or mine[0][0] is None or mine[0][1] not in slots:
                return _IMPOSSIBLE if mine else _UNSEEN
            return mine[0][1], slots[mine[0][1]].band(mine[0][0])

        found.append(View(f"the count of {label}", chances, cell))
    return [*found, _in_order(_present(counts))]


def _list_view(distribution: Distribution, k: int) -> View:
    """Return the view of a list of up to k items. A shorter list ends with None."""

    def cell(rows: PlainRows) -> Cell:
        items = tuple(item if count is None else _IMPOSSIBLE for item, count, _ in rows)
        return items if len(items) >= k else (*items, None)

    return View("the list", distribution, cell)


_COARSE = (_UNSEEN, "at most the count", "above the count")


@dataclass(frozen=True)
class _Slot:
    """The law of the noisy count of one item: not published, or in one of the bands that begin at `cuts`."""

    count: int
    cuts: tuple[int, ...]
    """The lowest value of each band. The first one is the least that can be published."""
    chances: Chances
    """The probability of not being published, then of each band."""

    @classmethod
    def of(
        cls, noise: NoiseLaw | RoundedMean, deviation: float, count: int, least: int | None, *, near: int | None = None
    ) -> _Slot:
        """Return the law of `count` with noise, published if it is at least `least`. Bands are narrow around `near`."""
        lowest = count - noise.reach if least is None else least
        steps = sorted({1, 2, max(1, round(deviation / 2)), max(1, round(3 * deviation / 2))})
        cuts = {lowest, count, count + 1, *(count - step for step in steps), *(count + step for step in steps)}
        for edge in (least, near):
            if edge is not None:
                cuts |= {edge + step for step in (0, 1, 2, 1 + max(1, round(deviation / 4)))}
        kept = tuple(sorted(cut for cut in cuts if lowest <= cut <= max(lowest, count + noise.reach)))
        above = noise.at_least(np.array(kept) - count)
        if least is None:
            above[0] = 1.0
        return cls(count, kept, np.concatenate([[1 - above[0]], above - np.append(above[1:], 0.0)]))

    def given_threshold(self, noise: NoiseLaw, grid: NDArray[np.int64]) -> Chances:
        """Return the probability of each cell if only values above a threshold are published.

        Rows are cells, columns the thresholds of `grid`.
        """
        edges = np.maximum(np.array([*self.cuts])[:, None], grid[None, :] + 1)
        above = noise.at_least(edges - self.count)
        bands = above - np.vstack([above[1:], np.zeros(len(grid))])
        return np.vstack([1 - above[0], bands])

    def coarsened(self, given: Chances) -> list[Chances]:
        """Return three cells instead: not published, at most the exact count, above it."""
        high = np.array([cut > self.count for cut in self.cuts])
        return [given[0], given[1:][~high].sum(axis=0), given[1:][high].sum(axis=0)]

    @property
    def distribution(self) -> dict[Cell, float]:
        """The probability of each cell: not published, or the lowest value of a band."""
        return dict(zip((_UNSEEN, *self.cuts), self.chances.tolist(), strict=True))

    def band(self, noisy: int) -> Cell:
        """Return the band of a published value."""
        place = bisect_right(self.cuts, noisy)
        return self.cuts[place - 1] if place else _IMPOSSIBLE


def _independent(slots: Mapping[str, _Slot]) -> list[View]:
    """Return the views of independent noisy counts."""
    parts = [slot.coarsened(slot.chances[:, None]) for slot in slots.values()]
    joint = {}
    for cells in itertools.product(range(3), repeat=len(slots)):
        chances = (float(part[cell][0]) for part, cell in zip(parts, cells, strict=True))
        joint[tuple(_COARSE[cell] for cell in cells)] = math.prod(chances)
    return _of_slots(slots, joint)


def _of_slots(slots: Mapping[str, _Slot], joint: Distribution) -> list[View]:
    """Return a view of each count, a view of all counts together, and a view of the items and their order."""
    require_few(len(joint))

    def noisy(rows: PlainRows, label: str) -> int | str:
        mine = [count for item, count, _ in rows if item == label]
        first = mine[0] if mine else _UNSEEN
        return _IMPOSSIBLE if first is None or len(mine) > 1 else first

    def alone(rows: PlainRows, label: str, slot: _Slot) -> Cell:
        value = noisy(rows, label)
        return value if isinstance(value, str) else slot.band(value)

    def together(rows: PlainRows) -> Cell:
        found = ((noisy(rows, label), slot) for label, slot in slots.items())
        return tuple(value if isinstance(value, str) else _COARSE[1 + (value > slot.count)] for value, slot in found)

    each = [
        View(f"the count of {label}", slot.distribution, partial(alone, label=label, slot=slot))
        for label, slot in slots.items()
    ]
    return [*each, View("all counts together", joint, together), _in_order(slots)]


def _in_order(labels: Mapping[str, object]) -> View:
    """Return the view that detects items without users, and rows out of the order of their published counts."""

    def cell(rows: PlainRows) -> Cell:
        keys = [(-(count or 0), item) for item, count, _ in rows]
        return "possible" if all(item in labels for item, *_ in rows) and keys == sorted(keys) else _IMPOSSIBLE

    return View("items and order", {"possible": 1.0}, cell)


def _present(counts: Counts) -> dict[str, int]:
    return {label: count for label, count in sorted(counts.items()) if count > 0}
