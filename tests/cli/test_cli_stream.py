"""The command `discreet stream`: its memory, messages and errors."""

import json
import os
import sqlite3
from pathlib import Path

import pytest
from command import discreet, errors_of, output

from discreet import BinaryMechanism, Stream
from discreet.engines import local
from discreet.errors import StateError
from discreet.streams import file as stream_file
from discreet.streams.clock import Clock

PROMISE = ("--rho", "2", "--delta", "1e-6", "--l0", "1", "--horizon", "60")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def step():
    """Return a function that runs `stream step` on a new stream and a log with times as text."""
    assert discreet("stream", "init", "s", *PROMISE)[0] == 0
    with open("log.csv", "w", encoding="utf-8") as log:
        log.write("visit,page,when,note\n")
        log.writelines(f"{n},home,2026-01-{n % 28 + 1:02d}T10:00,fine\n" for n in range(2800))

    def stepped(*options, time="when", data="log.csv", run=discreet, **given):
        options = ("--time", time, *options) if time else options
        return run("stream", "step", "s", data, "--user", "visit", "--item", "page", *options, **given)

    return stepped


def shown():
    return json.loads(discreet("stream", "show", "s", "-f", "json")[1])


def test_a_stream_reads_files(tmp_path):
    path, day = str(tmp_path / "visits.stream"), tmp_path / "day.csv"
    _, err = output("stream", "init", path, "--rho", "2", "--delta", "1e-12", "--l0", "1", "--horizon", "30")
    assert "per event" in err
    lines = [f"{n},{'home' if n % 2 else 'help'},2026-01-0{n % 3 + 1}T10:00" for n in range(900)]
    day.write_text("visit,page,when\n" + "\n".join(lines) + "\n,home,2026-01-01\n7,x,never\n")
    step = ("stream", "step", path, str(day), "--user", "visit", "--item", "page")
    out = output(*step)[0]
    assert {line.split(",")[0] for line in out.splitlines()[1:]} == {"home", "help"}
    again = output("stream", "show", path)[0]
    assert again == out
    # Each event has one row. Events of the first day belong to round one, which is closed.
    days = ("--time", "when", "--every", "1d", "--since", "2026-01-01", "--until", "2026-01-06")
    out = output(*step, *days, "-f", "json", "--yes")[0]
    counts = {row["item"]: row["count"] for row in json.loads(out)["rows"]}
    assert 700 < counts["home"] < 800
    again = output(*step, *days, "-f", "json")[0]
    assert json.loads(again) == json.loads(out), "the same command changes nothing"
    assert discreet("stream", "step", path, str(day), "--user", "visit", "--item", "page", "--every", "1d")[0] == 2
    for every in ("1 fortnight", "0d", ""):
        assert discreet(*step, *days[:3], every, *days[4:])[0] == 2
    assert discreet(*step, *days[:-1], "2026-03-06")[0] == 2
    assert discreet("stream", "init", path, "--rho", "2", "--delta", "1e-12", "--l0", "1", "--horizon", "30")[0] == 2


def test_a_stream_refuses_items_of_another_type(tmp_path):
    log, promise = str(tmp_path / "log.parquet"), ("--rho", "2", "--delta", "1e-6", "--l0", "1", "--horizon", "30")
    local.connect().execute(f"COPY (SELECT n AS visit, n % 2 AS page FROM range(900) t(n)) TO '{log}' (FORMAT parquet)")
    for items, expected in (("text", 1), ("integer", 0)):
        path = str(tmp_path / items)
        assert discreet("stream", "init", path, *promise, "--items", items)[0] == 0
        code, out, err = discreet("stream", "step", path, log, "--user", "visit", "--item", "page")
        assert (code, "text, not integer" in err) == (expected, expected == 1)
    assert {line.split(",")[0] for line in out.splitlines()[1:]} == {"0", "1"}


def test_an_event_is_in_one_round_and_until_is_the_last(tmp_path):
    path, log = str(tmp_path / "visits.stream"), tmp_path / "log.csv"
    assert discreet("stream", "init", path, "--rho", "0.5", "--delta", "1e-12", "--l0", "1", "--horizon", "30")[0] == 0
    rows = [f"v1,secret,2026-01-{n:02d}" for n in range(1, 31)]
    log.write_text("visit,page,when\n" + "\n".join([*rows, "v2,odd,9999-01-01", "v3,odd,1999-01-01"]) + "\n")
    step = ("stream", "step", path, str(log), "--user", "visit", "--item", "page", "--time", "when", "--every", "1d")
    out, err = output(*step, "--since", "2026-01-01", "--until", "2026-01-31", "-f", "json", "--yes")
    assert json.loads(out)["rows"] == []
    assert "round 30" in err


