"""Users at which an item is released half of the time, over epsilon and delta (Desfontaines et al. 2020, Section 3)."""

import math

import numpy as np

import figures
from discreet.theorems.desfontaines2020 import release_chances

HEADER = ["epsilon", "delta", "optimal", "Laplace", "Laplace over optimal", "gap times epsilon"]
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 2.1, 3.0)


def midpoint(epsilon, delta):
    """Return the users at which the optimal chance is one half, between whole numbers by interpolation."""
    chances = release_chances(epsilon, delta)
    return float(np.interp(0.5, chances, np.arange(len(chances))))


def measure(small):
    cases = [(epsilon, 1e-5) for epsilon in EPSILONS] + [(0.1, 10.0**-places) for places in (3, 7, 9, 12)]
    return {f"{e:g}, {d:g}": [midpoint(e, d), 1 - math.log(2 * d) / e] for e, d in cases}


def rows(found):
    for case, (best, laplace) in found.items():
        epsilon, delta = case.split(", ")
        gap = (laplace - best) * float(epsilon)
        yield [epsilon, delta, f"{best:.1f}", f"{laplace:.1f}", f"{laplace / best:.2f}", f"{gap:.2f}"]


def draw(figure, found):
    rows = [[float(part) for part in case.split(", ")] + cells for case, cells in found.items()]
    by_epsilon = [row for row in rows if row[1] == 1e-5]
    lines = {HEADER[2]: [row[2] for row in by_epsilon], HEADER[3]: [row[3] for row in by_epsilon]}
    figures.curves(figure, EPSILONS, lines, xlabel="epsilon (delta 1e-5)", ylabel="users", scale="log")


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
