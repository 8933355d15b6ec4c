"""Private Count Release and Plume on the same table, for the figures of Rogers (2024)."""

from __future__ import annotations

from collections import defaultdict
from itertools import product, zip_longest

import numpy as np

import discreet as dp
from discreet.tables import UserItems
from discreet.testing import seeded_rng

RHOS = (0.1, 0.5, 1.0)
DELTA = 1e-6
OFF = 0.1
COLUMNS = {"user": "user", "item": "item"}
SELECTIONS = {"": "threshold", ", set union": "weighted_gaussian"}
"""How Plume finds items, by the end of a contestant's name."""


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


def counted(data, tables, limits, selection, seed):
    """Run Plume in stages, as the paper does, and return its two sigmas, each with its release.

    `tables` holds the rows of at most m items of a user, and `limits` the percentile, rho and m.
    """
    percentile, rho, m = limits
    first = dp.Plume(rho=rho, delta=DELTA, m=m, m_prime=1, selection=selection)
    chosen = first.discovery.release(tables[selection], rng=seeded_rng(seed)).items
    inside = np.isin(data["item"], np.array(chosen, np.int64))
    if not inside.any():
        return []
    kept = {name: column[inside] for name, column in data.items()}
    m_prime = at(kept, percentile)
    again = dp.Histogram.from_table(bounded(kept, m_prime, seed), **COLUMNS, l0=m_prime, only=chosen)
    made = [dp.Plume(rho=rho, delta=DELTA, m=m, m_prime=m_prime, literal=literal) for literal in (False, True)]
    return [(one.sigma, one.counting(chosen).release(again, rng=seeded_rng(seed + 1))) for one in made]


def at(data, percentile):
    """Return a percentile of the number of items of a user, read without noise, as in the paper.

    `ContributionBound` is the private way.
    """
    return max(1, int(np.percentile(np.unique(data["user"], return_counts=True)[1], percentile)))


def contest(data, runs):
    """Return the mean `quality` of every contestant at every rho.

    Of Plume, only counts above the threshold of its relative error are compared, or with "all" every count.
    """
    truth = np.bincount(data["item"])
    histogram = dp.Histogram.from_table(data, **COLUMNS)
    found = {rho: defaultdict(list) for rho in RHOS}
    for seed, percentile in product(range(runs), (95, 99)):
        m = at(data, percentile)
        clipped = bounded(data, m, seed)
        tables = {"threshold": dp.Histogram.from_table(clipped, **COLUMNS, l0=m)}
        tables["weighted_gaussian"] = UserItems.from_table(clipped, **COLUMNS, l0=m)
        for rho, (end, selection) in product(RHOS, SELECTIONS.items()):
            name, row = f"plume p{percentile}{end}", found[rho]
            made = counted(data, tables, (percentile, rho, m), selection, seed)
            for (sigma, counts), suffix in zip_longest(made, ("", ", literal"), fillvalue=(1.0, None)):
                least = (2 + OFF) * sigma / OFF
                row[name + suffix].append([0, 0] if counts is None else quality(counts, truth, least))
            row[f"{name}, all"].append(quality(made[0][1], truth) if made else [0, 0])
        for rho in RHOS if percentile == 95 else ():
            release = dp.PrivateCountRelease(rho=rho, delta=DELTA).release(histogram, rng=seeded_rng(seed))
            found[rho]["private count release"].append(quality(release, truth))
    mean = {rho: {name: np.mean(cells, axis=0).round(4).tolist() for name, cells in found[rho].items()} for rho in RHOS}
    return {f"{rho:g}": row for rho, row in mean.items()}
