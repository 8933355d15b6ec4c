"""The exact law of what a mechanism publishes of a small histogram, from its own thresholds and tails.

A histogram is a dict of label and count, a law a dict of outcome and probability. Of a count with noise all
values are told apart up to where the rest has a chance of REST, which is an outcome of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache, singledispatch
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet import _core
from discreet.errors import ParameterError
from discreet.histogram import Histogram
from discreet.mechanisms.gumbel_top_k import GumbelTopK
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.optimal_selection import OptimalSelection
from discreet.mechanisms.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.thresholds import NoisyCounts, ThresholdMechanism
from discreet.mechanisms.top_k import NoisyTopK, largest

__all__ = ["MOST_OUTCOMES", "REST", "joint_law", "ranked"]

MOST_OUTCOMES = 20_000_000
"""How many outcomes a law may have."""

REST = 1e-16
"""What the values beyond the last one may sum up to."""

Counts = Mapping[str, int]
Law = dict[tuple[object, ...], float]


@singledispatch
def joint_law(mechanism: Mechanism, first: Counts, second: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The probabilities of every outcome under two histograms, in one order: two arrays of equal length.

    Items that have the same count in both and decide alone are left out. Raises ParameterError for a
    mechanism whose law is not known in closed form.
    """
    raise ParameterError(f"the exact law of {type(mechanism).__name__} is not known here")


