"""Partition columns in the names of folders: read as pyarrow, DuckDB and Spark read them."""

import pytest
from counting import counted

import discreet as dp
from discreet.errors import SchemaError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
dataset = pytest.importorskip("pyarrow.dataset")

ODD = [
    "a%20b",
    "a%2Fb",
    "a%3Db",
    "with space",
    "é",
    "%C3%A9t%C3%A9",
    "1",
    "2026-01-31",
    "true",
    "",
    "+",
    "100%25",
    "a%3Fb",
    "a%0Ab",
]
ODD += ["%zz", "NULL", "'quoted\"", "[a-z]*", "__HIVE_DEFAULT_PARTITION__"]


def tree(folder, *names, rows=2):
    for number, name in enumerate(names):
        place = folder / name
        place.mkdir(parents=True)
        users = [*range(number * 10, number * 10 + rows)]
        parquet.write_table(pyarrow.table({"user": users, "page": ["home"] * rows}), place / "part.parquet")
    return folder


def of_pyarrow(folder):
    text = dataset.HivePartitioning(pyarrow.schema([("place", pyarrow.string())]))
    cells = dataset.dataset(folder, partitioning=text).to_table()["place"].to_pylist()
    return {cell for cell in cells if cell is not None}


def test_odd_values_are_read_as_by_pyarrow_and_the_default_partition_is_null(tmp_path):
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


@pytest.mark.parametrize(
    "names, text",
    [
        (["place=a=b"], "two equals signs"),
        (["place=a?b"], "question mark or a line feed"),
        (["place=a\nb"], "question mark or a line feed"),
        (["place=%FF"], "not UTF-8"),
        (["place=a/place=b"], "same key in a folder"),
    ],
)
def test_names_that_libraries_read_differently_are_refused_without_their_value(tmp_path, names, text):
    folder = tree(tmp_path, "place=fine", *names)
    budget = dp.Budget(rho=1, delta=1e-5)
    with pytest.raises(SchemaError, match=text) as raised:
        dp.count(folder, user="user", item="place", rho=1, delta=1e-6, budget=budget)
    assert names[0] not in str(raised.value)
    assert budget.spent.rho == 0
    # Without the partition column the names do not matter.
    assert counted(folder, item="page") == {"home": 4}


def test_a_question_mark_in_a_folder_that_is_no_column_changes_nothing(tmp_path):
    folder = tree(tmp_path, "other=a?b/place=x")
    assert counted(folder, item="place") == {"x": 2}
