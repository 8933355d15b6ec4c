"""Calibrated counts: the reference bit for bit, budgets, good counts and coverage on many shapes."""

import importlib
import math
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import user_shapes
from calibrated import first, plan, zipf_lists
from real import dataset

import discreet as dp
from discreet import CalibratedCounts, ConfirmedCounts, Histogram
from discreet.engines import local
from discreet.errors import ParameterError
from discreet.formats import RELEASED
from discreet.mechanisms.counts.calibrated_counts import CalibratedSteps
from discreet.reference import calibrated_counts as reference
from discreet.testing import seeded_rng
from discreet.theorems import calibrated_counts as theorem

BENCHES = Path(__file__).parent.parent.parent / "benches"


def rows_of(lists):
    users = np.repeat(np.arange(len(lists)), [len(items) for items in lists])
    return {"user": users, "item": np.array([item for items in lists for item in items], np.int64)}


def released(lists, seed, **parameters):
    mechanism = CalibratedCounts(**{"rho": 1.0, "delta": 1e-6, **parameters})
    return mechanism.release(rows_of(lists), user="user", item="item", rng=seeded_rng(seed))


def twin(lists, size, seed, given, kept=first):
    """Return the reference's release with the same random bits."""
    rng = seeded_rng(seed)

    def keyed(rest, most):
        rng.words(8)
        return kept(rest, most)

    return reference.release(lists, size, given, keyed, rng)


