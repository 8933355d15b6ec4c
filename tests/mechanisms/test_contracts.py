"""Contracts of all mechanisms that have no test file of their own."""

import dataclasses
import inspect
import pathlib
import re
from functools import cache

import numpy as np
import pytest

import discreet as dp
from contract import Contract, MechanismContract
from discreet import (
    GaussianThreshold,
    GaussianTopK,
    GumbelTopK,
    LaplaceThreshold,
    LaplaceTopK,
    OptimalSelection,
    TruncatedGeometric,
)
from discreet.errors import ParameterError
from discreet.mechanisms import (
    Aggregates,
    CalibratedAggregates,
    CalibratedCounts,
    ClippedSums,
    ContributionBound,
    DiscoverAndPeel,
    DiscoverAndSum,
    IteratedSetUnion,
    Mechanism,
    Plume,
    PrivateSumRelease,
    SetUnion,
    SumsWithFoundBounds,
)
from discreet.queries import (
    AboveThreshold,
    BoundedAnswers,
    GaussianAnswers,
    GumbelCorrection,
    IterativeSparseVector,
    LaplaceAnswers,
    PermutedAboveThreshold,
)
from discreet.streams import BinaryMechanism, EpochMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism
from discreet.tables import Table, UserItems
from discreet.testing import seeded_rng


class TestLaplaceThreshold(MechanismContract):
    def mechanism(self):
        return LaplaceThreshold.from_rho(rho=0.1, delta=1e-6, l0=3)


class TestGaussianThreshold(MechanismContract):
    def mechanism(self):
        return GaussianThreshold.from_rho(rho=0.1, delta=1e-6, l0=3, linf=2)


@cache
def by_epsilon():
    return GaussianThreshold.from_epsilon(epsilon=1.0, delta=1e-6, l0=2)


class TestGaussianThresholdByEpsilon(MechanismContract):
    def mechanism(self):
        return dataclasses.replace(by_epsilon())


class TestLaplaceTopK(MechanismContract):
    def mechanism(self):
        return LaplaceTopK.from_epsilon(epsilon=1.0, delta=1e-6, l0=3, k_bar=5)


class TestGaussianTopK(MechanismContract):
    def mechanism(self):
        return GaussianTopK.from_rho(rho=0.1, delta=1e-6, l0=3, k_bar=5)


class TestGumbelTopK(MechanismContract):
    counted = False

    def mechanism(self):
        return GumbelTopK.from_rho(k=4, rho=0.5, delta=1e-6, k_bar=8)


class TestTruncatedGeometric(MechanismContract):
    def mechanism(self):
        return TruncatedGeometric(epsilon=0.5, delta=1e-6, l0=2)


class TestTruncatedGeometricWithoutCounts(MechanismContract):
    counted = False

    def mechanism(self):
        return TruncatedGeometric(epsilon=0.5, delta=1e-6, l0=2, with_counts=False)


class TestOptimalSelection(MechanismContract):
    counted = False

    def mechanism(self):
        return OptimalSelection(epsilon=1.0, delta=1e-6, l0=2)


USERS = np.repeat(np.arange(400), 2)
ITEMS = np.tile(np.array(["a", "b"]), 400)


class TestSetUnion(Contract):
    def mechanism(self):
        return SetUnion.from_rho(rho=1.0, delta=1e-6, l0=2)

    def plain(self):
        return UserItems.from_pairs(USERS, ITEMS)


class TestIteratedSetUnion(TestSetUnion):
    def mechanism(self):
        return IteratedSetUnion.from_rho(rho=1.0, delta=1e-6, l0=2)


class TableContract(Contract):
    value = None

    def plain(self):
        return Table({"u": USERS, "i": ITEMS, "v": USERS % 7}, user="u", item="i", value=self.value)

    def test_rows_and_columns_make_the_same_table(self):
        columns = {"user": "u", "item": "i", **({} if self.value is None else {"value": self.value})}
        release = self.mechanism().release({"u": USERS, "i": ITEMS, "v": USERS % 7}, **columns)
        assert len(release) > 0
        with pytest.raises(ParameterError, match="give user= and item="):
            self.mechanism().release({"u": USERS, "i": ITEMS})
        with pytest.raises(ParameterError, match="has its columns"):
            self.mechanism().release(self.plain(), user="u", item="i")
        with pytest.raises(ParameterError, match="not Histogram"):
            self.mechanism().release(dp.Histogram.from_pairs(USERS, ITEMS), user="u", item="i")

    def test_only_clipped_sums_takes_a_value_column(self):
        other = {} if self.value else {"value": "v"}
        with pytest.raises(ParameterError, match="value"):
            self.mechanism().release({"u": USERS, "i": ITEMS}, user="u", item="i", **other)


