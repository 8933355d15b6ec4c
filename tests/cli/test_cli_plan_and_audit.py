"""The commands `discreet plan`, `discreet stream plan` and `discreet audit`."""

import json
from functools import partial

import pytest
from command import BUDGET, discreet, errors_of, output

import discreet as dp
from discreet.testing import seeded_rng


def test_plans_need_no_data():
    out = output("plan", "count", "--epsilon", "1", "--delta", "1e-6", "--l0", "10")[0]
    assert "users for a 50 % chance" in out
    out = output("plan", "top-k", "-k", "3", *BUDGET, "--json")[0]
    assert json.loads(out)["mechanism"].startswith("GumbelTopK(k=3")
    assert discreet("plan", "select", *BUDGET)[0] == 0
    assert discreet("plan", "count", "--rho", "1", "--epsilon", "1", "--delta", "1e-6")[0] == 2


def test_an_audit_reports_its_pairs():
    out = output("audit", "count", "--epsilon", "1", "--delta", "1e-2", "--l0", "2", "--pairs", "30")[0]
    assert "On 30 pairs of neighbouring tables nothing exceeded the promise." in out
    assert "An audit cannot show:" in out
    assert discreet("audit", "select", *BUDGET, "--l0", "2", "--pairs", "0")[0] == 2


def test_an_audit_checks_the_given_epsilon():
    asked = ("--method", "gumbel", "-k", "2", "--epsilon", "1", "--delta", "1e-2", "--pairs", "5")
    out = output("audit", "top-k", *asked)[0]
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
    err = errors_of("plan", "count", "--epsilon", "1e-10", "--delta", "1e-14")
    assert "--epsilon (1e-10) and --delta (1e-14) are too small for this release: give larger values" in err


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
    assert remedy in errors_of("audit", *arguments)


SHAPE = "users=5000,items=2000,exponent=1,items-per-user=10"


def test_a_plan_takes_a_shape():
    out = output("plan", "count", *BUDGET, "--like", SHAPE)[0]
    assert "5,000 users, 2,000 items, exponent 1, 10 items per user" in out
    assert "Recommended (*)" in out
    assert "50 % chance" not in out
    out = output("plan", "top-k", "-k", "3", *BUDGET, "--like", SHAPE + ",cutoff=3,spread=0.5", "--json")[0]
    assert json.loads(out)["comparison"]["like"].endswith("cutoff 3, spread 0.5")
    assert [row["name"] for row in json.loads(out)["comparison"]["mechanisms"]][:2] == ["gumbel", "discover+peel"]


def test_a_plan_takes_a_public_file(log):
    out = output("plan", "select", "--l0", "2", *BUDGET, "--like", log, "--user", "user", "--item", "item")[0]
    assert "the given public table: 3,000 users, 52 items" in out
    assert "--user and --item" in errors_of("plan", "count", *BUDGET, "--like", log)
    assert "together" in errors_of("plan", "count", *BUDGET, "--like", log, "--user", "user")
    errors_of("plan", "count", *BUDGET, "--like", "no such.csv", "--user", "user", "--item", "item", code=1)


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
        "users=5000,median=3,p95=6,items=2",
        SHAPE + ",users=3",
        "users=5000,items=2000,exponent=1,items-per-user=3000",
    ],
)
def test_a_wrong_shape_is_refused(like):
    err = errors_of("plan", "count", *BUDGET, "--like", like)
    assert "--like" in err


