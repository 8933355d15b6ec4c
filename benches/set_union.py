"""Items that each method of set union names of a table, beside thresholds on counts, and how long it takes.

    python benches/set_union.py FILE... [--rounds N] [--record FILE]

Files are Parquet with columns user and item. Medians over rounds; epsilon 3, delta e^-10, at most 100 items of a user.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import time
from pathlib import Path

import numpy as np

import discreet as dp
from discreet.mechanisms.set_union import METHODS

PROMISE = {"epsilon": 3.0, "delta": math.exp(-10), "l0": 100}


def timed(work):
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def discovered(path, rounds):
    columns = {"user": "user", "item": "item"}
    reading, items = timed(lambda: dp.UserItems.from_table(path, **columns))
    unions = {name: dp.SetUnion.from_epsilon(method=name, **PROMISE) for name in METHODS}
    unions["dp_sips"] = dp.IteratedSetUnion.from_epsilon(**PROMISE)
    thresholds = {kind.__name__: kind.from_epsilon(**PROMISE) for kind in (dp.LaplaceThreshold, dp.GaussianThreshold)}
    found = {name: [] for name in [*unions, *thresholds]}
    for _ in range(rounds):
        for name, mechanism in unions.items():
            seconds, release = timed(lambda mechanism=mechanism: mechanism.release(items))
            found[name].append((len(release), seconds))
        histogram = dp.Histogram.from_table(path, **columns, l0=PROMISE["l0"])
        for name, mechanism in thresholds.items():
            seconds, release = timed(lambda mechanism=mechanism, histogram=histogram: mechanism.release(histogram))
            found[name].append((len(release), seconds))
    return {
        "reading_seconds": reading,
        "methods": {
            name: {
                "items": statistics.median(count for count, _ in runs),
                "seconds_after_reading": statistics.median(seconds for _, seconds in runs),
            }
            for name, runs in found.items()
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record")
    arguments = parser.parse_args()
    tables = {}
    for path in arguments.files:
        tables[Path(path).stem] = discovered(path, arguments.rounds)
        print(Path(path).stem, {name: cell["items"] for name, cell in tables[Path(path).stem]["methods"].items()})
    record = {
        "machine": {
            "cores": os.cpu_count(),
            "arch": platform.machine(),
            "python": platform.python_version(),
            "discreet": dp.__version__,
            "numpy": np.__version__,
        },
        "benchmark": "benches/set_union.py",
        "promise": PROMISE,
        "rounds": arguments.rounds,
        "tables": tables,
    }
    if arguments.record:
        with open(arguments.record, "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
