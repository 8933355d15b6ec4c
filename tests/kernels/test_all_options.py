"""Random tables with all options of reading at once, compared with pairs in Python; some of them spill."""

from collections import Counter

import numpy as np
import pytest

from discreet import _core

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
    if kind == "outgrowing":  # small numbers at first, which are packed
        numbers = np.where(np.arange(rows) < rows * 0.9, numbers, numbers * 7919 + (1 << 40))
        return pyarrow.array(numbers, mask=missing)
    if kind == "large":
        return pyarrow.array(numbers * 7919 + (1 << 40) - 9, mask=missing)
    if kind == "unsigned":
        return pyarrow.array(numbers.astype(np.uint64) + (1 << 63), mask=missing)
    text = [f"{'x' * (number % 40)}{number}" for number in numbers.tolist()]
    if kind == "dictionary":
        return pyarrow.array(text, mask=missing).dictionary_encode()
    return pyarrow.array([one.encode() for one in text] if kind == "binary" else text, mask=missing)


KINDS = ["small", "outgrowing", "large", "unsigned", "text", "binary", "dictionary"]


def drawn(rng):
    """Return batches of rows, their columns, the times that count, and all pairs."""
    rows = int(rng.choice([0, 1, 60, 700, 3000, 40_000], p=[0.02, 0.08, 0.4, 0.3, 0.15, 0.05]))
    columns = {name: cells(rng, rows, str(rng.choice(KINDS))) for name in ("u", "v", "i", "j")}
    days = rng.integers(0, 3, rows)
    columns["s"] = pyarrow.array(rng.integers(-6, 7, rows) / 2, mask=rng.random(rows) < 0.05)
    columns["t"] = pyarrow.array(days * DAY + 5, pyarrow.timestamp("us"), mask=rng.random(rows) < 0.05)
    user = ["u", "v"] if rng.random() < 0.2 else "u"
    item = ["i", "j"] if rng.random() < 0.2 else "i"
    times = None
    if rng.random() < 0.3:
        every, since, unit = rng.choice(["1d", ""]), rng.choice([0, DAY]), rng.choice(["1h", "1d", "1mo", ""])
        times = ("t", str(every) or None, int(since), 3 * DAY - int(rng.choice([0, DAY])), str(unit) or None)
    table = pyarrow.table(columns)
    reader = table.to_reader(max_chunksize=int(rng.choice([64, 1000, 100_000])))
    return reader, user, item, times, pairs(table, user, item, times)


