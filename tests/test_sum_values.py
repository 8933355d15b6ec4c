"""Values and bounds of `dp.sum`: what is refused before the charge, and what a cell is worth."""

import datetime
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from counting import clipped_sums, store

import discreet as dp
from discreet import engines
from discreet.engines import columns, frames
from discreet.engines.csv_rows import CsvInput
from discreet.errors import InputError, SchemaError
from sales import COLUMNS, EXACT, SALES


def test_a_value_that_a_query_cannot_cast_costs_nothing():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    bad = "CASE WHEN n = 2999 THEN 'SECRET' ELSE '1' END"
    query = f"SELECT n AS \"user\", 'a' AS shop, CAST({bad} AS INTEGER) AS cents FROM range(3000) AS t(n)"
    for more in ({"l0": 1, "delta": 1e-6}, {"items": ["a"]}):
        budget = dp.Budget(rho=1, delta=1e-6)
        with pytest.raises(InputError, match="TRY_CAST") as caught:
            dp.sum(connection.sql(query), **COLUMNS, bounds=(0, 5), rho=1, budget=budget, **more)
        assert "SECRET" not in str(caught.value)
        assert (budget.spent.rho, budget.history) == (0, [])
    release = dp.sum(
        connection.sql(query.replace("CAST(CASE", "TRY_CAST(CASE")), **COLUMNS, bounds=(0, 5), l0=1, rho=1, delta=1e-6
    )
    assert abs(release.counts[0] - 2999) < 8 * release.sigmas[0]


def test_a_damaged_page_of_values_costs_nothing(tmp_path):
    # DuckDB reads the first pages when it binds a query, so the damage is in the last of many.
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "sales.parquet"
    values = np.random.default_rng(1).random(400_000)
    table = pyarrow.table({"user": np.arange(400_000), "shop": ["a"] * 400_000, "cents": values})
    parquet.write_table(table, path, compression="none", use_dictionary=False, row_group_size=20_000)
    start = parquet.read_metadata(path).row_group(19).column(2).data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 30] = b"\xff" * 30
    path.write_bytes(content)
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises(InputError):
        dp.sum(path, **COLUMNS, bounds=(0, 5), l0=1, rho=1, delta=1e-6, budget=budget)
    assert budget.spent.rho == 0


def test_columns_of_a_dict_whose_names_differ_by_case_are_other_columns():
    data = {"x": [*range(3000)], "X": ["a"] * 3000, "V": [7.0] * 3000, "v": ["n/a"] * 3000}
    release = dp.sum(data, user="x", item="X", value="V", bounds=(0, 10), l0=1, rho=100, delta=1e-6)
    assert abs(release.counts[0] - 21_000) < 8 * release.sigmas[0]
    dp.mechanisms.ContributionBound(epsilon=1, most=9, only=("a",)).release(data, user="x", item="X")


def test_other_columns_of_a_dict_are_not_read():
    data = {**SALES, "USER": [7.0], "Shop": []}
    release = dp.sum(data, **COLUMNS, bounds=(0, 40), l0=3, rho=100, delta=1e-6)
    assert np.all(np.abs(release.counts - EXACT) < 8 * release.sigmas)


NO_NUMBERS = {
    "dates": [datetime.date(2020, 1, 1)] * 3000,
    "times": [datetime.datetime(2020, 1, 1)] * 3000,
    "durations": [datetime.timedelta(1)] * 3000,
    "bytes": [b"1"] * 3000,
    "lists": [[1]] * 3000,
    "structures": [{"n": 1}] * 3000,
}
ARRAYS = {
    "complex numbers": np.full(3000, 1 + 1j),
    "numpy durations": np.full(3000, 5, "m8[s]"),
    "numpy dates": np.full(3000, 5, "M8[D]"),
    "numpy bytes": np.full(3000, b"1"),
}


@pytest.mark.parametrize(
    ("form", "cells"),
    [*(("Arrow", cells) for cells in NO_NUMBERS.values()), *(("dict", cells) for cells in ARRAYS.values())],
    ids=[*NO_NUMBERS, *ARRAYS],
)
@pytest.mark.parametrize("more", [{"l0": 1, "delta": 1e-6}, {"items": ["a"]}], ids=["found", "listed"])
def test_values_that_are_no_numbers_are_refused_before_the_charge(cells, form, more):
    data = {"user": range(3000), "shop": ["a"] * 3000, "cents": cells}
    if form == "Arrow":
        pyarrow = pytest.importorskip("pyarrow")
        data = pyarrow.table({**data, "user": [*range(3000)]})
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises(SchemaError, match="'cents' must hold numbers"):
        dp.sum(data, **COLUMNS, bounds=(0, 20), rho=1, budget=budget, **more)
    assert budget.spent.rho == 0


