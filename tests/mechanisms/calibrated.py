"""Tables and plans for the tests of calibrated counts."""

import numpy as np

from discreet import CalibratedCounts
from discreet.laws import calibrated_replays


def plan(rho, delta=1e-6, *, k_bar=2**14, error=0.1):
    """Return the public parameters of a release by the reference."""
    mechanism = CalibratedCounts(rho=rho, delta=delta, k_bar=k_bar, relative_error=error)
    return calibrated_replays.plan(mechanism)


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
