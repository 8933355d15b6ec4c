"""Distinct users per item, beside polars, DuckDB and numpy. `compare.py` runs the same with peak memory."""

import pytest

import cases
import contestants


@pytest.fixture(scope="module", params=cases.CASES)
def table(request):
    return request.param, cases.make(request.param)


@pytest.mark.parametrize("way", contestants.ALL, ids=lambda way: way.__name__)
def test_count(benchmark, table, way):
    case, data = table
    benchmark.group = f"count, {case}, {cases.ROWS:,} rows"
    rounds = 1 if way is contestants.reference else 3
    assert benchmark.pedantic(way, args=(data,), rounds=rounds, iterations=1) > 0
