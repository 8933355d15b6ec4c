"""Time of the rounds of a stream with many items, in Rust (core) and in the reference, which loops over items."""

import json
import time

import numpy as np
import pytest

import records
from discreet import BinaryMechanism
from discreet.reference.binary_mechanism import BinaryTable
from discreet.reference.square_root import SquareRootTable
from discreet.streams import EpochMechanism, SquareRootMechanism
from discreet.theorems.fichtenberger2023 import factor
from stream_memory import KINDS, bytes_per_item

CASES = {
    "a million rounds, 10,000 items": (BinaryMechanism, 10**6, 10_000),
    "a thousand rounds, a million items": (BinaryMechanism, 1000, 1_000_000),
    "a thousand rounds, 10,000 items, by square roots": (SquareRootMechanism, 1000, 10_000),
    "a thousand rounds of a stream without end, 10,000 items": (EpochMechanism, 1000, 10_000),
}
EVENTS = 100


def batch(random, items):
    """Return the random events of one round."""
    return [[item] for item in random.integers(0, items, EVENTS).tolist()]


def prepared(case, who):
    """Return a function that runs one round of a stream in which all items have appeared."""
    kind, horizon, items = CASES[case]
    known = {} if kind is EpochMechanism else {"horizon": horizon}
    mechanism = kind.from_rho(rho=0.5, delta=1e-9, l0=1, **known)
    random = np.random.default_rng(1)
    everything = [[item] for item in range(items)]
    if who == "core":
        stream = mechanism.start()
        stream.step(everything)
        return lambda number: stream.step(batch(random, items), round=number)
    if kind is BinaryMechanism:
        table = BinaryTable(mechanism.sigma, 1)
    else:
        sigma = mechanism.deviation(1) if kind is EpochMechanism else mechanism.sigma
        table = SquareRootTable(factor(horizon), sigma, 1)
    table.step(1, everything, mechanism.threshold(1))
    return lambda number: table.step(number, batch(random, items), mechanism.threshold(number))


@pytest.mark.parametrize("who", ["core", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_rounds(benchmark, case, who):
    benchmark.group = case
    step, number = prepared(case, who), iter(range(500, 10**6))
    benchmark.pedantic(lambda: step(next(number)), rounds=16 if who == "core" else 2, warmup_rounds=1)


def main() -> None:
    """Measure the CPU time of core and reference in turn, in the middle of the stream, and print the record.

    The core computes the noise of eight rounds at a time, so a measurement covers eight rounds. The reference of the
    binary mechanism is measured with one round at a time.
    """
    options = records.parser(__doc__).parse_args()
    found = {}
    for case, (kind, horizon, _) in CASES.items():
        steps = {"core": (prepared(case, "core"), 8), "reference": (prepared(case, "reference"), 1)}
        if kind is not BinaryMechanism:
            steps["reference"] = (steps["reference"][0], 8)
        times: dict[str, list[float]] = {who: [] for who in steps}
        start = horizon * 6 // 80 * 8
        for number in range(start, start + 80, 8):
            for who, (step, rounds) in steps.items():
                begun = time.process_time()
                for after in range(rounds):
                    step(number + after)
                # The first rounds compute thresholds and nodes that later rounds share.
                if number >= start + 16:
                    times[who].append(1e3 * (time.process_time() - begun) / rounds)
        medians = {f"{who}_ms": round(float(np.median(values)), 3) for who, values in times.items()}
        found[case] = {**medians, "ratio": round(medians["reference_ms"] / medians["core_ms"], 1)}
    memory = {}
    for kind, horizon, items in (("BinaryMechanism", 1000, 10**6), ("SquareRootMechanism", 1000, 100_000)):
        mechanism = KINDS[kind].from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon)
        measured = round(bytes_per_item(kind, horizon, items), 1)
        memory[kind] = {"horizon": horizon, "bytes_per_item": measured, "planned": mechanism.item_bytes}
    record = {"machine": records.machine(), "events": EVENTS, "rounds": found, "memory": memory}
    print(json.dumps(record, indent=1))
    records.write(options.record, record)


if __name__ == "__main__":
    main()
