"""`dp.sum` and `discreet sum`: private sums of a column for items that are not known in advance."""

import json
import math
from decimal import Decimal

import numpy as np
import pytest
from command import BUDGET, discreet

import discreet as dp
from discreet.errors import BudgetExceeded, InputError, ParameterError, SchemaError
from discreet.formats import DATA_NAMES
from sales import COLUMNS, EXACT, SALES


def test_sums_are_near_the_exact_ones():
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 40), l0=3, rho=1, delta=1e-6)
    assert sorted(release.items) == ["a", "b", "c"]
    assert np.all(np.abs(release.counts - EXACT) < 8 * release.sigmas)
    # Half of rho pays for the sums of three items.
    assert release.sigmas[0] == pytest.approx(40 * math.sqrt(3 / (2 * 0.5)), rel=1e-6)
    assert release.clipped
    assert release.l0 == 3
    assert release.guarantee == dp.Guarantee(1.0, 1e-6)
    assert release.measure == (
        "sums of cents in units of 1, clipped to [0, 40] units for each user and item; sigma is the noise alone"
    )
    assert "rows whose cell is no finite number, such as a date or 3,50, are left out" in release.notes
    assert release.quantity == "sum"
    assert dp.count(SALES, user="user", item="shop", rho=1, delta=1e-6).quantity == "count"


def test_the_noise_is_that_of_l0_items_and_not_of_all():
    many = {"user": np.repeat(np.arange(3000), 4), "shop": np.tile(np.arange(200), 60), "cents": np.ones(12_000)}
    given = {"bounds": (0, 5), "rho": 0.4, "items": list(range(200))}
    one = dp.sum(many, **COLUMNS, **given, l0=1).sigmas[0]
    assert dp.sum(many, **COLUMNS, **given).sigmas[0] == pytest.approx(one * math.sqrt(200), rel=1e-9)
    assert one == pytest.approx(5 / math.sqrt(0.8), rel=1e-6)


def test_the_sum_of_a_user_is_clipped_and_not_the_rows():
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 10), l0=3, rho=100, delta=1e-6)
    assert np.all(np.abs(release.counts - 40_000) < 8 * release.sigmas)
    below = dp.sum(SALES, **COLUMNS, bounds=(-2, -1), l0=3, rho=100, delta=1e-6)
    assert np.all(np.abs(below.counts + 4000) < 8 * below.sigmas)


@pytest.mark.parametrize("cells", [float, str, Decimal])
def test_amounts_with_two_decimals_are_summed_in_cents(cells):
    data = {**SALES, "cents": [cells(f"{n / 100:.2f}") for n in SALES["cents"].tolist()]}
    release = dp.sum(data, **COLUMNS, bounds=(0, 0.40), resolution=0.01, l0=3, rho=100, delta=1e-6)
    assert np.all(np.abs(release.counts - EXACT) < 8 * release.sigmas)
    assert "units of 0.01" in " ".join(release.notes)


def test_public_items_have_a_sum_without_a_threshold_and_without_delta():
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 40), l0=2, rho=1, items=["a", "closed"])
    assert sorted(release.items) == ["a", "closed"]
    assert release.guarantee == dp.Guarantee(1.0, 0.0)
    stated = dp.sum(SALES, **COLUMNS, bounds=(0, 40), epsilon=1, delta=1e-6, items=["a", "closed"])
    assert stated.guarantee.dp == (1.0, 1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3, 12])
