"""Releases in every format, without unreleased data."""

import dataclasses
import json
import sys

import numpy as np
import pytest

import discreet
from discreet import Guarantee, Histogram, PrivateCountRelease, Release
from discreet.errors import InputError, ParameterError
from discreet.formats import RELEASED
from discreet.mechanisms.published import marked_clipped, uncounted
from discreet.testing import seeded_rng

ITEMS = ["apple", "=cmd()", "+1", "-2", "@x", "\tt", "a,b", 'q"q', "new\nline", "<b>", "é\u202e", "1"]


def release(items=ITEMS, item_type="string", **changes):
    n = len(items)
    values = {
        "items": list(items),
        "counts": np.arange(n, 0, -1, dtype=np.int64) * 10,
        "sigmas": np.full(n, 1.5),
        "guarantee": Guarantee(1.0, 1e-6),
        "spent": Guarantee(0.5, 1e-7),
        "calls": n + 2,
        "made_by": "Example()",
        "item_type": item_type,
    }
    return Release(**{**values, **changes})


def real_release(count=900_000):
    histogram = Histogram.from_counts(["kept", "hidden-word"], [count, 1], l0=None, linf=1, complete=True)
    return PrivateCountRelease(rho=1.0, delta=1e-6).release(histogram, rng=seeded_rng(1))


def test_rows_iterate_as_pairs():
    assert list(release(["b", "a"])) == [("b", 20), ("a", 10)]
    assert len(release()) == len(ITEMS)


def test_the_repr_shows_the_guarantee_and_some_rows():
    text = repr(release([f"item-{n}" for n in range(50)]))
    assert "1e-06-approximate 1-zCDP per user" in text
    assert "(7.767, 2e-06)-DP" in text
    assert "item-0" in text
    assert "item-49" not in text


def test_control_characters_never_reach_the_terminal():
    assert "\x1b" not in repr(release(["\x1b[31mred"]))
    assert "\u202e" not in repr(release(["\u202etfel"]))
    assert "\n" not in repr(release(["a\nb"])).splitlines()[-1]


