"""Files that are not plain Parquet or CSV: dialects of CSV, Arrow, folders, hive trees and databases."""

import gzip
import os
import re
import shutil
import sqlite3
import subprocess
import sys

import duckdb
import pytest
from command import BUDGET, discreet, errors_of, output
from counting import counted, csv

import discreet as dp
from discreet import _core
from discreet.engines.checking import check
from discreet.errors import InputError, ParameterError, SchemaError
from discreet.tables import CsvFiles, open_database

ROWS = [("1", "Caf\xe9"), ("2", "Caf\xe9"), ("3", "na\xefve;x")]
EXPECTED = {"Caf\xe9": 2, "na\xefve;x": 1}


def text(delimiter=",", header="user,item"):
    lines = [header.replace(",", delimiter)] if header else []
    return "".join(f"{line}\n" for line in [*lines, *(f'{user}{delimiter}"{item}"' for user, item in ROWS)])


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "windows-1252", "utf-16", "utf-16-le", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_dialects_are_read(tmp_path, encoding, delimiter, header, suffix):
    content = text(delimiter, "user,item" if header else "").encode(encoding)
    path = csv(tmp_path, gzip.compress(content) if suffix.endswith("gz") else content, f"log.{suffix}")
    name = {"utf-16-le": "utf-16", "utf-8-sig": "utf-8"}.get(encoding, encoding)
    found = CsvFiles(path=path, delimiter=delimiter, encoding=name, header=header)
    names = ("user", "item") if header else ("1", "2")
    assert counted(found, *names) == EXPECTED


def test_characters_of_windows_are_not_those_of_latin_1(tmp_path):
    path = csv(tmp_path, b"user,item\n1,\x80\n")
    assert counted(CsvFiles(path=path, encoding="cp1252")) == {"\u20ac": 1}
    assert counted(CsvFiles(path=path, encoding="ISO-8859-1")) == {"\x80": 1}


def test_the_first_row_of_a_user_drops_no_other_rows(tmp_path):
    """Without a header, the number of columns comes from the caller, not from a row."""
    path = csv(tmp_path, "0,a,b,c,d,e\n" + "".join(f"{user},a\n" for user in range(1, 5)) + "5\n")
    assert counted(CsvFiles(path=path, header=False), "1", "2") == {"a": 5}
    assert counted(CsvFiles(path=path, header=False), "1", "3") == {"b": 1}
    assert counted(CsvFiles(path=path, header=False), "1", "77") == {}


def test_the_first_row_of_a_user_does_not_choose_the_line_end(tmp_path):
    path = csv(tmp_path, b"0,a\rb\n1,a\n2,a\r\n")
    assert counted(CsvFiles(path=path, header=False), "1", "2") == {"a\rb": 1, "a": 2}


def test_half_characters_drop_their_row(tmp_path):
    content = "user,item\n1,a\n2,".encode("utf-16-le") + b"\x00\xd8" + "x\n3,a\n".encode("utf-16-le")
    assert counted(CsvFiles(path=csv(tmp_path, content), encoding="utf-16")) == {"a": 2}


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        *(({"delimiter": mark}, "delimiter") for mark in ("", ";;", '"', "\n", "\xe9", 5)),
        ({"encoding": "utf-7"}, "encoding must be one of"),
        ({"header": 1}, "header"),
    ],
)
def test_dialects_are_checked(parameters, error):
    with pytest.raises(ParameterError, match=error):
        CsvFiles(path="log.csv", **parameters)


@pytest.mark.parametrize("name", ["user", "0", "01", "-1", "10001", "\u0661", ""])
def test_columns_without_a_header_are_numbers(tmp_path, name):
    with pytest.raises(SchemaError, match="without a header"):
        counted(CsvFiles(path=csv(tmp_path, "1,a\n"), header=False), "1", name)


