"""Options of `discreet` that choose columns, periods and public items."""

import csv
import io
import re
import sqlite3

import duckdb
import pytest
from command import BUDGET, discreet, errors_of, output

import discreet as dp
from discreet.cli import report
from discreet.cli.known import released
from discreet.errors import Charged, ItemTypeError, SchemaError

ROWS = "user,country,page,ts,amount\n" + "".join(
    f"{user},DE,home,2026-01-05T10:00,1\n{user},FR,help,2026-01-06T10:00,1\n" for user in range(4000)
)


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text(ROWS)
    return path


def rows(out):
    return list(csv.DictReader(io.StringIO(out)))


def test_several_columns_are_one_item(visits):
    out = output("count", visits, "--user", "user", "--item", "country", "--item", "page", *BUDGET)[0]
    assert list(rows(out)[0]) == ["country", "page", "count", "sigma", "method"]
    assert sorted((row["country"], row["page"]) for row in rows(out)) == [("DE", "home"), ("FR", "help")]
    out = output("count", visits, "--user", "user", "--item", "country", "--item", "page", *BUDGET, "-f", "table")[0]
    assert out.split()[:4] == ["country", "page", "count", "±"]


PAGES = [f"https://example.org/{'spring/' * length}page" for length in (1, 6)]
LONG = {
    "user": [*range(6000)],
    "country": ["United Kingdom", "France"] * 3000,
    "page": PAGES * 3000,
    "ts": ["2026-01-05T10:00"] * 6000,
    "amount": [3] * 6000,
}
NUMBERS = {
    "count": lambda **options: dp.count(LONG, user="user", **options, rho=1, delta=1e-6),
    "clipped": lambda **options: dp.count(LONG, user="user", **options, l0=1, rho=1, delta=1e-6),
    "top-k": lambda **options: dp.top_k(LONG, user="user", **options, k=2, rho=1, delta=1e-6),
    "sum": lambda **options: dp.sum(
        LONG, user="user", **options, value="amount", bounds=(0, 9000), l0=1, rho=1, delta=1e-6
    ),
    "aggregate": lambda **options: dp.aggregate(
        LONG, user="user", **options, rows=1, sums={"amount": (0, 9000)}, rho=1, delta=1e-6
    ),
}


@pytest.mark.parametrize("made", NUMBERS)
@pytest.mark.parametrize("labels", [["page"], ["country", "page"], ["ts", "country", "page"]])
def test_a_narrow_terminal_cuts_labels_and_no_number(made, labels, monkeypatch):
    period = {"time": "ts", "every": "1d"} if "ts" in labels else {}
    release = NUMBERS[made](item=[name for name in labels if name != "ts"], **period)
    assert len(release) == 2

    def shown(width):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = report.table(release, shown=40).splitlines()[-3:]  # a title is before the header
        return max(map(len, lines)), [re.split(" {2,}", line)[len(labels) :] for line in lines]

    whole = shown(100_000)[1]
    if release.counts is not None:
        assert [float(row[0].replace(",", "")) for row in whole[1:]] == release.counts.tolist()
    for width in (120, 80, 40, 5):
        longest, numbers = shown(width)
        assert numbers == whole
        assert longest <= width or width < 80


SUMMED = ["--column", "amount", "--bounds", "0", "2", "--l0", "1"]


def test_several_columns_are_one_user(visits):
    options = ["--user", "user", "--user", "ts", "--item", "country", *BUDGET]
    assert {row["country"] for row in rows(discreet("count", visits, *options)[1])} == {"DE", "FR"}


@pytest.mark.parametrize("verb", [["count"], ["top-k", "-k", "5"], ["select", "--l0", "2"]])
def test_periods_are_the_first_column(visits, verb):
    options = ["--user", "user", "--item", "page", "--time", "ts", "--every", "1d", *BUDGET]
    out = output(verb[0], visits, *verb[1:], *options)[0]
    assert sorted((row["ts"], row["page"]) for row in rows(out)) == [("2026-01-05", "home"), ("2026-01-06", "help")]


def test_limits_of_time_choose_rows(visits):
    options = ["--user", "user", "--item", "page", "--time", "ts", "--since", "2026-01-05", "--until", "2026-01-06"]
    assert [row["page"] for row in rows(discreet("count", visits, *options, *BUDGET)[1])] == ["home"]
    assert "need --time" in errors_of("count", visits, *options[:4], "--since", "2026-01-05", *BUDGET)


