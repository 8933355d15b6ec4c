"""Known items: noise without a threshold, next to a threshold for other items."""

import dataclasses

import numpy as np
import pytest

import discreet
from contract import Contract, MechanismContract
from discreet import Budget, GaussianThreshold, Histogram, LaplaceThreshold, TruncatedGeometric, _core
from discreet.audit import audit, examine, trial
from discreet.errors import ParameterError, SchemaError
from discreet.mechanisms import (
    CalibratedCounts,
    ClippedSums,
    ContributionBound,
    CorrelatedCounts,
    CountsWithPublicItems,
    GaussianCounts,
    KnownItems,
)
from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
from discreet.testing import seeded_rng


class TestKnownItems(MechanismContract):
    def mechanism(self):
        inner = GaussianThreshold.from_rho(rho=0.1, delta=1e-6, l0=3)
        return KnownItems(mechanism=inner, items=("item-01", "item-11"), least=500)


class TestCountsWithPublicItems(Contract):
    def mechanism(self):
        return CountsWithPublicItems(items=("item-01", "item-11"), rho=1, delta=1e-6)

    def plain(self):
        log = {"user": [*range(9000)] * 2, "item": ["item-01"] * 9000 + ["item-02"] * 9000}
        return discreet.Table(log, user="user", item="item")


@pytest.mark.parametrize("listed", [("a", "nobody's"), ("p01", "a", "p40", "nobody's"), ("nobody's",)])
@pytest.mark.parametrize("rho", [0.05, 2.0])
def test_public_items_are_counted_apart_and_change_no_other_item(listed, rho):
    draws = np.random.default_rng(3)
    user = np.repeat(np.arange(4000), 3)
    item = [f"p{n:02d}" for n in np.minimum(draws.zipf(1.3, 12_000), 60)]
    more = {"user": [*user.tolist(), *range(3000), *range(4000, 4500)], "item": [*item, *["a"] * 3500]}
    mechanism, columns = CountsWithPublicItems(items=listed, rho=rho, delta=1e-6), {"user": "user", "item": "item"}
    release = mechanism.release(more, **columns, rng=seeded_rng(6))
    # The same draws, one mechanism after the other. The second one's rows have no public item.
    rng, table = seeded_rng(6), Histogram.from_table(more, **columns, count_users=True)
    first = mechanism.public.release(table, rng=rng)
    kept = [row for row, label in enumerate(more["item"]) if label not in listed]
    rest = {name: [cells[row] for row in kept] for name, cells in more.items()}
    second = mechanism.others.release(rest, **columns, rng=rng)
    assert dict(release) == {**dict(first), **dict(second)}
    assert release.listed == "some"
    assert release.users == first.users
    assert release.spent.rho == pytest.approx(first.spent.rho + second.spent.rho, rel=1e-12)
    total = mechanism.public.guarantee + mechanism.others.guarantee
    assert (1 - 1e-12) * rho < total.rho <= rho == mechanism.guarantee.rho
    assert total.delta == mechanism.guarantee.delta
    assert isinstance(mechanism.public, CorrelatedCounts)
    assert isinstance(mechanism.others, CalibratedCounts)


# An item of three users is released with a chance below e^2 delta.
SHARP = LaplaceThreshold(scale=1.0, delta=1e-12, l0=2)


def histogram(counts):
    return Histogram.from_counts(list(counts), list(counts.values()), l0=2, linf=1, complete=True)


def test_known_items_are_released_even_without_users():
    mechanism = KnownItems(mechanism=SHARP, items=["common", "rare", "nobody's"])
    release = mechanism.release(histogram({"common": 500, "rare": 2, "unknown": 400, "secret": 3}))
    counts = dict(release)
    assert set(counts) == {"common", "rare", "nobody's", "unknown"}
    assert abs(counts["common"] - 500) < 30
    assert abs(counts["nobody's"]) < 30
    assert release.guarantee == SHARP.guarantee
    assert release.counts.tolist() == sorted(release.counts, reverse=True)


@pytest.mark.parametrize(
    "inner",
    [
        LaplaceThreshold(scale=1.0, delta=1e-2, l0=2),
        GaussianThreshold(sigma=1.5, delta=1e-2, l0=2),
        GaussianThreshold.from_epsilon(epsilon=1.0, delta=1e-2, l0=2),
        TruncatedGeometric(epsilon=2.0, delta=1e-2, l0=2),
    ],
    ids=repr,
)
def test_no_neighbouring_pair_violates_the_guarantee(inner):
    found = audit(KnownItems(mechanism=inner, items=("0",)), pairs=60, seed=4, runs=0)
    assert not found.violations, str(found)
    novel = examine(KnownItems(mechanism=inner, items=("1",)), {"0": 4}, {"0": 5, "1": 1})
    assert not novel.violates