def test_standard_input_has_dialects(tmp_path):
    content = "".join(f"{user};Caf\xe9\n" for user in range(4000)).encode("latin-1")
    options = ["--delimiter", ";", "--encoding", "latin-1", "--no-header", "--user", "1", "--item", "2"]
    for file, more in (("-", {"stdin": content}), (csv(tmp_path, content), {})):
        out = output("count", file, *options, *BUDGET, **more)[0]
        assert "Caf\xe9" in out


def test_tabs_are_written_in_a_shell(tmp_path):
    path = csv(tmp_path, "user\titem\n" + "".join(f"{user}\ta\n" for user in range(4000)))
    for mark in ("\t", "\\t", "tab"):
        out = output("count", path, "--user", "user", "--item", "item", "--delimiter", mark, *BUDGET)[0]
        assert out.splitlines()[1].startswith("a,")


@pytest.mark.parametrize("compression", ["lz4", "zstd", "uncompressed"])
def test_arrow_files_are_read(tmp_path, compression):
    pyarrow = pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")
    for name, users in (("a", [1, 2, None]), ("b", [2, 3, 4])):
        table = pyarrow.table({"user": pyarrow.array(users, pyarrow.int64()), "item": ["x", "y", "y"]})
        feather.write_feather(table, tmp_path / f"{name}.feather", compression=compression)
    assert counted(str(tmp_path / "*.feather")) == {"x": 2, "y": 3}
    broken = csv(tmp_path, b"ARROW1 and nothing else", "broken.arrow")
    with pytest.raises(InputError, match="as Arrow"):
        counted(broken)
    with pytest.raises(SchemaError, match="no column"):
        counted(tmp_path / "a.feather", item="other")


def test_arrow_files_are_summed(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")

    def write(name, **columns):
        feather.write_feather(pyarrow.table({"item": ["x", "y", None], **columns}), tmp_path / f"{name}.arrow")

    def summed(name, user="user"):
        columns = {
            "user": user,
            "item": "item",
            "value": "value",
            "items": ["x", "y"],
            "bounds": (0, 9),
            "resolution": 1,
        }
        found = dp.sum(tmp_path / name, **columns, rho=10_000)
        return dict(zip(found.items, found.counts.tolist(), strict=True))

    write("a", user=[1, 2, 3], value=[2, 30, 1])
    write("b", user=[1, None, 3], value=[4, 1, 1])
    assert summed("a.arrow") == {"x": 2, "y": 9}
    assert summed("*.arrow") == {"x": 6, "y": 9}
    write("c", user=[1, 2, 3], value=["2", "3", "1"], Value=[1, 2, 3])
    assert summed("c.arrow") == {"x": 2, "y": 3}
    assert summed("*.arrow") == {"x": 8, "y": 9}
    assert summed("c.arrow", user="Value") == {"x": 2, "y": 3}
    write("d", user=[1, 2, 3], value=pyarrow.array([1, 2, 3], pyarrow.float64()).cast(pyarrow.float16()))
    assert summed("d.arrow") == {"x": 1, "y": 2}
    found = check(tmp_path / "d.arrow", "user", "item", value="value")
    assert (found.summed, found.types["value"]) == (2, "halffloat")


def parquet(path, **columns):
    pyarrow = pytest.importorskip("pyarrow")
    path.parent.mkdir(parents=True, exist_ok=True)
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)


def test_a_folder_is_read_with_all_its_folders(tmp_path):
    parquet(tmp_path / "a.parquet", user=[1], item=["x"])
    parquet(tmp_path / "deep" / "er" / "b.parquet", user=[2], item=["x"])
    parquet(tmp_path / "_temporary" / "c.parquet", user=[3], item=["x"])
    parquet(tmp_path / ".hidden.parquet", user=[4], item=["x"])
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "notes.md").write_text("")
    assert counted(tmp_path) == {"x": 2}
    csv(tmp_path, "user,item\n5,x\n")
    with pytest.raises(InputError, match="different formats"):
        counted(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no files of a format"):
        counted(tmp_path / "empty")


@pytest.mark.parametrize("name", ["tree", "tree/**/*.parquet", "tree/linked"])
def test_a_linked_folder_is_read_as_a_glob_reads_it(tmp_path, name):
    parquet(tmp_path / "elsewhere" / "a.parquet", user=[1], item=["x"])
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "tree" / "broken").symlink_to(tmp_path / "missing")
    (tmp_path / "tree" / "endless").symlink_to(tmp_path / "tree" / "endless")
    if "*" not in name:
        (tmp_path / "elsewhere" / "again").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "tree" / "deep" / "above").symlink_to(tmp_path / "tree")
    assert counted(tmp_path / name) == {"x": 1}


