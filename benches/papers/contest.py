"""Private Count Release and Plume on the same table, for the figures of Rogers (2024)."""

from __future__ import annotations

import numpy as np

import discreet as dp
from discreet.testing import seeded_rng

RHOS = (0.1, 0.5, 1.0)
DELTA = 1e-6
OFF = 0.1
COLUMNS = {"user": "user", "item": "item"}
CONTESTANTS = ("private count release", "plume p95", "plume p99", "plume p95, literal", "plume p99, literal")


def quality(found, truth, least=-np.inf):
    """Return how many released counts exceed `least`, and the share of them more than 10 % off."""
    items, noisy = np.array(found.items, np.int64), found.counts
    items, noisy = items[noisy > least], noisy[noisy > least]
    off = abs(noisy / truth[items] - 1) > OFF
    return [len(items), float(off.mean()) if len(items) else 0.0]


def bounded(data, l0, seed):
    """Return the rows in which every user keeps l0 of its items, chosen uniformly: a count with this l0 then drops no
    row by a choice of its own, which cannot be seeded.
    """
    length = data["item"].max() + 1
    # Without counts, numpy hashes, which takes 9 times as long.
    pairs, _ = np.unique(data["user"] * length + data["item"], return_counts=True)
    users, items = np.divmod(np.random.default_rng(seed).permutation(pairs), length)
    order = np.argsort(users, kind="stable")
    users, items = users[order], items[order]
    place = np.arange(len(users)) - np.searchsorted(users, users)
    return {"user": users[place < l0], "item": items[place < l0]}


def plume(data, rho, percentile, seed):
    """Return both sigmas of Plume in stages, each with its release, as the paper describes it.

    m is a percentile of the number of items of a user, and m_prime the percentile among the selected items. Both are
    read from the data without noise, as in the paper. `ContributionBound` is the private way.
    """
    m = max(1, int(np.percentile(np.unique(data["user"], return_counts=True)[1], percentile)))
    first = dp.Plume(rho=rho, delta=DELTA, m=m, m_prime=1)
    clipped = dp.Histogram.from_table(bounded(data, m, seed), **COLUMNS, l0=m)
    chosen = first.discovery.release(clipped, rng=seeded_rng(seed)).items
    inside = np.isin(data["item"], np.array(chosen, np.int64))
    if not inside.any():
        return []
    kept = {name: column[inside] for name, column in data.items()}
    m_prime = max(1, int(np.percentile(np.unique(kept["user"], return_counts=True)[1], percentile)))
    again = dp.Histogram.from_table(bounded(kept, m_prime, seed), **COLUMNS, l0=m_prime, only=chosen)
    made = [dp.Plume(rho=rho, delta=DELTA, m=m, m_prime=m_prime, literal=literal) for literal in (False, True)]
    return [(one.sigma, one.counting(chosen).release(again, rng=seeded_rng(seed + 1))) for one in made]


def contest(data, runs):
    """Return the mean `quality` of every contestant at every rho. Plume shows only counts above its threshold."""
    truth = np.bincount(data["item"])
    histogram = dp.Histogram.from_table(data, **COLUMNS)
    found = {}
    for rho in RHOS:
        row = {name: [] for name in CONTESTANTS} | {"plume p95, no threshold": []}
        for seed in range(runs):
            release = dp.PrivateCountRelease(rho=rho, delta=DELTA).release(histogram, rng=seeded_rng(seed))
            row["private count release"].append(quality(release, truth))
            for percentile in (95, 99):
                for (sigma, counts), suffix in zip(plume(data, rho, percentile, seed), ("", ", literal"), strict=False):
                    name = f"plume p{percentile}{suffix}"
                    row[name].append(quality(counts, truth, (2 + OFF) * sigma / OFF))
                    if percentile == 95 and not suffix:
                        row["plume p95, no threshold"].append(quality(counts, truth))
        found[f"{rho:g}"] = {name: np.mean(cells or [[0, 0]], axis=0).round(4).tolist() for name, cells in row.items()}
    return found