def test_a_known_item_with_too_little_noise_is_caught():
    class Exact(LaplaceThreshold):
        @property
        def noise(self):
            from discreet import _core

            return _core.Noise.discrete_laplace(0.2)

    mechanism = KnownItems(mechanism=Exact(scale=1.0, delta=1e-2, l0=2), items=("0",))
    assert examine(mechanism, {"0": 4}, {"0": 5}).violates


def test_wrong_items_and_mechanisms_are_refused():
    with pytest.raises(ParameterError, match="threshold"):
        KnownItems(mechanism=OptimalSelection(epsilon=1.0, delta=1e-3), items=["a"])
    with pytest.raises(ParameterError, match="list"):
        KnownItems(mechanism=SHARP, items="abc")


def test_known_counts_have_the_stated_noise():
    mechanism = KnownItems(mechanism=GaussianThreshold(sigma=5.0, delta=1e-6, l0=2), items=["a", "nobody's"])
    rng, table = seeded_rng(5), histogram({"a": 300})
    runs = [dict(mechanism.release(table, rng=rng)) for _ in range(2000)]
    for name, count in (("a", 300), ("nobody's", 0)):
        values = np.array([run[name] for run in runs])
        assert np.std(values) == pytest.approx(5.0, rel=0.08)
        assert abs(values.mean() - count) < 0.6
    found = trial(mechanism, {"a": 20}, {"a": 21}, runs=4000, rng=seeded_rng(6))
    assert not found.violates, str(found)


def test_an_exact_known_count_is_caught():
    class Bare(KnownItems):
        def _run(self, histogram, rng):
            exact = histogram._counts_of(self.items)
            release = super()._run(histogram, rng)
            return dataclasses.replace(release, items=list(self.items), counts=exact)

    mechanism = Bare(mechanism=GaussianThreshold(sigma=5.0, delta=1e-6, l0=2), items=["a"])
    assert trial(mechanism, {"a": 20}, {"a": 21}, runs=1000, rng=seeded_rng(6)).violates


def test_a_wrapped_mutant_is_caught_by_novel_items():
    class Forgetful(LaplaceThreshold):
        @property
        def threshold(self):
            return LaplaceThreshold(scale=1.0, delta=1e-2, l0=1).threshold

    assert audit(
        KnownItems(mechanism=Forgetful(scale=1.0, delta=1e-2, l0=40), items=("0",)), pairs=5, runs=0
    ).violations


def test_a_noisy_count_equal_to_least_is_released():
    mechanism = KnownItems(mechanism=SHARP, items=["a"], least=10)
    releases = [mechanism.release(histogram({"a": 10}), rng=seeded_rng(seed)) for seed in range(50)]
    assert min(count for release in releases for _, count in release) == 10


def test_a_table_that_cannot_be_made_costs_no_budget(monkeypatch):
    def fail(_):
        raise MemoryError

    mechanism = KnownItems(mechanism=SHARP, items=["a"])
    budget = Budget(rho=2 * mechanism.guarantee.rho, delta=1e-5)
    monkeypatch.setattr(KnownItems, "_known", property(fail))
    with pytest.raises(MemoryError):
        budget.release(mechanism, histogram({"a": 10}))
    assert budget.spent.rho == 0


def released_by_python(mechanism, histogram, rng):
    """Return the items, the counts and the item type of a release that looks items up in Python dicts."""
    known = mechanism.items
    names = histogram._labels.take(np.arange(len(histogram._counts())))
    counts = dict(zip(names, histogram._counts().tolist(), strict=True))
    others = np.array([0 if name in known else counts[name] for name in names], np.int64)
    rows, passed = mechanism.mechanism.threshold.release(others, rng)
    noisy = np.array([counts.get(item, 0) for item in known], np.int64) + rng.sample(
        mechanism.mechanism.noise, len(known)
    )
    kept = [row for row in range(len(known)) if mechanism.least is None or noisy[row] >= mechanism.least]
    found = [
        *((names[row], n) for row, n in zip(rows, passed, strict=True)),
        *((known[row], noisy[row]) for row in kept),
    ]
    try:
        labels = _core.Labels.from_sequence([item for item, _ in found])
    except SchemaError:
        found = [(known[row], noisy[row]) for row in kept]
        labels = _core.Labels.from_sequence([item for item, _ in found])
    kind = (labels if found else _core.Labels.from_sequence(list(known))).type_name
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    return [item for item, _ in found], [int(n) for _, n in found], kind


