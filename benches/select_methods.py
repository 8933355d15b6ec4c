"""Number of items that `select` releases with each method, and the method that `auto` chooses.

    python benches/select_methods.py FILE [--rounds N] [--record FILE]

FILE is a Parquet file with the columns user and item. Each l0 is tested on two tables. In the table "long" every user
has all items. In the table "short" every user keeps at most l0 random items.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np

import discreet as dp
import records

DELTA = 1e-6
PROMISES = [{"epsilon": 0.5}, {"epsilon": 1.0}, {"epsilon": 3.0}, {"rho": 0.01}, {"rho": 0.1}, {"rho": 1.0}]
LIMITS = [1, 2, 3, 4, 10, 100]
METHODS = ["threshold", "weighted_gaussian", "policy_gaussian", "dp_sips", "auto"]
CUT = """SELECT u AS "user", i AS item FROM (
    SELECT u, i, row_number() OVER (PARTITION BY u ORDER BY hash(u, i)) AS place
    FROM (SELECT DISTINCT "user" AS u, item AS i FROM '{path}')) WHERE place <= {l0}"""


def main():
    parser = records.parser(__doc__)
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    columns, tables = {"user": "user", "item": "item"}, []
    for l0 in LIMITS:
        few = duckdb.sql(CUT.format(path=arguments.file, l0=l0)).to_arrow_table()
        for lists, data in (("long", arguments.file), ("short", few)):
            for promise in PROMISES:
                named = {}
                for method in METHODS:
                    parameters = {**columns, **promise, "delta": DELTA, "l0": l0, "method": method}
                    runs = [dp.select(data, **parameters) for _ in range(arguments.rounds)]
                    named[method] = float(np.mean([len(run) for run in runs]))
                taken = runs[0].notes[0].partition(" was chosen")[0]
                tables.append({**promise, "l0": l0, "lists": lists, "auto": taken, "items": named})
                print(promise, l0, lists, taken, {name: round(items) for name, items in named.items()}, flush=True)
    record = {
        "machine": records.machine(),
        "benchmark": "benches/select_methods.py",
        "table": Path(arguments.file).stem,
        "delta": DELTA,
        "rounds": arguments.rounds,
        "tables": tables,
    }
    records.write(arguments.record, record)


if __name__ == "__main__":
    main()
