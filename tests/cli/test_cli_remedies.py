"""Remedies in errors of the command: they name options, commands and files that exist."""

import pytest
from command import BUDGET, COUNT, SURE, discreet, errors_of, output

SUM = ["--user", "user", "--item", "shop", "--column", "cents", "--bounds", "0", "5", "--l0", "1"]


def test_an_empty_sum_advises_no_plan_of_sums(tmp_path):
    (tmp_path / "sales.csv").write_text("user,shop,cents\n0,a,5\n")
    errors = output("sum", tmp_path / "sales.csv", *SUM, *SURE)[1]
    assert "0 items released" in errors
    assert "the selection needs a noisy count of more than" in errors
    assert "discreet plan" not in errors


def test_a_plan_or_audit_of_another_command_names_the_known_ones():
    for group in ("plan", "audit"):
        errors = errors_of(group, "sum", *BUDGET)
        assert f"`discreet {group}` knows count, top-k and select" in errors
        assert "Leave out the file" not in errors
        assert "Leave out the file" in errors_of(group, "log.csv")
    assert "`discreet stream plan` plans a stream" in errors_of("plan", "stream")


@pytest.mark.parametrize("runs", ["50", "1", "-1", "100000001"])
def test_wrong_runs_are_refused_before_the_audit(runs, monkeypatch):
    def never(*_arguments, **_options):
        raise AssertionError("the audit started")

    monkeypatch.setattr("discreet.audit.audit", never)
    errors = errors_of("audit", "count", "--epsilon", "1", "--delta", "1e-2", "--l0", "1", "--runs", runs)
    assert "neither 0 nor from 100" in errors


def test_the_help_of_runs_says_how_many_an_audit_makes():
    text = " ".join(discreet("audit", "count", "--help")[1].split())
    assert "at least 100" in text
    assert "instead of 1,000" in text


@pytest.mark.parametrize(
    "command",
    [
        ["plan", "count", *BUDGET],
        ["plan", "select", *BUDGET],
        ["select", "log.csv", *COUNT, *BUDGET],
        ["sum", "sales.csv", *SUM, *BUDGET],
        ["audit", "count", *BUDGET],
    ],
)
def test_l0_auto_of_another_command_names_the_command_that_has_it(command):
    assert "Only `discreet count --l0 auto` finds the number" in errors_of(*command, "--l0", "auto")


def test_a_plan_names_its_public_data_by_options():
    out = output("plan", "count", *BUDGET)[0]
    assert "give --like users=...,median=...,p95=..." in out
    assert "like=," not in out
    named = errors_of("plan", "count", *BUDGET, "--user", "u", "--item", "i")
    assert "--user and --item name the columns of a public table: give the table as --like" in named


def test_rho_and_epsilon_together_or_missing_suggest_no_value():
    both = errors_of("plan", "count", *BUDGET, "--epsilon", "1")
    assert "give exactly one of --rho and --epsilon: both are given. Leave out --rho or --epsilon." in both
    neither = errors_of("plan", "count", "--delta", "1e-6")
    assert "neither is given. --rho is the privacy cost in zCDP; --epsilon belongs to the total (epsilon," in neither
    assert "Try" not in both + neither
    ledger = ["budget", "init", "never.ledger", "--dataset", "views", "--delta", "1e-6"]
    assert "Leave out --rho or --epsilon." in errors_of(*ledger, "--rho", "1", "--epsilon", "1")
    stream = ["stream", "plan", "--delta", "1e-6", "--l0", "1"]
    assert "Leave out --rho or --epsilon." in errors_of(*stream, "--rho", "1", "--epsilon", "1")


def test_a_file_of_items_that_is_missing_or_no_text_is_named_so(tmp_path):
    (tmp_path / "log.csv").write_text("user,item\n1,a\n")
    count = ["count", tmp_path / "log.csv", *COUNT, *BUDGET, "--items"]
    assert "there is no such file" in errors_of(*count, tmp_path / "items.txt", code=1)
    (tmp_path / "items.txt").write_bytes(b"\xff\xff")
    assert "must be a text file in UTF-8" in errors_of(*count, tmp_path / "items.txt", code=1)


def test_the_total_of_an_existing_dataset_has_a_remedy_that_works(tmp_path):
    first, other = (["budget", "init", tmp_path / "l", "--rho", rho, "--delta", "1e-6", "--dataset"] for rho in (1, 2))
    output(*first, "views")
    assert "fixed for good: repeat this total. Another dataset is for the data" in errors_of(*other, "views")
    output(*first, "views")
    output(*other, "more views")


def test_verify_advises_only_what_the_command_can_do(tmp_path):
    (tmp_path / "rows.csv").write_text("item,count,sigma\n")
    missing = errors_of("verify", tmp_path / "rows.csv", code=1)
    assert "find the file that was written with these rows. Rows without a certificate cannot be verified" in missing
    assert "Release" not in missing
    command = missing.partition("`discreet ")[2].partition("`")[0]
    output("stream", "init", tmp_path / "s", *BUDGET, "--l0", "1", "--horizon", "3")
    (tmp_path / "log.csv").write_text("user,item\n" + "".join(f"{user},home\n" for user in range(2000)))
    output("stream", "step", tmp_path / "s", tmp_path / "log.csv", *COUNT, "-o", tmp_path / "rows.csv")
    names = {"FILE": tmp_path / "s", "ROWS": tmp_path / "rows.csv"}
    output(*(names.get(word, word) for word in command.split()))
    output("verify", tmp_path / "rows.csv")
    assert "--certificate needs -o FILE" in errors_of("stream", "show", tmp_path / "s", "--certificate")
    (tmp_path / "sum.html").write_text("<html></html>")
    assert "a report has no certificate. Verify the rows" in errors_of("verify", tmp_path / "sum.html", code=1)


def test_a_relative_error_has_one_range():
    for bad in ("0", "0.001", "1", "inf", "nan"):
        for command in (["count", "log.csv", *COUNT], ["plan", "count"]):
            errors = errors_of(*command, *BUDGET, "--relative-error", bad)
            assert "--relative-error must be a number at least 0.005 and below 1, not" in errors


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["log.jsonl"], "JSON lines have no line of names: give --user and --item, the keys to check"),
        (["log.jsonl", "--user", "user"], "give both --user and --item, or neither"),
        (["log.jsonl", "--column", "n"], "a column to sum needs --user and --item"),
        (["log.jsonl", "--time", "t"], "--time, --every, --since and --until need --user and --item"),
        (["log.csv", "--no-header"], "no names of columns: give --user and --item as numbers"),
        (["log.csv", *COUNT, "--column", "n", "--time", "n"], "the column to sum must not be a column of"),
    ],
)
def test_a_check_names_its_options(options, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / options[0]).write_text("{}\n")
    assert text in errors_of("check", *options)


@pytest.mark.parametrize("group", [[], ["budget"], ["stream"], ["plan"], ["audit"]])
def test_no_summary_of_a_command_is_cut_off(group):
    rows = discreet(*group, "--help")[1].partition("Commands:")[2].splitlines()
    assert len(rows) > 2
    assert "..." not in "".join(rows)


def test_the_quiet_option_of_a_shown_stream_speaks_of_rows_alone():
    text = " ".join(discreet("stream", "show", "--help")[1].split())
    assert "Print only rows and errors." in text
    assert "closed rounds" in " ".join(discreet("stream", "step", "--help")[1].split())