def test_a_budget_of_the_same_epsilon_pays_for_sums(epsilon):
    for more in ({"l0": 2}, {"items": ["a", "b"]}):
        budget = dp.Budget(epsilon=epsilon, delta=1e-6)
        dp.sum(SALES, **COLUMNS, bounds=(0, 9), epsilon=epsilon, delta=1e-6, budget=budget, **more)
        with pytest.raises(BudgetExceeded):
            dp.sum(SALES, **COLUMNS, bounds=(0, 9), epsilon=epsilon, delta=1e-6, budget=budget, **more)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"bounds": (0, 0.5)}, ParameterError, "whole multiples"),
        ({"bounds": (5, 5)}, ParameterError, "low must be below high"),
        ({"bounds": (0, math.inf)}, ParameterError, "finite"),
        ({"bounds": (0, math.nan)}, ParameterError, "finite"),
        ({"bounds": (0, Decimal("sNaN"))}, ParameterError, "two numbers"),
        ({"bounds": (0, "5")}, ParameterError, "two numbers.*, not '5'"),
        ({"bounds": (False, 5)}, ParameterError, "two numbers.*, not False"),
        ({"bounds": (0, None)}, ParameterError, "two numbers"),
        ({"bounds": (0, 1j)}, ParameterError, "two numbers"),
        ({"bounds": (0, np.timedelta64(5, "s"))}, ParameterError, "two numbers"),
        ({"bounds": (0, 10**5000)}, ParameterError, "two numbers"),
        ({"bounds": (0, 0.1 * 3), "resolution": 0.1}, ParameterError, "0.30000000000000004 is not"),
        ({"bounds": 5}, ParameterError, "pair"),
        ({"bounds": "05"}, ParameterError, "pair"),
        ({"bounds": "auto", "bounds_percentile": 100}, ParameterError, "bounds_percentile"),
        ({"bounds": "auto", "rho": 1e-12}, ParameterError, "rho must be"),
        ({"bounds": "auto", "resolution": 0}, ParameterError, "resolution"),
        ({"bounds": "auto", "value": "shop"}, ParameterError, "another column"),
        ({"bounds_percentile": 90}, ParameterError, 'bounds="auto"'),
        ({"bounds": (0, 1, 2)}, ParameterError, "pair"),
        ({"bounds": np.array(5)}, ParameterError, "pair"),
        ({"bounds": np.array([[0, 5]])}, ParameterError, "pair"),
        ({"resolution": Decimal("nan")}, ParameterError, "resolution"),
        ({"resolution": Decimal("sNaN")}, ParameterError, "resolution"),
        ({"bounds": (0, 2**31)}, ParameterError, "high"),
        ({"resolution": 0}, ParameterError, "resolution"),
        ({"l0": 0}, ParameterError, "l0"),
        ({"delta": None}, ParameterError, "delta"),
        ({"rho": None}, ParameterError, "rho"),
        ({"value": "price"}, SchemaError, "price"),
        ({"value": "user"}, ParameterError, "another column"),
        ({"value": "user", "item": ["shop", "cents"]}, ParameterError, "another column"),
        ({"item": "none"}, SchemaError, "none"),
        ({"user": ["user", "cents"]}, ParameterError, "another column"),
        ({"items": [7]}, SchemaError, "type"),
    ],
)
def test_wrong_parameters_are_refused_before_the_charge(changes, error, text):
    budget = dp.Budget(rho=1, delta=1e-6)
    given = {**COLUMNS, "bounds": (0, 5), "l0": 2, "rho": 0.5, "delta": 1e-7, **changes}
    with pytest.raises(error, match=text):
        dp.sum(SALES, **given, budget=budget)
    assert budget.remaining.rho == 1


def test_bounds_are_found_so_that_few_sums_are_clipped():
    # Seeded inputs, and a rho that leaves no doubt: 92 % of the users have a sum of 70, and 8 % one of -900.
    user = np.arange(5000)
    data = {"user": user, "shop": user % 3, "cents": np.where(user % 25 < 23, 70, -900)}
    for percentile, high in ((90, 80), (95, 1000)):
        given = {"bounds": "auto", "bounds_percentile": percentile, "l0": 1, "rho": 1000}
        for more in ({"delta": 1e-6}, {"items": [0, 1, 2]}):
            release = dp.sum(data, **COLUMNS, **given, **more)
            assert (release.summed.low, release.summed.high) == (-high, high)
            exact = [np.maximum(data["cents"][user % 3 == shop], -high).sum() for shop in release.items]
            assert np.all(np.abs(release.counts - exact) < 8 * release.sigmas)
            assert release.guarantee.rho == 1000
            assert any(f"about {percentile} % of the users" in note for note in release.notes)
    assert dp.sum(data, **COLUMNS, bounds="auto", resolution=100, rho=1000, items=[0]).summed.high == 10


