"""The output of `discreet`: rows, formats, messages and help."""

import csv
import io
import json
import re

import pytest
from command import BUDGET, COUNT, SURE, discreet, errors_of, output, process

import discreet as dp
from discreet.formats import RELEASED


def test_rows_go_to_stdout_and_the_guarantee_to_stderr(log):
    code, out, err = process("count", log, *COUNT, *SURE)
    rows = list(csv.reader(io.StringIO(out)))
    assert code == 0
    assert rows[0] == ["item", "count", "sigma", "method"]
    assert {row[0] for row in rows[1:]} == {"everyone", "'=all"}
    assert all(abs(int(row[1]) - 3000) < 8 * float(row[2]) for row in rows[1:])
    assert "1e-13-approximate 1-zCDP per user" in err
    # About three releases in a thousand spend all, and say no more than the guarantee.
    spent = re.search(r"Spent: rho 0\.\d+ of 1, delta \S+ of 1e-13 in \d+ steps", err)
    assert (spent is not None) == ("Spent" in err)
    assert "secret" not in out + err


def test_quiet_prints_only_rows(log):
    assert discreet("count", log, *COUNT, *BUDGET, "--quiet")[2] == ""


@pytest.mark.parametrize("suffix", RELEASED)
def test_the_suffix_of_the_output_sets_the_format(log, tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    code, out, _ = discreet("count", log, *COUNT, *SURE, "-o", path)
    assert (code, out) == (0, "")
    assert b"everyone" in path.read_bytes()
    assert b"secret" not in path.read_bytes()


def test_formats_go_to_standard_output(log):
    assert len(json.loads(discreet("count", log, *COUNT, *SURE, "-f", "json")[1])["rows"]) == 2
    lines = discreet("count", log, *COUNT, *SURE, "-f", "jsonl")[1].splitlines()
    assert {json.loads(line)["item"] for line in lines} == {"everyone", "=all"}
    assert "everyone" in discreet("count", log, *COUNT, *BUDGET, "-f", "table")[1]


def test_epsilon_is_the_total_of_the_guarantee(log):
    _, _, err = discreet("count", log, *COUNT, "--epsilon", "5", "--delta", "1e-6")
    epsilon, delta = re.search(r"and \((\S+), (\S+)\)-DP", err).groups()
    assert float(epsilon) <= 5
    assert float(delta) == 1e-6


def test_help_lists_all_options_within_100_columns():
    out = output("count", "--help")[0]
    for option in ("user", "item", "rho", "epsilon", "delta", "sql", "output", "quiet", "relative-error"):
        assert f"--{option}" in out
    assert "--seed" not in out
    assert max(map(len, out.splitlines())) <= 100
    assert discreet("--version")[1] == f"discreet, version {dp.__version__}\n"
    assert "3    insufficient privacy budget" in discreet("--help")[1]


def test_the_demo_shows_rows_a_guarantee_and_the_next_step(tmp_path):
    out, err = output("demo", "--write", tmp_path / "log.csv")
    assert out.splitlines()[0].split("  ")[-1].strip() == "± 2 sigma"
    assert all(name in out for name in ("95% interval", "true count", "l0=5 count"))
    assert "zCDP per user" in err
    numbers = re.search(r"true count of ([\d,]+) of ([\d,]+) items", err).groups()
    inside, released = (int(number.replace(",", "")) for number in numbers)
    assert 0.85 < inside / released <= 1
    # The bound cuts the counts of most items by more than their noise.
    clipped, near = re.search(r"with --l0 5, has ([\d,]+) items .* for ([\d,]+) of them", err).groups()
    assert int(near.replace(",", "")) < int(clipped.replace(",", "")) / 2
    assert f"discreet count {tmp_path / 'log.csv'}" in err
    assert discreet("count", tmp_path / "log.csv", *COUNT, *BUDGET)[0] == 0


@pytest.mark.parametrize("shape", ["finance", "reddit"])
def test_the_demo_counts_a_table_in_the_shape_of_a_real_one(shape):
    out, err = output("demo", "--shape", shape)
    assert f"in the shape {shape}" in err
    lines = [
        line.replace(",", "").replace("\N{EN DASH}", "").split() for line in out.splitlines()[1:] if line[0] != "."
    ]
    assert len(lines) == 12
    for _, count, low, high, true, *_ in lines:
        # The interval has 1.96 sigma on each side. One of 24 counts is off by 7.4 sigma with a chance of 24 * 1.4e-13.
        assert abs(int(count) - int(true)) <= 3.8 * (int(high) - int(low)) / 2


def test_the_demo_names_its_shapes():
    err = errors_of("demo", "--shape", "nothing")
    assert all(shape in err for shape in ("finance", "reddit", "wikipedia", "movielens"))


def test_a_shape_can_be_written_and_counted(tmp_path):
    output("demo", "--shape", "reddit", "--write", tmp_path / "log.parquet")
    assert discreet("count", tmp_path / "log.parquet", *COUNT, *BUDGET)[0] == 0


def test_the_doctor_reports_a_working_installation():
    code, out, _ = process("doctor")
    assert code == 0
    assert "FAILED" not in out
    for line in ("discreet", "duckdb", "numpy", "entropy", "count"):
        assert re.search(rf"^ok +{line}", out, re.MULTILINE)


def test_top_k_prints_ranks_and_select_prints_only_items(log):
    out = output("top-k", log, *COUNT, *SURE, "--k", "2")[0]
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["item", "rank"]
    assert {row[0] for row in rows[1:]} == {"everyone", "'=all"}
    assert [row[1] for row in rows[1:]] == ["1", "2"]
    out, err = output("select", log, *COUNT, *SURE, "--l0", "3")
    assert set(out.split()) == {"item", "everyone", "'=all"}
    assert "was chosen" in err
    assert "secret" not in out + err


def test_bounded_counts_name_the_chosen_mechanism(log):
    out, err = output("count", log, *COUNT, "--epsilon", "1", "--delta", "1e-6", "--l0", "3", "-f", "json")
    assert "everyone" in out
    assert json.loads(out)
    assert "was chosen" in err
    assert discreet("count", log, *COUNT, *BUDGET, "--l0", "0")[0] == 2


def test_selection_methods_are_options(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("u,i\n" + "".join(f"{n},{page}\n" for n in range(900) for page in ("home", "help", f"own-{n}")))
    columns = (str(log), "--user", "u", "--item", "i", "--epsilon", "2", "--delta", "1e-15")
    out = output("top-k", *columns, "-k", "2", "--method", "discover+peel", "--l0", "3")[0]
    assert {line.split(",")[0] for line in out.splitlines()[1:]} == {"home", "help"}
    found = set()
    # Users stop adding weight to an item a few noise scales above its threshold: 1 run in 20 misses an item.
    for _ in range(8):
        out = output("select", *columns, "--l0", "3", "--method", "policy_laplace")[0]
        found |= {*out.splitlines()[1:]}
    assert found == {"help", "home"}
    assert discreet("top-k", *columns, "-k", "2", "--method", "discover+peel")[0] == 2
    out = output("plan", "select", "--l0", "9", "--method", "dp_sips", "--epsilon", "2", "--delta", "1e-6")[0]
    assert "IteratedSetUnion" in out
    audited = ("--epsilon", "2", "--delta", "1e-6", "--l0", "3", "--pairs", "5")
    assert discreet("audit", "select", *audited, "--method", "policy_laplace")[0] == 2
    assert discreet("audit", "top-k", *audited, "-k", "2", "--method", "discover+peel")[0] == 2


def test_a_note_reports_labels_that_csv_escapes(log, tmp_path):
    for form in ([], ["-o", tmp_path / "rows.csv"]):
        assert "apostrophe" in discreet("count", log, *COUNT, *BUDGET, *form)[2]
    for form in (["-f", "jsonl"], ["-o", tmp_path / "rows.parquet"], ["-q"]):
        assert "apostrophe" not in discreet("count", log, *COUNT, *BUDGET, *form)[2]


def test_a_release_of_one_item_is_singular(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("user,item\n" + "".join(f"{n},home\n" for n in range(5000)))
    assert discreet("count", path, *COUNT, *BUDGET)[2].startswith("1 item released")


@pytest.mark.parametrize("form", ["csv", "jsonl", "table"])
def test_rows_are_utf_8_in_any_system_encoding(tmp_path, form):
    path = tmp_path / "words.csv"
    path.write_text("user,item\n" + "".join(f"{n},漢字\n" for n in range(3000)), "utf-8")
    code, out, err = process("count", path, *COUNT, *BUDGET, "-f", form, encoding="cp1252")
    assert code == 0, err
    assert "漢字" in out


def test_the_message_about_no_items_names_the_encoding(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes(b"user,item\n" + b"".join(b"%d,caf\xe9\n" % n for n in range(3000)))
    code, out, err = discreet("count", path, *COUNT, *BUDGET)
    assert (code, out) == (0, "item,count,sigma,method\n")
    assert "0 items released" in err
    assert "UTF-8" in err


def test_the_demo_refuses_formats_that_cannot_be_counted(tmp_path):
    err = errors_of("demo", "--write", tmp_path / "log.jsonl")
    assert ".csv or .parquet" in err
    assert list(tmp_path.iterdir()) == []
