"""Lists that 200 outcomes pay for, charged by outcome or by length (Durfee and Rogers 2019, Algorithm 3)."""

import numpy as np

import discreet as dp
import figures
from discreet.testing import seeded_rng
from tables import TABLES

K, OUTCOMES, COLUMNS = 20, 200, {"user": "user", "item": "item"}
HEADER = ["users per list", "outcomes per list", "lists, charged by length", "lists, pay what you get", "ratio"]


def measure(small):
    data, found = TABLES["reddit"].table(1), {}
    parts = data["user"].max() + 1
    for users in (500, 2_000) if small else (250, 500, 1_000, 2_000, 4_000):
        left, answered = OUTCOMES, 0
        while left:
            # Each list is about users of its own: one part of the table after the other, and then the first again.
            inside = data["user"] // users == answered % (parts // users)
            part = dp.Histogram.from_table({name: column[inside] for name, column in data.items()}, **COLUMNS)
            # The lists of an exchange with this epsilon, which draws from the operating system and cannot be repeated.
            one = dp.GumbelTopK(k=min(K, left), scale=10, delta=1e-9)
            left -= one.release(part, rng=seeded_rng(answered)).calls
            answered += 1
        found[str(users)] = [OUTCOMES / answered, OUTCOMES // K, answered]
    return found


def rows(found):
    for users, (outcomes, fixed, paid) in found.items():
        yield [f"{int(users):,}", f"{outcomes:.1f}", fixed, paid, f"{paid / fixed:.1f}"]


def draw(figure, found):
    axes = figure.subplots()
    places = np.arange(len(found))
    axes.bar(places - 0.2, [cells[1] for cells in found.values()], 0.4, label=HEADER[2])
    axes.bar(places + 0.2, [cells[2] for cells in found.values()], 0.4, label=HEADER[3])
    axes.set_xticks(places, [f"{int(users):,}" for users in found])
    axes.set(xlabel="users per list", ylabel="lists of up to 20 items")
    axes.legend()


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