def test_a_plan_finds_the_privacy_cost_for_a_number_of_users():
    out = output("plan", "count", "--l0", "10", "--delta", "1e-6", "--users", "50")[0]
    assert "An item of 50 users after clipping to l0=10 is named with a chance of 95% at rho = 0.11 or epsilon =" in out
    promise = ("--epsilon", "1", "--delta", "1e-6")
    code, out, _ = discreet("plan", "select", "--l0", "3", *promise, "--users", "50", "--json")
    needed = json.loads(out)["needed"]
    assert needed["rho"] is None
    assert 0 < needed["epsilon"] < 2
    assert discreet("plan", "count", "--delta", "1e-6", "--users", "0")[0] == 2
    assert "--like" in errors_of("plan", "count", "--delta", "1e-6", "--users", "50")
    code, out, _ = discreet("plan", "count", *BUDGET, "--like", "users=5000,median=8,p95=40,items=2000,top20=700")
    assert (code, "Recommended" in out) == (0, True)
    code, out, _ = discreet("plan", "count", *BUDGET)
    assert (code, "--like users=...,median=...,p95=..." in out) == (0, True)
    assert discreet("plan", "count", "--delta", "1e-6")[0] == 2


STREAM = ["--delta", "1e-6", "--l0", "1", "--horizon", "30"]


def test_a_stream_is_planned_without_data():
    code, out, errors = discreet("stream", "plan", "--rho", "0.5", *STREAM)
    assert (code, errors) == (0, "")
    made = dp.plan(dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=30))
    assert out.strip() == str(made).strip()
    out = output("stream", "plan", "--epsilon", "1", *STREAM, "--unit", "user", "--linf", "3", "--json")[0]
    content = json.loads(out)
    assert content["dp"] == [1.0, 1e-6]
    assert content["unit"] == "user"
    assert content["users_for_50_percent"] < content["users_for_95_percent"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["--unit", "user"], "--linf"),
        (["--horizon", "0"], "horizon"),
        (["visits.csv"], "This reads no data. Leave out the file."),
    ],
)
def test_a_plan_of_a_stream_refuses_wrong_options(given, text):
    assert text in errors_of("stream", "plan", "--rho", "0.5", *STREAM, *given)


@pytest.fixture
def pages(tmp_path):
    (tmp_path / "pages.txt").write_text("home\nhelp\nnews\n")
    return tmp_path / "pages.txt"


def test_a_plan_of_public_items_has_the_noise_of_the_count(pages, tmp_path):
    code, out, errors = discreet("plan", "count", *BUDGET, "--items", pages)
    assert (code, errors) == (0, "")
    assert "CorrelatedCounts of 3 items" in out
    assert "others: GaussianCounts" in out
    assert "(1, 0)-DP" in discreet("plan", "count", "--epsilon", "1", "--items", pages)[1]
    assert "another item" not in out
    code, out, _ = discreet("plan", "count", *BUDGET, "--items", pages, "--json")
    content = json.loads(out)
    log = {"user": [*range(500)], "page": ["home"] * 500}
    release = dp.count(log, user="user", item="page", rho=1, delta=1e-6, items=["home", "help", "news"])
    assert content["mechanism"] == release.made_by
    assert content["deviation"] == release.sigmas[0]
    assert content["items"] == 3
    assert "users_for_50_percent" not in content


def test_a_plan_of_public_items_and_others_has_their_threshold(pages):
    given = ["plan", "count", *BUDGET, "--items", pages, "--l0", "5", "--others"]
    assert "another item needs" in discreet(*given)[1]
    content = json.loads(discreet(*given, "--json")[1])
    assert content["users_for_50_percent"] == dp.plan("count", rho=1, delta=1e-6, l0=5).users_for_50_percent
    out = discreet("plan", "count", *BUDGET, "--items", pages, "--others")[1]
    assert "other items: CalibratedCounts with rho 0.5 and delta 1e-06" in out


def test_a_plan_of_public_items_refuses_wrong_options(pages, tmp_path):
    assert "--items" in errors_of("plan", "count", *BUDGET, "--others")
    assert "--delta is missing" in errors_of("plan", "count", "--rho", "1", "--items", pages, "--others")
    assert "none.txt" in errors_of("plan", "count", *BUDGET, "--items", tmp_path / "none.txt", code=1)
    assert discreet("plan", "top-k", *BUDGET, "-k", "3", "--items", pages)[0] == 2
    for option in (["--k-bar", "9"], ["--relative-error", "0.2"]):
        assert f"--items excludes {option[0]}" in errors_of("plan", "count", "--rho", "1", "--items", pages, *option)
