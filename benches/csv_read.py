"""Time from a CSV file to exact counts, with discreet's reader and with DuckDB's readers.

    python benches/csv_read.py [--file FILE] [--megabytes N] [--rounds N] [--record FILE]

A measurement is the wall time and CPU time of a whole process. Unless --file is given, Python's csv module writes the
file, with quotes in some cells. Each round runs all programs on the plain file, and then on the file compressed with
gzip.

- `discreet` reads and counts with discreet.
- `splitting` reads with discreet's reader. DuckDB receives both columns and only counts their cells that are not NULL.
- `duckdb_parallel` and `duckdb_serial` read with DuckDB, and discreet counts. The parallel reader guesses where records
  begin, so it is not exact for every file.
"""

import csv
import gzip
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import records

OURS = """
import sys, discreet
from discreet.engines import local
print(len(local.histogram(local.Table(sys.argv[1], user="user", item="page"))[1]))
"""
SPLITTING = """
import sys, duckdb
from discreet.engines import local
scanned = local.scan([sys.argv[1]], ["user", "page"])
class Stream:
    def __arrow_c_stream__(self, schema=None): return scanned.__arrow_c_stream__()
connection = duckdb.connect()
connection.execute('SET enable_progress_bar = false')
connection.register("given", Stream())
connection.execute('SELECT count("user"), count(page) FROM given').fetchall()
print(0)
"""
DUCKDB = """
import sys, duckdb
from discreet.engines import local
duckdb.sql('SET enable_progress_bar = false')
rows = duckdb.sql(f"SELECT user, page FROM read_csv('{{sys.argv[1]}}', all_varchar = true, auto_detect = false, "
    "header = true, columns = {{'user': 'VARCHAR', 'page': 'VARCHAR', 'note': 'VARCHAR'}}, delim = ',', quote = '\\"', "
    "escape = '\\"', ignore_errors = true, strict_mode = false, parallel = {parallel})")
print(len(local.histogram(local.Table(rows.to_arrow_reader(), user="user", item="page"))[1]))
"""


EXACT = ("discreet", "duckdb_serial")
"""The programs that must find the same number of items."""


def make(path, size):
    """Write a file of about `size` bytes."""
    choose = random.Random(7)
    pages = [f"page/{choose.randrange(10**6)}" for _ in range(50_000)] + ['say "hi"', "a, b"]
    notes = ["", "seen", 'they said "no", twice', "line\nbreak", "mobile app"]

    def row():
        page = min(int(choose.paretovariate(0.6)), len(pages) - 1)
        return f"u{choose.randrange(3_000_000)}", pages[page], choose.choice(notes)

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "page", "note"])
        while file.tell() < size:
            writer.writerows(row() for _ in range(20_000))


def measure(program, path):
    """Run a program on a file; return its times and output."""
    started, before = time.perf_counter(), os.times()
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": time.perf_counter() - started, "cpu": cpu, "found": done.stdout}


def main():
    parser = records.parser(__doc__)
    parser.add_argument(
        "--file", type=Path, help="read this file, and the file of this name with .gz, instead of a generated file"
    )
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    programs = {"discreet": OURS, "splitting": SPLITTING}
    programs |= {f"duckdb_{name}": DUCKDB.format(parallel=value) for name, value in
                    (("parallel", "true"), ("serial", "false"))}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        plain = options.file or Path(folder) / "log.csv"
        compressed = plain.with_name(plain.name + ".gz")
        if options.file is None:
            make(plain, options.megabytes * 1e6)
            with plain.open("rb") as given, gzip.open(compressed, "wb", 1) as made:
                shutil.copyfileobj(given, made, 1 << 20)
        size = plain.stat().st_size
        runs = {(form, name): [] for form in ("plain", "gzip") for name in programs}
        for _ in range(options.rounds):
            for form, name in runs:
                runs[form, name].append(measure(programs[name], plain if form == "plain" else compressed))
    # The parallel scan may be inexact; that must not stop the benchmark.
    exact = {run["found"] for (_, name), done in runs.items() if name in EXACT for run in done}
    if len(exact) > 1:
        raise SystemExit("the exact readers find different numbers of items")
    medians = {}
    for (form, name), all_runs in runs.items():
        found = {key: statistics.median(run[key] for run in all_runs) for key in ("wall", "cpu")}
        found["megabytes_per_second"] = size / found["wall"] / 1e6
        medians.setdefault(form, {})[name] = found
        print(f"{form:6} {name:16} {found['wall']:6.2f} s wall {found['cpu']:6.2f} s CPU "
              f"{found['megabytes_per_second']:6.0f} MB/s")  # fmt: skip
    records.write(options.record, {"machine": records.machine("duckdb"), "bytes": size, "medians": medians})


if __name__ == "__main__":
    main()
