"""Shared helpers of the counting tests: generated pairs of users and items, and counts by label."""

import numpy as np
from hypothesis import strategies as st

from discreet import _core


def as_dict(counted):
    """Return labels and counts as a dict; labels must be distinct."""
    labels, counts, *_ = counted
    names = labels.take(np.arange(len(counts)))
    assert len(set(names)) == len(names)
    return dict(zip(names, counts.tolist(), strict=True))


def counted_pairs(users, items, **options):
    """Count two sequences. Return labels and counts."""
    return _core.count_distinct((users, items), "", "", **options)[:2]


INTEGERS = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(0, 5)
WORDS = st.sampled_from(["", " ", "a", "b", "NULL", "nan", "None", "é", "e\u0301", "\u200b", "x" * 40, "x" * 41, "\0"])
KINDS = [SMALL, INTEGERS, st.integers(2**63, 2**64 - 1), WORDS, st.text(max_size=14), st.binary(max_size=14)]


@st.composite
def columns(draw):
    """Generate two columns of one length, with missing cells."""
    rows = draw(st.integers(0, 60))
    made = []
    for _ in range(2):
        kind = draw(st.sampled_from(KINDS))
        made.append(draw(st.lists(st.one_of(st.none(), kind), min_size=rows, max_size=rows)))
    return made
