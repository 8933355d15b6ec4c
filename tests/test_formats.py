"""Formats: pages list them all, and the engine writes and reads text as Python's modules `csv` and `json` do."""

import csv
import hashlib
import io
import json
import os
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Release, Table, _core, verify
from discreet.errors import InputError
from discreet.formats import DATA_NAMES, RELEASED, TEXTS, WRITTEN
from discreet.release import blocks, export
from floors import ROOT
from test_export import release

HEADER = {"made_by": 'A(b="\n \\"rows\\": [\n")', "rho": 0.1, "clipped": False}
TEXT = st.text(
    st.sampled_from("'=+-@＝ \t\n\r\0\x1f\x7f\\\"a,é\u2028\ufeff") | st.characters(codec="utf-8"), max_size=6
)
CELLS = {
    "string": TEXT,
    "binary": st.binary(max_size=5) | st.sampled_from([b"\\", b"\xff=", b"\xe2\x82A", b"=\\x", "é".encode()]),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "float64": st.floats(),
}


def cell_text(cell):
    return cell.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else cell


def reference(columns, header, form):
    """Return the text of Python's own modules."""
    names = [name for name, _, _ in columns]
    lists = [values.tolist() if hasattr(values, "tolist") else values for _, values, _ in columns]
    rows = [[cell_text(cell) for cell in row] for row in zip(*lists, strict=True)]
    if form != "csv":
        objects = [dict(zip(names, row, strict=True)) for row in rows]
        if form == "jsonl":
            return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in objects)
        return json.dumps({**header, "rows": objects}, ensure_ascii=False, indent=1) + "\n"
    lines = []
    for number, row in enumerate([names, *rows]):
        out = io.StringIO(newline="")
        escaped = [f"'{cell}" if isinstance(cell, str) and blocks._ESCAPED.match(cell) else cell for cell in row]
        csv.writer(out, lineterminator="\r\n").writerow(escaped if number else row)
        lines.append(out.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def both(columns):
    """Yield the columns, and the columns with labels of the engine instead of the first column."""
    yield columns
    (name, values, kind), *rest = columns
    if kind != "float64" and len({*values}) == len(values):
        yield [(name, _core.Labels.from_sequence(np.array(values, kind) if kind[-2:] == "64" else values), kind), *rest]


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("kind", CELLS)
@given(data=st.data())
def test_the_engine_writes_what_python_writes(form, kind, data):
    cells = data.draw(st.lists(CELLS[kind], max_size=4))
    numbers = data.draw(st.lists(CELLS["float64"], min_size=len(cells), max_size=len(cells)))
    columns = [('it,em"', cells, kind)]
    if data.draw(st.booleans()):
        columns += [("count", np.arange(len(cells)), "int64"), ("sigma", np.array(numbers, float), "float64")]
    for given_columns in both(columns):
        content = b"".join(blocks.blocks(given_columns, HEADER, form))
        assert content.decode() == reference(columns, HEADER, form) == export.text(given_columns, HEADER, form)
        if form != "csv":
            found = blocks.csv_of(content, [name for name, _, _ in columns], form)
            whole = reference(columns, HEADER, "csv").encode()
            assert found == whole or (not cells and form == "json")
        assert export.escapes(given_columns) == any(
            isinstance(cell, str) and blocks._ESCAPED.match(cell) for cell in map(cell_text, cells)
        )


@pytest.mark.parametrize("form", TEXTS)
def test_python_writes_cells_that_the_engine_does_not_know(form):
    for odd in (None, True, 2**70, [1, {"a": "b\nc"}]):
        columns = [("a", ["x", "y"], "string"), ("b", [1, odd], "string")]
        assert export.text(columns, HEADER, form) == reference(columns, HEADER, form)
    twice = [("a", [1, 2], "int64"), ("a", (3, 4), "int64")]
    assert export.text(twice, HEADER, form) == reference(twice, HEADER, form)
    small = [("a", np.array([1, 2], np.int8), "int64"), ("b", np.arange(4.0)[::2], "float64")]
    assert export.text(small, HEADER, form) == reference(small, HEADER, form)
    assert export.text([], HEADER, form) == reference([], HEADER, form)
    with pytest.raises(ValueError, match="equally long"):
        export.text([("a", [1], "int64"), ("b", [], "int64")], HEADER, form)


def test_text_that_is_not_unicode_is_shown_but_not_written(tmp_path):
    columns = [("a", ["\ud800"], "string")]
    assert export.text(columns, {}, "csv") == "a\n\ud800\n"
    with pytest.raises(UnicodeEncodeError):
        export.write(tmp_path / "rows.csv", columns, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.statistical)])
