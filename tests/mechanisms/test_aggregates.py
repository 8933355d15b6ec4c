"""Numbers of users and rows, sums and means of one selection, as one mechanism."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from command import discreet
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.engines.local import read
from discreet.engines.pairs import read_pairs
from discreet.errors import InputError, ParameterError, SchemaError
from discreet.mechanisms import Aggregates
from discreet.reference.aggregates import aggregates as reference
from discreet.release.release import changed
from discreet.testing import seeded_rng
from sales import EXACT, SALES

MEASURES = [("rows", 0, 0, 2, 1, 0), ("sum", -3, 5, 1, 1, 0), ("mean", -4, 3, 2, 1, 0), ("mean", 0, 9, 3, 64, 0)]
BOUNDS = [2, 5, 8, 2, 15 * 64, 3]
"""The most that one user and item adds to each sum of MEASURES."""
rows = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.one_of(st.none(), st.integers(-9, 9))), min_size=1, max_size=25
)


def table(rows):
    users, items, values = zip(*rows, strict=True)
    return dp.Table({"user": [*users], "item": [*items], "value": np.array(values, float)}, user="user", item="item")


def measured(pairs, items, l0):
    """Return the sums of the items by item."""
    labels, sums = pairs.measured(dp._core.Labels.from_sequence([*items]), l0, MEASURES)
    return dict(zip(labels.to_list(), sums.tolist(), strict=True))


@settings(max_examples=40, deadline=None)
@given(rows=rows, l0=st.integers(1, 5))
def test_all_numbers_are_those_of_one_choice_of_each_users_items(rows, l0):
    chosen = sorted({item for _, item, _ in rows})[:3]
    (pairs,) = read_pairs(table(rows), [("value", 1.0)])
    found, counts = (
        measured(pairs, chosen, l0),
        dict(zip(*(part.tolist() for part in _counted(pairs, l0)), strict=True)),
    )
    users = sorted({user for user, *_ in rows})
    sizes = {user: len({item for other, item, _ in rows if other == user}) for user in users}
    # Each user's part is that of one order of the user's items; users are independent, so sums of parts are searched.
    options = []
    for user in users:
        own = [row for row in rows if row[0] == user]
        orders = itertools.permutations(sorted({item for _, item, _ in own}))
        parts = set()
        for order in orders if sizes[user] > l0 else [next(orders)]:
            place = {item: number for number, item in enumerate(order)}
            part = reference(own, chosen, l0, MEASURES, lambda _, item, place=place: place[item])
            kept = tuple(sorted(order[:l0]))
            parts.add((tuple(tuple(part[item]) for item in chosen), kept))
        options.append(parts)
    expected = (tuple(tuple(found[item]) for item in chosen), tuple(sorted((k, v) for k, v in counts.items())))
    together = map(_together, itertools.islice(itertools.product(*options), 200_000))
    assert any(one[1] == expected[1] and _near(expected[0], one[0], len(rows)) for one in together)


def _near(found, down, pairs):
    """Return whether sums are those that are rounded down, but for the rounding of the numerators of means."""
    gaps = np.array(found).reshape(-1, 6) - np.array(down).reshape(-1, 6)
    return np.all(gaps[:, [0, 1, 3, 5]] == 0) and np.all((gaps >= 0) & (gaps < pairs))


def _counted(pairs, l0):
    labels, counts = pairs.counts(l0)
    return np.array(labels.to_list()), counts


def _together(parts):
    """Return the sums of all users, and the counts of the items that they keep."""
    sums = tuple(tuple(map(sum, zip(*rows, strict=True))) for rows in zip(*(part for part, _ in parts), strict=True))
    kept = [item for _, own in parts for item in own]
    return sums, tuple(sorted((item, kept.count(item)) for item in {*kept}))


@settings(max_examples=150, deadline=None)
@given(rows=rows, more=rows, l0=st.integers(1, 3))
def test_one_user_changes_the_numbers_of_l0_items_by_their_bounds(rows, more, l0):
    # Both tables have the same random choice of items, which the guarantee takes as given.
    with_user = table([*rows, *((9, item, value) for _, item, value in more)])
    (without,) = read_pairs(table(rows), [("value", 1.0)])
    pairs = read(
        with_user,
        lambda sources, _: dp._core.Pairs.read(sources, "user", "item", value="value", like=without),
        value="value",
    )
    changes = np.array([*measured(pairs, range(5), l0).values()]) - [*measured(without, range(5), l0).values()]
    assert np.count_nonzero(changes.any(axis=1)) <= l0
    assert np.all(np.abs(changes) <= BOUNDS)


def test_numbers_of_sales_are_near_the_truth():
    bounds = {"rows": 2, "sums": {"cents": (0, 40)}, "means": {"cents": (0, 20)}}
    release = dp.aggregate(SALES, user="user", item="shop", **bounds, l0=3, rho=5, delta=1e-6)
    assert sorted(release.items) == ["a", "b", "c"]
    assert [one.name for one in release.aggregates] == ["rows", "cents_sum", "cents_mean"]
    for one, truth in zip(release.aggregates, (8000, EXACT, EXACT / 8000), strict=True):
        # 9 numbers with 7 standard deviations each: a chance of 3e-11.
        assert np.all(np.abs(one.values - truth) < 7 * one.sigmas), one.name
        assert np.all(one.sigmas < 0.02 * truth), one.name
    assert {row["cents_sum"] for row in release} == {*release.aggregates[1].values.tolist()}


def test_the_sigma_of_a_mean_is_that_of_its_error():
    rng, rest = np.random.default_rng(2), {"rho": 0.05, "delta": 1e-6, "l0": 1, "rows": 2}
    user = np.arange(3000).repeat(2)
    log = {"user": user, "item": ["a"] * 6000, "v": 4 + rng.integers(0, 5, 6000)}
    made, truth = Aggregates(**rest, means=(("v", 0, 30, 1.0),)), log["v"].mean()
    found = [made.release(log, user="user", item="item", rng=seeded_rng(n)).aggregates[1] for n in range(400)]
    errors = np.array([(one.values[0] - truth) / one.sigmas[0] for one in found])
    assert 0.9 < errors.std() < 1.1
    assert abs(errors.mean()) < 0.2


def test_a_mean_of_too_few_rows_is_known_by_its_bounds_alone():
    made = Aggregates(rho=0.1, delta=None, l0=None, rows=1, means=(("v", 0, 30, 1.0),), items=("a", "b"))
    rows, columns = {"user": [1], "item": ["a"], "v": [3]}, {"user": "user", "item": "item"}
    mean = made.release(rows, **columns, rng=seeded_rng(1)).aggregates[1]  # unseeded, 1 of 10,000 has enough rows
    assert mean.sigmas.tolist() == [15.0, 15.0]
    assert np.all((mean.values >= 0) & (mean.values <= 30))


@pytest.mark.parametrize("most", [1, 2])
def test_means_between_units_are_rounded_without_bias(most):
    # 30,000 users have values of mean 1/3. With 7 standard deviations of the rounding, a failure has a chance of 3e-12.
    users = np.arange(30_000).repeat(3)
    log = dp.Table({"user": users, "item": [0] * 90_000, "v": [1, 0, 0] * 30_000}, user="user", item="item")
    for parts in (1, 16):
        (pairs,) = read_pairs(log, [("v", 1.0)])
        measure = ("mean", 0, 1, most, parts, 0)
        ((numerator, rows),) = pairs.measured(dp._core.Labels.from_sequence([0]), 1, [measure])[1].tolist()
        assert rows == 30_000 * most
        assert abs(numerator - 30_000 * most * parts / 3) < 7 * math.sqrt(30_000) / 2
    made = Aggregates(rho=50, delta=1e-6, l0=1, rows=most, means=(("v", 0, 1, 1.0),))
    mean = made.release(log).aggregates[1]
    assert abs(mean.values[0] - 1 / 3) < 9 * mean.sigmas[0]


def test_rows_without_a_value_count_as_rows_alone():
    pyarrow = pytest.importorskip("pyarrow")
    users = [*range(4000)] * 2
    log = pyarrow.table({"user": users, "item": ["a"] * 8000, "v": [5] * 4000 + [None] * 4000})
    made = Aggregates(rho=50, delta=1e-6, l0=1, rows=2, sums=(("v", 0, 9, 1.0),), means=(("v", 0, 9, 1.0),))
    release = made.release(log, user="user", item="item", rng=seeded_rng(1))
    found = [round(float(one.values[0]), -2 if one.kind != "mean" else 1) for one in release.aggregates]
    assert found == [8000, 20_000, 5.0]


def test_a_bound_is_found_and_noted():
    log = {"user": np.arange(3000).repeat(3), "item": [*range(3)] * 3000}
    release = dp.mechanisms.Aggregates(rho=50, delta=1e-6, l0=None, rows=1).release(
        log, user="user", item="item", rng=seeded_rng(1)
    )
    assert (release.l0, sorted(release.items)) == (3, [0, 1, 2])
    assert any("l0 = 3 was found" in note for note in release.notes)


def test_several_columns_are_about_the_same_users_and_rows():
    # Each user has 6 items, of which 2 count. All rows of a user have the user's values, so sums agree user by user.
    user = np.arange(4000).repeat(6)
    log = {"user": user, "item": [*range(6)] * 4000, "a": user % 3, "b": 10 + user % 3}
    made = Aggregates(
        rho=5000, delta=1e-6, l0=2, rows=1, sums=(("a", 0, 9, 1.0), ("b", 0, 19, 1.0)), means=(("b", 10, 12, 1.0),)
    )
    release = made.release(log, user="user", item="item")
    rows, a, b, mean = (one.values for one in release.aggregates)
    assert rows.sum() < 8100
    # Noise has a sigma below 0.6 for rows and 10 for sums; 7 sigma, so a failure has a chance below 1e-9.
    assert np.all(np.abs(b - a - 10 * rows) < 7 * 10)
    assert np.all(np.abs(mean - b / rows) < 0.1)
    assert np.all(np.abs(mean - 11) < 0.2)


@pytest.mark.parametrize("resolution", [None, 0.01])
@pytest.mark.parametrize("bounds", [(0, 99.99), (1.25, 149.95), (-0.77, 1000), (123456789.12, 123456789.99)])
def test_a_mean_of_few_rows_is_not_rounded_beyond_its_bounds(bounds, resolution, tmp_path):
    log = {"user": [1, 2, 3], "shop": ["a", "a", "b"], "price": [1.5, 2.5, 3.5]}
    means = {"price": bounds if resolution is None else (*bounds, resolution)}
    # The numbers are noise. Of 80, most are a bound: all but one in 1e9 releases have one.
    given = {"rows": 3, "means": means, "items": [*"abcdefghij"], "rho": 0.5}
    for _ in range(8):
        release = dp.aggregate(log, user="user", item="shop", **given)
        values = release.aggregates[1].values
        assert np.all((values >= bounds[0]) & (values <= bounds[1]))
        release.write(tmp_path / "means.csv", certificate=True)
        assert dp.verify(tmp_path / "means.csv").made_by == release.made_by


def test_a_verified_mean_lies_within_its_bounds(tmp_path):
    release = dp.aggregate(SALES, user="user", item="shop", rows=2, means={"cents": (0, 20)}, l0=3, rho=1, delta=1e-6)
    mean = release.aggregates[1]
    for change in ({"values": mean.values + 99}, {"sigmas": mean.sigmas * 0}, {"sigmas": mean.sigmas + 99}):
        changed(release, aggregates=(release.aggregates[0], replace(mean, **change))).write(
            tmp_path / "rows.csv", certificate=True
        )
        with pytest.raises(InputError, match="contradict"):
            dp.verify(tmp_path / "rows.csv")


def test_the_command_prints_all_numbers_and_names_its_options(tmp_path):
    polars = pytest.importorskip("polars")
    polars.DataFrame(SALES).write_csv(tmp_path / "sales.csv")
    command = ["aggregate", tmp_path / "sales.csv", "--user", "user", "--item", "shop", "--rho", "1", "--delta", "1e-6"]
    told = discreet(*command, "--rows", "2", "--mean", "cents", "0", "20", "-f", "table")[1]
    assert all(name in told for name in ("rows", "cents_mean", "±"))
    wrong = [
        (["--mean", "cents", "0", "20"], "--rows"),
        (["--sum", "cents", "9", "0"], "--sum of 'cents'"),
        ([], "--sum"),
    ]
    for options, named in wrong:
        code, _, error = discreet(*command, *options)
        assert (code, named in error) == (2, True), error


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rows": None, "sums": {}, "means": {}}, "give rows, sums or means"),
        ({"rows": None, "means": {"cents": (0, 9)}}, "rows must be given with means"),
        ({"rows": 0}, "rows must"),
        ({"sums": [("cents", 0, 9)]}, "a key of sums must be the name"),
        ({"sums": {"cents": 9}}, "a value of sums must have"),
        ({"sums": {"cents": (9, 0)}}, "low must be below high"),
        ({"sums": {"cents": (0, 0.5, 1)}}, "whole multiples of the resolution"),
        ({"sums": {1: (0, 9)}}, "a key of sums must be"),
        ({"sums": {"shop": (0, 9)}}, "another column than user, item and time"),
        ({"means": {"cents": (0, 2**96)}, "rows": 9}, "2.95 steps"),
        ({"rows": 2**30, "rho": 1e-6}, "above 1e9; give fewer rows"),
        ({"sums": {"cents": (0, 9)}, "rows": None, "rho": 1e-18}, r"rho \(1e-18\) is too small"),
        ({"delta": None}, "delta"),
        ({"value": "cents"}, "value"),
        ({"sums": {"cents": (0, 9), "CENTS": (0, 9)}}, "one name"),
        ({"sums": {"cents": (0, 9)}, "item": "Cents_sum"}, "rename it"),
        ({"means": {"cents": (0, 9)}, "item": ["shop", "CENTS_MEAN_sigma"]}, "rename it"),
        ({"item": "Rows"}, "rename it"),
        ({"sums": {"c\0": (0, 9)}}, "without NUL"),
        ({"means": ["c\0"], "rows": True, "l0": None}, "without NUL"),
    ],
)
def test_wrong_parameters_cost_nothing(changes, text):
    budget = dp.Budget(rho=5, delta=1e-3)
    asked = {"user": "user", "item": "shop", "rows": 2, "l0": 3, "rho": 1, "delta": 1e-6, "budget": budget, **changes}
    others = dict.fromkeys(("Cents_sum", "CENTS_MEAN_sigma", "Rows"), SALES["shop"]) | {"c\0": SALES["cents"]}
    with pytest.raises((ParameterError, TypeError), match=text):
        dp.aggregate({**SALES, "CENTS": SALES["cents"], **others}, **asked)
    assert budget.remaining.rho == 5


def test_wrong_columns_and_sources_cost_nothing():
    budget = dp.Budget(rho=5, delta=1e-3)
    asked = {"user": "user", "item": "shop", "l0": 3, "rho": 1, "delta": 1e-6, "budget": budget}
    with pytest.raises(SchemaError):
        dp.aggregate(SALES, **asked, sums={"euros": (0, 9)})
    with pytest.raises(ParameterError, match="has the name of a column of the release"):
        dp.aggregate({"user": [1], "rows": ["a"]}, **{**asked, "item": "rows"}, rows=2)
    table = dp.Table(SALES, user="user", item="shop")
    more = {name: asked[name] for name in ("l0", "rho", "delta", "budget")}
    with pytest.raises(ParameterError, match="need the rows"):
        dp.aggregate(table.read(), **more, rows=2)
    pyarrow = pytest.importorskip("pyarrow")
    reader = pyarrow.table({name: [*cells] for name, cells in SALES.items()} | {"more": [1] * 24_000}).to_reader()
    with pytest.raises(ParameterError, match="read twice"):
        dp.aggregate(reader, **asked, sums={"cents": (0, 9), "more": (0, 9)})
    assert budget.remaining.rho == 5


def test_a_budget_pays_once_for_all_numbers():
    budget = dp.Budget(rho=1, delta=1e-6)
    release = dp.aggregate(
        SALES, user="user", item="shop", rows=2, means={"cents": (0, 20)}, rho=1, items=["a"], budget=budget
    )
    assert release.guarantee == dp.Guarantee(1, 0)
    assert budget.remaining == dp.Guarantee(0, 1e-6)
    assert math.isclose(release.sigmas[0], math.sqrt(4 / 2), rel_tol=1e-6)
