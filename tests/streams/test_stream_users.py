"""Streams that protect users, and count each user in a limited number of rounds."""

import datetime
import shutil
import sqlite3

import numpy as np
import pytest

from discreet import BinaryMechanism, Stream, Table, verify
from discreet.errors import ParameterError, StateError
from discreet.streams import HonakerMechanism, SquareRootMechanism, events

MECHANISM = SquareRootMechanism.from_rho(rho=500.0, delta=1e-9, l0=2, horizon=20, unit="user", rounds=2)


def table(users, item="home"):
    """Return a table in which each of these users has one item."""
    return {"who": [*users], "page": [item] * len(users)}


def counted(stream, rows):
    return dict(stream.step(rows, user="who", item="page"))


def near(found, expected):
    return found.keys() == expected.keys() and all(abs(found[name] - expected[name]) < 9 for name in expected)


@pytest.mark.parametrize("kind", [BinaryMechanism, HonakerMechanism, SquareRootMechanism])
def test_a_user_counts_in_the_first_rounds_only(kind):
    stream = kind.from_rho(rho=900.0, delta=1e-9, l0=2, horizon=20, unit="user", rounds=2).start(items="text")
    for expected in (1000, 2000, 2000):
        assert near(counted(stream, table(range(1000))), {"home": expected})
    assert near(counted(stream, table(range(500, 2500))), {"home": 3500})


def test_a_user_counts_for_at_most_l0_items_of_a_round():
    stream = MECHANISM.start()
    rows = {"who": [*range(900)] * 3, "page": ["a"] * 900 + ["b"] * 900 + ["c"] * 900}
    for number in (1, 2, 3):
        assert abs(sum(counted(stream, rows).values()) - 1800 * min(number, 2)) < 40


def test_a_round_without_an_item_of_a_user_is_free():
    for page in (None, 7):
        stream = MECHANISM.start(items="text")
        counted(stream, {"who": [*range(500), 501], "page": [page] * 500 + ["x"]})
        for expected in (500, 1000, 1000):
            assert near(counted(stream, table(range(500))), {"home": expected})


def test_a_file_keeps_the_rounds_of_users(tmp_path):
    with Stream.open(tmp_path / "s", MECHANISM) as stream:
        assert near(counted(stream, table(range(700))), {"home": 700})
    with Stream.open(tmp_path / "s") as stream:
        # The text of a number is the same user.
        assert near(counted(stream, table([*map(str, range(700, 0, -1))])), {"home": 1400})
    with Stream.open(tmp_path / "s") as stream:
        assert near(counted(stream, table(range(700))), {"home": 1402})


def test_a_restored_copy_refuses_the_same_counts_of_others(tmp_path):
    with Stream.open(tmp_path / "s", MECHANISM) as stream:
        counted(stream, table(range(700)))
    shutil.copy(tmp_path / "s", tmp_path / "copy")
    with Stream.open(tmp_path / "s") as stream:
        shown = counted(stream, table(range(700)))
    shutil.copy(tmp_path / "copy", tmp_path / "s")
    with Stream.open(tmp_path / "s") as stream:
        with pytest.raises(StateError, match="was restored to round 1"):
            counted(stream, table(range(701, 1401)))
        assert counted(stream, table(range(700))) == shown


def test_a_file_with_a_changed_user_is_refused(tmp_path):
    with Stream.open(tmp_path / "s", MECHANISM) as stream:
        counted(stream, table(range(9)))
    with sqlite3.connect(tmp_path / "s") as file:
        assert file.execute("UPDATE item SET count = 0 WHERE kind = 'u' AND label = (SELECT min(label) FROM item)")
    file.close()
    with pytest.raises(StateError, match="is corrupt"):
        Stream.open(tmp_path / "s")


