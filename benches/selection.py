"""Decides on ten million items by core and by numpy in turn and prints medians and ratios.

    python benches/selection.py [--rounds N] [--record FILE]

`test_selection.py` has the same contestants, one after the other.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

import test_selection as contestants
from compare import machine
from discreet import OptimalSelection, _core


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=contestants.ITEMS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--record")
    options = parser.parse_args()
    counts, rng = contestants.made(options.items), np.random.default_rng(1)
    chances = OptimalSelection(epsilon=contestants.EPSILON, delta=contestants.DELTA).chances
    rule = _core.Threshold.for_chance(_core.Noise.discrete_gaussian(10.0), 1, 1e-6)
    ways = {
        "partition_selection": {
            "core": lambda: _core.partition_selection(counts, chances),
            "numpy": lambda: contestants.numpy_selection(counts, rng),
        },
        "threshold": {
            "core": lambda: rule.release(counts),
            "numpy": lambda: contestants.numpy_threshold(counts, rule.value, rng),
        },
    }
    record = {"machine": machine(), "items": options.items, "rounds": options.rounds, "cases": {}}
    for case, both in ways.items():
        seconds = {name: [] for name in both}
        for number in range(options.rounds + 1):
            for name, way in both.items():
                started = time.perf_counter()
                way()
                # The first of each makes pages and tables.
                seconds[name] += [time.perf_counter() - started] if number else []
        medians = {name: statistics.median(all_runs) for name, all_runs in seconds.items()}
        ratio = medians["numpy"] / medians["core"]
        record["cases"][case] = {"median_seconds": medians, "numpy_over_core": ratio}
        told = ", ".join(f"{name} {1e3 * median:.1f} ms" for name, median in medians.items())
        print(f"{case}, {options.items:,} items: {told}; {ratio:.{0 if ratio > 10 else 1}f} times")
    if options.record:
        Path(options.record).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
