"""A `Table`: rows that several releases share, checked when it is made and read when it is used."""

import inspect
from collections import Counter

import numpy as np
import pytest

import discreet as dp
from discreet.errors import ParameterError
from discreet.releasing import Options

# No test fails by chance more often than once in 1e20 runs: noise is below a hundredth of these counts.
LOG = {
    "user": [*range(4000)] * 2,
    "page": ["home"] * 4000 + ["help"] * 4000,
    "n": [1] * 8000,
    "ts": ["2026-01-31"] * 8000,
}
COLUMNS = {"user": "user", "item": "page"}
PROMISE = {"rho": 1, "delta": 1e-6}
PLUME = dp.Plume(rho=1, delta=1e-6, m=2, m_prime=2)
BOUND = dp.mechanisms.ContributionBound.from_rho(rho=0.01, percentile=90)
VERBS = {
    "count": lambda *data, **more: dp.count(*data, **more, **PROMISE),
    "count_auto": lambda *data, **more: dp.count(*data, **more, **PROMISE, l0="auto"),
    "top_k": lambda *data, **more: dp.top_k(*data, **more, **PROMISE, k=2),
    "peel": lambda *data, **more: dp.top_k(*data, **more, k=2, epsilon=4, delta=1e-6, method="discover+peel", l0=2),
    "select": lambda *data, **more: dp.select(*data, **more, **PROMISE, l0=2),
    "histogram": lambda *data, **more: dp.GumbelTopK(k=2, scale=1, delta=1e-6).release(
        dp.Histogram.from_table(*data, **more)
    ),
    # With the usual alpha, an item's weight ends five scales of noise above the threshold: it is missed with 3e-7.
    "lists": lambda *data, **more: dp.mechanisms.SetUnion.from_rho(**PROMISE, l0=2, alpha=12).release(
        dp.tables.UserItems.from_table(*data, **more)
    ),
    "mechanism": lambda *data, **more: PLUME.release(*data, **more),
    "budget": lambda *data, **more: dp.Budget(**PROMISE).release(
        dp.Plume(rho=1, delta=1e-6, m=2, m_prime=2), *data, **more
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_table_takes_the_place_of_rows_and_columns(verb):
    rows, columns = {**LOG, "page": [*LOG["page"]]}, {**COLUMNS, "time": "ts", "every": "1d"}
    made = [VERBS[verb](rows, **columns), *(VERBS[verb](dp.Table(rows, **columns)) for _ in range(2))]
    found = dp.Table(rows, **columns).read()
    rows.clear()  # a table that was read reads no rows
    for release in [*made, *(VERBS[verb](found) for _ in range(2))]:
        assert sorted(release.items) == [("2026-01-31", page) for page in ("help", "home")]


@pytest.mark.parametrize("kind", ["integers", "texts", "columns"])
@pytest.mark.parametrize("options", [{}, {"only": 2}, {"l0": 3}, {"l0": 2, "only": 9}, {"l0": 99}])
def test_a_table_that_was_read_gives_the_counts_of_its_rows(kind, options):
    rng = np.random.default_rng(1)
    users, items = rng.integers(0, 300, 6000), rng.zipf(1.4, 6000) % 40
    data = {"user": users, "item": items if kind == "integers" else items.astype("U9"), "part": items % 3}
    columns = ["part", "item"] if kind == "columns" else "item"
    table, options = dp.Table(data, user="user", item=columns), dict(options)
    whole = dict(zip(*_exact(dp.Histogram.from_table(table)), strict=True))
    if "only" in options:
        options["only"] = [*whole][: options["only"]]
    found = dp.Histogram.from_table(table.read(), **options, count_users=True)
    labels, counts = _exact(found)
    listed = {*options.get("only", whole)}
    numbers = Counter(user for user, item in _pairs(data, columns) if item in listed)
    assert {*labels} <= listed
    assert found._users == len(numbers)
    assert sum(counts) == sum(min(number, options.get("l0", 99)) for number in numbers.values())
    assert all(count <= whole[label] for label, count in zip(labels, counts, strict=True))
    if options.get("l0", 99) == 99:
        assert dict(zip(labels, counts, strict=True)) == {label: whole[label] for label in listed}


def _exact(histogram):
    labels, counts = histogram._in_order()
    return labels.to_list(), counts.tolist()


def _pairs(data, columns):
    items = (
        zip(*(data[name].tolist() for name in columns), strict=True)
        if isinstance(columns, list)
        else data[columns].tolist()
    )
    return {*zip(data["user"].tolist(), items, strict=True)}


def test_a_table_that_was_read_has_no_values_and_is_private():
    with pytest.raises(ParameterError, match="without value"):
        dp.Table(LOG, **COLUMNS, value="n").read()
    found = dp.Table(LOG, **COLUMNS).read()
    with pytest.raises(ParameterError, match="needs the rows"):
        dp.sum(found, bounds=(0, 2), l0=2, **PROMISE)
    with pytest.raises(ParameterError, match="not a LocalLists"):
        dp.Table(found.data, **COLUMNS)
    listed = dp.mechanisms.ContributionBound.from_rho(rho=1, percentile=90, only=["home", "none"])
    assert listed.release(found).items == listed.release(LOG, **COLUMNS).items == [1]
    assert repr(found.read()) == "Table(SENSITIVE)"
    assert dp.Shape.of(found) == dp.Shape.of(LOG, **COLUMNS)


def test_a_sum_and_a_plan_take_a_table():
    table = dp.Table(LOG, **COLUMNS, value="n")
    found = dp.sum(table, bounds=(0, 2), l0=2, **PROMISE)
    assert all(abs(count - 4000) < 10 * sigma for count, sigma in zip(found.counts, found.sigmas, strict=True))
    assert set(dp.count(table, **PROMISE).items) == {"home", "help"}
    assert "4,000 users" in str(dp.plan("count", **PROMISE, like=table))
    assert dp.Shape.of(table) == dp.Shape.of(LOG, **COLUMNS)
    assert BOUND.release(table).items == [2]


@pytest.mark.parametrize("verb", VERBS)
def test_columns_beside_a_table_and_missing_columns_are_refused(verb):
    table = dp.Table(LOG, **COLUMNS)
    for more in (COLUMNS, {"memory": "1GB"}, {"time": "ts"}):
        with pytest.raises(ParameterError, match="leave them out"):
            VERBS[verb](table, **more)
    for more in ({}, {"user": "user"}, {"item": "page"}):
        with pytest.raises(ParameterError, match="give user= and item="):
            VERBS[verb](LOG, **more)
    with pytest.raises(TypeError, match="'usr'"):
        VERBS[verb](LOG, **COLUMNS, usr="user")


def test_a_table_is_checked_before_it_is_read():
    for wrong in (
        {"item": 5},
        {"item": "user"},
        {"every": "1d"},
        {"time": "ts"},
        {"memory": -1},
        {"progress": 5},
        {"value": 5},
    ):
        with pytest.raises(ParameterError):
            dp.Table("no such file.csv", **(COLUMNS | wrong))
    with pytest.raises(ParameterError, match="not a Table"):
        dp.Table(dp.Table(LOG, **COLUMNS), **COLUMNS)


def test_a_table_is_frozen_and_shows_nothing():
    table = dp.Table(LOG, **COLUMNS)
    with pytest.raises(AttributeError, match="cannot be changed"):
        table.user = "page"
    assert repr(table) == "Table(SENSITIVE)"


def test_the_parameters_of_count_are_few():
    assert len(inspect.signature(dp.count).parameters.keys() - Options.__annotations__) <= 12
