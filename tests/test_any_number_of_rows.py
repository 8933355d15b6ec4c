"""No row, one row and two rows give the same class of outcome: for every verb, form of a table and engine."""

import datetime as dt
import re

import numpy as np
import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables import UserItems

pandas, polars, pyarrow, duckdb = map(pytest.importorskip, ("pandas", "polars", "pyarrow", "duckdb"))
parquet = pytest.importorskip("pyarrow.parquet")
SCHEMA = pyarrow.schema({"user": "int64", "item": "string", "value": "float64", "time": "timestamp[us]"})
ROWS = [(1, "a", 1.5, dt.datetime(2026, 1, 31, 12)), (2, "b", 2.5, dt.datetime(2026, 2, 1))]
COLUMNS = {"user": "user", "item": "item"}
PRIVATE = {"rho": 1, "delta": 1e-6}


def columns_of(rows):
    """Return rows as a dict of lists."""
    return {name: [row[place] for row in rows] for place, name in enumerate(SCHEMA.names)}


def arrow(rows):
    return pyarrow.table(columns_of(rows), SCHEMA)


def file(rows, path, suffix):
    """Return the path of a file with these rows."""
    path = path / f"rows{len(rows)}.{suffix}"
    if suffix == "csv":
        lines = [",".join(SCHEMA.names), *(",".join(map(str, row)) for row in rows)]
        path.write_text("".join(f"{line}\n" for line in lines))
    elif suffix == "parquet":
        parquet.write_table(arrow(rows), path)
    else:
        with pyarrow.ipc.new_file(path, SCHEMA) as written:
            written.write_table(arrow(rows))
    return path


def of_ibis(rows, path):
    ibis = pytest.importorskip("ibis")
    return ibis.duckdb.connect().create_table("rows", arrow(rows))


FORMS = {
    "lists": lambda rows, path: columns_of(rows),
    "tuples": lambda rows, path: {name: (*cells,) for name, cells in columns_of(rows).items()},
    "two dicts of lists": lambda rows, path: [columns_of(rows), columns_of([])],
    "arrays of objects": lambda rows, path: {
        name: np.array([*cells, None], object)[:-1] for name, cells in columns_of(rows).items()
    },
    "numpy": lambda rows, path: {
        name: np.array(cells, kind)
        for (name, cells), kind in zip(columns_of(rows).items(), ["i8", "U1", "f8", "M8[us]"], strict=True)
    },
    "a dict of pyarrow": lambda rows, path: dict(zip(SCHEMA.names, arrow(rows).columns, strict=True)),
    "pandas": lambda rows, path: arrow(rows).to_pandas(),
    "pandas objects": lambda rows, path: pandas.DataFrame(columns_of(rows), dtype=object),
    "polars": lambda rows, path: polars.from_arrow(arrow(rows)),
    "lazy polars": lambda rows, path: polars.from_arrow(arrow(rows)).lazy(),
    "pyarrow": lambda rows, path: arrow(rows),
    "a reader": lambda rows, path: arrow(rows).to_reader(),
    "duckdb": lambda rows, path: duckdb.connect().from_arrow(arrow(rows)),
    "ibis": of_ibis,
    "csv": lambda rows, path: file(rows, path, "csv"),
    "parquet": lambda rows, path: file(rows, path, "parquet"),
    "arrow": lambda rows, path: file(rows, path, "arrow"),
}


def stream(**limits):
    """Return a stream that was at a table of users and text before."""
    made = dp.Stream.recommended(rho=1, delta=1e-6, l0=1, horizon=9, **limits).start()
    made.step(arrow(ROWS), **COLUMNS)
    return made


VERBS = {
    "count": lambda data: dp.count(data, **COLUMNS, **PRIVATE),
    "count with l0": lambda data: dp.count(data, **COLUMNS, **PRIVATE, l0=1),
    "count of listed items": lambda data: dp.count(data, **COLUMNS, rho=1, items=["a"]),
    "count of listed integers": lambda data: dp.count(data, user="item", item="user", rho=1, items=[1, 2]),
    "count of integers": lambda data: dp.count(data, user="item", item="user", **PRIVATE),
    "count of times": lambda data: dp.count(data, user="user", item="time", **PRIVATE),
    "count by days": lambda data: dp.count(data, **COLUMNS, **PRIVATE, time="time", every="1d"),
    "top_k": lambda data: dp.top_k(data, **COLUMNS, **PRIVATE, k=1),
    "select": lambda data: dp.select(data, **COLUMNS, **PRIVATE, l0=1),
    "sum": lambda data: dp.sum(data, **COLUMNS, **PRIVATE, value="value", bounds=(0, 9), l0=1),
    "aggregate": lambda data: dp.aggregate(data, **COLUMNS, **PRIVATE, rows=1, means={"value": (0, 9)}, l0=1),
    "from_table": lambda data: dp.Histogram.from_table(data, **COLUMNS, l0=1),
    "from_table of rows": lambda data: dp.Histogram.from_table(data, **COLUMNS, l0=1, linf=3),
    "UserItems": lambda data: UserItems.from_table(data, **COLUMNS),
    "step": lambda data: stream().step(data, **COLUMNS),
    "step by users": lambda data: stream(unit="user", rounds=2).step(data, **COLUMNS),
    "step by other users": lambda data: stream(unit="user", rounds=2).step(data, user="time", item="item"),
    "step of integers": lambda data: stream().step(data, user="item", item="user"),
}


