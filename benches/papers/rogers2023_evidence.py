"""Small tables that check the corrected proofs of Theorems 8 and 9 of Rogers (2023)."""

import itertools
import math

import numpy as np

import figures
from rogers2023_corrections import STOP, law

HEADER = ["claim", "cases", "least", "allowed"]
DELTA, K = 0.1, 2


def sorting(cases):
    """Yield a norm, and the least of the change of counts less that of sorted counts, over random neighbours."""
    random = np.random.default_rng(1)
    counts = random.integers(0, 12, (cases, 8))
    other = counts + random.integers(0, 2, counts.shape)
    moved, sorted_moved = other - counts, np.sort(other) - np.sort(counts)
    for order in (1, 2, np.inf):
        yield order, (np.linalg.norm(moved, order, 1) - np.linalg.norm(sorted_moved, order, 1)).min()


def lists():
    """Yield P(y)/P'(y) for all lists of two draws of common items, over all small tables and one more user."""
    for own in itertools.product(range(5), repeat=3):
        for more in itertools.product((0, 1), repeat=3):
            table = {item: n + m for item, (n, m) in enumerate(zip(own, more, strict=True)) if n + m}
            common = {item: count for item, count in table.items() if own[item]}
            for length in range(min(K, len(common)) + 1):
                for items in itertools.permutations(common, length):
                    listed = [*items] if length == K else [*items, None]
                    yield law(table, listed, STOP) / law(common, listed, STOP - math.log(1 - DELTA))


def measure(small):
    ratios, cases = [*lists()], 200_000
    return {
        **{
            f"Theorem 8: change less that of sorted counts, l{p} norm": [cases, round(x, 9), 0.0]
            for p, x in sorting(cases)
        },
        "Theorem 9: P(y)/P'(y) with the higher stop element": [len(ratios), min(ratios), 1 - DELTA],
    }


def rows(found):
    return ([name, f"{cases:,}", f"{least:.4g}", f"{allowed:g}"] for name, (cases, least, allowed) in found.items())


if __name__ == "__main__":
    figures.main(HEADER, measure, rows)