FLAT = [np.sort(np.random.default_rng(user).permutation(400)[:12]).tolist() for user in range(3000)]
TABLES = {
    "weights": (zipf_lists(4000, 500, 6, seed=1), 500),
    "nearly none": (zipf_lists(6000, 300, 1.0, seed=2), 300),
    "few heads": (zipf_lists(300, 200, 5, seed=3), 200),
    "steep": (zipf_lists(2500, 3000, 9, 1.6, seed=4), 3000),
    "flat": (FLAT, 400),
    "confirming goes on": (zipf_lists(500, 800, 90, 0.6, seed=1), 800),
    "one item": ([[0]] * 4000, 1),
    "one user": ([[0, 1]], 2),
    "one item a user": (zipf_lists(20_000, 300, 1.0, seed=5), 300),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_the_reference_releases_the_same_rows(name, rho):
    lists, size = TABLES[name]
    present = sorted({item for items in lists for item in items})
    number = {item: place for place, item in enumerate(present)}
    numbered = [[number[item] for item in items] for items in lists]
    release, expected = released(numbered, 7, rho=rho), twin(numbered, size, 7, plan(rho))
    later = expected.calibrated
    counts = {}
    order = np.argsort(-np.bincount([i for items in numbered for i in items], minlength=size), kind="stable")
    heads = expected.confirmed
    for row, value in zip(heads.rows, heads.values, strict=True) if heads is not None else ():
        counts[int(order[row])] = round((int(value) + expected.users[0]) / 2)
    confirmed = set(counts)
    if later is not None:
        counts |= {int(row): round(count) for row, count in zip(later.rows, later.estimates, strict=True)}
    assert release.to_dict() == counts
    assert {item for item, method in zip(release.items, release.methods, strict=True) if method == "confirmed"} == (
        confirmed
    )
    assert release.users == (round(expected.users[0]), pytest.approx(expected.users[1], rel=1e-12))
    assert release.spent.rho == pytest.approx(expected.spent / 2**64, rel=1e-12)
    if later is not None and len(later.rows):
        sigmas = dict(zip(release.items, release.sigmas.tolist(), strict=True))
        assert [sigmas[int(row)] for row in later.rows] == later.sigmas.tolist()


def test_the_tables_take_all_ways():
    seen = set()
    for lists, size in TABLES.values():
        for rho in (0.1, 1.0):
            found = twin(lists, size, 7, plan(rho))
            later = found.calibrated
            seen.add("continues" if later.continues else "one item" if found.confirmed is None
                     else "none" if later.nearly_none else "weights")  # fmt: skip
    assert seen == {"continues", "one item", "none", "weights"}


@pytest.mark.parametrize("rho", [0.01, 0.3, 5.0])
def test_no_release_spends_more_than_its_guarantee(rho):
    for seed, (lists, _) in enumerate(TABLES.values()):
        release = released(lists, seed, rho=rho)
        assert release.spent.rho <= rho
        assert release.spent.delta <= 1e-6
        assert release.guarantee == CalibratedCounts(rho=rho, delta=1e-6).guarantee


def test_the_threshold_has_the_delta_that_heads_leave(monkeypatch):
    found, least = [], theorem.threshold

    def recorded(noise, full, most, bits, delta):
        found.append((least(noise, full, most, bits, delta), full, most, bits))
        return found[-1][0]

    lists, size = TABLES["weights"]
    heads = twin(lists, size, 7, plan(0.5)).confirmed
    monkeypatch.setattr(theorem, "threshold", recorded)
    released(lists, 7, rho=0.5)
    ((threshold, full, most, bits),) = found
    chances = [number * threshold.chance(theorem.weight(number, full, bits)) for number in range(1, most + 1)]
    left = 1e-6 * (1 - heads.spent / (0.5 * 2**64))
    assert 0.84e-6 < left < 0.99e-6
    assert left * (1 - 1e-4) < max(chances) <= left


def coverage(release, counts):
    """Return the number of items within 10 % of the truth, and the share of estimates within their 95 % intervals."""
    truth, ends = counts[release.items], release.interval(0.95)
    inside = (ends["low"] <= truth) & (truth <= ends["high"])
    estimated = ~release.confirmed
    good = int((abs(release.counts - truth) <= 0.1 * truth).sum())
    return good, float(inside[estimated].mean()) if estimated.any() else math.nan


def confirmed_alone(counts, users, rho, seed):
    """Return how many items `ConfirmedCounts` releases within 10 % of the truth."""
    present = np.flatnonzero(counts)
    table = Histogram.from_counts(present, counts[present], l0=None, linf=1, complete=True, users=users)
    release = ConfirmedCounts(rho=rho, delta=1e-6).release(table, rng=seeded_rng(seed))
    truth = counts[release.items]
    return int((abs(release.counts - truth) <= 0.1 * truth).sum())


# The least coverage, and the least gain over confirmed counts at rho 0.1 and 0.5.
FLOORS = {
    "spike": (0.85, 0.93, 1.2),
    "outliers": (0.9, 1.7, 2.3),
    "flat": (0.9, 15, 5),
    "pareto": (0.93, 1.6, 2.2),
    "bimodal": (0.93, 1.9, 3.5),
    "Zipf 1.6": (0.93, 1.5, 1.6),
    "rare of light": (0.93, 1.4, 2.6),
    "rare of heavy": (0.93, 1.3, 2.0),
    "one item": (0.93, 5, 5),
}


@pytest.mark.parametrize("name", user_shapes.SHAPES)
@pytest.mark.parametrize("seeds", [1, pytest.param(6, marks=pytest.mark.statistical)])
def test_estimates_are_good_and_covered_on_many_shapes(name, seeds):
    rows, counts = user_shapes.table(name)
    least, *gains = FLOORS[name]
    table = dp.Table(rows, user="user", item="item").read()
    users, covered = len(np.unique(rows["user"])), []
    for rho, gain in zip((0.1, 0.5), gains, strict=True):
        found = [
            coverage(CalibratedCounts(rho=rho, delta=1e-6).release(table, rng=seeded_rng(seed)), counts)
            for seed in range(seeds)
        ]
        alone = np.mean([confirmed_alone(counts, users, rho, seed) for seed in range(seeds)])
        assert np.mean([good for good, _ in found]) >= gain * alone
        covered += [inside for _, inside in found if not math.isnan(inside)]
    assert np.mean(covered) >= least


def test_groups_of_items_of_heavy_users_are_too_low_as_the_note_says():
    rows, counts = user_shapes.table("bots")
    table = dp.Table(rows, user="user", item="item").read()
    release = CalibratedCounts(rho=0.1, delta=1e-6).release(table, rng=seeded_rng(1))
    methods = dict(zip(release.items, release.methods, strict=True))
    estimated = [item for item in range(5_000, 5_040) if methods.get(item) == "estimated"]
    special = [release[item] / counts[item] for item in estimated]
    assert len(special) > 20
    assert max(special) < 0.6
    assert any("only users with many items have" in note for note in release.notes)


# The least good counts of a release at rho 0.1 and at 0.5, on real data: about 90 % of the mean.
REAL = {
    "askreddit_1pct_words": (85, 190),
    "online_retail_events": (310, 880),
    "ubuntu_irc_words": (780, 1_390),
    "wiki_intros_words": (1_930, 4_050),
    "poetry_author_bigrams": (90, 260),
}


def numbered(path):
    """Return the rows with users and items as numbers. Seeded releases of numbers do not depend on keyed hashes."""
    numbers = 'dense_rank() OVER (ORDER BY "user") AS "user", dense_rank() OVER (ORDER BY item) AS item'
    query = f"SELECT {numbers} FROM '{path}' WHERE \"user\" IS NOT NULL AND item IS NOT NULL"
    return {name: np.array(column) for name, column in local.connect().execute(query).fetchnumpy().items()}


@pytest.mark.parametrize("name", REAL)
def test_estimates_are_good_and_covered_on_real_data(name):
    rows = numbered(dataset(name))
    table = dp.Table(rows, user="user", item="item").read()
    counts = np.bincount(np.unique(rows["user"] * 2**32 + rows["item"]) % 2**32)
    for rho, floor in zip((0.1, 0.5), REAL[name], strict=True):
        mechanism = CalibratedCounts(rho=rho, delta=1e-6)
        found = [coverage(mechanism.release(table, rng=seeded_rng(seed)), counts) for seed in range(3)]
        assert np.mean([good for good, _ in found]) >= floor
        # All estimates of a release share the errors of its medians, so a single release may have fewer.
        covered = [inside for _, inside in found if not math.isnan(inside)]
        assert not covered or np.mean(covered) >= 0.92


@pytest.mark.parametrize("rho", [1e-16, 1e-6, 0.01, 30, 10_000])
@pytest.mark.parametrize("delta", [0.5, 1e-3, 1e-12, 1e-100])
def test_extreme_parameters_release_within_rho(rho, delta):
    for lists in ([[0]], [[0, 1], [1]], TABLES["weights"][0][:400]):
        release = released(lists, 3, rho=rho, delta=delta)
        assert release.spent.rho <= rho
        assert release.spent.delta <= delta
        assert np.all(np.isfinite(release.sigmas))


def test_an_empty_table_releases_nothing():
    rows = {"user": np.zeros(0, np.int64), "item": np.zeros(0, np.int64)}
    mechanism = CalibratedCounts(rho=0.0027, delta=2.7e-8)
    release = mechanism.release(rows, user="user", item="item", rng=seeded_rng(1))
    assert release.items == []
    assert release.spent.rho == pytest.approx(0.045 * 0.0027, rel=1e-9)  # docs/how-to/nightly-job.md
    assert [name for name, _, _ in release.columns] == ["item", "count", "sigma", "method"]


def test_more_similar_items_than_slots_are_released_by_weights():
    rng = np.random.default_rng(5)
    lists = [np.sort(rng.permutation(200)[:20]).tolist() for _ in range(9000)]
    alone = confirmed_alone(np.bincount([item for items in lists for item in items]), 9000, 2.0, 1)
    release = released(lists, 1, rho=2.0, k_bar=20)
    assert not release.confirmed.all()
    assert len(release) == 200 > alone


def test_a_release_does_not_depend_on_the_order_of_rows():
    lists, _ = TABLES["weights"]
    rows = rows_of(lists)
    turn = np.random.default_rng(1).permutation(len(rows["user"]))
    turned = {name: column[turn] for name, column in rows.items()}
    mechanism = CalibratedCounts(rho=0.5, delta=1e-6)
    one, other = (mechanism.release(r, user="user", item="item", rng=seeded_rng(4)) for r in (rows, turned))
    assert one.to_dict() == other.to_dict()
    assert one.sigmas.tolist() == other.sigmas.tolist()


def test_count_takes_the_mechanism():
    lists, _ = TABLES["weights"]
    budget = dp.Budget(rho=1.0, delta=1e-6)
    release = dp.count(
        rows_of(lists), user="user", item="item", budget=budget, mechanism=CalibratedCounts(rho=0.5, delta=1e-6)
    )
    assert len(release) > 50
    assert not release.clipped
    assert budget.remaining.rho == pytest.approx(0.5)


def test_a_column_named_method_is_refused_before_the_charge():
    rows = {"user": [1], "page": ["a"], "Method": ["GET"]}
    with pytest.raises(ParameterError, match="'method'"):
        CalibratedCounts(rho=1, delta=1e-6).release(rows, user="user", item=["page", "Method"])
    assert CalibratedCounts(rho=1, delta=1e-6).release(rows, user="user", item="Method").items == []
    rows["method"] = [np.datetime64("2026-01-01")]
    for item, time in (("Method", "when"), ("page", "method")):
        days = {**rows, "when": rows["method"]}
        with pytest.raises(ParameterError, match="'method'"):
            CalibratedCounts(rho=1, delta=1e-6).release(days, user="user", item=item, time=time, every="1d")


def test_a_value_of_the_table_is_not_read():
    rows = dp.Table({"user": [1], "page": ["a"], "price": ["n/a"]}, user="user", item="page", value="price")
    assert CalibratedCounts(rho=1, delta=1e-6).release(rows).items == []
    with pytest.raises(ParameterError, match="without value"):
        rows.read()


class Changing:
    """Counts of a table that has other rows whenever it is read, as a table of a warehouse may have."""

    def __init__(self, *tables):
        self.tables = [dp.Table(rows_of(lists), user="user", item="item").read().data for lists in tables]

    def counted(self):
        return self.tables[0].counted()

    def rest(self, counted, rows):
        first, second = (
            table.rest(table.counted(), table._rows(counted.labels.take(rows))) for table in self.tables[1:]
        )
        return SimpleNamespace(users_by_size=first.users_by_size, weighed=second.weighed)


@pytest.mark.parametrize("name", ["weights", "nearly none", "flat"])
def test_each_measurement_has_its_numbers_from_one_read(name):
    lists, _ = TABLES[name]
    measured = []

    class Steps(CalibratedSteps):
        def _measured(self, value, users, *given, **more):
            measured.append((value, users))
            return super()._measured(value, users, *given, **more)

    counting = Changing(lists, lists[:-50], lists[:-70])
    release = Steps(CalibratedCounts(rho=1, delta=1e-6), counting, seeded_rng(7)).release()
    estimated = dict(zip(release.items, release.methods, strict=True))
    *heavy, weight = [len(lists) - users for _, users in measured if users < len(lists)]
    # With many users, those with more than one item are measured before and in the same way as those with more than l.
    assert ({*heavy}, len(heavy) <= 2, weight) == ({50}, True, 70)
    counts = np.bincount([item for items in lists for item in items])
    ratios = [release[item] / counts[item] for item, method in estimated.items() if method == "estimated"]
    assert 0.8 < np.median(ratios) < 1.2


@pytest.mark.parametrize("others", [10, 60])
def test_the_look_takes_rank_20_of_items_that_are_not_confirmed(others):
    heads, seen = [*range(30)], []
    rng = np.random.default_rng(1)
    rest = [np.flatnonzero(rng.random(others) < 0.02) + len(heads) for _ in range(6000)]
    lists = [[*heads, *items] for items in rest]

    class Steps(CalibratedSteps):
        def _look(self, bits, sigma):
            seen.append((self.weighed.weights, bits))
            return super()._look(bits, sigma)

        def _measured(self, value, users, sigma, *, bits=0):
            seen.append((value, bits))
            return super()._measured(value, users, sigma, bits=bits)

    table = dp.Table(rows_of(lists), user="user", item="item")  # `_steps` orders its items, so the seed gives all draws
    CalibratedCounts(rho=0.05, delta=1e-6)._steps(table, seeded_rng(3), Steps).release()
    place = next(number for number, (one, _) in enumerate(seen) if isinstance(one, np.ndarray))
    (weights, bits), (looked, coarse) = seen[place : place + 2]
    assert (np.flatnonzero(weights) >= len(heads)).all()
    assert np.count_nonzero(weights) == others
    assert looked == sorted(weights, reverse=True)[19] >> (bits - coarse)
    assert (looked == 0) == (others == 10)


# Equal calls. Before, noise chose the method of all three: 24 of 51 such settings differed by 1.4 or more.
STEADY = {
    "online_retail_events, 1,400 users": (1.25, True),
    "online_retail_events, 2011-10": (1.25, True),
    "wiki_intros_words, 2,000 users": (1.25, False),
}


@pytest.mark.parametrize("name", STEADY)
def test_equal_calls_release_by_the_same_method(name, monkeypatch):
    folder = Path(dataset(name.split(",")[0])).parent
    monkeypatch.syspath_prepend(BENCHES)
    regimes = importlib.import_module("regimes")
    rows = next(rows for found, rows in regimes.tables(folder, [*regimes.SETS, "months"]) if found == name)
    found, (most, estimates) = regimes.measured(rows, 0.25, 12), STEADY[name]
    assert found["estimated"] == 12 * estimates
    assert found["most"] <= most * found["least"]


def test_equal_calls_on_a_flat_table_all_estimate_its_items():
    rows, counts = user_shapes.table("flat")
    table = dp.Table(rows, user="user", item="item").read()
    found = [CalibratedCounts(rho=0.1, delta=1e-6).release(table, rng=seeded_rng(seed)) for seed in range(10)]
    assert min((~release.confirmed).sum() for release in found) > 2_900
    assert min(coverage(release, counts)[0] for release in found) > 1_000


# Below 11,250 users six standard deviations exceed 0.4 % of them, and above it one call in 750 misses the limit. With a
# gate of three deviations, 6,000 users were counted in either way. Seeds make the numbers exact.
@pytest.mark.parametrize(("users", "expected"), [(6_000, True), (11_000, True), (11_500, False), (13_000, False)])
def test_equal_calls_on_users_of_one_item_take_one_way(users, expected):
    found = [released([[0]] * users, seed, rho=0.5) for seed in range(20)]
    assert {bool(release.confirmed.all()) for release in found} == {expected}


# The noise of the weight of rank 20 is a third of its limit here, and decided in 2 of 16 calls. Seeds make this exact.
def test_equal_calls_on_few_users_take_one_way():
    random = np.random.default_rng(3)
    items = random.zipf(1.6, (500, 5)) % 500
    found = [released(items.tolist(), seed, rho=1.0) for seed in range(24)]
    assert {bool(release.confirmed.all()) for release in found} == {False}


def test_a_release_says_that_nothing_is_estimated():
    lists, _ = TABLES["weights"]
    cases = ((lists[:400], 0.05, 1), (lists[:3], 0.05, 0), (lists, 1.0, 0), ([[0]] * 400, 0.05, 1))
    for some, rho, expected in cases:
        release = released(some, 7, rho=rho)
        notes = [note for note in release.notes if "too few users, or too few common items" in note]
        assert len(notes) == expected
        assert not notes or (len(release) and release.confirmed.all())
        assert not any("rho" in note for note in notes)


@pytest.mark.parametrize("several", [0, 200])
@pytest.mark.parametrize(("rho", "least"), [(0.1, 1.04), (1.0, 0.98)])
def test_users_of_one_item_get_a_threshold_on_all_of_rho(several, rho, least):
    rows, counts = user_shapes.table("one item")
    rows["user"] = np.append(rows["user"], np.arange(several))
    rows["item"] = np.append(rows["item"], np.arange(several) + 10_000)
    threshold = dp.GaussianThreshold.from_rho(rho=rho, delta=1e-6, l0=1)
    table, bounded = (
        dp.Table(rows, user="user", item="item").read(),
        Histogram.from_table(rows, user="user", item="item", l0=1),
    )
    good = []
    for mechanism, data in ((CalibratedCounts(rho=rho, delta=1e-6), table), (threshold, bounded)):
        found = [mechanism.release(data, rng=seeded_rng(seed)) for seed in range(5)]
        near = [[abs(n - counts[i]) <= 0.1 * counts[i] for i, n in release if i < 5_000] for release in found]
        good.append((np.mean([len(release) for release in found]), np.mean([sum(one) for one in near])))
        if mechanism is not threshold:
            release = found[0]
    # The noise is finer than one user if sigma is above one, so the threshold is lower.
    assert good[0][0] > least * good[1][0]
    assert good[0][1] > 0.98 * good[1][1]
    assert not release.confirmed.any()
    assert release.sigmas.min() == pytest.approx(threshold.sigma, rel=0.02)
    assert release.spent.rho == pytest.approx(rho, rel=1e-9)
    assert "one item of each user" in release.notes[0]


def test_a_certificate_proves_the_mechanism(tmp_path):
    for name, form in product(("weights", "one item a user", "confirming goes on"), RELEASED):
        rows = rows_of(TABLES[name][0])
        release = CalibratedCounts(rho=0.5, delta=1e-6).release(rows, user="user", item="item")
        release.write(tmp_path / f"rows.{form}", certificate=True)
        assert dp.verify(tmp_path / f"rows.{form}").guarantee == release.guarantee
        assert dp.Release.read(tmp_path / f"rows.{form}").methods == release.methods
