"""Counts of items that are public, through `count(items=...)`."""

import datetime as dt

import numpy as np
import pytest

import discreet as dp
from discreet.errors import BudgetExceeded, ItemTypeError, ParameterError, SchemaError

LOG = {"user": [n for n in range(4000) for _ in range(2)], "page": ["home", "help"] * 4000, "n": [1, 2] * 4000}
COLUMNS = {"user": "user", "item": "page", "rho": 1, "delta": 1e-6}


def assert_near(release, expected):
    for item, noisy in release:
        assert abs(noisy - expected[item]) < 50


def test_listed_items_are_released_even_if_nobody_has_them():
    release = dp.count(LOG, **COLUMNS, items=["home", "never"])
    assert_near(release, {"home": 4000, "never": 0})
    assert sorted(release.items) == ["home", "never"]
    assert not release.clipped
    assert release.listed == "all"
    assert "CorrelatedCounts" in release.made_by
    assert abs(release.users[0] - 4000) < 50


def public(count=dp.count, **given):
    """Return the release of 30 public items and what it charged, as a budget in rho and delta counts it."""
    budget = dp.Budget(rho=2000, delta=1e-4)
    release = count(LOG, user="user", item="page", items=["home", *map(str, range(29))], budget=budget, **given)
    return release, (pytest.approx(2000 - budget.remaining.rho, rel=1e-9), 1e-4 - budget.remaining.delta)


@pytest.mark.parametrize("count", [dp.count, lambda *given, **more: dp.top_k(*given, k=4, **more)])
@pytest.mark.parametrize(
    ("given", "dp_pair"),
    [
        ({"rho": 0.1}, None),
        ({"rho": 0.1, "delta": 0}, None),
        ({"rho": 0.1, "delta": 1e-7}, (dp.Guarantee(0.1, 0).epsilon(1e-7), 1e-7)),
        ({"epsilon": 0.5}, (0.5, 0)),
        ({"epsilon": 0.5, "delta": 0.0}, (0.5, 0)),
        ({"epsilon": 2, "delta": 1e-6}, (2, 1e-6)),
    ],
)
def test_public_items_cost_no_delta(count, given, dp_pair):
    release, (rho, delta) = public(count, **given)
    found = release.guarantee
    assert (found.delta, delta, release.spent.delta) == (0, 0, 0)
    assert found.rho == rho == given.get("rho", rho)
    if count is dp.count or dp_pair is None or dp_pair[1] == 0:
        assert dp_pair is None or found.dp == pytest.approx(dp_pair, rel=1e-9)
    assert "epsilon" not in given or found.implies(given["epsilon"], given.get("delta") or 1e-300)


@pytest.mark.parametrize(
    ("given", "kind", "noise"),
    [
        ({"rho": 0.1}, "CorrelatedCounts", (30**0.5 + 1) / 2 / 0.2**0.5),
        ({"rho": 0.1, "l0": 30}, "CorrelatedCounts", (30**0.5 + 1) / 2 / 0.2**0.5),
        ({"rho": 0.1, "l0": 4}, "GaussianCounts", (4 / 0.2) ** 0.5),
        ({"epsilon": 1}, "LaplaceCounts", 2**0.5 * 30),
        ({"epsilon": 1, "l0": 2}, "LaplaceCounts", 2**0.5 * 2),
        ({"epsilon": 1, "delta": 1e-6, "l0": 2}, "LaplaceCounts", 2**0.5 * 2),
        ({"epsilon": 1, "delta": 1e-6}, "CorrelatedCounts", (30**0.5 + 1) / 2 * 4.530899),
        ({"rho": 1000, "l0": 1}, "GaussianCounts", 2000**-0.5),
    ],
)
def test_public_items_get_the_least_noise(given, kind, noise):
    release, _ = public(**given)
    assert release.made_by.startswith(kind)
    assert float(release.sigmas[0]) == pytest.approx(noise, rel=0.02)


