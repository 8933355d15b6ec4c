"""The items of an event that count, and the type of a stream's items."""

import math

import numpy as np
import pytest
from continual import made

import discreet as dp
from discreet import BinaryMechanism, Stream, _core
from discreet.errors import ParameterError, SchemaError


def test_the_chosen_items_do_not_depend_on_numpy_types():
    def kept(first):
        stream = Stream(made(BinaryMechanism, l0=2))
        stream._begin(stream.mechanism, b"k" * 32, "integer")
        stream.step([first, *[list(range(6))] * 5], release=False)
        running = stream._running.items
        labels = running.labels.select(np.arange(len(running.counts))).take(np.arange(len(running.counts)))
        return dict(zip(labels, running.counts.tolist(), strict=True))

    plain = kept(list(range(6)))
    for kind in (np.int64, np.int32, np.uint8):
        assert kept(np.arange(6, dtype=kind)) == plain
    assert kept([]) == {item: count - 1 for item, count in plain.items()}


def test_a_round_may_be_a_table():
    stream = made(BinaryMechanism, l0=2).start()
    table = {"visit": [n // 3 for n in range(900)], "page": ["a", "b", "c"] * 300}
    counts = dict(stream.step(table, user="visit", item="page"))
    assert set(counts) == {"a", "b", "c"}
    # Two of three items of each of 300 visits count.
    assert abs(sum(counts.values()) - 600) < 3 * 7 * stream.mechanism.deviation(1)


def test_an_event_counts_for_l0_items_and_each_once():
    stream = made(BinaryMechanism, rho=50.0, l0=2).start()
    release = stream.step([["a", "a", "b", "c", None]] * 3000)
    assert len(release) == 2
    assert all(abs(count - 3000) < 60 for _, count in release)


PLAIN = {"text": "a", "integer": -1, "bytes": b"a"}
UNCOUNTED = {"large": 2**70, "unsigned": 2**63, "small": -(2**63) - 1, "huge": 10**5000, "half": "\ud800"}
UNCOUNTED |= {"long": "x" * (_core.LONGEST + 1), "long bytes": b"x" * (_core.LONGEST + 1)}
"""Labels that no table of a stream counts."""


@pytest.mark.parametrize("odd", UNCOUNTED.values(), ids=UNCOUNTED)
def test_labels_that_fit_no_column_are_dropped(odd):
    kind, plain = next((name, plain) for name, plain in PLAIN.items() if isinstance(odd, type(plain)))
    stream = made(BinaryMechanism, rho=50.0, l0=2).start(items=kind)
    assert stream.step([[odd, plain, plain]] * 500 + [[odd]] * 500).items == [plain]
    # It takes no place of the l0 items of an event.
    many = made(BinaryMechanism, rho=50.0, l0=1).start(items=kind)
    assert abs(dict(many.step([[odd, plain]] * 300))[plain] - 300) < 90
    for cells in ([odd, *[plain] * 300], [*[plain] * 300, odd]):
        assert many.step({"u": range(301), "i": cells}, user="u", item="i").items == [plain]


@pytest.mark.parametrize("bad", [None, 3, "abc", {"a": 1}])
def test_events_of_another_form_are_refused_and_change_nothing(bad):
    stream = made(BinaryMechanism).start()
    with pytest.raises(ParameterError):
        stream.step(bad)
    assert stream.round == 0


def test_cells_of_an_undeclared_stream_are_text():
    """No cell decides the type of a stream: not the first one, and not that of another user."""
    for first in ([[5]], [], [["a"]], [5], {"user": [1], "item": [5]}):
        stream = made(BinaryMechanism, rho=1e4).start()
        stream.step(first, **({"user": "user", "item": "item"} if isinstance(first, dict) else {}))
        assert set(stream.step([["a"]] * 300 + [[7]] * 300).items) == {"7", "a"}
        rows = {"user": range(600), "item": [*["b"] * 300, *[7] * 300]}
        assert set(stream.step(rows, user="user", item="item").items) == {"7", "a", "b"}
        with pytest.raises(SchemaError, match="text, not integer"):
            stream.step({"user": np.arange(0), "item": np.arange(0)}, user="user", item="item")
        assert stream.round == 3


def test_items_of_an_undeclared_type_are_dropped():
    """One user's odd item does not change the releases of other users' items."""
    for kind, plain, odd in [
        ("text", "a", [1, b"a", 1.5, True, None]),
        ("integer", 7, ["7", b"7", 7.5, True, None]),
        ("bytes", b"a", ["a", 1, None, True]),
    ]:
        stream = made(BinaryMechanism, rho=50.0, l0=9).start(items=kind)
        assert stream.step([odd, [[1]], odd]).items == []
        release = stream.step([[plain, *odd]] * 300)
        assert release.items == [plain]
        assert stream.step([]).items == [plain]
    with pytest.raises(ParameterError, match="items must be"):
        made(BinaryMechanism).start(items="str")


class Broken:
    """An event whose items cannot be read."""

    def __iter__(self):
        yield "a"
        raise OSError("secret")


ODD = [None, 5, math.nan, "ab", b"ab", {"a": 1}, 1.5, object(), True, np.array(5), Broken()]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_an_odd_event_of_a_declared_stream_loses_itself_alone(odd):
    plain = [["a"]] * 300
    stream = made(BinaryMechanism, rho=50.0).start(items="text")
    for events in ([odd, *plain], [*plain, odd], iter([*plain, odd]), [[odd], *plain]):
        before = dict(stream.show()).get("a", 0)
        assert abs(dict(stream.step(events))["a"] - before - 300) < 90
    rows = {"u": range(301), "i": ["a"] * 300 + [odd]}
    for cells in (rows["i"], tuple(rows["i"]), np.array([*rows["i"], None], object)[:-1]):
        found = stream.step({**rows, "i": cells}, user="u", item="i").items
        assert [item for item in found if item != "ab"] == ["a"]  # "ab" is text, and may be released by chance


def test_missing_events_and_items_are_dropped_without_a_declared_type():
    pandas = pytest.importorskip("pandas")
    stream = made(BinaryMechanism, rho=50.0).start()
    for missing in (None, math.nan, pandas.NaT, pandas.NA):
        assert stream.step([missing, [missing], ["a", missing], *[["a"]] * 300]).items == ["a"]
    assert stream.step([None]).items == ["a"]


@pytest.mark.parametrize("items", [None, "text", "integer"])
def test_an_event_that_is_no_list_is_an_item_or_left_out(items):
    stream = made(BinaryMechanism, rho=50.0).start(items=items)
    mine: list[object] = []
    mine.append(mine)
    for odd in (None, {"a": 1}, np.array(5), Broken(), object(), mine, (cell for cell in ())):
        assert stream.step([odd]).items == stream.step([odd] * 2).items == []
    plain = 5 if items == "integer" else "ab"
    assert stream.step([plain] * 300).items == [plain]


def test_a_table_without_rows_fixes_the_type_too(tmp_path):
    pandas, pyarrow, polars = map(pytest.importorskip, ("pandas", "pyarrow", "polars"))
    empty = {"u": np.array([], np.int64), "i": np.array([], np.int64)}
    texts = {"u": [1, 2], "i": ["a", "b"]}
    typed = [
        pyarrow.array([], pyarrow.int64()),
        polars.Series([], dtype=polars.Int64),
        pandas.Series([], dtype="Int64"),
    ]
    array = {"u": np.array([1, 2]), "i": np.array(["a", "b"])}
    for before in (empty, *({"u": [], "i": items} for items in typed)):
        with Stream.open(tmp_path / str(id(before)), made(BinaryMechanism, rho=50.0)) as stream:
            stream.step(before, user="u", item="i")
        with Stream.open(tmp_path / str(id(before))) as stream:  # the file remembers the type without an item
            for after in (array, {name: cells[:0] for name, cells in array.items()}):
                with pytest.raises(SchemaError, match="integer, not text"):
                    stream.step(after, user="u", item="i")
            stream.step(texts, user="u", item="i")
            stream.step([["a"], []])
            assert stream.step([["a", 1]] * 300).items == [1]
            stream.step({"u": [], "i": []}, user="u", item="i")
            assert stream.round == 5
    declared = made(BinaryMechanism).start(items="text")
    with pytest.raises(SchemaError, match="text, not integer"):
        declared.step(empty, user="u", item="i")
    declared.step(texts, user="u", item="i")


def test_a_table_needs_the_names_of_its_columns():
    polars = pytest.importorskip("polars")
    with pytest.raises(ParameterError, match="with a table give user and item"):
        made(BinaryMechanism).start().step(polars.DataFrame({"user": [1], "item": ["a"]}))


def test_a_table_is_a_round_as_its_rows_are():
    rows = {"user": [*range(40)], "item": ["a"] * 40, "day": ["2026-01-31"] * 39 + ["2026-02-01"]}
    columns = {"user": "user", "item": "item"}
    for items in (None, "text"):
        by_rows, by_table = (made(BinaryMechanism, rho=1e4).start(items=items) for _ in range(2))
        expected = by_rows.step(rows, **columns)
        assert by_table.step(dp.Table(rows, **columns)).counts.tolist() == expected.counts.tolist() == [40]
        assert by_table.step(dp.Table(rows, **columns, time="day", until="2026-02-01")).counts.tolist() == [79]
        for named in ({**columns, "item": ["item", "day"]}, {**columns, "time": "day", "every": "1d"}):
            with pytest.raises(ParameterError, match="items of one column"):
                by_table.step(dp.Table(rows, **named))
        with pytest.raises(ParameterError, match="items of one column"):
            by_table.step(rows, user="user", item=["item", "day"])
        with pytest.raises(ParameterError, match="already has its columns"):
            by_table.step(dp.Table(rows, **columns), **columns)
        assert by_table.round == 2


def test_masked_events_and_items_are_missing():
    lists = np.ma.array(np.array([["a"], ["a"], None], object), mask=[0, 0, 1])
    numbers = [np.ma.array([1, 2, 3], mask=[0, 1, 1])] * 40
    for items, one in ((None, "1"), ("integer", 1)):
        assert made(BinaryMechanism, rho=1e4, l0=3).start(items=items).step(numbers).items == [one]
    for items in (None, "text"):
        assert made(BinaryMechanism, rho=1e4).start(items=items).step(lists).items == ["a"]