def test_rows_of_several_columns_and_tables_name_users(tmp_path):
    (tmp_path / "rows.csv").write_text(
        "".join(["who,shop,page\n", *(f"{n},{n % 2},home\n" for n in range(600))]), "utf-8"
    )
    stream = MECHANISM.start()
    file = Table(tmp_path / "rows.csv", user=["who", "shop"], item="page")
    assert near(dict(stream.step(file)), {"home": 600})
    both = {"who": [*range(600)], "shop": [n % 2 for n in range(600)], "page": ["home"] * 600}
    for expected in (1200, 1200):
        assert near(dict(stream.step(Table(both, user=["who", "shop"], item="page"))), {"home": expected})


def test_lists_of_events_and_contradictions_are_refused():
    stream = MECHANISM.start()
    with pytest.raises(ParameterError, match="give a table, with user and item"):
        stream.step([["home"]])
    assert stream.round == 0
    given = {"rho": 1.0, "delta": 1e-6, "l0": 1, "horizon": 10}
    for wrong in ({"rounds": 2}, {"rounds": 2, "unit": "user", "linf": 3}, {"rounds": 11, "unit": "user"}):
        with pytest.raises(ParameterError, match="rounds"):
            Stream.recommended(**given, **wrong)
    with pytest.raises(ParameterError, match="needs horizon"):
        Stream.recommended(rho=1.0, delta=1e-6, l0=1, unit="user", rounds=2)
    with pytest.raises(ParameterError, match="needs rounds"):
        Stream.recommended(**given, unit="user")
    note = " ".join(stream.show().notes)
    assert "a user counts in the user's first 2 rounds only, with at most 2 items in each" in note
    assert "clipped to 4 items each, at most 2 of a user for an item" in note
    assert "does not check" not in note


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ({"who": [1, 2]}, {"visit": [1, 2]}),
        ({"who": [1, 2]}, {"who": np.array([True, False])}),
        ({"who": np.array(["2026-01-01"])}, {"who": np.array(["2026-01-01"], "M8[D]")}),
        ({"who": [1, 2], "shop": [1, 2]}, {"shop": [1, 2], "who": [1, 2]}),
        ({"who": [1, 2], "shop": [1, 2]}, {"who": [1, 2]}),
    ],
    ids=repr,
)
def test_users_must_keep_their_names(tmp_path, first, other):
    """Another column or type would give the users of earlier rounds new names, and more rounds."""

    def step(stream, columns, end=None):
        columns = {name: cells[:end] for name, cells in columns.items()}
        rows = {**columns, "page": ["home"] * len(next(iter(columns.values())))}
        return stream.step(Table(rows, user=[*columns], item="page"))

    for rows in (0, 1, 2):
        with Stream.open(tmp_path / f"s{rows}", MECHANISM) as stream:
            step(stream, first, rows)
            for end in (0, 1, 2):
                with pytest.raises(StateError, match="must have the same name in all rounds"):
                    step(stream, other, end)
        with Stream.open(tmp_path / f"s{rows}") as stream:
            for end in (0, 1, 2):
                with pytest.raises(StateError, match="must have the same name in all rounds"):
                    step(stream, other, end)
                step(stream, first, end)
            assert stream.round == 4


def test_no_cell_of_a_list_decides_how_users_are_named():
    for odd in (True, datetime.date(2026, 1, 31), 1.5, None, "x", object()):
        for users in ([odd], [odd, *range(700)], [*range(700), odd]):
            stream = MECHANISM.start(items="text")
            counted(stream, table(users))
            assert near(counted(stream, table([*map(str, range(700))])), {"home": 700 * (1 + (len(users) > 1))})


def test_a_round_added_meanwhile_is_an_error():
    stream = MECHANISM.start()
    counted(stream, table(range(500)))
    asked = stream._running.rounds_of

    def handled(names):
        found = asked(names)
        stream._running.rounds_of = asked
        counted(stream, table(range(500)))
        return found

    stream._running.rounds_of = handled
    with pytest.raises(StateError, match="a round was added"):
        stream.step(table(range(500)), user="who", item="page", round=3)


