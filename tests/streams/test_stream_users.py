"""Streams that protect users, and count each user in a limited number of rounds."""

import datetime
import shutil
import sqlite3

import pytest

from discreet import BinaryMechanism, Stream, Table, verify
from discreet.errors import ParameterError, ResourceError, StateError
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
        ({"who": [1, 2]}, {"who": [True, False]}),
        ({"who": ["2026-01-01"]}, {"who": [datetime.date(2026, 1, 1)]}),
        ({"who": [1, 2], "shop": [1, 2]}, {"shop": [1, 2], "who": [1, 2]}),
        ({"who": [1, 2], "shop": [1, 2]}, {"who": [1, 2]}),
    ],
    ids=repr,
)
def test_users_must_keep_their_names(tmp_path, first, other):
    """Another column or type would give the users of earlier rounds new names, and more rounds."""

    def step(stream, columns):
        rows = {**columns, "page": ["home"] * len(next(iter(columns.values())))}
        return stream.step(Table(rows, user=[*columns], item="page"))

    with Stream.open(tmp_path / "s", MECHANISM) as stream:
        step(stream, first)
        with pytest.raises(StateError, match="must have the same name in all rounds"):
            step(stream, other)
    with Stream.open(tmp_path / "s") as stream:
        with pytest.raises(StateError, match="must have the same name in all rounds"):
            step(stream, other)
        step(stream, {name: [] for name in other})
        step(stream, first)
        assert stream.round == 3


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


def test_users_beyond_the_memory_of_the_table_are_an_error(monkeypatch):
    monkeypatch.setattr(events, "_PAIR_BYTES", 10**5)
    stream = MECHANISM.start()
    with pytest.raises(ResourceError, match="raise its memory"):
        stream.step(Table(table(range(9000)), user="who", item="page", memory="512MB"))
    assert stream.round == 0


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
