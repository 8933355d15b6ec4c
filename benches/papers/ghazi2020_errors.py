"""Expected largest error of k answers over sqrt(k log(1/delta))/epsilon (Ghazi, Kumar, Manurangsi 2020, Theorem 1).

The column guarded is the algorithm of Theorem 1: `iterative_sparse_vector` with a last stage and a guard.
"""

import math

import numpy as np

import figures
from discreet.queries.choose import ANSWER_METHODS
from discreet.testing import seeded_rng

EPSILON, DELTA = 1.0, 1e-6
SHOWN = ("gaussian", "laplace", "iterative_sparse_vector", "guarded", "gumbel_correction", "bounded")
HEADER = ["queries", *SHOWN]


def measure(small):
    found = {}
    for k in (10, 100, 1000) if small else (10, 100, 1_000, 10_000):
        row = found[str(k)] = {}
        for name in SHOWN:
            kind = ANSWER_METHODS["iterative_sparse_vector" if name == "guarded" else name]
            mechanism = kind.from_epsilon(k=k, epsilon=EPSILON, delta=DELTA)
            mechanism = mechanism.guarded() if name == "guarded" else mechanism
            zeros, runs = np.zeros(k, np.int64), 40 if small else 400
            errors = [abs(mechanism.release(zeros, rng=seeded_rng(seed)).values).max() for seed in range(runs)]
            unit = math.sqrt(k * math.log(1 / DELTA)) / EPSILON
            row[name] = [mechanism.expected_error / unit, float(np.mean(errors)) / unit]
    return found


def rows(found):
    for k, row in found.items():
        yield [f"{int(k):,}", *(f"{expected:.2f}, {mean:.2f}" for expected, mean in row.values())]


def draw(figure, found):
    lines = {name: [row[name][1] for row in found.values()] for name in SHOWN}
    figures.curves(figure, [*map(int, found)], lines, xlabel="queries", ylabel="error over sqrt(k log(1/delta))")
    figure.axes[0].set(xscale="log", xticks=[*map(int, found)], xticklabels=[f"{int(k):,}" for k in found])
    figure.axes[0].minorticks_off()


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