def test_a_folder_to_which_links_lead_twice_is_refused(tmp_path):
    """Its rows would be read twice. Folders that link to each other have more paths than can be followed."""
    places = [tmp_path / str(n) for n in range(9)]
    for place in places:
        place.mkdir()
        (place / "log.csv").write_text("user,item\n1,a\n")
    for place in places:
        for n, other in enumerate(places):
            if other is not place:
                (place / f"link{n}").symlink_to(other)
    with pytest.raises(InputError, match="is the same folder; remove the link"):
        dp.Histogram.from_table(tmp_path, user="user", item="item")


@pytest.mark.parametrize(
    "log", ["_delta_log/0.json", "metadata/v1.metadata.json", ".hoodie/hoodie.properties", "_spark_metadata/0"]
)
@pytest.mark.parametrize(
    "read",
    ["table", "table/day=1", "table/*/*.parquet", "table/day=1/0.parquet", "top", "link", "link/../day=1/0.parquet"],
)
def test_a_folder_whose_log_decides_which_files_are_live_is_refused(tmp_path, log, read):
    table = tmp_path / ("top/table" if read == "top" else "table")
    parquet(table / "day=1" / "0.parquet", user=[1], item=["x"])
    (tmp_path / "link").symlink_to(table / "day=1")
    assert counted(tmp_path / read) == {"x": 1}
    path = table / log
    path.parent.mkdir()
    path.write_text("{}")
    budget = dp.Budget(rho=1, delta=1e-5)
    with pytest.raises(InputError, match="files of deleted rows"):
        dp.count(tmp_path / read, user="user", item="item", rho=1, delta=1e-6, budget=budget)
    assert budget.spent.rho == 0


def test_folders_of_a_hive_tree_are_columns(tmp_path):
    for country, user in (("DE", 1), ("FR", 2), ("__HIVE_DEFAULT_PARTITION__", 3), ("007", 4)):
        parquet(tmp_path / f"country={country}" / "day=2026-01-01" / "0.parquet", user=[user], item=["x"])
    found = counted(tmp_path, item=["country", "item"])
    assert found == {("DE", "x"): 1, ("FR", "x"): 1, ("007", "x"): 1}
    assert counted(str(tmp_path / "**" / "*.parquet"), item="day") == {"2026-01-01": 4}
    with pytest.raises(SchemaError, match="did you mean 'country'"):
        counted(tmp_path, item="countri")
    parquet(tmp_path / "1.parquet", user=[5], item=["x"])
    with pytest.raises(SchemaError, match="no column 'country'"):
        counted(tmp_path, item=["country", "item"])


