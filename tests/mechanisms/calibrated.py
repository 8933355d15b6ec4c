"""Tables and plans for the tests of calibrated counts."""

import numpy as np

from discreet.mechanisms.counts.contribution_bound import ContributionBound
from discreet.reference import calibrated_counts as reference
from discreet.reference.confirmed_counts import Plan
from discreet.theorems import calibrated_counts as prices
from discreet.theorems import calibration, rogers2024
from discreet.theorems import confirmed_counts as heads


def plan(rho, delta=1e-6, *, factor=2, k_bar=2**14, error=0.1, **changes):
    """Return the public parameters of a release by the reference."""
    levels = heads.levels(error, factor=factor, replaced=False)
    budget = rogers2024.budget_units(rho)
    chosen = ContributionBound.from_rho(rho=prices.BOUND_SHARE * rho, percentile=prices.PERCENTILE)
    confirmed = Plan(
        levels, heads.LOWEST, heads.deltas([step.price for level in levels for step in level.steps], rho, delta),
        heads.deltas([level.bound.price for level in levels], rho, delta), budget, k_bar, heads.MOST, factor,
        0, 0, heads.margin, heads.reach, heads.octaves, 0, 0,
    )  # fmt: skip
    return reference.Plan(
        rho, delta, budget, factor, confirmed, prices, heads, calibration, chosen.scores,
        chosen.gamma, prices.selection_price(chosen.epsilon),
    )._replace(**changes)  # fmt: skip


def zipf_lists(users, items, mean, exponent=1.0, seed=0):
    """Return the items of users, of whom the n-th most common has a share of about 1/n^exponent."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1, items + 1) ** -float(exponent)
    ends = np.cumsum(weights / weights.sum())
    sizes = rng.geometric(1 / mean, users)
    drawn = np.searchsorted(ends, rng.random(sizes.sum())).clip(0, items - 1)
    return [np.unique(part).tolist() for part in np.split(drawn, np.cumsum(sizes)[:-1])]


def first(lists, most):
    """Return the first items of each user, a choice for tables in which no user has more than `most`."""
    return [items[:most] for items in lists if items]
