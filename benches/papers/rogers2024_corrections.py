"""Numbers that the corrections of Rogers (2024) change."""

import math

import discreet as dp
import figures
from discreet.privacy.conversion import bun_steinke_epsilon
from discreet.theorems import rogers2024

HEADER = ["quantity", "as printed", "here"]
DELTA_STAR, K_BAR, EPSILON = 1e-8, 10, 0.5


def differing(below):
    """Return the chance that an item of one neighbour alone is selected, if the (k_bar+1)-th count is `below`."""
    stop = below + 1 + math.log(K_BAR / DELTA_STAR) / EPSILON
    weights = [EPSILON * (score - 1001) for score in [1001, *[1000] * (K_BAR - 1), stop]]
    return 1 / sum(map(math.exp, weights))


def measure(small):
    low = dp.PrivateCountRelease(rho=1, delta=1e-6, k_bar=100, delta_star=1e-8, relative_error=0.05, epsilon_star=0.01)
    level = low.levels[0]
    return {
        "epsilon of rho 0.1 at delta 1e-6": [0.1 + 2 * math.sqrt(2 * math.log(1e6)), bun_steinke_epsilon(0.1, 1e-6)],
        "sigma at epsilon 0.01, r 0.05": [0.05 / 1.5 * level.offset / level.gamma, level.sigma],
        "chance of a differing item over delta*": [differing(0) / DELTA_STAR, differing(1000) / DELTA_STAR],
        "sigma of Plume, rho 0.25, m' 554": [rogers2024.plume_sigma(0.25, 554, literal=x) for x in (True, False)],
    }


def rows(found):
    return ([name, *(f"{cell:,.4g}" for cell in cells)] for name, cells in found.items())


if __name__ == "__main__":
    figures.main(HEADER, measure, rows)
