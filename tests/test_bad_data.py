"""Odd rows, columns, files, budgets and streams: what each gets, in Python and on the command line.

`test_bad_input.py` has the parameters. ELSEWHERE names the tests of lines that need another process or library.
A rho of 4,000 releases exact counts: the noise has a sigma of 0.025, and every item of two users is released.
"""

import gzip
import json
import os
from pathlib import Path

import pytest
from command import discreet
from counting import BINARY, store

import discreet as dp
from discreet import _core
from discreet.errors import BudgetExceeded, InputError, LedgerError, SchemaError

COLUMNS = {"user": "user", "item": "item"}
EXACT = {**COLUMNS, "l0": 5, "rho": 4000, "delta": 1e-6}
OPTIONS = ["--user", "user", "--item", "item", "--l0", "5", "--rho", "4000", "--delta", "1e-6"]
USERS = [*range(20)]
ELSEWHERE = {
    "odd cells of lists": "engines/test_item_types.py::test_an_odd_cell_of_a_list_loses_its_own_row",
    "run-end columns": "engines/test_item_types.py::test_run_end_encoded_and_opaque_columns_have_a_remedy",
    "Arrow types, chunks and slices work": "kernels/test_arrow.py::test_every_arrow_type_is_counted_and_sliced",
    "dictionary values": "kernels/test_arrow.py::test_unused_and_null_dictionary_values_are_not_counted",
    "dictionary indices": "kernels/test_arrow.py::test_a_dictionary_index_out_of_range_is_an_input_error",
    "decreasing offsets": "kernels/test_arrow.py::test_offsets_that_decrease_are_an_input_error",
    "counts that are given": "test_histogram.py::test_errors_about_bad_counts_contain_no_value",
    "a closed connection": "engines/test_local.py::test_a_closed_connection_is_an_input_error",
    "a stopped Spark session": "engines/test_spark_sessions.py::test_a_stopped_session_is_a_resource_error",
    "a flipped bit": "budgets/test_ledger_damage.py::test_every_flipped_bit_is_refused_or_keeps_all_charges",
    "a second writer of a stream": "streams/test_stream_files.py::test_a_file_has_one_writer",
    "a round out of order": "streams/test_streams.py::test_closed_rounds_and_rounds_past_the_horizon_are_refused",
    "the file of another stream": "streams/test_stream_files.py::test_the_journal_of_another_stream_is_refused",
    "no entropy": "test_refusing_system.py::test_no_number_is_released_without_entropy",
    "Ctrl-C": "budgets/test_interrupts.py::test_no_interrupt_leaves_a_draw_the_ledger_lacks",
    "a full disk": "budgets/test_ledger_file.py::test_a_charge_cut_short_by_a_full_disk_is_removed",
}


