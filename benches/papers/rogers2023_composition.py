"""Total epsilon of many releases at a total delta of 1e-6: zCDP against the composition of DP (Rogers 2023)."""

import math
from functools import cache

import discreet as dp
import figures
from discreet.theorems.balle_wang2018 import gaussian_delta

RHO = 0.005
HEADER = ["releases", "zCDP, converted once", "DP, advanced composition", "DP, basic composition", "DP over zCDP"]


@cache
def one(delta):
    """Return the epsilon of one Gaussian release at delta, by bisection of its exact delta."""
    low, high = 0.0, 10.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(middle, math.sqrt(2 * RHO)) <= delta else (middle, high)
    return high


def measure(small):
    found = {}
    for n in (1, 10, 100) if small else (1, 3, 10, 30, 100, 300, 1000):
        each = one(1e-6 / (2 * n))
        advanced = each * math.sqrt(2 * n * math.log(2e6)) + n * each * math.expm1(each) / (math.exp(each) + 1)
        found[str(n)] = [dp.Guarantee(n * RHO, 0.0).epsilon(1e-6), advanced, n * one(1e-6 / n)]
    return found


def rows(found):
    for n, cells in found.items():
        yield [n, *(f"{cell:.3g}" for cell in cells), f"{min(cells[1:]) / cells[0]:.2f}"]


def draw(figure, found):
    lines = dict(zip(HEADER[1:4], zip(*found.values(), strict=True), strict=True))
    figures.curves(figure, [*map(int, found)], lines, xlabel="releases of rho 0.005", ylabel="epsilon", scale="log")


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
