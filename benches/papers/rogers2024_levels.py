"""Threshold, noise and price of each epsilon of Private Count Release (Rogers 2024, Algorithm 2 and Theorem 6)."""

import discreet as dp
import figures

HEADER = ["parameters", "level", "epsilon", "margin T", "sigma as printed", "sigma used", "rho of a step"]
CASES = {
    "k_bar 10,000, delta* 1e-11, r 0.1": {},
    "k_bar 100, delta* 1e-8, r 0.05": {"k_bar": 100, "delta_star": 1e-8, "relative_error": 0.05, "epsilon_star": 0.01},
}


def measure(small):
    found = {}
    for name, parameters in CASES.items():
        mechanism = dp.PrivateCountRelease(rho=1, delta=1e-6, **parameters)
        r, levels = mechanism.relative_error, mechanism.levels
        found[name] = {}
        for place in sorted({0, 12, len(levels) - 1}):
            level = levels[place]
            printed = r / 1.5 * level.offset / level.gamma
            price = (level.call_price + level.count_price) / 2**64
            found[name][str(place)] = [level.gamma, level.offset / level.gamma, printed, level.sigma, price]
    return found


def rows(found):
    for name, levels in found.items():
        for place, cells in levels.items():
            yield [name, place, *(f"{cell:.4g}" for cell in cells)]


if __name__ == "__main__":
    figures.main(HEADER, measure, rows)
