"""The options of `discreet count` that find a bound on the items of a user, or measure what it keeps."""

import json

import pytest
from command import BUDGET, COUNT, discreet, errors_of, output

import discreet as dp


@pytest.fixture
def log(tmp_path):
    """Return a file of 3,000 users, of whom nine in ten have two items and the others five."""
    rows = "".join(f"{u},p{i}\n" for u in range(3000) for i in range(2 if u % 10 else 5))
    (tmp_path / "log.csv").write_text("user,item\n" + rows)
    return tmp_path / "log.csv"


def test_a_bound_that_was_found_is_in_every_output(log, tmp_path):
    out, errors = output("count", log, *COUNT, *BUDGET, "--l0", "auto", "-f", "table")
    assert "clipped to" in " ".join(out.split())
    assert "was found with privacy" in errors
    assert "pairs were kept" in errors
    for name in ("rows.csv", "rows.json", "rows.html"):
        more = ["--certificate"] if name.endswith(".csv") else []
        output("count", log, *COUNT, *BUDGET, "--l0", "auto", "-o", tmp_path / name, *more)
    for name in ("rows.csv.certificate.json", "rows.json"):
        content = json.loads((tmp_path / name).read_text())
        assert content["clipped"] is True
        assert content["l0"] in range(1, 8)
        assert 0 <= content["kept_share"][0] <= 1
        assert any("was found with privacy" in note for note in content["notes"])
    assert "was found with privacy" in (tmp_path / "rows.html").read_text()
    assert discreet("verify", tmp_path / "rows.csv")[0] == 0


def test_the_percentile_and_the_share_of_rho_are_options(log, tmp_path):
    given = ["--l0", "auto", "--percentile", "50", "--l0-share", "0.3", "-o", tmp_path / "rows.json"]
    assert discreet("count", log, *COUNT, *BUDGET, *given)[0] == 0
    release = dp.Release.read(tmp_path / "rows.json")
    assert release.l0 == 2
    assert "percentile=50, most=1000, l0_share=0.3" in release.made_by


def test_the_share_of_a_given_bound_is_stated(log, tmp_path):
    # The share has a sigma of 0.02 at this rho, and is stated up to 0.1: 20 deviations of the number of pairs away.
    given = ["--rho", "20", "--delta", "1e-6", "--l0", "2", "--kept-share", "-o", tmp_path / "rows.json"]
    _, errors = output("count", log, *COUNT, *given)
    assert "pairs were kept" in errors
    exact = (2 * 3000) / (2 * 2700 + 5 * 300)
    share = dp.Release.read(tmp_path / "rows.json").kept_share
    assert abs(share.value - exact) < 8 * share.sigma


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (["confirmed-counts", "--relative-error", "0.05", "--k-bar", "9"], "relative_error=0.05, k_bar=9"),
        (["private-count-release", "--k-bar", "9"], "PrivateCountRelease("),
        (["plume", "--l0", "2"], "m=2, m_prime=2"),
        (["plume-weighted-gaussian", "--l0", "2"], "selection='weighted_gaussian'"),
        (["plume-dp-sips", "--l0", "2"], "selection='dp_sips'"),
    ],
)
def test_a_mechanism_can_be_named(log, tmp_path, given, made):
    out = tmp_path / "rows.json"
    assert discreet("count", log, *COUNT, *BUDGET, "--mechanism", *given, "-o", out)[0] == 0
    assert made in dp.Release.read(out).made_by


@pytest.mark.parametrize(
    "given",
    [
        ["plume"],
        ["confirmed-counts", "--l0", "2"],
        ["plume", "--l0", "auto"],
        *(["plume", "--l0", "2", "--relative-error", "0.05"], ["plume", "--l0", "2", "--k-bar", "9"]),
        ["plume-dp-sips", "--l0", "5000"],
        ["plume", "--l0", "2", "--kept-share"],
    ],
)
def test_a_named_mechanism_refuses_options_of_others(log, given):
    assert discreet("count", log, *COUNT, *BUDGET, "--mechanism", *given)[0] == 2


@pytest.mark.parametrize(
    "given", [["--l0", "auto"], ["--l0", "2", "--kept-share"], ["--mechanism", "plume", "--l0", "2"]]
)
def test_standard_input_is_refused_before_a_charge(log, given):
    assert "Give a FILE" in errors_of("count", "-", *COUNT, *BUDGET, *given, stdin=log.read_bytes())


@pytest.mark.parametrize("given", ["some", "2.5", ""])
def test_a_bound_is_a_number_or_auto(log, given):
    assert "is not a valid integer or auto" in errors_of("count", log, *COUNT, *BUDGET, "--l0", given)


def test_a_plan_takes_a_number_alone():
    assert "--l0" in errors_of("plan", "count", *BUDGET, "--l0", "auto")


def test_the_help_of_check_names_the_private_way_to_a_bound():
    out = output("check", "--help")[0]
    assert "discreet count --l0 auto" in " ".join(out.split())
