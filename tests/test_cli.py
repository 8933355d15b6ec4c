"""The command line: what goes where, and how it ends."""

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from discreet.engines import local

COUNT = ["--user", "user", "--item", "item"]
BUDGET = ["--rho", "1", "--delta", "1e-6"]


def discreet(*arguments, stdin=b"", encoding="utf-8", **options):
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "discreet", *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=60, **options)
    assert b"Traceback" not in done.stderr
    assert b"nanobind" not in done.stderr
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode(encoding)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "log.parquet"
    query = "SELECT u AS \"user\", i AS item FROM range(3000) a(u), (VALUES ('everyone'), ('=all')) b(i) " \
        "UNION ALL SELECT u, 'secret-' || u FROM range(50) c(u)"  # fmt: skip
    local.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def test_rows_go_to_stdout_and_the_guarantee_to_stderr(log):
    code, out, err = discreet("count", log, *COUNT, *BUDGET)
    rows = list(csv.reader(io.StringIO(out)))
    assert code == 0
    assert rows[0] == ["item", "count", "sigma"]
    assert {row[0] for row in rows[1:]} == {"everyone", "'=all"}
    assert all(abs(int(row[1]) - 3000) < 8 * float(row[2]) for row in rows[1:])
    assert "1e-06-approximate 1-zCDP per user" in err
    assert re.search(r"Spent: rho 0\.\d+ of 1, delta \S+ of 1e-06 in \d+ selections", err)
    assert "secret" not in out + err


def test_quiet_prints_rows_alone(log):
    assert discreet("count", log, *COUNT, *BUDGET, "--quiet")[2] == ""


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "parquet"])
def test_the_suffix_picks_the_format(log, tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    code, out, _ = discreet("count", log, *COUNT, *BUDGET, "-o", path)
    assert (code, out) == (0, "")
    assert b"everyone" in path.read_bytes()
    assert b"secret" not in path.read_bytes()


def test_formats_are_printed(log):
    assert len(json.loads(discreet("count", log, *COUNT, *BUDGET, "-f", "json")[1])["rows"]) == 2
    lines = discreet("count", log, *COUNT, *BUDGET, "-f", "jsonl")[1].splitlines()
    assert {json.loads(line)["item"] for line in lines} == {"everyone", "=all"}
    assert "everyone" in discreet("count", log, *COUNT, *BUDGET, "-f", "table")[1]


def test_standard_input_is_read_as_csv_or_parquet(log):
    rows = b"user,item\n" + b"".join(b"%d,x\n" % n for n in range(2000))
    for content in (rows, log.read_bytes()):
        code, out, _ = discreet("count", "-", *COUNT, *BUDGET, stdin=content)
        assert code == 0
        assert len(out.splitlines()) > 1
    assert discreet("count", "-", *COUNT, *BUDGET)[0] == 1


def test_a_query_is_counted(log):
    sql = f"SELECT \"user\" AS u, item AS i FROM '{log}'"
    code, out, _ = discreet("count", "--sql", sql, "--user", "u", "--item", "i", *BUDGET)
    assert code == 0
    assert "everyone" in out


def test_epsilon_is_the_total_promise(log):
    _, _, err = discreet("count", log, *COUNT, "--epsilon", "5", "--delta", "1e-6")
    epsilon, delta = re.search(r"and \((\S+), (\S+)\)-DP", err).groups()
    assert float(epsilon) <= 5
    assert float(delta) == 1e-6


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["LOG", *COUNT, "--rho", "0", "--delta", "1e-6"], 2, "rho must be"),
        (["LOG", *COUNT, "--rho", "-1", "--delta", "1e-6"], 2, "rho must be"),
        (["LOG", *COUNT, "--rho", "nan", "--delta", "1e-6"], 2, "rho must be"),
        (["LOG", *COUNT, "--rho", "1e308", "--delta", "1e-6"], 2, "rho must be"),
        (["LOG", *COUNT, "--rho", "x", "--delta", "1e-6"], 2, "not a valid float"),
        (["LOG", *COUNT, "--rho", "1", "--epsilon", "1", "--delta", "1e-6"], 2, "exactly one"),
        (["LOG", *COUNT, "--delta", "1e-6"], 2, "exactly one"),
        (["LOG", *COUNT, "--rho", "1"], 2, "--delta"),
        (["LOG", *COUNT, "--rho", "1", "--delta", "0"], 2, "delta must be"),
        (["LOG", *COUNT, "--rho", "1", "--delta", "1"], 2, "above 0 and below 1"),
        (["LOG", *COUNT, *BUDGET, "--k-bar", "0"], 2, "k_bar must be"),
        (["LOG", *COUNT, *BUDGET, "--k-bar", "1.5"], 2, "not a valid int"),
        (["LOG", *COUNT, *BUDGET, "--seed", "1"], 2, "No such option '--seed'. There is no seed"),
        (["LOG", "LOG", *COUNT, *BUDGET], 2, "one quoted glob"),
        (["LOG", *COUNT, *BUDGET, "--relative-error", "5"], 2, "relative_error must be below 1"),
        (["LOG", *COUNT, *BUDGET, "--relative-eror", "1"], 2, "--relative-error"),
        (["LOG", *COUNT, *BUDGET, "-f", "xml"], 2, "xml"),
        (["LOG", *COUNT, *BUDGET, "-f", "parquet"], 2, "-o"),
        (["LOG", *COUNT, *BUDGET, "-o", "x.xlsx"], 2, "suffix"),
        (["LOG", *COUNT, *BUDGET, "--sql", "SELECT 1"], 2, "exactly one of FILE"),
        ([*COUNT, *BUDGET], 2, "- for standard input"),
        (["/", *COUNT, *BUDGET], 1, "it is a folder; give its files as"),
        (["LOG", "--user", "usr", "--item", "item", *BUDGET], 1, "did you mean 'user'"),
        (["missing.parquet", *COUNT, *BUDGET], 1, "missing.parquet"),
        (["https://example.org/x.csv", *COUNT, *BUDGET], 1, "download"),
        (["--sql", "SELEC 1", *COUNT, *BUDGET], 1, "query"),
    ],
)
def test_bad_arguments_end_with_a_code_and_a_sentence(log, arguments, code, message):
    arguments = [str(log) if argument == "LOG" else argument for argument in arguments]
    ended, out, err = discreet("count", *arguments)
    assert ended == code
    assert message in err
    assert out == ""


