"""Sums of clipped values for public items."""

import math

import numpy as np
import pytest
from counting import clipped_sums

from discreet.errors import InputError, ItemTypeError, ParameterError, SchemaError
from discreet.mechanisms import ClippedSums
from discreet.testing import seeded_rng

ROWS = {
    "user": np.array([1, 1, 2, 3, 3, 4, 5]),
    "item": np.array(["a", "a", "a", "b", "b", "c", "a"]),
    "value": np.array([3.0, 4.0, 2.0, -50.0, 1.0, 9.0, math.nan]),
}


def sums(data=ROWS, items=("a", "b", "x"), bounds=(-10, 5), resolution=1.0, columns=("user", "item", "value")):
    return clipped_sums(data, columns=columns, items=list(items), bounds=bounds, resolution=resolution)


def test_each_users_own_sum_is_clipped():
    # Item a: user 1 has 7, clipped to 5; user 2 has 2; the value of user 5 is dropped. Item b: user 3 has -49.
    assert sums() == [7, -10, 0]
    assert sums(resolution=0.5) == [5 + 4, -10, 0]


def test_one_user_changes_a_sum_by_at_most_the_bound():
    for wild in (1e300, -1e300, math.inf, 3.7, -0.2, 1e18):
        more = {
            "user": np.append(ROWS["user"], 9),
            "item": np.append(ROWS["item"], "a"),
            "value": np.append(ROWS["value"], wild),
        }
        assert -10 <= sums(more)[0] - sums()[0] <= 5


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow", "duckdb"])
def test_dataframes_of_every_library_are_read(library):
    module = pytest.importorskip(library)
    if library == "polars":
        data = module.DataFrame(ROWS)
    elif library == "pandas":
        pytest.importorskip("pyarrow")
        data = module.DataFrame(ROWS)
    elif library == "pyarrow":
        data = module.table(ROWS)
    else:
        listed = list(zip(*(column.tolist() for column in ROWS.values()), strict=True))
        values = ", ".join(f"({u}, '{i}', {'NULL' if math.isnan(v) else v}::DOUBLE)" for u, i, v in listed)
        data = module.sql(f'SELECT * FROM (VALUES {values}) AS t("user", item, value)')
    assert sums(data) == [7, -10, 0]


def test_sparse_and_object_columns_of_pandas_are_read():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    sparse = pandas.arrays.SparseArray
    frame = pandas.DataFrame({name: sparse(column) for name, column in ROWS.items() if name != "item"})
    assert sums(frame.assign(item=ROWS["item"])) == [7, -10, 0]
    for items, expected in (([None, None], 0), ([None, "a"], 2)):
        rows = {"user": [1, 2], "item": pandas.Series(items, dtype=object), "value": [1.0, 2.0]}
        assert sums(pandas.DataFrame(rows), ("a",)) == [expected]


def test_files_are_read_and_bad_cells_dropped(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("user,item,value\nu,a,3\nu,a,four\nv,a,1e2\n,a,5\nw,,5\nw,b,2\n")
    assert sums(str(path), ("a", "b")) == [8, 2]


def test_columns_are_matched_by_exact_name():
    pyarrow = pytest.importorskip("pyarrow")
    many = {"Id": np.arange(50), "id": np.zeros(50, int), "item": ["a"] * 50, "value": np.ones(50)}
    table = pyarrow.table(many)
    assert sums(table, ("a",), columns=("id", "item", "value")) == [5]
    assert sums(table.to_reader(), ("a",), columns=("id", "item", "value")) == [5]
    assert sums(many, ("a",), columns=("id", "item", "value")) == [5]
    odd = {"who": np.array([1, 2]), "label": np.array(["a", "a"]), "place": np.array([1, 2])}
    assert sums(odd, ("a",), columns=("who", "label", "place")) == [3]
    assert sums(pyarrow.table(odd), ("a",), columns=("who", "label", "place")) == [3]


def test_one_bad_row_does_not_change_other_rows():
    table = {"user": list(range(100)), "item": [7] * 100, "value": [5] * 100}
    assert sums(table, (7,)) == [500]
    assert sums({**table, "user": [2**63 + n for n in range(100)]}, (7,)) == [500]
    missing = {name: [*cells, None] for name, cells in table.items()}
    assert sums(missing, (7,)) == [500]
    assert sums({**table, "value": [*table["value"][:-1], "odd"]}, (7,)) == [495]
    odd = {"user": [*table["user"], 1], "item": [*table["item"], 7.5], "value": [*table["value"], 5]}
    assert sums(odd, (7,)) == [500]
    with pytest.raises(SchemaError, match="floats are no labels"):
        sums({**table, "user": np.array(table["user"], float)}, (7,))
    assert sums(table, ("7",)) == [500]  # a list has the type of the listed items
    with pytest.raises(ItemTypeError):
        sums({**table, "item": np.array(table["item"])}, ("7",))


def test_items_may_be_bytes():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"u": [1, 2], "i": pyarrow.array([b"x", b"y"]), "v": [3, 4]})
    assert sums(table, (b"y", b"x"), columns=("u", "i", "v")) == [4, 3]


def test_items_may_be_integers():
    data = {"user": np.array([1, 2, 3]), "item": np.array([7, 7, 8]), "value": np.array([1, 2, 3])}
    assert sums(data, (8, 7)) == [3, 3]


def test_noise_has_the_published_scale():
    mechanism = ClippedSums(items=["a", "b"], rho=0.5, low=-10, high=4)
    # Each sum has half of rho, and one user changes it by at most ten.
    assert mechanism.sigma == pytest.approx(10 / math.sqrt(2 * 0.25), rel=1e-9)
    rng = seeded_rng(2)
    runs = [dict(mechanism.release(ROWS, user="user", item="item", value="value", rng=rng)) for _ in range(30)]
    assert np.std([run["a"] for run in runs]) == pytest.approx(mechanism.sigma, rel=0.35)
    assert abs(np.mean([run["b"] for run in runs]) + 10) < mechanism.sigma
    release = mechanism.release(ROWS, user="user", item="item", value="value")
    assert (release.guarantee.rho, release.guarantee.delta, release.seeded) == (0.5, 0.0, False)
    assert "sums" in release.notes[0]
    assert release.counts.tolist() == sorted(release.counts, reverse=True)


def test_unreadable_data_is_refused(tmp_path):
    with pytest.raises(SchemaError, match="did you mean 'value'"):
        sums(columns=("user", "item", "valu"))
    with pytest.raises(ParameterError, match="another column"):
        sums(columns=("user", "item", "item"))
    with pytest.raises(InputError):
        sums(str(tmp_path / "missing.csv"))
    with pytest.raises(ParameterError, match="same length"):
        sums({**ROWS, "value": np.array([1.0])})
    with pytest.raises(ParameterError, match="path"):
        sums(3)