def test_a_stream_remembers_the_start_and_length_of_rounds(step):
    days = ("--every", "1d", "--since", "2026-01-01")
    _, err = step(*days, "--until", "2026-01-11", "--yes", "-q", run=output)
    assert err == "Closed rounds 1 to 10, 2026-01-01 to 2026-01-11.\n"
    code, _, err = step("--until", "2026-01-12")
    assert (code, err.splitlines()[0]) == (0, "Closed round 11, 2026-01-11 to 2026-01-12.")
    # The same clock in other words is no contradiction.
    _, err = step("--every", "24h", "--since", "2026-01-01T02:00+02:00", "--until", "2026-01-21", run=output)
    assert err.startswith("Closed rounds 12 to 20, 2026-01-12 to 2026-01-21.\n")
    for contradiction in (("--since", "2026-01-21"), ("--every", "1w"), ("--every", "1d", "--since", "2025-12-31")):
        err = step(*contradiction, "--until", "2026-01-28", run=errors_of, code=1)
        assert "take 1d since 2026-01-01" in err
        assert "leave out --since" in err
    counts = shown()
    assert counts["round"] == 20
    assert 1900 < counts["rows"][0]["count"] < 2100
    code, _, err = step("--until", "2026-01-21", "-q")
    assert (code, err) == (0, "No new round was closed, so no row was added. The last closed round is round 20.\n")


def test_times_without_a_clock_are_refused(step):
    for given in (("--every", "1d"), ("--since", "2026-01-01"), ()):
        assert "--since and --every" in step(*given, "--until", "2026-01-03", "--yes", run=errors_of)
    assert "--time needs --until" in step("--every", "1d", "--since", "2026-01-01", run=errors_of)
    assert "need --time" in step("--until", "2026-01-03", time=None, run=errors_of)


def test_the_last_round_must_be_complete(step):
    days = ("--every", "1d", "--since", "2026-01-01", "--yes")
    for until, text in (
        ("2026-01-08T05:00", "round 7 ends 2026-01-08"),
        ("2026-01-01T05:00", "round 1 ends 2026-01-02"),
        ("2026-01-01", "must be later than 2026-01-01"),
        ("2025-12-01", "must be later than 2026-01-01"),
        ("soon", "a time is written"),
    ):
        assert text in step(*days, "--until", until, run=errors_of)
    assert shown()["round"] == 0


def test_a_time_column_of_another_type_is_refused(step):
    times = "t::TIMESTAMP AS t, t::TIMESTAMP::DATE AS d, t::TIMESTAMPTZ AS z, t::VARCHAR AS s"
    rows = "(SELECT *, \"when\" AS t FROM 'log.csv')"
    query = f"SELECT visit, page, visit AS n, visit / 3 AS x, {times} FROM {rows}"
    local.connect().execute("SET TimeZone = 'UTC'").execute(f"COPY ({query}) TO 'log.parquet' (FORMAT parquet)")
    days = ("--every", "1d", "--since", "2026-01-01")
    for time in ("n", "x"):
        err = step(*days, "--until", "2026-01-03", "--yes", time=time, data="log.parquet", run=errors_of, code=1)
        assert "cannot hold times" in err
    assert shown()["round"] == 0
    for number, time in enumerate("tdz", 1):
        step(*days, "--until", f"2026-01-{number + 1:02d}", time=time, data="log.parquet", run=output)
    assert 270 < shown()["rows"][0]["count"] < 330
    assert step(*days, "--until", "2026-01-05", time="s", data="log.parquet")[0] == 2


def test_the_time_column_must_differ_from_the_others(step):
    err = step("--every", "1d", "--since", "2026-01-01", "--until", "2026-01-03", "--yes", time="visit", run=errors_of)
    assert "three different columns" in err


def test_a_text_column_of_times_is_confirmed_once(step):
    days = ("--every", "1d", "--since", "2026-01-01")
    for answer, ended, text in ((b"", 2, "Pass --yes"), (b"n\n", 1, "Nothing was changed")):
        code, out, err = step(*days, "--until", "2026-01-03", time="note", stdin=answer)
        assert (code, out) == (ended, "")
        assert "closes rounds 1 to 2 permanently" in err
        assert text in err
    assert shown()["round"] == 0
    # No round was closed, so the stream remembers no clock yet.
    step("--every", "1d", "--since", "2026-01-02", "--until", "2026-01-04", stdin=b"y\n", run=output)
    assert step("--until", "2026-01-05")[0] == 0
    assert "'note' is text" in step("--until", "2026-01-06", time="note", run=errors_of)
    assert shown()["round"] == 3