def test_a_wrong_suffix_is_refused_before_anything_is_spent(log, tmp_path):
    started = time.monotonic()
    assert discreet("count", log, *COUNT, *BUDGET, "-o", tmp_path / "x.xlsx")[0] == 2
    assert time.monotonic() - started < 30
    assert list(tmp_path.iterdir()) == []


def test_nothing_released_is_done_all_the_same(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("user,item\n1,secret\n")
    code, out, err = discreet("count", path, *COUNT, *BUDGET)
    assert (code, out) == (0, "item,count,sigma\n")
    assert "0 items released" in err


@pytest.mark.skipif(os.name == "nt", reason="the shell is POSIX's")
def test_a_closed_pipe_is_no_traceback(log):
    command = f"{sys.executable} -m discreet count {log} --user user --item item --rho 1 --delta 1e-6 | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full disk to write to")
def test_a_full_standard_output_is_a_sentence(log):
    command = f"{sys.executable} -m discreet count {log} --user user --item item --rho 1 --delta 1e-6 > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert done.returncode == 1
    assert b"check standard output" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="limits are POSIX's")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_that_no_file_takes_are_not_lost(log, tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    tiny = f'ulimit -f 0; trap "" XFSZ; exec {sys.executable} -m discreet count {log} -o {path} "$@"'
    done = subprocess.run(["bash", "-c", tiny, "bash", *COUNT, *BUDGET], capture_output=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout.startswith(b"item,count,sigma\neveryone,") or b"\neveryone," in done.stdout
    assert b"cannot write" in done.stderr
    assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="it takes a POSIX shell to close standard output")
def test_a_closed_standard_output_is_refused_before_anything_is_counted(log, tmp_path):
    count = f"{sys.executable} -m discreet count {log} --user user --item item --rho 1 --delta 1e-6"
    done = subprocess.run(["bash", "-c", f"{count} >&-"], stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, b"give -o FILE" in done.stderr) == (2, True)
    path = tmp_path / "out.csv"
    subprocess.run(["bash", "-c", f"{count} -o {path} >&- 2>&-"], check=True, timeout=60)
    assert b"everyone" in path.read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_130_and_leaves_no_file(tmp_path, how):
    sql = "SELECT range % 1000 AS u, range % 7 AS i FROM range(1000000000000)"
    command = [sys.executable, "-m", "discreet", "count", "--sql", sql, "--user", "u", "--item", "i", *BUDGET]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    time.sleep(2)
    process.send_signal(how)
    started = time.monotonic()
    _, err = process.communicate(timeout=20)
    assert time.monotonic() - started < 3
    assert process.returncode == 130
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_help_reads_well_and_knows_its_options():
    code, out, _ = discreet("count", "--help")
    assert code == 0
    for option in ("--user", "--item", "--rho", "--epsilon", "--delta", "--sql", "--output", "--quiet"):
        assert option in out
    assert "--seed" not in out
    assert max(map(len, out.splitlines())) <= 100
    assert discreet("--version")[1].startswith("discreet, version ")


def test_the_demo_shows_rows_a_guarantee_and_the_next_step(tmp_path):
    code, out, err = discreet("demo", "--write", tmp_path / "log.csv")
    assert code == 0
    assert "true count" in out
    assert "zCDP per user" in err
    assert f"discreet count {tmp_path / 'log.csv'}" in err
    assert discreet("count", tmp_path / "log.csv", *COUNT, *BUDGET)[0] == 0


def test_the_doctor_finds_a_working_installation():
    code, out, _ = discreet("doctor")
    assert code == 0
    assert "FAILED" not in out
    for line in ("discreet", "duckdb", "numpy", "entropy", "count"):
        assert re.search(rf"^ok +{line}", out, re.MULTILINE)


def test_the_top_k_come_in_order_and_selected_items_alone(log):
    code, out, err = discreet("top-k", log, *COUNT, *BUDGET, "--k", "2")
    assert code == 0
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["item", "rank"]
    assert {row[0] for row in rows[1:]} == {"everyone", "'=all"}
    assert [row[1] for row in rows[1:]] == ["1", "2"]
    code, out, err = discreet("select", log, *COUNT, *BUDGET, "--l0", "3")
    assert code == 0
    assert set(out.split()) == {"item", "everyone", "'=all"}
    assert "was chosen" in err
    assert "secret" not in out + err


def test_bounded_counts_come_with_the_choice(log):
    code, out, err = discreet("count", log, *COUNT, "--epsilon", "1", "--delta", "1e-6", "--l0", "3", "-f", "json")
    assert code == 0
    assert "everyone" in out
    assert json.loads(out)
    assert "was chosen" in err
    assert discreet("count", log, *COUNT, *BUDGET, "--l0", "0")[0] == 2


def test_plans_need_no_data():
    code, out, _ = discreet("plan", "count", "--epsilon", "1", "--delta", "1e-6", "--l0", "10")
    assert code == 0
    assert "users for a chance of 50 %" in out
    code, out, _ = discreet("plan", "top-k", "-k", "3", *BUDGET, "--json")
    assert code == 0
    assert json.loads(out)["mechanism"].startswith("GumbelTopK(k=3")
    assert discreet("plan", "select", *BUDGET)[0] == 2
    assert discreet("plan", "count", "--rho", "1", "--epsilon", "1", "--delta", "1e-6")[0] == 2


def test_an_audit_names_the_worst_pair():
    code, out, _ = discreet("audit", "count", "--epsilon", "1", "--delta", "1e-2", "--l0", "2", "--pairs", "30")
    assert code == 0
    assert "30 neighbouring pairs: no violation" in out
    code, _, err = discreet("audit", "count", *BUDGET)
    assert code == 2
    assert "--l0" in err
    assert discreet("audit", "select", *BUDGET, "--l0", "2", "--pairs", "0")[0] == 2


def test_an_audit_comes_as_json_and_with_runs():
    arguments = ("audit", "count", "--epsilon", "1", "--delta", "1e-2", "--l0", "2", "--pairs", "30")
    code, out, err = discreet(*arguments, "--json", "--runs", "500")
    found = json.loads(out)
    assert code == 0
    assert found["pairs"] == 30
    assert found["violations"] == []
    assert "500 runs" in err
    code, out, _ = discreet(*arguments, "--runs", "500")
    assert "-DP holds" in out
    assert "no violation" in out.splitlines()[-1]


def test_an_epsilon_that_is_too_small_is_explained_in_what_was_given():
    code, _, err = discreet("plan", "count", "--epsilon", "1e-5", "--delta", "1e-6")
    assert code == 2
    assert "epsilon = 1e-05 and delta = 1e-06 leave rho" in err


def test_methods_of_selections_are_options(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("u,i\n" + "".join(f"{n},{page}\n" for n in range(900) for page in ("home", "help", f"own-{n}")))
    columns = (str(log), "--user", "u", "--item", "i", "--epsilon", "2", "--delta", "1e-6")
    code, out, err = discreet("top-k", *columns, "-k", "2", "--method", "discover+peel", "--l0", "3")
    assert code == 0, err
    assert {line.split(",")[0] for line in out.splitlines()[1:]} == {"home", "help"}
    code, out, err = discreet("select", *columns, "--l0", "3", "--method", "greedy")
    assert code == 0, err
    assert out.splitlines()[1:] == ["help", "home"]
    assert discreet("top-k", *columns, "-k", "2", "--method", "discover+peel")[0] == 2
    code, out, err = discreet("plan", "select", "--l0", "9", "--method", "dp_sips", "--epsilon", "2", "--delta", "1e-6")
    assert code == 0, err
    assert "IteratedSetUnion" in out
    audited = ("--epsilon", "2", "--delta", "1e-6", "--l0", "3", "--pairs", "5")
    assert discreet("audit", "select", *audited, "--method", "greedy")[0] == 2
    assert discreet("audit", "top-k", *audited, "-k", "2", "--method", "discover+peel")[0] == 2


def test_labels_that_csv_escapes_are_told_of(log, tmp_path):
    for form in ([], ["-o", tmp_path / "rows.csv"]):
        assert "apostrophe" in discreet("count", log, *COUNT, *BUDGET, *form)[2]
    for form in (["-f", "jsonl"], ["-o", tmp_path / "rows.parquet"], ["-q"]):
        assert "apostrophe" not in discreet("count", log, *COUNT, *BUDGET, *form)[2]


def test_help_says_how_commands_end_and_cuts_no_line():
    out = discreet("--help")[1]
    assert "..." not in out.partition("Commands:")[2]
    assert "3 a budget" in out
    assert "--spend" in discreet("count", "--help")[1]


def test_a_release_of_one_item_is_one_item(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("user,item\n" + "".join(f"{n},home\n" for n in range(5000)))
    assert discreet("count", path, *COUNT, *BUDGET)[2].startswith("1 item released")


@pytest.mark.parametrize("form", ["csv", "jsonl", "table"])
def test_rows_are_written_in_utf_8_whatever_the_system_prefers(tmp_path, form):
    path = tmp_path / "words.csv"
    path.write_text("user,item\n" + "".join(f"{n},漢字\n" for n in range(3000)), "utf-8")
    code, out, err = discreet("count", path, *COUNT, *BUDGET, "-f", form, encoding="cp1252")
    assert code == 0, err
    assert "漢字" in out


def test_rows_of_another_encoding_are_a_reason_that_is_named(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes(b"user,item\n" + b"".join(b"%d,caf\xe9\n" % n for n in range(3000)))
    code, out, err = discreet("count", path, *COUNT, *BUDGET)
    assert (code, out) == (0, "item,count,sigma\n")
    assert "UTF-8" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["count", "--rho", "1", "--l0", "1", "--delta", "1e-2"],
        ["top-k", "-k", "1", "--rho", "0.5", "--delta", "1e-2"],
        ["select", "--method", "threshold", "--epsilon", "1", "--l0", "20", "--delta", "1e-2"],
    ],
)
def test_what_the_help_of_audit_names_can_be_audited(arguments):
    assert discreet("audit", *arguments, "--pairs", "2")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["select", "--epsilon", "1", "--l0", "20", "--delta", "1e-6"], "--method threshold"),
        (["top-k", "-k", "1", "--method", "discover+peel", "--l0", "2", "--rho", "1", "--delta", "1e-6"], "gumbel"),
    ],
)
def test_what_cannot_be_audited_names_what_can(arguments, remedy):
    code, _, err = discreet("audit", *arguments)
    assert code == 2
    assert remedy in err


