"""`discreet check`: exact facts for the owner of the data, on lines that say that they are not private."""

import ast
import json

import pytest
from command import discreet, output
from counting import BINARY, counted, csv, store

import discreet as dp
from discreet import _core
from discreet.engines.checking import check
from discreet.engines.projection import period_of
from discreet.engines.sql import query
from discreet.errors import InputError, ParameterError, SchemaError
from floors import PACKAGE, imported, parsed

SENSITIVE = ("csv_dropped", "items_per_user", "json_dropped", "tally")
"""The functions of the core that count rows and users without noise, for the check alone."""
BAD = b"user,page\n1,a\n1,b\n2,a\n3\n4,\xff\n5,\n,x\n7," + b"y" * (_core.LONGEST + 1) + b'\n6,"abc\n8,z\n'


def test_rows_are_dropped_for_reasons(tmp_path):
    found = check(csv(tmp_path, BAD), "user", "page")
    assert found.rows == 9
    assert found.dropped == {
        "too few cells": 1,
        "a cell is not UTF-8": 1,
        f"a cell has more than {_core.LONGEST:,} bytes": 1,
        "user is NULL": 1,
        "page is NULL": 1,
    }
    assert (found.unclosed, found.counted, found.users, found.items) == (1, 4, 3, 3)
    assert dict(found.items_per_user)["most"] == 2
    assert repr(found) == "Check(SENSITIVE)"


def written(table, path):
    """Write a table in the format of the path's suffix; return the options that read it."""
    if path.suffix == ".duckdb":
        import duckdb

        with duckdb.connect(str(path)) as database:
            database.register("given", table)
            database.execute("CREATE TABLE log AS SELECT * FROM given")
        return ["--database", path, "--table", "log"]
    store(table, path)
    return [path]


@pytest.mark.parametrize("form", [*BINARY, "duckdb"])
def test_other_files_are_checked(tmp_path, form):
    pyarrow = pytest.importorskip("pyarrow")
    long = "x" * (_core.LONGEST + 1)
    users, pages = [1, 1, 2, None, 3, 3], ["a", "b", "a", "a", None, long]
    table = pyarrow.table({"user": users, "page": pages, "day": ["d"] * 6})
    path = tmp_path / f"log.{form}"
    options = written(table, path)
    out = output("check", *options, "--user", "user", "--item", "page", "--item", "day")[0]
    lines = out.splitlines()
    assert all(line.startswith("NOT PRIVATE  ") for line in lines)
    facts = [line.removeprefix("NOT PRIVATE  ") for line in lines]
    assert facts[:4] == ["6 rows", "column user: BIGINT", "column page: VARCHAR", "column day: VARCHAR"]
    assert "1 row left out: user is NULL" in facts
    assert "1 row left out: page is NULL" in facts
    assert f"1 row left out: page has more than {_core.LONGEST:,} bytes" in facts
    assert facts[-10:-6] == ["3 rows counted", "2 users", "2 items", "items per user, 50%: 1"]
    assert facts[-2] == "items per user, most: 2"
    assert facts[-1].endswith("discreet plan count --rho 1 --delta 1e-6 --like users=2,median=1,p95=2,items=2")


def test_a_file_is_checked_without_columns(tmp_path):
    out = output("check", csv(tmp_path, BAD))[0]
    assert out.splitlines()[0] == "NOT PRIVATE  9 rows"
    assert "1 file with an unclosed quote" in out
    assert "users" not in out


def test_users_that_are_written_as_floats_are_shown(tmp_path):
    path = csv(tmp_path, "user,page,price\n5.0,home,1\n5,home,1\n-6.0,home,1.0\n,home,2.50\n")
    for columns in ((), ("--user", "user", "--item", "page")):
        out = discreet("check", path, *columns)[1]
        assert "column user: 2 cells such as 5.0, a label other than 5." in out
        assert "column page: " not in out.replace("column page: VARCHAR", "")
    assert 'try_cast("user" AS BIGINT)' in out
    read = f"read_csv('{path}', all_varchar = true, quote = '\"', escape = '\"', parallel = false)"
    cast = f'SELECT try_cast("user" AS BIGINT) AS "user", page FROM {read}'
    found = check(query(cast, None), "user", "page")
    assert (found.users, found.decimals) == (2, {})


