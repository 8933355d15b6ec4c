"""Optimal partition selection: the kernel equals the reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import OptimalSelection, _core
from discreet.errors import ParameterError
from discreet.reference.partition_selection import partition_selection
from discreet.testing import seeded_rng
from discreet.theorems import desfontaines2020


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(-3, 60), max_size=300),
    epsilon=st.floats(0.2, 5),
    delta=st.floats(1e-9, 0.4),
    seed=st.integers(0, 2**64 - 1),
)
def test_rust_and_python_release_the_same_rows(counts, epsilon, delta, seed):
    counts = np.array(counts, np.int64)
    chances = desfontaines2020.chance_table(epsilon, delta)
    ours, same_rng = seeded_rng(seed), seeded_rng(seed)
    rows = _core.partition_selection(counts, chances, ours)
    assert rows.tolist() == partition_selection(counts, chances, same_rng).tolist()
    assert ours.bits64() == same_rng.bits64()


def test_rows_of_all_chunks_are_in_order():
    counts = np.full(300_000, 5)
    rows = _core.partition_selection(counts, np.array([0, 2**63], np.uint64), seeded_rng(1))
    assert rows.tolist() == list(range(300_000))
    half = _core.partition_selection(np.ones(300_000, np.int64), np.array([0, 2**63], np.uint64), seeded_rng(1))
    assert np.all(np.diff(half) > 0)
    assert len(half) == pytest.approx(150_000, abs=1500)
    expected = partition_selection(np.ones(300_000, np.int64), np.array([0, 2**63], np.uint64), seeded_rng(1))
    assert half.tolist() == expected.tolist()


@settings(max_examples=200, deadline=None)
@given(epsilon=st.one_of(st.floats(0.01, 5), st.floats(5, 100)), delta=st.floats(2.0**-59, 0.99))
def test_rust_and_python_make_the_same_table(epsilon, delta):
    mechanism = OptimalSelection(epsilon=epsilon, delta=delta)
    expected, table = desfontaines2020.chance_table(*mechanism.each), mechanism.chances
    assert table.dtype == np.uint64
    assert table.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("growth", "share"), [([0, 0, 0, 1], [0, 0, 0]), ([0, 0, 0, 1], [1, 0, 0]), ([0] * 7, [0, 0, 1])]
)
def test_a_table_without_end_is_refused(growth, share):
    with pytest.raises(ParameterError, match="too large"):
        _core.chance_table(growth, [2**64 - 1] * 3, share)
