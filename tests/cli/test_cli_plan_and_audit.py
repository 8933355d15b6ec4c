"""The commands `discreet plan` and `discreet audit`."""

import json
from functools import partial

import pytest
from command import BUDGET, discreet

import discreet as dp
from discreet.testing import seeded_rng


def test_plans_need_no_data():
    code, out, _ = discreet("plan", "count", "--epsilon", "1", "--delta", "1e-6", "--l0", "10")
    assert code == 0
    assert "users for a 50 % chance" in out
    code, out, _ = discreet("plan", "top-k", "-k", "3", *BUDGET, "--json")
    assert code == 0
    assert json.loads(out)["mechanism"].startswith("GumbelTopK(k=3")
    assert discreet("plan", "select", *BUDGET)[0] == 0
    assert discreet("plan", "count", "--rho", "1", "--epsilon", "1", "--delta", "1e-6")[0] == 2


def test_an_audit_reports_its_pairs():
    code, out, _ = discreet("audit", "count", "--epsilon", "1", "--delta", "1e-2", "--l0", "2", "--pairs", "30")
    assert code == 0
    assert "On 30 pairs of neighbouring tables nothing exceeded the promise." in out
    assert "An audit cannot show:" in out
    assert discreet("audit", "select", *BUDGET, "--l0", "2", "--pairs", "0")[0] == 2


def test_an_audit_checks_the_given_epsilon():
    asked = ("--method", "gumbel", "-k", "2", "--epsilon", "1", "--delta", "1e-2", "--pairs", "5")
    code, out, _ = discreet("audit", "top-k", *asked)
    assert code == 0
    assert "(1, 0.01)-DP holds on all pairs" in out


def test_an_audit_prints_json_and_makes_runs(monkeypatch):
    monkeypatch.setattr(dp.audit, "trial", partial(dp.audit.trial, rng=seeded_rng(1)))
    arguments = ("audit", "count", "--epsilon", "1", "--delta", "1e-2", "--l0", "2", "--pairs", "30")
    code, out, err = discreet(*arguments, "--json", "--runs", "500")
    found = json.loads(out)
    assert code == 0
    assert found["pairs"] == 30
    assert found["violations"] == []
    assert "500 runs" in err
    code, out, _ = discreet(*arguments, "--runs", "500")
    assert "-DP holds on all pairs" in out
    assert "no violation" in out.splitlines()[-1]


def test_the_error_about_a_small_epsilon_repeats_it():
    code, _, err = discreet("plan", "count", "--epsilon", "1e-10", "--delta", "1e-14")
    assert code == 2
    assert "epsilon = 1e-10 and delta = 1e-14 leave rho" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["count", "--rho", "1", "--delta", "1e-6", "--runs", "100"],
        ["count", "--rho", "1", "--l0", "1", "--delta", "1e-2"],
        ["top-k", "-k", "1", "--rho", "0.5", "--delta", "1e-2"],
        ["select", "--method", "threshold", "--epsilon", "1", "--l0", "20", "--delta", "1e-2"],
    ],
)
def test_the_commands_in_the_help_of_audit_are_audited(arguments):
    assert discreet("audit", *arguments, "--pairs", "2")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["select", "--epsilon", "1", "--l0", "20", "--delta", "1e-6"], "--method threshold"),
        (["top-k", "-k", "1", "--method", "discover+peel", "--l0", "2", "--rho", "1", "--delta", "1e-6"], "gumbel"),
    ],
)
def test_an_audit_that_is_refused_names_the_remedy(arguments, remedy):
    code, _, err = discreet("audit", *arguments)
    assert code == 2
    assert remedy in err


SHAPE = "users=5000,items=2000,exponent=1,items-per-user=10"


def test_a_plan_takes_a_shape():
    code, out, _ = discreet("plan", "count", *BUDGET, "--like", SHAPE)
    assert code == 0
    assert "5,000 users, 2,000 items, exponent 1, 10 items per user" in out
    assert "Recommended (*)" in out
    assert "50 % chance" not in out
    code, out, _ = discreet("plan", "top-k", "-k", "3", *BUDGET, "--like", SHAPE + ",cutoff=3,spread=0.5", "--json")
    assert code == 0
    assert json.loads(out)["comparison"]["like"].endswith("cutoff 3, spread 0.5")
    assert [row["name"] for row in json.loads(out)["comparison"]["mechanisms"]][:2] == ["gumbel", "discover+peel"]


def test_a_plan_takes_a_public_file(log):
    code, out, _ = discreet("plan", "select", "--l0", "2", *BUDGET, "--like", log, "--user", "user", "--item", "item")
    assert code == 0
    assert "the given public table: 3,000 users, 52 items" in out
    code, _, err = discreet("plan", "count", *BUDGET, "--like", log)
    assert code == 2
    assert "--user and --item" in err
    code, _, err = discreet("plan", "count", *BUDGET, "--like", log, "--user", "user")
    assert code == 2
    assert "together" in err
    code, _, err = discreet("plan", "count", *BUDGET, "--like", "no such.csv", "--user", "user", "--item", "item")
    assert code == 1


@pytest.mark.parametrize(
    "like",
    [
        "users=5000",
        "users=x,items=2,exponent=1,items-per-user=1",
        "users=1,2",
        SHAPE + ",more=1",
        SHAPE + ",median=3",
        "users=5000,median=3",
        "users=5000,median=3,p95=2",
        SHAPE + ",users=3",
        "users=5000,items=2000,exponent=1,items-per-user=3000",
    ],
)
def test_a_wrong_shape_is_refused(like):
    code, out, err = discreet("plan", "count", *BUDGET, "--like", like)
    assert (code, out) == (2, "")
    assert err


def test_a_plan_finds_the_privacy_cost_for_a_number_of_users():
    code, out, _ = discreet("plan", "count", "--l0", "10", "--delta", "1e-6", "--users", "50")
    assert code == 0
    assert "An item of 50 users after clipping to l0=10 is named with a chance of 95% at rho = 0.11 or epsilon =" in out
    promise = ("--epsilon", "1", "--delta", "1e-6")
    code, out, _ = discreet("plan", "select", "--l0", "3", *promise, "--users", "50", "--json")
    needed = json.loads(out)["needed"]
    assert needed["rho"] is None
    assert 0 < needed["epsilon"] < 2
    assert discreet("plan", "count", "--delta", "1e-6", "--users", "0")[0] == 2
    code, _, err = discreet("plan", "count", "--delta", "1e-6", "--users", "50")
    assert (code, "--like" in err) == (2, True)
    code, out, _ = discreet("plan", "count", *BUDGET, "--like", "users=5000,median=8,p95=40,items=2000,top20=700")
    assert (code, "Recommended" in out) == (0, True)
    code, out, _ = discreet("plan", "count", *BUDGET)
    assert (code, "--like users=...,median=...,p95=..." in out) == (0, True)
    assert discreet("plan", "count", "--delta", "1e-6")[0] == 2
