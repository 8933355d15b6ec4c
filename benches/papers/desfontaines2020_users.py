"""Users at which an item is released half of the time, if a user has up to kappa items (Desfontaines et al. 2020)."""

from bisect import bisect_left

import discreet as dp
import figures

MECHANISMS = {
    "optimal": dp.OptimalSelection,
    "truncated geometric": dp.TruncatedGeometric,
    "Laplace": dp.LaplaceThreshold.from_epsilon,
    "Gaussian": dp.GaussianThreshold.from_epsilon,
}
HEADER = ["kappa", *MECHANISMS, "least"]


def measure(small):
    found = {}
    for l0 in (1, 2, 3, 4, 10) if small else (1, 2, 3, 4, 5, 10, 20, 50):
        made = {name: mechanism(epsilon=1.0, delta=1e-5, l0=l0) for name, mechanism in MECHANISMS.items()}
        found[str(l0)] = {
            name: bisect_left(range(1 << 16), 0.5, key=mechanism.release_chance) for name, mechanism in made.items()
        }
    return found


def rows(found):
    return ([l0, *row.values(), min(row, key=row.get)] for l0, row in found.items())


def draw(figure, found):
    lines = {name: [row[name] for row in found.values()] for name in MECHANISMS}
    figures.curves(figure, [*map(int, found)], lines, xlabel="kappa", ylabel="users", scale="log")


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
