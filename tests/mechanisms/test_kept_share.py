"""Counts under a bound on the items of a user, with the share of pairs that the bound keeps."""

import itertools
import math

import numpy as np
import pytest

import discreet as dp
from contract import Contract
from discreet import Guarantee
from discreet.audit.findings import hockey_stick, renyi
from discreet.engines import numbers_of_items
from discreet.errors import BudgetExceeded, InputError, ParameterError, SchemaError
from discreet.formats import RELEASED
from discreet.laws import joint_law
from discreet.mechanisms import CountsWithFoundBound, CountsWithShare, KeptPairs, KnownItems, TruncatedGeometric
from discreet.release.kept import KeptShare
from discreet.tables import Table
from discreet.testing import seeded_rng

COLUMNS = {"user": "user", "item": "item"}


def log(users=6000, seed=3):
    """Return rows of users who have from 1 to 30 items, most of them few, and every pair twice."""
    sizes = np.minimum(np.random.default_rng(seed).zipf(1.7, users), 30)
    user = np.repeat(np.arange(users), sizes)
    item = np.concatenate([np.arange(n) for n in sizes])
    return {"user": np.tile(user, 2), "item": np.tile(item, 2)}, sizes


LOG, SIZES = log()


class TestKeptPairs(Contract):
    def mechanism(self):
        return KeptPairs(l0=3, most=60, rho=0.1)

    def plain(self):
        return dp.Histogram.from_counts(range(500), [4] * 500, l0=1, linf=60, complete=True)


class TestCountsWithShare(Contract):
    def mechanism(self):
        return CountsWithShare.from_epsilon(epsilon=1, delta=1e-6, l0=2)

    def plain(self):
        return Table(LOG, **COLUMNS)


class TestCountsWithFoundBound(Contract):
    def mechanism(self):
        return CountsWithFoundBound.from_epsilon(epsilon=1, delta=1e-6)

    def plain(self):
        return Table(LOG, **COLUMNS)


def change(l0, most, n):
    """Return what a user of n items adds to both sums."""
    kept = min(n, l0)
    return kept, min(n, most) - kept


@pytest.mark.parametrize(("l0", "most"), [(1, 2), (3, 4), (5, 100), (7, 15)])
def test_no_user_exceeds_the_stated_sensitivity(l0, most):
    pairs, pure = KeptPairs(l0=l0, most=most, rho=0.1), KeptPairs(l0=l0, most=most, epsilon=0.1)
    changes = [change(l0, most, n) for n in range(3 * most)]
    assert max(a * a + b * b for a, b in changes) == pairs.squared_change
    assert max(a + b for a, b in changes) == most
    # The scales cost what the guarantee states: not less, and at most one part in 10^12 more than needed.
    assert pairs.rho * (1 - 1e-12) <= pairs.squared_change / (2 * pairs.scale**2) <= pairs.rho
    assert pure.epsilon * (1 - 1e-12) <= most / pure.scale <= pure.epsilon


def test_the_sums_are_those_of_a_loop_over_users():
    pairs = KeptPairs(l0=4, most=20, rho=0.1)
    both = [change(4, 20, int(n)) for n in SIZES]
    assert pairs._sums(SIZES.astype(np.int64)) == (sum(a for a, _ in both), sum(b for _, b in both))


@pytest.mark.parametrize("given", [{"rho": 0.05}, {"epsilon": 0.3}])
def test_noisy_sums_are_the_exact_ones_and_noise_of_the_same_stream(given):
    pairs = KeptPairs(l0=4, most=20, **given)
    rng, same = seeded_rng(11), seeded_rng(11)
    noise = same.sample(pairs.noise, 2)
    assert pairs._measured(SIZES, rng) == tuple(int(a + b) for a, b in zip(pairs._sums(SIZES), noise, strict=True))


@pytest.mark.parametrize("given", [{"rho": 0.001}, {"epsilon": 0.05}])
@pytest.mark.parametrize("runs", [2000, pytest.param(50_000, marks=pytest.mark.statistical)])
def test_sigma_is_the_standard_deviation_of_the_share(given, runs):
    pairs, rng = KeptPairs(l0=3, most=30, **given), seeded_rng(4)
    kept, dropped = pairs._sums(SIZES)
    exact = kept / (kept + dropped)
    shares = [pairs.share(*pairs._measured(SIZES, rng)) for _ in range(runs)]
    scores = np.array([(share.value - exact) / share.sigma for share in shares])
    assert abs(scores.mean()) < 5 / math.sqrt(runs) + 0.05
    assert 0.9 < scores.std() < 1.1


