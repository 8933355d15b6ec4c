"""Histograms: construction, refused input, and hiding of their data."""

import numpy as np
import pytest

from discreet import GaussianThreshold, Histogram, OptimalSelection, Release, verify
from discreet.errors import ParameterError, SchemaError, SensitivityError
from discreet.privacy import Sensitivity
from discreet.testing import seeded_rng


def counted(histogram):
    """Return the content of a histogram, read from its private attributes."""
    rows = np.arange(len(histogram._counts()))
    return dict(zip(histogram._labels.take(rows), histogram._counts().tolist(), strict=True))


def test_pairs_are_counted_once_per_user():
    histogram = Histogram.from_pairs([1, 1, 2, 2, 3], ["a", "a", "a", "b", "b"])
    assert counted(histogram) == {"a": 2, "b": 2}
    assert histogram.sensitivity == Sensitivity(l0=None, linf=1)


@pytest.mark.parametrize("l0", [None, 4])
def test_a_linf_counts_rows_up_to_a_number_of_each_user(l0, tmp_path):
    random = np.random.default_rng(4)
    table = {"user": random.integers(0, 300, 4000), "item": random.integers(0, 9, 4000)}
    own = {}
    for pair in zip(table["user"].tolist(), table["item"].tolist(), strict=True):
        own[pair] = own.get(pair, 0) + 1
    columns = {"user": "user", "item": "item"}
    found = Histogram.from_table(table, **columns, linf=2, l0=l0, only=[3, 5, 7] if l0 is None else None)
    assert found.sensitivity == Sensitivity(l0=l0, linf=2)
    exact = {item: sum(min(2, rows) for (_, other), rows in own.items() if other == item) for item in range(9)}
    if l0 is None:
        assert counted(found) == {item: exact[item] for item in (3, 5, 7)}
        release = GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=3, linf=2)
        with pytest.raises(SensitivityError):
            release.release(found)
    else:
        assert all(0 < count <= exact[item] for item, count in counted(found).items())
        mechanism = GaussianThreshold.from_rho(rho=50, delta=1e-6, l0=4, linf=2)
        users = mechanism.release(Histogram.from_table(table, **columns, l0=l0))
        assert (users.kind, users.most) == ("users", None)
        release = mechanism.release(found)
        for made in (users, release):
            made.write(tmp_path / "rows.csv", certificate=True)
            read = Release.read(tmp_path / "rows.csv")
            assert (read.kind, read.most, read.measure) == (made.kind, made.most, made.measure)
            verify(tmp_path / "rows.csv")
        with pytest.raises(ParameterError, match="cannot be compared"):
            users.compare(release)
        assert release.kind == "events"
        assert release.measure == (
            "counts of events of users clipped to 4 items each, at most 2 of a user for an item; "
            "sigma is the noise alone"
        )
    none = np.zeros(0, np.int64)
    for rows in (table, {"user": [1, None], "item": [None, 2]}, {"user": none, "item": none}):
        empty = Histogram.from_table(rows, **columns, linf=2, l0=l0, only=[99])
        assert counted(empty) == {}
    for wrong in ({"cap": 9}, {"count_users": True}, {"linf": 0}):
        with pytest.raises(ParameterError):
            Histogram.from_table(table, **columns, **{"linf": 2, **wrong})


def test_rows_are_sorted_by_count_and_then_by_label():
    histogram = Histogram.from_counts(["b", "c", "a", "é", "Z"], [5, 9, 5, 5, 5], l0=1, linf=1, complete=True)
    assert list(counted(histogram)) == ["c", "Z", "a", "b", "é"]


def test_k_bar_keeps_one_more_than_k_bar_counts():
    table = {"user": [1, 2, 3, 1, 2, 1], "item": ["a", "a", "a", "b", "b", "c"]}
    whole = Histogram.from_table(table, user="user", item="item", k_bar=2)
    cut = Histogram.from_table(table, user="user", item="item", k_bar=1)
    assert counted(whole) == {"a": 3, "b": 2, "c": 1}
    assert counted(cut) == {"a": 3, "b": 2}
    assert (whole._limit, cut._limit) == (3, 2)