def test_rounds_without_times_come_before_rounds_with_times(step):
    assert step(time=None)[2].startswith("Closed round 1.\n")
    assert step("--round", "5", time=None)[2].startswith("Closed rounds 2 to 5.\n")
    err = step("--every", "1d", "--since", "2026-01-01", "--until", "2026-01-08", run=errors_of)
    assert "5 rounds closed without times" in err


def test_a_clock_is_stored_only_together_with_a_round(step, monkeypatch):
    assert step(time=None)[0] == 0

    def stop(name):
        if name == "writing":
            raise KeyboardInterrupt

    days = ("--every", "1d", "--until", "2026-01-08", "--yes")
    with monkeypatch.context() as patched:
        patched.setattr(stream_file, "failure_point", stop)
        assert step("--since", "2025-12-31", *days)[0] == 130
    with Stream.open("s") as stream:
        assert (stream.round, stream.clock) == (1, None)
    step("--since", "2026-01-01", *days, run=output)
    with Stream.open("s") as stream:
        assert stream.clock.since == "2026-01-01"


def test_a_stream_file_without_a_clock_still_opens(step):
    with sqlite3.connect("s") as file:
        (text,) = file.execute("SELECT mechanism FROM stream").fetchone()
    file.close()
    # The file has no clock yet; the first step with times adds it.
    assert list(json.loads(text)) == ["items", "kind", "sigma", "delta", "l0", "horizon", "linf", "unit"]
    days = ("--every", "1d", "--since", "2026-01-01", "--until", "2026-01-03", "--yes")
    assert step(*days)[0] == 0
    with Stream.open("s") as stream:
        assert (stream.clock.since, stream.clock.every, stream.clock.column) == ("2026-01-01", "1d", "when")
    with sqlite3.connect("s") as file:
        file.execute("UPDATE stream SET mechanism = replace(mechanism, '2026-01-01', '2026-01-02')")
    file.close()
    assert "is corrupt" in errors_of("stream", "show", "s", code=1)


def test_a_stream_without_rounds_says_so():
    code, out, err = discreet("stream", "init", "s", *PROMISE, "-q")
    assert (code, out, err) == (0, "", "")
    _, err = output("stream", "show", "s")
    assert "no round yet" in err
    assert "common enough" not in err
    with Stream.open("s") as stream:
        assert "no round yet" in repr(stream.show())
        assert stream.show().round == 0


def test_a_guarantee_per_user_needs_bounds_on_users():
    _, err = output("stream", "init", "s", *PROMISE, "--unit", "user", "--linf", "3")
    assert "per user" in err
    made = Stream.recommended(rho=2.0, delta=1e-6, l0=1, horizon=60, unit="user", linf=3)
    with Stream.open("s") as stream:
        assert stream.mechanism == made
        assert stream.guarantee.unit == "user"
        assert "at most 1 item, each at most 3 times" in repr(stream.show())
    assert made.deviation(60) > 2.9 * Stream.recommended(rho=2.0, delta=1e-6, l0=1, horizon=60).deviation(60)
    assert "needs --rounds" in errors_of("stream", "init", "t", *PROMISE, "--unit", "user")
    assert "needs --horizon" in errors_of("stream", "init", "t", *PROMISE[:-2], "--unit", "user", "--linf", "1")
    assert discreet("stream", "init", "t", *PROMISE, "--linf", "3")[0] == 2


def test_errors_of_streams_name_the_remedy(step):
    assert "must be a file" in step(time=None, data="-", stdin=b"visit,page\n1,home\n", run=errors_of)
    assert "discreet stream init nope.stream" in errors_of("stream", "show", "nope.stream", code=1)
    err = errors_of("stream", "show", "log.csv", code=1)
    assert "log.csv is no stream" in err
    assert "journal" not in err
    for kind in ("integer", "bytes"):
        assert discreet("stream", "init", kind, *PROMISE, "--items", kind)[0] == 0
        err = errors_of("stream", "step", kind, "log.csv", "--user", "visit", "--item", "visit", code=1)
        assert "give a Parquet file" in err