def test_text_of_parquet_that_is_not_utf8_is_counted(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    plain = pyarrow.array([b"a", b"\xff", b"b"], pyarrow.binary())
    text = pyarrow.Array.from_buffers(pyarrow.string(), 3, plain.buffers())
    path = tmp_path / "log.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"user": [1, 2, 3], "page": text}), path)
    found = check(path, "user", "page")
    assert (found.rows, found.dropped, found.users) == (3, {"a cell is not UTF-8": 1}, 2)


def test_files_of_another_dialect_are_checked(tmp_path):
    path = csv(tmp_path, "1;Caf\xe9\n2;Caf\xe9\n3\n".encode("latin-1"))
    options = ["--delimiter", ";", "--encoding", "latin-1", "--no-header"]
    out = output("check", path, "--user", "1", "--item", "2", *options)[0]
    assert "NOT PRIVATE  1 row left out: too few cells" in out
    assert "NOT PRIVATE  2 users" in out
    assert "give --user and --item as numbers" in discreet("check", path, *options)[2]


def test_parameters_of_a_check_are_checked(tmp_path):
    path = csv(tmp_path, BAD)
    with pytest.raises(ParameterError, match="give both"):
        check(path, "user")
    with pytest.raises(SchemaError, match="no column"):
        check(path, "user", "pages")
    with pytest.raises(InputError, match="no such file"):
        check(tmp_path / "missing.csv")
    assert discreet("check")[0] == 2


def test_names_of_columns_are_printed_on_one_line(tmp_path):
    out = discreet("check", csv(tmp_path, 'user,"pa\nge\x1b[31m"\n1,a\n'))[1]
    assert all(line.startswith("NOT PRIVATE  ") for line in out.splitlines())
    assert "\x1b" not in out


def test_no_release_imports_the_check():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name.startswith("discreet.engines.checking") for name in imported(parsed(path)))
    }
    assert found == {"cli/check.py"}
    calls = {
        (node.attr, path.name)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "_core" and node.attr in SENSITIVE
    }
    files = {"csv_dropped": "csv_rows.py", "json_dropped": "json_rows.py"}
    assert calls == {(name, files.get(name, "checking.py")) for name in SENSITIVE}


VALUES = ["1", "2.5", "3,50", "$1", "", "nan", "1_0", " 4 ", "1e400"]


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", *BINARY, "duckdb"])
def test_a_column_to_sum_is_checked(tmp_path, form):
    pyarrow = pytest.importorskip("pyarrow")
    users, shops = [*range(len(VALUES))], ["a"] * (len(VALUES) - 1) + [None]
    table = pyarrow.table({"user": users, "shop": shops, "cents": VALUES})
    path = tmp_path / f"sales.{form}"
    rows = [(user, shop or "", value) for user, shop, value in zip(users, shops, VALUES, strict=True)]
    if form in ("csv", "tsv"):
        mark = "," if form == "csv" else "\t"
        lines = [mark.join(f'"{cell}"' for cell in row) for row in [("user", "shop", "cents"), *rows]]
        path.write_text("\n".join(lines).replace('""', ""))
    elif form == "jsonl":
        objects = [{"user": user, "shop": shop or None, "cents": value or None} for user, shop, value in rows]
        objects.append({"user": 50, "shop": "b", "cents": 2.5})
        objects += [{"user": 51, "shop": "b", "cents": [2.5]}, {"user": 52, "shop": "b"}]
        path.write_text("\n".join(map(json.dumps, objects)))
    else:
        written(table, path)
    options = ["--database", path, "--table", "log"] if form == "duckdb" else [path]
    out = output("check", *options, "--user", "user", "--item", "shop", "--column", "cents")[0]
    facts = [line.removeprefix("NOT PRIVATE  ") for line in out.splitlines()]
    summed = 4 if form == "jsonl" else 3
    assert f"{summed} rows summed" in facts
    if form != "duckdb":
        columns = {"user": "user", "item": "shop", "value": "cents", "resolution": 0.5}
        assert dp.sum(path, **columns, items=["a"], bounds=(0, 5), rho=10_000).counts.tolist() == [7.5]
    # An empty cell of a text file is NULL.
    wrong = 5 if form in ("csv", "tsv", "jsonl") else 6
    assert f"{wrong} rows left out: cents is no finite number" in facts
    if form in ("csv", "tsv", "jsonl"):
        assert f"{2 if form == 'jsonl' else 1} row{'s' * (form == 'jsonl')} left out: cents is NULL" in facts


def test_a_column_of_amounts_as_text_is_visible(tmp_path):
    path = csv(tmp_path, b"user,shop,price\n" + b"".join(b'%d,a,"3,50"\n' % user for user in range(50)))
    out = output("check", path, "--user", "user", "--item", "shop", "--column", "price")[0]
    assert "50 rows left out: price is no finite number" in out
    assert "NOT PRIVATE  0 rows summed" in out


@pytest.mark.parametrize("column", [None, "value"])
def test_a_column_whose_type_cannot_be_read_is_a_schema_error(tmp_path, column):
    pyarrow = pytest.importorskip("pyarrow")
    times = pyarrow.nulls(2, pyarrow.time64("us"))
    path = tmp_path / "log.parquet"
    table = pyarrow.table({"user": [1, 2], "item": ["a", "b"], "value": times})
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    with pytest.raises(SchemaError, match="value"):
        check(path, "user", "item" if column else "value", value=column)


