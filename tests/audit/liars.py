"""Mechanisms whose releases do not follow the law of their parameters.

A law is the exact distribution of the releases, computed from the parameters.
"""

import dataclasses

import numpy as np

from discreet import (
    GaussianThreshold,
    GaussianTopK,
    GumbelTopK,
    LaplaceThreshold,
    OptimalSelection,
    PrivateCountRelease,
    TruncatedGeometric,
    _core,
)
from discreet.mechanisms import (
    CorrelatedCounts,
    ExponentialMechanism,
    KnownItems,
    LaplaceCounts,
    Replacement,
)
from discreet.mechanisms.published import published


def running(mechanism, run):
    """Return the mechanism with another release method. Its parameters, and so its exact law, do not change."""
    kind = type(mechanism)
    values = {name: getattr(mechanism, name) for name in kind.__dataclass_fields__}
    return type(kind.__name__, (kind,), {"_run": run})(**values)


def publish(mechanism, histogram, rows, rng, noisy=None):
    more = {} if noisy is None else {"noisy": np.asarray(noisy, np.int64), "sigmas": mechanism.deviation}
    return mechanism._published(histogram, np.asarray(rows, np.int64), rng, **more)


def exact(mechanism, histogram, rng):
    """Publish the exact counts that are above the threshold."""
    rows = np.flatnonzero(histogram._counts() > mechanism.threshold.value)
    return publish(mechanism, histogram, rows, rng, histogram._counts()[rows])


def all_exact(mechanism, histogram, rng):
    """Publish all exact counts."""
    rows = np.arange(len(histogram._counts()))
    return publish(mechanism, histogram, rows, rng, histogram._counts())


def noise_ignored(mechanism, histogram, rng):
    """Choose the items by noisy counts, but publish exact counts, or the least count above the threshold."""
    rows, _ = mechanism.threshold.release(histogram._counts(), rng)
    floor = mechanism.threshold.value + 1
    return publish(mechanism, histogram, rows, rng, np.maximum(histogram._counts()[rows], floor))


def moved(by):
    """Return a release whose threshold is higher than the law's by `by`."""

    def run(mechanism, histogram, rng):
        other = _core.Threshold(mechanism.noise, mechanism.threshold.value + by)
        rows, noisy = other.release(histogram._counts(), rng)
        return publish(mechanism, histogram, rows, rng, noisy)

    return run


def half_the_noise(mechanism, histogram, rng):
    noise = rng.sample(mechanism.noise, len(histogram._counts())) // 2
    return above(mechanism, histogram, histogram._counts() + noise, rng)


def one_noise_for_all(mechanism, histogram, rng):
    """Add the same noise to all counts: each count follows the law, but all counts together do not."""
    noise = int(rng.sample(mechanism.noise, 1)[0])
    return above(mechanism, histogram, histogram._counts() + noise, rng)


def above(mechanism, histogram, noisy, rng):
    rows = np.flatnonzero((histogram._counts() > 0) & (noisy > mechanism.threshold.value))
    return publish(mechanism, histogram, rows, rng, noisy[rows])


def in_order_of_counts(mechanism, histogram, rng):
    """Publish the right rows in the order of the exact counts."""
    rows, noisy = mechanism.threshold.release(histogram._counts(), rng)
    release = publish(mechanism, histogram, rows, rng, noisy)
    order = np.argsort([list(histogram._labels.take(rows)).index(item) for item in release.items])
    object.__setattr__(release, "items", [release.items[place] for place in order])
    object.__setattr__(release, "counts", release.counts[order])
    return release


def largest_first(mechanism, histogram, rng):
    """Publish the exact top k."""
    rows = np.arange(min(getattr(mechanism, "k", 1), len(histogram._counts())))
    return mechanism._published(histogram, rows, rng, ranked=True)


def exact_candidates(mechanism, histogram, rng):
    """Publish the k candidates with the most users."""
    counts = histogram._counts_of(mechanism.items)
    rows = np.argsort(-counts, kind="stable")[: mechanism.k]
    return named(mechanism, rows, rng)