class TestCalibratedCounts(TableContract):
    def mechanism(self):
        return CalibratedCounts(rho=1.0, delta=1e-6)


class TestPlume(TableContract):
    def mechanism(self):
        return Plume.from_rho(rho=1.0, delta=1e-6, m=2, m_prime=2)


class TestDiscoverAndPeel(TableContract):
    def mechanism(self):
        return DiscoverAndPeel.from_rho(k=2, rho=1.0, delta=1e-6, l0=2)


class TestContributionBound(TableContract):
    def mechanism(self):
        return ContributionBound.from_rho(rho=1.0)


class TestClippedSums(TableContract):
    value = "v"

    def mechanism(self):
        return ClippedSums(items=("a", "b"), rho=1.0, low=0, high=10)


class TestDiscoverAndSum(TableContract):
    value = "v"

    def mechanism(self):
        return DiscoverAndSum.from_rho(rho=1.0, delta=1e-6, l0=2, low=0, high=10)


class TestDiscoverAndSumFindsABound(TestDiscoverAndSum):
    def mechanism(self):
        return DiscoverAndSum.from_rho(rho=1.0, delta=1e-6, l0=None, low=0, high=10)


class TestPrivateSumRelease(TestDiscoverAndSum):
    def mechanism(self):
        return PrivateSumRelease(counting=dp.PrivateCountRelease(rho=50.0, delta=1e-6, k_bar=10), low=0, high=10)


class TestSumsWithFoundBounds(TestDiscoverAndSum):
    def mechanism(self):
        return SumsWithFoundBounds.from_rho(rho=1.0, delta=1e-6, l0=None)


class TestSumsOfPublicItemsWithFoundBounds(TestClippedSums):
    def mechanism(self):
        return SumsWithFoundBounds(items=("a", "b"), rho=1.0, delta=None, l0=1)


class TestAggregates(TableContract):
    def mechanism(self):
        return Aggregates.from_rho(rho=1.0, delta=1e-6, l0=2, rows=2, sums=(("v", 0, 10, 1.0),))


class TestAggregatesOfPublicItems(TestAggregates):
    def mechanism(self):
        return Aggregates(rho=1.0, delta=None, l0=None, items=("a", "b"), rows=2, means=(("v", 0, 10, 1.0),))


class TestCalibratedAggregates(TableContract):
    def mechanism(self):
        return CalibratedAggregates(rho=2.0, delta=1e-6, rows=True, sums=(("v", None, None, 1.0),))


class TestCalibratedAggregatesOfPublicItems(TestCalibratedAggregates):
    def mechanism(self):
        return CalibratedAggregates(rho=1.0, delta=None, items=("a", "b"), means=(("v", None, None, 1.0),))


class QueryContract(Contract):
    def plain(self):
        return [500] * 30

    def test_seeded_answers_repeat_and_say_so(self):
        first, second = (self.mechanism().release(self.plain(), rng=seeded_rng(1)) for _ in range(2))
        assert first.seeded
        assert list(first.values) == list(second.values)


class TestGaussianAnswers(QueryContract):
    def mechanism(self):
        return GaussianAnswers.from_rho(rho=1.0, k=30)


class TestLaplaceAnswers(QueryContract):
    def mechanism(self):
        return LaplaceAnswers.from_rho(rho=1.0, delta=1e-6, k=30)


class TestBoundedAnswers(QueryContract):
    def mechanism(self):
        return BoundedAnswers.from_epsilon(epsilon=1.0, delta=1e-6, k=30)


class TestGumbelCorrection(QueryContract):
    def mechanism(self):
        return GumbelCorrection.from_rho(rho=1.0, k=30)


