"""Rows of sales with exact sums, for the tests of sums."""

import numpy as np

COLUMNS = {"user": "user", "item": "shop", "value": "cents"}


def sales(users=4000):
    """Return rows of users who buy twice in each of three shops, for 5 to 14 units each time."""
    user = np.repeat(np.arange(users), 6)
    shop = np.tile(["a", "a", "b", "b", "c", "c"], users)
    return {"user": user, "shop": shop, "cents": 5 + user % 10}


SALES = sales()
EXACT = int(2 * (5 + np.arange(4000) % 10).sum())
