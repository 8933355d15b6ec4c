"""Plans of streams and of public items at the command line."""

import json

import pytest
from command import BUDGET, discreet

import discreet as dp

STREAM = ["--delta", "1e-6", "--l0", "1", "--horizon", "30"]


def test_a_stream_is_planned_without_data():
    code, out, errors = discreet("stream", "plan", "--rho", "0.5", *STREAM)
    assert (code, errors) == (0, "")
    made = dp.plan(dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=30))
    assert out.strip() == str(made).strip()
    code, out, _ = discreet("stream", "plan", "--epsilon", "1", *STREAM, "--unit", "user", "--linf", "3", "--json")
    assert code == 0
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
    code, _, errors = discreet("stream", "plan", "--rho", "0.5", *STREAM, *given)
    assert (code, text in errors) == (2, True), errors


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
    code, _, errors = discreet("plan", "count", *BUDGET, "--others")
    assert (code, "--items" in errors) == (2, True)
    code, _, errors = discreet("plan", "count", "--rho", "1", "--items", pages, "--others")
    assert (code, "--delta is missing" in errors) == (2, True)
    code, _, errors = discreet("plan", "count", *BUDGET, "--items", tmp_path / "none.txt")
    assert (code, "none.txt" in errors) == (1, True)
    assert discreet("plan", "top-k", *BUDGET, "-k", "3", "--items", pages)[0] == 2
    for option in (["--k-bar", "9"], ["--relative-error", "0.2"]):
        code, _, errors = discreet("plan", "count", "--rho", "1", "--items", pages, *option)
        assert (code, f"--items excludes {option[0]}" in errors) == (2, True), errors
