"""CSV files by the local engine: what is read, what is left out in silence, and what is refused."""

import gzip

import numpy as np
import pytest
from counting import counted, csv

from discreet import SchemaError
from discreet.engines import local
from discreet.engines.sql import query


def test_csv_columns_are_text_and_empty_cells_are_left_out(tmp_path):
    path = csv(tmp_path, 'user,item,x\n1,007,a\n01,007,a\n1,7,a\n2,"",a\n,7,a\n3,,a\n4,"a ""b"", c",a\n')
    assert counted(path) == {"007": 2, "7": 1, "": 1, 'a "b", c': 1}


def test_words_that_look_like_nothing_are_words(tmp_path):
    words = ["NULL", "nan", "None", " ", "NA", "null", "\\N"]
    path = csv(tmp_path, "user,item\n" + "".join(f"1,{word}\n" for word in words))
    assert counted(path) == dict.fromkeys(words, 1)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("\ufeffuser,item\r\n1,a\r\n", {"a": 1}),
        ("user,item\r1,a\r2,a\r", {"a": 2}),
        ("user,item\n1,a\n2\n3,a\n", {"a": 2}),
        ("user,item\n1,a\n2,a,b\n3,a\n", {"a": 2}),
        ('user,item\n1,"a\nb"\n', {"a\nb": 1}),
        ('user,item\n1,a\n2,"b\n', {"a": 1, "b\n": 1}),
        (b"user,item\n1,a\n2,\xff\xfe\n3,a\n", {"a": 2}),
        (b"user,item\n1,a\x00b\n", {"a\x00b": 1}),
        ("user,item\n1,e\u0301\n1,\u00e9\n1,a\u200b\n1,a\n", {"e\u0301": 1, "\u00e9": 1, "a\u200b": 1, "a": 1}),
        ("user,item\n", {}),
        (b"user,item\n1,a\n2," + b"b" * 10_000_000 + b"\n3,a\n", {"a": 2}),
    ],
)
def test_bad_csv_rows_are_dropped_in_silence(tmp_path, capfd, content, expected):
    assert counted(csv(tmp_path, content)) == expected
    assert capfd.readouterr() == ("", "")


def test_tab_separated_and_compressed_files_are_read(tmp_path):
    assert counted(csv(tmp_path, "user\titem\n1\ta,b\n", "log.tsv")) == {"a,b": 1}
    assert counted(csv(tmp_path, gzip.compress(b"user,item\n1,a\n"), "log.csv.gz")) == {"a": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "no column 'user'"),
        ("user,item,item\n1,2,3\n", "duplicate"),
        ("User,item\n1,2\n", "'User'"),
        ("user\n1\n", "no column 'item'"),
    ],
)
def test_a_bad_csv_header_is_a_schema_error(tmp_path, content, message):
    with pytest.raises(SchemaError, match=message):
        counted(csv(tmp_path, content))


def test_csv_files_with_unlike_headers_are_a_schema_error(tmp_path):
    csv(tmp_path, "user,item\n1,a\n", "1.csv")
    csv(tmp_path, "item,user\n1,a\n", "2.csv")
    with pytest.raises(SchemaError, match="same header"):
        counted(str(tmp_path / "*.csv"))


@pytest.mark.parametrize(
    "odd", [b'5000,"x"y\n', b"5000,x\ry\n", b"5000,x\r\n", b'5000,x"y\n', b"5000\n", b"5000,\xff\n"]
)
def test_one_odd_row_of_a_csv_file_costs_no_other(tmp_path, odd):
    path = tmp_path / "log.csv"
    rows = [b"user,item\n", *(b"%d,a\n" % n for n in range(1000)), odd, *(b"%d,b\n" % n for n in range(1000))]
    path.write_bytes(b"".join(rows))
    labels, counts = local.histogram(path, "user", "item")
    found = dict(zip(labels.take(np.arange(len(counts))), counts.tolist(), strict=True))
    assert (found["a"], found["b"]) == (1000, 1000)


@pytest.mark.parametrize(("name", "marks"), [("log.csv", "commas"), ("log.txt", "commas"), ("log.tsv", "tabs")])
def test_a_csv_file_of_another_separator_is_told_of_its_own(tmp_path, name, marks):
    with pytest.raises(SchemaError, match=f"with {marks} in between"):
        counted(csv(tmp_path, "user;item\n1;a\n", name))


def test_a_file_in_which_quotes_are_letters_is_read_by_a_query(tmp_path):
    rows = "".join(f"{n},a\n" for n in range(1000))
    path = csv(tmp_path, f'user,item\n{rows}5000,"x\n{rows.replace("a", "b")}')
    found = counted(query(f"SELECT * FROM read_csv('{path}', quote = '', all_varchar = true, parallel = false)"))
    assert found == {"a": 1000, '"x': 1, "b": 1000}


def test_a_csv_file_without_a_header_is_told_of_its_first_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("1,secret\n2,b\n")
    with pytest.raises(SchemaError, match="first line") as caught:
        counted(path)
    assert "secret" not in str(caught.value)
