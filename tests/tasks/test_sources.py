"""Files as people have them: a hive tree, compressed CSV with invalid rows, JSON lines and a DuckDB database."""

import gzip
import json

import pytest
from command import discreet, process
from made import outliers, polars, truth, visits

import discreet as dp
from discreet.engines import local

ASKED = ["--user", "user", "--item", "page", "--rho", "0.5", "--delta", "1e-6"]


@pytest.fixture(scope="module")
def log():
    return visits(rows=100_000, seed=3)


def read(out, folder):
    """Return the release of rows that were written to a file."""
    return dp.Release.read(folder / out)


def test_a_hive_tree_is_one_table_with_its_folders_as_columns(log, tmp_path):
    polars.DataFrame(log).write_parquet(tmp_path / "tree", partition_by="country", mkdir=True)
    code, _, err = discreet("count", tmp_path / "tree", "--item", "country", *ASKED, "-o", tmp_path / "pages.parquet")
    assert (code, "released" in err) == (0, True)
    release = read("pages.parquet", tmp_path)
    assert release.item_names == ("country", "page")
    assert outliers(release, truth(log, "country", "page")) == []


def test_dirty_rows_of_compressed_csv_are_left_out(log, tmp_path):
    rows = [f"{user},{page}" for user, page in zip(log["user"], log["page"], strict=True)]
    dirty = [b"7", b",/page/00", b"8,", b"9,\xff\xfe", b"10," + b"x" * 9000] * 400
    content = b"user,page\n" + "\n".join(rows).encode() + b"\n" + b"\n".join(dirty) + b"\n"
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(content, 1))
    code, _, err = discreet("count", tmp_path / "log.csv.gz", *ASKED, "-o", tmp_path / "pages.json")
    assert (code, "skip" in err, "dirty" in err) == (0, False, False)
    assert outliers(read("pages.json", tmp_path), truth(log, "page")) == []
    code, out, _ = discreet("check", tmp_path / "log.csv.gz", "--user", "user", "--item", "page")
    assert code == 0
    assert "NOT PRIVATE  400 rows left out: a cell is not UTF-8" in out
    assert "NOT PRIVATE  100,000 rows counted" in out


def test_dirty_json_lines_are_counted_as_their_valid_lines(log, tmp_path):
    lines = [json.dumps({"user": int(user), "page": page}) for user, page in zip(log["user"], log["page"], strict=True)]
    dirty = ["{broken", "[]", '{"user": 7}', '{"user": 8.5, "page": "/page/00"}', '{"user": 9, "page": null}'] * 400
    dirty.append('{"user": 10, "page": "' + "x" * 40_000_000 + '"}')
    content = "\n".join([*dirty, *lines]) + "\n"
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(content.encode(), 1))
    code, _, err = discreet("count", tmp_path / "log.jsonl.gz", *ASKED, "-o", tmp_path / "pages.json")
    assert (code, "0.5-zCDP" in err, "skip" in err) == (0, True, False)
    assert outliers(read("pages.json", tmp_path), truth(log, "page")) == []
    code, out, _ = discreet("check", tmp_path / "log.jsonl.gz", "--user", "user", "--item", "page")
    assert code == 0
    assert (
        "NOT PRIVATE  400 rows left out: the object has no key page (line 3, line 8, line 13, line 18, line 23, ...)"
        in out
    )
    assert "NOT PRIVATE  100,000 rows counted" in out


def test_a_table_of_a_duckdb_file_is_counted(log, tmp_path):
    frame = polars.DataFrame(log)
    connection = local.connect()
    connection.register("frame", frame)
    connection.execute(
        f"ATTACH '{tmp_path}/shop.duckdb' AS shop; CREATE TABLE shop.visits AS SELECT * FROM frame; DETACH shop"
    )
    file = ["--database", tmp_path / "shop.duckdb", "--table", "visits"]
    code, _, err = process("count", *file, *ASKED, "-o", tmp_path / "pages.parquet")
    assert (code, "0.5-zCDP" in err) == (0, True)
    assert outliers(read("pages.parquet", tmp_path), truth(log, "page")) == []
    table = dp.tables.open_database(tmp_path / "shop.duckdb", "visits")
    assert outliers(dp.count(table, user="user", item="page", l0=60, rho=0.5, delta=1e-6), truth(log, "page")) == []