def test_a_backend_that_does_not_count_users_gets_independent_noise(monkeypatch):
    monkeypatch.setattr("discreet.engines.counts_users", lambda _: False)
    release, _ = public(rho=0.1)
    assert "GaussianCounts" in release.made_by
    assert any("does not count users" in note for note in release.notes)


@pytest.mark.parametrize("source", ["read", "ibis"])
def test_counts_of_public_items_know_the_users_of_every_source(source):
    if source == "ibis":
        ibis, pyarrow = pytest.importorskip("ibis"), pytest.importorskip("pyarrow")
        data = {"data": ibis.duckdb.connect().create_table("log", pyarrow.table(LOG)), "user": "user", "item": "page"}
    else:
        data = {"data": dp.Table(LOG, user="user", item="page").read()}
    release = dp.count(**data, items=["home", "x"], rho=1)
    assert "CorrelatedCounts" in release.made_by
    assert abs(release.users[0] - 4000) < 12  # ten sigmas: fails with a chance below 1e-20
    assert_near(release, {"home": 4000, "x": 0})


def test_public_items_are_ranked_without_delta():
    log = {"user": [*range(4000), *range(2000), *range(3000)], "page": ["a"] * 4000 + ["b"] * 2000 + ["x"] * 3000}
    release = dp.top_k(log, user="user", item="page", items=["b", "c", "a"], k=2, epsilon=1)
    assert (release.items, release.listed) == (["a", "b"], "all")
    assert release.guarantee.dp == pytest.approx((1, 0), rel=1e-9)
    with pytest.raises(ParameterError, match="lower k"):
        dp.top_k(log, user="user", item="page", items=["b"], k=2, epsilon=1)
    for more in ({"k_bar": 9}, {"l0": 2}, {"method": "discover+peel", "l0": 2}):
        with pytest.raises(ParameterError, match="items excludes"):
            dp.top_k(log, user="user", item="page", items=["b"], k=1, epsilon=1, **more)
    for verb in (dp.count, lambda *given, **names: dp.top_k(*given, k=1, **names)):
        with pytest.raises(ParameterError, match="delta is missing"):
            verb(log, user="user", item="page", epsilon=1)


@pytest.mark.parametrize("given", [{"rho": 1}, {"epsilon": 6}])
def test_other_items_need_no_l0(given):
    log, budget = {**LOG, "user": [*LOG["user"]]}, dp.Budget(rho=2, delta=1e-5)
    release = dp.count(
        log, user="user", item="page", items=["home", "never"], others=True, delta=1e-6, budget=budget, **given
    )
    assert sorted(release.items) == ["help", "home", "never"]
    assert_near([pair for pair in release if pair[0] != "help"], {"home": 4000, "never": 0})
    assert abs(release["help"] - 4000) < 10 * dict(zip(release.items, release.sigmas, strict=True))["help"]
    assert (release.listed, release.clipped) == ("some", False)
    assert release.guarantee.implies(given.get("epsilon", 100), 1e-6) or "rho" in given
    assert 2 - budget.remaining.rho == pytest.approx(release.guarantee.rho, rel=1e-9)
    with pytest.raises(ParameterError, match="delta is missing"):
        dp.count(LOG, user="user", item="page", items=["home"], others=True, **given)
    ibis, pyarrow = pytest.importorskip("ibis"), pytest.importorskip("pyarrow")
    remote = ibis.duckdb.connect().create_table("log", pyarrow.table(LOG))
    there = dp.count(remote, user="user", item="page", items=["home", "never"], others=True, delta=1e-6, **given)
    assert sorted(there.items) == ["help", "home", "never"]
    assert_near([pair for pair in there if pair[0] != "help"], {"home": 4000, "never": 0})
    assert abs(there["help"] - 4000) < 10 * dict(zip(there.items, there.sigmas, strict=True))["help"]


def test_a_user_has_at_most_l0_listed_items():
    release = dp.count(LOG, **{**COLUMNS, "rho": 100}, items=["home", "help"], l0=1)
    assert release.clipped
    assert abs(sum(release.counts.tolist()) - 4000) < 100


