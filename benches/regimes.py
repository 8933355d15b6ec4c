"""Whether equal calls of calibrated counts release by the same method.

    python benches/regimes.py --data FOLDER [--runs N] [--set NAME ...] [--record FILE]

Calibrated counts release the counts of small tables by confirming alone, and estimate rarer items of larger ones. Each
setting is a table and a rho. The tables are samples by user of public ones in FOLDER, and the months of the retail set.
A setting flips if equal calls take different ways, and the largest number of released items is at least 1.4 times the
smallest. delta is 1e-6.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import discreet as dp
import records
from discreet.engines import local
from discreet.testing import seeded_rng

DELTA = 1e-6
RHOS = (0.1, 0.25, 0.5)
FLIP = 1.4
SETS = {
    "online_retail_events": (500, 1_000, 1_400, 2_000, 3_000),
    "ubuntu_irc_words": (500, 1_000, 2_000, 3_000),
    "wiki_intros_words": (500, 1_000, 2_000, 3_000),
    "askreddit_1pct_words": (500, 1_000, 2_000),
    "tiny_retail_500": (500,),
}
"""The numbers of users of the samples of each set."""
MONTHS = "online_retail_events"


def rows_of(path, part="''"):
    """Return the users, the items and the parts of all rows, as numbers, and the names of the parts."""
    query = f"""
        SELECT DISTINCT dense_rank() OVER (ORDER BY "user") AS u, dense_rank() OVER (ORDER BY item) AS i, {part} AS part
        FROM '{path}' WHERE "user" IS NOT NULL AND item IS NOT NULL ORDER BY u, i, part
    """
    found = local.connect().execute(query).fetchnumpy()
    names, parts = np.unique(np.array(found["part"], str), return_inverse=True)
    return np.array(found["u"]), np.array(found["i"]), parts, names


def tables(folder, names):
    """Yield the name and the rows of each table."""
    for name, sizes in SETS.items():
        path = folder / f"{name}.parquet"
        if path.exists() and name in names:
            users, items, *_ = rows_of(path)
            order = np.random.default_rng(1).permutation(users.max() + 1)
            for size in sizes:
                present = np.unique(users)
                kept = np.isin(users, present[np.argsort(order[present])[:size]])
                yield f"{name}, {size:,} users", {"user": users[kept], "item": items[kept]}
    path = folder / f"{MONTHS}.parquet"
    if path.exists() and "months" in names:
        users, items, parts, months = rows_of(path, "strftime(ts, '%Y-%m')")
        for number, month in enumerate(months):
            kept = parts == number
            yield f"{MONTHS}, {month}", {"user": users[kept], "item": items[kept]}


def measured(rows, rho, runs):
    """Return the smallest and the largest number of released items, how many releases have estimates, and the flip."""
    table = dp.Table(rows, user="user", item="item").read()
    mechanism = dp.CalibratedCounts(rho=rho, delta=DELTA)
    found = [mechanism.release(table, rng=seeded_rng(seed)) for seed in range(runs)]
    items = [len(release) for release in found]
    estimated = sum("estimated" in release.methods for release in found)
    flips = 0 < estimated < runs and max(items) >= FLIP * max(min(items), 1)
    return {"least": min(items), "most": max(items), "estimated": estimated, "flips": flips}


def main():
    options = records.parser(__doc__)
    options.add_argument("--data", type=Path, required=True, help="a folder of Parquet files")
    options.add_argument("--runs", type=int, default=12)
    options.add_argument("--set", action="append", choices=[*SETS, "months"], help="only this set; may be repeated")
    given = options.parse_args()
    record = {"machine": records.machine(), "delta": DELTA, "runs": given.runs, "settings": {}}
    for name, rows in tables(given.data, given.set or [*SETS, "months"]):
        for rho in RHOS:
            row = record["settings"][f"{name}, rho {rho:g}"] = measured(rows, rho, given.runs)
            note = "  FLIPS" if row["flips"] else ""
            print(
                f"{name:<38} rho {rho:<5} items {row['least']:>5,} to {row['most']:>5,}  estimated in "
                f"{row['estimated']:>2} of {given.runs}{note}",
                flush=True,
            )
    flips = [row["flips"] for row in record["settings"].values()]
    print(f"{sum(flips)} of {len(flips)} settings flip")
    records.write(given.record, record)


if __name__ == "__main__":
    main()