def test_rows_of_a_hive_tree_with_invalid_text_are_skipped(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    plain = pyarrow.array([b"a", b"\xff"], pyarrow.binary())
    parquet(
        tmp_path / "country=DE" / "0.parquet",
        user=[1, 2],
        item=pyarrow.Array.from_buffers(pyarrow.string(), 2, plain.buffers()),
    )
    assert counted(tmp_path, item=["country", "item"]) == {("DE", "a"): 1}


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_table_of_a_database_is_read(tmp_path, kind):
    path = tmp_path / "odd ?#%'name.db"
    rows = [(user, "home") for user in range(4000)]
    if kind == "duckdb":
        with duckdb.connect(str(path)) as database:
            database.execute("CREATE TABLE visits (u INTEGER, page VARCHAR)")
            database.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS u")
            database.executemany("INSERT INTO visits VALUES (?, ?)", rows[:100])
            database.execute("INSERT INTO visits SELECT range + 100, 'home' FROM range(3900)")
    else:
        pytest.importorskip("ibis")
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE visits (u INTEGER, page TEXT)")
            database.executemany("INSERT INTO visits VALUES (?, ?)", rows)
        database.close()
    before = sorted(tmp_path.iterdir()), path.read_bytes()
    table = open_database(path, "visits")
    assert dp.count(table, user="u", item="page", rho=1, delta=1e-6).items == ["home"]
    options = ["--database", path, "--table", "visits", "--user", "u", "--item", "page", *BUDGET]
    out = output("count", *options)[0]
    assert out.splitlines()[1].startswith("home,")
    assert (sorted(tmp_path.iterdir()), path.read_bytes()) == before
    with pytest.raises(SchemaError, match="did you mean 'visits'"):
        open_database(path, "visit")
    if kind == "duckdb":
        assert open_database(path, "s.t").columns == ["u"]
    renamed = path.rename(tmp_path / "x.csv")
    assert "-o overwrites no file" in errors_of("count", "--database", renamed, *options[2:], "-o", renamed)


def test_databases_are_checked(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        open_database(tmp_path / "missing.duckdb", "visits")
    with pytest.raises(InputError, match="must be a DuckDB or SQLite database"):
        open_database(csv(tmp_path, "user,item\n"), "visits")
    assert discreet("count", "--database", "x", "--user", "u", "--item", "i", *BUDGET)[0] == 2
    errors_of("count", "log.csv", "--database", "x", "--table", "t", "--user", "u", "--item", "i", *BUDGET)


REMEDIES = {"a.csv.zst": "zstd -d", "a.jsonl.bz2": "bzip2 -dk", "a.parquet.xz": "xz -dk", "a.xlsx": "as CSV"}
REMEDIES |= {"a.json": "jq -cs", "a.json.gz": "jq -c", "a.jsonl.zst": "zstd -d", "a.sqlite": "--database"}


@pytest.mark.parametrize(("name", "remedy"), REMEDIES.items())
def test_other_files_are_refused_with_a_remedy(tmp_path, name, remedy):
    with pytest.raises(InputError, match=remedy):
        counted(csv(tmp_path, b"x", name))


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
@pytest.mark.parametrize("text", ['[{"user": 1, "item": "a"}]', '{"user": 1, "item": "a"}\n{"user": 2}', "[]"])
def test_the_remedy_for_json_works_for_documents_and_lines(tmp_path, text):
    with pytest.raises(InputError) as raised:
        counted(csv(tmp_path, text, "log.json"))
    command = str(raised.value).partition("a line: ")[2].replace("FILE", "log")
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)  # the command of the error text
    csv(tmp_path, (tmp_path / "log.jsonl").read_text() + '{"user": 3, "item": "b"}\n', "log.jsonl")
    assert counted(tmp_path / "log.jsonl") == {"b": 1} | ({"a": 1} if "1" in text else {})


@pytest.mark.parametrize("magic, remedy", [("new_stream", "open_stream"), ("new_file", "must be complete")])
def test_the_remedy_for_an_arrow_stream_works(tmp_path, magic, remedy):
    pyarrow = pytest.importorskip("pyarrow")
    path, table = tmp_path / "log.arrow", pyarrow.table({"user": [1], "item": ["a"]})
    with getattr(pyarrow.ipc, magic)(path, table.schema) as file:
        file.write_table(table)
    if magic == "new_file":
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=remedy):
        counted(path)
    if magic == "new_stream":
        assert counted(pyarrow.ipc.open_stream(path).read_all()) == {"a": 1}


