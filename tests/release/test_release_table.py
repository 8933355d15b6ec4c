"""A release as a table: items, places, slices, dicts and frames."""

import json
import pickle

import numpy as np
import pytest
from released import KINDS, counted, named, ranked

from discreet import Release, count
from discreet.errors import ParameterError
from discreet.release.rows import Row


def test_an_item_has_its_count_or_its_rank():
    assert counted()["home"] == 800
    assert type(counted()["home"]) is int
    assert ranked()["search"] == 2
    assert counted("int64")[-1] == 200
    assert counted("binary")[b"\xff\xfe"] == 400


def test_an_item_that_was_not_released_is_a_key_error():
    for release in (counted(), ranked(), named()):
        with pytest.raises(KeyError, match="help was not released: the data does not have it, or too few users"):
            release["help"]
    with pytest.raises(KeyError, match=r"0 is not an item: the items are string; .* slice such as \[0:1\]"):
        counted()[0]
    with pytest.raises(KeyError) as raised:
        counted()["\x1b[31m" + "x" * 1000]
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 200


def test_names_alone_have_no_values():
    for read in (lambda: named()["home"], named().to_dict):
        with pytest.raises(ParameterError, match="without counts or ranks"):
            read()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lazy", [True, False])
def test_membership_is_by_item(kind, lazy):
    release = counted(kind, lazy=lazy)
    assert all(item in release for item in KINDS[kind])
    assert "nothing" not in release
    assert [*release.to_dict().items()] == [*release]


def test_to_dict_is_in_the_order_of_the_rows():
    assert [*counted().to_dict().values()] == counted().counts.tolist()
    assert ranked().to_dict() == {item: place for place, item in enumerate(KINDS["string"], 1)}


@pytest.mark.parametrize("make", [counted, ranked, named])
@pytest.mark.parametrize("part", [slice(3), slice(1, 4), slice(None, None, 2), slice(None, None, -1), slice(-2, None)])
@pytest.mark.parametrize("lazy", [True, False])
def test_a_slice_is_a_release_with_the_same_guarantee(make, part, lazy):
    release = make(lazy=lazy)
    some = release[part]
    assert isinstance(some, Release)
    assert some.items == KINDS["string"][part]
    for name in ("guarantee", "spent", "made_by", "users", "seeded", "clipped", "ranked", "calls"):
        assert getattr(some, name) == getattr(release, name)
    if release.counts is not None:
        assert some.counts.tolist() == release.counts.tolist()[part]
    if release.ranked:
        assert [some[item] for item in some.items] == [release[item] for item in some.items]
    whole = len(some) == len(release)
    assert some.notes == (release.notes if whole else (*release.notes, "a part of a release of 8 items"))
    assert some[:1].notes[-1] == "a part of a release of 8 items"


def test_head_is_the_first_rows():
    assert counted().head(2).items == ["home", "search"]
    assert counted().head().items == KINDS["string"]
    assert len(counted().head(0)) == 0
    for wrong in (-1, 1.5, None, "2", True):
        with pytest.raises(ParameterError):
            counted().head(wrong)


def test_only_readers_make_objects_of_the_labels():
    release = counted(lazy=True)
    parts = [release, release.head(2), release[1:5], release[::2].head(1)]
    for part in parts:
        assert len(part) == len(part._labels.to_list())
        repr(part)
        part._repr_html_()
    assert all(part._labels is not None for part in parts)


def test_iteration_gives_pairs_that_know_their_sigma():
    rows = [*counted()]
    item, number = rows[0]
    assert (item, number, rows[0].item, rows[0].count, rows[0].sigma) == ("home", 800, "home", 800, 5.0)
    assert rows[0] == ("home", 800) == rows[0]
    assert rows[0] != ("home", 801)
    assert (rows[0][0], rows[0][-1], rows[0][:2], rows[0]["sigma"]) == ("home", 800, ("home", 800), 5.0)
    assert (len(rows[0]), repr(rows[0]), hash(rows[0])) == (2, "('home', 800)", hash(("home", 800)))
    assert dict(counted()) == counted().to_dict()
    assert sorted(rows) == sorted(tuple(row) for row in rows)
    assert max(rows) == max(map(tuple, rows))
    assert set(rows) == {*map(tuple, rows)}
    assert pickle.loads(pickle.dumps(rows[0])).sigma == 5.0
    assert json.loads(json.dumps([tuple(row) for row in rows]))[0] == ["home", 800]
    assert next(zip(*rows, strict=True)) == tuple(KINDS["string"])
    assert type(Row("a", 1, 2.0)[0]) is str
    assert [*ranked()] == ranked().items


def test_polars_and_pyarrow_make_frames_of_a_release():
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    assert polars.DataFrame(counted()).columns == ["item", "count", "sigma"]
    assert pyarrow.table(ranked()).column_names == ["item", "rank"]
    header = json.loads(counted().to_arrow().schema.metadata[b"discreet"])
    assert header["made_by"] == counted().made_by


def test_parts_are_written_with_their_own_ranks(tmp_path):
    ranked()[2:4].write(tmp_path / "part.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "part.jsonl").read_text().splitlines()]
    assert [row["rank"] for row in rows] == [3, 4]


def test_a_count_is_a_table():
    log = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000}
    release = count(log, user="user", item="page", rho=1, delta=1e-6)
    assert {"home", "help"} == {*release.to_dict()}
    assert abs(release["home"] - 5000) < 2000
    assert np.array_equal(release.head(1).counts, release.counts[:1])


def test_the_error_for_a_missing_item_names_the_columns():
    release = counted((("day", "date"), ("page", "string")), items=[("2026-01-31", "home")])
    assert release["2026-01-31", "home"] == 100
    with pytest.raises(KeyError, match="tuples of day, page"):
        release["home"]
