"""Mechanisms that are lists of steps: their costs add up to the guarantee, and their noise costs what they state."""

import math

import pytest

from discreet import GaussianThreshold
from discreet.mechanisms import (
    Aggregates,
    CalibratedAggregates,
    ClippedSums,
    CountsWithFoundBound,
    CountsWithPublicItems,
    CountsWithShare,
    DiscoverAndPeel,
    DiscoverAndSum,
    KeptPairs,
    KnownItems,
    Plume,
    SumsWithFoundBounds,
)
from discreet.mechanisms.steps.base import Steps
from discreet.mechanisms.steps.bounds import FindBounds
from discreet.mechanisms.steps.select import Run
from discreet.mechanisms.steps.sums import Sums

SUMS = {"low": -4, "high": 2}
BOUNDS = {"rows": 3, "sums": (("v", -4, 2, 1.0),), "means": (("v", 0, 9, 1.0),)}
PLUME = {"m": 7, "m_prime": 30, "share": 0.3}
KNOWN = KnownItems(mechanism=GaussianThreshold.from_rho(rho=0.7, delta=1e-6, l0=3), items=("a", "b"))
MADE = {
    "a found l0": lambda rho: CountsWithFoundBound(rho=rho, delta=1e-6),
    "a found l0 of the median": lambda rho: CountsWithFoundBound(rho=rho, delta=1e-6, percentile=50, l0_share=0.3),
    "a share": lambda rho: CountsWithShare.from_rho(rho=rho, delta=1e-6, l0=3),
    "sums": lambda rho: DiscoverAndSum(rho=rho, delta=1e-6, l0=3, **SUMS),
    "sums of a selection of little": lambda rho: DiscoverAndSum(rho=rho, delta=1e-6, l0=3, share=0.1, **SUMS),
    "sums of a selection of much": lambda rho: DiscoverAndSum(rho=rho, delta=1e-6, l0=3, share=0.9, **SUMS),
    "sums with a found l0": lambda rho: DiscoverAndSum(rho=rho, delta=1e-6, l0=None, **SUMS),
    "public sums": lambda rho: ClippedSums(rho=rho, items=("a", "b", "c"), l0=2, **SUMS),
    "public sums without l0": lambda rho: ClippedSums(rho=rho, items=("a", "b", "c"), **SUMS),
    "sums with found bounds": lambda rho: SumsWithFoundBounds(rho=rho, delta=1e-6, l0=3),
    "sums with both found": lambda rho: SumsWithFoundBounds(rho=rho, delta=1e-6, l0=None),
    "aggregates": lambda rho: Aggregates(rho=rho, delta=1e-6, l0=3, **BOUNDS),
    "aggregates with a found l0": lambda rho: Aggregates(rho=rho, delta=1e-6, l0=None, share=0.9, **BOUNDS),
    "public aggregates": lambda rho: Aggregates(rho=rho, delta=None, l0=2, items=("a", "b", "c"), share=0.1, **BOUNDS),
    "public aggregates without l0": lambda rho: Aggregates(rho=rho, delta=None, l0=None, items=("a", "b"), **BOUNDS),
    "public sums with found bounds": lambda rho: SumsWithFoundBounds(rho=rho, delta=None, l0=None, items=("a", "b")),
    "public and other items": lambda rho: CountsWithPublicItems(rho=rho, delta=1e-6, items=("a", "b"), share=0.2),
    "free sums": lambda rho: CalibratedAggregates(rho=rho, delta=1e-6, rows=True, sums=(("v", None, None, 1.0),)),
    "free numbers of public items": lambda rho: CalibratedAggregates(rho=rho, delta=None, rows=True, items=("a", "b")),
    "ranks": lambda rho: DiscoverAndPeel(rho=rho, delta=1e-6, k=20, l0=5),
    **{
        f"counts of items found by {name}": lambda rho, name=name: Plume(rho=rho, delta=1e-6, selection=name, **PLUME)
        for name in ("threshold", "weighted_gaussian", "dp_sips")
    },
}