def outcome(verb, data):
    """Return "done", or the class of an error and its text without the name of a file."""
    try:
        verb(data)
    except DiscreetError as error:
        return type(error).__name__, re.sub(r"rows[0-9]\.", "", str(error))
    return "done"


@pytest.mark.parametrize("form", FORMS)
def test_no_row_decides_between_a_release_and_an_error(form, tmp_path):
    for name, verb in VERBS.items():
        # Columns of objects are text, but without rows they have no type: pandas makes them of an empty result.
        is_open = form == "pandas objects" and "listed integers" in name
        found = {outcome(verb, FORMS[form](rows, tmp_path)) for rows in ([], ROWS[:1], ROWS)[is_open:]}
        assert len(found) == 1, (name, found)


def empty_frames():
    """Yield tables without rows, as libraries make them of empty lists."""
    empty = {name: [] for name in SCHEMA.names}
    yield from (
        empty,
        {name: np.array([]) for name in empty},
        pandas.DataFrame(empty),
        pandas.DataFrame(empty, dtype=float),
    )
    yield from (
        polars.DataFrame(empty),
        polars.LazyFrame(empty),
        pyarrow.table(empty),
        pandas.DataFrame(empty, dtype=object),
    )
    yield from ({name: kind([]) for name in empty} for kind in (pandas.Series, polars.Series, pyarrow.array))


@pytest.mark.parametrize("verb", VERBS)
def test_an_empty_frame_of_no_type_is_a_release_of_nothing(verb):
    if "integers" in verb:  # these tables are text
        pytest.skip("the type of a frame without rows may differ")
    if verb == "step by other users":
        pytest.skip("a stream refuses other users")
    for data in empty_frames():
        found = VERBS[verb](data)
        assert not (
            isinstance(found, dp.Release) and "step" not in verb and verb != "count of listed items" and len(found)
        )


FULL = {"user": [*range(9)], "item": [7] * 9, "value": [1] * 9, "time": ["2026-01-01"] * 9}
MADE = {
    "pandas": pandas.DataFrame,
    "lists": dict,
    "pyarrow": pyarrow.table,
    "polars": polars.DataFrame,
    "numpy": lambda table: {name: np.array(cells) for name, cells in table.items()},
    "Series": lambda table: {name: pandas.Series(cells) for name, cells in table.items()},
}
"""How libraries make tables of lists, without types of their own."""
OF_LISTS = {
    "count": lambda data: dp.count(data, **COLUMNS, **PRIVATE, l0=1),
    "count of listed items": lambda data: dp.count(data, **COLUMNS, rho=1, items=[7]),
    "sum": lambda data: dp.sum(data, **COLUMNS, rho=1, value="value", bounds=(0, 9), items=[7]),
    "aggregate": lambda data: dp.aggregate(data, **COLUMNS, rows=1, rho=1, items=[7]),
    "UserItems": lambda data: UserItems.from_table(data, **COLUMNS),
    "others than listed items": lambda data: dp.count(data, **COLUMNS, **PRIVATE, items=[7], others=True),
    "listed items of times": lambda data: dp.count(data, **COLUMNS, rho=1, items=[7], time="time", since="2026-01-01"),
    "listed items by days": lambda data: dp.count(
        data, **COLUMNS, rho=1, items=[("2026-01-01", 7)], time="time", every="1d"
    ),
    "both columns": lambda data: dp.count(data, user="value", item=["user", "item"], rho=1, items=[(1, 7)]),
}


@pytest.mark.parametrize("form", MADE)
def test_an_empty_table_has_the_types_of_the_others(form):
    """Of a list of tables, or of listed items. So no table of one hour or one shop can stop the release."""
    for rows in range(3):
        table = MADE[form]({name: cells[:rows] for name, cells in FULL.items()})
        for name, verb in OF_LISTS.items():
            assert "items" not in name or outcome(verb, table) == "done", (name, rows)
            for other, made in MADE.items():
                tables = [made(FULL), table]
                assert [outcome(verb, tables), outcome(verb, tables[::-1])] == ["done"] * 2, (name, other, rows)


def test_an_empty_table_does_not_join_others_of_different_types():
    tables = [pandas.DataFrame({"user": [], "item": []}), pyarrow.table({"user": ["a"], "item": ["a"]}), arrow(ROWS)]
    for order in (tables, tables[::-1], [*tables[1:], tables[0]]):
        assert outcome(VERBS["count"], order)[0] == "SchemaError"


def test_an_empty_table_has_the_types_of_the_others_without_pyarrow(monkeypatch):
    monkeypatch.setattr("discreet.engines.frames.as_arrow", without_pyarrow)
    monkeypatch.setattr("discreet.engines.columns.pyarrow_if_installed", lambda: None)
    for rows in range(3):
        for form in ("pandas", "lists", "numpy", "Series"):
            table = MADE[form]({name: cells[:rows] for name, cells in FULL.items()})
            assert outcome(OF_LISTS["count of listed items"], table) == "done", (form, rows)
            assert outcome(OF_LISTS["count"], [MADE["pandas"](FULL), table]) == "done", (form, rows)


def without_pyarrow(*_):
    raise ImportError