def test_a_column_of_times_alone_is_checked(tmp_path):
    path = csv(tmp_path, b"user,page,ts\n1,a,2026-01-31\n2,a,soon\n3,b,2026/2/1 12:00\n4,b,\n")
    out = output("check", path, "--user", "user", "--item", "page", "--time", "ts")[0]
    assert "2 rows left out: ts is NULL or is no time" in out
    assert "2 rows counted" in out


def test_a_sum_is_checked_as_it_is_read(tmp_path):
    rows = b"1,a,2,2026-01-01\n2,a,x,2026-01-01\n3,a,,soon\n4,a,5,2026-01-02\n,a,6,2026-01-02\n"
    path = csv(tmp_path, b"user,page,n,ts\n" + rows)
    found = check(path, "user", ["page", "ts"], value="n")
    assert (found.counted, found.summed) == (4, 2)
    assert found.dropped == {"user is NULL": 1, "n is NULL": 1, "n is no finite number": 1}
    timed = check(path, "user", "page", value="n", period=period_of("ts", "1d", None, "2026-01-02"))
    assert (timed.counted, timed.summed, timed.excluded) == (2, 1, 2)
    wrong = [
        {"value": "n"},
        {"user": "user", "item": "page", "value": "page"},
        {"user": "user", "item": ["page", "n"], "value": "n"},
        {"user": "user", "item": "page", "value": "ts", "period": period_of("ts", "1d", None, None)},
    ]
    for parameters in wrong:
        with pytest.raises(ParameterError):
            check(path, **parameters)
    with pytest.raises(SchemaError, match="m"):
        check(path, "user", "page", value="m")


HEADERS = {
    "an empty name": ",user,item",
    "two empty names": ",user,,item",
    "names that repeat": "a,user,a,item",
    "names that differ by case": "User,user,a,A,item",
    "names of aliases": "c1,user,c0,item",
    "a name that repeats without case": "a,A,a,user,item",
    "names that others get": "user_1,user,USER,item",
    "a quote": '"a""b",user,"x\ny",item',
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_check_reads_each_header_that_a_count_reads(tmp_path, header):
    names = header.replace('"a""b"', "a").replace('"x\ny"', "b").split(",")
    cells = [{"user": "1", "item": "z"}.get(name, f"cell of {place}") for place, name in enumerate(names)]
    path = csv(tmp_path, f"{header}\n{','.join(cells)}\n")
    assert counted(path) == {"z": 1}
    whole, found = check(path), check(path, "user", "item")
    assert (whole.rows, found.rows, found.users, whole.dropped, found.dropped) == (1, 1, 1, {}, {})
    assert len(whole.types) == len(names)
    output("check", path)


def test_columns_that_nobody_asked_for_are_no_error_of_a_check(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    columns = [pyarrow.array([1]), pyarrow.array(["a"]), *(pyarrow.array([value]) for value in (2, 3, 4))]
    path = tmp_path / "log.arrow"
    store(pyarrow.table(columns, ["user", "item", "note", "Note", ""]), path)
    assert [*check(path).types] == ["user", "item"]
    path = tmp_path / "log.parquet"
    store(pyarrow.table(columns[:4], ["user", "item", "note", ""]), path)
    assert [*check(path).types] == ["user", "item", "note"]
    for suffix in ("arrow", "parquet"):
        assert counted(tmp_path / f"log.{suffix}") == {"a": check(tmp_path / f"log.{suffix}", "user", "item").users}


@pytest.mark.parametrize("form", ["csv", "jsonl", *BINARY])
def test_texts_that_stand_for_nothing_are_shown(tmp_path, form):
    texts = ["NULL", "NULL", "\\N", "NA", "N/a", "", "nan", "None", "-", "b", None, "annul"]
    path = tmp_path / f"log.{form}"
    if form == "csv":
        csv(tmp_path, "user,item\n" + "".join("a,\n" if text is None else f'a,"{text}"\n' for text in texts))
    elif form == "jsonl":
        csv(tmp_path, "".join(json.dumps({"user": "a", "item": text}) + "\n" for text in texts), path.name)
    else:
        store(pytest.importorskip("pyarrow").table({"user": ["a"] * len(texts), "item": texts}), path)
    found = check(path, "user", "item")
    assert found.missing["item"] == {text: texts.count(text) for text in texts[:9]}
    assert not found.missing["user"]
    assert found.items == 10
    out = output("check", path, "--user", "user", "--item", "item")[0]
    assert "column item: " in out
    assert "NULL: 2 rows" in out
    assert "empty text: 1 row" in out
    assert "\\N: 1 row" in out
