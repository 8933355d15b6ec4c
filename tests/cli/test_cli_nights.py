"""Nightly commands: labels, keys, replaced releases, outputs of other charges, empty releases and shares."""

import json

import pytest
from command import discreet, errors_of, process

import discreet as dp
from discreet.errors import InputError
from discreet.formats import RELEASED, WRITTEN
from discreet.release.release import Release

COUNT = ["--user", "user", "--item", "page", "--rho", "0.1", "--delta", "1e-9"]
LEDGER = ["--ledger", "l", "--dataset", "visits"]
NIGHT = ["count", "visits.csv", *COUNT, *LEDGER]
EMPTY = ["select", "visits.csv", "--user", "user", "--item", "id", "--rho", "0.01", "--delta", "1e-14", "--l0", "1"]
EMPTY += ["--method", "dp_sips"]
"""Each of 3,000 items has one user, and is released with a chance of at most delta."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("user,page,id\n" + "".join(f"{n},home,{n}\n" for n in range(3000)))
    dp.Ledger.open("l").dataset("visits", rho=1, delta=1e-6)
    return tmp_path


def history():
    return dp.Ledger.open("l").history


@pytest.mark.parametrize("suffix", RELEASED)
@pytest.mark.parametrize("source", ["visits.csv", "--sql"])
def test_a_retry_returns_the_published_rows(folder, suffix, source):
    sql = "SELECT user, 'home' AS page FROM range(3000) AS rows(user)"
    night = NIGHT if source == "visits.csv" else ["count", "--sql", sql, *COUNT, *LEDGER]
    output = folder / f"rows.{suffix}"
    assert discreet(*night, "--once", "night 1", "-o", output)[0] == 0
    before = output.read_bytes()
    code, out, err = discreet(*night, "--once", "night 1", "-o", output)
    assert (code, out) == (0, "")
    assert "Nothing was charged or written." in err
    assert discreet(*night, "--once", "night 1", "-o", output, "-q") == (0, "", "")
    assert output.read_bytes() == before
    assert len(history()) == 1
    output.write_bytes(before.replace(b"home", b"hole"))
    for other in (output, folder / f"other.{suffix}"):
        err = errors_of(*night, "--once", "night 1", "-o", other, code=5)
        assert "--once 'night 1' was charged to visits at " in err
        assert "give a new key and --replaces 'night 1'" in err
    assert not (folder / f"other.{suffix}").exists()
    err = errors_of(*night, "--delta", "1e-10", "--once", "night 1", "-o", output)
    assert "--once 'night 1' was charged for a release with other parameters" in err
    assert len(history()) == 1


def test_a_key_is_compared_with_the_input_that_it_charged(folder):
    for place in ("june", "july"):
        (folder / place).mkdir()
        (folder / place / "visits.csv").write_bytes((folder / "visits.csv").read_bytes())
    (folder / "other.csv").write_bytes((folder / "visits.csv").read_bytes())
    first = ["--once", "k", "-o", "rows.csv"]
    assert discreet("count", "june/visits.csv", *COUNT, *LEDGER, *first)[0] == 0
    before = (folder / "rows.csv").read_bytes()
    for same in ("june/visits.csv", "june//visits.csv", folder / "june" / "visits.csv"):
        assert discreet("count", same, *COUNT, *LEDGER, *first)[0] == 0
    sql = ["--sql", "SELECT user, 'home' AS page FROM range(3000) AS rows(user)"]
    for other in (["july/visits.csv"], ["other.csv"], ["june/*.csv"], ["visits.csv"], sql):
        err = errors_of("count", *other, *COUNT, *LEDGER, *first)
        assert "--once 'k' was charged for another input" in err
        assert (", which was visits.csv, and" in err) == (other not in (["july/visits.csv"], ["visits.csv"]))
    stdin = (folder / "visits.csv").read_bytes()
    assert "another input" in errors_of("count", "-", *COUNT, *LEDGER, *first, stdin=stdin)
    second = ["--once", "sql", "-o", "sql.csv"]
    assert discreet("count", *sql, *COUNT, *LEDGER, *second)[0] == 0
    assert discreet("count", *sql, *COUNT, *LEDGER, *second)[0] == 0
    sql = ["--sql", "SELECT user, 'home' AS page FROM range(4000) AS rows(user)"]
    assert "for another input, and nothing" in errors_of("count", *sql, *COUNT, *LEDGER, *second)
    assert ((folder / "rows.csv").read_bytes(), len(history())) == (before, 2)


@pytest.mark.parametrize("suffix", RELEASED)
def test_a_retry_never_leaves_out_a_certificate(folder, suffix):
    output, certificate = folder / f"rows.{suffix}", folder / f"rows.{suffix}.certificate.json"
    again = [*NIGHT, "--once", "k", "-o", output, "--certificate"]
    assert discreet(*again)[0] == 0
    content = certificate.read_text()
    code, _, err = discreet(*again)
    assert (code, "Nothing was charged or written." in err) == (0, True), err
    assert certificate.read_text() == content
    for other in (None, "{", content.replace(history()[0].digest, "0" * 64)):
        certificate.unlink(missing_ok=True)
        if other is not None:
            certificate.write_text(other)
        err = errors_of(*again, code=5 if other != "{" else 2)
        assert ("but they have no certificate" in err and "Leave out --certificate" in err) == (other != "{"), err
    certificate.unlink()
    assert discreet(*again[:-1])[0] == 0
    assert len(history()) == 1


def test_spaces_around_a_key_are_no_part_of_it():
    for key in ("k", "k ", "  k"):
        assert discreet(*NIGHT, "--once", key, "-o", "rows.csv")[0] == 0
    assert [row.once for row in history()] == ["k"]
    assert discreet(*NIGHT, "--once", "k2", "--replaces", "k ", "-o", "new.csv")[0] == 0
    for key in ("", " ", "\u2003", "k\u00a0", "k\n"):
        assert "--once must be printable text" in errors_of(*NIGHT, "--once", key, "-o", "other.csv")


def test_rows_that_were_lost_are_not_charged_again(monkeypatch):
    def fail(*_, **__):
        raise InputError("cannot write rows.csv: the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(Release, "write", fail)
        assert discreet(*NIGHT, "--once", "k", "-o", "rows.csv")[0] == 1
    assert discreet(*NIGHT, "--once", "k", "-o", "rows.csv")[0] == 5
    assert discreet(*NIGHT, "--once", "k")[0] == 5
    assert len(history()) == 1
    code, _, err = discreet(*NIGHT, "--once", "k2", "--replaces", "k", "-o", "rows.csv")
    assert (code, "Charged to visits: the whole guarantee" in err) == (0, True)
    assert [row.replaces for row in history()] == ["", "k"]


def test_public_items_of_a_column_of_integers_have_one_promise(folder):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pyarrow.table({"user": range(3000), "page": [7] * 3000}), "visits.parquet"
    )
    (folder / "pages.txt").write_text("7\n8\n")
    night = ["count", "visits.parquet", *COUNT, *LEDGER, "--items", "pages.txt", "--once", "k", "-o", "rows.csv"]
    assert discreet(*night)[0] == 0
    code, _, err = discreet(*night)
    assert (code, "Nothing was charged or written." in err) == (0, True), err


@pytest.mark.parametrize("suffix", WRITTEN)
def test_rows_of_another_charge_need_overwrite(folder, suffix):
    output = folder / f"rows.{suffix}"
    assert discreet(*NIGHT, "-o", output)[0] == 0
    before, inode = output.read_bytes(), output.stat().st_ino
    for more in ([], ["--once", "k"] if suffix != "html" else []):
        assert "has the rows of charge 1 of the ledger" in errors_of(*NIGHT, *more, "-o", output)
    assert output.read_bytes() == before
    assert len(history()) == 1
    assert discreet(*NIGHT, "-o", output, "--overwrite")[0] == 0
    assert (len(history()), output.stat().st_ino == inode) == (2, False)  # two releases may have the same rows
    # Files that no charge of the ledger published are overwritten as before. No release above has no rows.
    assert discreet("count", "visits.csv", *COUNT[:3], "id", *COUNT[4:], "-o", output)[0] == 0
    assert discreet(*NIGHT, "-o", output)[0] == 0


def test_charges_say_what_they_are_for():
    for night in range(1, 4):
        more = ["--label", f"night {night}", "--once", f"k{night}", "-o", f"{night}.csv", "--certificate"]
        assert discreet(*NIGHT, *more)[0] == 0
    for command in ("show", "history"):
        lines = discreet("budget", command, "l")[1].splitlines()
        for night in (1, 2, 3):
            assert sum(f"night {night}" in line and "visits.csv" in line for line in lines) == 1
    rows = json.loads(discreet("budget", "export", "l", "-f", "json")[1])["rows"]
    assert [rows[0][name] for name in ("label", "once", "columns")] == ["night 1", "k1", "users: user; items: page"]
    assert "label: night 1\n" in discreet("verify", "1.csv", "--ledger", "l")[1]
    assert dp.Release.read("1.csv").provenance.files == "visits.csv"
    with open("visits.csv") as rows:
        text = rows.read().encode()
    assert discreet("count", "-", *COUNT, *LEDGER, stdin=text)[0] == 0
    assert [row.files for row in history()][-1] == "standard input"


def test_a_report_has_a_title_and_its_provenance(folder):
    assert discreet(*NIGHT, "-o", "r.html", "--title", "Visits <b>", "--label", "<i>night</i>")[0] == 0
    page = (folder / "r.html").read_text()
    assert "<h1>Visits &lt;b&gt;</h1>" in page
    assert "<dt>label</dt><dd>&lt;i&gt;night&lt;/i&gt;</dd>" in page
    assert "<i>" not in page
    assert f"<dd>{history()[0].digest}</dd>" in page
    for more in (["-o", "r.csv"], [], ["-o", "s.html", "--title", "a\nb"]):
        assert discreet(*NIGHT, "--title", "Visits", *more)[0] == 2
    assert discreet(*NIGHT, "--once", "k", "-o", "r.html", "--overwrite")[0] == 2
    assert len(history()) == 1


@pytest.mark.parametrize("more", [["--once", "k"], ["--replaces", "k"]])
def test_keys_need_a_ledger(more):
    assert f"{more[0]} needs --ledger and --dataset" in errors_of("count", "visits.csv", *COUNT, *more)


def test_an_empty_release_says_so_when_quiet():
    code, out, err = discreet(*EMPTY, "-q")
    assert (code, out, err) == (0, "id\n", "No item is common enough to be released.\n")
    code, out, err = process(*EMPTY, "-q", "--fail-if-empty")
    assert (code, out, err) == (4, "id\n", "No item is common enough to be released.\n")
    for _ in range(2):  # a retry ends as the first time
        assert discreet(*EMPTY, *LEDGER, "-o", "e.csv", "--once", "k", "--fail-if-empty")[0] == 4
    assert discreet("count", "visits.csv", *COUNT, "-q", "--fail-if-empty")[::2] == (0, "")


@pytest.mark.parametrize(
    ("n", "kind", "total", "part"), [(5, "epsilon", "1", "0.2"), (3, "epsilon", "0.3", "0.1"), (3, "rho", "0.3", "0.1")]
)
@pytest.mark.parametrize("more", [[], ["--l0", "1"]])
def test_n_parts_fit_at_the_command_line(n, kind, total, part, more):
    discreet("budget", "init", "l", "--dataset", "parts", f"--{kind}", total, "--delta", "1e-6")
    cost = [f"--{kind}", part, "--delta", repr(1e-6 / n)]
    night = ["count", "visits.csv", *COUNT[:4], *cost, "--ledger", "l", "--dataset", "parts", "-q", *more]
    for _ in range(n):
        assert discreet(*night)[0] == 0
    if more or kind == "rho":  # without l0 more of this epsilon fit, because their rhos add up
        assert discreet(*night)[0] == 3


def rho_of(words, *more):
    return json.loads(discreet("plan", "count", *words.split(), *more, "--json")[1])["rho"]


def test_a_budget_is_split_at_the_command_line():
    dp.Ledger.open("l").dataset("clicks", epsilon=1, delta=1e-6)
    assert discreet("budget", "split", "l", "--dataset", "visits", "-n", 4)[1] == "--rho 0.25 --delta 2.5e-07\n"
    _, out, note = discreet("budget", "split", "l", "--dataset", "clicks", "-n", 2)
    rhos, epsilons = out.splitlines()
    assert (rhos[:10], epsilons) == ("--rho 0.01", "--epsilon 0.5 --delta 5e-07")
    assert note.startswith("Note: counts without --l0 and top-k have less noise with the --rho")
    assert rho_of(rhos) > 1.5 * rho_of(epsilons)
    assert rho_of(rhos, "--l0", "1") < rho_of(epsilons, "--l0", "1")
    columns = ["--user", "user", "--item", "page", "--ledger", "l", "--dataset", "clicks"]
    for left in ("epsilon 0.5, delta 5e-07.", "epsilon 0, delta 0."):
        code, _, err = discreet("count", "visits.csv", *columns, *epsilons.split(), "--l0", "1")
        assert (code, left in err) == (0, True), err
    assert discreet("count", "visits.csv", *columns, *epsilons.split(), "--l0", "1")[0] == 3
    assert discreet("budget", "split", "l", "--dataset", "clicks", "-n", 2)[0] == 3
    for n in ("0", "x"):
        assert discreet("budget", "split", "l", "--dataset", "visits", "-n", n)[0] == 2
