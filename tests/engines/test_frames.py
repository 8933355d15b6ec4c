"""Frames of every library, with and without pyarrow."""

import array
import collections
import subprocess
import sys
import uuid

import duckdb
import numpy as np
import pytest
from counting import read
from pairs import as_dict

import discreet as dp
from discreet import Histogram, mechanisms
from discreet.errors import InputError, ParameterError, SchemaError
from discreet.mechanisms import ClippedSums
from discreet.tables import UserItems

pandas, polars, pyarrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import duckdb, numpy as np, pandas, polars
from discreet import engines

columns = {"user": [2**53, 2**53 + 1, 2**53, None, 4], "item": ["a", "a", "b", "b", None]}
nullable = {"user": pandas.array(columns["user"], "Int64"), "item": columns["item"]}
relation = duckdb.sql("SELECT * FROM VALUES (9007199254740992, 'a'), (9007199254740993, 'a'), (9007199254740992, 'b'), "
    "(NULL, 'b'), (4, NULL) AS t(\\"user\\", item)")
sources = {
    "dict": columns,
    "numpy": {"user": np.array([2**53, 2**53 + 1, 2**53]), "item": np.array(["a", "a", "b"])},
    "polars": polars.DataFrame(columns),
    "lazy": polars.LazyFrame(columns),
    "duckdb": relation,
    "pandas": pandas.DataFrame(nullable),
    "categories": pandas.DataFrame(nullable).astype({"item": "category", "user": "category"}),
    "objects": pandas.DataFrame(nullable).astype(object),
}
for name, source in sources.items():
    labels, counts, _ = engines.histogram(engines.Table(source, user="user", item="item"))
    print(name, sorted(zip(labels.take(np.arange(len(counts))), counts.tolist())))
