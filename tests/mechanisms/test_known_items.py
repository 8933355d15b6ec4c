"""Known items: noise without a threshold, next to a threshold for other items."""

import dataclasses

import numpy as np
import pytest

from contract import MechanismContract
from discreet import GaussianThreshold, Histogram, LaplaceThreshold, TruncatedGeometric
from discreet.audit import audit, examine, trial
from discreet.errors import ParameterError, SchemaError
from discreet.mechanisms import KnownItems
from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
from discreet.testing import seeded_rng


class TestKnownItems(MechanismContract):
    def mechanism(self):
        inner = GaussianThreshold.from_rho(rho=0.1, delta=1e-6, l0=3)
        return KnownItems(mechanism=inner, items=("item-01", "item-11"), least=500)


SHARP = LaplaceThreshold(scale=1.0, delta=1e-6, l0=2)


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


def test_a_known_item_gets_one_noisy_count():
    mechanism = KnownItems(mechanism=SHARP, items=["a"])
    for _ in range(20):
        assert mechanism.release(histogram({"a": 1000})).items == ["a"]


def test_least_drops_small_counts_of_known_items():
    mechanism = KnownItems(mechanism=SHARP, items=["big", "small"], least=100)
    assert mechanism.release(histogram({"big": 500, "small": 1})).items == ["big"]


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


def test_known_items_may_be_integers():
    mechanism = KnownItems(mechanism=SHARP, items=[7, 8])
    assert repr(mechanism) == repr(KnownItems(mechanism=SHARP, items=np.array([7, 8])))
    table = Histogram.from_counts(np.array([7, 9]), [300, 300], l0=1, linf=1, complete=True)
    assert set(mechanism.release(table).items) == {7, 8, 9}


def test_wrong_items_and_mechanisms_are_refused():
    with pytest.raises(ParameterError, match="threshold"):
        KnownItems(mechanism=OptimalSelection(epsilon=1.0, delta=1e-3), items=["a"])
    for items, error in ((["a", "a"], ParameterError), ([["a"]], ParameterError), (["a", 1], SchemaError)):
        with pytest.raises(error):
            KnownItems(mechanism=SHARP, items=items)
    with pytest.raises(ParameterError, match="list"):
        KnownItems(mechanism=SHARP, items="abc")


def test_items_of_another_type_are_dropped():
    for table in (histogram({"a": 500}), histogram({})):
        assert set(KnownItems(mechanism=SHARP, items=[1, 2]).release(table).items) == {1, 2}
    wide = Histogram.from_counts(np.array([2**63 + 5, 3], np.uint64), [900, 900], l0=2, linf=1, complete=True)
    assert KnownItems(mechanism=SHARP, items=[-1]).release(wide).items == [-1]


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
