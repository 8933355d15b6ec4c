"""Errors that name the version of a library, instead of blaming the data."""

import duckdb
import pytest
from command import discreet, errors_of
from counting import csv

import discreet as dp
from discreet.engines import versions
from discreet.engines.sql import connect
from discreet.errors import InputError

COUNT = ["--user", "user", "--item", "page", "--rho", "1", "--delta", "1e-6"]


@pytest.fixture
def installed(monkeypatch):
    found = {}
    monkeypatch.setattr(versions, "_installed", lambda library: found.get(library))
    return found


def test_versions_are_compared_as_numbers(installed):
    for version, is_old in [("1.30.0", False), ("1.9.0", True), ("0.20", True), ("2.0.0rc1", False), ("1.30.1", False)]:
        installed["polars"] = version
        assert bool(versions.version_hint("polars")) == is_old, version
    assert versions.version_hint("pandas") == ""  # not installed
    installed["other"] = "0.1"
    assert versions.version_hint("other") == ""


def test_an_old_duckdb_is_named_before_any_file_is_read_or_charged(installed, monkeypatch, tmp_path):
    path = tmp_path / "log.parquet"
    connect().execute(f"COPY (SELECT range AS user, 'home' AS page FROM range(3)) TO '{path}' (FORMAT parquet)")
    installed["duckdb"] = "1.4.5"
    monkeypatch.setattr(duckdb, "__version__", "1.4.5")
    budget = dp.Budget(rho=1, delta=1e-5)
    with pytest.raises(
        ImportError, match=r"duckdb 1\.4\.5 is installed, and discreet needs 2\.0 or later: pip install"
    ):
        dp.count(path, user="user", item="page", rho=1, delta=1e-6, budget=budget)
    assert budget.spent.rho == 0
    code, out, err = discreet("count", path, *COUNT)
    assert (code, out) == (1, "")
    assert err.startswith("discreet: duckdb 1.4.5 is installed")
    # CSV is read without DuckDB, but Parquet is written by it.
    log = csv(tmp_path, "user,page\n" + "".join(f"{user},home\n" for user in range(4000)), "many.csv")
    err = errors_of("count", log, *COUNT, "-o", tmp_path / "out.parquet", code=1)
    assert err.startswith("discreet: duckdb 1.4.5 is installed")
    assert discreet("count", csv(tmp_path, "user,page\n1,a\n"), *COUNT)[0] == 0
    code, out, _ = discreet("doctor")
    assert (code, "duckdb: version 1.4.5 is too old for Parquet" in out) == (0, True)


def test_relations_of_duckdb_have_the_private_names_that_batches_use():
    relation = connect().sql("SELECT range FROM range(9999)")
    assert callable(relation._con.interrupt)
    assert hasattr(relation._submit("stream", 4096), "arrow_capsule")


def test_an_old_library_is_named_if_its_frame_cannot_be_read(installed):
    class DataFrame:
        columns = ["user", "page"]

        def select(self, columns):
            raise AttributeError("a method of a later version")

    DataFrame.__module__ = "pyarrow.lib"
    installed["pyarrow"] = "12.0.1"
    with pytest.raises(InputError, match=r"pyarrow 12\.0\.1 is installed, and discreet needs 17\.0 or later"):
        dp.count(DataFrame(), user="user", item="page", rho=1, delta=1e-6)
    installed["pyarrow"] = "17.0.0"
    with pytest.raises(InputError, match="check the data and its source"):
        dp.count(DataFrame(), user="user", item="page", rho=1, delta=1e-6)
