"""Generated tables of many shapes, as users and items of rows, for the tests of calibrated counts."""

import numpy as np

USERS = 20_000


def zipf(items, exponent):
    return np.arange(1, items + 1) ** -float(exponent)


def drawn(rng, sizes, weights, first=0):
    """Return rows of users who draw items in proportion to weights; a user may draw an item twice."""
    ends = np.cumsum(weights)
    users = np.repeat(np.arange(first, first + len(sizes)), sizes)
    return users, np.searchsorted(ends / ends[-1], rng.random(len(users)))


def joined(*parts):
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def some_heavy(rng, heavy=1000, items=400):
    """Return numbers of items: 400 for the first 1,000 users, and 20 on average for the others."""
    sizes = rng.geometric(1 / 20, USERS)
    sizes[:heavy] = items
    return sizes


def spike(rng):
    """Return 400 items of 300 to 430 users, all of them heavy users, among items of Zipf's law."""
    sizes = some_heavy(rng)
    special = [
        (rng.choice(1000, number, replace=False), np.full(number, 50_000 + place))
        for place, number in enumerate(rng.integers(300, 431, 400))
    ]
    return joined(drawn(rng, sizes, zipf(50_000, 1.0)), *special)


def outliers(rng):
    """Return a table in which heavy users own one item in ten."""
    sizes, weights = some_heavy(rng), zipf(20_000, 0.8)
    own = rng.random(len(weights)) < 0.1
    heavy = drawn(rng, sizes[:1000], np.where(own, 3 * weights, weights))
    return joined(heavy, drawn(rng, sizes[1000:], np.where(own, 0, weights), first=1000))


def rare_of(rng, *, heavy):
    """Return a table whose rare items belong to heavy users, or to light users."""
    sizes = np.where(rng.random(USERS) < 0.8, rng.integers(2, 7, USERS), 200)
    weights = zipf(5_000, 1.0)
    rare = np.where(np.arange(5_000) < 150, 1, 0.05)
    light = sizes[sizes < 200]
    return joined(
        drawn(rng, light, weights * rare if heavy else weights),
        drawn(rng, sizes[sizes == 200], weights if heavy else weights * rare, first=len(light)),
    )


def bots(rng):
    """Return 200,000 users of one item, and 600 users of 20 items each among 40 items."""
    special = np.repeat(np.arange(600), 20), np.concatenate([rng.choice(40, 20, replace=False) for _ in range(600)])
    return joined(drawn(rng, np.ones(200_000, int), zipf(5_000, 1.0)), (200_000 + special[0], 5_000 + special[1]))


SHAPES = {
    "spike": spike,
    "outliers": outliers,
    "flat": lambda rng: drawn(rng, rng.geometric(1 / 20, USERS), np.ones(3_000)),
    "pareto": lambda rng: drawn(
        rng, np.minimum(5 * (1 - rng.random(USERS)) ** (-1 / 1.1), 5_000).astype(int), zipf(50_000, 0.9)
    ),
    "bimodal": lambda rng: drawn(rng, np.where(rng.random(USERS) < 0.5, 5, 150), zipf(20_000, 0.6)),
    "Zipf 1.6": lambda rng: drawn(rng, rng.geometric(1 / 40, USERS), zipf(50_000, 1.6)),
    "rare of light": lambda rng: rare_of(rng, heavy=False),
    "rare of heavy": lambda rng: rare_of(rng, heavy=True),
    "one item": lambda rng: drawn(rng, np.ones(100_000, int), zipf(5_000, 0.8)),
}


def table(name, seed=0):
    """Return the rows of a shape, and the number of users of each item."""
    users, items = {**SHAPES, "bots": bots}[name](np.random.default_rng(seed))
    pairs = np.unique(users.astype(np.int64) * 2**20 + items)
    counts = np.bincount(pairs % 2**20)
    return {"user": pairs >> 20, "item": pairs % 2**20}, counts
