"""Released rows in files: all formats keep the rows and their order, and CSV escapes labels reversibly."""

import csv
import io
import json
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet import GaussianThreshold, Release, verify
from discreet.errors import InputError
from discreet.formats import RELEASED
from discreet.release import export

FORMULAS = [
    "=1",
    "'=1",
    "''=1",
    " =1",
    "\u00a0=1",
    "\u200b=1",
    "\ufeff+1",
    "\t=1",
    "\n=1",
    "\r=1",
    "\x00=1",
    "\u3000@x",
]
WIDE = [
    "\ufe0f=1",
    "\u3164=1",
    "⩵1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    " ＝1",
    "﹦1",
    "﹢1",
    "﹣1",
    "﹫x",
    "⁺1",
    "₌1",
    "\u22121",
]
PLAIN = ["home", "a=1", "1", "", " home", "a,b", 'q"q', "é", "x\ty"]


def cells(labels):
    text = export.text([("item", labels, "string")], {}, "csv")
    return [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:]


def looks_like_a_formula(cell):
    """Return whether a program that normalises letters and drops invisible ones would see a formula."""
    narrow = unicodedata.normalize("NFKC", cell.replace("\u2212", "-"))
    while narrow and (unicodedata.category(narrow[0]) in ("Zs", "Zl", "Zp", "Cc") or narrow[0] in "\u200b\ufeff\xad"):
        narrow = narrow[1:]
    return narrow[:1] in {"=", "+", "-", "@"} or cell[:1] in {"\t", "\r", "\n"}


@pytest.mark.parametrize("label", FORMULAS + WIDE)
def test_csv_puts_an_apostrophe_before_a_formula(label):
    assert cells([label]) == ["'" + label]


@pytest.mark.parametrize("label", PLAIN)
def test_csv_leaves_other_labels_unchanged(label):
    assert cells([label]) == [label]


@given(
    st.lists(st.text(st.sampled_from("'=+-@＝＠ \t\n\r\u200b\u00a0ab,\"") | st.characters(codec="utf-8"), max_size=5))
)
def test_csv_escaping_is_reversible(labels):
    found = cells([*labels, "end"])
    assert [cell.removeprefix("'") for cell in found] == [*labels, "end"]
    assert not any(map(looks_like_a_formula, found))


@given(st.lists(st.binary(max_size=4) | st.sampled_from([b"\\xff", b"\xff", b"\\\\xff", b"\\"]), unique=True))
def test_different_bytes_labels_differ_in_text(labels):
    assert len(set(cells([*labels, b"end"]))) == len(labels) + 1


@pytest.mark.parametrize("names", [["=1+1", "@page"], ["'=1", "a,b"], ["+item", "page"]])
def test_names_of_columns_that_are_formulas_are_escaped(names, tmp_path):
    # Counts of 3,000 users exceed every threshold, except with a chance far below 1e-9.
    table = {"user": [*range(3000)], names[0]: ["a"] * 3000, names[1]: ["b"] * 3000}
    release = dp.count(table, user="user", item=names, l0=1, rho=1, delta=1e-6)
    for suffix in RELEASED:
        path = tmp_path / f"r.{suffix}"
        release.write(path, certificate=True)
        verify(path)
        assert Release.read(path).items == release.items == [("a", "b")]
    found = next(csv.reader(io.StringIO((tmp_path / "r.csv").read_text("utf-8"), newline="")))
    assert [name.removeprefix("'") for name in found[:2]] == names
    assert not any(map(looks_like_a_formula, found))


def release(size):
    """Return a release of one mechanism with labels in no order, some of them escaped in CSV."""
    mechanism = GaussianThreshold(sigma=5.0, delta=1e-6, l0=1)
    marks = ["", "=", "'", " =", "'="]
    return Release(
        items=[f"{marks[n % 5]}{n * 7919 % size:x}" for n in range(size)],
        counts=mechanism.threshold.value + np.arange(size, 0, -1, dtype=np.int64),
        sigmas=np.full(size, 5.0),
        guarantee=mechanism.guarantee,
        spent=mechanism.guarantee,
        made_by=repr(mechanism),
        above=mechanism.threshold.value,
    )


def items_of(path):
    """Return the items of a file, read by another library if possible."""
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow.parquet")
        return pyarrow.read_table(path)["item"].to_pylist()
    text = path.read_text("utf-8")
    if path.suffix == ".csv":
        return [row[0].removeprefix("'") for row in csv.reader(io.StringIO(text, newline=""))][1:]
    rows = json.loads(text)["rows"] if path.suffix == ".json" else [json.loads(line) for line in text.split("\n")[:-1]]
    return [row["item"] for row in rows]


@pytest.mark.parametrize("size", [30_000, pytest.param(1_000_000, marks=pytest.mark.statistical)])
@pytest.mark.parametrize("suffix", RELEASED)
def test_a_large_release_is_read_back_in_order(tmp_path, suffix, size):
    path = tmp_path / f"rows.{suffix}"
    made = release(size)
    made.write(path, certificate=True)
    assert items_of(path) == made.items
    assert verify(path).digest == made.digest


@pytest.mark.parametrize("suffix", RELEASED)
def test_swapped_rows_fail_verification(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    made = release(9)
    made.write(path, certificate=True)
    export.write(path, [("item", [made.items[1], made.items[0], *made.items[2:]], "string"), *made.columns[1:]], {})
    with pytest.raises(InputError, match="not those"):
        verify(path)
