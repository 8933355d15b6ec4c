"""Time and peak memory of counting a Parquet file of string pairs that exceeds the memory limit.

    python benches/memory.py [--rows N] [--items few|many] [--memory SIZE] [--folder DIR] [--record FILE]

Every run is a new process. A contestant is a function of this file that counts: discreet with the limit, without a
limit, and with only the largest counts, and DuckDB with the limit. `extra` is the peak memory above the memory in use
after the imports. The complete histograms must be identical.
"""

import argparse
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import records
from footprint import current_memory, peak_memory, reset_peak

CHUNK = 10_000_000


def write(path, rows, items):
    """Write a Parquet file of random users and items.

    There are as many user names as rows, up to ten million. If `items` is "few", there are at most 100,000 item names.
    Otherwise there are as many item names as user names.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from cases import words, zipf

    many = min(rows, CHUNK)
    names = words(np.arange(many), 1)
    random = np.random.default_rng(7)
    writer = None
    for start in range(0, rows, CHUNK):
        size = min(CHUNK, rows - start)
        codes = zipf(random, size, min(many, 100_000)) if items == "few" else random.integers(0, many, size)
        users = names.take(pa.array(random.integers(0, many, size)))
        table = pa.table({"u": users, "i": names.take(pa.array(codes))})
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False)
        writer.write_table(table, row_group_size=1 << 20)
    writer.close()


def digest(labels, counts):
    """Return a hash of all items and counts in their given order."""
    made = hashlib.sha256(counts.astype("<i8").tobytes())
    for label in labels:
        made.update(label.encode() + b"\0")
    return made.hexdigest()


def core(path, memory):
    """Count with discreet under the limit, and return a function that computes the digest of the histogram."""
    import numpy as np

    from discreet import _core
    from discreet.engines import local

    labels, counts, _ = local.histogram(local.Table(path, user="u", item="i", memory=memory))

    def check():
        rows = _core.top(labels, counts, len(counts))
        batches = (labels.take(part) for part in np.array_split(rows, len(rows) // 10**6 + 1))
        return digest((label for batch in batches for label in batch), counts[rows])

    return check


def unlimited(path, memory):
    """Count with discreet under a limit of 1 TB."""
    return core(path, "1TB")


def top_only(path, memory):
    """Count with discreet under the limit, but return only the 10,001 largest counts, as for a release."""
    from discreet.engines import local

    local.histogram(local.Table(path, user="u", item="i", memory=memory), limit=10_001)
    return lambda: None


def duckdb(path, memory):
    """Count with DuckDB under the limit, and return a function that computes the digest of the histogram."""
    import duckdb

    folder = str(Path(path).parent / "duckdb")
    connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": folder})
    connection.execute("SET preserve_insertion_order = false")
    sql = f"SELECT i, count(*) AS n FROM (SELECT DISTINCT u, i FROM read_parquet('{path}')) GROUP BY i"
    found = connection.sql(sql).to_arrow_table()
    return lambda: digest_of_table(found)


def digest_of_table(found):
    """Return the digest of DuckDB's result. Arrow sorts text by its bytes, as `_core.top` does."""
    found = found.sort_by([("n", "descending"), ("i", "ascending")])
    return digest(found["i"].to_pylist(), found["n"].to_numpy())


def child(name, path, memory):
    """Run one contestant and print its figures."""
    if name == "duckdb":
        # DuckDB needs both modules to return an Arrow table.
        for module in ("duckdb", "pyarrow"):
            importlib.import_module(module)
    else:
        from discreet.engines import local

        local.connect()
    reset_peak()
    before = current_memory()
    start, cpu = time.perf_counter(), time.process_time()
    check = globals()[name](path, memory)
    wall, cpu, extra = time.perf_counter() - start, time.process_time() - cpu, peak_memory() - before
    print(json.dumps({"wall": wall, "cpu": cpu, "extra": extra, "digest": check()}))


def main():
    parser = records.parser(__doc__)
    parser.add_argument("--rows", type=int, default=CHUNK)
    parser.add_argument("--items", choices=["few", "many"], default="few")
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--only", action="append")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.memory)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = os.path.join(folder, "rows.parquet")
        write(path, options.rows, options.items)
        runs = {}
        for name in options.only or ["core", "top_only", "unlimited", "duckdb"]:
            command = [sys.executable, __file__, "--memory", options.memory, "--child", name, path]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{name:10} failed: {done.stderr.strip().splitlines()[-1]}")
                continue
            runs[name] = run = json.loads(done.stdout)
            print(f"{name:10} {run['wall']:7.1f} s wall {run['cpu']:7.1f} s CPU {run['extra'] / 2**20:8.0f} MiB extra")
            sys.stdout.flush()
    if len({run.pop("digest") for run in runs.values()} - {None}) > 1:
        raise SystemExit("the contestants disagree")
    if options.record:
        given = {"rows": options.rows, "items": options.items, "memory": options.memory}
        known = json.loads(Path(options.record).read_text()) if Path(options.record).exists() else {"cases": []}
        record = {
            "machine": records.machine("duckdb", "pyarrow"),
            "cases": [*known["cases"], {**given, "runs": runs}],
        }
        records.write(options.record, record)


if __name__ == "__main__":
    main()
