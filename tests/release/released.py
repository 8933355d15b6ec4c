"""Releases for the tests of this folder."""

import numpy as np

from discreet import ConfirmedCounts, GaussianThreshold, Guarantee, Release, _core
from discreet.release.release import later

KINDS = {
    "string": ["home", "search", "=1+1", "'quoted", "é\u202e", 'a,"b"\n', "\r", ""],
    "binary": [b"a\\b", b"\xff\xfe", b"", b"=1", b"\\xff"],
    "int64": [3, -1, 2**63 - 1],
    "uint64": [2**64 - 1, 0, 5],
}
MADE_BY = repr(ConfirmedCounts(rho=0.02, delta=1e-6))
"""A mechanism that needs no bound on the items of a user."""


def counted(kind="string", *, items=None, lazy=False, **changes):
    """Return a release with counts."""
    items = list(KINDS[kind] if items is None else items)
    n = len(items)
    fields = {
        "items": later(_core.Labels.from_sequence(items)) if lazy else items,
        "counts": np.arange(n, 0, -1, dtype=np.int64) * 100,
        "sigmas": np.full(n, 5.0),
        "guarantee": GaussianThreshold(sigma=5.0, delta=1e-6, l0=1).guarantee,
        "spent": Guarantee(0.01, 1e-7),
        "calls": 7,
        "made_by": MADE_BY,
        "item_type": kind,
        "users": (5000, 7.0),
        "notes": ("a note",),
    }
    return Release(**{**fields, **changes})


def ranked(kind="string", **changes):
    """Return a ranked list."""
    return counted(kind, **{"counts": None, "sigmas": None, "ranked": True, **changes})


def named(kind="string", **changes):
    """Return a release of names alone."""
    return counted(kind, **{"counts": None, "sigmas": None, **changes})