"""


def test_frames_are_counted_without_pyarrow():
    # Some versions of pandas warn at import that they will need pyarrow.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", WITHOUT_PYARROW]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split(" ", 1)[0] for line in lines] == [
        *("dict", "numpy", "polars", "lazy", "duckdb", "pandas", "categories", "objects")
    ]
    assert {line.split(" ", 1)[1] for line in lines} == {"[('a', 2), ('b', 1)]"}


def test_other_columns_of_a_frame_are_not_read():
    union = pyarrow.UnionArray.from_dense(
        pyarrow.array([0, 0], pyarrow.int8()), pyarrow.array([0, 1], pyarrow.int32()), [pyarrow.array([1, 2])]
    )
    table = pyarrow.table({"odd": union, "item": ["a", "b"], "user": [1, 2]})
    counts = [read(source)[1].tolist() for source in (table, table.to_batches()[0])]
    assert counts == [[1, 1]] * 2


def test_an_error_about_a_broken_dataset_contains_no_cell(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    (tmp_path / "log.csv").write_text("user,item\n" + "1,a\n" * 500_000 + "secret,b,c\n")
    with pytest.raises((InputError, SchemaError)) as caught:
        read(dataset.dataset(str(tmp_path / "log.csv"), format="csv"))
    assert "secret" not in str(caught.value)


def test_a_subclass_of_a_polars_frame_is_counted():

    class Table(polars.DataFrame):
        """A polars frame whose class belongs to another module."""

    assert as_dict(read(Table({"user": [1, 1], "item": ["a", "a"]}))) == {"a": 1}


ODD = [None, 7, 2.5, True, b"x", b"\xff", "\ud800", 10**400, float("nan"), [1], {}, object(), 1j, {"a"}]
ODD += [uuid.UUID(int=7)]


def counted(source):
    labels, counts, _ = read(source)
    return labels.type_name, as_dict((labels, counts))


@pytest.fixture(params=["with pyarrow", "without pyarrow"])
def with_or_without_pyarrow(request, monkeypatch):
    if request.param == "without pyarrow":
        monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.usefixtures("with_or_without_pyarrow")
@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_an_odd_pandas_cell_does_not_change_other_rows(odd, place):
    cells, users = ["a", "a", "b"], ["u", "v", "u"]
    plain = {"a": 2, "b": 1}
    odd_cells = pandas.Series([*cells[:place], odd, *cells[place:]], dtype=object)
    frame = pandas.DataFrame({"user": [*users[:place], "w", *users[place:]], "item": odd_cells})
    kind, found = counted(frame)
    readable = {7: "7", b"x": "x", True: "true", uuid.UUID(int=7): str(uuid.UUID(int=7))}
    more = {readable[odd]: 1} if isinstance(odd, int | bytes | uuid.UUID) and odd in readable else {}
    assert (kind, found) == ("string", plain | more)
    odd_users = pandas.Series([*users[:place], odd, *users[place:]], dtype=object)
    frame = pandas.DataFrame({"user": odd_users, "item": [*cells[:place], "b", *cells[place:]]})
    assert counted(frame) == ("string", plain | ({"b": 2} if more else {}))
    assert counted({"user": odd_users, "item": frame["item"]}) == counted(frame)


@pytest.mark.usefixtures("with_or_without_pyarrow")
@pytest.mark.parametrize("cells", [[1, 2, 2], [None] * 3, ["1", 2, 2], [b"1", "2", 2]])
def test_pandas_object_columns_are_read_as_text(cells):
    objects = pandas.Series(cells, dtype=object)
    expected = {} if None in cells else {"1": 1, "2": 2}
    # The dtype is explicit, because pandas would infer a typed column.
    known = pandas.Index(dict.fromkeys(cell for cell in cells if cell is not None), dtype=object)
    categories = pandas.Series(pandas.Categorical(objects, categories=known))
    sparse = pandas.Series(pandas.arrays.SparseArray(objects, dtype=pandas.SparseDtype(object)))
    for column in (objects, categories, sparse):
        assert counted(pandas.DataFrame({"user": [1, 2, 3], "item": column})) == ("string", expected)
        assert counted({"user": [1, 2, 3], "item": column}) == ("string", expected)
        pairs = Histogram.from_pairs(np.arange(3), column)._labels
        assert sorted(pairs.take(np.arange(len(expected)))) == [*expected]


@pytest.mark.usefixtures("with_or_without_pyarrow")
def test_periods_of_pandas_are_text():
    months = pandas.Series(pandas.PeriodIndex(["2026-01", "2026-01", "NaT", "2026-02"], freq="M"))
    for column in (months, months.astype("category"), months.astype(object)):
        frame = pandas.DataFrame({"user": [1, 2, 3, 4], "item": column})
        assert counted(frame) == ("string", {"2026-01": 2, "2026-02": 1})
        for given in (column, column.array, pandas.Index(column)):
            assert counted({"user": [1, 2, 3, 4], "item": given}) == ("string", {"2026-01": 2, "2026-02": 1})


def test_typed_pandas_columns_keep_their_type():
    raw = pandas.Series([b"a", b"\xff", None], dtype=pandas.ArrowDtype(pyarrow.binary()))
    whole = pandas.Series([1, None, 2], dtype="Int64")
    for column, kind in ((raw, "binary"), (whole, "int64"), (whole.astype("category"), "int64")):
        found = counted(pandas.DataFrame({"user": [1, 2, 3], "item": column}))
        assert found == (kind, dict.fromkeys(column.dropna().tolist(), 1))


def test_a_column_in_the_pandas_index_is_a_schema_error():
    frame = pandas.DataFrame({"user": [1, 2], "item": ["a", "b"]})
    with pytest.raises(SchemaError, match=r"no column 'user'; it is in the index: reset_index\(\)"):
        read(frame.set_index("user"))
    with pytest.raises(SchemaError, match="did you mean 'user'"):
        read(frame.set_index("item"), "usre", "user")


def test_columns_and_groups_in_place_of_tables_are_refused():
    columns = {"user": [1, 2], "item": ["a", "b"]}
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns)):
        grouped = frame.groupby("item") if hasattr(frame, "groupby") else frame.group_by("item")
        for other in (frame["item"], grouped):
            with pytest.raises(ParameterError, match=f"not {type(other).__name__}"):
                read(other)


def test_a_subclass_of_a_pandas_frame_is_counted():

    class Frame(pandas.DataFrame):
        pass

    for cells in ([None, None], [None, "a"]):
        for note in ([1, 2], [1, "secret"]):
            given = {"user": [1, 2], "item": cells, "note": note, "column_names": [3, 4]}
            frame = Frame({name: pandas.Series(column, dtype=object) for name, column in given.items()})
            _, counts, _ = read(frame.astype({"user": "int64"}))
            assert counts.tolist() == [1] * (cells[1] is not None)
    with pytest.raises(SchemaError, match="reset_index"):
        read(frame.set_index("user"))


def test_multi_index_columns_are_a_schema_error():
    frame = pandas.DataFrame({("user", "id"): [1], ("item", "page"): ["a"]})
    with pytest.raises(SchemaError, match="flatten") as caught:
        read(frame, "user_id", "item_page")
    assert "frame.columns = map('_'.join, frame.columns)" in str(caught.value)
    frame.columns = map("_".join, frame.columns)
    assert read(frame, "user_id", "item_page").counts.tolist() == [1]


@pytest.mark.parametrize("name", ["user", "item", "cents"])
def test_a_table_is_no_column_of_a_dict(name):
    table = pyarrow.table({"a": [1, 2]})
    tables = [table, table.to_batches()[0], pandas.DataFrame({"a": [1, 2]}), polars.DataFrame({"a": [1, 2]})]
    tables += [pandas.MultiIndex.from_tuples([(1, 2), (3, 4)]), duckdb.sql("SELECT 1")]
    for column in tables:
        with pytest.raises(ParameterError, match=f"column '{name}' must be a .* not a {type(column).__name__}"):
            dp.sum(rows(name, column), **SUMMED, l0=1)
        if name != "cents":
            with pytest.raises(ParameterError, match=f"column '{name}' must be"):
                dp.count(rows(name, column), **COUNTED)


def test_an_error_about_a_series_names_the_key_of_the_dict():
    floats = pandas.Series([1.0, 2.0], name="other")
    for call in (lambda data: dp.count(data, **COUNTED), lambda data: dp.sum(data, **SUMMED, l0=1)):
        with pytest.raises(SchemaError, match=r"column 'item' has the type float64.*astype\(\"Int64\"\)"):
            call(rows("item", floats))


def test_items_may_be_an_array_of_any_library():
    makers = [tuple, np.array, pandas.Series, polars.Series, pyarrow.array, lambda one: pyarrow.chunked_array([one])]
    for items in ([5, 6], ["a", "b"]):
        for make in makers:
            data = rows("item", items)
            assert sorted(dp.count(data, **COUNTED, items=make(items)).items) == items
            assert sorted(dp.sum(data, **SUMMED, items=make(items)).items) == items


def test_a_polars_column_with_nul_in_its_name_is_refused():
    frame = polars.DataFrame({"user": [1], "a\0": ["x"]})
    for data in (frame, {"user": frame["user"], "a\0": frame["a\0"]}, {"user": [1], "a\0": frame["a\0"]}):
        with pytest.raises(SchemaError, match="NUL"):
            read(data, item="a\0")


def test_a_pandas_group_is_refused_as_a_column():
    grouped = pandas.DataFrame({"user": [1], "item": ["a"]}).groupby("item")
    for users in (grouped, grouped["user"]):
        with pytest.raises(ParameterError, match=r"not a .*GroupBy"):
            Histogram.from_pairs(users, ["a"])


def test_sparse_pandas_columns_count_and_complex_ones_fail():
    sparse = pandas.arrays.SparseArray
    frame = pandas.DataFrame({"user": sparse([0, 0, 7]), "item": sparse([5, 0, 0])})
    assert as_dict(read(frame)) == {0: 2, 5: 1}
    with pytest.raises(SchemaError, match="complex128"):
        read(frame.assign(user=[1j, 2j, 3j]))


ITERATED = {
    "mapping": lambda: {5: 1, 6: 2},
    "counter": lambda: collections.Counter([5, 6]),
    "chain of mappings": lambda: collections.ChainMap({5: 1, 6: 2}),
    "keys": lambda: {5: 1, 6: 2}.keys(),
    "values": lambda: {1: 5, 2: 6}.values(),
    "set": lambda: {5, 6},
    "frozen set": lambda: frozenset([5, 6]),
    "bytes": lambda: b"ab",
    "bytearray": lambda: bytearray(b"ab"),
    "memoryview": lambda: memoryview(b"ab"),
    "text": lambda: "ab",
    "generator": lambda: (cell for cell in (5, 6)),
    "iterator": lambda: iter([5, 6]),
    "map": lambda: map(int, "56"),
    "number": lambda: 5,
    "None": lambda: None,
}
"""Values of two cells at most that are no arrays."""
COUNTED = {"user": "user", "item": "item", "rho": 1, "delta": 1e-6}
SUMMED = {**COUNTED, "value": "cents", "bounds": (0, 9)}
EXPONENTIAL = {"rho": 1, "k": 1}


def rows(column, cells):
    return {"user": [1, 2], "item": ["a", "b"], "cents": [1, 2], column: cells}


USES = {
    "count, user": lambda cells, budget: dp.count(rows("user", cells), **COUNTED, budget=budget),
    "count, item": lambda cells, budget: dp.count(rows("item", cells), **COUNTED, l0=1, budget=budget),
    "count, time": lambda cells, budget: dp.count(
        rows("day", cells), **COUNTED, l0=1, time="day", every="1d", budget=budget
    ),
    "top_k": lambda cells, budget: dp.top_k(rows("user", cells), **COUNTED, k=1, budget=budget),
    "select": lambda cells, budget: dp.select(rows("item", cells), **COUNTED, l0=1, budget=budget),
    "sum, user": lambda cells, budget: dp.sum(rows("user", cells), **SUMMED, l0=1, budget=budget),
    "sum, item": lambda cells, budget: dp.sum(rows("item", cells), **SUMMED, l0=1, budget=budget),
    "sum, value": lambda cells, budget: dp.sum(rows("cents", cells), **SUMMED, l0=1, budget=budget),
    "list of tables": lambda cells, budget: dp.count([rows("user", cells)], **COUNTED, budget=budget),
    "answers": lambda cells, budget: dp.answer_queries(cells, rho=1, delta=1e-6, budget=budget),
    "stream of a table": lambda cells, _: STREAM.start().step(rows("user", cells), user="user", item="item"),
    "plan": lambda cells, _: dp.plan("count", like=rows("user", cells), **COUNTED),
    "from_pairs, users": lambda cells, _: Histogram.from_pairs(cells, [1, 2]),
    "from_pairs, items": lambda cells, _: Histogram.from_pairs([1, 2], cells),
    "UserItems, users": lambda cells, _: UserItems.from_pairs(cells, [1, 2]),
    "UserItems, items": lambda cells, _: UserItems.from_pairs([1, 2], cells),
    "from_counts, items": lambda cells, _: Histogram.from_counts(cells, [1, 2], l0=1, linf=1, complete=True),
    "from_counts, counts": lambda cells, _: Histogram.from_counts([1, 2], cells, l0=1, linf=1, complete=True),
}
LABELS = {
    "count, items": lambda cells, budget: dp.count(rows("user", [1, 2]), **COUNTED, items=cells, budget=budget),
    "sum, items": lambda cells, budget: dp.sum(rows("user", [1, 2]), **SUMMED, items=cells, budget=budget),
    "ClippedSums": lambda cells, _: ClippedSums(items=cells, rho=1.0, low=0, high=1),
    "KnownItems": lambda cells, _: mechanisms.KnownItems(
        mechanism=dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=2), items=cells
    ),
    "ExponentialMechanism": lambda cells, _: mechanisms.ExponentialMechanism.from_rho(items=cells, **EXPONENTIAL),
}
STREAM = dp.BinaryMechanism.from_rho(rho=1, delta=1e-6, horizon=8, l0=1)


@pytest.mark.parametrize("kind", ITERATED)
@pytest.mark.parametrize("use", [*USES, *LABELS])
def test_what_merely_iterates_is_no_column_and_costs_nothing(use, kind):
    if kind == "None" and use in ("count, items", "sum, items"):
        pytest.skip("no items are given")
    budget = dp.Budget(rho=2, delta=1e-5)
    with pytest.raises(ParameterError):
        {**USES, **LABELS}[use](ITERATED[kind](), budget)
    assert (budget.spent.rho, budget.history) == (0, [])


def test_events_are_no_mapping_and_no_bytes():
    for kind in ("mapping", "chain of mappings", "bytes", "bytearray", "memoryview", "text"):
        with pytest.raises(ParameterError, match="list of items"):
            STREAM.start().step(ITERATED[kind]())


def test_sequences_and_arrays_of_every_kind_are_columns():
    arrays = [[5, 6], (5, 6), range(5, 7), array.array("q", [5, 6]), collections.deque([5, 6]), np.array([5, 6])]
    arrays += [collections.UserList([5, 6]), pandas.Series([5, 6]), pandas.Index([5, 6]), pandas.array([5, 6])]
    arrays += [polars.Series([5, 6]), pyarrow.array([5, 6]), pyarrow.chunked_array([[5], [6]])]
    for cells in arrays:
        assert counted({"user": cells, "item": [1, 1]})[1] == {1: 2}, type(cells)
        assert counted({"user": [1, 1], "item": cells})[1] == {5: 1, 6: 1}, type(cells)


def test_polars_columns_of_python_objects_are_refused():
    """Polars exports addresses, so equal objects would count as different users."""
    same = [uuid.UUID(int=7) for _ in range(3)]
    objects, numbers = polars.Series(same, dtype=polars.Object), polars.Series([1, 2, 3])
    for columns in ({"user": objects, "item": numbers}, {"user": numbers, "item": objects}):
        frame = polars.DataFrame(columns)
        for table in (frame, frame.lazy()):
            with pytest.raises(SchemaError, match="holds Python objects, such as UUIDs; make them text") as raised:
                read(table)
            with pytest.raises(SchemaError, match="holds Python objects"):
                UserItems.from_table(table, user="user", item="item")
        with pytest.raises(SchemaError, match="holds Python objects"):
            ClippedSums(items=(1,), rho=1.0, low=0, high=1).release(
                frame.with_columns(polars.lit(1).alias("value")), user="user", item="item", value="value"
            )
        remedy = str(raised.value).partition("cast the column: ")[2]
        mended = eval(remedy, {"frame": frame, "polars": polars, "map": map, "str": str})
        assert sorted(read(mended)[1].tolist()) == ([1, 1, 1] if columns["user"] is objects else [3])
    plain = polars.DataFrame({"user": [str(user) for user in same], "item": ["a"] * 3, "other": objects})
    assert read(plain)[1].tolist() == [1]


def test_numbers_of_pandas_in_any_order_of_bytes_are_read():
    for kind in (">i8", "<i8", ">u2", "<u2"):
        table = {"user": np.arange(3).astype(kind), "item": np.arange(3).astype(kind), "v": np.ones(3, ">f8")}
        series = {name: pandas.Series(column) for name, column in table.items()}
        for data in (table, pandas.DataFrame(table), series, series | {"item": pyarrow.array([0, 1, 2])}):
            columns = {"user": "user", "item": "item"}
            assert dp.Histogram.from_table(data, **columns)._counts().tolist() == [1, 1, 1]
            exact = {"items": [0, 1], "bounds": (0, 2), "l0": 1, "resolution": 1, "rho": 4000, "delta": 1e-6}
            assert dp.sum(data, **columns, value="v", **exact).counts.tolist() == [1, 1]