def test_a_share_that_noise_hides_has_sigma_one_half():
    assert KeptShare.of(kept=-40, dropped=20, deviation=1000.0) == KeptShare(0.0, 0.5)
    assert KeptShare.of(kept=40, dropped=-20, deviation=1000.0) == KeptShare(1.0, 0.5)
    assert KeptShare.of(kept=0, dropped=0, deviation=1.0).sigma == 0.5
    assert KeptShare.of(kept=2000, dropped=1900, deviation=1000.0).sigma == 0.5
    value, sigma = KeptShare.of(kept=900, dropped=100, deviation=10.0)
    # The error of a ratio, by hand: (dropped dk - kept dd) / total^2.
    assert (value, sigma) == (0.9, pytest.approx(math.hypot(100 * 10, 900 * 10) / 1000**2))


def tables(users):
    """Return the number of users of each item, and the number of items of each user."""
    counts = {}
    for items in users:
        for item in items:
            counts[item] = counts.get(item, 0) + 1
    return counts, {f"{place}": len(items) for place, items in enumerate(users)}


def violates(mechanism, guarantee, first, second):
    """Return whether the exact law of counts and sums on two tables contradicts a guarantee."""
    (counts, sizes), (more, larger) = tables(first), tables(second)
    parts = joint_law(mechanism.mechanism, counts, more), joint_law(mechanism.pairs, sizes, larger)
    p, q = (np.multiply.outer(a, b).ravel() for a, b in zip(*parts, strict=True))
    for epsilon, delta in [*([guarantee.dp] if guarantee.dp else []), *((e, guarantee.delta) for e in (20.0,))]:
        if max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) > delta * (1 + 1e-9) + 1e-12:
            return True
    shared = {*counts} == {*more}
    orders = (1.5, 2.0, 4.0) if shared else ()
    return any(renyi(p, q, order) / order > guarantee.rho * (1 + 1e-9) + 1e-12 for order in orders)


FEW = [("a",), ("a", "b"), ("b",)]
PAIRS = [
    (FEW, [*FEW, ("a", "b")]),
    (FEW, [*FEW, ("a",)]),
    ([], [("a", "b")]),
    ([("a", "b")] * 3, [("a", "b")] * 4),
]


def both(epsilon=2.0, share=0.5):
    counts = TruncatedGeometric(epsilon=epsilon, delta=1e-2, l0=2)
    return CountsWithShare(mechanism=counts, pairs=KeptPairs(l0=2, most=3, epsilon=share * epsilon))


@pytest.mark.parametrize("tables", PAIRS)
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_counts_and_share_together_keep_the_guarantee(tables, share):
    mechanism = both(share=share)
    assert not violates(mechanism, mechanism.guarantee, *tables)


@pytest.mark.parametrize("part", ["mechanism", "pairs"])
def test_the_guarantee_of_one_part_is_too_small_for_both(part):
    mechanism = both(share=2.0)
    alone = getattr(mechanism, part).guarantee
    assert any(violates(mechanism, alone, *tables) for tables in PAIRS)


@pytest.mark.parametrize("rho", [1e-6, 0.013, 0.5, 1, 7.3, 900])
@pytest.mark.parametrize("l0", [1, 2, 41, 999, 1000])
def test_counts_and_their_share_cost_no_more_than_the_whole(rho, l0):
    given = CountsWithShare.from_rho(rho=rho, delta=1e-6, l0=l0)
    assert 0.98 * rho < given.guarantee.rho <= rho
    assert given.guarantee.delta <= 1e-6
    assert given.pairs.rho == pytest.approx(rho / 100)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 4, 20, 100])
@pytest.mark.parametrize("l0", [1, 3, 50])
def test_an_epsilon_is_kept_to_its_last_bit(epsilon, l0):
    for make in (
        lambda: dp.count(LOG, **COLUMNS, epsilon=epsilon, delta=1e-6, l0=l0, kept_share=True),
        lambda: dp.count(LOG, **COLUMNS, epsilon=epsilon, delta=1e-6, l0="auto"),
    ):
        assert make().guarantee.dp == (epsilon, 1e-6)
    assert CountsWithShare.from_epsilon(epsilon=epsilon, delta=1e-6, l0=l0).guarantee.implies(epsilon, 1e-6)


