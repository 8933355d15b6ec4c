"""Random tables with all options of reading at once, compared with sets of pairs in Python; some of them spill."""

from collections import Counter

import numpy as np
import pytest

from discreet import _core
from discreet.errors import ResourceError

pyarrow = pytest.importorskip("pyarrow")
DAY = 86_400_000_000
TABLES = [150, pytest.param(10_000, marks=pytest.mark.statistical)]


def cells(rng, rows, kind):
    """Return a column: a few or many values of a kind, some of them missing."""
    few = int(rng.choice([1, 3, 20, 300, 5000]))
    numbers = np.minimum(rng.zipf(1.2 + rng.random(), rows), few) if rng.random() < 0.5 else rng.integers(0, few, rows)
    missing = rng.random(rows) < rng.choice([0, 0.1])
    if kind == "small":
        return pyarrow.array(numbers.astype(np.int32), mask=missing)
    if kind == "large":
        return pyarrow.array(numbers * 7919 + (1 << 40) - 9, mask=missing)
    if kind == "unsigned":
        return pyarrow.array(numbers.astype(np.uint64) + (1 << 63), mask=missing)
    text = [f"{'x' * (number % 40)}{number}" for number in numbers.tolist()]
    if kind == "dictionary":
        return pyarrow.array(text, mask=missing).dictionary_encode()
    return pyarrow.array([one.encode() for one in text] if kind == "binary" else text, mask=missing)


KINDS = ["small", "large", "unsigned", "text", "binary", "dictionary"]


def drawn(rng):
    """Return batches of rows, their columns, the times that count, and all pairs."""
    rows = int(rng.choice([0, 1, 60, 700, 3000, 40_000], p=[0.02, 0.08, 0.4, 0.3, 0.15, 0.05]))
    columns = {name: cells(rng, rows, str(rng.choice(KINDS))) for name in ("u", "v", "i", "j")}
    days = rng.integers(0, 3, rows)
    columns["t"] = pyarrow.array(days * DAY + 5, pyarrow.timestamp("us"), mask=rng.random(rows) < 0.05)
    user = ["u", "v"] if rng.random() < 0.2 else "u"
    item = ["i", "j"] if rng.random() < 0.2 else "i"
    times = None
    if rng.random() < 0.3:
        every, since = rng.choice(["1d", ""]), rng.choice([0, DAY])
        times = ("t", str(every) or None, int(since), 3 * DAY - int(rng.choice([0, DAY])))
    table = pyarrow.table(columns)
    reader = table.to_reader(max_chunksize=int(rng.choice([64, 1000, 100_000])))
    return reader, user, item, times, pairs(table, user, item, times)


def pairs(table, user, item, times):
    """Return the set of all pairs of a user and an item without missing cells, in the times that count."""
    lists = {name: table[name].to_pylist() for name in table.column_names}
    named = ((name,) if isinstance(name, str) else name for name in (user, item))
    made = [[*zip(*(lists[name] for name in names), strict=True)] for names in named]
    found = set()
    for one, other, time in zip(*made, table["t"].cast(pyarrow.int64()).to_pylist(), strict=True):
        if None in one or None in other:
            continue
        if times is not None:
            if time is None or not times[2] <= time < times[3]:
                continue
            other = (f"1970-01-{1 + time // DAY:02d}", *other) if times[1] else other
        found.add((one, other if len(other) > 1 else other[0]))
    return found


def options(rng, labels):
    """Return random options of a count."""
    listed = [label for label in labels if rng.random() < 0.5]
    return {
        "l0": None if rng.random() < 0.4 else int(rng.integers(1, 6)),
        "only": _core.Labels.from_sequence(listed) if listed and rng.random() < 0.4 else None,
    }, listed


@pytest.mark.parametrize("tables", TABLES)
def test_all_options_at_once_give_the_counts_of_sets_of_pairs(tables):
    rng = np.random.default_rng(tables)
    for _ in range(tables):
        reader, user, item, times, expected = drawn(rng)
        chosen, listed = options(rng, sorted({item for _, item in expected}))
        if chosen["only"] is not None:
            expected = {(one, other) for one, other in expected if other in {*listed}}
        limits = {"threads": int(rng.integers(1, 5)), "memory": None if rng.random() < 0.5 else 1 << 21}
        cap = None if rng.random() < 0.7 else int(rng.integers(1, 9))
        labels, counts, users = _core.count_with_users(
            reader, user, item, **chosen, **limits, cap=cap, times=times, limit=None
        )
        check(labels, counts, users, expected, chosen["l0"], cap)


@pytest.mark.parametrize("tables", TABLES)
def test_lists_give_the_counts_of_sets_of_pairs(tables):
    rng = np.random.default_rng(1 + tables)
    refused = 0
    for _ in range(tables):
        reader, user, item, times, expected = drawn(rng)
        limits = {"threads": int(rng.integers(1, 5)), "memory": None if rng.random() < 0.5 else 1 << 21}
        by_rows = bool(rng.random() < 0.5)
        try:
            labels, lists = _core.Lists.read(reader, user, item, by_rows=by_rows, times=times, **limits)
        except ResourceError:
            refused += 1
            assert limits["memory"] is not None
            continue
        numbers = Counter(one for one, _ in expected)
        assert sorted(lists.sizes().tolist()) == sorted(numbers.values())
        for _ in range(2):
            chosen, listed = options(rng, sorted({other for _, other in expected}))
            kept = expected
            if chosen["only"] is not None:
                kept = {(one, other) for one, other in expected if other in {*listed}}
            counts, users = lists.count(labels, rng.integers(0, 2**63, 4).tolist(), **chosen)
            present = np.flatnonzero(counts)
            check(labels.select(present), counts[present], users, kept, chosen["l0"], None)
    assert refused < tables / 20


def check(labels, counts, users, expected, l0, cap):
    """Compare counts with a set of pairs, of which each user keeps at most `l0`."""
    names = labels.to_list()
    found = dict(zip(names, counts.tolist(), strict=True))
    whole, numbers = Counter(other for _, other in expected), Counter(one for one, _ in expected)
    most = cap or len(numbers) + 1
    assert len(found) == len(names)
    assert users == len(numbers)
    assert all(0 < count <= min(whole[name], most) for name, count in found.items())
    if l0 is None or max(numbers.values(), default=0) <= l0:
        assert found == {name: min(count, most) for name, count in whole.items()}
    elif cap is None:
        assert sum(found.values()) == sum(min(number, l0) for number in numbers.values())