@pytest.mark.parametrize("zeros", [0, 1, 512, 300_000])
def test_zeros_after_a_gzip_file_are_ignored(tmp_path, zeros):
    first, second, end = gzip.compress(b"user,item\n1,a\n"), gzip.compress(b"2,a\n"), b"\0" * zeros
    assert counted(csv(tmp_path, first + end, "log.csv.gz")) == {"a": 1}
    assert counted(csv(tmp_path, first + end + second + end, "log.csv.gz")) == {"a": 2}
    assert counted(csv(tmp_path, gzip.compress(b'{"user": 1, "item": "a"}\n') + end, "log.jsonl.gz")) == {"a": 1}
    with pytest.raises(InputError, match=r"log\.csv\.gz"):
        counted(csv(tmp_path, first + end + b"x", "log.csv.gz"))


def test_a_column_of_parquet_without_a_name_is_refused(tmp_path):
    parquet(tmp_path / "a.parquet", **{"user": [1], "": ["a"], "item": ["b"]})
    with pytest.raises(SchemaError, match="without a name"):
        counted(tmp_path / "a.parquet", item="")
    assert counted(tmp_path / "a.parquet") == {"b": 1}


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "a.csv/b.csv"])
def test_a_file_that_cannot_be_opened_is_refused_with_its_reason(tmp_path, name):
    csv(tmp_path, "user,item\n", "a.csv")
    with pytest.raises(InputError, match=r"no such file|Not a directory|too long"):
        counted(tmp_path / name)


def test_a_name_that_is_a_pattern_of_polars_is_a_name():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"^u.*$": [1, 1], "user": [2, 3], "item": ["a", "a"]})
    for given in (table, table.lazy()):
        assert counted(given, "^u.*$") == {"a": 1}


def test_utf_16_without_a_byte_order_mark_is_little_endian(tmp_path):
    path = csv(tmp_path, "user,item\n1,a\n".encode("utf-16-be"))
    with pytest.raises(SchemaError, match="without a byte order mark: little-endian"):
        counted(CsvFiles(path=path, encoding="utf-16"))


def test_a_sqlite_database_with_a_log_is_left_as_it_is(tmp_path):
    pytest.importorskip("ibis")
    path = tmp_path / "log.db"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE visits (user INTEGER, item TEXT)")
        database.execute("INSERT INTO visits VALUES (1, 'a')")
    database.close()
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert [*before] == ["log.db"]
    assert counted(open_database(path, "visits")) == {"a": 1}
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before
    writer = sqlite3.connect(path)
    writer.execute("INSERT INTO visits VALUES (2, 'a')")
    writer.commit()
    assert counted(open_database(path, "visits")) == {"a": 2}
    writer.close()


def test_a_view_is_refused_if_its_plan_reads_csv(tmp_path):
    path = tmp_path / "logs.duckdb"
    rows = csv(tmp_path, "u,i\n1,a\n", "rows.csv")
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE MACRO m(p) AS TABLE SELECT * FROM read_csv(p)")
        database.execute("CREATE TABLE rows AS SELECT 1 AS u, 'x.csv' AS i")
        reading = {"named": f"'{rows}'", "outer_view": "named", "made": f"m('{rows}')"}
        reading["joined"] = "rows UNION FROM made"
        for name, read in {**reading, "csv": "rows", "of_csv": "csv WHERE i = 'read_csv'"}.items():
            database.execute(f"CREATE VIEW {name} AS FROM {read}")
    for view in reading:
        with pytest.raises(SchemaError, match="is a view that reads CSV"):
            open_database(path, view)
    for name in ("rows", "csv", "of_csv"):
        assert open_database(path, name).columns == ["u", "i"]


def test_output_never_overwrites_a_file_that_a_view_may_read(tmp_path):
    path, rows = tmp_path / "logs.duckdb", tmp_path / "rows.parquet"
    with duckdb.connect(str(path)) as database:
        database.execute(f"COPY (SELECT range AS u, 'a' AS i FROM range(3000)) TO '{rows}'")
        database.execute(f"CREATE VIEW visits AS SELECT * FROM '{rows}'")
    before = rows.read_bytes()
    options = ["--database", path, "--table", "visits", "--user", "u", "--item", "i", "--rho", "1", "--delta", "1e-6"]
    errors_of("count", *options, "-o", rows)
    output("count", *options, "-o", tmp_path / "new.csv")
    assert rows.read_bytes() == before