def test_the_demo_writes_what_can_be_counted_alone(tmp_path):
    code, _, err = discreet("demo", "--write", tmp_path / "log.jsonl")
    assert code == 2
    assert ".csv or .parquet" in err
    assert list(tmp_path.iterdir()) == []


def test_the_data_is_never_replaced_by_what_is_made_of_it(log, tmp_path):
    path = tmp_path / "log.parquet"
    path.write_bytes(log.read_bytes())
    if os.name != "nt":
        (tmp_path / "link.parquet").symlink_to(path)
    for data in (path, tmp_path / "*.parquet", tmp_path / "**" / "log.*"):
        for output in sorted(tmp_path.iterdir()):
            code, out, err = discreet("count", data, *COUNT, *BUDGET, "-o", output)
            assert (code, out) == (2, "")
            assert "-o would replace the data" in err
    assert path.read_bytes() == log.read_bytes()
    assert discreet("count", path, *COUNT, *BUDGET, "-o", tmp_path / "new.parquet")[0] == 0
    assert discreet("count", path, *COUNT, *BUDGET, "-o", tmp_path / "new.parquet")[0] == 0


def test_a_compressed_csv_file_may_come_by_standard_input():
    rows = "user,item\n" + "".join(f"{user},everyone\n" for user in range(3000))
    code, out, _ = discreet("count", "-", *COUNT, *BUDGET, stdin=gzip.compress(rows.encode()))
    assert code == 0
    assert "everyone" in out
