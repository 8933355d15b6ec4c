"""Distinct users per item, compared with polars, DuckDB and numpy; `compare.py` also measures peak memory."""

import functools

import pytest

import cases
import contestants

ALL = [(case, way) for case in cases.CASES for way in contestants.of(case)]


@functools.lru_cache(1)
def table(case):
    return cases.make(case)


@pytest.mark.parametrize(("case", "way"), ALL, ids=[f"{case}-{way.__name__}" for case, way in ALL])
def test_count(benchmark, case, way):
    benchmark.group = f"count, {case}, {cases.ROWS:,} rows"
    rounds = 1 if way.__name__ in ("reference", "bounded_reference") else 3
    assert benchmark.pedantic(way, args=(table(case),), rounds=rounds, iterations=1) > 0
