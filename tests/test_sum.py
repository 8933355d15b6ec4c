"""`dp.sum` and `discreet sum`: private sums of a column for items that are not known in advance."""

import array
import hashlib
import json
import math
from decimal import Decimal

import numpy as np
import pytest
from command import BUDGET, discreet

import discreet as dp
from discreet.engines import columns
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
        "sums of cents in steps of 1, clipped to [0, 40] for each user and item; sigma is the noise alone"
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
    assert np.all(np.abs(release.counts - EXACT / 100) < 8 * release.sigmas)
    assert "steps of 0.01" in " ".join(release.notes)


@pytest.mark.parametrize("power", [-33, -32, -31, -30, -1, 3])
def test_a_power_of_two_is_a_resolution(power):
    step = 2.0**power
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 40), resolution=step, l0=3, rho=100, delta=1e-6)
    assert np.all(np.abs(release.counts - EXACT) < 8 * release.sigmas + 4000 * step)
    assert (release.summed.high, release.summed.bounds) == (40 / step, (0, 40))


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
        ({"bounds": (0, 0.5), "resolution": 1}, ParameterError, "whole multiples"),
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
        ({"bounds": (0, 2**96)}, ParameterError, "2.95 steps"),
        ({"bounds": (0, 1e200)}, ParameterError, "below 1e100"),
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
    assert np.all(np.abs(release.counts - EXACT / 100) < 8 * release.sigmas)
    assert "sums of cents in steps of 0.01, clipped to [0, 0.4] for" in errors
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
        (["--bounds", "0", "nan"], "not a valid number"),
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
    assert (code, out.splitlines()[0]) == (0, "shop,cents_sum,cents_sum_sigma"), errors
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
    assert "<h1>Sums of cents in steps of 0.01, for 3 items</h1>" in text
    assert "Clipped to [0, 0.4] for each user and item; sigma is the noise alone. A true sum may be far higher" in text
    assert ">sum</th>" in text
    assert "<h2>The sums</h2>" in text
    assert ">count<" not in text
    assert "true count" not in text
    _, out, _ = discreet("sum", file, *SUM, *given, *BUDGET, "-f", "table")
    assert "sum" in out.replace("sums", "").split()
    assert "count" not in out
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 40), l0=3, rho=1, delta=1e-6)
    assert "<bdi>cents_sum</bdi></th>" in release._repr_html_()
    with pytest.raises(ParameterError, match=r"true sums: .* A true sum can be higher or lower"):
        release.interval()


def test_an_empty_release_of_sums_says_which_threshold_no_item_passed():
    # One user: the chance that an item is released is at most delta.
    few = {name: cells[:6] for name, cells in SALES.items()}
    release = dp.sum(few, **COLUMNS, bounds=(0, 40), l0=3, rho=1, delta=1e-10)
    mechanism = dp.mechanisms.DiscoverAndSum(rho=1, delta=1e-10, l0=3, low=0, high=40)
    assert len(release) == 0
    assert release.quantity == "sum"
    assert any(f"more than {mechanism.steps[0].mechanism(3).threshold.value} users" in note for note in release.notes)


def test_a_file_of_sums_with_the_former_note_is_still_a_release_of_sums(tmp_path):
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 40), l0=3, rho=1, delta=1e-6, items=["a", "b"])
    release.write(tmp_path / "sums.json")
    written = json.loads((tmp_path / "sums.json").read_text())
    former = "sums of values clipped to [0, 40] units for each user; sigma is the noise alone"
    for name in ("kind", "listed", "summed"):
        del written[name]
    rows = [
        {"shop": row["shop"], "count": row["cents_sum"], "sigma": row["cents_sum_sigma"]} for row in written["rows"]
    ]
    written |= {"notes": [former], "measure": former, "columns": ["shop", "count", "sigma"], "rows": rows}
    (tmp_path / "sums.json").write_text(json.dumps(written))
    read = dp.Release.read(tmp_path / "sums.json")
    assert (read.quantity, read.measure) == ("sum", former.replace("user;", "user and item;"))
    for odd in ("[5, 3]", "[0, 40]"):
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
    assert "[31m in steps of 1, for 1 item</h1>" in page
    assert "Clipped to [0, 40] for each user" in page