class TestIterativeSparseVector(QueryContract):
    def mechanism(self):
        return IterativeSparseVector.from_rho(rho=1.0, k=30)


class TestGuardedSparseVector(QueryContract):
    def mechanism(self):
        return IterativeSparseVector.from_rho(rho=1.0, k=30).guarded()


class TestAboveThreshold(Contract):
    def mechanism(self):
        return AboveThreshold(epsilon=1.0, threshold=100)

    def plain(self):
        return [0, 0, 500]

    def size(self, released):
        return released.index is not None


class TestPermutedAboveThreshold(TestAboveThreshold):
    def mechanism(self):
        return PermutedAboveThreshold(epsilon=1.0, threshold=100)


class StreamContract(Contract):
    def plain(self):
        return [[["a", "b"]] * 500, [], [["a"]] * 300]

    def test_every_round_gives_a_release(self):
        releases = self.mechanism().release(self.plain())
        assert [release.round for release in releases] == [1, 2, 3]
        assert set(releases[2].items) <= {"a", "b"}

    def test_a_stream_takes_no_rng(self):
        with pytest.raises(ParameterError, match="leave out rng"):
            self.mechanism().release(self.plain(), rng=seeded_rng(1))

    def test_a_budget_charges_a_stream_with_charge(self):
        with pytest.raises(ParameterError, match=r"charged once for all its rounds"):
            dp.Budget(rho=5.0, delta=1e-3).release(self.mechanism(), self.plain())


class TestBinaryMechanism(StreamContract):
    def mechanism(self):
        return BinaryMechanism.from_rho(rho=1.0, delta=1e-6, l0=2, horizon=8)


class TestHonakerMechanism(StreamContract):
    def mechanism(self):
        return HonakerMechanism.from_rho(rho=1.0, delta=1e-6, l0=2, horizon=8)


class TestSquareRootMechanism(StreamContract):
    def mechanism(self):
        return SquareRootMechanism.from_rho(rho=1.0, delta=1e-6, l0=2, horizon=8)


class TestEpochMechanism(StreamContract):
    def mechanism(self):
        return EpochMechanism.from_rho(rho=1.0, delta=1e-6, l0=2, epoch=2)


class TestHybridMechanism(StreamContract):
    def mechanism(self):
        return HybridMechanism.from_rho(rho=1.0, delta=1e-6, l0=2)


def concrete(kind):
    """Yield the names of the concrete subclasses."""
    for below in kind.__subclasses__():
        if below.__module__.startswith("discreet.") and not inspect.isabstract(below):
            yield below.__name__
        yield from concrete(below)


def test_every_mechanism_has_a_contract():
    for package in (dp.mechanisms, dp.queries, dp.streams):
        for name in package.__all__:
            getattr(package, name)  # imports its module
    held = set()
    for path in pathlib.Path(__file__).parent.glob("test_*.py"):
        held |= set(re.findall(r"^class Test(\w+)\(\w*Contract|^class Test(\w+)\(Test\w+\)", path.read_text(), re.M))
    named = {name for pair in held for name in pair if name}
    parts = re.compile("(?=[A-Z])")
    begun = {tuple(parts.split(test)[: n + 1]) for test in named for n in range(len(parts.split(test)))}
    missing = {name for name in concrete(Mechanism) if tuple(parts.split(name)) not in begun}
    # A refinement needs a release: its guarantee covers both, and a copy would refer to another release.
    assert missing == {"Refinement"}


@pytest.mark.parametrize("rho", [5e-324, 1e-310])
@pytest.mark.parametrize(
    "made",
    [
        lambda rho: dp.ConfirmedCounts(rho=rho, delta=1e-6),
        lambda rho: dp.mechanisms.ClippedSums(items=["a"], rho=rho, low=0, high=1),
        lambda rho: dp.count({"user": [1], "item": ["a"]}, user="user", item="item", rho=rho, delta=1e-6),
        lambda rho: dp.PrivateCountRelease(rho=rho, delta=1e-6),
    ],
)
def test_the_smallest_floats_are_refused_as_rho(made, rho):
    with pytest.raises(ParameterError, match="rho must be"):
        made(rho)
