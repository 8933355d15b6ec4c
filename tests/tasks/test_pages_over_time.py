"""Pages by day and month: one release of a month, nightly releases, and a comparison of two months."""

import numpy as np
import pytest
from command import discreet, process
from made import days, outliers, polars, truth, visits

import discreet as dp


@pytest.fixture(scope="module")
def log():
    return visits()


@pytest.fixture
def file(log, tmp_path):
    polars.DataFrame(log).write_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_daily_top_pages_of_a_month_cost_a_twelfth_of_a_yearly_budget(log):
    year = dp.Budget(rho=1, delta=1e-5)
    month = year.split(12)[0]
    by_day = {"time": "ts", "every": "1d", "rho": month.rho, "delta": month.delta}
    release = dp.count(log, user="user", item="page", **by_day, budget=year)
    assert outliers(release, truth(days(log), "day", "page")) == []
    top = release.to_polars().sort("count", descending=True).group_by("ts").first()
    assert top["page"].to_list() == ["/page/00"] * 28
    assert year.remaining.rho == pytest.approx(11 / 12)
    assert len(year.split(11)) == 11


def test_a_nightly_job_releases_one_day_and_pays_from_a_ledger(log, file, tmp_path):
    ledger, out = tmp_path / "privacy.ledger", tmp_path / "pages.csv"
    assert discreet("budget", "init", ledger, "--dataset", "log", "--rho", "1", "--delta", "1e-5")[0] == 0
    job = ["count", file, "--user", "user", "--item", "page", "--time", "ts", "--rho", "0.5", "--delta", "1e-6"]
    job += ["--ledger", ledger, "--dataset", "log", "-o", out, "--certificate", "--overwrite"]
    codes = [process(*job, "--since", f"2026-02-0{n}", "--until", f"2026-02-0{n + 1}") for n in (1, 2, 3)]
    assert [code for code, *_ in codes] == [0, 0, 3]
    assert "Remaining for log: rho 0.5" in codes[0][2]
    assert "Privacy budget exceeded" in codes[2][2]
    second = {name: cells[days(log)["day"] == "2026-02-02"] for name, cells in log.items()}
    assert outliers(dp.Release.read(out), truth(second, "page")) == []
    assert discreet("verify", out, "--ledger", ledger)[0] == 0


def test_two_months_are_compared_and_only_real_changes_are_named(log):
    moved = np.where(log["page"] == "/page/05", "/page/40", log["page"])
    later = {**log, "page": np.where(moved == "/page/03", "/page/new", moved)}
    asked = {"user": "user", "item": "page", "l0": 30, "rho": 0.5, "delta": 1e-6}  # nobody has more pages
    change = dp.count(log, **asked).compare(dp.count(later, **asked), confidence=1 - 1e-12)
    rows = change.to_pandas().set_index("item")
    assert change.items[:1] == ["/page/40"]
    assert rows["changed"].fillna(False).sum() == 1
    difference = truth(later, "page")["/page/40"] - truth(log, "page")["/page/40"]
    assert abs(rows["difference"]["/page/40"] - difference) < 7 * rows["sigma"]["/page/40"]
    assert rows["after"].isna().to_dict()["/page/03"]
    assert rows["before"].isna().to_dict()["/page/new"]
    assert "1 of 58 items of both releases changed" in str(change)
    assert "2 items only before; 1 item only after" in str(change)
