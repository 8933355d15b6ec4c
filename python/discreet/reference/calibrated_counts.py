"""Calibrated counts, step by step, on the lists of the items of every user.

docs/calibrated-counts.md describes the mechanism. Items are numbers from 0. The draws are those of the mechanism, in
the same order. A plan holds the public parameters, and the functions of `discreet.theorems` that give prices, scales,
the threshold and the estimates. Each step is a function of its own, so that its exact law can be enumerated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.reference.confirmed_counts import Confirmed, confirm
from discreet.reference.confirmed_counts import Draws as ConfirmDraws
from discreet.reference.confirmed_counts import Plan as ConfirmPlan
from discreet.reference.threshold import Streams, threshold_release

__all__ = [
    "Calibrated",
    "Draws",
    "Heads",
    "Plan",
    "Released",
    "alone",
    "calibrate",
    "calibrated",
    "combined",
    "heads_of",
    "heavy_users",
    "measured",
    "named",
    "noised",
    "ordered",
    "release",
    "weighed",
]

Lists = Sequence[Sequence[int]]
"""The distinct items of every user."""
Namespace = ModuleType | SimpleNamespace
_Named = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
_NONE: _Named = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
Kept = Callable[[Sequence[Sequence[int]], int], Sequence[Sequence[int]]]
"""A function that chooses at most a number of items of each user, uniformly and independently of other users."""


class Draws(ConfirmDraws, Streams, Protocol):
    """The random draws of a release, as `_core.Rng` makes them."""

    def select(self, counts: NDArray[np.int64], reference: int, gamma: float, bottom: int, offset: float) -> int:
        """Return the place of a draw of the exponential mechanism, or len(counts) for the last score, `bottom`."""


class Noisy(Protocol):
    """A source of discrete Gaussian noise."""

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """Return `size` whole numbers of noise with scale sigma."""


class Plan(NamedTuple):
    """The public parameters, fixed before the first step."""

    rho: float
    delta: float
    budget: int
    """rho in units, rounded down."""
    confirmed: ConfirmPlan
    """The plan of `reference.confirmed_counts`, without N and the start."""
    prices: Namespace
    """The module `discreet.theorems.calibrated_counts`."""
    heads: Namespace
    """The module `discreet.theorems.confirmed_counts`."""
    estimator: Namespace
    """The module `discreet.theorems.calibration`."""
    scores: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    """The scores of the numbers 1, 2, ... as l, of the numbers of items of all users (`ContributionBound.scores`)."""
    rate: float
    """The rate of this selection."""
    selection_price: int


class Heads(NamedTuple):
    """The published values of the first step, and the table without the confirmed items."""

    counts: NDArray[np.int64]
    """The counts of all items, by number; 0 for confirmed items."""
    lists: Lists
    """The items of every user without the confirmed ones."""
    users: int
    """N, exactly."""
    noisy_users: float
    """The published N."""
    number: int
    """The number of confirmed items."""
    stuck: bool
    """Whether no item can be confirmed any more."""
    spent: int
    """The price of the confirmed items, in units."""


class Calibrated(NamedTuple):
    """The transcript of the steps after the first one."""

    full: int
    """l."""
    nearly_none: bool
    """Whether nearly no user has more than l items."""
    continues: bool
    """Whether the first step goes on instead of weights."""
    rows: NDArray[np.int64]
    """The items above the threshold, by descending weighted count."""
    estimates: NDArray[np.float64]
    sigmas: NDArray[np.float64]
    users: tuple[float, float]
    """The published number of users, and the precision 1/sigma^2 of its noise."""
    spent: int
    """The price of all steps with the first step, in units, without the first measurement of N."""


class Released(NamedTuple):
    """The transcript of a release."""

    confirmed: Confirmed | None
    """The first step; None if nearly no user has more than one item."""
    calibrated: Calibrated | None
    """The steps after the first one, or those in place of it; None if all of rho was for the first step."""
    users: tuple[float, float]
    """The published number of users, and the standard deviation of its noise."""
    spent: int


def heads_of(lists: Lists, size: int, found: Confirmed, order: NDArray[np.int64], noisy_users: float) -> Heads:
    """Return the table without the confirmed items."""
    confirmed = {int(order[row]) for row in found.rows}
    rest = [[item for item in items if item not in confirmed] for items in lists]
    counts, users = _counts(rest, size), sum(map(bool, lists))
    return Heads(counts, rest, users, noisy_users, len(confirmed), found.reason == "outside", found.spent)


def _counts(lists: Lists, size: int) -> NDArray[np.int64]:
    return np.bincount(np.array([item for items in lists for item in items], np.int64), minlength=size)


def measured(value: int, unit: int, users: int, sigma: float, rng: Noisy) -> int:
    """Return twice a value less the number of users, in units, with noise of scale 2 sigma."""
    return noised(2 * value - unit * users, 2 * unit * sigma, rng)


def noised(value: int, sigma: float, rng: Noisy) -> int:
    """Return a value with noise of scale sigma."""
    return value + int(rng.discrete_gaussian(sigma, 1)[0])


def ordered(values: NDArray[np.int64], rank: int) -> int:
    """Return the value of a rank from 0 in ascending order, or 0 beyond the ends."""
    return int(np.sort(values)[rank]) if 0 <= rank < len(values) else 0


def heavy_users(lists: Lists, full: int, users: int, sigma: float, rng: Noisy) -> int:
    """Return the measured number of users with more than `full` items."""
    heavy = sum(len(items) > full for items in lists)
    return measured(heavy, 1, users, sigma, rng)


def weighed(lists: Lists, size: int, most: int, weight: Callable[[int], int], kept: Kept) -> NDArray[np.int64]:
    """Return the sum of the weights of each item, if a user weighs at most `most` items."""
    sums = np.zeros(size, np.int64)
    for items in kept(lists, most):
        for item in items:
            sums[item] += weight(len(items))
    return sums


def named(
    weights: NDArray[np.int64], threshold: int, noise: Callable[[Draws, int], NDArray[np.int64]], rng: Draws
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the items of positive weight whose noisy weight exceeds the threshold, and these noisy weights."""
    items = np.flatnonzero(weights > 0)
    rows, noisy = threshold_release(weights[items], threshold, noise, rng)
    return items[rows], noisy


