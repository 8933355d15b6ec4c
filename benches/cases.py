"""Generated tables for the counting benchmarks: integers and strings, sparse and dense, with duplicates."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa

ROWS = int(os.environ.get("DISCREET_BENCH_ROWS", "10_000_000"))


def zipf(random, rows, ranks):
    """Return ranks with probability proportional to one over the rank."""
    weights = np.cumsum(1.0 / np.arange(1, ranks + 1))
    return np.searchsorted(weights, random.random(rows) * weights[-1])


def sparse(codes, seed):
    """Return random 64-bit identifiers in place of small integers; equal integers have equal identifiers."""
    names = np.random.default_rng(seed).integers(0, 2**63, codes.max() + 1)
    return names[codes]


def words(codes, seed):
    """Return random strings of 10 to 20 bytes in place of small integers; equal integers have equal strings."""
    random = np.random.default_rng(seed)
    count = int(codes.max()) + 1
    lengths = random.integers(10, 21, count)
    letters = random.integers(97, 123, int(lengths.sum()), dtype=np.uint8)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    names = pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    return names.take(pa.array(codes))


BOUNDED = ", ten items a user"
"""The suffix of cases in which each user counts for at most ten items."""


SUMMED = ", values summed"
"""The suffix of cases in which the values of a user for an item are added up and clipped."""


def make(case: str, rows: int = ROWS) -> pa.Table:
    """Return a table with the columns u and i, and v if values are summed."""
    if case.endswith(SUMMED):
        table = make(case.removesuffix(SUMMED), rows)
        return table.append_column("v", pa.array(np.random.default_rng(8).integers(0, 10, rows).astype(float)))
    case = case.removesuffix(BOUNDED)
    random = np.random.default_rng(7)
    many = rows
    few = 100_000
    if case == "integers, few":
        columns = sparse(random.integers(0, few, rows), 1), sparse(zipf(random, rows, few), 2)
    elif case == "integers, many":
        columns = sparse(random.integers(0, many, rows), 1), sparse(random.integers(0, many, rows), 2)
    elif case == "integers, ten rows each":
        names = -(-rows // 10)
        columns = sparse(random.integers(0, names, rows), 1), sparse(random.integers(0, names, rows), 2)
    elif case == "integers, dense":
        columns = random.integers(0, few, rows).astype(np.int32), zipf(random, rows, few).astype(np.int32)
    elif case == "integers, each three times":
        third = -(-rows // 3)
        users, items = np.tile(random.integers(0, few, third), 3)[:rows], np.tile(zipf(random, third, few), 3)[:rows]
        columns = sparse(users, 1), sparse(items, 2)
    elif case == "strings, few":
        columns = words(random.integers(0, few, rows), 1), words(zipf(random, rows, few), 2)
    elif case == "strings, many":
        columns = words(random.integers(0, many, rows), 1), words(random.integers(0, many, rows), 2)
    elif case == "strings, dictionary":
        columns = (
            words(random.integers(0, few, rows), 1).dictionary_encode(),
            words(zipf(random, rows, few), 2).dictionary_encode(),
        )
    else:
        raise ValueError(case)
    return pa.table({"u": columns[0], "i": columns[1]})


CASES = [
    "integers, few",
    "integers, many",
    "integers, ten rows each",
    "integers, dense",
    "integers, each three times",
    "strings, few",
    "strings, many",
    "strings, dictionary",
    "integers, few" + BOUNDED,
    "strings, few" + BOUNDED,
    "integers, few" + SUMMED,
    "strings, few" + SUMMED,
]