@pytest.mark.parametrize("at_once", [1, 7, 1 << 16])
def test_no_number_of_users_is_too_many(monkeypatch, at_once):
    monkeypatch.setattr(events, "_AT_ONCE", at_once)
    stream = MECHANISM.start()
    for expected in (500, 1000, 1000):
        assert near(counted(stream, table(range(500))), {"home": expected})
    if at_once > 7:  # as many as a limit of the pairs in 256 MiB once refused
        pairs = {"who": np.arange(536_871), "page": np.full(536_871, "home")}
        assert near(dict(stream.step(Table(pairs, user="who", item="page", memory="256MiB"))), {"home": 537_371})


def test_verify_says_what_a_guarantee_assumes(tmp_path):
    limits = {"linf": 3}, {"rounds": 3}
    for limit in limits:
        made = Stream.recommended(rho=500.0, delta=1e-9, l0=1, horizon=9, unit="user", **limit)
        made.start(items="text").step(table(range(900)), user="who", item="page").write(
            tmp_path / "rows.csv", certificate=True, overwrite=True
        )
        found = verify(tmp_path / "rows.csv")
        assumed = None if "rounds" in limit else "every user has at most 1 item, each at most 3 times"
        assert (found.condition or "").startswith(assumed or "")
        assert ("only if" in str(found)) == (assumed is not None)


def spread(form, tmp_path):
    """Return rows of 40 users with 3 of 20 items each, in an order and in parts that differ from call to call."""
    rows = [(f"user {user}", f"item {(user * 7 + step) % 20}") for user in range(40) for step in (0, 1, 5)]
    np.random.default_rng(len([*tmp_path.iterdir()])).shuffle(rows)
    who, page = ([row[place] for row in rows] for place in (0, 1))
    if form == "lists":
        return {"who": who, "page": page}
    if form == "parts":
        return [{"who": who[at : at + 9], "page": page[at : at + 9]} for at in range(0, len(rows), 9)]
    (tmp_path / f"{len([*tmp_path.iterdir()])}.csv").write_text(
        "".join(f"{one},{other}\n" for one, other in [("who", "page"), *rows])
    )
    return str(max(tmp_path.glob("*.csv"), key=lambda path: int(path.stem)))


@pytest.mark.parametrize("form", ["lists", "parts", "csv"])
@pytest.mark.parametrize("limits", [{}, {"unit": "user", "rounds": 2}], ids=["by event", "by user"])
def test_a_restored_stream_takes_the_same_rows_again(tmp_path, form, limits):
    """Users with more than l0 items choose the same ones for the same round, and others for the next."""
    data = tmp_path / "data"
    data.mkdir()
    mechanism = Stream.recommended(rho=500.0, delta=1e-9, l0=1, horizon=20, **limits).start().mechanism

    def step(stream):
        stream.step(spread(form, data), user="who", item="page")
        return {name: count for name, count in stream._file.items() if isinstance(name, str)}

    with Stream.open(tmp_path / "s", mechanism) as stream:
        first = step(stream)
    shutil.copy(tmp_path / "s", tmp_path / "copy")
    with Stream.open(tmp_path / "s") as stream:
        second = step(stream)
        shown = dict(stream.show())
    shutil.copy(tmp_path / "copy", tmp_path / "s")
    with Stream.open(tmp_path / "s") as stream:
        assert (step(stream), dict(stream.show())) == (second, shown)
    # A choice that were the same in both rounds would double all counts. By chance this happens with 3^-40.
    assert second != {name: 2 * count for name, count in first.items()}


def test_choices_are_uniform_over_the_keys_of_streams():
    """Each of 3 items of 600 users: 200 expected, with a standard deviation below 12. 12 of them fail with 1e-31."""
    rows = {"who": [user for user in range(600) for _ in range(3)], "page": ["a", "b", "c"] * 600}
    found = []
    for _ in range(5):
        by_event = BinaryMechanism.from_rho(rho=1, delta=1e-6, l0=1, horizon=9)
        stream = (MECHANISM if len(found) % 2 else by_event).start()
        l0 = stream.mechanism.l0
        stream.step(rows, user="who", item="page", release=False)
        counts = stream._running.items.counts.tolist()
        assert sum(counts) == 600 * l0
        assert all(abs(count - 200 * l0) < 144 for count in counts)
        found.append(counts)
    assert len({*map(tuple, found)}) > 1