@pytest.mark.parametrize("rho", [1e-3, 0.013, 0.5, 1.0, 7.3, 900.0])
@pytest.mark.parametrize("name", MADE)
def test_the_steps_cost_no_more_than_the_whole(name, rho):
    made = MADE[name](rho)
    for l0 in {*made._l0s, *((2, 41, 999) if len(made._l0s) > 1 else ())}:
        costs = [step.cost(l0) for step in made.steps]
        total = sum(costs[1:], costs[0])
        assert total.rho <= made.guarantee.rho <= rho
        assert total.delta <= made.guarantee.delta
        # A threshold mechanism with a guarantee in epsilon can cost less rho than it may.
        assert total.rho > (1 - 1e-6) * rho or any(cost.dp is not None for cost in costs)


@pytest.mark.parametrize("name", [name for name in MADE if "sums" in name and "free" not in name])
def test_the_noise_of_sums_costs_their_share_for_any_bounds(name):
    made = MADE[name](0.7)
    *_, sums = made.steps
    assert isinstance(sums, Sums)
    candidates = [step.candidates for step in made.steps if isinstance(step, FindBounds)]
    for bound in (1, candidates[0][-1]) if candidates else (None,):
        for l0 in made._l0s:
            for number in {1, 2, 500} if sums.items is None else {len(sums.items)}:
                moved = sums.moved(number, sums.l0 or (l0 if sums.items is None else None))
                noise = sums.measured(moved, l0, None if bound is None else (-bound, bound))
                part = max(abs(noise.low), abs(noise.high)) >> noise.shift
                cost = moved * (part / noise.sigmas[0]) ** 2 / 2
                assert (1 - 1e-6) * sums.cost(l0).rho < cost <= sums.cost(l0).rho


@pytest.mark.parametrize("name", [name for name in MADE if "aggregates" in name])
def test_the_noise_of_all_numbers_costs_their_share(name):
    made = MADE[name](0.7)
    scales = [scale for scales in made.scales.values() for scale in scales]
    *_, counts, numbers = made.steps
    l0 = numbers.l0 or made._l0s[-1]
    # The bounds of the count, rows, sum, and of both sums of the mean: 3 rows of at most 5 from the centre, 4.
    changes = zip(scales, [1, 3, 4, 15 * numbers.plan(l0)[2].parts, 3], strict=True)
    cost = sum(l0 * (bound / scale) ** 2 / 2 for scale, bound in changes)
    total = counts.cost(l0).rho + numbers.cost(l0).rho
    assert (1 - 1e-9) * total < cost <= total


@pytest.mark.parametrize(("size", "l0", "moved"), [(1, None, 1), (500, 1, 1), (500, 4, 4), (500, None, 500), (3, 9, 3)])
def test_the_noise_of_sums_is_that_of_l0_items(size, l0, moved):
    mechanism = ClippedSums(items=range(size), rho=0.5, low=-10, high=4, l0=l0)
    assert mechanism.sigma == pytest.approx(10 * math.sqrt(moved / (2 * 0.5)), rel=1e-9)


def test_a_step_of_a_given_mechanism_keeps_its_guarantee_in_epsilon():
    counts = CountsWithShare.from_epsilon(epsilon=1, delta=1e-6, l0=3)
    assert counts.guarantee.dp == pytest.approx((1, 1e-6), rel=0.01)
    assert Run(given=counts.mechanism).cost(3) == counts.mechanism.guarantee
    known = CountsWithShare(mechanism=KNOWN, pairs=KeptPairs(l0=3, most=90, rho=0.01))
    assert (known.lists_items, known.guarantee) == ("some", KNOWN.guarantee + known.pairs.guarantee)


def test_candidates_for_bounds_are_in_order():
    for resolution in (2.0**-32, 0.01, 1.0, 1e12):
        finding = SumsWithFoundBounds(rho=1, delta=1e-6, l0=1, resolution=resolution).steps[0]
        assert finding.candidates == tuple(sorted({*finding.candidates}))
        assert finding.mechanism.users_needed > 50


def test_every_mechanism_of_steps_is_in_the_table():
    made = {type(make(1.0)) for make in MADE.values()}
    assert {kind for kind in Steps.__subclasses__() if kind.__module__.startswith("discreet.")} == made
