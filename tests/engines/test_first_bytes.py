"""Files whose content is not what their suffix says: refused before the charge, with the true format and a remedy."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import re
import shutil
import sqlite3
import subprocess
import zipfile

import duckdb
import numpy as np
import pytest
from command import BUDGET, discreet
from counting import counted, csv

import discreet as dp
from discreet.engines.first_bytes import is_parquet
from discreet.errors import DiscreetError, InputError, SchemaError
from discreet.formats import DATA
from discreet.tables import CsvFiles

USERS = 3000
ROWS = [(user, "home") for user in range(USERS)]
CSV = ("user,item\n" + "".join(f"{user},{item}\n" for user, item in ROWS)).encode()
HEADLESS = CSV.partition(b"\n")[2]
JSON_LINES = "".join(json.dumps({"user": user, "item": item}) + "\n" for user, item in ROWS).encode()
TEXT = {
    "CSV": CSV,
    "CSV without a header": HEADLESS,
    "TSV": CSV.replace(b",", b"\t"),
    "JSON lines": JSON_LINES,
    "JSON array": json.dumps([{"user": user, "item": item} for user, item in ROWS]).encode(),
    "JSON document": json.dumps({"rows": [{"user": user, "item": item} for user, item in ROWS]}, indent=1).encode(),
    "HTML": b"<html>\n<body>\n<table></table>\n",
}
SUFFIXES = [*DATA, *(f"{suffix}.gz" for suffix in DATA if DATA[suffix].is_text)]
READ = {
    "CSV": {"csv", "txt"},
    "CSV without a header": {"headless"},
    "TSV": {"tsv"},
    "JSON lines": {"jsonl", "ndjson"},
    "Parquet": {"parquet", "pq"},
    "Arrow": {"arrow", "feather", "ipc"},
    "gzip of CSV": {"csv.gz", "txt.gz"},
    "gzip of JSON lines": {"jsonl.gz", "ndjson.gz"},
}
"""The contents that are read, and their suffixes."""
ON_INPUT = {"CSV", "gzip of CSV", "Parquet"}
UNKNOWN = {
    *((name, suffix) for name in {*TEXT} - {"JSON lines"} for suffix in ("jsonl", "ndjson")),
    *(("gzip of CSV", suffix) for suffix in ("jsonl.gz", "ndjson.gz")),
    *((name, "headless") for name in TEXT),
}
"""Pairs of text and door that are released, although the text is another one.