def test_closing_asks_and_reports_the_result(step):
    for answer, ended, text in ((b"", 2, "Pass --yes"), (b"n\n", 1, "Nothing was changed")):
        code, _, err = discreet("stream", "close", "s", stdin=answer)
        assert code == ended
        assert text in err
    assert shown()["round"] == 0
    code, out, err = discreet("stream", "close", "s", "--yes")
    assert (code, out) == (0, "")
    assert "s is closed" in err
    assert "closed" in discreet("stream", "show", "s")[2]


def test_a_clock_in_memory_is_fixed_by_the_first_round():
    stream = BinaryMechanism.from_rho(rho=1.0, delta=1e-6, l0=1, horizon=8).start()
    stream.keep(Clock(since="2026-01-01", every="1d"))
    stream.keep(Clock(since="2026-01-02", every="1d"))
    assert stream.clock is None
    stream.step([["a"]])
    assert stream.clock == Clock(since="2026-01-02", every="1d")
    stream.keep(Clock(since="2026-01-02", every="24h"))
    with pytest.raises(StateError, match="leave out --since"):
        stream.keep(Clock(since="2026-01-02", every="1w"))


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
@pytest.mark.parametrize("name", ["s", "links/t"])
@pytest.mark.parametrize("ending", ["", "-key", "-rounds", "-journal"])
def test_no_output_overwrites_a_file_of_its_stream(step, ending, name):
    assert step(time=None)[0] == 0
    before = Path(f"s{ending}").read_bytes()
    Path("links").mkdir()
    os.symlink(Path("s").resolve(), "links/t")
    os.link(f"s{ending}", "out.csv")
    for command in (("show", name), ("step", name, "log.csv", "--user", "visit", "--item", "page")):
        assert "would overwrite" in errors_of("stream", *command, "-o", "out.csv")
    assert Path(f"s{ending}").read_bytes() == before


def test_a_stream_with_times_refuses_rows_without_times(step):
    assert step("--every", "1d", "--since", "2026-01-01", "--until", "2026-01-03", "--yes")[0] == 0
    rows = ("stream", "step", "s", "log.csv", "--user", "visit", "--item", "page")
    code, _, err = discreet(*rows)
    assert (code, shown()["round"]) == (2, 2)
    assert "--time" in err
    assert discreet(*rows, "--round", "3")[0] == 0


@pytest.mark.parametrize("more", [("--item", "note"), ("--user", "page")])
def test_a_stream_refuses_several_columns(step, more):
    assert "give each option once" in step(*more, time=None, run=errors_of)
    assert shown()["rows"] == []


def test_a_step_by_times_counts_a_user_in_each_round(tmp_path):
    rows = [f"{user},home,2026-01-0{day}" for user in range(600) for day in (1, 2, 3)]
    (tmp_path / "rows.csv").write_text("\n".join(["who,page,when", *rows]), "utf-8")
    promise = ("--rho", "500", "--delta", "1e-9", "--l0", "1", "--horizon", "20", "--unit", "user", "--rounds", "2")
    output("stream", "init", "s", *promise)
    columns = ("--user", "who", "--item", "page", "--time", "when", "--every", "1d", "--since", "2026-01-01", "--yes")
    for until, expected in (("2026-01-02", 600), ("2026-01-04", 1200)):
        out = output("stream", "step", "s", "rows.csv", *columns, "--until", until, "-f", "json")[0]
        (row,) = json.loads(out)["rows"]
        assert abs(row["count"] - expected) < 9


def test_steps_with_and_without_times_name_the_same_users(tmp_path):
    rows = [f"{n},{n + 7},home,2026-01-0{day}" for n in range(600) for day in (1, 2)]
    (tmp_path / "rows.csv").write_text("\n".join(["who,visit,page,when", *rows]), "utf-8")
    promise = ("--rho", "500", "--delta", "1e-9", "--l0", "1", "--horizon", "20", "--unit", "user", "--rounds", "2")
    timed = ("--time", "when", "--every", "1d", "--since", "2026-01-01", "--yes")

    def step(user, *options):
        return discreet("stream", "step", "s", "rows.csv", "--user", user, "--item", "page", *options, "-q")

    assert discreet("stream", "init", "s", *promise)[0] == 0
    assert step("who", *timed, "--until", "2026-01-02")[0] == 0
    code, _, err = step("visit", *timed, "--until", "2026-01-03")
    assert code == 1
    assert "'who' (numbers or text), not by 'visit'" in err
    assert step("who", *timed, "--until", "2026-01-03")[0] == 0
    code, out, err = step("who", "--round", "3")
    assert code == 0, err
    assert abs(int(out.splitlines()[1].split(",")[1]) - 1200) < 9
