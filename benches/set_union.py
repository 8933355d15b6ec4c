"""Number of items that each set-union method releases, compared with published algorithms and thresholds on counts.

    python benches/set_union.py FILE... [--rounds N] [--record FILE]

A FILE is a Parquet file with the columns user and item. epsilon is 3, delta is e^-10, and l0 is 100. Each round runs
all methods. Items and seconds are medians over the rounds; reading and memory are measured once. The seconds of a
method do not include reading: unions start from every user's distinct items, and thresholds from counts with this l0.

`extra_bytes` of reading is the peak memory above the memory in use after the imports and a run on one row.
`extra_bytes` of the union is the peak memory above the memory in use after reading.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np

import discreet as dp
import records
from discreet.mechanisms.union.methods import UNION_METHODS
from footprint import current_memory, peak_memory, reset_peak
from published_union import METHODS as PUBLISHED
from published_union import weighted_gaussian_by_arrays

PAIR = 8
"""Bytes of a user number and an item number."""
PROMISE = {"epsilon": 3.0, "delta": math.exp(-10), "l0": 100}


def timed(work):
    """Return the seconds and the result of `work`."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def published_users(path):
    """Return one array of item numbers for each user, in no particular order."""
    numbered = f"SELECT \"user\", dense_rank() OVER (ORDER BY item) - 1 AS item FROM '{path}'"
    rows = duckdb.sql(f"SELECT DISTINCT * FROM ({numbered}) ORDER BY 1").fetchnumpy()
    starts = np.flatnonzero(np.diff(rows["user"], prepend=rows["user"][0] - 1))
    return np.split(rows["item"].astype(np.int64), starts[1:])


def discovered(path, rounds):
    """Return times, numbers of released items and memory for one table."""
    columns = {"user": "user", "item": "item"}
    reading, items = timed(lambda: dp.tables.UserItems.from_table(path, **columns))
    users = published_users(path)
    published = {"policy_laplace": 3.0}  # the paper's alpha; discreet's default misses fewer common items
    unions = {
        name: dp.mechanisms.SetUnion.from_epsilon(method=name, alpha=published.get(name), **PROMISE)
        for name in UNION_METHODS
    }
    unions["dp_sips"] = dp.mechanisms.IteratedSetUnion.from_epsilon(**PROMISE)
    unions["dp_sips, shared_order"] = dp.mechanisms.IteratedSetUnion.from_epsilon(shared_order=True, **PROMISE)
    thresholds = {kind.__name__: kind.from_epsilon(**PROMISE) for kind in (dp.LaplaceThreshold, dp.GaussianThreshold)}
    found, told = {name: [] for name in [*unions, *thresholds]}, {name: [] for name in PUBLISHED}
    arrays = []
    for _ in range(rounds):
        for name, mechanism in unions.items():
            seconds, release = timed(lambda mechanism=mechanism: mechanism.release(items))
            found[name].append((len(release), seconds))
            if name in PUBLISHED:
                seconds, answer = timed(lambda name=name: PUBLISHED[name](users, **PROMISE))
                told[name].append((len(answer), seconds))
        seconds, answer = timed(lambda: weighted_gaussian_by_arrays(users, **PROMISE))
        arrays.append((len(answer), seconds))
        histogram = dp.Histogram.from_table(path, **columns, l0=PROMISE["l0"])
        for name, mechanism in thresholds.items():
            seconds, release = timed(lambda mechanism=mechanism, histogram=histogram: mechanism.release(histogram))
            found[name].append((len(release), seconds))
    methods = {}
    for name, runs in found.items():
        methods[name] = summary(runs)
        if name in told:
            methods[name]["published"] = summary(told[name])
            methods[name]["times_as_fast"] = faster(told[name], runs)
    methods["weighted_gaussian"]["published_by_arrays"] = summary(arrays)
    methods["weighted_gaussian"]["times_as_fast_as_arrays"] = faster(arrays, found["weighted_gaussian"])
    pairs = sum(map(len, users))
    extra = {step: extra_bytes(path, step) for step in ("reading", "union")}
    return {
        "distinct_pairs": pairs,
        "reading_seconds": reading,
        "extra_bytes": extra,
        "extra_bytes_per_distinct_pair": {step: extra[step] / pairs for step in extra},
        "times_the_distinct_pairs": {step: extra[step] / (PAIR * pairs) for step in extra},
        "methods": methods,
    }


def summary(runs):
    """Return the median number of items and the median time."""
    return {
        "items": statistics.median(count for count, _ in runs),
        "seconds_after_reading": statistics.median(seconds for _, seconds in runs),
    }


def faster(slow, fast):
    """Return the median over the rounds of the ratio of two times."""
    return statistics.median(a / b for (_, a), (_, b) in zip(slow, fast, strict=True))


def extra_bytes(path, step):
    """Return the extra bytes of one step, measured in its own process."""
    done = subprocess.run([sys.executable, __file__, path, "--child", step], check=True, capture_output=True, text=True)
    return int(done.stdout)


def child(path, step):
    """Run one step and print its extra bytes."""
    mechanism = dp.mechanisms.SetUnion.from_epsilon(method="weighted_gaussian", **PROMISE)
    mechanism.release(dp.tables.UserItems.from_pairs([1], [1]))
    dp.tables.UserItems.from_table({"user": [1], "item": ["a"]}, user="user", item="item")
    before = current_memory()
    if step == "reading":
        reset_peak()
    items = dp.tables.UserItems.from_table(path, user="user", item="item")
    if step == "union":
        before = current_memory()
        reset_peak()
        mechanism.release(items)
    print(peak_memory() - before)


def main():
    parser = records.parser(__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=["reading", "union"])
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.files[0], arguments.child)
        return
    tables = {}
    for path in arguments.files:
        tables[Path(path).stem] = discovered(path, arguments.rounds)
        table = tables[Path(path).stem]
        print(Path(path).stem, table["distinct_pairs"], table["extra_bytes_per_distinct_pair"])
        for name, cell in table["methods"].items():
            print(f"  {name:>31}", cell, flush=True)
    record = {
        "machine": records.machine(),
        "benchmark": "benches/set_union.py",
        "promise": PROMISE,
        "rounds": arguments.rounds,
        "tables": tables,
    }
    records.write(arguments.record, record)


if __name__ == "__main__":
    main()
