"""Time and memory of `discreet count` on Parquet files of up to a billion rows, beside DuckDB with the same limit.

    python benches/scale.py [--rows N ...] [--memory SIZE] [--record FILE]

The users are 20 million random integers, drawn uniformly, and the items 10 million random integers, drawn by Zipf's
law. `discreet` makes a release, without a bound and with l0 = 10. DuckDB counts the distinct users of each item, and
writes only the number of items. A measurement is the wall time, CPU time and peak memory of a whole process. Each size
is run once. A billion rows (`--rows 1000000000`) need 7 GB of disk for the file, and more for the rows that spill.
Figures of other sizes in the record stay.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import records
from file_to_release import TOUCH, measure

USERS, ITEMS = 20_000_000, 10_000_000
CHUNK = 10_000_000
DUCKDB = """import duckdb
db = duckdb.connect(config={{"memory_limit": {memory!r}, "temp_directory": {folder!r}}})
db.sql("SET enable_progress_bar = false; SET preserve_insertion_order = false")
db.sql("SET max_temp_directory_size = '200GB'")
print(db.sql("SELECT count(*) FROM ({query})").fetchall()[0][0])
"""
QUERY = "SELECT item, count(*) FROM (SELECT DISTINCT * FROM read_parquet('{file}')) GROUP BY item"
WRITE = "import sys, scale; scale.write(sys.argv[1], int(sys.argv[2]))"


def write(path, rows):
    """Write a Parquet file of random rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    users = np.random.default_rng(1).integers(0, 2**63, USERS)
    items = np.random.default_rng(2).integers(0, 2**63, ITEMS)
    weights = np.cumsum(1.0 / np.arange(1, ITEMS + 1))
    random = np.random.default_rng(3)
    schema = pa.schema({"user": pa.int64(), "item": pa.int64()})
    with pq.ParquetWriter(path, schema, compression="snappy", use_dictionary=False) as writer:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            # Equal numbers are drawn in order, so that the search reads memory in order.
            ranks = np.searchsorted(weights, np.sort(random.random(size)) * weights[-1])
            random.shuffle(ranks)
            columns = [users[random.integers(0, USERS, size)], items[ranks]]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=1 << 20)


def contestants(file, memory, folder):
    """Return the commands by name."""
    count = [sys.executable, "-m", "discreet", "count", file, "--user", "user", "--item", "item"]
    count += ["--rho", "1", "--delta", "1e-9", "--memory", memory, "-q"]
    code = DUCKDB.format(memory=memory, folder=folder, query=QUERY.format(file=file))
    return {"discreet": count, "discreet, l0=10": [*count, "--l0", "10"], "duckdb": [sys.executable, "-c", code]}


def main():
    parser = records.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--folder", help="where the files are made (default: the folder of temporary files)")
    options = parser.parse_args()
    record = {"machine": records.machine("duckdb", "pyarrow"), "memory": options.memory, "rows": {}}
    if options.record and Path(options.record).exists():
        record["rows"] = json.loads(Path(options.record).read_text("utf-8"))["rows"]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for rows in options.rows:
            file = str(Path(folder) / "log.parquet")
            # In another process, because the peak memory of a contestant is at least that of this process.
            subprocess.run([sys.executable, "-c", WRITE, file, str(rows)], cwd=Path(__file__).parent, check=True)
            found = {}
            for name, command in contestants(file, options.memory, folder).items():
                if rows <= 10**8:
                    subprocess.run([sys.executable, "-c", TOUCH, file], cwd=Path(__file__).parent, check=True)
                run = measure(command)
                found[name] = {figure: run[figure] for figure in ("wall", "cpu", "peak")}
                print(
                    f"{rows:>13,} {name:16} {run['wall']:7.2f} s wall {run['cpu']:7.2f} s CPU "
                    f"{run['peak'] / 1e6:7.0f} MB peak",
                    flush=True,
                )
            record["rows"][str(rows)] = found
    records.write(options.record, record)


if __name__ == "__main__":
    main()