def only_with_users(mechanism, histogram, rng):
    """Draw only from the candidates that have users."""
    counts = histogram._counts_of(mechanism.items)
    rows, _ = rng.peel(counts, int(counts.max()), mechanism.gamma, 0, -5000.0, mechanism.k)
    return named(mechanism, np.array(rows, np.int64), rng)


def in_order_of_items(mechanism, histogram, rng):
    """Publish the drawn candidates in the order of their names."""
    release = ExponentialMechanism._run(mechanism, histogram, rng)
    object.__setattr__(release, "items", sorted(release.items))
    return release


def named(mechanism, rows, rng):
    return published(mechanism, _core.Labels.from_sequence(list(mechanism.items)), rows, rng, ranked=True)


def without_empty(mechanism, histogram, rng):
    """Publish no items without users."""
    release = LaplaceCounts._run(mechanism, histogram, rng)
    true = dict(zip(mechanism.items, histogram._counts_of(mechanism.items).tolist(), strict=True))
    kept = [place for place, item in enumerate(release.items) if true[item]]
    return dataclasses.replace(
        release,
        items=[release.items[place] for place in kept],
        counts=release.counts[kept],
        sigmas=release.sigmas[kept],
    )


def exact_listed(mechanism, histogram, rng):
    """Publish exact counts of the given items."""
    counts = histogram._counts_of(mechanism.items)
    labels = _core.Labels.from_sequence(list(mechanism.items))
    return published(mechanism, labels, np.arange(len(counts)), rng, noisy=counts, sigmas=mechanism.deviation)


def nothing_shared(mechanism, histogram, rng):
    """Draw the noise of the number of users for each count alone: each count follows the law, but not all together."""
    counts = histogram._counts_of(mechanism.items)
    noise = rng.sample(mechanism.noise, len(counts)) + rng.sample(mechanism.users_noise, len(counts))
    noisy = (2 * counts + noise + rng.words(len(counts)) % 2).astype(np.int64) >> 1
    labels = _core.Labels.from_sequence(list(mechanism.items))
    return published(mechanism, labels, np.arange(len(counts)), rng, noisy=noisy, sigmas=mechanism.deviation)


def lower_offset(mechanism, histogram, rng):
    """Select with a stop element that is one scale lower than the law's."""
    counts = histogram._counts()[: mechanism.k_bar]
    bottom = int(histogram._counts()[mechanism.k_bar]) if len(histogram._counts()) > mechanism.k_bar else 0
    reference = max(bottom, int(counts.max(initial=0)))
    rows, _ = rng.peel(counts, reference, mechanism.gamma, bottom, mechanism.offset - 1, mechanism.k)
    return mechanism._published(histogram, np.array(rows, np.int64), rng, ranked=True)


def no_margin_noise(mechanism, histogram, rng):
    """Add noise to the counts, but no noise to the threshold."""
    counts = histogram._counts()[: mechanism.k_bar]
    bottom = int(histogram._counts()[mechanism.k_bar]) if len(histogram._counts()) > mechanism.k_bar else 0
    noisy = counts + rng.sample(mechanism.noise, len(counts))
    rows = np.flatnonzero((counts > 0) & (noisy > bottom + mechanism.margin))
    return publish(mechanism, histogram, rows, rng, noisy[rows])


def without_luck(mechanism, histogram, rng):
    """Publish exactly the items whose release chance is at least one half."""
    rows = [row for row, n in enumerate(histogram._counts().tolist()) if mechanism.release_chance(n) >= 0.5]
    return mechanism._published(histogram, np.array(rows, np.int64), rng)


def one_user_more(mechanism, histogram, rng):
    """Publish items with the probability for one user more."""
    rows = _core.partition_selection(histogram._counts() + 1, mechanism.chances, rng)
    return mechanism._published(histogram, rows, rng)


def exact_known(mechanism, histogram, rng):
    """Publish the known items with exact counts."""
    release = KnownItems._run(mechanism, histogram, rng)
    true = dict(zip(mechanism.items, histogram._counts_of(mechanism.items).tolist(), strict=True))
    counts = np.array([true.get(i, n) for i, n in zip(release.items, release.counts.tolist(), strict=True)], np.int64)
    object.__setattr__(release, "counts", counts)
    return release


