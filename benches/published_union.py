"""Published set-union algorithms in plain Python and numpy, with real-valued weights and noise.

`set_union.py` compares `SetUnion` with these algorithms. `users` holds one array of item numbers for each user, and a
function returns the released item numbers.

- Weighted and policy: Gopi et al. (2020), with half of delta for the noise and half for the threshold.
- DP-SIPS: Swanberg et al. (2023), with three rounds. Each round has three times the budget of the previous round.

No function is private. numpy's noise is not secure, and the floats that it can return depend on the value.
"""

from __future__ import annotations

import math
import random
from statistics import NormalDist

import numpy as np

from discreet.theorems.balle_wang2018 import gaussian_delta
from discreet.theorems.gopi2020 import round_shares


def least_sigma(epsilon, delta):
    """Return the least sigma by bisection (Balle and Wang 2018)."""
    low, high = 1e-3, 1e4
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gaussian_delta(epsilon, 1 / middle) <= delta else (middle, high)
    return high


def chance(delta, t):
    """Return the probability for each of t new items, so that any of them is released with probability delta."""
    return -math.expm1(math.log1p(-delta) / t)


def gaussian_threshold(sigma, delta, l0):
    return max(1 / math.sqrt(t) - sigma * NormalDist().inv_cdf(chance(delta, t)) for t in range(1, l0 + 1))


def laplace_threshold(epsilon, delta, l0):
    return max(1 / t - math.log(2 * chance(delta, t)) / epsilon for t in range(1, l0 + 1))


def bounded(items, l0):
    items = items.tolist()
    return items if len(items) <= l0 else random.sample(items, l0)


def released(weights, threshold, noise):
    """Return the items whose weight plus noise exceeds the threshold."""
    values = np.fromiter(weights.values(), float, len(weights)) + noise(len(weights))
    keys = np.fromiter(weights, np.int64, len(weights))
    return keys[values > threshold]


def gaussian(sigma):
    return lambda size: np.random.default_rng().normal(0, sigma, size)


def laplace(epsilon):
    return lambda size: np.random.default_rng().laplace(0, 1 / epsilon, size)


def shared(users, l0, share):
    """Return the weights if each user gives every item the same share."""
    weights = {}
    for of_user in users:
        items = bounded(of_user, l0)
        if items:
            part = share(len(items))
            for item in items:
                weights[item] = weights.get(item, 0.0) + part
    return weights


def weighted_gaussian(users, *, epsilon, delta, l0):
    sigma = least_sigma(epsilon, delta / 2)
    weights = shared(users, l0, lambda d: 1 / math.sqrt(d))
    return released(weights, gaussian_threshold(sigma, delta / 2, l0), gaussian(sigma))


def weighted_laplace(users, *, epsilon, delta, l0):
    weights = shared(users, l0, lambda d: 1 / d)
    return released(weights, laplace_threshold(epsilon, delta, l0), laplace(epsilon))


def policy_gaussian(users, *, epsilon, delta, l0, alpha=3.0):
    sigma = least_sigma(epsilon, delta / 2)
    threshold = gaussian_threshold(sigma, delta / 2, l0)
    target, weights = threshold + alpha * sigma, {}
    for of_user in random.sample(users, len(users)):
        gaps = {item: target - weights.get(item, 0.0) for item in bounded(of_user, l0)}
        gaps = {item: gap for item, gap in gaps.items() if gap > 0}
        norm = math.sqrt(sum(gap * gap for gap in gaps.values()))
        step = min(1.0, norm) / norm if norm else 0.0
        for item, gap in gaps.items():
            weights[item] = weights.get(item, 0.0) + step * gap
    return released(weights, threshold, gaussian(sigma))


def policy_laplace(users, *, epsilon, delta, l0, alpha=3.0):
    threshold = laplace_threshold(epsilon, delta, l0)
    target, weights = threshold + alpha / epsilon, {}
    for of_user in random.sample(users, len(users)):
        gaps = sorted((target - weights.get(item, 0.0), item) for item in bounded(of_user, l0))
        gaps = [(gap, item) for gap, item in gaps if gap > 0]
        left, level = 1.0, 0.0
        for place, (gap, _) in enumerate(gaps):
            cost = (gap - level) * (len(gaps) - place)
            if cost > left:
                level += left / (len(gaps) - place)
                break
            left, level = left - cost, gap
        for gap, item in gaps:
            weights[item] = weights.get(item, 0.0) + min(gap, level)
    return released(weights, threshold, laplace(epsilon))


def dp_sips(users, *, epsilon, delta, l0, rounds=3):
    sigma = least_sigma(epsilon, delta / 2)
    found = np.zeros(1 + max(int(items.max()) for items in users), bool)
    for share in round_shares(rounds):
        part = sigma / math.sqrt(share)
        left = [items[~found[items]] for items in users] if found.any() else users
        weights = shared(left, l0, lambda d: 1 / math.sqrt(d))
        found[released(weights, gaussian_threshold(part, share * delta / 2, l0), gaussian(part))] = True
    return np.flatnonzero(found)


def weighted_gaussian_by_arrays(users, *, epsilon, delta, l0):
    """Return the items of the algorithm `weighted_gaussian`, computed without a loop over users."""
    sizes = np.array([len(items) for items in users])
    user, item = np.repeat(np.arange(len(users)), sizes), np.concatenate(users)
    order = np.lexsort((np.random.default_rng().random(len(item)), user))
    place = np.arange(len(item)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = place < l0
    share = 1 / np.sqrt(np.minimum(sizes, l0))
    weights = np.bincount(item[order][kept], share[user[kept]])
    domain = np.flatnonzero(weights)
    sigma = least_sigma(epsilon, delta / 2)
    noisy = weights[domain] + gaussian(sigma)(len(domain))
    return domain[noisy > gaussian_threshold(sigma, delta / 2, l0)]


METHODS = {
    function.__name__: function
    for function in (weighted_gaussian, weighted_laplace, policy_gaussian, policy_laplace, dp_sips)
}