def test_a_note_gives_no_share_that_the_noise_hides():
    pairs = KeptPairs(l0=2, most=100, rho=0.01)
    assert "the noise hides the share" in pairs.note(KeptShare.of(kept=0, dropped=3, deviation=pairs.deviation))
    assert "the noise hides the share" in pairs.note(KeptShare(0.6, 0.11))
    assert "60.0 %" in pairs.note(KeptShare(0.6, 0.1))
    assert "about 90.0 %" in pairs.note(KeptShare.of(kept=900_000, dropped=100_000, deviation=pairs.deviation))


def test_a_bound_that_was_found_is_stated_with_its_share():
    release = dp.count(LOG, **COLUMNS, rho=20, delta=1e-6, l0="auto")
    exact = float(np.percentile(SIZES, 95))
    assert abs(release.l0 - exact) <= 2
    kept = np.minimum(SIZES, release.l0).sum() / SIZES.sum()
    # 8 standard deviations: a chance of 1e-15.
    assert abs(release.kept_share.value - kept) < 8 * release.kept_share.sigma
    assert release.clipped
    assert release.guarantee == Guarantee(20.0, 1e-6)
    assert any(note.startswith(f"l0 = {release.l0} was found") for note in release.notes)
    # The sigma is about 0.015, and a note states a share up to 0.1.
    assert any("pairs were kept" in note for note in release.notes)
    assert release.measure == f"counts of users clipped to {release.l0} items each; sigma is the noise alone"
    assert "CountsWithFoundBound(rho=20.0, delta=1e-06, percentile=95, most=1000, l0_share=0.05)" in release.made_by
    bound = CountsWithFoundBound.from_rho(rho=1, delta=1e-6, percentile=50, l0_share=0.3)
    low = dp.count(LOG, **COLUMNS, mechanism=bound)
    assert low.l0 < release.l0


def test_a_given_bound_has_a_share_only_if_asked():
    asked = dp.count(LOG, **COLUMNS, rho=1, delta=1e-6, l0=2, kept_share=True)
    plain = dp.count(LOG, **COLUMNS, rho=1, delta=1e-6, l0=2)
    assert (plain.kept_share, plain.l0, asked.l0) == (None, 2, 2)
    exact = np.minimum(SIZES, 2).sum() / SIZES.sum()
    assert abs(asked.kept_share.value - exact) < 8 * asked.kept_share.sigma
    assert asked.clipped
    assert dp.count(LOG, **COLUMNS, rho=1, delta=1e-6).kept_share is None


@pytest.mark.parametrize("suffix", RELEASED)
@pytest.mark.parametrize("l0", [2, "auto"])
def test_a_written_release_keeps_its_share_and_verifies(tmp_path, suffix, l0):
    release = dp.count(LOG, **COLUMNS, epsilon=1, delta=1e-6, l0=l0, kept_share=True)
    path = tmp_path / f"rows.{suffix}"
    release.write(path, certificate=True)
    again = dp.Release.read(path)
    assert (again.kept_share, again.l0, again.clipped) == (release.kept_share, release.l0, True)
    assert isinstance(again.kept_share, KeptShare)
    assert dp.verify(path).guarantee.dp == (1.0, 1e-6)