@pytest.mark.parametrize("cells", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_no_cell_of_a_list_decides_whether_its_values_are_refused(cells):
    for numbers in ([], [1.0] * 3000):
        data = {"user": range(3000 + len(numbers)), "shop": ["a"] * (3000 + len(numbers)), "cents": cells + numbers}
        release = dp.sum(data, **COLUMNS, bounds=(0, 1), rho=4000, items=["a"])
        assert abs(release.counts[0] - len(numbers)) < 9


def test_numbers_of_every_type_are_summed():
    pyarrow = pytest.importorskip("pyarrow")
    ones = [1] * 3000
    columns = [pyarrow.array(ones, kind) for kind in (pyarrow.int8(), pyarrow.uint64(), pyarrow.float32())]
    columns += [pyarrow.array([Decimal(1)] * 3000, pyarrow.decimal128(38, 2)), pyarrow.array([True] * 3000)]
    columns += [pyarrow.array(["1"] * 3000), pyarrow.array(["1"] * 3000).dictionary_encode()]
    columns += [pyarrow.array(["1"] * 3000, pyarrow.large_string()), pyarrow.array(ones, pyarrow.decimal256(60, 2))]
    columns += [pyarrow.array([Decimal(1)] * 3000, pyarrow.decimal128(38, 0)).cast(pyarrow.decimal256(76, 20))]
    tables = [pyarrow.table({"user": [*range(3000)], "shop": ["a"] * 3000, "cents": column}) for column in columns]
    arrays = (ones, [True] * 3000, np.ones(3000, bool), np.ones(3000, np.float32), [Fraction(1)] * 3000)
    tables += [{"user": range(3000), "shop": ["a"] * 3000, "cents": cells} for cells in arrays]
    for table in tables:
        release = dp.sum(table, **COLUMNS, bounds=(0, 5), l0=1, rho=100, delta=1e-6)
        assert abs(release.counts[0] - 3000) < 8 * release.sigmas[0]
    nothing = pyarrow.table({"user": [*range(3000)], "shop": ["a"] * 3000, "cents": pyarrow.nulls(3000)})
    frame = pytest.importorskip("polars").from_arrow(nothing)
    missing = {**nothing.to_pydict(), "cents": [pytest.importorskip("pandas").NA] * 3000}
    for table in (
        nothing,
        frame,
        missing,
        nothing.to_pydict(),
        dict(zip(frame.columns, frame.get_columns(), strict=True)),
    ):
        release = dp.sum(table, **COLUMNS, bounds=(0, 5), l0=1, rho=100, delta=1e-6)
        assert release.items == []


def test_one_cell_that_is_no_number_is_skipped_in_silence():
    for cell in (datetime.date(2020, 1, 1), 1j, b"1", [1], object(), np.timedelta64(5, "s"), None, math.inf):
        data = {"user": range(3000), "shop": ["a"] * 3000, "cents": [1] * 2999 + [cell]}
        release = dp.sum(data, **COLUMNS, bounds=(0, 5), l0=1, rho=10_000, delta=1e-6)
        assert abs(release.counts[0] - 2999) < 1


NO_CELLS = [None, "x", "", "nan", "1e400", "9" * 9000, b"\xff"]
"""Values of a column to sum that are no numbers."""


@pytest.fixture(params=["csv", "headless", "stdin", "jsonl", "parquet", "arrow", "pyarrow", "dict", "pandas"])
def no_cells(request, tmp_path, monkeypatch):
    """A table of nine users for each of `NO_CELLS`, the text 2 and a row of JSON that has no key."""
    cells = [*NO_CELLS, "2"]
    if request.param == "jsonl":
        cells[-2:] = "2", [7], {"n": 7}  # a line that is not UTF-8 is no line of JSON
    path = tmp_path / f"sales.{request.param}"
    rows = [(9 * place + user, "a", cell) for place, cell in enumerate(cells) for user in range(9)]
    if request.param in ("csv", "headless", "stdin"):
        path = path.with_suffix(".csv")
        named = b"" if request.param == "headless" else b"user,shop,cents\n"
        texts = {None: b"", b"\xff": b"\xff", **{cell: f'"{cell}"'.encode() for cell in cells if isinstance(cell, str)}}
        path.write_bytes(named + b"".join(b"%d,a,%s\n" % (user, texts[cell]) for user, _, cell in rows))
        if request.param == "stdin":
            return CsvInput(path.read_bytes()), 72, COLUMNS
        if request.param == "headless":
            columns = {"user": "1", "item": "2", "value": "3"}
            return dp.tables.CsvFiles(path=path, header=False), 72, columns
        return path, 72, COLUMNS
    if request.param == "jsonl":
        lines = [json.dumps({"user": user, "shop": shop, "cents": cell}) for user, shop, cell in rows]
        path.write_text("\n".join([*lines, '{"user": -1, "shop": "a"}', "{}", '{"cents": 2}']))
        return path, 82, COLUMNS
    names = ["user", "shop", "cents"]
    if request.param in ("dict", "pandas"):
        data = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        return data if request.param == "dict" else pytest.importorskip("pandas").DataFrame(data), 72, COLUMNS
    pyarrow = pytest.importorskip("pyarrow")
    encoded = [cell.encode() if isinstance(cell, str) else cell for *_, cell in rows]
    binary = pyarrow.array(encoded, pyarrow.binary())
    text = pyarrow.Array.from_buffers(pyarrow.string(), len(rows), binary.buffers())
    table = pyarrow.table([[row[0] for row in rows], ["a"] * len(rows), text], names)
    if request.param == "pyarrow":
        return table, 72, COLUMNS
    store(table, path)
    return path, 72, COLUMNS


def test_a_value_that_is_no_number_drops_no_row(no_cells):
    data, users, columns = no_cells
    user, item, value = (columns[name] for name in ("user", "item", "value"))
    release = dp.aggregate(data, user=user, item=item, sums={value: (0, 4)}, items=["a"], l0=1, rows=1, rho=10_000)
    # The sigmas are at most .02, so a wrong number is a draw of 25 sigma.
    assert [release.counts[0], *(round(part.values[0]) for part in release.aggregates)] == [users, users, 18]


ODD = [b"3", True, 2**70, datetime.date(2020, 1, 1), [1], {"n": 1}, object(), 1j, np.timedelta64(5, "s"), "n/a", "3"]
ODD += [
    "\ud800",
    None,
    math.nan,
    math.inf,
    Decimal("2.5"),
    Decimal("NaN"),
    Decimal("sNaN"),
    np.datetime64("2020"),
    10**400,
]


@pytest.mark.parametrize("odd", ODD, ids=lambda cell: f"{type(cell).__name__} {cell!r:.9}")
@pytest.mark.parametrize("place", [0, 2])
def test_an_odd_cell_of_pandas_is_worth_what_it_is_in_a_dict(odd, place):
    pandas = pytest.importorskip("pandas")
    cells = [1, 2.5]
    cells.insert(place, odd)
    rows = {"user": [1, 2, 3], "shop": ["a", "b", "c"], "cents": pandas.Series(cells, dtype=object)}
    given = {"columns": ("user", "shop", "cents"), "items": ["a", "b", "c"], "bounds": (0, 100), "resolution": 0.5}
    expected = clipped_sums({**rows, "cents": cells}, **given)
    plain = [total for at, total in enumerate(expected) if at != place]
    assert plain == [2, 5]
    assert clipped_sums(pandas.DataFrame(rows), **given) == expected
    assert clipped_sums(rows, **given) == expected


def test_a_category_of_pandas_is_worth_what_its_label_is():
    pandas = pytest.importorskip("pandas")
    rows = {"user": [1, 2, 3], "shop": ["a", "b", "c"]}
    given = {"columns": ("user", "shop", "cents"), "items": ["a", "b", "c"], "bounds": (0, 100), "resolution": 0.5}
    known = pandas.Series(pandas.Categorical.from_codes([0, 1, 0], pandas.Index([4, "5"], dtype=object)))
    assert clipped_sums(pandas.DataFrame({**rows, "cents": known}), **given) == [8, 10, 8]


def test_a_column_of_pandas_objects_without_numbers_has_no_values():
    pandas = pytest.importorskip("pandas")
    for cells in ([datetime.date(2020, 1, 1)] * 2, [b"1", None], [[1], [2]]):
        data = pandas.DataFrame({"user": [1, 2], "shop": ["a", "a"], "cents": pandas.Series(cells, dtype=object)})
        assert clipped_sums(data, columns=("user", "shop", "cents"), items=["a"], bounds=(0, 9), resolution=1) == [0]


def test_floats_of_16_bits_are_summed():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    halves = np.array([1.5, 2.5], np.float16)
    rows = {"user": [1, 2], "shop": ["a", "a"], "cents": halves}
    table = pyarrow.table({**rows, "cents": pyarrow.array(halves)})
    tables = [rows, pandas.DataFrame(rows), table, table.to_batches()[0]]
    polars = pytest.importorskip("polars")
    if hasattr(polars, "Float16"):
        tables.append(polars.DataFrame({**rows, "cents": polars.Series([1.5, 2.5], dtype=polars.Float16)}))
    for data in tables:
        assert clipped_sums(data, columns=("user", "shop", "cents"), items=["a"], bounds=(0, 9), resolution=0.5) == [8]


def test_large_decimals_are_values_but_no_labels():
    pyarrow = pytest.importorskip("pyarrow")
    given = {"columns": ("user", "shop", "cents"), "items": [1], "bounds": (0, 9), "resolution": 1}
    rows = {name: pyarrow.array([1, 2]) for name in given["columns"]}
    for name in given["columns"]:
        odd = rows[name].cast(pyarrow.decimal256(40, 0))
        odd = odd.dictionary_encode() if name == "cents" else odd
        for data in (pyarrow.table({**rows, name: odd}), {**rows, name: odd}):
            if name == "cents":
                assert clipped_sums(data, **given) == [1]
                continue
            with pytest.raises(SchemaError, match=name):
                clipped_sums(data, **given)


def test_decimals_are_worth_what_their_text_is():
    pyarrow = pytest.importorskip("pyarrow")
    texts = [f"{number}.5" for number in range(-300, 300)] + ["0.005", "2.675", "-1.115"]
    rows = {"user": [*range(len(texts))], "shop": [*range(len(texts))], "cents": texts}
    for resolution in (1, 0.01):
        given = {"columns": ("user", "shop", "cents"), "items": rows["shop"], "bounds": (-(2**30), 2**30)}
        expected = clipped_sums(rows, **given, resolution=resolution)
        for kind in (pyarrow.decimal128(38, 3), pyarrow.decimal128(38, 18), pyarrow.decimal256(76, 70)):
            cells = pyarrow.array([Decimal(text) for text in texts], kind)
            assert clipped_sums(pyarrow.table({**rows, "cents": cells}), **given, resolution=resolution) == expected
        assert clipped_sums({**rows, "cents": [*map(float, texts)]}, **given, resolution=resolution) == expected


def test_values_of_pandas_are_read_without_pyarrow(monkeypatch):
    pandas = pytest.importorskip("pandas")
    for module in (columns, frames):
        monkeypatch.setattr(module, "pyarrow_if_installed", lambda: None)
    monkeypatch.setattr(frames, "as_arrow", without_arrow)
    rows = {"user": [1, 2, 3, 4], "shop": ["a"] * 4}
    given = {"columns": ("user", "shop", "cents"), "items": ["a"], "bounds": (0, 9), "resolution": 0.5}
    for kind in ("Int64", "Float64", "Float32", "object", "Sparse[float]", "category"):
        cells = pandas.Series([1, 2, None, 1], dtype=kind)
        for data in ({**rows, "cents": cells}, pandas.DataFrame({**rows, "cents": cells})):
            assert clipped_sums(data, **given) == [8], kind
    flags = pandas.Series([True, None, False, True], dtype="boolean")
    assert clipped_sums({**rows, "cents": flags}, **given) == [4]
    days = pandas.Series([datetime.date(2020, 1, 1)] * 4, dtype="category")
    assert clipped_sums({**rows, "cents": days}, **given) == [0]


def without_arrow(*_):
    raise ImportError


def test_only_users_with_a_value_count_for_an_item_of_a_sum(tmp_path):
    """All doors must find the same items, whatever the cells of a value are."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    values = ["1", "n/a", None, "", "2.5"] * 20
    table = {"user": [*range(100)], "item": ["a"] * 100, "value": values}
    (tmp_path / "a.csv").write_text(
        "user,item,value\n" + "".join(f"{user},a,{value or ''}\n" for user, value in enumerate(values))
    )
    lines = [
        json.dumps({"user": user, "item": "a"} | ({"value": value} if value else {}))
        for user, value in enumerate(values)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    for data in (table, pyarrow.table(table), *(tmp_path / f"a.{form}" for form in ("csv", "jsonl", "parquet"))):
        names = {"user": "user", "item": "item", "value": "value"}
        visits = dp.Table(data, **names)
        assert engines.histogram(visits.with_values()).counts.tolist() == [40], data
        assert engines.histogram(visits).counts.tolist() == [100]


def test_booleans_are_one_and_zero_at_every_door(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    flags = [True, False, True, True]
    rows = {"user": [*"1234"], "shop": [*"aaab"], "cents": flags}
    lines = "".join(json.dumps(dict(zip(rows, row, strict=True))) + "\n" for row in zip(*rows.values(), strict=True))
    (tmp_path / "a.jsonl").write_text(lines)
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(rows), tmp_path / "a.parquet")
    given = {"columns": ("user", "shop", "cents"), "items": ["a", "b"], "bounds": (0, 5), "resolution": 1}
    for data in (rows, pyarrow.table(rows), tmp_path / "a.jsonl", tmp_path / "a.parquet", str(tmp_path / "a.jsonl")):
        assert clipped_sums(data, **given) == [2, 1], data
    (tmp_path / "a.jsonl").write_text(lines.replace("true", '"true"'))  # text is no boolean
    assert clipped_sums(tmp_path / "a.jsonl", **given) == [0, 0]


TEXTS = ["12", " 12 ", "+7", ".5", "5.", "1e1", "-0", "1_000", "12_", "1__0", "0x10", "1,5", "", "x", "nan", "inf"]
TEXTS += [
    "\u0661\u0662",
    "\uff11",
    "\u00a07",
    "\u20097",
    "12\n",
    "12\0",
    "TRUE",
    "\x0b7",
    "infinity",
    "1_0",
    ".",
    "1e",
    "$1",
    "9" * 400,
    "1e400",
    "0.1" * 3000,
]


def test_text_is_the_same_number_in_a_dict_and_in_an_arrow_table():
    pyarrow = pytest.importorskip("pyarrow")
    rows = {"user": [*range(len(TEXTS))], "shop": [*range(len(TEXTS))], "cents": TEXTS}
    given = {"columns": ("user", "shop", "cents"), "items": rows["shop"], "bounds": (0, 50_000), "resolution": 0.5}
    expected = clipped_sums(pyarrow.table(rows), **given)
    assert expected[:6] == [24, 24, 14, 1, 10, 20]
    numbers = {"12", " 12 ", "+7", ".5", "5.", "1e1", "-0", "12\n"}
    assert {text for text, total in zip(TEXTS, expected, strict=True) if total} == numbers - {"-0"}
    assert clipped_sums(rows, **given) == expected
    assert clipped_sums({**rows, "cents": np.array(TEXTS, object)}, **given) == expected
    assert clipped_sums(pytest.importorskip("pandas").DataFrame(rows), **given) == expected
    assert clipped_sums(pyarrow.table({**rows, "cents": pyarrow.array(TEXTS).dictionary_encode()}), **given) == expected
    # Numbers among text keep their value.
    mixed = {name: [*cells, cell] for (name, cells), cell in zip(rows.items(), (99, 99, 4999.25), strict=True)}
    assert (
        clipped_sums(mixed, **{**given, "items": mixed["shop"], "resolution": 0.25, "bounds": (0, 20_000)})[-1]
        == 19_997
    )
    lone = {"user": [1, 2], "shop": [1, 1], "cents": ["\ud800", "3"]}
    assert clipped_sums(lone, **{**given, "items": [1]}) == [6]


def test_missing_cells_of_every_kind_of_array_are_skipped():
    pyarrow, polars, pandas = map(pytest.importorskip, ("pyarrow", "polars", "pandas"))
    arrays = [pyarrow.array([1.5, None]), pyarrow.chunked_array([[1.5, None]]), polars.Series([1.5, None])]
    arrays += [pandas.Series([1.5, None]), pandas.Series(["1.5", None]), polars.Series(["1.5", None])]
    arrays += [
        np.ma.array([1.5, 9], mask=[False, True]),
        np.array([1.5, np.nan]),
        ["1.5", None],
        pandas.array([1.5, None], "Float64"),
    ]
    for cells in arrays:
        rows = {"user": [1, 2], "shop": ["a", "a"], "cents": cells}
        columns = ("user", "shop", "cents")
        assert clipped_sums(rows, columns=columns, items=["a"], bounds=(0, 9), resolution=0.5) == [3], type(cells)


@pytest.mark.parametrize(
    ("bounds", "resolution"),
    [
        ((np.int64(0), np.int64(2)), 0.1),
        ((np.float32(0), np.float32(2)), np.float32(0.1)),
        ((0, np.float32(0.2)), 0.01),
        (np.array([0, 2]), Decimal("0.1")),
        (np.array([0, 0.2], np.float32), Decimal("0.01")),
        ([Decimal(0), Decimal("0.2")], np.float64(0.01)),
        ((0, 2), Decimal("0.1")),
    ],
)
def test_bounds_and_resolution_may_be_numbers_of_numpy_and_decimals(bounds, resolution):
    release = dp.sum(SALES, **COLUMNS, bounds=bounds, resolution=resolution, l0=3, rho=1, delta=1e-6)
    assert f"low=0, high=20, resolution={float(str(resolution))}" in release.made_by
    assert f"clipped to [0, {20 * float(str(resolution)):g}] for each user and item" in release.measure
