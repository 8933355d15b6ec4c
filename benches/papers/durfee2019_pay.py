"""Lists that 200 outcomes pay for, charged by outcome or by length (Durfee and Rogers 2019, Algorithm 3)."""

import numpy as np

import discreet as dp
import figures
from discreet.demo import SHAPES

K, OUTCOMES, COLUMNS = 20, 200, {"user": "user", "item": "item"}
HEADER = ["users per list", "outcomes per list", "lists, charged by length", "lists, pay what you get", "ratio"]


def measure(small):
    data, found = SHAPES["reddit"].table(1), {}
    for users in (500, 2_000) if small else (250, 500, 1_000, 2_000, 4_000):
        exchange = dp.Budget(rho=1, delta=1e-6).pay_what_you_get(
            outcomes=OUTCOMES, queries=OUTCOMES, epsilon=0.1, delta=1e-9
        )
        answered = 0
        while exchange.outcomes_left >= K and exchange.queries_left:
            # Each list is about users of its own: one part of the table after the other, and then the first again.
            inside = data["user"] // users == answered % (SHAPES["reddit"].users // users)
            part = dp.Histogram.from_table({name: column[inside] for name, column in data.items()}, **COLUMNS)
            exchange.top_k(part, k=K)
            answered += 1
        found[str(users)] = [(OUTCOMES - exchange.outcomes_left) / answered, OUTCOMES // K, answered]
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