def test_a_report_states_the_share(tmp_path):
    release = dp.count(LOG, **COLUMNS, rho=20, delta=1e-6, l0="auto")
    release.write(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "was found with privacy" in text
    assert "pairs were kept" in text


def test_a_budget_is_charged_for_all_steps_at_once():
    budget = dp.Budget(rho=1, delta=1e-6)
    dp.count(LOG, **COLUMNS, rho=0.5, delta=5e-7, l0="auto", budget=budget)
    assert budget.remaining.rho == 0.5
    dp.count(LOG, **COLUMNS, rho=0.5, delta=4e-7, l0=3, kept_share=True, budget=budget)
    assert budget.remaining.rho < 1e-9
    assert [row.mechanism for row in budget.history] == ["CountsWithFoundBound", "CountsWithShare"]
    with pytest.raises(BudgetExceeded):
        dp.count(LOG, **COLUMNS, rho=0.5, delta=1e-8, l0="auto", budget=budget)


def test_the_charge_is_made_before_any_noise_is_drawn(monkeypatch):
    # A table that fails on its second pass: the bound was drawn, so the charge must remain.
    budget, calls = dp.Budget(rho=1, delta=1e-6), []

    def fails(*_, **__):
        calls.append(budget.remaining.rho)
        raise InputError("gone")

    monkeypatch.setattr(dp.Histogram, "from_table", fails)
    with pytest.raises(InputError):
        dp.count(LOG, **COLUMNS, rho=1, delta=1e-6, l0="auto", budget=budget)
    assert calls == [0.0]
    assert budget.remaining.rho == 0.0


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"l0": "most"}, "auto"),
        ({"kept_share": True}, "needs l0"),
        ({"l0": 2, "kept_share": 1}, "kept_share must be True or False"),
        ({"l0": "auto", "relative_error": 0.2}, "relative_error"),
        ({"l0": "auto", "items": [1]}, "l0 as a number"),
        ({"l0": 2, "kept_share": True, "items": [1]}, "others=True"),
        ({"l0": 2**21, "kept_share": True}, "l0"),
        ({"l0": "auto", "mechanism": TruncatedGeometric(epsilon=1, delta=1e-3)}, "leave out"),
    ],
)
def test_wrong_parameters_are_refused_before_the_charge(parameters, text):
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises(ParameterError, match=text):
        dp.count(LOG, **COLUMNS, rho=0.5, delta=1e-7, budget=budget, **parameters)
    assert budget.remaining.rho == 1


def test_a_plan_needs_a_number():
    with pytest.raises(ParameterError, match="l0 as a number"):
        dp.plan("count", rho=1, delta=1e-6, l0="auto")


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"rho": 1e-9}, "give another rho"),
        ({"rho": 9999, "l0_share": 0.9}, "lower l0_share"),
        ({"rho": 1e-10}, "rho"),
        ({"delta": 0}, "delta"),
        ({"most": 1}, "most"),
    ],
)
def test_a_mechanism_that_could_fail_after_the_charge_is_refused(parameters, text):
    with pytest.raises(ParameterError, match=text):
        CountsWithFoundBound(**{"rho": 1, "delta": 1e-6, **parameters})


class _Once:
    """A table of no known library, whose rows can be read once."""

    def __init__(self, table):
        self._reader = table.to_reader()

    def __arrow_c_stream__(self, requested_schema=None):
        return self._reader.__arrow_c_stream__(requested_schema)


class _Emptied(_Once):
    """A table of no known library, which is empty after its first stream was taken."""

    def __arrow_c_stream__(self, requested_schema=None):
        reader = self._reader
        self._reader = reader.from_batches(reader.schema, [])
        return reader.__arrow_c_stream__(requested_schema)


