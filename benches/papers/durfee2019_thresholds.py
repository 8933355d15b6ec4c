"""Chance that a differing item is released, over delta, by three thresholds (Durfee and Rogers 2019, Algorithm 1)."""

import math

import discreet as dp
import figures
from discreet.theorems.durfee_rogers2019 import discrete_laplace_difference_tail

HEADER = ["epsilon, delta, l", "1 + log(l/delta)", "chance", "1 + log(l/delta)/epsilon", "chance", "here", "chance"]
CASES = [(1.0, 1e-6, 1), (0.5, 1e-8, 5), (0.2, 1e-9, 20), (1.0, 1e-10, 100)]


def chance(margin, epsilon, delta, l0):
    """Return l P[difference of two Laplace noises exceeds the margin above a count of one] over delta."""
    t = max(0.0, (margin - 1) * epsilon)
    return l0 * (2 + t) * math.exp(-t) / 4 / delta


def measure(small):
    found = {}
    for epsilon, delta, l0 in CASES:
        literal, divided = 1 + math.log(l0 / delta), 1 + math.log(l0 / delta) / epsilon
        ours = dp.LaplaceTopK(scale=1 / epsilon, delta=delta, l0=l0, k_bar=1000).margin
        own = l0 * discrete_laplace_difference_tail(1 / epsilon, ours) / delta
        cells = [literal, chance(literal, epsilon, delta, l0), divided, chance(divided, epsilon, delta, l0), ours, own]
        found[f"{epsilon:g}, {delta:g}, {l0}"] = cells
    return found


def rows(found):
    return ([name, *(f"{cell:.4g}" for cell in cells)] for name, cells in found.items())


if __name__ == "__main__":
    figures.main(HEADER, measure, rows)