@pytest.mark.parametrize("verb", [["count"], ["top-k", "-k", "5"], ["select"], ["sum", *SUMMED]])
def test_a_user_in_one_day_is_the_unit_of_rows_and_ledger(visits, tmp_path, verb):
    day = ["--user", "user", "--item", "page", "--time", "ts", "--unit", "user-day"]
    ledger, out = tmp_path / "ledger", tmp_path / "out.csv"
    for unit in ("user-day", "user"):
        total = ["--rho", "9", "--delta", "1e-4"] if unit == "user" else ["--epsilon", "99", "--delta", "1e-3"]
        code, _, err = discreet("budget", "init", ledger, "--dataset", unit, *total, "--unit", unit)
        assert (code, f"per {'user' if unit == 'user' else 'user and day in UTC'}" in err) == (0, True)
    paid = [*BUDGET, "--ledger", ledger, "--dataset"]
    code, _, err = discreet(verb[0], visits, *verb[1:], *day, *paid, "user-day", "-o", out, "--certificate")
    assert (code, "per user and day in UTC" in err) == (0, True), err
    assert "per user and day in UTC" in discreet("verify", out, "--ledger", ledger)[1]
    assert discreet("verify", out, "--max-epsilon", "99", "--delta", "1e-3")[0] == 1
    assert "--unit user-day" in errors_of(verb[0], visits, *verb[1:], *day, *paid, "user")
    err = errors_of(verb[0], visits, *verb[1:], *day[:4], "--unit", "user-day", *BUDGET)
    assert "--unit user-day needs --time" in err
    found = discreet("check", visits, *day)[1]
    assert "user-days" in found
    assert "items per user-day" in found


def test_standard_input_has_periods_too():
    options = ["--user", "user", "--item", "page", "--time", "ts", "--every", "1w", *BUDGET]
    out = output("count", "-", *options, stdin=ROWS.encode())[0]
    assert {row["ts"] for row in rows(out)} == {"2026-01-05"}


def test_public_items_are_counted_without_a_threshold(visits, tmp_path):
    known = tmp_path / "known.txt"
    known.write_text("home\r\nnever\n\nhome\n")
    options = ["--user", "user", "--item", "page", "--items", known, *BUDGET]
    out, err = output("count", visits, *options)
    assert sorted(row["page"] for row in rows(out)) == ["home", "never"]
    assert "threshold" not in err.lower().replace("gaussianthreshold", "")
    assert "lower than" not in err
    out = output("count", visits, *options, "--others", "--l0", "2")[0]
    assert sorted(row["page"] for row in rows(out)) == ["help", "home", "never"]


def test_public_items_need_no_delta_and_charge_none(visits, tmp_path):
    known, ledger = tmp_path / "known.txt", tmp_path / "privacy.ledger"
    known.write_text("home\nnever\nhelp\n")
    discreet("budget", "init", ledger, "--dataset", "visits", "--rho", "4", "--delta", "1e-6")
    given = [visits, "--user", "user", "--item", "page", "--ledger", ledger, "--dataset", "visits"]
    for promise, guarantee in (
        (["--rho", "0.5"], "Guarantee: 0.5-zCDP per user"),
        (["--epsilon", "1"], "and (1, 0)-DP"),
        (["--rho", "0.5", "--delta", "1e-7"], ")-DP"),
    ):
        for verb in (["count"], ["top-k", "-k", "2"]):
            code, out, err = discreet(*verb, *given, "--items", known, *promise)
            assert (code, guarantee in err, "and delta 0." in err, "delta 1e-06." in err) == (0, True, True, True), err
            assert len(rows(out)) == (3 if verb == ["count"] else 2)
    for verb in (["count"], ["top-k", "-k", "2"]):
        assert "Missing option '--delta'" in errors_of(*verb, *given, "--rho", "0.5")
    assert "--k-bar" in errors_of("count", *given, "--rho", "0.5", "--items", known, "--k-bar", "9")
    assert "Python" in errors_of("count", *given, "--rho", "0.5", "--items", known, "--time", "page", "--every", "1d")


def test_public_items_are_never_read_from_the_data(visits, tmp_path):
    options = ["--user", "user", "--item", "page", "--l0", "1", *BUDGET]
    link = tmp_path / "list.txt"
    link.symlink_to(visits)
    for listed in (visits, link):
        for read in (
            [visits],
            [tmp_path / "*.csv"],
            ["--sql", f"SELECT * FROM read_csv('{listed}', parallel = false, quote = chr(34), escape = chr(34))"],
        ):
            assert "would be published as they are" in errors_of("count", *read, *options, "--items", listed)


