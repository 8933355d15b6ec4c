"""The CSV reader compared with Python's csv module and with the reference, for adversarial cells at any offset."""

import csv
import gzip
import io
import random
import sys
from collections import defaultdict

import pytest
from counting import counted
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet import _core
from discreet.errors import InputError
from discreet.reference import csv_records

MEGABYTE = 1_000_000
PLACES = [8 * MEGABYTE, 16 * MEGABYTE, 24 * MEGABYTE, 64 * MEGABYTE]


@pytest.fixture(scope="module")
def read(rows_of):
    """A function that reads columns of a file in blocks of a given size."""
    return lambda path, columns, block: rows_of(lambda: _core.csv_stream([str(path)], ord(","), columns, block=block))


def counts_of(pairs):
    users = defaultdict(set)
    for user, item in pairs:
        if user and item:
            users[item].add(user)
    return {item: len(those) for item, those in users.items()}


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [b",", b'"', b'""', b"\n", b"\r", b"\r\n", b"a", b"b,", b"\xc3\xa9", b"\xc3", b"\x00", b"1,2\n"]
        )
    ),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.integers(4, 70),
)
def test_the_csv_reader_agrees_with_the_reference(read, log, pieces, end, block):
    content = b"\xef\xbb\xbfuser,item" + end + b"".join(pieces)
    log.write_bytes(content)
    assert read(log, [1, 0], block) == csv_records.rows(content, [1, 0])


def unquoted(cell):
    return not {*cell} & {*'",\n'} and sys.version_info < (3, 13)


cells = st.text(st.sampled_from('",\n\r aé\t\u2028'), max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(cells, cells, cells), max_size=20), st.sampled_from(["\n", "\r\n", "\r"]), st.integers(4, 70))
def test_the_csv_reader_agrees_with_pythons_csv_module(read, log, rows, end, block):
    # An unquoted LF after a header that ends with CR turns the line end into CR LF (docs/counting.md).
    assume(end != "\r" or not rows or not rows[0][0].startswith("\n"))
    with log.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end).writerows([["user", "item", "note"], *rows])
    # Before Python 3.13 the writer quotes only the line end of its own file.
    expected = [[*row[:2], row[2].removesuffix("\r") if end == "\n" and unquoted(row[2]) else row[2]] for row in rows]
    assert [[cell or "" for cell in row] for row in read(log, [0, 1, 2], block)] == expected
    with log.open(newline="", encoding="utf-8") as file:
        if end == "\r\n":
            assert list(csv.reader(file))[1:] == expected


