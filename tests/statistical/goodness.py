"""Statistical tests of whether random integers follow a law, which is a distribution over the integers.

A chi-square test compares the numbers of draws in cells, which are intervals of integers. Binomial tests compare tails
and signs. Chi-square tests of pairs check that draws at a distance (lag) are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

LAGS = [1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
CHUNK = 1_000_000
LEAST = 25.0  # the expected number of draws in a cell


@dataclass(frozen=True)
class Tail:
    """A law over the integers by its upper tail P[X >= m], in floating point."""

    name: str
    tail: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    reach: float  # P[|X| > reach] times the number of draws is far below one

    def above(self, m):
        """Return P[X >= m], with relative precision in the upper tail."""
        return np.asarray(self.tail(np.asarray(m, dtype=float)))

    def below(self, m):
        """Return P[X <= m], with relative precision in the lower tail."""
        return self.above(-np.asarray(m, dtype=float))


def gaussian(sigma):
    """Return the discrete Gaussian law. Above a scale of 3000, the tail is the continuous one half an integer lower."""
    if sigma > 3000:
        return Tail(f"gaussian {sigma:g}", lambda m: special.ndtr(-(m - 0.5) / sigma), 12 * sigma)
    reach = math.ceil(14 * sigma) + 3
    weights = np.exp(-(np.arange(-reach, reach + 1, dtype=float) ** 2) / (2 * sigma**2))
    tails = np.append(np.cumsum(weights[::-1])[::-1] / math.fsum(weights), 0.0)
    return Tail(f"gaussian {sigma:g}", lambda m: tails[np.clip(m + reach, 0, 2 * reach + 1).astype(int)], reach)


def laplace(scale):
    """Return the discrete Laplace law."""
    unit = 1 + math.exp(-1 / scale)

    def tail(m):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(m > 0, np.exp(-m / scale) / unit, 1 - np.exp(-(1 - m) / scale) / unit)

    return Tail(f"laplace {scale:g}", tail, 45 * scale + 2)


def truncated(scale, bound):
    """Return the truncated symmetric geometric law."""
    whole = -math.expm1(-(bound + 1) / scale) + math.exp(-1 / scale) * -math.expm1(-bound / scale)

    def upper(m):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(m > bound, 0, np.exp(-m / scale) * -np.expm1(-(bound + 1 - m) / scale) / whole)

    return Tail(f"truncated {scale:g} {bound}", lambda m: np.where(m > 0, upper(m), 1 - upper(1 - m)), bound + 1)


def cell_edges(law, n):
    """Return the upper edges of cells: all integers, or about 500 quantiles if the law is wide."""
    start = -law.reach
    if law.reach <= 300:
        return np.arange(math.floor(start), math.ceil(law.reach) + 1, dtype=float)
    tails = np.geomspace(LEAST / n, 0.002, 40)
    wanted = np.concatenate([tails, np.linspace(0.004, 0.996, 420), 1 - tails])
    low, high = np.full(len(wanted), math.floor(start)), np.full(len(wanted), math.ceil(law.reach))
    for _ in range(64):
        middle = np.floor((low + high) / 2)
        early = law.below(middle) < wanted
        low, high = np.where(early, middle, low), np.where(early, high, middle)
    return np.unique(high)


def pooled(law, edges, n):
    """Return the edges of cells with at least LEAST expected draws, and the probabilities of the cells.

    The cells are the intervals between the edges and beyond both ends.
    """
    below, above = law.below(edges).tolist(), law.above(edges + 1).tolist()

    def between(i, j):
        """Return the probability of the interval from one edge to another, with relative precision in both tails."""
        return above[i] - above[j] if edges[i] >= 0 else below[j] - below[i]

    kept: list[int] = []
    for place in range(len(edges)):
        p = between(kept[-1], place) if kept else below[place]
        if p * n >= LEAST and above[place] * n >= LEAST:
            kept.append(place)
    if not kept:
        return np.array([]), np.array([1.0])
    inner = [between(i, j) for i, j in pairwise(kept)]
    return edges[kept], np.array([below[kept[0]], *inner, above[kept[-1]]])


def p_values(law: Tail, draw: Callable[[int], NDArray[np.int64]], n: int) -> dict[str, float]:
    """Return the p-value of each test for n draws. Under the law, P[p-value <= x] is at most about x."""
    edges, law_of_cells = pooled(law, cell_edges(law, n), n)
    far = far_points(law, n)
    cells = np.zeros(len(edges) + 1)
    beyond = np.zeros(len(far), dtype=int)
    sides = np.zeros(2, dtype=int)
    # Up to eight kinds of draws, about equally frequent, to compare each draw with those before it.
    bounds = np.array([], dtype=int)
    if len(edges):
        octiles = np.searchsorted(np.cumsum(law_of_cells), np.arange(1, 8) / 8)
        bounds = np.unique(octiles.clip(0, len(edges) - 1))
    width = len(bounds) + 1
    kind_of_cell = np.searchsorted(bounds, np.arange(len(cells)), side="left").astype(np.uint8)
    pairs = np.zeros((len(LAGS), width * width))
    for start in range(0, n, CHUNK):
        draws = draw(min(CHUNK, n - start))
        cell = cells_of(draws, edges)
        cells += np.bincount(cell, minlength=len(cells))
        for i, (m, side) in enumerate(far):
            beyond[i] += np.count_nonzero(draws >= m if side > 0 else draws <= m)
        sides += np.count_nonzero(draws > 0), np.count_nonzero(draws < 0)
        kind = kind_of_cell[cell]
        for i, lag in enumerate(LAGS):
            pairs[i] += count_pairs(kind, lag, width)
    results = {}
    if len(edges):
        expected = law_of_cells / law_of_cells.sum() * n
        results["cells"] = stats.chi2.sf(((cells - expected) ** 2 / expected).sum(), len(edges))
    for (m, side), seen in zip(far, beyond, strict=True):
        p = float(law.above(m) if side > 0 else law.below(m))
        results[f"beyond {m:g}"] = two_sided(int(seen), n, p)
    if sides.sum():
        results["sign"] = two_sided(int(sides[0]), int(sides.sum()), 0.5)
    if width > 1:
        for lag, table in zip(LAGS, pairs, strict=True):
            results[f"lag {lag}"] = independence(table.reshape(width, width))
    return results


def far_points(law, n):
    """Return values on both sides with an expected number of draws beyond from n/1000 down to 1/1000."""
    points = []
    for p in (1e-3, 100 / n, 10 / n, 0.1 / n, 1e-3 / n):
        low, high = 0.0, math.ceil(law.reach)
        while high - low > 1:
            middle = math.floor((low + high) / 2)
            low, high = (middle, high) if law.above(middle) > p else (low, middle)
        points += [(high, 1), (-high, -1)]
    return sorted(set(points))


def cells_of(draws, edges):
    """Return the number of the cell of each draw. A table replaces the search if the draws are close together."""
    least, most = int(draws.min()), int(draws.max())
    if most - least > 100_000:
        return np.searchsorted(edges, draws, side="left")
    return np.searchsorted(edges, np.arange(least, most + 1), side="left")[draws - least]


def count_pairs(kind, lag, width):
    """Count the kinds of pairs of draws at a distance. The pairs do not overlap, so that they are independent."""
    rows = kind[: len(kind) // (2 * lag) * (2 * lag)].reshape(-1, 2, lag)
    if lag > 8:
        return np.bincount((rows[:, 0] * np.uint8(width) + rows[:, 1]).ravel(), minlength=width * width)
    # For a short distance, one long strided sum for each place is faster.
    each = (rows[:, 0, place] * np.uint8(width) + rows[:, 1, place] for place in range(lag))
    return sum(np.bincount(pair, minlength=width * width) for pair in each)


def two_sided(seen, n, p):
    """Return twice the smaller one-sided binomial p-value."""
    upper, lower = stats.binom.sf(seen - 1, n, p), stats.binom.cdf(seen, n, p)
    return float(min(1.0, 2 * min(upper, lower)))


def independence(table):
    """Return the p-value of the hypothesis that a table of pairs is the product of its margins."""
    rows, columns = table.sum(1), table.sum(0)
    expected = np.outer(rows, columns) / table.sum()
    kept = expected > 5
    statistic = ((table - expected) ** 2 / np.maximum(expected, 1e-9))[kept].sum()
    return float(stats.chi2.sf(statistic, (np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1)))