@pytest.mark.parametrize(
    "read, message",
    [
        ("read_csv('vis'||'its.csv', WHOLE)", "must name its files by texts"),
        ("read_csv(['other.csv', concat('visits', '.csv')], WHOLE)", "must name its files by texts"),
        ("read_csv((SELECT 'visits.csv'), WHOLE)", "must name its files by texts"),
        ("read_text('vis'||'its.csv')", "must name its files by texts"),
        ("read_csv(E'\\x76isits.csv', WHOLE)", "would be published as they are"),
        ("read_csv(['other.csv', './v?sits.csv'], WHOLE)", "would be published as they are"),
        ("(SELECT content, 1 FROM read_text('*.csv'))", "would be published as they are"),
        ("read_csv('other.csv', WHOLE)", None),
        ("range(3) t(user), (SELECT 'visits.csv' AS page)", None),
    ],
)
def test_public_items_are_never_read_from_the_data_of_a_query(visits, tmp_path, monkeypatch, read, message):
    monkeypatch.chdir(tmp_path)
    visits.with_name("other.csv").write_text("user,page\n1,home\n")
    sql = f"SELECT * FROM {read}".replace("WHOLE", "parallel = false, quote = chr(34), escape = chr(34)")
    options = ["--user", "user", "--item", "page", "--l0", "1", *BUDGET]
    code, out, err = discreet("count", "--sql", sql, *options, "--items", visits)
    assert (code, out == "") == ((2, True) if message else (0, False)), err
    assert message is None or message in err


def test_public_items_are_never_read_from_the_data_of_a_view(visits, tmp_path):
    stored = tmp_path / "stored.duckdb"
    with duckdb.connect(str(stored)) as database:
        database.execute("CREATE TABLE log AS SELECT range AS user, 'home' AS page FROM range(9)")
        database.execute("CREATE VIEW same AS FROM log WHERE user IN (FROM range(9))")
        database.execute(f"CREATE VIEW raw AS SELECT 1 AS user, content AS page FROM read_text('{visits}')")
    options = ["--user", "user", "--item", "page", "--l0", "1", *BUDGET, "--items", visits]
    for table, expected in (("log", 0), ("same", 0), ("raw", 2)):
        code, out, err = discreet("count", "--database", stored, "--table", table, *options)
        assert code == expected, err
        assert expected == 0 or (out == "" and "a view that reads files" in err)


def test_a_space_in_a_public_item_is_reported(visits, tmp_path):
    known = tmp_path / "known.txt"
    known.write_text("home \nhelp\n")
    _, err = output("count", visits, "--user", "user", "--item", "page", "--items", known, *BUDGET)
    assert "1 line of" in err


def test_public_items_are_numbers_if_the_column_holds_integers(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path, known = tmp_path / "log.parquet", tmp_path / "known.txt"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"u": range(3000), "i": [7] * 3000}), path)
    known.write_text("7\n8\n")
    for more in ([], ["--others", "--l0", "2"]):
        out = output("count", path, "--user", "u", "--item", "i", "--items", known, *BUDGET, *more)[0]
        assert sorted(row["i"] for row in rows(out)) == ["7", "8"]
    known.write_text("seven\n")
    err = errors_of("count", path, "--user", "u", "--item", "i", "--items", known, *BUDGET, code=1)
    assert "different types" in err


def test_only_an_error_of_the_type_makes_numbers_of_text():
    def refused(error):
        def release(items):
            if items != [7]:
                raise error
            return items

        return release

    assert released(refused(ItemTypeError("other words")), ["7"]) == [7]
    charged = ItemTypeError("the listed items and the column of items have different types")
    charged.charged = Charged("views", 0.5, 1e-7, certain=True)
    for error in (charged, SchemaError(str(charged))):
        with pytest.raises(SchemaError) as raised:
            released(refused(error), ["7"])
        assert raised.value is error
    with pytest.raises(ItemTypeError):
        released(refused(ItemTypeError("other words")), ["7", "seven"])


def test_files_of_public_items_are_checked(visits, tmp_path):
    known = tmp_path / "known.txt"
    options = ["--user", "user", "--item", "page", *BUDGET]
    assert "cannot read" in discreet("count", visits, *options, "--items", known)[2]
    known.write_text("")
    assert "at least one label" in discreet("count", visits, *options, "--items", known)[2]
    known.write_text("home\n" + "a" * 8193)
    for verb in ("count", "plan"):
        more = [verb, visits] if verb == "count" else ["plan", "count"]
        assert "8,192 bytes" in discreet(*more, *(options if verb == "count" else BUDGET), "--items", known)[2]
    known.write_text("home")
    assert "needs --items" in discreet("count", visits, *options, "--others")[2]
    assert "one column" in errors_of("count", visits, *options, "--item", "country", "--items", known)
    inside = tmp_path / "known.csv"
    inside.write_text("home")
    assert "overwrite an input" in discreet("count", visits, *options, "--items", inside, "-o", inside)[2]


def test_a_sqlite_database_gets_calibrated_counts_with_any_k_bar(tmp_path):
    pytest.importorskip("ibis.backends.sqlite")
    path = tmp_path / "visits.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("create table visits (user integer, page text)")
        database.executemany("insert into visits values (?, ?)", [(user, "home") for user in range(900)])
    for more in ([], ["--k-bar", "50"]):
        options = ["--user", "user", "--item", "page", "--rho", "1", "--delta", "1e-6", *more]
        out = output("count", "--database", path, "--table", "visits", *options)[0]
        assert out.splitlines()[0] == "page,count,sigma,method"