def exact_prices(mechanism, histogram, rng):
    """Run Private Count Release without noise on its counts."""
    release = PrivateCountRelease._run(mechanism, histogram, rng)
    object.__setattr__(release, "counts", histogram._counts_of(release.items))
    return release


LAPLACE = LaplaceThreshold(scale=2.0, delta=1e-2, l0=3)
GAUSS = GaussianThreshold.from_epsilon(epsilon=1.0, delta=1e-6, l0=3)
BOUNDED = TruncatedGeometric(epsilon=1.0, delta=1e-6)
ALONE = TruncatedGeometric(epsilon=1.0, delta=1e-6, with_counts=False)
OPTIMAL = OptimalSelection(epsilon=1.0, delta=1e-6)
GUMBEL = GumbelTopK.from_epsilon(k=10, epsilon=1.0, delta=1e-6)
SHORT = GumbelTopK(k=2, scale=1.0, delta=0.1, k_bar=3)
GTOP = GaussianTopK(sigma=0.8, delta=1e-2, l0=1, k_bar=1)
DRAWN = ExponentialMechanism(items=("0", "1", "2", "3"), scale=4.0, k=2)
LISTED = LaplaceCounts(items=("0", "1", "2"), scale=2.0, l0=2)
SHARED = CorrelatedCounts(items=("0", "1", "2"), rho=0.5)
KNOWN = KnownItems(mechanism=LAPLACE, items=("0", "home"))
PRICED = PrivateCountRelease(rho=0.7, delta=0.1, epsilon_star=1.0, delta_star=0.05, k_bar=2)
REPLACED = Replacement.from_rho(GaussianThreshold, rho=0.1, delta=1e-6, l0=1)

HONEST = [
    LAPLACE,
    GAUSS,
    BOUNDED,
    ALONE,
    OPTIMAL,
    GUMBEL,
    SHORT,
    GTOP,
    DRAWN,
    LISTED,
    SHARED,
    KNOWN,
    PRICED,
    REPLACED,
]
THRESHOLD_LIES = {
    "publishes the exact counts above the threshold": exact,
    "publishes all exact counts": all_exact,
    "ignores its noise": noise_ignored,
    "uses a threshold one higher than its law": moved(1),
    "uses a threshold one lower than its law": moved(-1),
    "adds half the noise": half_the_noise,
    "adds the same noise to all counts": one_noise_for_all,
    "publishes in the order of the exact counts": in_order_of_counts,
}
LIARS = {
    f"{type(mechanism).__name__} {lie}": (mechanism, run)
    for mechanism in (LAPLACE, GAUSS, BOUNDED)
    for lie, run in THRESHOLD_LIES.items()
    # If l0 is 1, the audit releases one count, so neither an order nor a common noise can be found.
    if mechanism.l0 > 1 or run not in (one_noise_for_all, in_order_of_counts)
} | {
    "GumbelTopK publishes the exact list": (GUMBEL, largest_first),
    "GumbelTopK of a short list publishes the exact list": (SHORT, largest_first),
    "GumbelTopK uses a lower stop element": (GUMBEL, lower_offset),
    "GumbelTopK of a short list uses a lower stop element": (SHORT, lower_offset),
    "ExponentialMechanism publishes the exact list": (DRAWN, exact_candidates),
    "ExponentialMechanism leaves out candidates without users": (DRAWN, only_with_users),
    "ExponentialMechanism publishes its draws in the order of their names": (DRAWN, in_order_of_items),
    "LaplaceCounts publishes no items without users": (LISTED, without_empty),
    "LaplaceCounts publishes exact counts": (LISTED, exact_listed),
    "CorrelatedCounts publishes exact counts": (SHARED, exact_listed),
    "CorrelatedCounts shares no noise": (SHARED, nothing_shared),
    "GaussianTopK adds no noise to its threshold": (GTOP, no_margin_noise),
    "TruncatedGeometric without counts publishes exact counts": (ALONE, exact),
    "TruncatedGeometric without counts decides without chance": (ALONE, without_luck),
    "OptimalSelection decides without chance": (OPTIMAL, without_luck),
    "OptimalSelection counts a user more": (OPTIMAL, one_user_more),
    "KnownItems publishes exact counts of known items": (KNOWN, exact_known),
    "PrivateCountRelease publishes exact counts": (PRICED, exact_prices),
}
