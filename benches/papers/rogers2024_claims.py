"""Claims of the figures of Rogers (2024), with the numbers of the same seeded releases as in the other scripts."""

import figures
from claims import CLAIMS, numbers
from contest import contest

HEADER = ["claim", "here", "verdict"]


def measure(small):
    return numbers({name: contest(data, 1 if small else 10) for name, data in figures.tables(small)})


def rows(found):
    for claim in CLAIMS:
        yield [claim.text, claim.here.format(*found[claim.text]), claim.verdict]


if __name__ == "__main__":
    figures.main(HEADER, measure, rows)