@pytest.mark.parametrize(
    ("rho", "l0", "items"), [(1e-3, 2, None), (0.4, None, None), (7, 3, ("a", "b")), (50, None, ("a",))]
)
def test_a_search_for_bounds_and_its_sums_cost_rho_together(rho, l0, items):
    made = dp.mechanisms.SumsWithFoundBounds(rho=rho, delta=None if items else 1e-6, l0=l0, items=items)
    for bound in made.candidates[:: len(made.candidates) - 1]:
        cost = made.bound.guarantee.rho + made.later(bound).guarantee.rho
        assert rho * (1 - 1e-9) < cost <= rho
    assert made.candidates == tuple(sorted(made.candidates))
    assert made.users_needed > 50


@pytest.fixture
def file(tmp_path):
    rows = zip(SALES["user"].tolist(), SALES["shop"].tolist(), SALES["cents"].tolist(), strict=True)
    (tmp_path / "sales.csv").write_text("user,shop,cents\n" + "".join(f"{u},{s},{n / 100:.2f}\n" for u, s, n in rows))
    return tmp_path / "sales.csv"


SUM = ["--user", "user", "--item", "shop", "--column", "cents", "--l0", "3"]


def test_the_command_sums_and_its_certificate_verifies(file, tmp_path):
    ledger, out = tmp_path / "privacy.ledger", tmp_path / "sums.csv"
    assert discreet("budget", "init", ledger, "--dataset", "sales", "--rho", "1", "--delta", "1e-6")[0] == 0
    money = ["--bounds", "0", "0.40", "--resolution", "0.01"]
    paid = ["--ledger", ledger, "--dataset", "sales", "-o", out, "--certificate"]
    code, _, errors = discreet("sum", file, *SUM, *money, *BUDGET, *paid)
    assert code == 0, errors
    release = dp.Release.read(out)
    assert np.all(np.abs(release.counts - EXACT) < 8 * release.sigmas)
    assert "sums of cents in units of 0.01, clipped to [0, 40] units" in errors
    assert discreet("verify", out, "--ledger", ledger)[0] == 0
    assert discreet("sum", file, *SUM, *money, *BUDGET, *paid[:4])[0] == 3


def test_the_command_finds_bounds_for_a_percentile(file, tmp_path):
    out = tmp_path / "sums.csv"
    money = ["--bounds-percentile", "90", "--resolution", "0.01"]
    code, _, errors = discreet("sum", file, *SUM, *money, *BUDGET, "-o", out, "--certificate")
    assert code == 0, errors
    assert dp.Release.read(out).summed.high > 0
    content = json.loads((tmp_path / "sums.csv.certificate.json").read_text())
    assert discreet("verify", out)[0] == 0
    content["summed"]["high"] += 1
    (tmp_path / "sums.csv.certificate.json").write_text(json.dumps(content))
    assert discreet("verify", out)[0] == 1
    for wrong in ([], [*money, "--bounds", "0", "5"], ["--bounds-percentile", "100"]):
        assert discreet("sum", file, *SUM, *wrong, *BUDGET)[0] == 2


