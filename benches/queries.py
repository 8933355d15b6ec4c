"""Largest errors of every method of `answer_queries`, expected and measured over many releases.

    python benches/queries.py [--record FILE]

The true answers are zero, so the released answers are the errors. "best" is the method with the smallest mean error.
"auto" is the method that discreet chooses from public parameters alone.
"""

from __future__ import annotations

import numpy as np

import records
from discreet.errors import ParameterError
from discreet.queries.choose import ANSWER_METHODS, plan_answers

PROMISES = [{"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.5, "delta": 1e-6}]
RUNS = {10: 1000, 100: 1000, 1000: 1000, 10_000: 1000, 100_000: 60, 1_000_000: 20}
FEW = {"gumbel_correction": 4, "iterative_sparse_vector": 4}
"""Divisors of the number of releases for slow methods."""


def measure(name, k, promise, runs):
    """Return the expected and the measured largest errors of one method."""
    kind = ANSWER_METHODS[name]
    try:
        mechanism = kind.from_rho(k=k, **promise) if "rho" in promise else kind.from_epsilon(k=k, **promise)
    except ParameterError as error:
        return {"refused": str(error)}
    values = np.zeros(k, np.int64)
    errors = [int(np.abs(mechanism.release(values).values).max()) for _ in range(runs)]
    return {
        "expected": mechanism.expected_error,
        "mean": float(np.mean(errors)),
        "standard_error": float(np.std(errors) / np.sqrt(runs)),
        "largest": max(errors),
        "bound": mechanism.error_bound,
        "bound_chance": mechanism.bound_chance,
        "runs": runs,
    }


def main():
    parser = records.parser(__doc__)
    arguments = parser.parse_args()
    tables = []
    for promise in PROMISES:
        for k, runs in RUNS.items():
            # Under zCDP bounded noise is a truncated Gaussian, and finding its parameters is slow.
            skipped = "rho" in promise and k > 1000
            row = {
                name: measure(name, k, promise, max(3, runs // (FEW.get(name, 1) if k > 100 else 1)))
                for name in ANSWER_METHODS
                if not (skipped and name == "bounded")
            }
            best = min(row, key=lambda name: row[name].get("mean", np.inf))
            auto = plan_answers(k=k, **promise).methods[0][0]
            tables.append({**promise, "k": k, "best": best, "auto": auto, "methods": row})
            print(
                promise, k, best, auto, {name: round(cell.get("mean", -1), 1) for name, cell in row.items()}, flush=True
            )
    record = {
        "machine": records.machine(),
        "benchmark": "benches/queries.py",
        "tables": tables,
    }
    records.write(arguments.record, record)


if __name__ == "__main__":
    main()