@pytest.mark.parametrize("place", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_test_that_is_named_here_exists(place):
    file, _, name = place.partition("::")
    assert f"def {name}(" in (Path(__file__).parent / file).read_text("utf-8")


def spread(*labels, users=USERS):
    """Return rows in which each user has each label."""
    return [(user, label) for user in users for label in labels]


LONG = "x" * (_core.LONGEST + 1)
VALUES = {
    "NULL users and items": ([*spread("a"), (None, "a"), (20, None), (None, None)], {"a": 20}),
    "integers beyond doubles beside a NULL": ([*spread("a", users=range(2**53, 2**53 + 20)), (None, "a")], {"a": 20}),
    "words for missing": (spread("", " ", "NULL", "nan", "None"), dict.fromkeys(["", " ", "NULL", "nan", "None"], 20)),
    "characters that look alike": (spread("e\u0301", "\u00e9", "a\u200b", "a", "\u202ea"),
                                   dict.fromkeys(["e\u0301", "\u00e9", "a\u200b", "a", "\u202ea"], 20)),
    "NUL and formulas": (spread("a\0", "a", "=a"), {"a\0": 20, "a": 20, "=a": 20}),
    "a label of 10 MB": ([*spread("a"), *spread("x" * 10_000_000, users=[1])], {"a": 20}),
    "labels beyond the longest": ([*spread("a"), *spread(LONG, users=[1, 2])], {"a": 20}),
    "many rows of one user": ([*spread("a"), *[(0, "a")] * 100_000], {"a": 20}),
    "many items of one user": ([*spread("a", users=range(1, 21)), *[(0, f"i{n}") for n in range(100_000)]], {"a": 20}),
    "no rows": ([], {}),
    "one user": ([(1, "a")], {}),
}  # fmt: skip
FORMS = ["dict", "pyarrow", "polars", "pandas", "csv", "jsonl", *BINARY]


def made(form, rows, tmp_path):
    """Return rows as a table of a library, or as the path of a file."""
    users, items = ([row[place] for row in rows] for place in (0, 1))
    path = tmp_path / f"rows{len(rows)}.{form}"
    if form == "csv":
        cells = (("" if u is None else u, "" if i is None else '"' + i.replace('"', '""') + '"') for u, i in rows)
        path.write_bytes("".join(f"{user},{item}\n" for user, item in [("user", "item"), *cells]).encode())
    elif form == "jsonl":
        path.write_text("".join(json.dumps({"user": u, "item": i}) + "\n" for u, i in rows))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table({"user": pyarrow.array(users, "int64"), "item": pyarrow.array(items, "string")})
        if form in BINARY:
            store(table, path)
        elif form == "pandas":
            return table.to_pandas(types_mapper={pyarrow.int64(): pytest.importorskip("pandas").Int64Dtype()}.get)
        elif form == "polars":
            return pytest.importorskip("polars").from_arrow(table)
        else:
            return table if form == "pyarrow" else table.to_pydict() if rows else {"user": [], "item": []}
    return path


def from_command(path, tmp_path):
    """Return what the command releases from a file, and its messages."""
    out = tmp_path / "out.json"
    code, _, messages = discreet("count", path, *OPTIONS, "-o", out)
    assert code == 0, messages
    return dp.Release.read(out).to_dict(), messages.replace(path.name, "FILE")


def messages_of(form, expected, tmp_path):
    """Return the messages about a file without odd rows that has the same release."""
    rows = [(user, label) for label, users in expected.items() for user in range(users)]
    return from_command(made(form, rows or [(0, "rare")], tmp_path), tmp_path)[1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", VALUES)
def test_odd_values_lose_their_rows_in_silence(case, form, tmp_path, capfd, recwarn):
    rows, expected = VALUES[case]
    if form == "jsonl" and case == "a label of 10 MB":
        rows = rows[:20]  # an object has at most 1 MiB
    data = made(form, rows, tmp_path)
    budget = dp.Budget(rho=5000, delta=1e-5)
    release = dp.count(data, **EXACT, budget=budget)
    assert release.to_dict() == expected
    assert budget.spent.rho == pytest.approx(4000)
    assert release.to_arrow().schema.names == ["item", "count", "sigma"]
    assert (capfd.readouterr(), [*recwarn]) == (("", ""), [])
    if isinstance(data, Path):
        assert from_command(data, tmp_path) == (expected, messages_of(form, expected, tmp_path))


BASE = b"user,item\n" + b"".join(b"%d,a\n" % user for user in USERS)
CSV = {
    "byte order mark": (b"\xef\xbb\xbf" + BASE, {"a": 20}),
    "CR LF": (BASE.replace(b"\n", b"\r\n"), {"a": 20}),
    "CR alone": (BASE.replace(b"\n", b"\r"), {"a": 20}),
    "a short row": (BASE + b"20\n", {"a": 20}),
    "a long row": (BASE + b"20,a,b\n", {"a": 21}),
    "an empty row": (BASE + b"\n\n", {"a": 20}),
    "an embedded line end": (BASE.replace(b"a", b'"a\nb"'), {"a\nb": 20}),
    "a quote that never closes": (BASE + b'20,"b\n21,a\n', {"a": 20}),
    "a quote inside a cell": (BASE + b'20,b"c\n', {"a": 20}),
    "text that is not UTF-8": (BASE + b"20,\xff\xfe\n21,\xed\xa0\x80\n", {"a": 20}),
    "NUL bytes": (BASE + b"20,a\x00\n", {"a": 20}),
    "no rows": (b"user,item\n", {}),
    "no line end": (BASE + b"20,a", {"a": 21}),
}


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "txt"])
@pytest.mark.parametrize("case", CSV)
def test_odd_rows_of_csv_change_no_other_row(case, suffix, tmp_path, capfd):
    content, expected = CSV[case]
    path = tmp_path / f"log.{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    assert dp.count(path, **EXACT).to_dict() == expected
    assert capfd.readouterr() == ("", "")
    assert from_command(path, tmp_path) == (expected, messages_of("csv", expected, tmp_path))


SCHEMAS = {
    "no such column": (b"user,itme\n1,a\n", "'itme'"),
    "another case": (b"User,item\n1,a\n", "'User'"),
    "a repeated column": (b"user,item,item\n1,a,b\n", "more than one column 'item'"),
    "one column": (b"user\n1\n", "no column 'item'"),
    "no header": (b"1,secret\n2,secret\n", "first line"),
    "another separator": (b"user;item\n1;secret\n", "separated by commas"),
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_a_bad_schema_is_refused_before_a_charge(case, tmp_path):
    content, message = SCHEMAS[case]
    path, budget = tmp_path / "log.csv", dp.Budget(rho=5000, delta=1e-5)
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=message) as caught:
        dp.count(path, **EXACT, budget=budget)
    assert budget.spent.rho == 0
    code, out, messages = discreet("count", path, *OPTIONS)
    assert (code, out, messages) == (1, "", f"discreet: {caught.value}\n")
    assert "secret" not in messages


