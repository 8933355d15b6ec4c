"""Rounds of a stream with many items: core, and the reference that goes from item to item."""

import time

import numpy as np
import pytest

from discreet import BinaryMechanism
from discreet.reference.binary_mechanism import BinaryTable

CASES = {"a million rounds, 10,000 items": (10**6, 10_000), "a thousand rounds, a million items": (1000, 1_000_000)}
EVENTS = 100


def batch(random, items):
    return [[item] for item in random.integers(0, items, EVENTS).tolist()]


def prepared(case, who):
    """A stream in which all items have been seen, and what makes a further round of it."""
    horizon, items = CASES[case]
    mechanism = BinaryMechanism.from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon)
    random = np.random.default_rng(1)
    everything = [[item] for item in range(items)]
    if who == "core":
        stream = mechanism.start()
        stream.step(everything)
        return lambda number: stream.step(batch(random, items), round=number)
    table = BinaryTable(mechanism.sigma, 1)
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


if __name__ == "__main__":
    for case in CASES:
        ours, theirs = prepared(case, "core"), prepared(case, "reference")
        times = {"core": [], "reference": []}
        for number in range(500, 516):
            for who, step in (("core", ours), ("reference", theirs)):
                if who == "reference" and number % 4:
                    continue
                begun = time.process_time()
                step(number)
                times[who].append(time.process_time() - begun)
        median = {who: float(np.median(values)) for who, values in times.items()}
        print(
            case,
            {who: f"{1e3 * value:.3g} ms" for who, value in median.items()},
            f"{median['reference'] / median['core']:.0f}x",
        )