def test_the_command_reads_other_dialects_and_public_items(file, tmp_path):
    other = tmp_path / "sales.txt.csv"
    other.write_text(file.read_text().replace(",", ";"))
    (tmp_path / "shops.txt").write_text("a\nz\n")
    given = ["--delimiter", ";", "--items", tmp_path / "shops.txt", "--bounds", "-1", "5", "-f", "json"]
    code, out, errors = discreet("sum", other, *SUM, *BUDGET, *given)
    assert code == 0, errors
    assert sorted(row["shop"] for row in json.loads(out)["rows"]) == ["a", "z"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["--bounds", "0", "0.405", "--resolution", "0.01"], "whole multiples"),
        (["--bounds", "0", "1,5"], "decimal separator"),
        (["--bounds", "0", "nan"], "not a number"),
        ([], "--bounds"),
        (["--bounds", "5", "1"], "low must be below high"),
    ],
)
def test_the_command_refuses_wrong_bounds(file, given, text):
    code, _, errors = discreet("sum", file, *SUM, *BUDGET, *given)
    assert (code, text in errors) == (2, True), errors


def test_the_command_reads_standard_input_only_with_public_items(file, tmp_path):
    given = ["sum", "-", *SUM, *BUDGET, "--bounds", "0", "5"]
    code, _, errors = discreet(*given, stdin=file.read_bytes())
    assert (code, "Give a FILE" in errors) == (2, True), errors
    (tmp_path / "shops.txt").write_text("a\n")
    code, out, errors = discreet(*given, "--items", tmp_path / "shops.txt", "-f", "csv", stdin=file.read_bytes())
    assert (code, out.splitlines()[0]) == (0, "shop,count,sigma"), errors
    reader = pytest.importorskip("pyarrow").table(SALES).to_reader()
    assert dp.sum(reader, **COLUMNS, bounds=(0, 40), rho=1, items=["a"]).items == ["a"]


def test_the_command_refuses_a_second_column_to_sum_before_it_reads(tmp_path):
    twice = [*SUM, "--bounds", "0", "5", "--column", "country"]
    code, _, errors = discreet("sum", tmp_path / "there is no such file.csv", *twice, *BUDGET)
    assert (code, "give --column once" in " ".join(errors.split())) == (2, True), errors


def test_sums_of_public_items_state_their_guarantee_at_the_given_delta():
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 40), rho=0.5, delta=1e-7, items=["a"])
    assert release.guarantee == dp.Guarantee(0.5, 0.0, dp=(dp.Guarantee(0.5, 0.0).epsilon(1e-7), 1e-7))
    assert release.promise.endswith(", 1e-07)-DP")
    budget = dp.Budget(rho=0.5, delta=0)
    dp.sum(SALES, **COLUMNS, bounds=(0, 40), rho=0.5, delta=1e-7, items=["a"], budget=budget)
    assert budget.remaining.rho == 0


def test_the_command_needs_no_delta_for_public_items_in_rho(file, tmp_path):
    (tmp_path / "shops.txt").write_text("a\nb\n")
    out = tmp_path / "sums.csv"
    given = [file, *SUM, "--bounds", "0", "5", "--items", tmp_path / "shops.txt", "-o", out, "--certificate"]
    for delta, stated in (([], "which implies"), (["--delta", "1e-7"], "1e-07)-DP")):
        code, _, errors = discreet("sum", *given, "--rho", "0.5", *delta)
        assert (code, stated in errors) == (0, True), errors
        assert discreet("verify", out)[0] == 0
    code, _, errors = discreet("sum", *given, "--epsilon", "1")
    assert (code, "--delta is missing" in errors) == (2, True), errors
    code, _, errors = discreet("sum", file, *SUM, "--bounds", "0", "5", "--rho", "1")
    assert (code, "--delta is missing" in errors) == (2, True), errors


def test_a_release_of_sums_calls_its_numbers_sums(file, tmp_path):
    given = ["--bounds", "0", "0.40", "--resolution", "0.01"]
    page = tmp_path / "sums.html"
    code, _, errors = discreet("sum", file, *SUM, *given, *BUDGET, "-o", page)
    assert code == 0, errors
    text = page.read_text()
    assert "<h1>Sums of cents in units of 0.01, for 3 items</h1>" in text
    assert (
        "Clipped to [0, 40] units for each user and item; sigma is the noise alone. A true sum may be far higher"
        in text
    )
    assert ">sum</th>" in text
    assert "<h2>The sums</h2>" in text
    assert ">count<" not in text
    assert "true count" not in text
    _, out, _ = discreet("sum", file, *SUM, *given, *BUDGET, "-f", "table")
    assert "sum" in out.replace("sums", "").split()
    assert "count" not in out
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 40), l0=3, rho=1, delta=1e-6)
    assert "<bdi>sum</bdi></th>" in release._repr_html_()
    with pytest.raises(ParameterError, match=r"true sums: .* A true sum can be higher or lower"):
        release.interval()


