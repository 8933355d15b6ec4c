"""From a plan to a verified publication: plan, choose, release, verify, and stop when the budget is spent."""

import json

import pytest
from command import discreet
from made import outliers, polars, truth, visits

import discreet as dp


@pytest.fixture(scope="module")
def log():
    return visits(seed=5)


def test_a_release_is_planned_chosen_made_and_verified(log, tmp_path):
    plans = {rho: dp.plan("count", rho=rho, delta=1e-6, l0=30) for rho in (0.05, 0.1, 0.2)}
    rho = next(rho for rho, plan in plans.items() if plan.users_for_95_percent <= 150)
    budget = dp.Ledger.open(tmp_path / "ledger").dataset("log", rho=0.25, delta=1e-5)
    release = dp.count(log, user="user", item="page", l0=30, rho=rho, delta=1e-6, budget=budget)
    assert release.sigmas[0] == pytest.approx(plans[rho].deviation)
    assert outliers(release, truth(log, "page")) == []
    assert "clipped to 30 items each" in release.measure
    release.write(tmp_path / "pages.csv", certificate=True)
    verified = dp.verify(tmp_path / "pages.csv", ledger=tmp_path / "ledger")
    assert (verified.guarantee, verified.dataset) == (release.guarantee, "log")
    with pytest.raises(dp.BudgetExceeded, match="Nothing was charged"):
        dp.count(log, user="user", item="page", rho=0.25, delta=1e-6, budget=budget)


def test_the_same_at_a_shell_with_a_report(log, tmp_path):
    polars.DataFrame(log).write_parquet(tmp_path / "log.parquet")
    asked = ["--rho", "0.5", "--delta", "1e-6"]
    plan = json.loads(discreet("plan", "count", *asked, "--json")[1])
    count = ["count", tmp_path / "log.parquet", "--user", "user", "--item", "page", *asked]
    assert discreet(*count, "-o", tmp_path / "pages.parquet", "--certificate")[0] == 0
    code, out, _ = discreet("verify", tmp_path / "pages.parquet")
    assert (code, plan["mechanism"] in out) == (0, True)
    assert outliers(dp.Release.read(tmp_path / "pages.parquet"), truth(log, "page")) == []
    assert discreet(*count, "-o", tmp_path / "report.html")[0] == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert all(text in page for text in ("/page/00", "95% interval", "1e-06-approximate 0.5-zCDP per user"))