def test_listed_items_of_several_columns_are_tuples():
    listed = [("home", 1), ("home", 2)]
    release = dp.count(LOG, **{**COLUMNS, "item": ["page", "n"]}, items=listed)
    assert sorted(release.items) == listed
    assert_near(release, {("home", 1): 4000, ("home", 2): 0})
    assert release.item_type == (("page", "string"), ("n", "int64"))
    more = dp.count(LOG, **{**COLUMNS, "item": ["page", "n"]}, items=listed, others=True, l0=2)
    assert sorted(more.items) == [("help", 2), *listed]
    assert_near(more, {("help", 2): 4000, ("home", 1): 4000, ("home", 2): 0})
    assert [name for name, _, _ in more.columns] == ["page", "n", "count", "sigma"]


def test_listed_days_keep_their_type():
    log = {"user": range(4000), "day": ["2026-01-05"] * 4000, "page": ["home"] * 4000}
    listed = [("2026-01-05", "home"), ("2026-01-06", "home")]
    release = dp.count(
        log, user="user", item="page", time="day", every="1d", rho=1, delta=1e-6, items=listed, others=True, l0=1
    )
    assert sorted(release.items) == listed
    assert release.item_type == (("day", "date"), ("page", "string"))
    assert_near(release, dict(zip(listed, (4000, 0), strict=True)))


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"items": "home"}, "list or an array"),
        ({"items": [["home", 1]]}, "must be a tuple"),
        ({"items": []}, "at least one label"),
        ({"items": ["a", "a"]}, "distinct"),
        ({"items": ["a"], "others": 1}, "others"),
        ({"others": True}, "needs items"),
        ({"items": ["a"], "l0": 1.5}, "l0 must be a whole number"),
        ({"items": ["a"], "rho": -1}, "rho must be"),
        ({"items": ["a"], "delta": 1.0}, "delta must be"),
        ({"items": ["a"], "relative_error": 0.2}, "excludes relative_error"),
    ],
)
def test_parameters_of_listed_items_are_checked(parameters, error):
    with pytest.raises(ParameterError, match=error):
        dp.count(LOG, **{**COLUMNS, **parameters})


def test_listed_items_of_another_type_cost_nothing():
    budget = dp.Budget(rho=1, delta=1e-6)
    for more in ({}, {"others": True, "l0": 2}):
        with pytest.raises(ItemTypeError):
            dp.count({**LOG, "page": np.array(LOG["page"])}, **COLUMNS, items=[1], budget=budget, **more)
    assert budget.spent.rho == 0
    dp.count(LOG, **COLUMNS, items=["home"], budget=budget)
    with pytest.raises(BudgetExceeded):
        dp.count(LOG, **COLUMNS, items=["home"], budget=budget)


def test_a_mechanism_excludes_listed_items():
    mechanism = dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=2)
    with pytest.raises(ParameterError, match="one of items and mechanism"):
        dp.count(LOG, user="user", item="page", items=["home"], mechanism=mechanism)


DAYS = {"user": [*range(3000)] * 2, "day": np.array(["2026-01-01"] * 3000 + ["2026-01-02"] * 3000, "datetime64[D]")}


CELLS = {
    "bools": [True, False],
    "dates": [dt.date(2026, 1, 31), dt.date(21, 5, 6)],
    "times": [dt.datetime(2026, 1, 31, 12, 0, 0, 500_000), dt.datetime(2026, 1, 31)],
    "several columns": [("home", dt.date(2026, 1, 31)), ("home", dt.date(2026, 2, 1))],
}


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("form", ["list", "pyarrow", "polars", "duckdb"])
def test_listed_cells_are_found_in_their_column(kind, form):
    one, other = CELLS[kind]
    columns, listed = ["item"], [one, other]
    data = {"user": [*range(3000)], "item": [one] * 2000 + [other] * 1000}
    if isinstance(one, tuple):
        columns = ["page", "day"]
        data = {"user": data["user"], **dict(zip(columns, map(list, zip(*data["item"], strict=True)), strict=True))}
    expected = {*dp.count(data, user="user", item=columns, rho=100, delta=1e-6).items}
    if form != "list":
        data = pytest.importorskip("pyarrow").table(data)
    if form == "polars":
        data = pytest.importorskip("polars").from_arrow(data)
    if form == "duckdb":
        data = pytest.importorskip("duckdb").from_arrow(data)
    for items in (listed, [*expected]):
        release = dp.count(data, user="user", item=columns, items=items, rho=100)
        assert {*release.items} == expected
        assert sorted(round(count, -2) for count in release.counts) == [1000, 2000]