@joint_law.register
def _(mechanism: ThresholdMechanism, first: Counts, second: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    parts = [_threshold_item(mechanism, first.get(label, 0), second.get(label, 0)) for label in _changed(first, second)]
    return _product([p for p, _ in parts]), _product([q for _, q in parts])


@joint_law.register
def _(mechanism: OptimalSelection, first: Counts, second: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    def coin(count: int) -> NDArray[np.float64]:
        chance = mechanism.release_chance(count) if count > 0 else 0.0
        return np.array([1 - chance, chance])

    labels = _changed(first, second)
    return _product([coin(first.get(label, 0)) for label in labels]), _product(
        [coin(second.get(label, 0)) for label in labels]
    )


@joint_law.register
def _(mechanism: GumbelTopK, first: Counts, second: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return _aligned(_plackett_luce(mechanism, first), _plackett_luce(mechanism, second))


@joint_law.register
def _(mechanism: PermuteAndFlip, first: Counts, second: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return _aligned(_flips(mechanism, first), _flips(mechanism, second))


@joint_law.register
def _(mechanism: NoisyTopK, first: Counts, second: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return _noisy_top_k(mechanism, first, second)


def ranked(counts: Counts) -> tuple[list[str], Histogram]:
    """The labels in the order of their ranks, and the histogram that a mechanism would read."""
    present = {label: count for label, count in counts.items() if count > 0}
    order = sorted(present, key=lambda label: (-present[label], label))
    return order, Histogram.from_counts(order, [present[label] for label in order], l0=None, linf=1, complete=True)


def _changed(first: Counts, second: Counts) -> list[str]:
    return [label for label in sorted({*first, *second}) if first.get(label, 0) != second.get(label, 0)]


def _product(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    _require_few(math.prod(map(len, parts)))
    law = np.ones(1)
    for part in parts:
        law = np.multiply.outer(law, part).ravel()
    return law


def _require_few(outcomes: float) -> None:
    if outcomes > MOST_OUTCOMES:
        raise ParameterError("this law has too many outcomes to enumerate: audit less noise, or fewer items a user")


def _aligned(first: Law, second: Law) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    outcomes = list({**first, **second})
    return tuple(np.array([law.get(outcome, 0.0) for outcome in outcomes]) for law in (first, second))  # type: ignore[return-value]


# Noise: probabilities as differences of tails, so that they are those of the code's own law.


@lru_cache(maxsize=64)
def _tails(kind: str) -> list[float]:
    """P[X >= 0], P[X >= 1], ... down to REST; the key is the law's own text, which names its parameters."""
    name, _, arguments = kind.removeprefix("Noise.").removesuffix(")").partition("(")
    law = getattr(_core.Noise, name)(*(float(a) if "." in a or "e" in a else int(a) for a in arguments.split(", ")))
    tails = [law.tail(0)]
    while tails[-1] > REST:
        tails.append(law.tail(len(tails)))
    return tails


class _Noise:
    """A law's probabilities and its distribution function over the integers."""

    def __init__(self, mechanism: NoisyCounts) -> None:
        self.tails = np.array(_tails(repr(mechanism.noise)))
        self.reach = len(self.tails) - 1

    def at_least(self, m: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[X >= m]."""
        upper = self.tails[np.clip(np.abs(m), 0, self.reach)]
        mirrored = self.tails[np.clip(1 - m, 0, self.reach)]
        return np.where(m > 0, upper, 1 - mirrored)

    def of(self, x: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[X = x]."""
        far = np.abs(x)
        near = np.clip(far, 1, self.reach)
        sided = self.tails[near] - np.where(far < self.reach, self.tails[np.minimum(near + 1, self.reach)], 0.0)
        return np.where(far == 0, 1 - 2 * self.tails[1], np.where(far > self.reach, 0.0, sided))


def _threshold_item(
    mechanism: ThresholdMechanism, first: int, second: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The law of one item: unseen, or each of its noisy counts; a count of zero is never seen."""
    noise = _Noise(mechanism)
    value = mechanism.threshold.value
    values = np.arange(value + 1, max(value, first, second) + noise.reach + 1)

    def law(count: int) -> NDArray[np.float64]:
        if count == 0:
            return np.concatenate([[1.0], np.zeros(len(values))])
        return np.concatenate([[1 - mechanism.release_chance(count)], noise.of(values - count)])

    return law(first), law(second)


def _noisy_top_k(
    mechanism: NoisyTopK, first: Counts, second: Counts
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The law of the noisy counts above a noisy threshold t: with the others unseen,
    the product of the counts' probabilities times the sum over t below the least of them."""
    noise = _Noise(mechanism)
    views = []
    for counts in (first, second):
        labels, histogram = ranked(counts)
        shown, bottom = largest(histogram, mechanism.k_bar)
        views.append((dict(zip(labels, shown.tolist(), strict=False)), bottom))
    seen = sorted({label for shown, _ in views for label in shown})
    ends = [count for shown, bottom in views for count in (*shown.values(), bottom)]
    grid = np.arange(min(ends) - noise.reach, max(ends) + mechanism.margin + noise.reach + 1)

    _require_few(float(len(grid)) ** len(seen))

    def law(shown: dict[str, int], bottom: int) -> NDArray[np.float64]:
        threshold = noise.of(grid - mechanism.margin - bottom)
        unseen = {label: 1 - noise.at_least(grid - count + 1) for label, count in shown.items()}
        seen_law = {label: noise.of(grid - count) for label, count in shown.items()}
        parts = []
        for size in range(len(seen) + 1):
            for released in combinations(seen, size):
                if not set(released) <= set(shown):
                    parts.append(np.zeros(len(grid) ** size))
                    continue
                weight = threshold.copy()
                for label in set(shown) - set(released):
                    weight *= unseen[label]
                # P[t < v] with the others unseen, for each v of the grid.
                below = np.concatenate([[0.0], np.cumsum(weight)])
                if size == 0:
                    parts.append(below[-1:])
                    continue
                least = np.arange(len(grid)).reshape(-1, *[1] * (size - 1))
                for axis in range(1, size):
                    least = np.minimum(least, np.arange(len(grid)).reshape(*[1] * axis, -1, *[1] * (size - 1 - axis)))
                joint = below[least]
                for axis, label in enumerate(released):
                    joint = joint * seen_law[label].reshape(*[1] * axis, -1, *[1] * (size - 1 - axis))
                parts.append(joint.ravel())
        return np.concatenate(parts)

    return law(*views[0]), law(*views[1])


def _scores(mechanism: GumbelTopK, counts: Counts) -> tuple[list[str], NDArray[np.float64]]:
    """The candidates and the stop element, and their scores over the scale."""
    labels, histogram = ranked(counts)
    shown, bottom = largest(histogram, mechanism.k_bar)
    scores = [*(mechanism.gamma * shown), mechanism.gamma * bottom + mechanism.offset]
    return labels[: len(shown)], np.array(scores)


def _plackett_luce(mechanism: GumbelTopK, counts: Counts) -> Law:
    """Sequences of up to k items: each drawn in proportion to its weight, until the stop element or k items."""
    labels, scores = _scores(mechanism, counts)
    weights = np.exp(scores - scores.max())
    law: Law = {}

    def extend(chosen: tuple[int, ...], chance: float) -> None:
        if len(chosen) == mechanism.k:
            law[tuple(labels[i] for i in chosen)] = chance
            return
        left = [i for i in range(len(weights)) if i not in chosen]
        total = weights[left].sum()
        for i in left:
            if i == len(labels):
                law[(*(labels[j] for j in chosen), None)] = chance * weights[i] / total
            else:
                extend((*chosen, i), chance * weights[i] / total)

    extend((), 1.0)
    return law


def _flips(mechanism: PermuteAndFlip, counts: Counts) -> Law:
    """Every subset that may have been passed over, and whom its next visit takes."""
    labels, scores = _scores(mechanism, counts)
    accept = np.exp(scores - scores.max())
    everyone = range(len(accept))
    reached = {frozenset[int](): 1.0}
    taken = np.zeros(len(accept))
    for size in everyone:
        for passed in map(frozenset, combinations(everyone, size)):
            chance = reached.get(passed, 0.0) / (len(accept) - size)
            for i in everyone:
                if i not in passed:
                    taken[i] += chance * accept[i]
                    reached[passed | {i}] = reached.get(passed | {i}, 0.0) + chance * (1 - accept[i])
    return {(*([labels[i]] if i < len(labels) else [None]),): float(p) for i, p in enumerate(taken)}
