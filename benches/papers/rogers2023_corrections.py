"""Numbers that the corrections of Rogers (2023) change."""

import math
from statistics import NormalDist

import discreet as dp
import figures
from discreet import _core
from discreet.theorems import rogers2023

HEADER = ["quantity", "as printed", "here"]
STOP = 1 + math.log(3 / 0.1)


def law(scores, listed, stop):
    """Return the probability of a list of two draws in proportion to e^score, for items and the stop element."""
    weights = {**{item: math.exp(score) for item, score in scores.items()}, None: math.exp(stop)}
    chance = 1.0
    for item in listed:
        chance *= weights[item] / sum(weights.values())
        del weights[item]
    return chance


def measure(small):
    noise, p = _core.Noise.discrete_gaussian(2.0), rogers2023.novel_chance(1e-8, 10)
    floor = math.floor(rogers2023.gaussian_threshold(2.0, p))
    ours = dp.GaussianThreshold(sigma=2.0, delta=1e-8, l0=10).threshold.value
    own, shared = {0: 3, 1: 3, 2: 1}, {0: 3, 1: 3}
    lists = [[None], [0, None], [1, None], [0, 1], [1, 0]]
    within = sum(law(own, y, STOP) for y in lists)
    ratios = [[law(own, y, STOP) / law(shared, y, stop) for y in lists] for stop in (STOP, STOP - math.log(0.9))]
    tree = dp.BinaryMechanism(sigma=10.0, delta=1e-6, l0=5, horizon=1000)
    printed = 1 + 10 * math.sqrt(math.ceil(math.log2(1001)) + 1) * -NormalDist().inv_cdf(1e-6 / 5000)
    return {
        "Theorem 7: a novel item's chance over the allowed one": [noise.tail(floor) / p, noise.tail(ours) / p],
        "Theorem 7: delta of two releases, converted one by one": [3e-6, 4e-6],
        "Theorem 9: P(y)/P'(y) for the empty list": [within, ratios[0][0]],
        "Theorem 9: P(y)/P'(y) for one item": [within, ratios[0][1]],
        "Theorem 9: least P(y)/P'(y), at least 0.9 needed": [None, min(ratios[1])],
        "Theorem 11: largest threshold in 1,000 rounds": [printed, float(max(map(tree.threshold, range(1, 1001))))],
    }


def rows(found):
    return ([name, *("" if cell is None else f"{cell:.4g}" for cell in cells)] for name, cells in found.items())


if __name__ == "__main__":
    figures.main(HEADER, measure, rows)
