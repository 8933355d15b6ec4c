"""Time of Private Count Release, given exact counts: the Rust core, the reference, and a whole release.

The reference draws noise for k_bar candidates with numpy at each step and takes the largest. A second group starts from
rows and measures CPU time: Private Count Release, and Plume with each of its selections.
"""

import time

import numpy as np
import pytest
from numpy_rng import NumpyRng

from discreet import Histogram, Plume, PrivateCountRelease, _core
from discreet.reference.private_count_release import private_count_release
from discreet.theorems import rogers2024

MECHANISM = PrivateCountRelease(rho=1.0, delta=1e-6)
COLUMNS = {"user": "user", "item": "item"}
FIVE = {"rounds": 5, "warmup_rounds": 1}


def zipf_counts():
    """Return 589,000 counts from 223,000 down, proportional to rank^-0.65, like the words in a collection of posts."""
    return np.floor(223_000 / np.arange(1, 589_001) ** 0.65).astype(np.int64)


def arguments(counts):
    """Return the arguments of `_core.private_count_release` and of the reference."""
    return (
        counts[: MECHANISM.rows_needed],
        MECHANISM.rows_needed,
        MECHANISM.levels,
        rogers2024.budget_units(MECHANISM.rho),
        rogers2024.most_calls(MECHANISM.delta, MECHANISM.delta_star),
        MECHANISM.k_bar,
    )


@pytest.fixture(scope="module")
def counts():
    return zipf_counts()


def test_core(benchmark, counts):
    benchmark.group = "private count release, k_bar = 10,000, rho = 1"
    result = benchmark(lambda: _core.private_count_release(*arguments(counts)))
    assert len(result[0]) > 1000


def test_reference(benchmark, counts):
    benchmark.group = "private count release, k_bar = 10,000, rho = 1"
    result = benchmark.pedantic(lambda: private_count_release(*arguments(counts), NumpyRng(1)), rounds=3, iterations=1)
    assert len(result[0]) > 1000


def test_whole_release(benchmark, counts):
    """Measure a release with its labels, their order and the Release object, after the histogram is made."""
    benchmark.group = "private count release, k_bar = 10,000, rho = 1"
    histogram = Histogram.from_counts(np.arange(len(counts)), counts, l0=None, linf=1, complete=True)
    assert len(benchmark(lambda: MECHANISM.release(histogram))) > 1000


USERS, ITEMS, OWN = 30_000, 200_000, 100
"""Users, items, and the rows of a user. A user has 66 to 95 distinct items, so Plume with m = 100 drops none."""


@pytest.fixture(scope="module")
def rows():
    """Return 3 million rows, with items drawn by Zipf's law."""
    common = np.cumsum(1 / np.arange(1, ITEMS + 1))
    items = np.searchsorted(common, np.random.default_rng(1).random(USERS * OWN) * common[-1])
    return {"user": np.repeat(np.arange(USERS), OWN), "item": items}


@pytest.mark.benchmark(group="3 million rows to a release, rho = 1, CPU time", timer=time.process_time)
def test_rows_to_release(benchmark, rows):
    released = benchmark.pedantic(lambda: MECHANISM.release(Histogram.from_table(rows, **COLUMNS)), **FIVE)
    assert len(released) > 300


@pytest.mark.parametrize("selection", ["threshold", "weighted_gaussian", "dp_sips"])
@pytest.mark.benchmark(group="3 million rows to a release, rho = 1, CPU time", timer=time.process_time)
def test_rows_to_plume(benchmark, rows, selection):
    mechanism = Plume(rho=1, delta=1e-6, m=OWN, m_prime=OWN, selection=selection)
    assert len(benchmark.pedantic(lambda: mechanism.release(rows, **COLUMNS), **FIVE)) > 1000