Any line of JSON lines, and any record of CSV without a header, may be one user's row. A line that is no object, or a
record with too few cells, is left out. It must not decide whether there is a release.
"""


def written(write):
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def database(folder, library):
    path = folder / "made.db"
    with library.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS user, 'home' AS item")
    connection.close()
    content = path.read_bytes()
    path.unlink()
    return content


def zipped(name):
    def write(out):
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr(name, CSV)

    return written(write)


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Return other contents by the name that an error has, and the name of the content if it is another one."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    feather = pytest.importorskip("pyarrow.feather")
    folder = tmp_path_factory.mktemp("contents")
    users, items = zip(*ROWS, strict=True)
    table = pyarrow.table({"user": users, "item": items})
    found = {
        "Parquet": written(lambda out: parquet.write_table(table, out)),
        "Parquet of DuckDB": b"",
        "Parquet without rows": written(lambda out: parquet.write_table(table[:0], out)),
        "Arrow": written(lambda out: feather.write_feather(table, out, compression="lz4")),
        "Arrow without rows": written(lambda out: feather.write_feather(table[:0], out)),
        "Arrow stream": b"",
        "gzip of CSV": gzip.compress(CSV),
        "gzip of JSON lines": gzip.compress(JSON_LINES),
        "zip": zipped("log.csv"),
        "zip, a sheet": zipped("[Content_Types].xml"),
        "zip, empty": written(lambda out: zipfile.ZipFile(out, "w").close()),
        "zip of NumPy": written(lambda out: np.savez(out, a=[1])),
        "NumPy": written(lambda out: np.save(out, [1])),
        "Excel": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500),
        "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(500),
        "Avro": b"Obj\x01\x04\x16avro.schema\x10" + bytes(500),
        "SQLite": database(folder, sqlite3),
        "DuckDB": database(folder, duckdb),
        "zstd": pyarrow.compress(CSV, "zstd", asbytes=True),
        "lz4": pyarrow.compress(CSV, "lz4", asbytes=True),
        "bzip2": bz2.compress(CSV),
        "bzip2, empty": bz2.compress(b""),
        "xz": lzma.compress(CSV),
        **{f"pickle {protocol}": pickle.dumps(ROWS, protocol) for protocol in (2, 3, 4, 5)},
        **{
            f"{name} {encoding}": mark + text.decode().encode(encoding)
            for encoding, mark in [("utf-16", b""), ("utf-16-le", b""), ("utf-16-be", b"\xfe\xff"), ("utf-32", b"")]
            for name, text in [("UTF", CSV), ("UTF without a header", HEADLESS), ("UTF of JSON lines", JSON_LINES)]
        },
    }
    duckdb.sql(f"COPY (SELECT range AS user, 'home' AS item FROM range({USERS})) TO '{folder}/a.parquet'")
    found["Parquet of DuckDB"] = (folder / "a.parquet").read_bytes()

    def stream(out):
        with pyarrow.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)

    found["Arrow stream"] = written(stream)
    try:
        orc = pytest.importorskip("pyarrow.orc")
        for kind in ("uncompressed", "zlib", "zstd"):
            found[f"ORC {kind}"] = written(lambda out, kind=kind: orc.write_table(table, out, compression=kind))
    except pytest.skip.Exception:
        pass
    return found


NAMES = {"zip": "a zip archive", "Excel": "an Excel sheet", "NumPy": "an array of NumPy", "pickle": "a pickle"}
NAMES |= {"gzip": "gzip", "UTF": "UTF-"}


def named(content):
    """Return the words of an error about a content."""
    first = content.partition(",")[0].split()[0]
    return "Arrow stream" if content == "Arrow stream" else NAMES.get(first, first)


def outcome(path, budget, **columns):
    columns = {"user": "user", "item": "item", **columns}
    try:
        release = dp.count(path, **columns, l0=1, rho=1, delta=1e-6, budget=budget)
    except DiscreetError as error:
        assert len(budget.history) == 0
        return str(error)
    assert len(budget.history) == 1
    return release.items


def doors(folder, content):
    """Yield the name of each door, the name of the file, and what `count` makes of the content there."""
    for suffix in SUFFIXES:
        path = csv(folder, content, f"log.{suffix}")
        yield suffix, path, outcome(path, dp.Budget(rho=1, delta=1e-6))
    path = csv(folder, content)
    found = CsvFiles(path=path, header=False)
    yield "headless", path, outcome(found, dp.Budget(rho=1, delta=1e-6), user="1", item="2")


def test_a_content_is_read_or_refused_before_the_charge(tmp_path, contents):
    pairs, seen = 0, set()
    for content, data in {**contents, **TEXT}.items():
        family = content.removesuffix(" of DuckDB").removesuffix(" without rows")
        for door, path, found in doors(tmp_path, data):
            pairs += 1
            said = f"{content} named {door}: {found}"
            if door in READ.get(family, ()):
                assert found == ([] if "without rows" in content else ["home"]), said
            elif isinstance(found, list):
                seen.add((content, door))
            elif content not in TEXT:
                assert named(content) in found or (family.startswith("gzip") and door.endswith("gz")), said
                assert str(path) in found or "no column" in found, said
    assert seen == UNKNOWN - {("CSV without a header", "headless")}
    assert pairs > 700


@pytest.mark.parametrize("header", [True, False])
def test_standard_input_is_read_or_refused_before_the_charge(contents, header):
    options = ["--user", "user", "--item", "item"] if header else ["--no-header", "--user", "1", "--item", "2"]
    for content, data in {**contents, **TEXT}.items():
        family = content.removesuffix(" of DuckDB").removesuffix(" without rows")
        code, out, err = discreet("count", "-", *options, "--l0", "1", *BUDGET, stdin=data)
        if code == 0:
            assert family in ON_INPUT if header else family.removeprefix("gzip of ") in TEXT, content
            assert "home" in out or not header or "rows" in content, content
        else:
            assert (code, out) == (1, ""), err
            assert family in {*TEXT, *READ} or named(content) in err, (content, err)


def test_an_inner_format_of_gzip_is_refused(tmp_path, contents):
    for content in ("Parquet", "zip", "SQLite", "gzip of CSV"):
        for suffix in ("csv", "jsonl"):
            path = csv(tmp_path, gzip.compress(contents[content]), f"log.{suffix}.gz")
            assert f"holds {named(content)}" in outcome(path, dp.Budget(rho=1, delta=1e-6))
    with pytest.raises(InputError, match="not compressed by gzip"):
        counted(csv(tmp_path, JSON_LINES, "log.jsonl.gz"))


def test_one_file_of_a_folder_is_refused_by_its_name(tmp_path, contents):
    csv(tmp_path, JSON_LINES, "a.jsonl")
    csv(tmp_path, contents["zip"], "b.jsonl")
    for given in (tmp_path, tmp_path / "*.jsonl", [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]):
        assert str(tmp_path / "b.jsonl") in outcome(given, dp.Budget(rho=1, delta=1e-6))


NOTHING = {
    "log.jsonl": b"",
    "log.ndjson": b" \n\n",
    "log.jsonl.gz": gzip.compress(b""),
    "headless.csv": b"",
    "headless.tsv": b"\xef\xbb\xbf",
    "headless.csv.gz": gzip.compress(b""),
    "header.csv": b"user,item\n",
    "log.parquet": "Parquet without rows",
    "log.arrow": "Arrow without rows",
}
"""Files without rows. One row of Alice in each makes a release, so none is one too."""


@pytest.mark.parametrize("name", NOTHING)
def test_a_file_without_rows_is_a_release_of_nothing(tmp_path, contents, name):
    data = NOTHING[name]
    path = csv(tmp_path, contents[data] if isinstance(data, str) else data, name)
    columns = {"user": "1", "item": "2"} if "headless" in name else {}
    given = CsvFiles(path=path, header=False) if columns else path
    assert outcome(given, dp.Budget(rho=1, delta=1e-6), **columns) == []
    if name.endswith("jsonl"):
        csv(tmp_path, JSON_LINES, "next.jsonl")
        assert counted(tmp_path) == {"home": USERS}


def test_an_empty_file_of_csv_has_the_header_of_the_others(tmp_path):
    """An hour without rows, whose writer writes the header with the first row."""
    csv(tmp_path, "", "00.csv")
    csv(tmp_path, gzip.compress(b""), "01.csv.gz")
    with pytest.raises(InputError, match=r"00\.csv: it is empty; write the line with the names"):
        counted(tmp_path)
    csv(tmp_path, CSV, "02.csv")
    assert counted(tmp_path) == counted(CsvFiles(path=tmp_path)) == {"home": USERS}
    csv(tmp_path, "user,page\n", "03.csv")
    with pytest.raises(SchemaError, match="same header"):
        counted(tmp_path)


@pytest.mark.parametrize("name", ["log.parquet", "log.arrow", "log.csv", "log.jsonl.gz"])
def test_an_empty_file_of_another_format_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=f"{name}: it is empty"):
        counted(csv(tmp_path, b"", name))


@pytest.mark.parametrize("content", [b"", gzip.compress(b""), b"\xef\xbb\xbf"], ids=["nothing", "gzip", "mark"])
def test_standard_input_without_bytes_needs_no_header(content):
    options = ["--user", "1", "--item", "2", *BUDGET]
    code, out, err = discreet("count", "-", "--no-header", *options, stdin=content)
    assert (code, len(out.splitlines())) == (0, 1), err
    code, out, err = discreet("count", "-", *options, stdin=content)
    assert (code, out) == (1, "")
    assert "standard input: it is empty" in err


FIRST = ["PAR1", "PAR1,", "PK", "BZh9", "ORC", "Obj", "SQLite format 3", "ARROW1", "FEA1", "DUCK", "12345678DUCK", "{"]
FIRST += [
    "PAR1\x15",
    "PAR1\x15\x04",
    "PK\x03\x04",
    "PK\x05\x06",
    "ORC\x01",
    "ORC\x01\x02\x03",
    "Obj\x01",
    "Obj\x01\x04",
    "u\0s\0" * 15,
]
FIRST += [
    "\0u\0s" * 15,
    "SQLite format 3\0",
    "ARROW1\0\0",
    "FEA1\0\0\0\0",
    "12345678DUCK@\0\0\0",
    "BZh91AY&SYé",
    "BZh9\x17rE8P",
    '\x04"M\x18',
]


@pytest.mark.parametrize("first", [*FIRST, "\x15", "\ufeff", "\ufffe", "þÿ", "ÿþ", "(µ/ý", "\x1f", "a\0", "€\x93NUMPY"])
@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252", "utf-16"])
def test_the_text_of_a_first_row_refuses_nothing(tmp_path, first, encoding):
    """A file without a header begins with a user's row."""
    try:
        content = f"{first},home\n1,home\n2,home\n".encode(encoding)
    except UnicodeEncodeError:
        pytest.skip("the encoding has no such letter")
    found = counted(CsvFiles(path=csv(tmp_path, content), encoding=encoding, header=False), "1", "2")
    assert found["home"] >= 2
    code, _, err = discreet(
        "count", "-", "--user", "1", "--item", "2", "--no-header", "--encoding", encoding, *BUDGET, stdin=content
    )
    assert code == 0, err