def pairs(table, user, item, times):
    """Return the values of each pair of a user and an item without missing cells, in the times that count."""
    lists = {name: table[name].to_pylist() for name in table.column_names}
    named = ((name,) if isinstance(name, str) else name for name in (user, item))
    made = [[*zip(*(lists[name] for name in names), strict=True)] for names in named]
    found = {}
    for one, other, time, value in zip(*made, table["t"].cast(pyarrow.int64()).to_pylist(), lists["s"], strict=True):
        if None in one or None in other:
            continue
        if times is not None:
            if time is None or not times[2] <= time < times[3]:
                continue
            other = (f"1970-01-{1 + time // DAY:02d}", *other) if times[1] else other
            one = (time // DAY if times[4] in ("1h", "1d") else times[4], *one)
        found.setdefault((one, other if len(other) > 1 else other[0]), []).append(value)
    return found


def options(rng, labels):
    """Return random options of a count."""
    listed = {label: None for label in labels if rng.random() < 0.5}
    return {
        "l0": None if rng.random() < 0.4 else int(rng.integers(1, 6)),
        "only": _core.Labels.from_sequence([*listed]) if listed and rng.random() < 0.4 else None,
    }, listed


@pytest.mark.parametrize("tables", TABLES)
def test_all_options_at_once_give_the_counts_of_sets_of_pairs(tables):
    rng = np.random.default_rng(tables)
    for _ in range(tables):
        reader, user, item, times, expected = drawn(rng)
        value = "s" if rng.random() < 0.3 else None
        expected = {pair for pair, cells in expected.items() if value is None or cells != [None] * len(cells)}
        chosen, listed = options(rng, sorted({item for _, item in expected}))
        if chosen["only"] is not None:
            expected = {(one, other) for one, other in expected if other in listed}
        limits = limits_of(rng)
        cap = None if rng.random() < 0.7 else int(rng.integers(1, 9))
        labels, counts, users = _core.count_distinct(
            reader, user, item, **chosen, **limits, cap=cap, times=times, value=value, limit=None, users=True
        )
        check(labels, counts, users, expected, chosen["l0"], cap)


@pytest.mark.parametrize("tables", TABLES)
def test_lists_give_the_counts_of_sets_of_pairs(tables):
    rng = np.random.default_rng(1 + tables)
    for _ in range(tables):
        reader, user, item, times, expected = drawn(rng)
        limits = limits_of(rng)
        any_order = bool(rng.random() < 0.5)
        labels, lists = _core.Lists.read(reader, user, item, times=times, any_order=any_order, **limits)
        numbers = Counter(one for one, _ in expected)
        assert sorted(lists.sizes().tolist()) == sorted(numbers.values())
        for _ in range(2):
            chosen, listed = options(rng, sorted({other for _, other in expected}))
            kept = expected
            if chosen["only"] is not None:
                kept = {(one, other) for one, other in expected if other in listed}
            counts, users = lists.count(labels, rng.integers(0, 2**63, 4).tolist(), **chosen)
            present = np.flatnonzero(counts)
            check(labels.select(present), counts[present], users, kept, chosen["l0"], None)


@pytest.mark.parametrize("tables", TABLES)
def test_sums_give_the_totals_of_dicts_of_values(tables):
    rng = np.random.default_rng(2 + tables)
    for _ in range(tables):
        reader, user, item, times, values = drawn(rng)
        names = sorted({other for _, other in values})
        listed = {name: None for name in names if rng.random() < 0.5}
        if not listed:
            continue
        labels, limits = _core.Labels.from_sequence([*listed]), limits_of(rng) | {"times": times}
        if rng.random() < 0.3:
            sizes = _core.Pairs.read(reader, user, item, only=labels, **limits).sizes()
            assert sorted(sizes) == sorted(Counter(one for one, other in values if other in listed).values())
            continue
        totals = {}
        for (one, other), cells in values.items():
            present = [cell for cell in cells if cell is not None]
            if other in listed and present:
                totals[one, other] = sum(present)
        l0 = None if rng.random() < 0.5 else int(rng.integers(1, 6))
        pairs = _core.Pairs.read(reader, user, item, value="s", resolution=0.5, valued=True, only=labels, **limits)
        found = pairs.measured(labels, l0 or 2**30, [("sum", -3, 5, 1, 1, 0)])[1][:, 0].tolist()
        numbers = Counter(one for one, _ in totals)
        extents, own = Counter(pairs.extents().tolist()), {}
        for (one, _), total in totals.items():
            own.setdefault(one, set()).add(abs(round(2 * total)))
        assert extents.total() == len(own)
        assert extents.keys() <= set().union(*own.values())
        assert extents >= Counter(min(sizes) for sizes in own.values() if len(sizes) == 1)
        if l0 is None or max(numbers.values(), default=0) <= l0:
            expected = dict.fromkeys(listed, 0)
            for (_, other), total in totals.items():
                expected[other] += max(-3, min(5, round(2 * total)))
            assert found == [*expected.values()]
        else:
            most = sum(min(number, l0) for number in numbers.values())
            assert -3 * most <= sum(found) <= 5 * most


def limits_of(rng):
    """Return random limits of threads and memory."""
    return {"threads": int(rng.integers(1, 5)), "memory": None if rng.random() < 0.5 else 1 << 21}


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
