"""The commands `discreet budget` and `discreet verify`."""

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import discreet, errors_of, output
from rich.cells import cell_len

from discreet import Guarantee, Histogram, Ledger, PrivateCountRelease, count, verify
from discreet.budgets import filter as filters
from discreet.errors import InputError

COUNT = ["--user", "user", "--item", "item", "--rho", "0.1", "--delta", "1e-6"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Make a folder with a small log the working directory."""
    rows = "".join(f"{user},{item}\n" for user in range(3000) for item in ("home", "search"))
    (tmp_path / "log.csv").write_text("user,item\n" + rows + "7,secret\n")
    monkeypatch.chdir(tmp_path)


def test_a_budget_is_created_charged_shown_and_exceeded(tmp_path):
    code, out, err = discreet("budget", "init", "l", "--dataset", "views", "--rho", "0.25", "--delta", "1e-5")
    assert (code, out) == (0, "")
    assert "0.25-zCDP" in err
    paying = ["--ledger", "l", "--dataset", "views"]
    _, err = output("count", "log.csv", *COUNT, *paying, "-o", "rows.csv", "--certificate")
    assert "Remaining for views: rho 0.15, delta 9e-06" in err
    assert "Charged to views: the whole guarantee, rho 0.1 and delta 1e-06." in err
    out = output("verify", "rows.csv", "--ledger", "l")[0]
    assert "paid for by the dataset 'views'" in out
    code, out, err = discreet("top-k", "log.csv", *COUNT, *paying, "-k", "1")
    assert (code, "home" in out or "search" in out) == (0, True)
    for command in (["count"], ["select", "--l0", "2"], ["top-k", "-k", "2"]):
        err = errors_of(command[0], "log.csv", *command[1:], *COUNT, *paying, code=3)
        assert "Privacy budget exceeded: this release costs rho=0.1; rho=0.05 is left. Nothing was charged." in err
        assert "Try --rho 0.0" in err
    out = output("budget", "show", "l")[0]
    assert out.splitlines()[1].split()[:7] == ["views", "0.25", "0.2", "0.05", "1e-05", "2e-06", "8e-06"]
    assert out.splitlines()[1].endswith("2e-05)-DP")
    code, out, err = discreet("budget", "history", "l", "--dataset", "views")
    assert [line.split()[3] for line in out.splitlines()] == ["mechanism", "CalibratedCounts", "GumbelTopK"]
    assert "secret" not in (tmp_path / "l").read_bytes().decode("latin-1")


def test_a_release_at_the_whole_epsilon_spends_the_budget():
    discreet("budget", "init", "l", "--dataset", "views", "--epsilon", "1", "--delta", "1e-6")
    whole = [*COUNT[:4], "--epsilon", "1", "--delta", "1e-6", "--ledger", "l", "--dataset", "views"]
    _, err = output("count", "log.csv", *whole, "--l0", "3")
    assert "Note: this release took the whole budget of (1, 1e-06)-DP" in err
    assert "Charged to views: the whole budget. " in err
    assert "Remaining for views: rho 0, delta 0." in err
    assert discreet("count", "log.csv", *whole, "--l0", "3")[0] == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_failed_write_reports_the_charge(tmp_path):
    discreet("budget", "init", "l", "--dataset", "views", "--rho", "0.25", "--delta", "1e-5")
    command = [sys.executable, "-m", "discreet", "count", "log.csv", *COUNT, "--ledger", "l", "--dataset", "views"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "Charged to views: rho " in done.stderr
    assert "-o FILE" in done.stderr


def test_a_stream_is_charged_when_it_is_created(tmp_path):
    discreet("budget", "init", "l", "--dataset", "events", "--rho", "1", "--delta", "1e-5", "--unit", "event")
    stream = ["--rho", "0.6", "--delta", "1e-6", "--l0", "1", "--horizon", "8", "--ledger", "l", "--dataset", "events"]
    assert discreet("stream", "init", "s", *stream)[0] == 0
    assert discreet("stream", "init", "s", *stream)[0] == 2
    assert discreet("stream", "init", "other", *stream)[0] == 3
    assert not (tmp_path / "other").exists()
    (row,) = csv.DictReader(io.StringIO(discreet("budget", "export", "l")[1]))
    assert row["status"] == "charged"
    assert 0.5 < float(row["rho"]) <= 0.6


def test_the_history_is_exported(tmp_path):
    discreet("budget", "init", "l", "--dataset", "views", "--epsilon", "2", "--delta", "1e-5")
    discreet("select", "log.csv", *COUNT, "--l0", "2", "--ledger", "l", "--dataset", "views", "-q")
    (row,) = csv.DictReader(io.StringIO(discreet("budget", "export", "l")[1]))
    assert (row["dataset"], row["status"], float(row["rho"]) <= 0.1) == ("views", "released", True)
    (line,) = discreet("budget", "export", "l", "-f", "jsonl")[1].splitlines()
    assert "delta=" in json.loads(line)["parameters"]
    assert discreet("budget", "export", "l", "-o", "history.parquet")[0] == 0
    assert "A report is about released rows" in errors_of("budget", "export", "l", "-o", "history.html", code=2)
    assert (tmp_path / "history.parquet").stat().st_size > 0
    assert discreet("budget", "show", "l")[1].splitlines()[1].split()[0] == "views"


def test_a_history_with_unencodable_text_is_exported(tmp_path, monkeypatch):
    discreet("budget", "init", "l", "--dataset", "views", "--rho", "2", "--delta", "1e-5")
    monkeypatch.setattr(filters, "require_text", lambda name, value: value)
    Ledger.open(tmp_path / "l").dataset("views").charge(Guarantee(0.1, 0), made_by="half \ud800")
    (row,) = csv.DictReader(io.StringIO(discreet("budget", "export", "l")[1]))
    assert row["mechanism"] == "half \\ud800"
    for name in ("history.csv", "history.json", "history.jsonl", "history.parquet"):
        assert discreet("budget", "export", "l", "-o", name)[0] == 0
        assert b"\\ud800" in (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["count", "log.csv", *COUNT, "--ledger", "l"], 2, "together"),
        (["count", "log.csv", *COUNT, "--dataset", "views"], 2, "together"),
        (["count", "log.csv", *COUNT, "--ledger", "none", "--dataset", "views"], 1, "discreet budget init"),
        (["count", "log.csv", *COUNT, "--ledger", "l", "--dataset", "view"], 2, "did you mean 'views'"),
        (["count", "log.csv", *COUNT, "--ledger", "log.csv", "--dataset", "views"], 1, "log.csv is not a ledger"),
        (["count", "log.csv", *COUNT, "--ledger", "l", "--dataset", "x"], 2, "`discreet budget init`"),
        (["count", "log.csv", *COUNT, "--ledger", ".", "--dataset", "views"], 1, "not a file"),
        (["count", "log.csv", *COUNT, "--certificate"], 2, "-o"),
        (["budget", "init", "l", "--dataset", "views", "--rho", "2", "--delta", "1e-6"], 2, "fixed for good"),
        (["budget", "init", "l", "--dataset", "views", "--rho", "1", "--delta", "1e-6", "--unit", "event"], 2, "fixed"),
        (["budget", "init", "l", "--dataset", "x", "--rho", "1", "--delta", "1e-6", "--unit", "row"], 2, "row"),
        (["budget", "init", "l", "--dataset", "x", "--rho", "0", "--delta", "1e-6"], 2, "rho must be"),
        (["budget", "init", "l", "--dataset", "x", "--delta", "1e-6"], 2, "exactly one"),
        (["budget", "init", "l", "--dataset", "", "--rho", "1", "--delta", "1e-6"], 2, "name of a dataset"),
        (["budget", "show", "none"], 1, "no ledger"),
        (["budget", "history", "l", "--dataset", "viewss"], 2, "did you mean"),
        (["budget", "export", "l", "-o", "x.txt"], 2, "suffix"),
        (["verify", "log.csv"], 1, "certificate"),
        (["verify", "missing.csv"], 1, "no such file"),
        (["verify", "log.csv", "--max-epsilon", "1"], 2, "give both --max-epsilon and --delta"),
        (["verify", "log.csv", "--delta", "1e-6"], 2, "give both --max-epsilon and --delta"),
        (
            ["verify", "log.csv", "--delta", "1", "--max-epsilon", "1"],
            2,
            "--delta must be a number at least 0 and below",
        ),
        (["verify", "log.csv", "--delta", "1e-6", "--max-epsilon", "0"], 2, "--max-epsilon must be a number above 0"),
        (["verify", "log.csv", "--delta", "1e-6", "--max-epsilon", "nan"], 2, "--max-epsilon must be a number above 0"),
    ],
)
def test_an_error_has_an_exit_code_and_a_message(arguments, code, message):
    discreet("budget", "init", "l", "--dataset", "views", "--rho", "1", "--delta", "1e-6")
    ended, out, err = discreet(*arguments)
    assert (ended, out) == (code, "")
    assert message in err
    assert discreet("budget", "show", "l")[1].splitlines()[1].split()[2] == "0"


def test_verify_checks_a_policy_for_one_file_and_for_the_sum():
    for name in ("a.csv", "b.csv"):
        assert discreet("count", "log.csv", *COUNT, "-o", name, "--certificate")[0] == 0  # rho 0.1 and delta 1e-6
    code, out, _ = discreet("verify", "a.csv", "--max-epsilon", "2.3", "--delta", "2e-6")
    assert (code, "at delta 2e-06; the policy allows at most 2.3" in out) == (0, True)
    for policy, reason in (
        (("2.1", "2e-6"), "exceeds the policy: epsilon 2."),
        (("9", "1e-6"), "no epsilon at delta 1e-06, because its own delta is 1e-06"),
    ):
        assert reason in errors_of("verify", "a.csv", "--max-epsilon", policy[0], "--delta", policy[1], code=1)
    code, out, err = discreet("verify", "a.csv", "b.csv", "--max-epsilon", "2.3", "--delta", "4e-6")
    assert (code, out.count("the rows match their certificate")) == (1, 2)
    assert "the sum of 2 files: 2e-06-approximate 0.2-zCDP" in out
    assert "the sum of 2 files exceeds the policy: epsilon 3." in err
    code, out, _ = discreet("verify", "a.csv", "b.csv", "--max-epsilon", "3.3", "--delta", "4e-6")
    assert (code, out.splitlines()[-1].endswith("the policy allows at most 3.3")) == (0, True)
    assert discreet("verify", "a.csv", "b.csv")[0] == 0


@pytest.fixture
def nights():
    """Five nights in files, and the ledger that paid for them and for two more charges."""
    discreet("budget", "init", "l", "--dataset", "views", "--rho", "1", "--delta", "1e-5")
    discreet("budget", "init", "l", "--dataset", "other", "--rho", "1", "--delta", "1e-5")
    cost = ["--user", "user", "--item", "item", "--rho", "0.0027", "--delta", "2.7e-8", "--ledger", "l", "-q"]
    for night in range(5):
        output("count", "log.csv", *cost, "--dataset", "views", "-o", f"{night}.csv", "--certificate")
    for dataset in ("views", "views", "other"):
        output("count", "log.csv", *cost, "--dataset", dataset, "-o", "lost.csv")
        Path("lost.csv").unlink()
    return [f"{night}.csv" for night in range(5)]


def test_verify_counts_the_charges_of_the_ledger_without_a_file(nights):
    policy = ["--max-epsilon", "0.735", "--delta", "1e-6"]
    out = output("verify", *nights, *policy)[0]
    assert out.splitlines()[-1] == "epsilon 0.7348 at delta 1e-06; the policy allows at most 0.735"
    code, out, err = discreet("verify", *nights, "--ledger", "l", *policy)
    assert code == 1
    assert "the ledger has 2 charges without a file among these, to 'views': 5.4e-08-approximate 0.0054-zCDP" in out
    assert "the sum of 5 files and of 2 charges without a file exceeds the policy: epsilon 0.88" in err
    code, out, err = discreet("verify", *nights, "--ledger", "l", "--max-epsilon", "0.9", "--delta", "1e-6")
    assert (code, out.splitlines()[-1][:12]) == (0, "epsilon 0.88")
    assert "the ledger has 2 charges without a file" in output("verify", *nights, "--ledger", "l")[0]
    # One file: as at the command line, so in Python.
    one = ["verify", nights[0], "--ledger", "l", "--max-epsilon"]
    code, _, err = discreet(*one, "0.8", "--delta", "1e-6")
    assert (code, "of 0.csv and of 6 charges without a file exceeds" in err) == (1, True)
    assert discreet(*one, "0.9", "--delta", "1e-6")[0] == 0
    with pytest.raises(InputError, match=r"of 0\.csv and of 6 other charges to views exceeds the policy"):
        verify(nights[0], ledger="l", max_epsilon=0.8, delta=1e-6)
    found = verify(nights[0], ledger="l", max_epsilon=0.9, delta=1e-6)
    assert "\nall charges to the dataset 'views': epsilon 0.88" in str(found)
    assert (found.charge, found.dataset, 0.88 < found.epsilon < 0.9) == (1, "views", True)
    assert ("provenance" in verify(nights[0]).claims, "provenance" in found.claims) == (True, False)


def test_verify_says_that_all_charges_have_a_file(nights):
    cost = ["--user", "user", "--item", "item", "--epsilon", "0.5", "--delta", "1e-6", "--l0", "1"]
    discreet("budget", "init", "l", "--dataset", "few", "--epsilon", "1", "--delta", "1e-5")
    paying = ["--ledger", "l", "--dataset", "few", "-q", "--certificate", "-o"]
    for name in ("a.csv", "b.csv"):
        output("count", "log.csv", *cost, *paying, name)
    code, out, _ = discreet("verify", "a.csv", "b.csv", "--ledger", "l", "--max-epsilon", "1", "--delta", "2e-6")
    assert (code, "all charges of the ledger to 'few' are those of these files" in out) == (0, True)
    assert discreet("verify", "a.csv", "--ledger", "l", "--max-epsilon", "0.9", "--delta", "2e-6")[0] == 1
    out = output("verify", "a.csv", nights[0], "--ledger", "l")[0]
    assert "7 charges without a file among these, to 'few', 'views'" in out


@pytest.mark.parametrize(
    ("files", "rest", "total"),
    [
        ("0.csv 1.csv 2.csv", 0, "0.3-zCDP"),
        ("2.csv 1.csv 0.csv", 0, "0.3-zCDP"),
        ("0.csv 2.csv", 1, "0.3-zCDP"),
        ("0.csv ./0.csv 0.csv", 2, "0.3-zCDP"),
        ("0.csv 2.csv 3.csv", 1, "0.4-zCDP"),  # 2.csv and its copy count twice
    ],
)
def test_verify_gives_each_charge_of_equal_releases_one_file(files, rest, total):
    views = Ledger.open("l").dataset("views", rho=1, delta=1e-5)
    mechanism = PrivateCountRelease.from_rho(rho=0.1, delta=1e-6)
    empty = Histogram.from_counts([], [], l0=1, linf=1, complete=True)
    nothing = {"user": [], "item": []}
    for number in range(2):
        views.release(mechanism, empty).write(f"{number}.csv", certificate=True)
    count(nothing, user="user", item="item", mechanism=mechanism, budget=views).write("2.csv", certificate=True)
    shutil.copy("2.csv", "3.csv")
    shutil.copy("2.csv.certificate.json", "3.csv.certificate.json")
    out = output("verify", *files.split(), "--ledger", "l")[0]
    last = out.splitlines()[-1]
    assert f"-approximate {total}" in last
    charges = f"{rest} charge{'s' if rest > 1 else ''} without a file"
    assert (charges in out, "all charges of the ledger to 'views'" in out) == (rest > 0, rest == 0)


def test_ten_nights_of_a_tenth_keep_the_policy_of_the_whole():
    discreet("budget", "init", "l", "--dataset", "views", "--epsilon", "1", "--delta", "1e-6")
    cost = ["--user", "user", "--item", "item", "--epsilon", "0.1", "--delta", "1e-7", "--l0", "1", "-q"]
    names = [f"{night}.csv" for night in range(10)]
    for name in names:
        output("count", "log.csv", *cost, "--ledger", "l", "--dataset", "views", "-o", name, "--certificate")
    policy = ["--max-epsilon", "1", "--delta", "1e-6"]
    for given in ([*names], [*names, "--ledger", "l"], [names[0], "--ledger", "l"], [*names[:4], "--ledger", "l"]):
        assert "epsilon 1 at delta 1e-06" in output("verify", *given, *policy)[0]
    assert "epsilon 1 at delta 1e-06" in output("budget", "verify", "l", "--dataset", "views", *policy)[0]


def test_files_of_a_budget_in_epsilon_have_one_sum_whichever_are_given():
    budget = Ledger.open("l").dataset("few", epsilon=5, delta=1e-5)
    log = {"user": [*range(3000)], "item": ["a"] * 3000}
    costs = {"a.csv": {"epsilon": 1}, "b.csv": {"rho": 0.1}, "c.csv": {"epsilon": 1.5}}
    for name, cost in costs.items():
        release = count(log, user="user", item="item", l0=1, delta=1e-7, **cost, budget=budget)
        release.write(name, certificate=True)
    policy = ["--max-epsilon", "4.9", "--delta", "1e-5"]
    whole = output("budget", "verify", "l", "--dataset", "few", *policy)[0].splitlines()[-1]
    assert whole.startswith("epsilon 4.")
    for names in (["a.csv"], ["b.csv"], ["c.csv", "b.csv"], ["a.csv", "b.csv", "c.csv"]):
        assert output("verify", *names, "--ledger", "l", *policy)[0].splitlines()[-1] == whole


def test_three_nights_of_a_tenth_keep_a_policy_of_three_tenths():
    discreet("budget", "init", "l", "--dataset", "views", "--epsilon", "1", "--delta", "1e-5")
    for name in ("a.csv", "b.csv", "c.csv"):
        cost = ["--epsilon", "0.1", "--delta", "1e-6", "--l0", "1", "--ledger", "l", "--dataset", "views", "-q"]
        output("count", "log.csv", *COUNT[:4], *cost, "--certificate", "-o", name)
    policy = ["--max-epsilon", "0.3", "--delta", "3e-6"]
    for check in (["budget", "verify", "l", "--dataset", "views"], ["verify", "a.csv", "b.csv", "c.csv"]):
        assert "epsilon 0.3 at delta 3e-06; the policy allows at most 0.3" in output(*check, *policy)[0]
    for check in (["budget", "verify", "l", "--dataset", "views"], ["verify", "a.csv", "--ledger", "l"]):
        code, _, err = discreet(*check, "--max-epsilon", "0.29999", "--delta", "3e-6")
        assert (code, "exceeds the policy" in err) == (1, True)


@pytest.mark.parametrize(
    ("total", "cost", "most", "delta"),
    [
        (["--rho", "1", "--delta", "1e-5"], ["--rho", "0.1", "--delta", "1e-6"], "3.3", "4e-6"),
        (["--epsilon", "1", "--delta", "1e-5"], ["--epsilon", "0.5", "--delta", "1e-6", "--l0", "1"], "1", "2e-6"),
        (["--epsilon", "1", "--delta", "1e-5"], ["--rho", "0.01", "--delta", "1e-6"], "0.9", "4e-6"),
    ],
)
def test_a_policy_for_all_charges_of_a_dataset(total, cost, most, delta):
    check = ["budget", "verify", "l", "--dataset", "views"]
    discreet("budget", "init", "l", "--dataset", "views", *total)
    out = output(*check, "--max-epsilon", "0.1", "--delta", "1e-9")[0]
    assert "0 charges to views: 0-zCDP" in out
    for _ in range(2):
        output("count", "log.csv", *COUNT[:4], *cost, "--ledger", "l", "--dataset", "views", "-q")
    out = output(*check, "--max-epsilon", most, "--delta", delta)[0]
    assert "2 charges to views: " in out
    assert out.splitlines()[-1].startswith("epsilon ")
    less = str(0.9 * float(most))
    for policy, reason in (
        ([less, "--delta", delta], "the sum of all charges to views exceeds the policy: epsilon "),
        ([most, "--delta", "1e-9"], "no epsilon at delta 1e-09"),
        (["9", "--delta", delta, "--unit", "user-day"], "per user and day"),
    ):
        code, out, err = discreet(*check, "--max-epsilon", *policy)
        assert (code, "2 charges to views" in out, reason in err) == (1, True, True), err
    assert "give both" in errors_of(*check, "--max-epsilon", "9")
    assert "did you mean 'views'" in errors_of(*check[:-1], "view", "--max-epsilon", "9", "--delta", delta)
    with open("l", "r+b") as file:
        file.seek(-100, 2)
        file.write(b"x")
    assert "is corrupt" in errors_of(*check, "--max-epsilon", "9", "--delta", delta, code=1)


SOME = [["a.csv"], ["b.csv"], ["a.csv", "b.csv"]]


def test_a_policy_counts_charges_before_their_refunds():
    discreet("budget", "init", "l", "--dataset", "views", "--rho", "1", "--delta", "1e-5")
    paid = ["--ledger", "l", "--dataset", "views", "--charge", "spent", "-q", "--certificate", "-o"]
    for name in ("a.csv", "b.csv"):
        output("count", "log.csv", *COUNT[:4], "--rho", "0.1", "--delta", "1e-6", *paid, name)
    stated = [(row.rho < row.stated[0], row.stated[0]) for row in Ledger.open("l", create=False).history]
    assert stated == [(True, 0.1), (True, 0.1)]
    policy = ["--max-epsilon", "2.5", "--delta", "1e-5"]
    checks = [["budget", "verify", "l", "--dataset", "views"], *(["verify", *some, "--ledger", "l"] for some in SOME)]
    for check in checks:
        code, out, err = discreet(*check, *policy)
        assert code == 1, out
        assert "exceeds the policy: epsilon 2.846 at" in err
    out = output(*checks[0], "--max-epsilon", "2.9", "--delta", "1e-5")[0]
    assert "2 charges to views: 2e-06-approximate 0.2-zCDP" in out
    assert "outputs decided what was given back" in out


def test_help_explains_budgets():
    code, out, _ = discreet("budget", "--help")
    assert code == 0
    for word in ("init", "show", "history", "export", "exit code 3", "before they draw"):
        assert word in " ".join(out.split())
    assert "--ledger" in discreet("top-k", "--help")[1]
    assert "no signature" in " ".join(discreet("verify", "--help")[1].split())


def test_charges_in_epsilon_are_shown_in_epsilon_within_120_columns():
    discreet("budget", "init", "l", "--dataset", "views", "--epsilon", "2", "--delta", "1e-5")
    discreet("budget", "init", "l", "--dataset", "clicks", "--rho", "1", "--delta", "1e-5")
    named = ["--once", "visits-2026-11-01", "--label", "a long label " * 9, "--l0", "1", "-q"]
    for dataset, cost in (("views", ["--epsilon", "0.5", "--delta", "1e-6"]), ("clicks", ["--rho", "0.1"])):
        columns = ["--user", "user", "--item", "item", "--delta", "1e-6", "--ledger", "l", "--dataset", dataset]
        assert discreet("count", "log.csv", *columns, *cost, *named)[0] == 0
    out = discreet("budget", "show", "l")[1]
    lines = [line.split() for line in out.splitlines()]
    assert [lines[0][1], *lines[1][:7]] == ["rho", "clicks", "1", "0.1", "0.9", "1e-05", "1e-06", "9e-06"]
    assert [lines[2][1], *lines[3][:7]] == ["epsilon", "views", "2", "0.5", "1.5", "1e-05", "1e-06", "9e-06"]
    assert max(map(cell_len, out.splitlines())) == 120
    assert [row[-3:] for row in lines[6:8]] == [["0.5", "1e-06", "released"], ["0.1", "1e-06", "released"]]
    assert all("visits-2026-11-01" in row for row in lines[6:8])
    for command in ("show", "history"):
        out = discreet("budget", command, "l", "--dataset", "views")[1]
        assert ("epsilon" in out, " rho " in out) == (True, False)


def test_wide_characters_keep_the_columns_aligned():
    for name in ("数据集", "views"):
        assert discreet("budget", "init", "l", "--dataset", name, "--rho", "1", "--delta", "1e-6")[0] == 0
    head, *rows = discreet("budget", "show", "l")[1].splitlines()
    ends = {cell_len(row[: row.index("  (")]) for row in rows}
    assert ends == {cell_len(head[: head.index("  total")])}
