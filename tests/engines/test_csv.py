"""CSV files in the local engine: rows that are read, dropped or refused."""

import gzip
import subprocess
import sys

import duckdb
import pytest
from counting import clipped_sums, counted, csv

from discreet import _core
from discreet.engines.sql import query
from discreet.engines.timed_events import TimedEvents
from discreet.errors import InputError, ParameterError, SchemaError


def test_csv_columns_are_text_and_empty_cells_are_null(tmp_path):
    path = csv(tmp_path, 'user,item,x\n1,007,a\n01,007,a\n1,7,a\n2,"",a\n,7,a\n3,,a\n4,"a ""b"", c",a\n')
    assert counted(path) == {"007": 2, "7": 1, "": 1, 'a "b", c': 1}


def test_tab_separated_and_compressed_files_are_read(tmp_path):
    assert counted(csv(tmp_path, "user\titem\n1\ta,b\n", "log.tsv")) == {"a,b": 1}
    assert counted(csv(tmp_path, gzip.compress(b"user,item\n1,a\n"), "log.csv.gz")) == {"a": 1}


def test_csv_files_with_different_headers_are_a_schema_error(tmp_path):
    csv(tmp_path, "user,item\n1,a\n", "1.csv")
    csv(tmp_path, "item,user\n1,a\n", "2.csv")
    with pytest.raises(SchemaError, match="same header"):
        counted(str(tmp_path / "*.csv"))


@pytest.mark.parametrize(
    "odd", [b'5000,"x"y\n', b"5000,x\ry\n", b"5000,x\r\n", b'5000,x"y\n', b"5000\n", b"5000,\xff\n"]
)
def test_one_malformed_csv_row_does_not_affect_other_rows(tmp_path, odd):
    path = tmp_path / "log.csv"
    rows = [b"user,item\n", *(b"%d,a\n" % n for n in range(1000)), odd, *(b"%d,b\n" % n for n in range(1000))]
    path.write_bytes(b"".join(rows))
    found = counted(path)
    assert (found["a"], found["b"]) == (1000, 1000)


@pytest.mark.parametrize(("name", "marks"), [("log.csv", "commas"), ("log.txt", "commas"), ("log.tsv", "tabs")])
def test_a_csv_file_with_another_separator_names_the_right_one(tmp_path, name, marks):
    with pytest.raises(SchemaError, match=f"separated by {marks}: for other files give --delimiter, --encoding or"):
        counted(csv(tmp_path, "user;item\n1;a\n", name))


def test_a_query_reads_csv_with_literal_quotes(tmp_path):
    rows = "".join(f"{n},a\n" for n in range(1000))
    path = csv(tmp_path, f'user,item\n{rows}5000,"x\n{rows.replace("a", "b")}')
    found = counted(query(f"SELECT * FROM read_csv('{path}', quote = '', all_varchar = true, parallel = false)"))
    assert found == {"a": 1000, '"x': 1, "b": 1000}


@pytest.mark.parametrize(
    "header", ["user,item,Note,note,x", "user,item,,,x", "user,item,x,x,x", "user,item,User,ITEM,x"]
)
def test_unused_csv_columns_may_have_any_names(tmp_path, header):
    path = csv(tmp_path, f"{header}\n1,a,7,8,9\n2,a,7,8,9\n")
    assert counted(path) == {"a": 2}


def test_requested_columns_that_differ_by_case_are_refused(tmp_path):
    path = csv(tmp_path, "user,User,item\n1,2,3\n")
    with pytest.raises(SchemaError, match="differ by case alone"):
        clipped_sums(path, columns=("user", "item", "User"), items=["3"], bounds=(0, 9), resolution=1.0)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_repeated_columns_are_refused(tmp_path, suffix):
    path = csv(tmp_path, "user,item,when\n1,a,2026-01-01\n")
    duckdb.sql(f"FROM read_csv('{path}', all_varchar = true)").write_parquet(str(tmp_path / "log.parquet"))
    log = str(tmp_path / f"log.{suffix}")
    for event, item, time in (("user", "item", "user"), ("user", "user", "when"), ("user", "item", "item")):
        with pytest.raises(ParameterError, match="three different columns"):
            TimedEvents(log, event=event, item=item, time=time)
    for table in (log, {"user": ["1"], "item": ["a"]}):
        with pytest.raises(ParameterError, match="two different columns"):
            counted(table, "user", "user")


def test_the_csv_reader_refuses_repeated_column_indices(tmp_path):
    path = csv(tmp_path, "user,item\n1,a\n")
    with pytest.raises(ParameterError, match="more than once"):
        _core.csv_stream([str(path)], ord(","), [0, 0])


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz"])
def test_an_endless_csv_header_is_an_input_error(tmp_path, name):
    content = b"secret" * 1_000_000
    path = csv(tmp_path, gzip.compress(content) if name.endswith(".gz") else content, name)
    with pytest.raises(InputError, match="the first line is longer than 1 MiB; it must hold the names") as caught:
        counted(path)
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_count_of_csv_files_imports_no_duckdb(tmp_path):
    path = csv(tmp_path, "user,item\n1,a\n")
    code = f"import sys\nfrom discreet.engines import local\nlocal.scan([{str(path)!r}], ['user', 'item'])\n"
    subprocess.run([sys.executable, "-c", f"{code}assert 'duckdb' not in sys.modules"], check=True)