def calibrate(
    counts: NDArray[np.int64], values: NDArray[np.float64], heads: Heads, plan: Plan, budget: int, rng: Noisy
) -> tuple[list[slice], list[object], int]:
    """Return the bands of released items, their measured values and their price.

    Args:
        counts: The exact counts of the items.
        values: Their unbiased weighted counts, descending.
        heads: The public past.
        plan: The public parameters.
        budget: The most units for all bands together.
        rng: The draws.
    """
    made, found, spent, ratio = plan.estimator.bands(values), list[object](), 0, 1.0
    scale = plan.prices.band_sigma(budget, len(made))

    def of_rank(offset: NDArray[np.int64], band: slice, rank: int, sigma: float) -> float:
        value = ordered(counts[band.start : band.stop] - offset, rank)
        return (measured(value, 1, heads.users, sigma, rng) + heads.noisy_users) / 2

    for band in made:
        size, own = band.stop - band.start, values[band.start : band.stop]
        sigma = plan.estimator.least_sigma(scale, band.centre)
        median = of_rank(plan.estimator.offsets(own, ratio), band, size // 2, sigma)
        ratio = plan.estimator.ratio_of(ratio, median, band.centre)
        offset = plan.estimator.offsets(own, ratio)
        low, high = (of_rank(offset, band, rank, 2 * sigma) for rank in plan.estimator.end_ranks(size))
        found.append(plan.estimator.Measured(ratio, low, high, sigma))
        spent += plan.prices.ordered_price(sigma) + 2 * plan.prices.ordered_price(2 * sigma)
    return made, found, spent


def calibrated(heads: Heads, size: int, plan: Plan, kept: Kept, rng: Draws) -> Calibrated:
    """Return the transcript of all steps after the first one, up to the last measurement of the number of users.

    Args:
        heads: The result of the first step.
        size: The number of items.
        plan: The public parameters.
        kept: The choice of the items that a user weighs.
        rng: The draws.
    """
    prices, spent, start = plan.prices, heads.spent, plan.heads.first_sigma(plan.rho)
    noisy_users, precision, first = heads.noisy_users, start**-2, plan.heads.variance_price(start)
    again = plan.heads.affordable_sigma(prices.share_of(plan.rho, prices.USERS_SHARE) - first)
    if again is not None:
        spent += plan.heads.variance_price(again)
        noisy_users, precision = combined(noisy_users, precision, noised(heads.users, again, rng), again)
    scores = plan.scores(np.array([len(items) for items in heads.lists if items], np.int64))
    full = 1 + rng.select(scores[:-1], int(scores.max()), plan.rate, int(scores[-1]), 0.0)
    spent += plan.selection_price

    def ended(none: bool, found: _Named | None) -> Calibrated:
        return Calibrated(full, none, found is None, *(found or _NONE), (noisy_users, precision), spent)

    sigma = prices.ordered_sigma(prices.share_of(plan.rho, prices.HEAVY_SHARE))
    if sigma is None:
        return ended(False, None)
    heavy = (heavy_users(heads.lists, full, heads.users, sigma, rng) + noisy_users) / 2
    spent += prices.ordered_price(sigma)
    none = prices.nearly_none(heavy, prices.deviation(sigma, precision), noisy_users)
    bands_budget = 0 if none else prices.share_of(plan.rho, prices.CALIBRATION_SHARE)
    looking, look_price = None, 0
    if not heads.stuck:
        looking = prices.ordered_sigma(prices.share_of(plan.rho, prices.LOOK_SHARE))
        if looking is None:
            return ended(none, None)
        look_price = prices.ordered_price(looking)
    scale = prices.weights_sigma(plan.budget - first - spent - look_price - bands_budget, full)
    if scale is None or (not none and prices.band_sigma(bands_budget, prices.MOST_BANDS) is None):
        return ended(none, None)
    bits, most = prices.places(scale), prices.TIMES * full
    own = prices.unspent_delta(plan.delta, plan.heads.spent_delta(heads.spent, plan.rho, plan.delta))
    threshold = prices.threshold_of(scale, full, most, bits, own)
    reach = prices.reach(heads.number, threshold / 2**bits)
    if looking is not None and noisy_users < prices.least_users(reach):
        return ended(none, None)
    weights = weighed(heads.lists, size, most, lambda m: int(prices.weight(m, full, bits)), kept)
    if looking is not None:
        coarse = min(bits, prices.places(2 * looking))
        largest = ordered(weights, len(weights) - prices.RANK) >> (bits - coarse)
        weight = measured(largest, 1 << coarse, heads.users, looking, rng)
        spent += look_price
        if (weight / 2**coarse + noisy_users) / 2 < prices.least_weight(reach, looking):
            return ended(none, None)
    items, values, sigmas = _above(weights, scale, threshold, bits, plan, rng)
    spent += prices.weights_price(scale, full)
    if none or not len(items):
        return ended(none, (items, values, sigmas))
    order = np.argsort(-values, kind="stable")
    items, values, sigmas = items[order], values[order], sigmas[order]
    made, bands, price = calibrate(
        heads.counts[items], values, heads._replace(noisy_users=noisy_users), plan, bands_budget, rng
    )
    spent += price
    curve = plan.estimator.curve(made, bands, scale, precision**-0.5 / 2)
    return ended(none, (items, *plan.estimator.estimates(values, sigmas, curve)))


def alone(heads: Heads, size: int, plan: Plan, kept: Kept, rng: Draws) -> Calibrated:
    """Return the transcript of a threshold on one item of each user, with all that is left of rho.

    It continues with the first step instead unless nearly no user has more than one item.

    Args:
        heads: The whole table, with N and without confirmed items.
        size: The number of items.
        plan: The public parameters.
        kept: The choice of the item that a user weighs.
        rng: The draws.
    """
    prices, first, spent, none = plan.prices, plan.heads.first_sigma(plan.rho), heads.spent, False
    users, scale = (heads.noisy_users, first**-2), None
    sigma = prices.ordered_sigma(prices.share_of(plan.rho, prices.SINGLE_SHARE))
    if sigma is not None and users[0] >= prices.least_single(prices.deviation(sigma, users[1])):
        several = (heavy_users(heads.lists, 1, heads.users, sigma, rng) + users[0]) / 2
        spent += prices.ordered_price(sigma)
        none = prices.nearly_none(several, prices.deviation(sigma, users[1]), users[0])
    if none:
        scale = prices.weights_sigma(plan.budget - plan.heads.variance_price(first) - spent, 1)
    if scale is None:
        return Calibrated(1, none, True, *_NONE, users, spent)
    bits = prices.places_of(scale, 1)
    threshold = prices.threshold_of(scale, 1, 1, bits, prices.unspent_delta(plan.delta, 0.0))
    weights = weighed(heads.lists, size, 1, lambda m: int(prices.weight(m, 1, bits)), kept)
    found = _above(weights, scale, threshold, bits, plan, rng)
    return Calibrated(1, none, False, *found, users, spent + prices.weights_price(scale, 1))


def _above(weights: NDArray[np.int64], scale: float, threshold: int, bits: int, plan: Plan, rng: Draws) -> _Named:
    """Return the items above the threshold by descending noisy weight, with unbiased weights and their scales."""
    items, noised = named(weights, threshold, lambda stream, n: stream.discrete_gaussian(scale * 2**bits, n), rng)
    order = np.argsort(-noised, kind="stable")
    return items[order], *plan.estimator.unbiased(noised[order] / 2**bits, scale, threshold / 2**bits)


def release(lists: Lists, size: int, plan: Plan, kept: Kept, rng: Draws) -> Released:
    """Return the transcript of a release of the items of every user.

    Args:
        lists: The distinct items of every user.
        size: The number of items.
        plan: The public parameters.
        kept: The choice of the items that a user weighs.
        rng: The draws.
    """
    counts, users, sigma = _counts(lists, size), sum(map(bool, lists)), plan.heads.first_sigma(plan.rho)
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    first, precision, noisy = plan.heads.variance_price(sigma), sigma**-2, noised(users, sigma, rng)
    start = min(plan.heads.octaves(max(noisy, 4)), plan.heads.LEVELS_TOP)
    single = alone(Heads(counts, lists, users, float(noisy), 0, False, 0), size, plan, kept, rng)
    begun = single.spent
    if not single.continues:
        return Released(None, single, (single.users[0], single.users[1] ** -0.5), first + begun)
    confirming = plan.confirmed._replace(
        factor=2, users=users, noisy_users=noisy, start=start,
        highest=min(start + plan.heads.FINE, plan.heads.LEVELS_TOP), budget=plan.budget - first - begun,
    )  # fmt: skip
    pause = plan.prices.share_of(plan.rho, plan.prices.FIRST_SHARE) - first
    found = confirm(counts[order], None, confirming, rng, pause=pause)
    later, noisy_users, spent = None, float(noisy), found.spent
    if found.reason in ("outside", "pause"):
        heads = heads_of(lists, size, found, order, float(noisy))
        later = calibrated(heads, size, plan._replace(budget=plan.budget - begun), kept, rng)
        (noisy_users, precision), spent = later.users, later.spent
    if found.reason == "pause" and later is not None and later.continues:
        paid = spent - found.spent
        resuming = confirming._replace(budget=confirming.budget - paid)
        found = confirm(counts[order], None, resuming, rng, resumed=found)
        spent = paid + found.spent
    if len(found.rows) and (later is None or later.continues):
        variances = [confirming.levels[scale // 4].steps[scale % 4].sigma ** 2 for scale in found.scales.tolist()]
        accuracy, least = sum(4 / variance for variance in variances), min(variances) / 4
        price = plan.heads.final_price(confirming.budget - spent, accuracy, least)
        if (sigma := plan.heads.affordable_sigma(price)) is not None:
            spent += plan.heads.variance_price(sigma)
            noisy_users, precision = combined(noisy_users, precision, noised(users, sigma, rng), sigma)
    return Released(found, later, (noisy_users, precision**-0.5), first + begun + spent)


def combined(noisy_users: float, precision: float, again: int, sigma: float) -> tuple[float, float]:
    """Return the mean of two measured numbers of users, weighted by precision, and its precision."""
    more = sigma**-2
    return (noisy_users * precision + again * more) / (precision + more), precision + more