def test_the_remedy_for_a_wrong_suffix_works(tmp_path, contents):
    for content, suffix in [("Parquet", "csv"), ("Arrow", "jsonl"), ("gzip of CSV", "csv"), ("Parquet", "arrow")]:
        path = csv(tmp_path, contents[content], f"log.{suffix}")
        found = outcome(path, dp.Budget(rho=1, delta=1e-6))
        name = found.partition("rename it to ")[2].removeprefix("end in ")
        renamed = path.rename(name if name.startswith("/") else path.with_suffix(name))
        assert counted(renamed) == {"home": USERS}
    for content in ("gzip of CSV", "zstd", "bzip2", "xz", "lz4", "UTF utf-16", "UTF utf-16-le", "UTF utf-32", "zip"):
        path = csv(tmp_path, contents[content], "log.jsonl" if content.startswith("UTF") else "log.parquet")
        found = outcome(path, dp.Budget(rho=1, delta=1e-6))
        command = re.search(r"(\w+) -.* NEW$|unzip", found)[0].replace("NEW", str(tmp_path / "new.csv"))
        if shutil.which(command.split()[0]) is None:
            continue
        subprocess.run(f"{command} {path}" if command == "unzip" else command, shell=True, check=True, cwd=tmp_path)
        assert counted(tmp_path / ("log.csv" if content == "zip" else "new.csv")) == {"home": USERS}
    path = csv(tmp_path, CSV.decode().encode("utf-16-be"))
    assert "iconv -f UTF-16BE" in outcome(path, dp.Budget(rho=1, delta=1e-6))
    path = csv(tmp_path, CSV.decode().encode("utf-16"))
    assert "--encoding utf-16" in outcome(path, dp.Budget(rho=1, delta=1e-6))
    assert counted(CsvFiles(path=path, encoding="utf-16")) == {"home": USERS}
    assert [is_parquet(contents[name]) for name in ("Parquet", "Arrow")] == [True, False]
