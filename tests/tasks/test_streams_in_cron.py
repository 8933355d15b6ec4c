"""A stream in cron: every night a new process adds a day and publishes the running counts; a ledger pays once."""

import json

import pytest
from command import process
from made import days, polars, truth, visits


@pytest.fixture
def log():
    """Return visits, each with its number."""
    return polars.DataFrame(days(visits(rows=60_000, seed=6))).with_row_index("visit")


def test_a_nightly_process_publishes_running_counts_that_are_paid_for_once(log, tmp_path):
    stream, ledger = tmp_path / "pages.stream", tmp_path / "privacy.ledger"
    opened = process("budget", "init", ledger, "--dataset", "log", "--rho", "1", "--delta", "1e-5", "--unit", "event")
    paid, columns = ["--ledger", ledger, "--dataset", "log"], ["--user", "visit", "--item", "page", "-f", "json"]
    begun = process("stream", "init", stream, "--rho", "0.5", "--delta", "1e-6", "--l0", "1", "--horizon", "365", *paid)
    for day in ("2026-02-01", "2026-02-02"):
        log.filter(day=day).write_parquet(tmp_path / f"{day}.parquet")
        code, out, err = process("stream", "step", stream, tmp_path / f"{day}.parquet", *columns)
        assert (code, "per event" in err) == (0, True)
    rows = json.loads(out)["rows"]
    expected = truth(log.filter(polars.col("day") <= day), "page", user="visit")
    assert len(rows) > 20
    assert all(abs(row["count"] - expected[row["item"]]) <= 8 * row["sigma"] + 1 for row in rows)
    assert (opened[0], begun[0], "0.5" in process("budget", "show", ledger)[1]) == (0, 0, True)
