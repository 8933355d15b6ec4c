"""Partition columns in the names of folders: read as pyarrow, DuckDB and Spark read them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from counting import BINARY, counted, store

import discreet as dp
from discreet.engines.checking import check
from discreet.engines.timed_events import TimedEvents
from discreet.errors import SchemaError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
dataset = pytest.importorskip("pyarrow.dataset")

ODD = ["a%20b", "a%2Fb", "a%3Db", "with space", "é", "%C3%A9t%C3%A9", "1", "2026-01-31", "true", "", "+", "100%25"]
ODD += ["a%3Fb", "a%0Ab"]
ODD += ["%zz", "NULL", "'quoted\"", "[a-z]*", "__HIVE_DEFAULT_PARTITION__"]


def tree(folder, *names, rows=2):
    for number, name in enumerate(names):
        place = folder / name
        place.mkdir(parents=True)
        users = [*range(number * 10, number * 10 + rows)]
        parquet.write_table(pyarrow.table({"user": users, "page": ["home"] * rows}), place / "part.parquet")
    return folder


def write(path, **cells):
    """Write one row in the format of the suffix."""
    table = pyarrow.table({name: [cell] for name, cell in cells.items()})
    if path.suffix[1:] in BINARY:
        store(table, path)
    else:
        lines = [json.dumps(cells)] if path.suffix == ".jsonl" else [",".join(cells), ",".join(cells.values())]
        path.write_text("".join(f"{line}\n" for line in lines))


def of_pyarrow(folder):
    text = dataset.HivePartitioning(pyarrow.schema([("place", pyarrow.string())]))
    cells = dataset.dataset(folder, partitioning=text).to_table()["place"].to_pylist()
    return {cell for cell in cells if cell is not None}


def test_odd_folders_are_read_as_by_pyarrow_and_the_default_is_null(tmp_path):
    folder = tree(tmp_path, *(f"place={name}" for name in ODD))
    found = counted(folder, item="place")
    assert found == dict.fromkeys(of_pyarrow(folder), 2)
    assert len(found) == len(ODD) - 1
    assert {"a b", "a/b", "a=b", "été", "2026-01-31", ""} <= {*found}


def test_a_tree_of_pyarrow_is_read_back(tmp_path):
    values = ["x=y", "a/b", "ü", " ", None, "%41"]
    table = pyarrow.table({"user": range(6), "place": values})
    dataset.write_dataset(table, tmp_path, format="parquet", partitioning=["place"], partitioning_flavor="hive")
    assert counted(tmp_path, item="place") == {value: 1 for value in values if value is not None}


def test_values_of_several_types_are_text(tmp_path):
    folder = tree(tmp_path, "place=1", "place=01", "place=x", "place=1.0")
    assert counted(folder, item="place") == dict.fromkeys(["1", "01", "x", "1.0"], 2)


@pytest.mark.parametrize("name", ["a=b", "a?b", "a\nb", "a\\b", "\\", "x\\place=fine", "%FF", "a%ff%41"])
def test_a_value_of_a_folder_is_data_and_is_never_refused(tmp_path, name):
    folder = tree(tmp_path, "place=fine", f"place={name}")
    assert counted(folder, item="place") == {"fine": 2} | ({} if "%" in name else {name: 2})
    assert counted(folder, item="page") == {"home": 4}


def test_a_backslash_ends_no_value_and_begins_no_folder(tmp_path):
    parquet.write_table(pyarrow.table({"user": [1], "place": ["x"]}), tmp_path / "a\\place=b\\0.parquet")
    assert counted(tmp_path, item="place") == {"x": 1}
    folder = tree(tmp_path / "tree", "place=a\\x", "place=a\\y")
    assert counted(folder, item="place") == {"a\\x": 2, "a\\y": 2}


def test_the_same_key_in_two_folders_of_a_path_is_refused(tmp_path):
    folder = tree(tmp_path, "place=a/Place=b")
    with pytest.raises(SchemaError, match="same key in a folder"):
        counted(folder, item="place")
    assert counted(folder, item="page") == {"home": 2}


@pytest.mark.parametrize("suffix", ["csv", "jsonl", *BINARY])
@pytest.mark.parametrize("key", ["user", "User", "PAGE"])
def test_a_column_of_the_files_is_no_key_of_a_folder(tmp_path, suffix, key):
    """One person in many folders would otherwise be released as many users."""
    if (suffix, key) == ("parquet", "user"):
        pytest.skip("the files win over a key of the same spelling")
    for shop in range(3):
        place = tmp_path / f"{key}=shop{shop}" / "day=1"
        place.mkdir(parents=True)
        write(place / f"0.{suffix}", user="7", page="home")
    budget = dp.Budget(rho=9, delta=1e-4)
    paid = {"rho": 1, "delta": 1e-6, "budget": budget}
    item = "page" if suffix != "parquet" else "day"
    read = {"user": "user", "item": ["page", item] if item == "day" and key == "PAGE" else item}
    calls = [
        lambda: dp.count(tmp_path, **read, l0=1, **paid),
        lambda: dp.count(tmp_path, **read, **paid),
        lambda: dp.count(tmp_path, **read, l0="auto", **paid),
        lambda: dp.top_k(tmp_path, **read, k=1, **paid),
        lambda: dp.select(tmp_path, **read, l0=1, **paid),
        lambda: check(tmp_path, **read),
    ]
    for call in calls:
        with pytest.raises(SchemaError, match="in the names of folders"):
            call()
    assert budget.spent.rho == 0


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_no_key_of_a_folder_replaces_a_value_or_a_time(tmp_path, suffix):
    for name in ("Value=5", "TIME=2026-01-01"):
        place = tmp_path / "tree" / name
        place.mkdir(parents=True)
        write(place / f"0.{suffix}", user="7", page="home", value="1", time="2026-01-01T00:00:00")
        tree_of = {"user": "user", "item": "page"}
    paid = {"rho": 1, "delta": 1e-6}
    with pytest.raises(SchemaError, match=r"'value' of .* is in the"):
        dp.sum(tmp_path / "tree", **tree_of, value="value", bounds=(0, 1), items=["home"], l0=1, **paid)
    with pytest.raises(SchemaError, match=r"'time' of .* is in the"):
        dp.count(tmp_path / "tree", **tree_of, time="time", every="1d", l0=1, **paid)
    with pytest.raises(SchemaError, match=r"'time' of .* is in the"):
        TimedEvents(str(tmp_path / "tree"), event="user", item="page", time="time").rows_by_round(
            datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
        )


def test_a_key_that_differs_by_case_from_no_column_is_read(tmp_path):
    folder = tree(tmp_path, "Place=a", "Place=b")
    assert counted(folder, item="Place") == {"a": 2, "b": 2}
    with pytest.raises(SchemaError, match="did you mean 'Place'"):
        counted(folder, item="place")
    assert {*check(folder).types} == {"user", "page", "Place"}


def test_a_released_file_is_read_without_the_names_of_folders(tmp_path):
    release = dp.count({"user": range(5000), "page": ["home"] * 5000}, user="user", item="page", rho=1, delta=1e-6)
    path = tmp_path / "page=x" / "COUNT=5" / "day=1" / "r.parquet"
    path.parent.mkdir(parents=True)
    release.write(path)
    assert dp.Release.read(path).items == release.items


def test_a_question_mark_in_another_folder_changes_nothing(tmp_path):
    folder = tree(tmp_path, "other=a?b/place=x")
    assert counted(folder, item="place") == {"x": 2}


def test_parquet_files_win_over_a_key_of_the_same_spelling(tmp_path):
    for shop in range(50):
        place = tmp_path / f"user=shop{shop}" / "day=1"
        place.mkdir(parents=True)
        write(place / "0.parquet", user="7", day="2")
    assert counted(tmp_path, item="day") == {"2": 1}
    write(tmp_path / "user=shop0" / "day=1" / "1.parquet", day="2")
    with pytest.raises(SchemaError):
        counted(tmp_path, item="day")
