"""Time of a release of confirmed counts of a million items, given exact counts, in Rust and in the Python reference."""

import numpy as np
import pytest

from discreet import ConfirmedCounts, Histogram, _core
from discreet.reference.confirmed_counts import Plan, confirm
from discreet.testing import seeded_rng
from discreet.theorems import confirmed_counts as theorem
from discreet.theorems.rogers2024 import budget_units

MECHANISM = ConfirmedCounts(rho=1.0, delta=1e-6)
ITEMS = 1_000_000
MANY, FEW = 2_000_000, 20_000


def zipf_counts(users):
    """Return counts by Zipf's law: the most common item has 60 % of the users, the rarest items have one user each."""
    return np.maximum(1, users * 0.6 / np.arange(1, ITEMS + 1)).astype(np.int64)


def prepared(users):
    """Return the counts that a release reads, and the public plan of the release."""
    levels, budget = theorem.levels(0.1, factor=2, replaced=False), budget_units(MECHANISM.rho)
    steps = theorem.deltas([step.price for level in levels for step in level.steps], MECHANISM.rho, MECHANISM.delta)
    bounds = theorem.deltas([level.outside.price for level in levels], MECHANISM.rho, MECHANISM.delta)
    start = theorem.octaves(users)
    plan = Plan(
        levels, theorem.LOWEST, steps, bounds, budget, MECHANISM.k_bar, theorem.MOST, 2, users, users,
        theorem.margin, theorem.reach, theorem.octaves, start, start + theorem.FINE,
    )  # fmt: skip
    return zipf_counts(users)[: MECHANISM.rows_needed], plan


@pytest.mark.parametrize("users", [MANY, FEW])
def test_core(benchmark, users):
    benchmark.group = f"confirmed counts, a million items, {users:,} users, rho = 1"
    counts, plan = prepared(users)
    setting = (plan.lowest, *plan[4:10], plan.start, plan.highest)
    known = _core.Levels(plan.levels, plan.step_deltas, plan.bound_deltas)

    def release():
        return _core.confirm(counts, None, known, setting, seeded_rng(1))

    assert len(benchmark(release)[0]) > 100


def test_reference(benchmark):
    benchmark.group = f"confirmed counts, a million items, {FEW:,} users, rho = 1"
    counts, plan = prepared(FEW)
    result = benchmark.pedantic(lambda: confirm(counts, None, plan, seeded_rng(1)), rounds=1, iterations=1)
    assert len(result.rows) > 100


def test_whole_release(benchmark):
    """Measure a release with its labels, their order and the Release object, after the histogram is made."""
    benchmark.group = f"confirmed counts, a million items, {MANY:,} users, rho = 1"
    counts = zipf_counts(MANY)
    histogram = Histogram.from_counts(np.arange(ITEMS), counts, l0=None, linf=1, complete=True, users=MANY)
    assert len(benchmark(lambda: MECHANISM.release(histogram))) > 2000