LISTS = {
    "text": ["a", "b\0", "é", "", "x" * 30, "not there"],
    "bytes": [b"a", b"b\0", b"", b"x" * 30, b"not there"],
    "signed": [7, -3, 0, 2**40, -(2**63)],
    "unsigned": [7, 3, 2**63 + 5, 2**64 - 3],
    "large": [2**63 + 5, 1],
    "empty": [],
}
TABLES = {
    "text": ["a", "b", "b\0", "é", "x" * 30, "x" * 31, "new"],
    "bytes": [b"a", b"b", b"x" * 30, b"new"],
    "signed": [7, -3, 5, -(2**63)],
    "unsigned": [7, 5, 2**63 + 5, 2**64 - 3],
    "empty": [],
}


@pytest.mark.parametrize("least", [None, 5, 10**6])
@pytest.mark.parametrize("listed", LISTS)
@pytest.mark.parametrize("table", TABLES)
def test_items_are_found_as_by_python(listed, table, least):
    mechanism = KnownItems(mechanism=SHARP, items=LISTS[listed], least=least)
    labels = TABLES[table]
    for counts in ([3] * len(labels), [500 + n for n in range(len(labels))], [0] * len(labels), range(0, 50, 7)):
        held = Histogram.from_counts(labels, np.array(counts, np.int64)[: len(labels)], l0=2, linf=1, complete=True)
        release = mechanism.release(held, rng=seeded_rng(1))
        found = release.items, release.counts.tolist(), release.item_type
        assert found == released_by_python(mechanism, held, seeded_rng(1))


@pytest.mark.parametrize(
    "items",
    [["a", np.str_("b")], (np.int64(3), 4), np.array(["a", "b"]), np.array([b"a", b"b"]), np.array([1, 2], np.uint8)],
    ids=repr,
)
def test_items_become_plain_values(items):
    mechanism = KnownItems(mechanism=SHARP, items=items)
    assert {*map(type, mechanism.items)} <= {str, int, bytes}
    assert list(mechanism.items) == list(items)


@pytest.mark.parametrize(
    "items",
    [
        ["a", "a"],
        ["a", 1, "a"],
        [True, True],
        [1, 1.0],
        ["a", None],
        ["\ud800"],
        [1.5],
        [2**64],
        [b"a", "a"],
        ["a", 1],
        [[1]],
    ],
    ids=repr,
)
def test_items_that_repeat_or_are_of_mixed_types_are_refused(items):
    values = tuple(items)
    if any(isinstance(item, list) for item in values) or len(set(values)) < len(values):
        error = "^items must be distinct integers or strings$"
    elif None in values or values == ("\ud800",):
        error = "^items must be distinct and must not be missing$"
    else:
        error = "^a column must hold|^integers must fit"
    with pytest.raises((ParameterError, SchemaError), match=error):
        KnownItems(mechanism=SHARP, items=items)


def test_the_longest_item_of_each_kind_is_counted_and_longer_ones_cost_nothing():
    longest = _core.LONGEST
    labels = [
        "a" * longest,
        "\u00e9" * (longest // 2),
        b"a" * longest,
        ("a" * (longest - 10), 7),
        (-7, "a" * (longest - 11)),
    ]
    for label in labels:
        names, cells = ("i", (label,)) if not isinstance(label, tuple) else (["i", "j"], label)
        columns = zip(names if isinstance(names, list) else [names], cells, strict=True)
        table = {"u": [*range(900)], **{name: [cell] * 900 for name, cell in columns}}
        given = {"user": "u", "item": names, "l0": 1, "rho": 100, "delta": 1e-6}
        assert discreet.count(table, items=[label], **given).counts[0] > 800
        part = tuple(cell + cell[:1] if isinstance(cell, str | bytes) else cell for cell in cells)
        budget = Budget(rho=200, delta=1e-4)
        with pytest.raises(ParameterError, match="8,192 bytes"):
            discreet.count(table, items=[part if isinstance(label, tuple) else part[0]], budget=budget, **given)
        assert budget.spent.rho == 0
    for refused in (
        lambda long: ClippedSums(items=("a", long), rho=1.0, low=0, high=1),
        lambda long: ContributionBound(epsilon=1, only=(long,)),
        lambda long: discreet.count(
            {"u": [1], "i": ["a"]}, user="u", item="i", mechanism=GaussianCounts(items=(long,), sigma=1)
        ),
    ):
        with pytest.raises(ParameterError, match="8,192 bytes"):
            refused("a" * (longest + 1))
