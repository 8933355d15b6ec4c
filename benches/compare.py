"""Time and memory of counting with the functions of contestants.py: medians and ratios.

    python benches/compare.py [--rows N] [--rounds N] [--case CASE] [--without CONTESTANT] [--record FILE]

A case is a generated table of cases.py. A contestant is a function of contestants.py. Every run is a new process, so
that each run has its own peak memory. A round runs all contestants of all cases, so that other load on the machine
affects one round of several cases instead of all rounds of one case.

A process first counts a small table, so that imports are not measured. Then the process writes 256 bytes of free memory
per row, more than any fast contestant needs. Otherwise the first process that uses the memory would wait for the host
of a virtual machine. The process then counts three times, once cold and twice warm. The slow contestants (SLOW)
count once, and only in the first round. `extra` is the peak memory above the memory in use before the first
count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

import records
from footprint import current_memory, peak_memory, reset_peak, touch_memory

AGAIN = 2
"""The number of warm counts."""
TOUCHED = 256
"""Bytes of memory to write per row: more than any contestant needs, except those in SLOW."""
SLOW = ("reference", "bounded_reference", "pandas_groups")
"""The contestants that count once."""


def child(case, contestant, rows):
    """Make the table, count it, and print wall time, CPU time, peak, result, and the mean times of further counts."""
    import cases
    import contestants

    count = getattr(contestants, contestant)
    count(cases.make(case, 1000))
    table = cases.make(case, rows)
    touch_memory(TOUCHED * rows)
    reset_peak()
    before = current_memory()
    run = measured(count, table)
    run["extra"] = peak_memory() - before
    if contestant not in SLOW:
        runs = [measured(count, table) for _ in range(AGAIN)]
        if any(again["counted"] != run["counted"] for again in runs):
            raise SystemExit(f"{contestant} finds another result in its second or third count")
        run |= {f"{key}_again": statistics.mean(again[key] for again in runs) for key in ("wall", "cpu")}
    print(json.dumps(run))


def measured(count, table):
    """Return wall time, CPU time and result of one count."""
    before, started = time.process_time(), time.perf_counter()
    counted = count(table)
    return {"wall": time.perf_counter() - started, "cpu": time.process_time() - before, "counted": counted}


def main():
    import cases
    import contestants

    parser = records.parser(__doc__)
    parser.add_argument("--rows", type=int, default=cases.ROWS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", action="append", choices=cases.CASES)
    names = sorted({way.__name__ for case in cases.CASES for way in contestants.of(case)[1:]})
    parser.add_argument("--without", action="append", default=[], choices=names)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.rows)
        return
    ways = {
        case: [way for way in contestants.of(case) if way.__name__ not in options.without]
        for case in options.case or cases.CASES
    }
    runs = {(case, way.__name__): [] for case in ways for way in ways[case]}
    counted = {}
    for number in range(options.rounds):
        for case, name in runs:
            if name in SLOW and number > 0:
                continue
            print(f"round {number + 1} of {options.rounds}: {case}, {name}", file=sys.stderr)
            command = [sys.executable, __file__, "--rows", str(options.rows), "--child", case, name]
            run = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            check(counted, case, name, run.pop("counted"))
            runs[case, name].append(run)
    record = {
        "machine": records.machine("polars", "duckdb", "pyarrow", "pandas"),
        "rows": options.rows,
        "rounds": options.rounds,
        "cases": {
            case: compared(
                {way.__name__: runs[case, way.__name__] for way in all_ways},
                [way.__name__ for way in all_ways if way not in contestants.OURS],
            )
            for case, all_ways in ways.items()
        },
    }
    for case, comparison in record["cases"].items():
        show(case, options.rows, comparison)
    records.write(options.record, record)


def check(counted, case, name, found):
    """Exit if a contestant's result differs from that of the others."""
    if counted.setdefault(case, found) != found:
        raise SystemExit(f"{case}: {name} counts {found}, others {counted[case]}")


def compared(runs, peers):
    """Return the medians of each contestant and two ratios to this library's plain count.

    Each ratio is a time or memory over ours: of the best other library, and of this library with the number of users.
    There is none to a measure of zero, which a few rows can have.
    """
    medians = {
        name: {key: statistics.median(run[key] for run in all_runs) for key in all_runs[0]}
        for name, all_runs in runs.items()
    }
    ours = next(iter(medians.values()))
    with_users = next((found for name, found in medians.items() if name.endswith("with_users")), {})
    theirs = {key: [medians[peer][key] for peer in peers if key in medians[peer]] for key in ours}
    return {
        "medians": medians,
        "best_peer_over_core": {key: min(theirs[key]) / ours[key] for key in ours if theirs[key] and ours[key]},
        "with_users_over_core": {key: value / ours[key] for key, value in with_users.items() if ours[key]},
    }


def show(case, rows, comparison):
    """Print the results of one case."""
    ratios = (f"{key} {ratio:.1f}x" for key, ratio in comparison["best_peer_over_core"].items())
    print(f"\n{case}, {rows:,} rows; best peer over core:", *ratios)
    if "cpu_again" in comparison["with_users_over_core"]:
        print(f"  CPU again with the number of users: {comparison['with_users_over_core']['cpu_again']:.2f}x")
    for name, values in comparison["medians"].items():
        wall, cpu, extra = values["wall"], values["cpu"], values["extra"] / 1e6
        again = f"{values['wall_again']:11.2f} s wall again" if "wall_again" in values else ""
        print(f"  {name:18} {wall:7.2f} s wall {cpu:7.2f} s CPU {extra:8.0f} MB extra{again}")


if __name__ == "__main__":
    main()
