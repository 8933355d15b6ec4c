"""Total epsilon of k* selections of epsilon 0.1 at delta 1e-6, by four theorems (Durfee and Rogers 2019, poster)."""

import math

import numpy as np

import discreet as dp
import figures
from discreet.theorems.dong2020 import bounded_range_epsilon, closed_form_epsilon

EPSILON, DELTA = 0.1, 1e-6
HEADER = ["k*", "pure DP, optimal", "bounded range, closed form", "zCDP", "adaptive, used here", "pure over ours"]


def optimal(k):
    """Return the total epsilon of k randomised responses (Kairouz, Oh and Viswanath 2015), by bisection."""
    i = np.arange(k + 1)
    logs = [math.lgamma(k + 1) - math.lgamma(n + 1) - math.lgamma(k - n + 1) for n in range(k + 1)]
    masses = np.exp(np.array(logs) + (k - i) * EPSILON - k * math.log1p(math.exp(EPSILON)))
    low, high = 0.0, k * EPSILON
    while high - low > 1e-9:
        middle = (low + high) / 2
        delta = masses @ np.maximum(0, -np.expm1(np.minimum(0, middle - (k - 2 * i) * EPSILON)))
        low, high = (low, middle) if delta <= DELTA else (middle, high)
    return high


def measure(small):
    found = {}
    for k in (10, 50, 200) if small else (10, 20, 50, 100, 200, 400, 800):
        closed = min(k * EPSILON, closed_form_epsilon(EPSILON, k, DELTA))
        zcdp = min(k * EPSILON, dp.Guarantee(k * EPSILON**2 / 8, 0.0).epsilon(DELTA))
        found[str(k)] = [optimal(k), closed, zcdp, bounded_range_epsilon(EPSILON, k, DELTA)]
    return found


def rows(found):
    return ([k, *(f"{cell:.2f}" for cell in cells), f"{cells[0] / cells[3]:.2f}"] for k, cells in found.items())


def draw(figure, found):
    lines = dict(zip(HEADER[1:5], zip(*found.values(), strict=True), strict=True))
    figures.curves(figure, [*map(int, found)], lines, xlabel="selections k*, each of epsilon 0.1", ylabel="epsilon")


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
