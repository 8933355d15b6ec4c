"""Weights of a set union and sums by Ibis and Spark: they equal the local ones of the items a keyed hash chooses."""

import hashlib
import math
from collections import Counter
from decimal import Decimal

import duckdb
import numpy as np
import pytest
from counting import clipped_sums, read_values
from pairs import as_dict
from test_conformance import EXACT, generated, ibis_table, is_short, table
from user_lists import lists_of

import discreet as dp
from conftest import SPARKS, spark_session
from discreet import engines
from discreet.engines import ibis as ibis_engine
from discreet.engines import spark as spark_engine
from discreet.engines.engine import Weighting
from discreet.errors import ParameterError, SchemaError
from discreet.testing import seeded_rng

KEY = "0123456789abcdef" * 4
COLUMNS = ("us`er", "it.em")


ENGINES = ["duckdb", *(pytest.param(form, marks=pytest.mark.spark) for form in SPARKS)]
weighing = pytest.mark.parametrize("engine", [*ENGINES, "sqlite"], indirect=True)


@pytest.fixture(scope="module", params=ENGINES)
def engine(request, tmp_path_factory):
    """An engine's module, and a function from a pyarrow table to the engine's own table."""
    if request.param in ("duckdb", "sqlite"):
        yield ibis_engine, lambda rows: ibis_table(request.param, rows)
        return
    path = str(tmp_path_factory.mktemp("tables") / "log.parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    with spark_session(request.param) as session:

        def opened(rows):
            parquet.write_table(rows, path)
            return session.read.parquet(path)

        yield spark_engine, opened


@pytest.fixture
def key(monkeypatch):
    """Use the same key in every call."""
    for module in (spark_engine, ibis_engine):
        monkeypatch.setattr(module, "fresh_key", lambda: KEY)


def pairs(kind):
    """Return the distinct pairs of the generated table, without NULL and overlong labels."""
    users, items = generated(kind)
    return {(u, i) for u, i in zip(users, items, strict=True) if is_short(u) and is_short(i)}


def place(module, user, item):
    """Return the keyed hash that orders an item among the items of a user."""

    def framed(cell):
        if module is spark_engine:
            raw = cell if isinstance(cell, bytes) else str(cell).encode()
            kind = b"bigint:" if isinstance(cell, int) else b"binary:"
            return kind + str(len(raw)).encode() + b":" + raw
        kind = {int: "int64", str: "string", bytes: "binary"}[type(cell)]
        text = cell.hex().upper() if isinstance(cell, bytes) else str(cell)
        return f"{kind}:{len(text)}:{text}".encode()

    return hashlib.sha256(KEY.encode() + framed(user) + framed(item)).hexdigest()


def bounded(module, rows, l0):
    """Yield the pairs of each user and the first l0 items in the order of the keyed hash."""
    of_user = {}
    for user, item in rows:
        of_user.setdefault(user, []).append(item)
    for user, items in of_user.items():
        for item in sorted(items, key=lambda item: place(module, user, item))[:l0]:
            yield user, item


def local(rows, weighting):
    """Return the weights that the Rust core computes on this machine."""
    users, items = zip(*rows, strict=True)
    labels, lists = lists_of(list(users), list(items))
    weights = lists.weights(weighting.method, weighting.bits, few=weighting.full)
    return as_dict((labels, weights))


def remote(module, source, weighting, without=(), columns=COLUMNS):
    rows = dp.Table(source, user=columns[0], item=columns[1])
    labels, weights, _ = module.weighed(rows, weighting=weighting, without=list(without), apart=(), tick=None)
    assert weights.dtype == np.int64
    return as_dict((labels, weights))


@weighing
@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize(
    ("method", "l0"), [("even", 7), ("even_squares", 1), ("even_squares", 7), ("even_squares", 4000)]
)
def test_remote_weights_equal_local_weights(engine, key, kind, method, l0):
    module, opened = engine
    weighting = Weighting(method=method, bits=28, l0=l0)
    found = remote(module, opened(table(kind)), weighting)
    assert found == local(bounded(module, pairs(kind), l0), weighting)
    if l0 == 4000:
        assert found == local(pairs(kind), weighting)
        assert set(found) == {item for _, item in pairs(kind)}


@weighing
@pytest.mark.parametrize("kind", EXACT)
def test_released_items_are_excluded_before_the_choice(engine, key, kind):
    module, opened = engine
    weighting = Weighting(method="even_squares", bits=20, l0=3)
    named = sorted({item for _, item in pairs(kind)})[::2]
    left = {(user, item) for user, item in pairs(kind) if item not in set(named)}
    found = remote(module, opened(table(kind)), weighting, named)
    assert found == local(bounded(module, left, 3), weighting)


@weighing
def test_every_call_uses_a_new_key(engine):
    module, opened = engine
    source = opened(table("integers"))
    weighting = Weighting(method="even", bits=20, l0=2)
    assert remote(module, source, weighting) != remote(module, source, weighting)


@pytest.fixture(scope="module")
def log():
    """3000 users with the same five items and one unique item each.

    At a delta of 1e-15, a release names a unique item with a chance of 3000 * 1e-15.
    """
    pytest.importorskip("pyarrow")
    item = "'i' || CASE i WHEN 5 THEN 100 + u ELSE i END"
    rows = duckdb.connect().sql(f'SELECT u AS "user", {item} AS item FROM range(3000) t(u), range(6) s(i)')
    return rows.to_arrow_table()


@weighing
@pytest.mark.parametrize("method", ["weighted_gaussian", "weighted_laplace", "dp_sips", "auto"])
def test_items_of_all_users_are_released(engine, log, method):
    _, opened = engine
    release = dp.select(opened(log), user="user", item="item", epsilon=2.0, delta=1e-15, l0=6, method=method)
    assert release.items == [f"i{n}" for n in range(5)]
    assert not release.seeded
    assert release.guarantee.epsilon(1e-6) <= 2.0


@weighing
def test_a_remote_table_can_be_released_repeatedly(engine, log):
    _, opened = engine
    items = dp.tables.UserItems.from_table(opened(log), user="user", item="item")
    union = dp.mechanisms.SetUnion.from_rho(method="weighted_gaussian", rho=1.0, delta=1e-15, l0=6)
    assert [union.release(items).items for _ in range(2)] == [[f"i{n}" for n in range(5)]] * 2


@weighing
def test_discover_and_peel_ranks_items_of_a_remote_table(engine, log):
    _, opened = engine
    release = dp.top_k(
        opened(log), user="user", item="item", k=3, epsilon=2.0, delta=1e-15, method="discover+peel", l0=6
    )
    assert set(release.items) <= {f"i{n}" for n in range(5)}
    assert len(release) == 3


@pytest.mark.parametrize("method", ["policy_gaussian", "policy_laplace"])
def test_uneven_methods_are_refused_without_a_charge(engine, log, method):
    _, opened = engine
    budget = dp.Budget(rho=5.0, delta=1e-5)
    before = budget.remaining
    with pytest.raises(ParameterError, match="dp_sips"):
        dp.select(opened(log), user="user", item="item", rho=0.5, delta=1e-6, l0=6, method=method, budget=budget)
    assert budget.remaining == before


@pytest.mark.parametrize("later", ["policy_gaussian", "policy_laplace", "shared_order"])
def test_uneven_methods_are_refused_in_later_rounds(engine, log, later):
    _, opened = engine
    items = dp.tables.UserItems.from_table(opened(log), user="user", item="item")
    method, shared = ("weighted_gaussian", True) if later == "shared_order" else (later, False)
    first = dp.mechanisms.SetUnion.from_rho(method="weighted_gaussian", rho=0.5, delta=1e-6, l0=6)
    second = dp.mechanisms.SetUnion.from_rho(method=method, rho=0.5, delta=1e-6, l0=6, shared_order=shared)
    with pytest.raises(ParameterError):
        dp.mechanisms.IteratedSetUnion(rounds=(first, second)).release(items)


def test_bad_columns_cost_nothing(engine, log):
    _, opened = engine
    budget = dp.Budget(rho=5.0, delta=1e-5)
    before = budget.remaining
    with pytest.raises(SchemaError, match="did you mean"):
        dp.select(opened(log), user="User", item="item", rho=0.5, delta=1e-6, l0=6, method="dp_sips", budget=budget)
    assert budget.remaining == before
    dp.select(opened(log), user="user", item="item", rho=0.5, delta=1e-6, l0=6, method="dp_sips", budget=budget)
    assert budget.remaining != before


@pytest.mark.parametrize("bits", [0, 1, 28, 40])
def test_even_weights_are_rounded_down(bits):
    for method, power in (("even", 1), ("even_squares", 2)):
        shares = Weighting(method=method, bits=bits, l0=5000).shares
        unit = 2**bits
        assert all(d * s**power <= unit**power < d * (s + 1) ** power for d, s in enumerate(shares, 1))
    _, lists = lists_of([1] * 7, list(range(7)))
    assert lists.weights("even_squares", bits).tolist() == [math.isqrt(4**bits // 7)] * 7


def named(labels, *columns):
    """Return the numbers of each item that has any."""
    rows = zip(labels.to_list(), *(column.tolist() for column in columns), strict=True)
    return {item: numbers for item, *numbers in rows if any(numbers)}


def compared(table, items, l0):
    """Return all numbers that calibrated counts read of a table, if `items` are confirmed, and the weights."""
    counting = engines.counting(table)
    found = counting.checked().counted()
    rows = np.array([row for row, item in enumerate(found.labels.to_list()) if item in items], np.int64)
    assert len(rows) == len(items)
    rest = counting.rest(found, rows)
    later = rest.weighed(Weighting(method="capped_squares", bits=20, l0=l0, full=3), seeded_rng(1))
    sizes = {most: rest.users_by_size(most).tolist() for most in (1, 5, 1000)}
    public = counting.public([*items][:3])
    read = named(found.labels, found.counts), found.users, sizes, later.users
    return read, named(later.labels, later.weights), {i: n for i, n in named(*public[:2]).items() if i in [*items][:3]}


COLUMNED = {"one column": ["us`er", "it.em"], "two columns": [["us`er", "till"], ["it.em", "shop"]]}


@weighing
@pytest.mark.parametrize(
    ("columns", "kind", "left"),
    [
        *(("one column", *case) for case in [("integers", 0.5), ("texts", 0.5), ("bytes", 0.5), ("bytes", 0)]),
        *(("two columns", *case) for case in [("integers", 0.5), ("texts", 1), ("bytes", 0.5)]),
    ],
)
def test_all_numbers_of_calibrated_counts_are_the_local_ones(engine, key, kind, columns, left):
    module, opened = engine
    rows, (user, item) = table(kind), COLUMNED[columns]
    if columns == "two columns":
        if module is ibis_engine and kind == "bytes":
            pytest.skip("Ibis has no items of several columns with bytes")
        for name in ("till", "shop"):
            rows = rows.append_column(name, [np.random.default_rng(len(name)).integers(0, 3, len(rows))])
    here, there = (dp.Table(data, user=user, item=item) for data in (rows, opened(rows)))
    labels = engines.counting(here).counted().labels.to_list()
    items = dict.fromkeys(labels[: round(len(labels) * (1 - left))])
    exact, weights, public = compared(here, items, 4000)
    assert compared(there, items, 4000) == (exact, weights, public)
    assert exact[1] == exact[-1] == sum(exact[2][1])
    if columns == "one column":
        kept = {*bounded(module, {(u, i) for u, i in pairs(kind) if i not in items}, 4)} or {(0, 0)}
        read, chosen, _ = compared(there, items, 4)
        assert read == exact
        assert left == 0 or chosen == {
            item: [n] for item, n in local(kept, Weighting(method="capped_squares", bits=20, l0=4, full=3)).items()
        }
        assert left == 0 or chosen != weights
    known = [*items][1:]
    if known:
        rest = [engines.counting(one).excluding(known) for one in (here, there)]
        found = [one.checked().counted() for one in rest]
        assert named(*found[0][:2]) == named(*found[1][:2])
        assert found[0].users == found[1].users


ITEMS = {"texts": "page", "dates": "day", "two columns": ["open", "page"]}


@pytest.fixture(scope="module")
def visited():
    """Visits of 20,000 users, some of whom have many of 1,500 pages; and the number of users of each item, by kind."""
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(5)
    users = np.repeat(np.arange(20_000), np.minimum(rng.geometric(0.15, 20_000), 60))
    ends = np.cumsum(1 / np.arange(1, 1501))
    pages = np.searchsorted(ends / ends[-1], rng.random(len(users)))
    columns = {"user": users, "page": [f"é{page}" for page in pages], "open": users % 2 == 0}
    columns["day"] = np.datetime64("2020-01-01") + pages
    keys = {"texts": columns["page"], "dates": columns["day"].astype(str).tolist()}
    keys["two columns"] = [*zip(map(str.lower, map(str, columns["open"])), columns["page"], strict=True)]
    pairs = {kind: {*zip(users.tolist(), labels, strict=True)} for kind, labels in keys.items()}
    return pyarrow.table(columns), {kind: Counter(item for _, item in found) for kind, found in pairs.items()}


@weighing
@pytest.mark.parametrize("kind", ITEMS)
def test_the_default_count_of_a_remote_table_is_like_the_local_one(engine, visited, kind):
    module, opened = engine
    if kind == "dates" and module is ibis_engine:
        pytest.skip("Ibis has no labels of dates here")
    names = [ITEMS[kind]] if isinstance(ITEMS[kind], str) else ITEMS[kind]
    rows, exact, budget = visited[0].select(["user", *names]), visited[1][kind], dp.Budget(rho=9, delta=1e-5)
    options = {"user": "user", "item": ITEMS[kind], "rho": 0.5, "delta": 1e-6}
    there, here = dp.count(opened(rows), budget=budget, **options), dp.count(rows, **options)
    assert budget.spent.rho == pytest.approx(0.5)
    assert (there.item_type, there.clipped, there.made_by) == (here.item_type, False, here.made_by)
    for release in (there, here):
        truth = np.array([exact[item] for item in release.items])
        # Of 600 local releases, the largest error of any item was 4.9 sigma.
        assert np.all(np.abs(release.counts - truth) < 8 * release.sigmas + 1)
        assert abs(release.users[0] - 20_000) < 8 * release.users[1]
        assert np.count_nonzero(~release.confirmed) > 2 * np.count_nonzero(release.confirmed) > 40
    assert 0.8 < len(there) / len(here) < 1.25


VALUES = [None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.5, -2.5, 0.49999999999999994, 0.005]
VALUES += [2.0**53, -(2.0**53) - 2, 2.0**52 + 1, 1e15 + 0.5, 2.675, -1.115, *(n / 8 for n in range(-300, 300, 7))]
ROWS = ("user", "item", "value")


def sales(kind, seed):
    """Return random rows with NULL, values that are no numbers, and sums that exceed 64 bits before they cancel out."""
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(seed)
    users, items = rng.integers(0, 30, 900).tolist() + [7] * 5001, rng.integers(0, 9, 900).tolist() + [3] * 5001
    values = [VALUES[place] for place in rng.integers(0, len(VALUES), 900)] + [1e308, -1e308] * 2500 + [7.0]
    order = rng.permutation(len(users))
    columns = {"user": users, "item": items, "shop": rng.integers(0, 2, len(users)).tolist(), "value": values}
    columns = {name: [cells[place] for place in order] for name, cells in columns.items()}
    text = "item" if kind == "texts" else "user"
    columns[text] = [f"é{cell}" for cell in columns[text]]
    for name in ("user", "item"):
        columns[name] = [None if rng.random() < 0.02 else cell for cell in columns[name]]
    return pyarrow.table(columns)


@pytest.mark.parametrize(
    ("kind", "resolution"),
    [("integers", 1.0), ("texts", 0.01), ("integers", 0.3), ("texts", 1e-12), ("integers", 1e12), ("texts", 2.0**-32)],
)
def test_remote_sums_equal_local_sums(engine, kind, resolution):
    _, opened = engine
    rows = sales(kind, seed=int(1000 * resolution))
    source = opened(rows)
    items = [name if kind == "texts" else place for place, name in enumerate([*(f"é{n}" for n in range(9)), "none"])]
    pairs = [(item, shop) for item in items for shop in (1, 0, 2)]
    for bounds, l0 in (((-(2**30), 2**30), None), ((0, 20), 9), ((-30, -7), 5000)):
        options = {"bounds": bounds, "resolution": resolution}
        expected = clipped_sums(rows, ROWS, items=items, **options)
        assert clipped_sums(source, ROWS, items=items, l0=l0, **options) == expected
        assert bounds[0] <= 0 or any(expected)
    several = ("user", ["item", "shop"], "value")
    options = {"items": pairs, "bounds": (-9, 20), "resolution": resolution}
    assert clipped_sums(source, several, l0=18, **options) == clipped_sums(rows, several, **options)
    if kind == "integers":
        for items in ([2**64 - 1], [3, 2**64 - 1]):
            options = {"items": items, "bounds": (-9, 20), "resolution": resolution}
            assert clipped_sums(source, ROWS, **options) == clipped_sums(rows, ROWS, **options)


DECIMALS = [Decimal(text) for text in ("-9999999.99", "0.01", "2.5", "-0.5", "19.99")]
TYPED = {
    "int64": [2**63 - 1, -(2**63), 2**53 + 1, -5, 0],
    "int8": [127, -128, 0, 5, -5],
    "uint64": [2**64 - 1, 0, 2**53 + 1, 5, 6],
    "float32": [math.nan, math.inf, -3e38, 0.1, 2.5],
    "bool_": [True, False, True, True, False],
    "decimal128(9, 2)": DECIMALS,
    "decimal128(38, 3)": [*DECIMALS[1:], Decimal("-" + "9" * 35 + ".999")],
}


@pytest.mark.parametrize("name", TYPED)
def test_remote_values_of_every_type_are_the_local_ones(engine, name):
    _, opened = engine
    pyarrow = pytest.importorskip("pyarrow")
    make, *digits = name.removesuffix(")").split("(")
    kind = getattr(pyarrow, make)(*(int(part) for part in ",".join(digits).split(",") if part))
    values = pyarrow.array([*TYPED[name], None], kind)
    rows = pyarrow.table({"user": [*range(6)], "item": [*range(6)], "value": values})
    # With the bounds (2, 9), a zero is 2 and a missing value is 0.
    wide = -(2**61), 2**61
    for resolution, bounds, shift in (
        (1.0, (-(2**30), 2**30), 0),
        (1.0, wide, 31),
        (2.0**-32, wide, 31),
        (0.01, (2, 9), 0),
        (1e12, (-(2**30), 2**30), 0),
    ):
        options = {"items": [*range(6)], "bounds": bounds, "resolution": resolution, "shift": shift}
        assert clipped_sums(opened(rows), ROWS, **options) == clipped_sums(rows, ROWS, **options)


@pytest.mark.parametrize("kind", ["integers", "texts"])
@pytest.mark.parametrize("l0", [1, 3])
def test_listed_items_with_a_value_are_chosen_by_a_keyed_hash(engine, key, kind, l0):
    module, opened = engine
    rows = sales(kind, seed=l0)
    items = ["é1", "é3", "é5", "é8", "none"] if kind == "texts" else [1, 3, 5, 8, 10]
    cells = [*zip(*(rows[name].to_pylist() for name in ROWS), strict=True)]
    listed = {(u, i) for u, i, v in cells if u is not None and i in items and v is not None and math.isfinite(v)}
    chosen = {*bounded(module, listed, l0)}
    assert len(chosen) < len(listed)
    kept = rows.filter([cell[:2] in chosen for cell in cells])
    options = {"items": items, "bounds": (-40, 50), "resolution": 0.5}
    assert clipped_sums(opened(rows), ROWS, l0=l0, **options) == clipped_sums(kept, ROWS, **options)


def test_wide_sums_of_many_steps_are_exact_in_a_remote_table(engine):
    _, opened = engine
    values = [2.0**28, -(2.0**28) + 2.0**-24, 0.1, -5e-10, 2.0**70, -(2.0**70), 1.5 * 2.0**-32, 2.5 * 2.0**-32]
    users = [0, 0, 1, 1, 2, 2, 3, 3]
    rows = pytest.importorskip("pyarrow").table({"user": users, "item": users, "value": values})
    for shift, bounds in ((0, (-(2**30), 2**30)), (5, (-(2**35), 2**33)), (31, (-(2**61), 2**61))):
        options = {"items": [*range(4)], "bounds": bounds, "resolution": 2.0**-32, "shift": shift}
        assert clipped_sums(opened(rows), ROWS, **options) == clipped_sums(rows, ROWS, **options)
    with pytest.raises(ParameterError, match=r"2\^61 steps"):
        clipped_sums(opened(rows), ROWS, items=[1], bounds=(0, 2**61 + 1), resolution=1.0)


def test_only_users_with_a_value_find_an_item_of_a_remote_table(engine):
    _, opened = engine
    rows = sales("texts", seed=1)
    nothing = rows.set_column(3, "value", pytest.importorskip("pyarrow").nulls(len(rows), "float64"))

    assert as_dict(read_values(opened(rows))) == as_dict(read_values(rows))
    assert as_dict(read_values(opened(nothing))) == {}


def test_every_sum_uses_a_new_key(engine):
    _, opened = engine
    source = opened(sales("integers", seed=2))
    options = {"items": [*range(9)], "bounds": (1, 2), "resolution": 1.0, "l0": 2}
    assert len({tuple(clipped_sums(source, ROWS, **options)) for _ in range(3)}) > 1


@pytest.fixture
def visits(engine):
    """4000 users with a sum of 7.5 for each of two items, in two rows, and 4000 users without a value for a third."""
    query = """SELECT u AS "user", 'i' || i AS item, i > 0 AS late, CASE WHEN i < 2 THEN 2.5 * (1 + n) END AS value,
        CURRENT_DATE AS day FROM range(4000) t(u), range(3) s(i), range(2) r(n)"""
    return engine[1](duckdb.connect().sql(query).to_arrow_table())


def test_sums_of_a_remote_table_are_released(visits):
    columns, given = {"user": "user", "value": "value"}, {"bounds": (0, 9), "resolution": 0.5, "rho": 50}
    release = dp.sum(visits, item="item", l0=2, delta=1e-6, **columns, **given)
    assert sorted(release.items) == ["i0", "i1"]
    assert np.all(np.abs(release.counts - 30_000) < 8 * release.sigmas)
    listed = dp.sum(visits, item=["late", "item"], items=[("false", "i0"), ("true", "i0")], **columns, **given)
    assert listed.items == [("false", "i0"), ("true", "i0")]
    assert np.all(np.abs(listed.counts - [30_000, 0]) < 8 * listed.sigmas)


@pytest.mark.parametrize(
    ("value", "text"), [("day", "type date; cast it"), ("late_", "did you mean 'late'"), ("item", None)]
)
@pytest.mark.parametrize("more", [{"l0": 1, "delta": 1e-6}, {"items": ["i0"]}], ids=["found", "listed"])
def test_a_remote_column_that_cannot_be_summed_costs_nothing(visits, value, text, more):
    budget = dp.Budget(rho=9, delta=1e-5)
    item = "item" if text else "late"
    with pytest.raises(SchemaError, match=text or "type string; cast it .* text by try_cast"):
        dp.sum(visits, user="user", item=item, value=value, bounds=(0, 9), rho=1, budget=budget, **more)
    assert budget.spent.rho == 0
