"""The work around releases: nights that are tried again, restated days, officers, plans, and several numbers."""

import re

import numpy as np
import pytest
from command import discreet, process
from made import outliers, polars, truth, visits

import discreet as dp
from discreet.testing import seeded_rng


@pytest.fixture(scope="module")
def log():
    return visits(seed=3)


@pytest.fixture
def file(log, tmp_path):
    polars.DataFrame(log).write_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


@pytest.fixture
def job(file, tmp_path):
    """The command of a night, without what changes from night to night."""
    ledger = tmp_path / "privacy.ledger"
    assert discreet("budget", "init", ledger, "--dataset", "log", "--rho", "1", "--delta", "1e-5")[0] == 0
    job = ["count", file, "--user", "user", "--item", "page", "--time", "ts", "--rho", "0.25", "--delta", "1e-6"]
    return [*job, "--ledger", ledger, "--dataset", "log"]


def test_a_night_that_is_tried_again_is_paid_for_once(job, tmp_path):
    night = [*job, "--since", "2026-02-01", "--until", "2026-02-02", "--once", "night-1", "-o", tmp_path / "1.csv"]
    assert process(*night)[0] == 0
    rows = (tmp_path / "1.csv").read_bytes()
    code, _, told = process(*night)
    assert (code, (tmp_path / "1.csv").read_bytes()) == (0, rows)
    assert "Nothing was charged or written" in told
    (tmp_path / "1.csv").unlink()
    assert process(*night)[0] == 5
    assert dp.Ledger.open(tmp_path / "privacy.ledger").dataset("log").remaining.rho == 0.75


def test_a_restated_day_names_the_day_that_it_replaces(job, tmp_path):
    day = [*job, "--since", "2026-02-01", "--until", "2026-02-02"]
    assert discreet(*day, "--label", "first day", "-o", tmp_path / "1.csv")[0] == 0
    assert (
        discreet(*day, "--label", "restated", "--replaces", "first day", "-o", tmp_path / "2.csv", "--certificate")[0]
        == 0
    )
    history = dp.Ledger.open(tmp_path / "privacy.ledger").history
    assert [(row.label, row.replaces) for row in history] == [("first day", ""), ("restated", "first day")]
    assert "replaces: first day" in discreet("verify", tmp_path / "2.csv")[1]


def test_an_empty_drop_under_cron_is_noticed_and_refunded(job, tmp_path):
    empty = [*job, "--since", "2027-01-01", "--charge", "spent", "--fail-if-empty", "-q", "-o", tmp_path / "1.csv"]
    code, _, told = process(*empty)
    assert code == 4
    assert "No item is common enough" in told
    assert dp.Ledger.open(tmp_path / "privacy.ledger").dataset("log").remaining.rho > 0.75


def test_a_policy_check_refuses_a_release_that_costs_too_much(job, tmp_path):
    assert discreet(*job, "--since", "2026-02-01", "-o", tmp_path / "pages.csv", "--certificate")[0] == 0
    policy = ["verify", tmp_path / "pages.csv", "--delta", "2e-6", "--max-epsilon"]
    assert discreet(*policy, "4")[0] == 0
    code, _, told = discreet(*policy, "1")
    assert code == 1
    assert "exceeds the policy" in told
    assert re.search(r"epsilon 3\.\d+ at delta 2e-06", told)


def test_an_officer_reviews_the_default():
    found = dp.audit.audit(dp.CalibratedCounts(rho=1, delta=1e-2), pairs=10, runs=100, rng=seeded_rng(1))
    assert (found.failed, found.pairs) == (False, 10)
    assert str(found).startswith("On 10 pairs of neighbouring tables nothing exceeded the promise.")
    assert "An audit cannot show" in str(found)


def test_a_plan_is_made_of_the_numbers_that_check_prints(file):
    told = discreet("check", file, "--user", "user", "--item", "page")[1]
    like = re.search(r"--like (\S+)", told)[1]
    plan = discreet("plan", "count", "--rho", "1", "--delta", "1e-6", "--like", like)[1]
    assert "CalibratedCounts" in plan
    shown = dp.plan("count", rho=1, delta=1e-6, like=dp.Shape.of_numbers(users=20_000, median=15, p95=20, items=60))
    assert "<table" in shown._repr_html_()


def test_public_items_cost_no_delta_and_rare_ones_are_counted(log):
    budget, pages = dp.Budget(rho=1, delta=0), [*(f"/page/{n:02d}" for n in range(60)), "/page/never"]
    release = dp.count(log, user="user", item="page", items=pages, rho=1, budget=budget)
    assert sorted(release.items) == sorted(pages)
    assert outliers(release, {**truth(log, "page"), "/page/never": 0}) == []


def test_users_and_rows_and_means_are_one_list_at_one_price(log, tmp_path):
    asked = {"user": "user", "item": "page", "rows": 20, "means": {"seconds": (0, 60)}, "l0": 60}
    seconds = np.random.default_rng(1).integers(0, 61, len(log["user"]))
    budget = dp.Budget(rho=1, delta=1e-6)
    release = dp.aggregate({**log, "seconds": seconds}, **asked, rho=1, delta=1e-6, budget=budget)
    assert outliers(release, truth(log, "page")) == []
    assert budget.remaining.rho == 0
    release.write(tmp_path / "pages.parquet", certificate=True)
    table = polars.read_parquet(tmp_path / "pages.parquet")
    most = table.row(by_predicate=polars.col("page") == "/page/00", named=True)
    assert abs(most["rows"] - np.sum(log["page"] == "/page/00")) < 8 * most["rows_sigma"]
    assert abs(most["seconds_mean"] - seconds[log["page"] == "/page/00"].mean()) < 8 * most["seconds_mean_sigma"]
    assert "Aggregates" in dp.verify(tmp_path / "pages.parquet").made_by


def test_days_of_a_user_are_the_unit_and_no_budget_of_users_pays_for_them(log, tmp_path):
    ledger = dp.Ledger.open(tmp_path / "privacy.ledger")
    by_day, by_user = (ledger.dataset(name, rho=1, delta=1e-5, unit=name) for name in ("user-day", "user"))
    asked = {"user": "user", "item": "page", "time": "ts", "unit": "user-day", "rho": 0.5, "delta": 1e-6}
    release = dp.count(log, **asked, budget=by_day)
    whole = {**log, "user": log["user"] * 100 + log["ts"].astype("datetime64[D]").astype(int) % 100}
    assert outliers(release, truth(whole, "page")) == []
    assert release.guarantee.unit == "user-day"
    with pytest.raises(dp.errors.ParameterError, match="user"):
        dp.count(log, **asked, budget=by_user)
    assert (by_day.remaining.rho, by_user.remaining.rho) == (0.5, 1)
