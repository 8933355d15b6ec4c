"""Rounds of a stream with many items: core, and the reference that goes from item to item."""

import json
import os
import platform
import time

import numpy as np
import pytest

from discreet import BinaryMechanism, SquareRootMechanism, __version__
from discreet.reference.binary_mechanism import BinaryTable
from discreet.reference.square_root import SquareRootTable
from discreet.theorems.fichtenberger2023 import factor

CASES = {
    "a million rounds, 10,000 items": (BinaryMechanism, 10**6, 10_000),
    "a thousand rounds, a million items": (BinaryMechanism, 1000, 1_000_000),
    "a thousand rounds, 10,000 items, by square roots": (SquareRootMechanism, 1000, 10_000),
}
EVENTS = 100


def batch(random, items):
    return [[item] for item in random.integers(0, items, EVENTS).tolist()]


def prepared(case, who):
    """A stream in which all items have been seen, and what makes a further round of it."""
    kind, horizon, items = CASES[case]
    mechanism = kind.from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon)
    random = np.random.default_rng(1)
    everything = [[item] for item in range(items)]
    if who == "core":
        stream = mechanism.start()
        stream.step(everything)
        return lambda number: stream.step(batch(random, items), round=number)
    tree = kind is BinaryMechanism
    table = BinaryTable(mechanism.sigma, 1) if tree else SquareRootTable(factor(horizon), mechanism.sigma, 1)
    table.step(1, everything, mechanism.threshold(1))
    return lambda number: table.step(number, batch(random, items), mechanism.threshold(number))


@pytest.mark.parametrize("who", ["core", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_rounds(benchmark, case, who):
    benchmark.group = case
    step, number = prepared(case, who), iter(range(500, 10**6))
    benchmark.pedantic(lambda: step(next(number)), rounds=16 if who == "core" else 2, warmup_rounds=1)


@pytest.mark.parametrize("case", CASES)
def test_memory_stays_within_the_plan(case):
    horizon, items = CASES[case]
    mechanism = BinaryMechanism.from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon)
    stream = mechanism.start()
    stream.step([[item] for item in range(items)])
    last = 511
    for number in range(500, last + 1):
        stream.step([], round=number)
    # Labels and their index apart, everything kept for an item is a number in an array.
    kept = stream._counts.nbytes + stream._sums._sums.nbytes + items * (32 + 64)
    assert kept <= 8 * mechanism.words * items


def main() -> None:
    """Both in turn, in the middle of the stream, by CPU time; prints the record of a row."""
    found = {}
    for case, (_, horizon, _) in CASES.items():
        ours, theirs = prepared(case, "core"), prepared(case, "reference")
        times = {"core": [], "reference": []}
        start = horizon * 6 // 10
        for number in range(start, start + 48):
            for who, step in (("core", ours), ("reference", theirs)):
                if who == "reference" and number % 8:
                    continue
                begun = time.process_time()
                step(number)
                # The first rounds make thresholds and nodes that later ones share.
                if number >= start + 16:
                    times[who].append(1e3 * (time.process_time() - begun))
        medians = {f"{who}_ms": round(float(np.median(values)), 3) for who, values in times.items()}
        found[case] = {**medians, "ratio": round(medians["reference_ms"] / medians["core_ms"], 1)}
    machine = {"cores": os.cpu_count(), "arch": platform.machine(), "python": platform.python_version()}
    machine |= {"discreet": __version__, "numpy": np.__version__}
    print(json.dumps({"machine": machine, "events": EVENTS, "rounds": found}, indent=1))


if __name__ == "__main__":
    main()
