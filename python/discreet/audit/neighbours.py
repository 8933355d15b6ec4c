"""Pairs of small histograms that differ by one user."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from discreet.laws.outcomes import USERS
from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.top_k.exponential_mechanism import ExponentialMechanism
from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.mechanisms.wrappers.replacement import Replacement
from discreet.theorems.tails import least

__all__ = ["centre", "neighbours", "ranks", "unwrapped"]

_FAR = 2**36


def neighbours(mechanism: HistogramMechanism, pairs: int, seed: int) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Yield `pairs` pairs of neighbouring histograms around the mechanism's thresholds.

    The second histogram has one user more than the first. If the mechanism protects replaced users, the first has
    another user in this place. In the first pair, the second histogram has items of this user only.
    """
    chance = random.Random(seed)
    protected = mechanism.protects
    most = min(protected.l0 or 3, 3)
    inner = unwrapped(mechanism)
    if deviation := getattr(inner, "deviation", None):
        # Bound the items so that a law has at most about 300,000 outcomes.
        most = min(most, max(1, int(math.log(300_000) / math.log(20 * deviation + 20))))
    interesting = _interesting(mechanism)
    for number in range(pairs):
        size = most + chance.choice((0, 0, 1, 1, 2)) if ranks(mechanism) else most
        labels = [f"{i}" for i in range(size)]
        first = {label: chance.choice(interesting) if chance.random() < 0.7 else 0 for label in labels}
        moved = chance.sample(labels, chance.randint(1, most))
        steps = {label: chance.choice((1, protected.linf)) for label in moved}
        if number == 0:
            first = dict.fromkeys(labels, 0)
            steps = dict.fromkeys(labels[: min(most, getattr(inner, "k_bar", most))], protected.linf)
        second = {label: count + steps.get(label, 0) for label, count in first.items()}
        if isinstance(inner, CorrelatedCounts):
            users = max(first.values()) + chance.choice((0, 1, 50))
            first[USERS], second[USERS] = users, users + 1
        if mechanism.guarantee.neighbours == "replaced":
            # The items of the replaced user do not depend on the items of the other user.
            for label in chance.sample(labels, chance.randint(0, most)):
                first[label] += chance.choice((1, protected.linf))
        yield {k: c for k, c in first.items() if c}, {k: c for k, c in second.items() if c}


def unwrapped(mechanism: HistogramMechanism) -> HistogramMechanism:
    """Return the mechanism inside any wrappers."""
    while isinstance(mechanism, KnownItems | Replacement):
        mechanism = mechanism.mechanism
    return mechanism


def ranks(mechanism: HistogramMechanism) -> bool:
    """Return whether the mechanism ranks items. Then unchanged counts also affect the probability of an output."""
    inner = unwrapped(mechanism)
    return isinstance(inner, ExponentialMechanism) or hasattr(inner, "k_bar")


def _interesting(mechanism: HistogramMechanism) -> list[int]:
    """Return counts near which the output changes: small counts, and counts around an even chance of release."""
    middle = centre(mechanism)
    near = (int(middle * x) for x in (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.5, 2.0))
    return sorted({*range(1, 13), middle + 1, *(max(1, count) for count in near)})


def centre(mechanism: HistogramMechanism) -> int:
    """Return the least count with an even chance of release."""
    return least(lambda users: users >= _FAR or mechanism.release_chance(users) >= 0.5)
