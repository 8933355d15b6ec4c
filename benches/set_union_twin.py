"""Weights of a table's items beside the twin in Python, and the memory that reading the table takes.

    python benches/set_union_twin.py FILE [--record FILE]

The file is Parquet with columns user and item. At most 100 items of each user, chosen uniformly, and their weights; the
twin is handed every user's items as a list of numbers. Memory is the peak of the process above what it had before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import time
from pathlib import Path
from statistics import median

import numpy as np

import discreet as dp
from discreet.engines.weighing import Here
from discreet.reference import union

L0 = 100
BITS = 28
TARGET = 20 << BITS
METHODS = ["even_squares", "step", "water", "greedy"]


def timed(work):
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def peak():
    """The largest resident set so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ours(core, method):
    """The median of five."""
    key = [1, 2, 3, 4]
    nothing = np.zeros(0, np.int64)
    work = lambda: core.bounded(L0, nothing, key).weights(method, BITS, target=TARGET, few=L0)  # noqa: E731
    return median(timed(work)[0] for _ in range(5))


def twin(users, size, method):
    def work():
        bounded = [items if len(items) <= L0 else random.sample(items, L0) for items in users]
        return union.weights(bounded, size, method, BITS, target=TARGET, few=L0)

    return timed(work)[0]


def numbered(path):
    """Every user's distinct items as numbers, how many items there are, and how many rows."""
    import polars

    table = polars.read_parquet(path)
    pairs = table.unique().with_columns(polars.col("item").rank("dense").cast(polars.Int64) - 1)
    size = int(pairs["item"].max()) + 1
    return pairs.group_by("user").agg("item")["item"].to_list(), size, len(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--record")
    arguments = parser.parse_args()
    before = peak()
    seconds, here = timed(lambda: Here.read(arguments.file, "user", "item", l0=None, memory=None, progress=None))
    memory = peak() - before
    speed = {method: ours(here._lists, method) for method in METHODS}
    users, size, rows = numbered(arguments.file)
    slow = {method: twin(users, size, method) for method in METHODS}
    record = {
        "machine": {
            "cores": os.cpu_count(),
            "arch": platform.machine(),
            "python": platform.python_version(),
            "discreet": dp.__version__,
            "numpy": np.__version__,
        },
        "benchmark": "benches/set_union_twin.py",
        "table": {"name": Path(arguments.file).stem, "rows": rows, "pairs": sum(map(len, users)), "items": size},
        "reading": {"seconds": seconds, "extra_megabytes": memory},
        "weighing": {
            method: {"seconds": speed[method], "twin_seconds": slow[method], "ratio": slow[method] / speed[method]}
            for method in METHODS
        },
    }
    print(json.dumps(record, indent=1))
    if arguments.record:
        with open(arguments.record, "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