@pytest.mark.parametrize("names", [["Count", "i"], ["I", "i"], ["SIGMA", "i"], ["", "i"], ["a\0", "i"]])
def test_names_that_a_file_cannot_hold_are_refused(names):
    with pytest.raises(ParameterError, match="rename"):
        dp.count({name: [1] for name in ["u", *names]}, user="u", item=names, rho=1, delta=1e-6)


REFUSED = """
import sys
import discreet as dp
from discreet.engines.checking import check
from pyarrow import dataset, feather
path, door = sys.argv[1:]
doors = {
    "path": lambda: path,
    "two paths": lambda: [path, path],
    "dataset": lambda: dataset.dataset(path, format="ipc"),
    "reader": lambda: dataset.dataset(path, format="ipc").scanner().to_reader(),
    "mixed": lambda: [dataset.dataset(path, format="ipc"), {"user": ["a"], "item": [1], "price": ["b"]}],
    "check": lambda: path,
}
for turn in range(40):
    columns = {"user": "price", "item": "item"} if turn % 2 else {"user": "user", "item": "price"}
    if door == "mixed":
        columns = {"user": "user", "item": "item"}
    try:
        if door == "check":
            check(doors[door](), *columns.values())
        else:
            dp.count(doors[door](), **columns, rho=1, delta=1e-6, l0=1)
    except dp.errors.SchemaError:
        continue
    sys.exit("no error")
print("ended")
"""


@pytest.mark.parametrize("door", re.findall('    "(.*)": lambda', REFUSED))
def test_a_refused_column_of_an_arrow_file_ends_no_process(tmp_path, door):
    """A scan of pyarrow that was started and then dropped ends the process, in most runs of forty calls."""
    pyarrow = pytest.importorskip("pyarrow")
    path, rows = tmp_path / "x.arrow", 20_000
    table = pyarrow.table({"price": [1.5] * rows, "item": ["a"] * rows, "user": range(rows)})
    with pyarrow.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=rows // 100)
    command = [sys.executable, "-c", REFUSED, path, door]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


@pytest.mark.parametrize("name", ["log.csv", "headless.csv", "log.jsonl", "log.csv.gz", "log.jsonl.gz"])
def test_a_file_that_is_cut_while_it_is_read_is_refused(tmp_path, name):
    pyarrow = pytest.importorskip("pyarrow")
    is_json, is_gzip = "json" in name, name.endswith("gz")
    line = '{"user": "%d", "item": "%s"}\n' if is_json else "%d,%s\n"
    parts = [(line % (user, "x" * 5000)).encode() for user in range(4000)]
    parts = parts if is_json or "headless" in name else [b"user,item\n", *parts]
    # A member for each line, so that the file that is left is a whole file of gzip.
    parts = [gzip.compress(part, 0) for part in parts] if is_gzip else parts
    path = csv(tmp_path, b"".join(parts), name)
    headless, user, item = (2, "1", "2") if "headless" in name else (None, "user", "item")

    def opened():
        if is_json:
            return _core.json_stream([path], ["user", "item"])
        return _core.csv_stream([path], ord(","), [0, 1], headless=headless)

    class Cut:
        """A table whose file is cut after the first batch."""

        def __arrow_c_stream__(self, requested_schema=None):
            reader = pyarrow.RecordBatchReader._import_from_c_capsule(opened())

            def batches():
                yield reader.read_next_batch()
                os.truncate(path, sum(map(len, parts[:3000])))
                yield from reader

            return pyarrow.RecordBatchReader.from_batches(reader.schema, batches()).__arrow_c_stream__()

    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises(InputError, match="check the data"):
        dp.count(Cut(), user=user, item=item, rho=1, delta=1e-6, budget=budget)
    assert len(budget.history) == 0
    left = CsvFiles(path=path, header=False) if headless else path
    assert counted(left, user, item)["x" * 5000] >= 2999  # a file as any other
