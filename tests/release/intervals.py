"""The share of true counts inside their intervals, on generated tables of skewed counts."""

import numpy as np

import discreet as dp
from discreet.mechanisms import KnownItems, Refinement, Replacement
from discreet.testing import seeded_rng

COUNTS = np.maximum(12_000 // np.arange(1, 20_001), 1)
ITEMS = [f"item-{number}" for number in range(len(COUNTS))]
TRUTH = dict(zip(ITEMS, COUNTS.tolist(), strict=True))


def table(l0, users=None):
    return dp.Histogram.from_counts(ITEMS, COUNTS, l0=l0, linf=1, complete=True, users=users)


def refined(rng, run):
    counts = table(None, 20_000)
    first = dp.ConfirmedCounts(rho=0.5, delta=1e-6).release(counts, rng=rng)
    return Refinement(of=first, rho=0.5, relative_error=0.02).release(counts, rng=seeded_rng(10_000 + run))


GAUSSIAN = dp.GaussianThreshold.from_rho(rho=0.1, delta=1e-6, l0=10)
CASES = {
    "confirmed counts": (dp.ConfirmedCounts(rho=1, delta=1e-6), (None, 20_000)),
    "confirmed counts, users not known": (dp.ConfirmedCounts(rho=1, delta=1e-6), (None, None)),
    "confirmed counts, little budget": (dp.ConfirmedCounts(rho=0.1, delta=1e-6), (None, 20_000)),
    "private count release": (dp.PrivateCountRelease(rho=1, delta=1e-6), (None, None)),
    "private count release, little budget": (dp.PrivateCountRelease(rho=0.1, delta=1e-6), (None, None)),
    "gaussian threshold": (GAUSSIAN, (10, None)),
    "gaussian threshold, much noise": (dp.GaussianThreshold.from_rho(rho=0.001, delta=1e-6, l0=10), (10, None)),
    "laplace threshold": (dp.LaplaceThreshold.from_epsilon(epsilon=1, delta=1e-6, l0=10), (10, None)),
    "truncated geometric": (dp.TruncatedGeometric(epsilon=1, delta=1e-6, l0=10), (10, None)),
    "known items": (KnownItems(mechanism=GAUSSIAN, items=("item-5", "item-19999")), (10, None)),
    "replaced users": (Replacement.from_rho(dp.GaussianThreshold, rho=0.1, delta=1e-6, l0=5), (5, None)),
    "replaced users, confirmed": (Replacement.from_rho(dp.ConfirmedCounts, rho=1, delta=1e-6), (None, None)),
    "refinement": (refined, None),
}
"""Mechanisms that have intervals, with the l0 and the number of users of their table."""


def coverage(name, runs):
    """Return the share of released counts whose interval contains the true count, over some runs."""
    mechanism, terms = CASES[name]
    counts = None if terms is None else table(*terms)
    inside = released = 0
    for run in range(1, runs + 1):
        rng = seeded_rng(run)
        release = mechanism(rng, run) if counts is None else mechanism.release(counts, rng=rng)
        found, true = release.interval(0.95), np.array([TRUTH[item] for item in release.items])
        inside += int(((found["low"] <= true) & (true <= found["high"])).sum())
        released += len(release)
    assert released > 20 * runs
    return inside / released