def test_an_empty_release_of_sums_says_which_threshold_no_item_passed():
    # One user: the chance that an item is released is at most delta.
    few = {name: cells[:6] for name, cells in SALES.items()}
    release = dp.sum(few, **COLUMNS, bounds=(0, 40), l0=3, rho=1, delta=1e-10)
    mechanism = dp.mechanisms.DiscoverAndSum(rho=1, delta=1e-10, l0=3, low=0, high=40)
    assert len(release) == 0
    assert release.quantity == "sum"
    assert any(f"more than {mechanism.selection.threshold.value} users" in note for note in release.notes)


def test_sums_in_whole_units_say_that_values_are_rounded():
    whole = dp.sum(SALES, **COLUMNS, bounds=(0, 40), l0=3, rho=1, delta=1e-6)
    cents = dp.sum(SALES, **COLUMNS, bounds=(0, 40), resolution=0.01, l0=3, rho=1, delta=1e-6)
    assert any(note.startswith("each value was rounded to a whole number") for note in whole.notes)
    assert not any("rounded" in note for note in cents.notes)


def test_a_file_of_sums_with_the_former_note_is_still_a_release_of_sums(tmp_path):
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 40), l0=3, rho=1, delta=1e-6, items=["a", "b"])
    release.write(tmp_path / "sums.json")
    written = json.loads((tmp_path / "sums.json").read_text())
    former = "sums of values clipped to [0, 40] units for each user; sigma is the noise alone"
    for name in ("kind", "listed", "summed"):
        del written[name]
    written |= {"notes": [former], "measure": former}
    (tmp_path / "sums.json").write_text(json.dumps(written))
    read = dp.Release.read(tmp_path / "sums.json")
    assert (read.quantity, read.measure) == ("sum", former.replace("user;", "user and item;"))
    for odd in ("[5, 3]", "[0, 9999999999]", "[0, 40]"):
        column = "cents in units of 1e999," if odd == "[0, 40]" else "values"
        measure = former.replace("[0, 40]", odd).replace("values", column)
        (tmp_path / "odd.json").write_text(json.dumps(written | {"measure": measure}))
        with pytest.raises(InputError):
            dp.Release.read(tmp_path / "odd.json")
    read.write(tmp_path / "sums.html")
    page = (tmp_path / "sums.html").read_text()
    assert "<h1>Sums of values, for 2 items</h1>" in page
    assert "All listed items are published" in page
    assert "negative count" not in page


def test_a_column_with_any_name_keeps_the_title_of_its_sums(tmp_path):
    name = "x, clipped to [0, 1]; \x1b[31m"
    data = {"user": SALES["user"], "shop": SALES["shop"], name: SALES["cents"]}
    release = dp.sum(data, user="user", item="shop", value=name, bounds=(0, 40), rho=1, items=["a"])
    release.write(tmp_path / "sums.html")
    page = (tmp_path / "sums.html").read_text()
    assert "\x1b" not in page + release.measure
    assert "[31m in units of 1, for 1 item</h1>" in page
    assert "Clipped to [0, 40] units for each user" in page


def test_the_help_of_the_command_says_what_is_needed():
    text = " ".join(discreet("sum", "--help")[1].split())
    assert f"FILE is a {DATA_NAMES} file" in text
    assert "Without --l0 and --items, 5 % of rho finds N" in text
    assert "Needed, but not for --rho with --items" in text
    assert "Read the rows of this SELECT" in text
    assert "Count the rows" not in text
