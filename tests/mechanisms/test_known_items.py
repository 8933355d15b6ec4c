"""Known items beside unknown ones."""

import numpy as np
import pytest

from contract import MechanismContract
from discreet import (
    GaussianThreshold,
    Histogram,
    KnownItems,
    LaplaceThreshold,
    ParameterError,
    SchemaError,
    TruncatedGeometric,
)
from discreet.audit import audit, examine
from discreet.mechanisms.optimal_selection import OptimalSelection


class TestKnownItems(MechanismContract):
    def mechanism(self):
        inner = GaussianThreshold.from_rho(rho=0.1, delta=1e-6, l0=3)
        return KnownItems(mechanism=inner, items=("item-01", "item-11"), least=500)


SHARP = LaplaceThreshold(scale=1.0, delta=1e-6, l0=2)


def histogram(counts):
    return Histogram.from_counts(list(counts), list(counts.values()), l0=2, linf=1, complete=True)


def test_known_items_are_published_whoever_has_them():
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


def test_least_keeps_small_counts_of_known_items_out():
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
def test_no_neighbouring_pair_violates_the_promise(inner):
    found = audit(KnownItems(mechanism=inner, items=("0",)), pairs=60, seed=4)
    assert not found.violations, str(found)
    novel = examine(KnownItems(mechanism=inner, items=("1",)), {"0": 4}, {"0": 5, "1": 1})
    assert not novel.violates


def test_a_known_item_without_noise_would_violate_it():
    class Exact(LaplaceThreshold):
        @property
        def noise(self):
            from discreet import _core

            return _core.Noise.discrete_laplace(0.2)

    mechanism = KnownItems(mechanism=Exact(scale=1.0, delta=1e-2, l0=2), items=("0",))
    assert examine(mechanism, {"0": 4}, {"0": 5}).violates


def test_counts_of_whole_numbers_work_too():
    mechanism = KnownItems(mechanism=SHARP, items=[7, 8])
    table = Histogram.from_counts(np.array([7, 9]), [300, 300], l0=1, linf=1, complete=True)
    assert set(mechanism.release(table).items) == {7, 8, 9}


def test_what_is_not_known_or_has_no_threshold_is_refused():
    with pytest.raises(ParameterError, match="threshold"):
        KnownItems(mechanism=OptimalSelection(epsilon=1.0, delta=1e-3), items=["a"])
    for items, error in ((["a", "a"], ParameterError), ([["a"]], ParameterError), (["a", 1], SchemaError)):
        with pytest.raises(error):
            KnownItems(mechanism=SHARP, items=items)
    with pytest.raises(ParameterError, match="must be string"):
        KnownItems(mechanism=SHARP, items=[1, 2]).release(histogram({"a": 500}))
