"""A Parquet file to a release, beside commands that only count: wall time, CPU time and peak of whole processes.

    python benches/file_to_release.py FILE [--user U] [--item I] [--rounds N] [--record FILE]

The contestants are interleaved: `discreet count`, one query of polars and one of DuckDB. Free memory is written to
before each, so that nobody waits for the host of a virtual machine.
"""

import os
import statistics
import subprocess
import sys
import time

import records

TOUCHED = 2 * 10**9
"""Bytes of memory, more than any contestant takes of the largest file that was measured."""
TOUCH = [sys.executable, "-c", f"import footprint; footprint.touch_memory({TOUCHED})"]

POLARS = """
import polars as pl
r = pl.scan_parquet({file!r}).group_by({item!r}).agg(pl.col({user!r}).n_unique()).collect()
print(len(r))
"""
DUCKDB = """
import duckdb
r = duckdb.sql('SELECT "{item}", count(DISTINCT "{user}") AS n FROM read_parquet(\\'{file}\\') GROUP BY 1').fetchnumpy()
print(len(r["n"]))
"""


def measure(command):
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = process.stdout.read()
    process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{command[:3]} failed")
    cpu = usage.ru_utime + usage.ru_stime
    return {
        "wall": time.perf_counter() - started,
        "cpu": cpu,
        "peak": usage.ru_maxrss * 1024,
        "lines": out.count(b"\n"),
    }


def main():
    parser = records.parser(__doc__)
    parser.add_argument("file")
    parser.add_argument("--user", default="user")
    parser.add_argument("--item", default="item")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    names = {"file": options.file, "user": options.user, "item": options.item}
    budget = ["--rho", "1", "--delta", "1e-6"]
    columns = ["--user", options.user, "--item", options.item]
    contestants = {
        "discreet": [sys.executable, "-m", "discreet", "count", options.file, *columns, *budget],
        "polars": [sys.executable, "-c", POLARS.format(**names)],
        "duckdb": [sys.executable, "-c", DUCKDB.format(**names)],
    }
    runs = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, command in contestants.items():
            # By another process, whose peak is not that of the contestants.
            subprocess.run(TOUCH, cwd=os.path.dirname(__file__), check=True)
            runs[name].append(measure(command))
    medians = {n: {k: statistics.median(r[k] for r in rs) for k in rs[0]} for n, rs in runs.items()}
    for name, values in medians.items():
        print(f"{name:10} {values['wall']:6.2f} s wall {values['cpu']:6.2f} s CPU {values['peak'] / 1e6:7.0f} MB peak")
    machine = records.machine("polars", "duckdb")
    records.write(options.record, {"machine": machine, "file": os.path.basename(options.file), "medians": medians})


if __name__ == "__main__":
    main()