@pytest.mark.parametrize("array", [np.array([True, False]), np.array(["2026-01-31", "2026-02-01"], "datetime64[D]")])
def test_listed_cells_of_numpy_are_labels(array):
    data = {"user": [*range(3000)], "item": np.repeat(array, 1500)}
    release = dp.top_k(data, user="user", item="item", items=array, k=2, rho=100)
    assert sorted(release.items) in (["false", "true"], ["2026-01-31", "2026-02-01"])
    assert dp.mechanisms.GaussianCounts.from_rho(items=array, rho=1).items == tuple(
        str(cell).lower() for cell in array.tolist()
    )


@pytest.mark.parametrize(
    ("items", "error"),
    [([True, 2], "all of one type"), ([dt.datetime(2026, 1, 31, tzinfo=dt.UTC)], "give its text in UTC")],
)
def test_listed_cells_that_are_no_labels_cost_nothing(items, error):
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises((SchemaError, ParameterError), match=error):
        dp.count({"user": [1], "item": [True]}, user="user", item="item", items=items, rho=1, budget=budget)
    assert budget.spent.rho == 0


def test_listed_dates_are_found_in_any_spelling():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(DAYS)
    release = dp.count(
        table, user="user", item="day", items=["2026-1-1", "2026/01/02", "2026-01-03"], rho=1, delta=1e-6
    )
    assert {*release.items} == {"2026-01-01", "2026-01-02", "2026-01-03"}
    assert release["2026-01-01"] > 2900 < release["2026-01-02"]
    assert release["2026-01-03"] < 100


@pytest.mark.parametrize(
    "items", [["banana"], ["2026-01-01T05:00"], ["2026-1-1", "2026-01-01"], ["0000-01-01"], [("2026-01-01",) * 2]]
)
def test_listed_items_that_a_column_cannot_hold_cost_nothing(items):
    pyarrow = pytest.importorskip("pyarrow")
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises((SchemaError, ParameterError)):
        dp.count(pyarrow.table(DAYS), user="user", item="day", items=items, rho=1, delta=1e-6, budget=budget)
    assert budget.spent.rho == 0


@pytest.mark.parametrize(("kind", "number"), [("uint64", -1), ("int64", 2**63)])
def test_listed_tuples_with_numbers_out_of_range_cost_nothing(kind, number):
    pyarrow = pytest.importorskip("pyarrow")
    budget, size = dp.Budget(rho=1, delta=1e-5), pyarrow.array([1] * 3000, kind)
    table = pyarrow.table({"user": np.arange(3000), "page": ["a"] * 3000, "size": size})
    for others in ({}, {"others": True, "l0": 1}):
        with pytest.raises(SchemaError, match="does not fit"):
            dp.count(
                table, user="user", item=["page", "size"], items=[("a", number)], rho=0.5, delta=1e-6, budget=budget,
                **others,
            )  # fmt: skip
    assert budget.spent.rho == 0


def test_a_mechanism_without_counts_counts_no_listed_items():
    mechanism = dp.TruncatedGeometric(epsilon=1, delta=1e-6, l0=1, with_counts=False)
    with pytest.raises(ParameterError, match="publish counts"):
        dp.mechanisms.KnownItems(mechanism=mechanism, items=("a",))