@pytest.mark.parametrize(
    "name", ["a b", "it's", 'say "x"', "a;b", "a,b", "a\nb", "-- x", "é", "1", "*", "a\\b", "SELECT"]
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_an_odd_name_of_a_column_is_taken_literally(name, suffix, tmp_path):
    path, table = tmp_path / f"log.{suffix}", {"user": USERS, name: ["a"] * 20}
    quoted = name.replace('"', '""')
    lines = [f'user,"{quoted}"', *(f"{user},a" for user in USERS)]
    rows = lines if suffix == "csv" else [json.dumps({"user": user, name: "a"}) for user in USERS]
    if suffix == "parquet":
        pytest.importorskip("polars").DataFrame(table).write_parquet(path)
    else:
        path.write_text("\n".join(rows), "utf-8")
    for data in (path, table):
        assert dp.count(data, **EXACT | {"item": name}).to_dict() == {"a": 20}
    code, out, _ = discreet("count", path, "--user", "user", f"--item={name}", *OPTIONS[4:], "-f", "jsonl")
    assert (code, json.loads(out)["count"]) == (0, 20)


PARQUET = b"PAR1"
FILES = {
    "missing.csv": None,
    "missing*.csv": None,
    "empty.csv": b"",
    "empty.parquet": b"",
    "empty.jsonl.gz": b"",
    "parquet.jsonl": PARQUET + b"\x15\x04\x15" + b"x" * 90,
    "random.parquet": bytes(range(256)) * 40,
    "random.arrow": bytes(range(256)) * 40,
    "cut.parquet": PARQUET + b"x" * 90,
    "cut.csv.gz": gzip.compress(BASE)[:-9],
    "random.csv.gz": bytes(range(256)) * 40,
    "log.xlsx": b"x",
    "log.parquet.gz": b"x",
    "log": b"x",
    "https://example.org/x.parquet": None,
    "s3://bucket/x.parquet": None,
}
VERBS = {
    "count": lambda data, **more: dp.count(data, **EXACT, **more),
    "top_k": lambda data, **more: dp.top_k(data, **COLUMNS, k=1, rho=1, delta=1e-6, **more),
    "select": lambda data, **more: dp.select(data, **COLUMNS, l0=1, rho=1, delta=1e-6, **more),
    "sum": lambda data, **more: dp.sum(data, **COLUMNS, value="v", bounds=(0, 1), l0=1, rho=1, delta=1e-6, **more),
}


@pytest.mark.parametrize("name", [*FILES, "folder.csv", *["pipe.csv"] * hasattr(os, "mkfifo")])
def test_a_bad_file_is_an_input_error_with_its_path(name, tmp_path):
    path = name if "://" in name else tmp_path / name
    if name == "folder.csv":
        path.mkdir()
    elif name == "pipe.csv":
        os.mkfifo(path)
    elif FILES[name] is not None:
        path.write_bytes(FILES[name])
    budget = dp.Budget(rho=5000, delta=1e-5)
    for verb, call in VERBS.items():
        with pytest.raises(InputError) as caught:
            call(path, budget=budget)
        assert name in str(caught.value), verb
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert budget.spent.rho == 0
    for command in (["count", *OPTIONS], ["check", *OPTIONS[:4]]):
        code, out, messages = discreet(command[0], path, *command[1:])
        assert (code, out, messages.count("\n")) == (1, "", 1), messages
        assert messages.startswith("discreet: ")
        assert name in messages


class TestLedgers:
    """A ledger that cannot be charged: a LedgerError, and nothing released."""

    @pytest.fixture
    def log(self, tmp_path):
        return made("csv", spread("a"), tmp_path)

    @pytest.fixture
    def ledger(self, tmp_path):
        path = tmp_path / "privacy.ledger"
        dp.Ledger.open(path).dataset("views", rho=4000, delta=1e-6)
        return path

    @pytest.mark.parametrize("damage", ["folder", "random", "cut", "empty", "newer", "missing"])
    def test_a_damaged_ledger_releases_nothing(self, log, ledger, damage):
        content = ledger.read_bytes()
        ledger.unlink()
        changed = {"random": bytes(range(256)), "cut": content[:-5], "empty": b""}
        changed["newer"] = content.replace(b"discreet ledger 1", b"discreet ledger 9", 1)
        if damage == "folder":
            ledger.mkdir()
        elif damage != "missing":
            ledger.write_bytes(changed[damage])
        with pytest.raises(LedgerError):
            dp.Ledger.open(ledger, create=False).dataset("views").remaining  # noqa: B018
        code, out, messages = discreet("count", log, *OPTIONS, "--ledger", ledger, "--dataset", "views")
        assert (code, out) == (1, ""), messages
        assert messages.startswith("discreet: ")

    def test_the_whole_rest_is_charged_and_then_nothing(self, log, ledger):
        call = ["count", log, *OPTIONS, "--ledger", ledger, "--dataset", "views", "-f", "csv"]
        assert discreet(*call)[:2] == (0, discreet(*call[:-6], "-f", "csv")[1])
        dataset = dp.Ledger.open(ledger).dataset("views")
        dataset.charge(dataset.remaining)
        for rho, delta in ((2**-64, 0), (0, 2**-128)):
            with pytest.raises(BudgetExceeded):
                dataset.charge(dp.Guarantee(rho, delta))
        code, out, messages = discreet(*call)
        assert (code, out) == (3, "")
        assert "Nothing was charged" in messages
