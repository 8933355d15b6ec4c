"""Chance of release by number of users, at epsilon 1 and delta 1e-5 (Desfontaines et al. 2020, Theorems 1 and 5)."""

import math

import discreet as dp
import figures

EPSILON, DELTA = 1.0, 1e-5
HEADER = ["users", "optimal", "truncated geometric", "Laplace, real", "Laplace, integer", "Gaussian, integer"]


def laplace(users):
    """Return the chance with real Laplace noise and the threshold 1 - log(2 delta)/epsilon (Definition 9)."""
    t = EPSILON * (1 - math.log(2 * DELTA) / EPSILON - users)
    return math.exp(-t) / 2 if t > 0 else 1 - math.exp(t) / 2


def measure(small):
    chances = [
        dp.OptimalSelection(epsilon=EPSILON, delta=DELTA).release_chance,
        dp.TruncatedGeometric(epsilon=EPSILON, delta=DELTA).release_chance,
        laplace,
        dp.LaplaceThreshold.from_epsilon(epsilon=EPSILON, delta=DELTA, l0=1).release_chance,
        dp.GaussianThreshold.from_epsilon(epsilon=EPSILON, delta=DELTA, l0=1).release_chance,
    ]
    return {str(users): [chance(users) for chance in chances] for users in range(1, 31)}


def rows(found):
    return (
        [users, *(f"{chance:.3g}" for chance in found[users])] for users in ["1", "5", "10", "12", "13", "15", "20"]
    )


def draw(figure, found):
    lines = dict(zip(HEADER[1:], zip(*found.values(), strict=True), strict=True))
    figures.curves(figure, [*map(int, found)], lines, xlabel="users", ylabel="chance of release")


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
