"""The lists of users' items, made from pairs."""

import numpy as np

from discreet import _core


def lists_of(users, items, **options):
    """Return sorted labels and the lists of all users, with integer users in order."""
    labels, lists = _core.Lists.read((users, items), "", "", **options)
    rows = np.arange(labels.items())
    labels, order = labels.ordered(rows, np.zeros_like(rows))
    return labels, lists.ordered(order)