def test_json_contains_the_guarantee(tmp_path):
    release().write(tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert [row["item"] for row in content["rows"]] == ITEMS
    assert (content["rho"], content["delta"], content["unit"], content["seeded"]) == (1.0, 1e-6, "user", False)


def test_parquet_is_read_back_by_duckdb(tmp_path):
    import duckdb

    release().write(tmp_path / "it's.parquet")
    rows = duckdb.connect().execute("SELECT * FROM read_parquet(?)", [str(tmp_path / "it's.parquet")]).fetchall()
    assert [row[0] for row in rows] == ITEMS
    assert rows[0] == ("apple", 120, 1.5)


@pytest.mark.parametrize("suffix", RELEASED)
def test_files_contain_only_released_rows(tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    real_release().write(path)
    assert b"kept" in path.read_bytes()
    assert b"hidden-word" not in path.read_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_the_arrow_stream_has_plain_buffers_and_one_schema():
    pyarrow = pytest.importorskip("pyarrow")
    table = real_release().to_arrow()
    assert table.schema.names == ["item", "count", "sigma"]
    assert table.schema.types == [pyarrow.string(), pyarrow.int64(), pyarrow.float64()]
    buffers = [b for column in table.columns for chunk in column.chunks for b in chunk.buffers() if b is not None]
    assert not any(b"hidden-word" in b.to_pybytes() for b in buffers)
    empty = release([]).to_arrow()
    assert empty.schema == table.schema
    assert empty.num_rows == 0


def test_reading_twice_gives_the_same_numbers():
    pytest.importorskip("polars")
    one = real_release()
    assert one.to_polars().equals(one.to_polars())


@pytest.mark.parametrize("name", ["out", "out.txt", "out.xlsx"])
def test_unknown_suffixes_are_refused(tmp_path, name):
    with pytest.raises(ParameterError, match=r"\.csv"):
        release().write(tmp_path / name)


def test_a_missing_folder_is_an_input_error(tmp_path):
    for suffix in ("csv", "parquet"):
        with pytest.raises(InputError, match="make its folder first"):
            release().write(tmp_path / "missing" / f"out.{suffix}")


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_an_error_about_a_missing_library_names_its_package(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=f"pip install {name}"):
        getattr(release(), {"pyarrow": "to_arrow"}.get(name, f"to_{name}"))()


def test_a_failed_write_leaves_no_files(tmp_path):
    path = tmp_path / "out.csv"
    path.mkdir()
    with pytest.raises(InputError):
        release().write(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.csv"]


LOG = {"user": [n for n in range(4000) for _ in range(3)], "item": ["a", "b", "c"] * 4000}
COLUMNS = {"user": "user", "item": "item"}


@pytest.mark.parametrize("l0", [1, 2])
def test_mechanisms_note_clipped_tables(l0):
    mechanism = discreet.GaussianThreshold(sigma=5.0, delta=1e-6, l0=l0)
    for histogram in (
        Histogram.from_table(LOG, **COLUMNS, l0=l0),
        Histogram.from_pairs(LOG["user"], LOG["item"], l0=l0),
    ):
        assert "counts of users clipped to" in mechanism.release(histogram).notes[-1]
    assert discreet.Plume(rho=1.0, delta=1e-6, m=2, m_prime=l0).release(LOG, **COLUMNS).clipped


def test_releases_without_clipping_or_counts_have_no_note():
    claimed = Histogram.from_counts(["a"], [5000], l0=1, linf=1, complete=True)
    for made in (
        discreet.count(LOG, **COLUMNS, rho=1.0, delta=1e-6),
        discreet.select(LOG, **COLUMNS, epsilon=1.0, delta=1e-6, l0=1),
        discreet.select(LOG, **COLUMNS, epsilon=1.0, delta=1e-6, l0=2, method="threshold"),
        discreet.GaussianThreshold(sigma=5.0, delta=1e-6, l0=1).release(claimed),
        release(),
    ):
        assert not made.clipped
        assert not any("clipped" in note for note in made.notes)
        assert made.header["clipped"] is False


@pytest.mark.parametrize("notes", [("one",), ("one", "two")])
def test_leaving_out_counts_keeps_the_other_notes(notes):
    made = marked_clipped(release(notes=()), 2)
    made = dataclasses.replace(made, notes=(*notes[:1], *made.notes, *notes[1:]))
    left = uncounted(made)
    assert (left.notes, left.counts, left.clipped) == (notes, None, False)


def test_count_accepts_a_mechanism():
    made = discreet.count(LOG, **COLUMNS, mechanism=PrivateCountRelease(rho=1.0, delta=1e-6))
    assert made.made_by.startswith("PrivateCountRelease")
    assert discreet.count(LOG, **COLUMNS, rho=1.0, delta=1e-6).made_by.startswith("CalibratedCounts")
    bounded = discreet.count(LOG, **COLUMNS, mechanism=discreet.GaussianThreshold.from_rho(rho=1.0, delta=1e-6, l0=1))
    assert bounded.clipped
    for wrong in (
        {"mechanism": PrivateCountRelease(rho=1.0, delta=1e-6), "rho": 1.0},
        {"mechanism": PrivateCountRelease(rho=1.0, delta=1e-6), "l0": 2},
        {"mechanism": "gaussian"},
        {"rho": 1.0},
    ):
        with pytest.raises(ParameterError):
            discreet.count(LOG, **COLUMNS, **wrong)


@pytest.mark.parametrize("certificate", [False, True])
def test_a_name_too_long_for_its_certificate_costs_nothing(tmp_path, certificate):
    from discreet.cli import main

    (tmp_path / "log.csv").write_text("user,page\n" + "".join(f"{n},home\n" for n in range(99)))
    discreet.Ledger.open(tmp_path / "ledger").dataset("pages", rho=1, delta=1e-5)
    asked = ["count", str(tmp_path / "log.csv"), "--user", "user", "--item", "page", "--rho", "1", "--delta", "1e-6"]
    asked += ["--ledger", str(tmp_path / "ledger"), "--dataset", "pages", "-o", str(tmp_path / f"{'x' * 245}.csv")]
    with pytest.raises(SystemExit) as ended:
        main([*asked, "--certificate"] if certificate else asked)
    assert ended.value.code != 0
    assert discreet.Ledger.open(tmp_path / "ledger").dataset("pages").spent.rho == 0