class _Again:
    """A table of no known library, which can be read again."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def _reader(table):
    return table.to_reader()


def _relation(table):
    return pytest.importorskip("duckdb").connect().from_arrow(table.to_reader())


@pytest.mark.parametrize("make", [_reader, _Once, _Emptied, _relation, lambda table: [table, _Once(table)]])
@pytest.mark.parametrize("parameters", [{"l0": "auto"}, {"l0": 2, "kept_share": True}])
def test_a_source_that_hides_a_reader_is_refused_before_the_charge(make, parameters):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"user": range(5000), "item": ["a"] * 5000})
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises(ParameterError, match="read twice"):
        dp.count(make(table), **COLUMNS, rho=1, delta=1e-6, **parameters, budget=budget)
    assert budget.remaining.rho == 1


def test_a_query_that_samples_its_rows_anew_is_refused_before_the_charge():
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.connect().sql('SELECT i AS "user", 1 AS item FROM range(100000) t(i) WHERE random() < 0.5')
    budget = dp.Budget(rho=1, delta=1e-6)
    # Two samples have equally many rows with a chance of 2e-3, so all of four tables with 1e-11.
    with pytest.raises(ParameterError, match="other rows the second time"):
        dp.count([rows] * 4, **COLUMNS, rho=1, delta=1e-6, l0="auto", budget=budget)
    assert budget.remaining.rho == 1


def test_relations_and_unknown_tables_that_can_be_read_again_are_counted():
    pyarrow, duckdb = pytest.importorskip("pyarrow"), pytest.importorskip("duckdb")
    table = pyarrow.table({"user": range(5000), "item": ["a"] * 5000})
    for data in (_Again(table), duckdb.connect().from_arrow(table), [table, _Again(table)]):
        assert dp.count(data, **COLUMNS, rho=1, delta=1e-6, l0="auto").items == ["a"]


def test_public_items_are_counted_beside_others_with_their_share():
    release = dp.count(LOG, **COLUMNS, rho=1, delta=1e-6, l0=3, items=[0, 777], others=True, kept_share=True)
    assert {0, 777} <= {*release.items}
    assert release.kept_share is not None
    assert "KnownItems" in release.made_by
    with pytest.raises(SchemaError):
        dp.count(LOG, **COLUMNS, rho=1, delta=1e-6, l0=3, items=["a"], others=True, kept_share=True)


def test_a_mechanism_of_another_kind_is_refused():
    pairs = KeptPairs(l0=2, most=9, rho=0.1)
    listed = KnownItems(mechanism=dp.GaussianThreshold(sigma=2, delta=1e-6, l0=2), items=("a",))
    assert CountsWithShare(mechanism=listed, pairs=pairs).l0 == 2
    for other in (
        dp.GumbelTopK(k=2, scale=1.0, delta=0.1),
        TruncatedGeometric(epsilon=1, delta=1e-3, l0=2, with_counts=False),
        dp.GaussianThreshold(sigma=2, delta=1e-6, l0=3),
        dp.GaussianThreshold(sigma=2, delta=1e-6, l0=2, linf=2),
    ):
        with pytest.raises(ParameterError):
            CountsWithShare(mechanism=other, pairs=pairs)
    for wrong in ({"l0": 2, "most": 2, "rho": 1}, {"l0": 2, "most": 3}, {"l0": 2, "most": 3, "rho": 1, "epsilon": 1}):
        with pytest.raises(ParameterError):
            KeptPairs(**wrong)


def test_periods_are_part_of_the_items_of_a_user():
    # Three users with two items on two days, and one more user with one item on one day.
    rows = [(u, i, day) for u, i, day in itertools.product(range(3), "ab", ("2026-01-01", "2026-01-02"))]
    rows += [(9, "a", "2026-01-01"), (9, "a", "2026-01-01"), (None, "a", "2026-01-01"), (9, "b", "no time")]
    data = dict(zip(("user", "item", "ts"), map(list, zip(*rows, strict=True)), strict=True))
    every, since = {"time": "ts", "every": "1d"}, {"time": "ts", "since": "2026-01-02"}
    assert sorted(numbers_of_items(Table(data, user="user", item="item", **every)).tolist()) == [1, 4, 4, 4]
    assert sorted(numbers_of_items(Table(data, user="user", item="item", **since)).tolist()) == [2, 2, 2]
    named = {**data, "user": [None if user is None else f"u{user}" for user in data["user"]]}
    assert sorted(numbers_of_items(Table(named, user="user", item="item", **every)).tolist()) == [1, 4, 4, 4]
    data["also"] = data["item"]
    assert sorted(numbers_of_items(Table(data, user=["user", "also"], item="item", **every)).tolist()) == [1] + [2] * 6
    many = {
        "user": np.repeat(np.arange(3000), 4),
        "item": np.tile([0, 0, 1, 1], 3000),
        "ts": ["2026-01-01", "2026-01-02"] * 6000,
    }
    release = dp.count(many, user="user", item="item", time="ts", every="1d", rho=1, delta=1e-6, l0="auto")
    assert release.l0 == 4
    assert release.item_names == ("ts", "item")
    # The column of users may have the name of a column of a release, because no user is released.
    many["count"] = many.pop("user")
    assert dp.count(many, user="count", item="item", time="ts", every="1d", rho=1, delta=1e-6, l0="auto").l0 == 4


def test_an_engine_that_cannot_bound_users_is_refused_before_the_charge():
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("ibis.backends.sqlite")
    connection = ibis.sqlite.connect()
    table = connection.create_table("log", ibis.memtable({"user": [1, 1, 2], "item": ["a", "b", "a"]}).to_pandas())
    for l0 in ("auto", 2):
        budget = dp.Budget(rho=1, delta=1e-6)
        with pytest.raises(ParameterError, match="sqlite"):
            dp.count(table, **COLUMNS, rho=1, delta=1e-6, l0=l0, kept_share=True, budget=budget)
        assert budget.remaining.rho == 1


def test_a_table_of_another_engine_is_bounded_too():
    ibis = pytest.importorskip("ibis")
    release = dp.count(ibis.memtable({k: v.tolist() for k, v in LOG.items()}), **COLUMNS, rho=1, delta=1e-6, l0="auto")
    assert abs(release.l0 - np.percentile(SIZES, 95)) <= 2
    assert release.kept_share is not None
