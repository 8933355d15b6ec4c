"""Output distributions (laws) of top-k mechanisms and Private Count Release, whose items depend on each other."""

from __future__ import annotations

from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet import _core
from discreet.laws.outcomes import ChancePair, Chances, Counts, Distribution, NoiseLaw, aligned, product, require_few
from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
from discreet.mechanisms.top_k.base import NoisyTopK, largest
from discreet.mechanisms.top_k.exponential_mechanism import ExponentialMechanism
from discreet.mechanisms.top_k.gumbel import GumbelTopK
from discreet.reference import private_count_release as reference
from discreet.tables.histogram import Histogram
from discreet.theorems import rogers2024

__all__ = [
    "draws",
    "exponential_mechanism",
    "gumbel_top_k",
    "noisy_top_k",
    "plackett_luce",
    "private_count_release",
    "ranked",
    "selections",
]

_COST = 1_000
"""One run of the reference implementation counts as 1,000 outcomes, because it takes about as long."""


def ranked(counts: Counts) -> tuple[list[str], Histogram]:
    """Return the labels by descending count, and the histogram of the counts."""
    present = {label: count for label, count in counts.items() if count > 0}
    order = sorted(present, key=lambda label: (-present[label], label))
    return order, Histogram.from_counts(order, [present[label] for label in order], l0=None, linf=1, complete=True)


def noisy_top_k(mechanism: NoisyTopK, first: Counts, second: Counts) -> ChancePair:
    """Return the laws of noisy counts above a noisy threshold.

    The probability of an output has two factors. The first is the product of the probabilities of its noisy counts. The
    second sums P[t] P[all other items are at most t] over all thresholds t below the least noisy count.
    """
    noise = NoiseLaw(mechanism.noise)
    views = []
    for counts in (first, second):
        labels, histogram = ranked(counts)
        shown, bottom = largest(histogram, mechanism.k_bar)
        views.append((dict(zip(labels, shown.tolist(), strict=False)), bottom))
    seen = sorted({label for shown, _ in views for label in shown})
    ends = [count for shown, bottom in views for count in (*shown.values(), bottom)]
    grid = np.arange(min(ends) - noise.reach, max(ends) + mechanism.margin + noise.reach + 1)
    require_few(float(len(grid)) ** len(seen))
    places = np.arange(len(grid))

    def law(shown: dict[str, int], bottom: int) -> Chances:
        threshold = noise.of(grid - mechanism.margin - bottom)
        unseen = {label: 1 - noise.at_least(grid - count + 1) for label, count in shown.items()}
        parts = []
        for size in range(len(seen) + 1):
            for released in combinations(seen, size):
                if not set(released) <= set(shown):
                    parts.append(np.zeros(len(grid) ** size))
                    continue
                weight = threshold.copy()
                for label in set(shown) - set(released):
                    weight *= unseen[label]
                # P[t < v and no other item is released], for each v of the grid.
                below = np.concatenate([[0.0], np.cumsum(weight)])
                if size == 0:
                    parts.append(below[-1:])
                    continue
                least = reduce(np.minimum, np.ix_(*[places] * size))
                chances = np.ix_(*(noise.of(grid - shown[label]) for label in released))
                parts.append(reduce(np.multiply, chances, below[least]).ravel())
        return np.concatenate(parts)

    return law(*views[0]), law(*views[1])


def gumbel_top_k(mechanism: GumbelTopK, first: Counts, second: Counts) -> ChancePair:
    """Return the laws of lists of items, which end with None if the stop element was drawn."""
    return aligned(plackett_luce(mechanism, first), plackett_luce(mechanism, second))


def exponential_mechanism(mechanism: ExponentialMechanism, first: Counts, second: Counts) -> ChancePair:
    """Return the laws of lists of k candidates."""
    return aligned(draws(mechanism, first), draws(mechanism, second))


def private_count_release(mechanism: PrivateCountRelease, first: Counts, second: Counts) -> ChancePair:
    """Return the laws of the items selected at each level, in order.

    Outcomes include the noisy counts of items whose counts differ.
    """
    laws = selections(mechanism, first), selections(mechanism, second)
    noises = [NoiseLaw(_core.Noise.discrete_gaussian(level.sigma)) for level in mechanism.levels]
    parts: tuple[list[Chances], list[Chances]] = ([], [])
    for outcome in {**laws[0], **laws[1]}:
        moved = [(label, level) for label, level in outcome if first.get(label, 0) != second.get(label, 0)]
        noisy = [noises[level].around(first.get(label, 0), second.get(label, 0)) for label, level in moved]
        for side, law in enumerate(laws):
            parts[side].append(law.get(outcome, 0.0) * product([pair[side] for pair in noisy]))
    return np.concatenate(parts[0]), np.concatenate(parts[1])