def test_the_engine_escapes_the_same_characters_as_python(step):
    plain = [*map(chr, [*range(0xD800), *range(0xE000, 2**16), *range(2**16, sys.maxunicode + 1, step)])]
    for after in ("", "=", "a"):
        labels = [char + after for char in plain]
        found = _core.text_rows([labels], [b"", b"\n\n"], False, 0, len(labels)).decode().split("\n\n")
        escaped = {label for label in labels if blocks._ESCAPED.match(label)}
        shown = {label for label, cell in zip(labels, found, strict=False) if cell.removeprefix('"')[:1] == "'"}
        # A line feed is the only label that contains the end of a row.
        assert shown | {"\n", "\n=", "\na"} == escaped | {"\n", "\n=", "\na"}


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("rows", [blocks._BLOCK - 1, blocks._BLOCK, blocks._BLOCK + 1])
def test_blocks_join_without_seams(form, rows):
    columns = [("item", [f"{row}," for row in range(rows)], "string"), ("count", np.arange(rows), "int64")]
    assert export.text(columns, HEADER, form) == reference(columns, HEADER, form)


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_write_that_fails_after_some_blocks_leaves_no_file(tmp_path, monkeypatch, form, overwrite):
    path = tmp_path / f"rows.{form}"
    if overwrite:
        path.write_text("before")
    columns = [("item", ["a"] * 2 * blocks._BLOCK + ["\ud800"], "string")]
    with pytest.raises(UnicodeEncodeError):
        export.write(path, columns, HEADER, overwrite=overwrite)
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["before"] * overwrite

    class Full(io.BytesIO):
        def write(self, block):
            raise OSError(28, os.strerror(28))

    monkeypatch.setattr("pathlib.Path.open", lambda *_: Full())
    with pytest.raises(InputError, match="No space left"):
        export.write(path, columns[:0], HEADER, overwrite=overwrite)
    assert len(list(tmp_path.iterdir())) == overwrite


@pytest.mark.parametrize("form", TEXTS)
def test_the_digest_of_a_write_is_the_digest_of_its_csv(tmp_path, form):
    made = release(100)
    path = tmp_path / f"rows.{form}"
    made.write(path, certificate=True)
    digest = json.loads((tmp_path / f"rows.{form}.certificate.json").read_text())["digest"]
    assert digest == hashlib.sha256(reference(made.columns, {}, "csv").encode()).hexdigest() == verify(path).digest


CHANGES = {
    "the same rows in another form": (lambda text: text.replace('": "', '":  "'), True),
    "an escape": (lambda text: text.replace('"item": "0"', r'"item": "\u0030"'), True),
    "another number of the same value": (lambda text: text.replace('"sigma": 5.0', '"sigma": 5.00'), True),
    "an integer for a float": (lambda text: text.replace("5.0", "5"), False),
    "another label": (lambda text: text.replace('"item": "0"', '"item": "O"'), False),
    "another count": (lambda text: text.replace('"count": 3', '"count": 73'), False),
    "no last byte": (lambda text: text.rstrip("\n "), True),
    "a missing half": (lambda text: text[: len(text) // 2], False),
    "text after the end": (lambda text: text + "x", False),
    "invalid numbers": (lambda text: text.replace("5.0", "inf"), False),
}


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize("change", CHANGES)
def test_json_that_another_program_changed_is_read_by_python(tmp_path, form, change):
    path = tmp_path / f"rows.{form}"
    made = release(9)
    made.write(path, certificate=True)
    edit, valid = CHANGES[change]
    before = path.read_text("utf-8")
    after = edit(before)
    assert after != before
    path.write_text(after, "utf-8")
    if valid:
        assert verify(path).digest == made.digest
    else:
        with pytest.raises(InputError):
            verify(path)


def test_damaged_metadata_of_json_is_an_error(tmp_path):
    path = tmp_path / "rows.json"
    release(9).write(path, certificate=True)
    path.write_text(path.read_text("utf-8").replace("{", "{,", 1), "utf-8")
    with pytest.raises(InputError, match="damaged"):
        verify(path)


def page(name):
    return " ".join((ROOT / name).read_text("utf-8").split())


def test_every_list_of_formats_is_complete():
    files = f"a path or glob of {DATA_NAMES} files"
    for text in (page("README.md"), page("docs/counting.md"), " ".join(Table.__doc__.split())):
        assert files in text
    assert f"suffix: .{', .'.join(RELEASED)} or .html." in Release.write.__doc__
    assert f"# or .{', .'.join(WRITTEN[1:])};" in page("README.md")
    assert sorted(re.findall(r"\| `\.(\w+)` \|", page("docs/releases.md"))) == sorted(WRITTEN)
