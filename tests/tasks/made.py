"""Generated logs of a shop, with the true answers, for tests that use the library as its users do."""

import numpy as np
import pytest

polars = pytest.importorskip("polars")

COUNTRIES = ["DE", "FR", "IT", "PL"]
DAYS = 28


def visits(users=20_000, rows=400_000, pages=60, seed=1):
    """Return rows of (user, page, country, ts) in February 2026: pages by Zipf's law, one country for each user."""
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, pages + 1)
    user = random.integers(0, users, rows)
    page = random.choice(pages, rows, p=chances / chances.sum())
    when = np.datetime64("2026-02-01") + random.integers(0, DAYS * 86_400_000, rows).astype("timedelta64[ms]")
    names = np.array([f"/page/{number:02d}" for number in range(pages)])
    return {"user": user, "page": names[page], "country": np.array(COUNTRIES)[user % len(COUNTRIES)], "ts": when}


def truth(log, *columns, user="user"):
    """Return the number of distinct users of each item, which is a tuple if there are several columns."""
    pairs = polars.DataFrame({name: log[name] for name in (user, *columns)}).unique()
    rows = pairs.group_by(*columns).len().rows()
    return {(tuple(key) if len(columns) > 1 else key[0]): count for *key, count in rows}


def outliers(release, expected):
    """Return the items whose noisy counts are more than eight sigma from the true ones.

    The releases are not seeded, and their noise is Gaussian. A count is such an item with a probability of 1.3e-15, so
    one of 1,680 counts is with a probability below 3e-12.
    """
    rows = zip(release.items, release.counts.tolist(), release.sigmas.tolist(), strict=True)
    return [item for item, count, sigma in rows if abs(count - expected[item]) > 8 * sigma + 1]


def days(log):
    """Return the rows with a column of days as text, which `every="1d"` makes of their times."""
    return {**log, "day": log["ts"].astype("datetime64[D]").astype(str)}