@pytest.mark.parametrize(
    ("items", "counts"),
    [
        (["a"], [-1]),
        (["a"], [1.5]),
        (["a"], [1.0]),
        (["a"], [float("nan")]),
        (["a"], [2**35 + 1]),
        (["a"], [10**400]),
        (["a"], ["1"]),
        (["a"], [True]),
        (["a"], [[1]]),
        (["a"], 1),
        (["a", "b"], np.ma.array([9000, 8000], mask=[0, 1])),
        (["a", "b"], [9000, np.ma.masked]),
        (["a", "b"], [1]),
        (["a", "a"], [1, 2]),
        ([1, 1], [1, 2]),
        (["a", None], [1, 2]),
        ([float("nan"), 1], [1, 2]),
    ],
)
def test_errors_about_bad_counts_contain_no_value(items, counts):
    with pytest.raises(ParameterError) as caught:
        Histogram.from_counts(items, counts, l0=1, linf=1, complete=True)
    assert not any(character.isdigit() for character in str(caught.value).replace("2^35", "").replace("0 to", ""))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("items", [[1.5], [True], ["a", 1], [b"a", "b"], [["a"]], [2**70], [object()]])
def test_items_of_other_or_mixed_types_are_refused(items):
    with pytest.raises(SchemaError):
        Histogram.from_counts(items, list(range(len(items))), l0=1, linf=1, complete=True)


@pytest.mark.parametrize("bad", [{"l0": 0}, {"linf": 0}, {"linf": None}, {"l0": 1.5}, {"complete": 1}])
def test_bad_sensitivities_are_refused(bad):
    with pytest.raises(ParameterError):
        Histogram.from_counts(["a"], [1], **{"l0": 1, "linf": 1, "complete": True, **bad})


def test_a_limit_needs_an_incomplete_table():
    make = Histogram.from_counts
    assert make(["a"], [1], l0=1, linf=1, complete=False, limit=9)._limit == 9
    assert make(["a"], [1], l0=1, linf=1, complete=False)._limit == 1
    assert make(["a"], [1], l0=1, linf=1, complete=True)._limit is None
    for wrong in ({"complete": True, "limit": 9}, {"complete": False, "limit": 1}, {"complete": False, "limit": 0}):
        with pytest.raises(ParameterError, match="limit"):
            make(["a", "b"], [1, 1], l0=1, linf=1, **wrong)


@pytest.mark.parametrize("k_bar", [0, -1, 1.5, True, "1"])
def test_a_bad_k_bar_is_refused(k_bar):
    with pytest.raises(ParameterError):
        Histogram.from_table({"u": [1], "i": [1]}, user="u", item="i", k_bar=k_bar)


ROWS = {"u": list(range(300)) * 2, "i": [1] * 300 + [user % 7 + 2 for user in range(300)]}


def test_a_cap_does_not_change_the_release():
    selection = OptimalSelection(epsilon=1.0, delta=1e-5, l0=2)
    full = Histogram.from_table(ROWS, user="u", item="i", l0=2)
    short = Histogram.from_table(ROWS, user="u", item="i", l0=2, cap=selection.cap)
    assert max(full._counts()) == 300
    assert max(short._counts()) == selection.cap < 300
    assert selection.release_chance(selection.cap) == 1.0 > selection.release_chance(selection.cap - 1)
    for seed in range(20):
        ours, theirs = selection.release(short, rng=seeded_rng(seed)), selection.release(full, rng=seeded_rng(seed))
        assert sorted(ours.items) == sorted(theirs.items)


def test_mechanisms_that_need_larger_counts_refuse_a_cap():
    short = Histogram.from_table(ROWS, user="u", item="i", l0=2, cap=20)
    with pytest.raises(SensitivityError, match="stop at 20"):
        OptimalSelection(epsilon=1.0, delta=1e-5, l0=2).release(short)
    with pytest.raises(SensitivityError, match="stop at 20"):
        GaussianThreshold.from_rho(rho=1.0, delta=1e-6, l0=2).release(short)
    with pytest.raises(ParameterError, match="cap"):
        Histogram.from_table(ROWS, user="u", item="i", l0=2, cap=0)
    with pytest.raises(ParameterError, match="k_bar largest"):
        Histogram.from_table(ROWS, user="u", item="i", cap=5, k_bar=5)