def test_the_help_of_the_command_says_what_is_needed():
    text = " ".join(discreet("sum", "--help")[1].split())
    assert f"FILE is a {DATA_NAMES} file" in text
    assert "by default a bound is found with 5 % of rho, which about 95 % of the users do not exceed" in text
    assert "May be left out with --rho and --items" in text
    assert "Read the rows of this SELECT" in text
    assert "Count the rows" not in text


def typed(kind, cells):
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.array(cells, kind(pyarrow))


TYPES = {
    "floats": (np.array([0.42, 0.08]), 2**-32, 0.25),
    "float32": (np.array([0.5, 0.25], np.float32), 2**-32, 0.375),
    "subnormal": (np.array([5e-324, 1e-9]), 2**-32, 0.5e-9),
    "huge floats": (np.array([1e300, -1e300]), 2**-32, 0),
    "integers in a list": ([1, 2], 2**-32, 1.5),
    "text": (["3.5", "1e400"], 2**-32, 1.75),
    "objects": (np.array([0.5, Decimal("0.25")], object), 2**-32, 0.375),
    "booleans": (np.array([True, False]), 1, 0.5),
    "int8": (np.array([-1, 3], np.int8), 1, 1),
    "int64 ends": (np.array([2**63 - 1, -(2**63)]), 1, -0.5),
    "uint64 end": (np.array([2**64 - 1, 0], np.uint64), 1, (2**64 - 1) / 2),
    "decimals": (lambda: typed(lambda a: a.decimal128(38, 10), [Decimal("0.0000000003"), Decimal("0.5")]), 1e-10, 0.25),
    "decimal256": (lambda: typed(lambda a: a.decimal256(60, 30), [Decimal("0.3"), Decimal("0.1")]), 1e-12, 0.2),
    "decimals of hundreds": (lambda: typed(lambda a: a.decimal128(5, -2), [Decimal(300), Decimal(100)]), 100, 200),
    "dictionary": (lambda: typed(lambda a: a.string(), ["2", "x"]).dictionary_encode(), 2**-32, 1),
    "dictionary of integers": (lambda: typed(lambda a: a.int64(), [2, 5]).dictionary_encode(), 1, 3.5),
    "dictionary of decimals": (
        lambda: typed(lambda a: a.decimal128(9, 1), [Decimal("0.2"), Decimal("0.4")]).dictionary_encode(),
        0.1,
        0.3,
    ),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("form", ["dict", "pyarrow", "pandas", "polars", "parquet", "csv"])
def test_a_sum_is_in_the_unit_and_the_steps_of_its_column(name, form, tmp_path):
    cells, step, mean = TYPES[name]
    cells = cells() if callable(cells) else cells
    if form != "dict":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        others = ["objects", "decimals of hundreds", "decimal256", "integers in a list"]
        others += ["dictionary"] * (form != "pyarrow") + ["booleans", "uint64 end"] * (form == "csv")
        if name in others + ["dictionary of decimals"] * (form == "pandas"):
            pytest.skip("this form has another type")
        cells = pyarrow.array(cells)
    pairs = {"user": np.arange(4000), "shop": np.repeat(["a"], 4000), "cents": np.arange(4000) % 2}
    column = cells.take(pairs["cents"]) if hasattr(cells, "take") and form != "dict" else None
    if column is None:
        own = cells if isinstance(cells, list) else [*cells] if not hasattr(cells, "dtype") else cells
        pairs["cents"] = own * 2000 if isinstance(own, list) else np.tile(own, 2000)
        if not isinstance(cells, list | np.ndarray):
            pyarrow = pytest.importorskip("pyarrow")
            pairs["cents"] = pyarrow.concat_arrays([cells] * 2000)
    data = pairs
    if form != "dict":
        data = pyarrow.table({**pairs, "cents": column})
        if form == "pandas":
            data = data.to_pandas()
        elif form == "polars":
            data = pytest.importorskip("polars").from_arrow(data)
        elif form != "pyarrow":
            path = tmp_path / f"rows.{form}"
            parquet.write_table(data, path) if form == "parquet" else data.to_pandas().to_csv(path, index=False)
            data = path
    if form == "csv" or (form == "pandas" and step not in (1, 2**-32)):
        step = 2**-32
    most = max(1, math.ceil(3 * abs(mean))) if name != "int64 ends" else 2**63
    release = dp.sum(data, **COLUMNS, bounds=(-most, most), l0=1, rho=1000, delta=1e-6)
    assert release.summed.resolution == step
    # An error of 7 standard deviations has a chance of 3e-12. Sums of 4,000 floats lose less than 1e-12.
    assert abs(release.counts[0] - 4000 * mean) < 7 * release.sigmas[0] + 1e-9 * most
    assert release.sigmas[0] == pytest.approx(most / math.sqrt(2 * 500), rel=1e-6)
    assert [column for column, _, _ in release.columns] == ["shop", "cents_sum", "cents_sum_sigma"]


ENDS = [2**60 + 1, -(2**60), 7]
INTEGERS = {
    "numpy": lambda: np.array(ENDS),
    "other order of bytes": lambda: np.array(ENDS, ">i8"),
    "array": lambda: array.array("q", ENDS),
    "masked": lambda: np.ma.array(ENDS, mask=[0, 0, 1]),
    "pandas": lambda: pytest.importorskip("pandas").Series(ENDS),
    "pandas with missing cells": lambda: pytest.importorskip("pandas").Series([*ENDS[:2], None], dtype="Int64"),
    "sparse pandas": lambda: pytest.importorskip("pandas").Series(ENDS, dtype="Sparse[int64]"),
    "pyarrow": lambda: pytest.importorskip("pyarrow").array(ENDS),
    "polars": lambda: pytest.importorskip("polars").Series(ENDS),
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("users", ["list", "pyarrow", "polars", "list alone", "polars alone"])
def test_integers_of_64_bits_are_added_up_exactly(name, users, monkeypatch):
    kind, _, alone = users.partition(" ")
    if alone:
        monkeypatch.setattr(columns, "pyarrow_if_installed", lambda: None)
        if name == "pyarrow" or (kind, name[:6]) in (("polars", "pandas"), ("polars", "sparse")):
            pytest.skip("pyarrow reads these columns together")
    made = {"pyarrow": "array", "polars": "Series"}.get(kind)
    column = list if made is None else getattr(pytest.importorskip(kind), made)
    data = {"user": column([1, 1, 2]), "shop": ["a", "a", "b"], "cents": INTEGERS[name]()}
    release = dp.sum(data, **COLUMNS, bounds=(-5, 5), resolution=1, rho=1000, items=["a"])
    # An error of 7 standard deviations has a chance of 3e-12.
    assert abs(release.counts[0] - 1) < 7 * release.sigmas[0] < 0.8


@pytest.mark.parametrize("high", [10**3, 10**6, 10**9, 10**13])
@pytest.mark.parametrize("kind", ["floats", "integers", "text", "decimals"])
def test_wide_bounds_do_for_every_verb_and_step(kind, high, tmp_path):
    made = {
        "floats": lambda: np.full(3000, 7.0),
        "integers": lambda: np.full(3000, 7),
        "text": lambda: ["7"] * 3000,
        "decimals": lambda: typed(lambda a: a.decimal128(10, 2), [Decimal("7.00")] * 3000),
    }
    data, columns = {"user": np.arange(3000), "shop": ["a"] * 3000, "cents": made[kind]()}, COLUMNS
    listed, found = {"items": ["a"], "rho": 1}, {"l0": 1, "rho": 1, "delta": 1e-6}
    sums = [
        dp.sum(data, **columns, bounds=bounds, **more) for more in (listed, found) for bounds in ((0, high), "auto")
    ]
    summed = sums[0].summed
    bounds = {"low": summed.low, "high": summed.high, "resolution": summed.resolution}
    by_users = dp.mechanisms.PrivateSumRelease(counting=dp.PrivateCountRelease(rho=5, delta=1e-6), **bounds)
    assert by_users.protects.linf == summed.high == high / summed.resolution
    # With 7 standard deviations, a failure has a chance below 1e-9.
    for release in (*sums, by_users.release(data, **columns)):
        assert abs(release.counts[0] - 21_000) < 7 * release.sigmas[0]
    for more in (listed, found):
        given = {"rows": 1, "sums": {"cents": (0, high)}, "means": {"cents": (0, high)}, **more}
        _, total, mean = dp.aggregate(data, user="user", item="shop", **given).aggregates
        assert abs(total.values[0] - 21_000) < 7 * total.sigmas[0]
        assert abs(mean.values[0] - 7) < 7 * mean.sigmas[0]
    if kind == "text":
        (tmp_path / "shops.txt").write_text("a\n")
        (tmp_path / "rows.csv").write_text("user,shop,cents\n" + "".join(f"{user},a,7\n" for user in range(3000)))
        given = ["--bounds", "0", str(high), "--items", tmp_path / "shops.txt", "--rho", "1", "-f", "json"]
        code, _, errors = discreet("sum", tmp_path / "rows.csv", *SUM[:-2], *given)
        assert code == 0, errors


def test_means_and_sums_of_small_numbers_are_not_rounded_to_zero(tmp_path):
    log = {"user": np.arange(20_000), "shop": ["a"] * 20_000, "price": np.full(20_000, 0.42)}
    release = dp.aggregate(
        log, user="user", item="shop", rows=1, sums={"price": (0, 1)}, means={"price": (0, 10)}, l0=1, rho=1, delta=1e-6
    )
    _, total, mean = release.aggregates
    # With 7 standard deviations, a failure has a chance of 6e-12.
    assert abs(total.values[0] - 8400) < 7 * total.sigmas[0] < 200
    assert abs(mean.values[0] - 0.42) < 7 * mean.sigmas[0] < 0.03
    assert "rounded" not in " ".join(release.notes)
    found = dp.sum(log, user="user", item="shop", value="price", bounds="auto", l0=1, rho=1, delta=1e-6)
    assert found.summed.bounds in [(-bound, bound) for bound in (0.4, 0.5, 0.6)]
    assert abs(found.counts[0] - 20_000 * min(0.42, found.summed.bounds[1])) < 7 * found.sigmas[0] < 20
    for one in (release, found):
        one.write(tmp_path / "rows.csv", certificate=True)
        assert dp.verify(tmp_path / "rows.csv").made_by == one.made_by
        read = dp.Release.read(tmp_path / "rows.csv")
        assert read.to_dict() == one.to_dict()
        assert [name for name, _, _ in read.columns] == [name for name, _, _ in one.columns]


def test_sums_are_in_their_unit_wherever_they_are_shown(file, tmp_path):
    out = tmp_path / "sums.csv"
    given = ["--bounds", "0", "0.40", "--l0", "3", *BUDGET, "--certificate", "-o", out]
    assert discreet("sum", file, "--user", "user", "--item", "shop", "--column", "cents", *given)[0] == 0
    assert out.read_text().splitlines()[0] == "shop,cents_sum,cents_sum_sigma"
    release = dp.Release.read(out)
    assert np.all(np.abs(release.counts - EXACT / 100) < 8 * release.sigmas)
    row = next(iter(release))
    assert (row["cents_sum"], row["cents_sum_sigma"], row["shop"]) == (row.count, row.sigma, row.item)
    assert [*row.keys()] == ["shop", "cents_sum", "cents_sum_sigma"]
    assert release[row.item] == row.count
    assert len(release.within(0.5)) == 3
    assert release.compare(release).differences == [0.0] * 3
    for form in ("json", "jsonl", "parquet"):
        if form == "parquet":
            pytest.importorskip("pyarrow")
        own = dp.sum(SALES, **COLUMNS, bounds=(0, 40), resolution=0.5, l0=3, rho=1, delta=1e-6)
        own.write(tmp_path / f"own.{form}", certificate=True)
        assert dp.verify(tmp_path / f"own.{form}").made_by == own.made_by
        assert dp.Release.read(tmp_path / f"own.{form}").to_dict() == own.to_dict()


def test_former_files_in_units_are_read_in_the_unit_of_the_column(tmp_path):
    path = tmp_path / "sums.csv"
    release = dp.sum(SALES, **COLUMNS, bounds=(0, 40), resolution=0.5, l0=3, rho=1, delta=1e-6)
    release.write(path, certificate=True)
    place = tmp_path / "sums.csv.certificate.json"
    rows = [f"{shop},{round(2 * total)},{2 * release.sigmas[0]}" for shop, total in release]
    path.write_text("\n".join(["shop,count,sigma", *rows, ""]))
    former = json.loads(place.read_text()) | {"version": "0.0.1", "columns": ["shop", "count", "sigma"]}
    former["measure"] = (
        "sums of cents in units of 0.5, clipped to [0, 80] units for each user; sigma is the noise alone"
    )
    former["digest"] = hashlib.sha256(path.read_bytes()).hexdigest()
    place.write_text(json.dumps(former))
    assert dp.verify(path).made_by == release.made_by
    read = dp.Release.read(path)
    assert read.to_dict() == release.to_dict()
    assert read.sigmas.tolist() == pytest.approx(release.sigmas.tolist())
    assert [name for name, _, _ in read.columns] == ["shop", "cents_sum", "cents_sum_sigma"]


@pytest.mark.parametrize(
    ("value", "item", "more"),
    [
        ("cents", "cents_sum", {}),
        ("cents", "Cents_Sum", {"items": ["a"]}),
        ("cents", "CENTS_sum_sigma", {"bounds": "auto"}),
        ("x" * 300, "X" * 59 + "…_sum", {}),
        ("a\nb", "a\\nb_sum", {"items": ["a"]}),
    ],
)
def test_a_column_of_items_may_not_have_the_name_of_sums(value, item, more):
    data, budget = {**SALES, value: SALES["cents"], item: SALES["shop"]}, dp.Budget(rho=1, delta=1e-6)
    for chosen in (item, ["shop", item]):
        listed = {"items": [("a", "a")]} if "items" in more and chosen != item else {}
        given = {"bounds": (0, 40), "l0": 3, "rho": 1, "delta": 1e-6, "budget": budget} | more | listed
        with pytest.raises(ParameterError, match="rename it"):
            dp.sum(data, user="user", item=chosen, value=value, **given)
    assert budget.remaining.rho == 1


def test_bounds_between_the_steps_of_a_column_become_wider():
    data = {**SALES, "cents": SALES["cents"].astype(float)}
    for table, bounds, low, high in ((SALES, (-0.5, 39.5), -1, 40), (data, (-0.1, 0.1), -429496730, 429496730)):
        summed = dp.sum(table, **COLUMNS, bounds=bounds, l0=3, rho=1, delta=1e-6).summed
        assert (summed.low, summed.high) == (low, high)


@pytest.mark.parametrize("unit", [1e-4, 1e-9, 1e-10])
def test_floats_near_their_step_are_refused_until_it_is_finer(unit, tmp_path):
    users, columns = 3000, {"user": "user", "item": "shop"}
    data, budget = (
        {"user": np.arange(users), "shop": ["a"] * users, "cents": np.full(users, unit)},
        dp.Budget(rho=9, delta=1e-6),
    )
    given = {"items": ["a"], "rho": 1, "budget": budget}
    for cells in (data["cents"], [*data["cents"]], [str(cell) for cell in data["cents"]]):
        with pytest.raises(ParameterError, match=r"2\^20 steps.*such as 1e-12"):
            dp.sum({**data, "cents": cells}, **columns, value="cents", bounds=(0, 2 * unit), **given)
        for kind in ("sums", "means"):
            with pytest.raises(ParameterError, match=f"{kind} of 'cents': bounds must be at least"):
                dp.aggregate({**data, "cents": cells}, **columns, rows=1, **{kind: {"cents": (0, 2 * unit)}}, **given)
    with pytest.raises(ParameterError, match="bounds must be at least"):  # the noise of a mean is that of the width
        dp.aggregate(data, **columns, rows=1, means={"cents": (1, 1.0001)}, **given)
    assert budget.remaining.rho == 9
    finer = dp.sum(data, **columns, value="cents", bounds=(0, 2 * unit), resolution=1e-12, **given)
    assert abs(finer.counts[0] - users * unit) < 7 * finer.sigmas[0] < users * unit
    found = dp.sum(data, **columns, value="cents", bounds="auto", items=["a"], rho=1000)
    assert any("near the step" in note for note in found.notes)
    wide = dp.sum({**data, "cents": np.full(users, 0.001)}, **columns, value="cents", bounds="auto", **given)
    assert not any("near the step" in note for note in wide.notes)
    (tmp_path / "rows.csv").write_text(f"user,shop,cents\n1,a,{unit}\n")
    given = ["--bounds", "0", str(2 * unit), *BUDGET]
    code, _, errors = discreet("sum", tmp_path / "rows.csv", *SUM, *given)
    assert (code, "give a --resolution" in " ".join(errors.split())) == (2, True), errors
