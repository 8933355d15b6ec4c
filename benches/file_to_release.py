"""Time and memory of `discreet count` on a Parquet file, compared with queries that only count.

    python benches/file_to_release.py FILE [--user U] [--item I] [--rounds N] [--record FILE]

A contestant is `discreet count`, or a program with one query of polars or DuckDB. A measurement is the wall time, CPU
time and peak memory of a whole process. Each round runs all contestants. DuckDB returns numpy arrays, because to
import pyarrow takes as long as to make the arrays. Free memory is written before each run, so that no contestant waits
for the host of a virtual machine.
"""

import os
import statistics
import subprocess
import sys
import time

import records

TOUCH = "import sys, footprint, pyarrow.parquet as parquet; rows = parquet.read_metadata(sys.argv[1]).num_rows; "
TOUCH += "footprint.touch_memory(500_000_000 + 96 * rows)"
"""Writes more memory than any contestant needed for the file of the record."""

POLARS = "import polars as pl; rows = pl.scan_parquet({file!r}); print(len({query}.collect(engine={engine!r})))"
DUCKDB = "import duckdb; duckdb.sql('SET enable_progress_bar = false'); rows = duckdb.read_parquet({file!r}); "
DUCKDB += "print(len(duckdb.sql({sql!r}).fetchnumpy()['n']))"


def peers(file, user, item):
    """Return Python programs by name. A program runs one query and prints the number of items."""
    n_unique = f"rows.group_by({item!r}).agg(pl.col({user!r}).n_unique())"
    unique = f"rows.select({user!r}, {item!r}).unique().group_by({item!r}).len()"
    u, i = ('"' + name.replace('"', '""') + '"' for name in (user, item))
    distinct = f"SELECT {i}, count(DISTINCT {u}) AS n FROM rows GROUP BY 1"
    subquery = f"SELECT {i}, count(*) AS n FROM (SELECT DISTINCT {u}, {i} FROM rows) GROUP BY 1"
    return {
        "polars_n_unique": POLARS.format(file=file, query=n_unique, engine="auto"),
        "polars_streaming": POLARS.format(file=file, query=n_unique, engine="streaming"),
        "polars_unique": POLARS.format(file=file, query=unique, engine="auto"),
        "duckdb_distinct": DUCKDB.format(file=file, sql=distinct),
        "duckdb_subquery": DUCKDB.format(file=file, sql=subquery),
    }


def measure(command):
    """Run a command, and return its times, peak memory and output."""
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
        "out": out,
    }


def main():
    parser = records.parser(__doc__)
    parser.add_argument("file")
    parser.add_argument("--user", default="user")
    parser.add_argument("--item", default="item")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    budget = ["--rho", "1", "--delta", "1e-6"]
    columns = ["--user", options.user, "--item", options.item]
    contestants = {"discreet": [sys.executable, "-m", "discreet", "count", options.file, *columns, *budget]}
    queries = peers(options.file, options.user, options.item)
    contestants |= {name: [sys.executable, "-c", query] for name, query in queries.items()}
    touch = [sys.executable, "-c", TOUCH, os.path.abspath(options.file)]
    runs = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, command in contestants.items():
            # The memory is written in another process, so that a contestant's peak does not include the memory.
            subprocess.run(touch, cwd=os.path.dirname(__file__), check=True)
            runs[name].append(measure(command))
    if len({run["out"] for name in queries for run in runs[name]}) > 1:
        raise SystemExit("the queries find different numbers of items")
    figures = ("wall", "cpu", "peak")
    medians = {n: {k: statistics.median(r[k] for r in rs) for k in figures} for n, rs in runs.items()}
    for name, values in medians.items():
        print(f"{name:16} {values['wall']:6.2f} s wall {values['cpu']:6.2f} s CPU {values['peak'] / 1e6:7.0f} MB peak")
    machine = records.machine("polars", "duckdb")
    records.write(options.record, {"machine": machine, "file": os.path.basename(options.file), "medians": medians})


if __name__ == "__main__":
    main()
