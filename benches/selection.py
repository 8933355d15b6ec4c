"""Time of partition selection and thresholds on ten million items, and of the largest of ten times as many counts.

    python benches/selection.py [--rounds N] [--record FILE]

This library and numpy take turns, and so do the optimal selection for a rho and a Gaussian threshold, whose CPU times
are measured. The script prints median times and their ratio. `test_selection.py` has the same functions as separate
benchmarks.
"""

import statistics
import time
from functools import partial

import numpy as np

import records
import test_selection as contestants
from discreet import OptimalSelection, _core


def main():
    parser = records.parser(__doc__)
    parser.add_argument("--items", type=int, default=contestants.ITEMS)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    counts, rng = contestants.made(options.items), np.random.default_rng(1)
    chances = OptimalSelection(epsilon=contestants.EPSILON, delta=contestants.DELTA).chances
    rule = _core.Threshold.for_chance(_core.Noise.discrete_gaussian(10.0), 1, 1e-6)
    labels, many = contestants.labelled(10 * options.items)
    table = contestants.histogram(counts)
    mechanisms = {who: make() for who, make in contestants.MAKERS.items()}
    ways = {
        "partition_selection": {
            "core": lambda: _core.partition_selection(counts, chances),
            "numpy": lambda: contestants.numpy_selection(counts, rng),
        },
        "threshold": {
            "core": lambda: rule.release(counts),
            "numpy": lambda: contestants.numpy_threshold(counts, rule.value, rng),
        },
        "top": {
            "core": lambda: _core.top(labels, many, contestants.LARGEST),
            "numpy": lambda: contestants.numpy_top(many),
        },
        "construction": {who: partial(contestants.constructed, who) for who in contestants.MAKERS},
        "release": {who: partial(made.release, table) for who, made in mechanisms.items()},
    }
    record = {
        "machine": records.machine(),
        "items": options.items,
        "items_of_top": len(many),
        "rounds": options.rounds,
        "cases": {},
        "for_rho": {},
    }
    for case, both in ways.items():
        seconds = {name: [] for name in both}
        clock = time.perf_counter if "core" in both else time.process_time
        for number in range(options.rounds + 1):
            for name, way in both.items():
                started = clock()
                way()
                # The first run of each function is left out, because it allocates pages and builds tables.
                seconds[name] += [clock() - started] if number else []
        medians = {name: statistics.median(all_runs) for name, all_runs in seconds.items()}
        ours, other = medians
        ratio = medians[other] / medians[ours]
        record["cases" if ours == "core" else "for_rho"][case] = {
            "median_seconds": medians,
            f"{other}_over_{ours}": ratio,
        }
        times = ", ".join(f"{name} {1e3 * median:.1f} ms" for name, median in medians.items())
        print(f"{case}: {times}; {ratio:.3g} times")
    records.write(options.record, record)


if __name__ == "__main__":
    main()