def _scores(mechanism: GumbelTopK, counts: Counts) -> tuple[list[str], Chances]:
    """Return the candidates, and the scores of the candidates and of the stop element, in units of the scale."""
    labels, histogram = ranked(counts)
    shown, bottom = largest(histogram, mechanism.k_bar)
    scores = [*(mechanism.gamma * shown), mechanism.gamma * bottom + mechanism.offset]
    return labels[: len(shown)], np.array(scores)


def plackett_luce(mechanism: GumbelTopK, counts: Counts) -> Distribution:
    """Return the law of sequences of up to k items.

    Each item is drawn in proportion to its weight, until the stop element or k items are drawn.
    """
    return _sequences(*_scores(mechanism, counts), mechanism.k)


def draws(mechanism: ExponentialMechanism, counts: Counts) -> Distribution:
    """Return the law of sequences of k candidates. A candidate whose raised count is zero is never drawn."""
    raised = [(str(item), counts.get(str(item), 0) + mechanism.raised) for item in mechanism.items]
    drawn = {label: count for label, count in raised if count > 0}
    # The stop element of the kernel has the score -5000.
    return _sequences(
        [*drawn], np.array([*(mechanism.gamma * count for count in drawn.values()), -5000.0]), mechanism.k
    )


def _sequences(labels: list[str], scores: Chances, k: int) -> Distribution:
    """Return the law of up to k draws without replacement. The last score is the stop element's."""
    law: Distribution = {}

    def extend(chosen: tuple[int, ...], chance: float) -> None:
        if len(chosen) == k:
            law[tuple(labels[i] for i in chosen)] = chance
            return
        left = [i for i in range(len(scores)) if i not in chosen]
        weights = np.exp(scores[left] - scores[left].max())
        for i, share in zip(left, weights / weights.sum(), strict=True):
            if i == len(labels):
                law[(*(labels[j] for j in chosen), None)] = chance * share
            else:
                extend((*chosen, i), chance * share)

    extend((), 1.0)
    return law


def selections(mechanism: PrivateCountRelease, counts: Counts) -> dict[tuple[tuple[str, int], ...], float]:
    """Return the law of the selected items and their levels, in the order of selection.

    It runs the reference implementation once for every sequence of choices.
    """
    labels, histogram = ranked(counts)
    calls = rogers2024.most_calls(mechanism.delta, mechanism.delta_star)
    budget = rogers2024.budget_units(mechanism.rho)
    arguments = (histogram._counts(), None, mechanism.levels, budget, calls, mechanism.k_bar)
    law: dict[tuple[tuple[str, int], ...], float] = {}
    ahead, tried = [_Script(())], 0
    while ahead:
        script = ahead.pop()
        require_few(_COST * (tried := tried + 1))
        try:
            rows, _, levels, *_ = reference.private_count_release(*arguments, script)
        except _OpenError as fork:
            ahead += [_Script((*script.choices, slot), script.chance * p) for slot, p in enumerate(fork.chances) if p]
            continue
        outcome = tuple((labels[row], int(level)) for row, level in zip(rows, levels, strict=True))
        law[outcome] = law.get(outcome, 0.0) + script.chance
    return law


class _OpenError(Exception):
    """The error of a call for which the script has no choice, with the probabilities of the possible choices."""

    def __init__(self, chances: list[float]) -> None:
        self.chances = chances


class _Script:
    """A substitute for random draws in the reference implementation: the given choices (a script), and no noise."""

    def __init__(self, choices: tuple[int, ...], chance: float = 1.0) -> None:
        self.choices, self.chance, self._made = choices, chance, 0

    def select(self, counts: NDArray[np.int64], reference: int, gamma: float, bottom: int, offset: float) -> int:
        if self._made < len(self.choices):
            self._made += 1
            return self.choices[self._made - 1]
        scores = np.append(gamma * counts, gamma * bottom + offset)
        weights = np.exp(scores - scores.max()) * np.append(counts > 0, 1)
        raise _OpenError((weights / weights.sum()).tolist())

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)
