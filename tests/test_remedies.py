"""Notes of releases, hints in messages, and remedies in errors: suggested commands and parameters must work."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from command import BUDGET, COUNT, discreet

import discreet as dp
from discreet.errors import BudgetExceeded, OnlyInPython, Parameter, ParameterError, SchemaError
from discreet.planning.choose import choose
from discreet.releasing import Asked

LOG = {"user": [u for u in range(2000) for _ in range(2)], "item": ["home", "help"] * 2000}
COLUMNS = {"user": "user", "item": "item"}


@pytest.fixture
def log(tmp_path):
    rows = "".join(f"{u},home\n" for u in range(2000))
    (tmp_path / "log.csv").write_text("user,item\n" + rows)
    return tmp_path / "log.csv"


def test_the_demo_names_a_command_that_runs():
    environment = {**os.environ, "PATH": os.defpath}
    done = subprocess.run([sys.executable, "-m", "discreet", "demo"], env=environment, capture_output=True, text=True)
    command = done.stderr.splitlines()[-1].partition("own: ")[2].partition(" count ")[0].split()
    assert command != ["discreet"]
    assert subprocess.run([*command, "--version"], env=environment, capture_output=True).returncode == 0


@pytest.mark.parametrize("verb", ["count", "top_k", "select"])
def test_a_large_delta_is_noted(verb):
    more = {"count": {}, "top_k": {"k": 2}, "select": {"l0": 2}}[verb]
    release = getattr(dp, verb)(LOG, **COLUMNS, **more, rho=1.0, delta=0.1)
    assert any("weak guarantee" in note for note in release.notes)
    usual = getattr(dp, verb)(LOG, **COLUMNS, **more, rho=1.0, delta=1e-6)
    assert not any("weak guarantee" in note for note in usual.notes)
    assert any("weak guarantee" in note for note in dp.plan(verb, **more, epsilon=1.0, delta=1e-3).reasons)
    assert any("weak guarantee" in note for note in dp.plan(verb, **more, epsilon=20.0, delta=1e-6).reasons)


def test_a_budget_without_delta_is_not_split():
    budget = dp.Budget(rho=1.0, delta=1e-6)
    dp.count(LOG, **COLUMNS, rho=0.3, delta=1e-6, budget=budget)
    assert "No delta is left" in repr(budget)
    with pytest.raises(BudgetExceeded, match="No delta is left"):
        budget.split(3)
    assert [share.rho for share in dp.Budget(rho=1.0, delta=0).split(2)] == [0.5, 0.5]


def test_a_budget_shows_its_total_once():
    budget = dp.Budget(epsilon=1.0, delta=1e-6)
    assert repr(budget).startswith("Budget of (1, 1e-06)-DP per user (added or removed): nothing is spent")
    assert repr(budget).count("rho") == 1
    dp.count(LOG, **COLUMNS, epsilon=1.0, delta=1e-6, budget=budget)
    assert repr(budget).endswith(
        "one release of at most this epsilon and delta took all of it; nothing is left for others"
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "l0", "is_whole"), [(0.5, 5e-7, None, False), (1.0, 1e-6, 3, True), (0.01, 1e-6, 3, False)]
)
def test_a_release_says_that_it_took_a_whole_budget(epsilon, delta, l0, is_whole):
    budget = dp.Budget(epsilon=1.0, delta=1e-6)
    total = budget.total
    assert f"add up to rho {total.rho:.6g} and delta {total.delta:g}, or one larger release" in repr(budget)
    release = dp.count(LOG, **COLUMNS, l0=l0, epsilon=epsilon, delta=delta, budget=budget)
    assert (budget.history[0].rho > 0.9 * total.rho) == is_whole
    assert any("took the whole budget of (1, 1e-06)-DP" in note for note in release.notes) == is_whole


@pytest.mark.parametrize(
    ("verb", "data", "more"),
    [
        ("count", LOG, COLUMNS),
        ("count", LOG, {**COLUMNS, "l0": 3}),
        ("top_k", LOG, {**COLUMNS, "k": 2}),
        ("select", LOG, {**COLUMNS, "l0": 2}),
        ("answer_queries", [1, 2], {}),
    ],
)
@pytest.mark.parametrize("spent", [0.0, 0.5])
def test_an_insufficient_budget_suggests_an_epsilon_that_fits(verb, data, more, spent):
    budget = dp.Budget(epsilon=1.0, delta=1e-6)
    if spent:
        dp.count(LOG, **COLUMNS, epsilon=spent, delta=5e-7, budget=budget)
    with pytest.raises(BudgetExceeded) as caught:
        getattr(dp, verb)(data, **more, epsilon=2.0, delta=9e-7, budget=budget)
    advice = str(caught.value).partition("Try ")[2].rstrip(".").split(" and ")
    tried = {name: float(value) for name, value in (part.split("=") for part in advice)}
    assert list(tried) == ["epsilon", "delta"]
    getattr(dp, verb)(data, **more, **tried, budget=budget)


SPENT = {**LOG, "cents": [5] * 4000}
# The options and parameters of verbs that take public items.
OF_ITEMS = {
    "count": ("", {}),
    "top-k": ("-k 1", {"k": 1}),
    "sum": ("--column cents --bounds 0 9 --l0 2", {"value": "cents", "bounds": (0, 9), "l0": 2}),
    "sum of found bounds": (
        "--column cents --bounds-percentile 95 --l0 2",
        {"value": "cents", "bounds": "auto", "l0": 2},
    ),
    "aggregate": ("--sum cents 0 9 --rows 2 --l0 2", {"sums": {"cents": (0, 9)}, "rows": 2, "l0": 2}),
}
COSTS = [{"rho": 0.2, "delta": 1e-7}, {"rho": 0.2}, {"rho": 0.2, "delta": 0}, {"epsilon": 5, "delta": 1e-7}]
# Numbers with Gaussian noise have no pure epsilon. Far below the third epsilon, no other one is tried.
COSTS += [{"epsilon": 5}, {"epsilon": 5, "delta": 0}, {"epsilon": 300, "delta": 1e-7}]


@pytest.mark.parametrize(
    ("verb", "cost"),
    [
        (verb, cost)
        for verb in OF_ITEMS
        for cost in COSTS
        if "rho" in cost or cost.get("delta") or verb in "count top-k"
    ],
)
def test_the_charge_suggested_for_public_items_fits(verb, cost, tmp_path):
    options, parameters = OF_ITEMS[verb]
    name, listed, log = verb.split()[0], tmp_path / "items", tmp_path / "log.csv"
    listed.write_text("home\nhelp\n")
    log.write_text("user,item,cents\n" + "".join(f"{u},home,5\n" for u in range(2000)))
    dp.Ledger.open(tmp_path / "l").dataset("shop", rho=0.05, delta=1e-5)
    budget = dp.Budget(rho=0.05, delta=1e-5)

    def by_command(given):
        paying = ["--ledger", tmp_path / "l", "--dataset", "shop"]
        words = [name, log, *COUNT, *options.split(), "--items", listed, *paying]
        code, _, errors = discreet(*words, *(f"--{key}={number}" for key, number in given.items()))
        assert code in (0, 3), errors
        return errors if code else ""

    def by_call(given):
        try:
            call = getattr(dp, name.replace("-", "_"))
            call(SPENT, **COLUMNS, **parameters, **given, items=["home", "help"], budget=budget)
        except BudgetExceeded as error:
            return str(error)
        return ""

    for spend in (by_command, by_call):
        remedy = spend(cost).partition("Try ")[2]
        numbers = {key: float(number) for key, number in re.findall(r"(rho|epsilon|delta)[= ]([\d.e-]*\d)", remedy)}
        is_without = "without" in remedy
        assert is_without == ("epsilon" in cost and "rho" in numbers)
        kept = {key: number for key, number in cost.items() if key != "epsilon" or not is_without}
        assert spend(kept | numbers) == ""


def test_every_suggested_number_fits_when_it_is_copied():
    random, tried = Random(5), 0
    verbs = [("count", {}), ("count", {"l0": 3}), ("top_k", {"k": 2}), ("select", {"l0": 1})]
    for _ in range(150):
        ((verb, more),) = random.choices(verbs, weights=(3, 3, 3, 1))  # a plan of `select` takes long
        unit, other = random.choice(["rho", "epsilon"]), random.choice(["rho", "epsilon"])
        budget = dp.Budget(**{unit: 10 ** random.uniform(-2, 1)}, delta=10 ** random.uniform(-9, -3))
        if random.random() < 0.4:
            left = budget.remaining
            budget.charge(dp.Guarantee(left.rho * random.uniform(0.1, 0.9), left.delta * random.uniform(0.01, 0.9)))
        asked = {other: 10 ** random.uniform(-2, 2), "delta": 10 ** random.uniform(-9, -3)}
        if random.random() < 0.2 and other == unit == "epsilon":
            asked["delta"] = budget.guarantee.dp[1]

        def required(given, verb=verb, more=more, budget=budget):
            rho = given.get("rho")
            choices = Asked(
                lambda e, d: choose(verb, **more, rho=rho, epsilon=e, delta=d),
                rho,
                given.get("epsilon"),
                given["delta"],
            )
            choices.require_paid(budget, choices.chosen()[0])

        try:
            required(asked)
        except BudgetExceeded as error:
            numbers = dict(re.findall(r"(rho|epsilon|delta)=([\d.e+-]*\d)", error.remedy))
            kept = {"delta": asked["delta"]} if {"rho", "epsilon"} & {*numbers} else asked
            required(kept | {name: float(number) for name, number in numbers.items()})
            tried += len(numbers) > 0
        except ParameterError:
            continue
    assert tried > 50


def test_the_error_about_pairs_gives_an_example_that_runs():
    pairs = [*zip(LOG["user"], LOG["item"], strict=True)]
    for given in (pairs, set(pairs), iter(pairs)):
        with pytest.raises(ParameterError, match=r"users, items = zip\(\*pairs\)"):
            dp.count(given, **COLUMNS, rho=1.0, delta=1e-6)
    users, items = zip(*pairs, strict=True)
    assert len(dp.count({"user": users, "item": items}, **COLUMNS, rho=1.0, delta=1e-6)) == 2


def test_a_plan_of_counts_shows_their_noise():
    mechanism = dp.ConfirmedCounts(rho=1.0, delta=1e-6)
    plan = dp.plan(mechanism)
    assert "standard deviation (sigma)" in str(plan)
    users, sigma = plan.deviations[-1]
    release = dp.count({"user": range(users), "item": ["a"] * users}, **COLUMNS, mechanism=mechanism)
    assert sigma / 2 <= release.sigmas[0] <= sigma * 2


def test_plan_and_audit_say_that_they_read_no_file():
    for arguments in (["plan", "log.csv"], ["plan", "count", "log.csv", *BUDGET], ["audit", "log.csv"]):
        code, _, err = discreet(*arguments)
        assert code == 2
        assert "This reads no data" in err
        assert "glob" not in err


def test_errors_about_a_ledger_name_options(log, tmp_path):
    ledger = tmp_path / "l"
    assert "weak guarantee" in discreet("budget", "init", ledger, "--dataset", "a", "--rho", "1", "--delta", "0.01")[2]
    assert discreet("budget", "init", ledger, "--dataset", "e", *BUDGET, "--unit", "event")[0] == 0
    again = discreet("budget", "init", ledger, "--dataset", "e", *BUDGET, "--unit", "event")[2]
    assert "exists already, and was not changed. Remaining: rho " in again
    charged = ["count", log, *COUNT, "--rho", "0.1", "--delta", "0.01", "--ledger", ledger, "--dataset"]
    code, _, err = discreet(*charged, "b")
    assert code == 2
    assert "discreet budget init" in err
    code, _, err = discreet(*charged, "e")
    assert code == 2
    assert "open one with --unit user" in err
    code, _, err = discreet(*charged, "a")
    assert code == 0
    assert "Note: No delta is left" in err


def test_verify_reports_matching_rows(log, tmp_path):
    out = tmp_path / "out.csv"
    discreet("count", log, *COUNT, *BUDGET, "-o", out, "--certificate")
    assert discreet("verify", out)[1].startswith("the rows match their certificate\n")
    Path(f"{out}.certificate.json").unlink()
    assert "find the file that was written with these rows" in discreet("verify", out)[2]


def test_a_misspelt_column_of_times_gets_the_near_miss(tmp_path):
    data, stream = tmp_path / "d.csv", tmp_path / "s"
    data.write_text("visit,page,when\n1,home,2026-01-01T10:00\n")
    discreet("stream", "init", stream, *BUDGET, "--l0", "1", "--horizon", "9")
    columns = ["--user", "visit", "--item", "page", "--time", "wen"]
    times = ["--since", "2026-01-01", "--every", "1d", "--until", "2026-01-02", "--yes"]
    assert "did you mean 'when'?" in discreet("stream", "step", stream, data, *columns, *times)[2]


OPTIONS = {name: f"--{name.replace('_', '-')}" for name in ("l0", "k_bar", "time", "unit", "certificate", "user")}
OPTIONS |= {"k": "-k", "value": "--column"}


@pytest.mark.parametrize(
    ("template", "values", "in_python", "in_shell"),
    [
        ("{l0} excludes {k_bar}: leave", [], "l0 excludes k_bar: leave", "--l0 excludes --k-bar: leave"),
        ("{k} ({}): lower {k}", [9], "k (9): lower k", "-k (9): lower -k"),
        ("{user} and {value} differ", [], "user and value differ", "--user and --column differ"),
        ("for {l0:'auto'} alone", [], "for l0='auto' alone", "for --l0 auto alone"),
        ("with {certificate:True}", [], "with certificate=True", "with --certificate"),
        ("give {user:=}, a name", [], "give user=, a name", "give --user, a name"),
        ("{} must be {!r}", [Parameter("unit"), "{l0}"], "unit must be '{l0}'", "--unit must be '{l0}'"),
        ("no column {}: l0 or time", ["'l0'"], "no column 'l0': l0 or time", "no column 'l0': l0 or time"),
        ("lower {scale}", [], "lower scale", "lower scale"),
        ("with {as_of:'2026'}", [], "with as_of='2026'", "with --as-of 2026"),
        ("it is late{}", [OnlyInPython(": write it again")], "it is late: write it again", "it is late"),
        ("{}: {}", ["a", ParameterError.about("lower {l0}")], "a: lower l0", "a: lower --l0"),
    ],
)
def test_an_error_spells_its_parameters_for_python_and_for_a_shell(template, values, in_python, in_shell):
    error = ParameterError.about(template, *values)
    assert (str(error), error.in_options(OPTIONS)) == (in_python, in_shell)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.in_options(OPTIONS), again.names) == (in_python, in_shell, error.names)


def test_an_error_knows_the_parameters_that_it_names():
    assert ParameterError.about("{l0} and {k} ({}) exclude {l0}", Parameter("rho", 1)).names == ("l0", "k", "rho")
    assert ParameterError("l0 and {k}").names == ()
    assert SchemaError("Try the column 'rho=1'").in_options(OPTIONS) == "Try the column 'rho=1'"


def test_a_short_budget_suggests_options_that_fit():
    short = BudgetExceeded(dp.Guarantee(1, 1e-6), dp.Guarantee(0.5, 1e-6))
    for error in (short, pickle.loads(pickle.dumps(short))):
        assert "this release costs rho=1;" in error.in_options(OPTIONS)
        assert error.in_options(OPTIONS).endswith("Nothing was charged. Try --rho 0.5.")
        assert str(error).endswith("Nothing was charged. Try rho=0.5.")


def test_errors_of_the_command_name_its_options(log):
    for given, expected in (
        (["--every", "1d"], "--every, --since and --until need --time"),
        (["--time", "ts"], "--time needs --every"),
        (["--others"], "--others needs --items"),
        (["--kept-share"], "--kept-share needs --l0"),
        (["--l0", "auto", "--k-bar", "7"], "--k-bar is for counts without --l0"),
        (["--memory", "1MB"], "--memory must be at least 256MiB"),
        (["--item", "user"], "--user, --item and --time must be"),
    ):
        code, _, errors = discreet("count", log, *COUNT, *BUDGET, *given)
        assert (code, expected in errors) == (2, True), errors
    for verb, given, expected in (
        ("top-k", ["-k", "0"], "-k must be a whole number"),
        ("top-k", ["-k", "2", "--l0", "1"], "--l0 needs --method discover+peel"),
        (
            "sum",
            ["--column", "item", "--bounds", "0", "1", "--l0", "1"],
            "--column must be the name of another column than --user",
        ),
        ("sum", ["--column", "n", "--bounds", "2", "1", "--l0", "1"], "--bounds must be in order: low must be below"),
        ("sum", ["--column", "n", "--bounds", "0", "1", "--l0", "1", "--resolution", "0"], "--resolution must be"),
        (
            "sum",
            ["--column", "n", "--bounds", "auto"],
            "'auto' is not a valid number. --bounds-percentile P, such as",
        ),
        (
            "sum",
            ["--bounds", "0", "--column", "n"],
            "'--column' is not a valid number. --bounds takes LOW HIGH",
        ),
        (
            "sum",
            ["--column", "n", "--bounds", "0", "0,5"],
            "'0,5' is not a valid number. --bounds takes LOW HIGH",
        ),
        ("aggregate", ["--sum", "n", "auto"], "Got unexpected extra argument (auto)"),
        (
            "aggregate",
            ["--mean", "n", "--l0", "2"],
            "with --l0, --rows is a number, and each column of --sum",
        ),
        ("aggregate", ["--mean", "n", "0", "5"], "--rows must be given with --mean: the most rows of a user"),
        (
            "aggregate",
            ["--rows", "2", "--mean", "n", "5", "0"],
            "--mean of 'n': bounds must be in order: low must be below",
        ),
    ):
        code, _, errors = discreet(verb, log, *COUNT, *given, *BUDGET)
        assert (code, expected in errors) == (2, True), errors


def test_a_path_in_an_error_is_no_option(tmp_path):
    for name in ("relative_error.csv", "k_bar"):
        assert f"{tmp_path / name}" in discreet("count", tmp_path / name, *COUNT, *BUDGET)[2]


def test_an_empty_release_says_why(log):
    empty = dp.count({"user": [1], "item": ["a"]}, **COLUMNS, rho=1.0, delta=1e-6)
    assert not len(empty)
    for text in (
        repr(empty),
        empty._repr_html_(),
        discreet("count", log, *COUNT, "--rho", "1e-6", "--delta", "1e-6")[2],
    ):
        assert "o item is common enough to be released" in text
        assert "Another release is charged again" in text
    found = dp.count(LOG, **COLUMNS, rho=1.0, delta=1e-6)
    assert "common enough" not in repr(found) + repr(found[:0])


@pytest.mark.parametrize("price", [2.5, None])
def test_the_remedy_for_a_column_of_floats_works(price):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": range(2001), "item": [*[7.5] * 2000, price]})
    with pytest.raises(SchemaError, match=r'\.round\(\)\.astype\("Int64"\)'):
        dp.count(frame, **COLUMNS, rho=1.0, delta=1e-6)
    frame["item"] = frame["item"].round().astype("Int64")
    assert dp.count(frame, **COLUMNS, rho=1.0, delta=1e-6).items == [8]


def test_a_guarantee_is_judged_by_its_better_pair(tmp_path):
    release = dp.top_k(LOG, **COLUMNS, k=50, rho=0.5, delta=1e-6)
    assert release.promise.endswith(", which implies (5.222, 2e-06)-DP")
    assert release.notes == ()
    release.write(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "e^epsilon with epsilon = 5.222" in page
    assert "This epsilon is large" not in page
    stated = dp.top_k(LOG, **COLUMNS, k=50, epsilon=12, delta=1e-6)
    assert stated.guarantee.quoted == (12, 1e-6)
    assert any("weak guarantee" in note for note in stated.notes)


def test_a_noun_for_the_number_one_is_singular():
    release = dp.count(LOG, **COLUMNS, mechanism=dp.PrivateCountRelease(rho=1.0, delta=1e-11, delta_star=1e-11))
    assert any("allows 1 selection of" in note for note in release.notes)


@pytest.mark.parametrize(
    ("missing", "remedy"),
    [
        ("--delta", "far below 1 / number of users"),
        ("--user", "`discreet check FILE` lists the columns"),
        ("--item", "`discreet check FILE` lists the columns"),
    ],
)
def test_a_missing_option_says_what_to_give(log, missing, remedy):
    given = {"--user": "user", "--item": "item", "--rho": "1", "--delta": "1e-6", "--l0": "1"}
    words = [word for pair in given.items() if pair[0] != missing for word in pair]
    code, _, err = discreet("select", log, *words)
    assert (code, f"Missing option '{missing}'" in err, remedy in " ".join(err.split())) == (2, True, True)
    assert discreet("select", log, *words, missing, given[missing])[0] == 0
    code, out, _ = discreet("check", log)
    assert (code, "column user" in out, "column item" in out) == (0, True, True)


def test_an_array_of_floats_is_refused_with_what_can_be_counted():
    with pytest.raises(dp.errors.SchemaError, match=r"floats are no labels.*round it, and cast it to text"):
        dp.count({"user": [1, 2], "item": np.array([1.5, 2.5])}, **COLUMNS, rho=1, delta=1e-6)


def test_a_number_with_a_decimal_comma_names_the_decimal_point():
    for rho in ("0,5", "1,0"):
        with pytest.raises(ParameterError, match="use a point as the decimal separator"):
            dp.count(LOG, **COLUMNS, rho=rho, delta=1e-6)
    with pytest.raises(ParameterError) as error:
        dp.count(LOG, **COLUMNS, rho="many", delta=1e-6)
    assert "separator" not in str(error.value)
    assert "such as 0.5 or 1e-6" in str(error.value)


class Lazy:
    """A frame of a library like dask, whose rows `compute` brings into memory."""

    columns = ["user", "item"]

    def __getitem__(self, name):
        return LOG[name]

    def compute(self):
        return LOG


SECONDS = [1769904000] * 4000
MONTHS = np.array(["2026-02"] * 4000, "M8[M]")
DAYS = {"time": "ts", "every": "1d", "since": "2026-02-01", "until": "2026-02-02"}


def of_log(**given):
    """Count a table with further columns, or call the package with other parameters."""
    parameters = {**COLUMNS, "rho": 1, "delta": 1e-6, **given}
    return dp.count(parameters.pop("data", LOG), **parameters)


def as_times(column):
    pandas = pytest.importorskip("pandas")
    return {**LOG, "ts": pandas.to_datetime(column, unit="s")}


def framed(library, column):
    return pytest.importorskip(library).DataFrame({**LOG, "ts": column})


# A wrong call, the remedy in its error, and the call that follows the remedy.
TRIED = {
    "a name in another case": (
        lambda: of_log(user="User", item="Item"),
        "did you mean 'user'?",
        lambda: of_log(user="user", item="item"),
    ),
    "columns in one text": (
        lambda: of_log(item="item, country", data={**LOG, "country": ["AT"] * 4000}),
        "in Python ['item', 'country']",
        lambda: of_log(item=["item", "country"], data={**LOG, "country": ["AT"] * 4000}),
    ),
    "an array of floats as times": (
        lambda: of_log(data={**LOG, "ts": np.array(SECONDS, float)}, **DAYS),
        'seconds since 1970 to times: .astype("M8[s]")',
        lambda: of_log(data={**LOG, "ts": np.array(SECONDS, float).astype("M8[s]")}, **DAYS),
    ),
    "integers of pandas as times": (
        lambda: of_log(data=framed("pandas", SECONDS), **DAYS),
        'pandas.to_datetime(..., unit="s")',
        lambda: of_log(data=framed("pandas", as_times(SECONDS)["ts"]), **DAYS),
    ),
    "floats of pandas as times": (
        lambda: of_log(data=framed("pandas", np.array(SECONDS, float)), **DAYS),
        'pandas.to_datetime(..., unit="s")',
        lambda: of_log(data=framed("pandas", as_times(SECONDS)["ts"]), **DAYS),
    ),
    "floats of polars as times": (
        lambda: of_log(data=framed("polars", np.array(SECONDS, float)), **DAYS),
        'pandas.to_datetime(..., unit="s")',
        lambda: of_log(data=framed("polars", as_times(SECONDS)["ts"]), **DAYS),
    ),
    "a lazy frame": (
        lambda: of_log(data=Lazy()),
        "give what its method compute() returns",
        lambda: of_log(data=Lazy().compute()),
    ),
    "a number as text": (lambda: of_log(rho="0.5"), "without quotes, such as 0.5", lambda: of_log(rho=0.5)),
    "a decimal comma": (lambda: of_log(rho="0,5"), "use a point as the decimal", lambda: of_log(rho=0.5)),
    "a power as text": (lambda: of_log(delta="10^-6"), "such as 0.5 or 1e-6", lambda: of_log(delta=1e-6)),
    "means by their own name": (
        lambda: dp.mean(LOG),
        "discreet.aggregate(..., means=...) publishes means",
        lambda: dp.aggregate(
            {**LOG, "price": [0.5] * 4000}, **COLUMNS, rows=3, means={"price": (0, 1)}, l0=2, rho=1, delta=1e-6
        ),
    ),
    "a name of another library": (
        lambda: dp.topk(LOG),
        "did you mean 'top_k'?",
        lambda: dp.top_k(LOG, k=1, **COLUMNS, rho=1, delta=1e-6),
    ),
}


@pytest.mark.parametrize("name", TRIED)
def test_the_remedy_in_an_error_of_python_works(name):
    wrong, remedy, right = TRIED[name]
    with pytest.raises((ParameterError, SchemaError, AttributeError)) as caught:
        wrong()
    assert remedy in str(caught.value)
    assert len(right()) > 0


WRITTEN = {
    "a name in another case": ("count LOG --user USER --item Item", "did you mean 'user'", "count LOG"),
    "columns in one text": (
        "count LOG --item item,country",
        "in a command with one option each",
        "count LOG --item item --item country",
    ),
    "columns by another option": (
        "count LOG --by country",
        "give --item once for each, such as --item country --item page",
        "count LOG --item item --item country",
    ),
    "a sum by a count": (
        "count LOG --value cents",
        "`discreet sum` with --column NAME --bounds LOW HIGH",
        "sum LOG --column cents --bounds 0 9 --l0 1",
    ),
    "a column of a sum by another name": (
        "sum LOG --value cents --bounds 0 9 --l0 1",
        "with --column NAME --bounds LOW HIGH",
        "sum LOG --column cents --bounds 0 9 --l0 1",
    ),
    "a sum of an aggregate": (
        "aggregate LOG --value cents --rows 2 --l0 1",
        "`discreet aggregate` with --sum NAME LOW HIGH",
        "aggregate LOG --sum cents 0 9 --rows 2 --l0 1",
    ),
    "a power": ("count LOG --delta 10^-6", "Write a number, such as 0.5 or 1e-6", "count LOG --delta 1e-6"),
    "half a number": ("count LOG --rho 1e", "Write a number, such as 0.5 or 1e-6", "count LOG --rho 0.5"),
    "a decimal comma": ("count LOG --rho 0,5", "Use a point as the decimal separator", "count LOG --rho 0.5"),
    "a comma of thousands": ("count LOG --l0 1,000", "Write digits alone, such as 10", "count LOG --l0 10"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_remedy_in_an_error_of_the_command_works(name, tmp_path):
    rows = "".join(f"{u},home,AT,5\n" for u in range(2000))
    (tmp_path / "log.csv").write_text("user,item,country,cents\n" + rows)
    wrong, remedy, right = WRITTEN[name]

    def run(text):
        words = [str(tmp_path / "log.csv") if word == "LOG" else word for word in text.split()]
        usual = {"--user": "user", "--item": "item", "--rho": "1", "--delta": "1e-6"}
        return discreet(*words, *(word for pair in usual.items() if pair[0] not in words for word in pair))

    code, _, errors = run(wrong)
    assert code in (1, 2)
    assert remedy in " ".join(errors.split())
    code, out, errors = run(right)
    assert (code, len(out.splitlines()) > 1) == (0, True), errors
