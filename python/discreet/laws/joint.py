"""The output distributions (laws) of a mechanism on two histograms, over the same outcomes."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from discreet.errors import ParameterError
from discreet.laws import ranked
from discreet.laws.outcomes import ChancePair, Chances, Counts, NoiseLaw, product, users_of
from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
from discreet.mechanisms.counts.given_counts import GivenCounts
from discreet.mechanisms.counts.kept_pairs import KeptPairs
from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
from discreet.mechanisms.threshold.truncated_geometric import TruncatedGeometric
from discreet.mechanisms.top_k.base import NoisyTopK
from discreet.mechanisms.top_k.exponential_mechanism import ExponentialMechanism
from discreet.mechanisms.top_k.gumbel import GumbelTopK
from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.mechanisms.wrappers.replacement import Replacement

__all__ = ["joint_law"]


@singledispatch
def joint_law(mechanism: HistogramMechanism, first: Counts, second: Counts) -> ChancePair:
    """Return the probability of each outcome under two histograms, in the same order: two arrays of equal length.

    An item that is decided independently of other items is left out if it has the same count in both histograms. Raises
    ParameterError if the law is not known, or has too many outcomes.
    """
    raise ParameterError(f"the exact law of {type(mechanism).__name__} is not known")


joint_law.register(NoisyTopK, ranked.noisy_top_k)
joint_law.register(GumbelTopK, ranked.gumbel_top_k)
joint_law.register(ExponentialMechanism, ranked.exponential_mechanism)
joint_law.register(PrivateCountRelease, ranked.private_count_release)


@joint_law.register
def _(mechanism: ThresholdMechanism, first: Counts, second: Counts) -> ChancePair:
    if isinstance(mechanism, TruncatedGeometric) and not mechanism.with_counts:
        return _coins(mechanism, first, second)
    parts = [_threshold_item(mechanism, first.get(label, 0), second.get(label, 0)) for label in _changed(first, second)]
    return product([p for p, _ in parts]), product([q for _, q in parts])


@joint_law.register
def _(mechanism: OptimalSelection, first: Counts, second: Counts) -> ChancePair:
    return _coins(mechanism, first, second)


def _coins(mechanism: OptimalSelection | TruncatedGeometric, first: Counts, second: Counts) -> ChancePair:
    """Return the laws of a mechanism that releases each item, without a count, by its release probability."""

    def coin(count: int) -> Chances:
        chance = mechanism.release_chance(count) if count > 0 else 0.0
        return np.array([1 - chance, chance])

    labels = _changed(first, second)
    return product([coin(first.get(label, 0)) for label in labels]), product(
        [coin(second.get(label, 0)) for label in labels]
    )


@joint_law.register
def _(mechanism: KnownItems, first: Counts, second: Counts) -> ChancePair:
    noise = NoiseLaw(mechanism.mechanism.noise)
    moved = [label for label in _changed(first, second) if label in mechanism.items]
    known = [noise.around(first.get(label, 0), second.get(label, 0)) for label in moved]
    known_items = {*mechanism.items}
    others = [{label: n for label, n in counts.items() if label not in known_items} for counts in (first, second)]
    p, q = joint_law(mechanism.mechanism, *others)
    return product([p, *(pair[0] for pair in known)]), product([q, *(pair[1] for pair in known)])


@joint_law.register
def _(mechanism: GivenCounts, first: Counts, second: Counts) -> ChancePair:
    noise = NoiseLaw(mechanism.noise)
    moved = [label for label in _changed(first, second) if label in mechanism.items]
    pairs = [noise.around(first.get(label, 0), second.get(label, 0)) for label in moved]
    return product([p for p, _ in pairs]), product([q for _, q in pairs])


@joint_law.register
def _(mechanism: CorrelatedCounts, first: Counts, second: Counts) -> ChancePair:
    """Return the laws of all measurements that move. The released counts follow from the measurements."""
    exact = [
        mechanism._measured(np.array([counts.get(str(item), 0) for item in mechanism.items]), users_of(counts)).tolist()
        for counts in (first, second)
    ]
    own, common = NoiseLaw(mechanism.noise), NoiseLaw(mechanism.users_noise)
    noises = [own] * len(mechanism.items) + [common]
    pairs = [noise.around(p, q) for noise, p, q in zip(noises, *exact, strict=True) if p != q]
    return product([p for p, _ in pairs]), product([q for _, q in pairs])


@joint_law.register
def _(mechanism: KeptPairs, first: Counts, second: Counts) -> ChancePair:
    """Return the laws of both sums. The counts of these histograms are the numbers of items of users."""
    noise = NoiseLaw(mechanism.noise)
    exact = [mechanism._sums(np.array(list(counts.values()), np.int64)) for counts in (first, second)]
    pairs = [noise.around(before, after) for before, after in zip(*exact, strict=True)]
    return product([p for p, _ in pairs]), product([q for _, q in pairs])


@joint_law.register
def _(mechanism: Replacement, first: Counts, second: Counts) -> ChancePair:
    return joint_law(mechanism.mechanism, first, second)


def _changed(first: Counts, second: Counts) -> list[str]:
    return [label for label in sorted({*first, *second}) if first.get(label, 0) != second.get(label, 0)]


def _threshold_item(mechanism: ThresholdMechanism, first: int, second: int) -> ChancePair:
    """Return the laws of one item: not published, or each of its noisy counts. A count of zero is never published."""
    noise = NoiseLaw(mechanism.noise)
    value = mechanism.threshold.value
    values = np.arange(value + 1, max(value, first, second) + noise.reach + 1)

    def law(count: int) -> Chances:
        if count == 0:
            return np.concatenate([[1.0], np.zeros(len(values))])
        return np.concatenate([[1 - mechanism.release_chance(count)], noise.of(values - count)])

    return law(first), law(second)
