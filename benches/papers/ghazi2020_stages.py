"""Expected largest error at rho 0.5 with no, one and two stages of sparse vector (Ghazi et al. 2020, Algorithm 3)."""

import math
from itertools import product

import figures
from discreet import queries
from discreet.queries import Stage
from discreet.queries.iterative_sparse_vector import _expected

RHO = 0.5
HEADER = ["queries", "no correction", "one stage", "two stages", "from_rho", "stages of from_rho"]


def expected(k, share, parts):
    """Return the expected error if `share` of rho is for the first answers. A part is (share, runs, bar over sigma)."""
    sigma, stages = math.sqrt(k / (2 * share * RHO)), []
    for part, runs, bar in parts:
        epsilon = math.sqrt(part * (1 - share) * RHO / runs)
        stages.append(Stage(runs=runs, epsilon=epsilon, threshold=max(1, round(bar * sigma))))
    return _expected(k, sigma, tuple(stages))


def measure(small):
    found, bars = {}, (3.0, 3.5, 4.0, 4.5, 5.0, 5.5)
    for k in (100, 1000) if small else (100, 1_000, 10_000, 100_000, 1_000_000):
        runs = sorted({max(1, round(10 ** (place / 2))) for place in range(int(2 * math.log10(k)) + 1)})
        ways = [*product((0.8, 0.95) if small else (0.7, 0.8, 0.9, 0.95, 0.98), runs, bars)]
        one = min(expected(k, share, [(1, m, bar)]) for share, m, bar in ways)
        more = [*product((3, 10, 30), (0.0, 0.5, 1.0), (0.1, 0.3))]
        two = min(
            expected(k, share, [(1 - split, m, bar), (split, max(1, m // part), bar + rise)])
            for (share, m, bar), (part, rise, split) in product(ways, more)
        )
        plain = queries.GaussianAnswers.from_rho(k=k, rho=RHO).expected_error
        chosen = queries.IterativeSparseVector.from_rho(k=k, rho=RHO)
        found[str(k)] = [plain, one, two, chosen.expected_error, len(chosen.stages)]
    return found


def rows(found):
    return ([f"{int(k):,}", *(f"{cell:,.4g}" for cell in cells[:4]), cells[4]] for k, cells in found.items())


if __name__ == "__main__":
    figures.main(HEADER, measure, rows)