def cell(choose):
    """Return a cell of up to 1.5 MB that looks like rows, ends inside apparent quotes, or both."""
    size = choose.choice([10, 300, 29_000, 100_000, 1_500_000])
    lines = ["", "ghost,forged,", 'ghost,"forged,', '"', '5,"abc', "\r", ",,", 'x","forged","', "ghost,forged,\r\n"]
    made, held = [], 0
    while held < min(size, 29_000):
        made.append(choose.choice(lines).replace("ghost", f"ghost{choose.randrange(10**6)}"))
        held += len(made[-1]) + 1
    return "\n".join(made * max(1, size // 29_000))


def write(path, choose, size):
    """Write a CSV file with such cells across the block limits and at random offsets; return its rows."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["user", "item", "note"])
    pairs, waiting = [], [place for place in PLACES if place < size]
    plain = [(f"user {n}", f"item {n % 50}", "") for n in range(200_000)]
    at = 0
    odd = cell(choose)
    while text.tell() < size:
        if waiting and text.tell() > waiting[0] - choose.randrange(1, len(odd) + 1):
            row = [f"odd {len(pairs)}", f"theirs {len(pairs)}", odd]
            choose.shuffle(row)
            if len(row[0]) > 10_000 or len(row[1]) > 10_000:
                row = [f"odd {len(pairs)}", odd[:1000], odd]
            waiting.pop(0)
            odd = cell(choose)
            rows = [row]
        elif choose.random() < 0.01:
            rows = [[f"odd {len(pairs)}", f"theirs {len(pairs)}", cell(choose)[: choose.randrange(1, 5000)]]]
        else:
            rows = plain[at : at + 500]
            at = (at + 500) % len(plain)
        writer.writerows(rows)
        pairs += [row[:2] for row in rows]
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return pairs


@pytest.mark.parametrize(
    ("seed", "size", "name"),
    [
        (1, 26 * MEGABYTE, "log.csv"),
        (2, 9 * MEGABYTE, "log.csv.gz"),
        *(
            pytest.param(*case, marks=pytest.mark.statistical)
            for case in [
                (1, 26 * MEGABYTE, "log.csv.gz"),
                (2, 9 * MEGABYTE, "log.csv"),
                (3, 66 * MEGABYTE, "log.csv"),
                (3, 66 * MEGABYTE, "log.csv.gz"),
            ]
        ),
    ],
)
def test_adversarial_cells_at_any_offset_change_no_count(tmp_path, seed, size, name):
    pairs = write(tmp_path / name, random.Random(seed), size)
    assert counted(tmp_path / name) == counts_of(pairs)


@pytest.mark.parametrize("changes", [2, pytest.param(6, marks=pytest.mark.statistical)])
def test_a_users_row_changes_only_the_counts_of_that_user(tmp_path, changes):
    choose = random.Random(5)
    rows = [[f"user {n}", f"item {n % 9}", "x" * 40] for n in range(200_000)]
    expected = counts_of(row[:2] for row in rows)
    for number in range(changes):
        at = choose.randrange(len(rows)) if number else 150_000
        changed = [*rows[:at], ["attacker", "item 3", cell(choose)], *rows[at:]]
        with (tmp_path / "log.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["user", "item", "note"], *changed])
        assert counted(tmp_path / "log.csv") == {**expected, "item 3": expected["item 3"] + 1}


@pytest.mark.parametrize(("end", "other"), [("\n", "\r"), ("\r\n", "\r"), ("\r", "\n")])
def test_an_unquoted_foreign_line_end_forges_no_row(tmp_path, end, other):
    # Before Python 3.13 the csv writer, and thus pandas, quotes only the line end of its own file.
    rows = ["user,item,note", "1,home,x", f"2,home,y{other}3,forged,z", f"4,home,{other}5,forged,z{other}w"]
    (tmp_path / "log.csv").write_bytes(end.join(rows).encode())
    assert "forged" not in counted(tmp_path / "log.csv")


def test_several_files_count_as_one_table(tmp_path):
    for name, rows in (("a.csv", "1,x\n2,y"), ("b.csv", '1,x\n3,"x'), ("c.csv", "4,x\n")):
        (tmp_path / name).write_text(f"user,item\n{rows}")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfuser,item\r\n5,x\r\n"))
    assert counted(tmp_path / "*.csv") == {"x": 3, "y": 1}
    paths = [str(tmp_path / "[abc].csv"), str(tmp_path / "d.csv.gz")]
    assert counted(paths) == {"x": 4, "y": 1}


@pytest.mark.parametrize("cut", [0.5, 0.999, 4])
@pytest.mark.parametrize(
    ("suffix", "head", "row"),
    [("csv", b"user,item\n", b"%d,secret%d\n"), ("jsonl", b"", b'{"user": %d, "item": "secret%d"}\n')],
)
def test_a_truncated_file_is_an_input_error_with_its_path(tmp_path, suffix, head, row, cut):
    content = gzip.compress(head + b"".join(row % (n, n) for n in range(300_000)), 1)
    path = tmp_path / f"cut.{suffix}.gz"
    path.write_bytes(content[: int(len(content) * cut) if cut < 1 else cut])
    with pytest.raises(InputError) as caught:
        counted(path)
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)
