"""Neighbours in which one user is replaced by another."""

import itertools
import random

import pytest

from contract import MechanismContract
from discreet import (
    GaussianThreshold,
    GaussianTopK,
    Guarantee,
    GumbelTopK,
    Histogram,
    LaplaceThreshold,
    LaplaceTopK,
    OptimalSelection,
    PrivateCountRelease,
    TruncatedGeometric,
)
from discreet.audit import audit, examine
from discreet.errors import ParameterError, SensitivityError
from discreet.mechanisms import Replacement
from discreet.privacy import Sensitivity

WRAPPED = [
    (LaplaceThreshold, {"rho": 1.0, "delta": 1e-2, "l0": 1}),
    (GaussianThreshold, {"rho": 0.5, "delta": 1e-2, "l0": 1}),
    (TruncatedGeometric, {"epsilon": 2.0, "delta": 1e-2}),
    (OptimalSelection, {"epsilon": 1.0, "delta": 1e-2, "l0": 2}),
    (LaplaceTopK, {"epsilon": 6.0, "delta": 1e-2, "l0": 1, "k_bar": 2}),
    (GaussianTopK, {"rho": 3.0, "delta": 1e-2, "l0": 1, "k_bar": 2}),
    (GumbelTopK, {"rho": 0.5, "k": 2, "delta": 0.1, "k_bar": 2}),
]


def wrapped(kind, given):
    return (Replacement.from_rho if "rho" in given else Replacement.from_epsilon)(kind, **given)


class TestReplacement(MechanismContract):
    def mechanism(self):
        return Replacement.from_rho(GaussianThreshold, rho=0.5, delta=1e-6, l0=3)


def replaced(l0, pairs, seed):
    """Yield pairs of small tables with one user replaced and counts near the thresholds."""
    chance = random.Random(seed)
    for _ in range(pairs):
        others = {label: chance.choice((0, 0, 1, 2, 3, 5, 8)) for label in "abcd"}
        first, second = (chance.sample("abcd", chance.randint(0, l0)) for _ in range(2))
        tables = ({label: n + (label in mine) for label, n in others.items()} for mine in (first, second))
        yield tuple({label: n for label, n in table.items() if n} for table in tables)


@pytest.mark.parametrize(("kind", "given"), WRAPPED, ids=lambda value: getattr(value, "__name__", ""))
def test_no_replaced_user_violates_the_guarantee(kind, given):
    mechanism = wrapped(kind, given)
    l0 = min(mechanism.protects.l0 or 3, 3)
    used = 0.0
    for first, second in itertools.chain([({"a": 1}, {"b": 1})], replaced(l0, 150, 3)):
        found = examine(mechanism, first, second)
        assert not found.violates, str(found)
        used = max(used, found.ratio)
    assert used > 0.1


@pytest.mark.parametrize("pairs", [6, pytest.param(25, marks=pytest.mark.statistical)])
def test_an_audit_of_replacement_replaces_users(pairs):
    class Lie(Replacement):
        """A mechanism for added users that claims to be for replaced users."""

        protects = Sensitivity(l0=None, linf=2)

    inner = GumbelTopK.from_rho(k=1, rho=0.5, delta=1e-3, k_bar=2, linf=2)
    assert audit(Lie(mechanism=inner), pairs=300, runs=0).violations
    for kind, given in WRAPPED:
        found = audit(wrapped(kind, given), pairs=pairs, runs=0)
        assert not found.violations, str(found)


def test_a_mechanism_for_added_users_violates_it():
    added = GumbelTopK.from_rho(k=1, rho=0.5, delta=1e-3, k_bar=2)
    worst = max(examine(added, first, second).ratio for first, second in replaced(3, 300, 4))
    assert worst > 1


def test_protects_is_the_sensitivity_of_one_user():
    mechanism = Replacement.from_rho(GumbelTopK, k=2, rho=0.5, delta=1e-6, linf=3)
    assert mechanism.protects == Sensitivity(l0=None, linf=3)
    assert mechanism.mechanism.linf == 6
    assert wrapped(*WRAPPED[0]).protects == Sensitivity(l0=1, linf=1)


def test_guarantees_of_unlike_neighbours_do_not_add():
    guarantee = wrapped(*WRAPPED[1]).guarantee
    assert "replaced" in str(guarantee)
    assert (guarantee + guarantee).neighbours == "replaced"
    with pytest.raises(ParameterError, match="replaced"):
        guarantee + Guarantee(0.1, 1e-6)
    with pytest.raises(ParameterError, match="neighbours"):
        Guarantee(0.1, 1e-6, neighbours="swapped")


def test_epsilon_is_the_total_guarantee():
    for kind in (LaplaceThreshold, GaussianThreshold, TruncatedGeometric):
        mechanism = Replacement.from_epsilon(kind, epsilon=1.0, delta=1e-6, l0=2)
        assert mechanism.guarantee.epsilon(1e-6) <= 1.0


def test_other_mechanisms_are_refused():
    with pytest.raises(ParameterError, match="not for PrivateCountRelease"):
        Replacement.from_rho(PrivateCountRelease, rho=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="twice"):
        Replacement(mechanism=LaplaceThreshold(scale=1.0, delta=1e-3, l0=3))
    with pytest.raises(ParameterError, match="exact"):
        Replacement(mechanism=GaussianThreshold.from_epsilon(epsilon=1.0, delta=1e-6, l0=2))


def test_the_cap_is_that_of_the_mechanism_inside():
    made = Replacement.from_epsilon(OptimalSelection, epsilon=1.0, delta=1e-6, l0=2)
    assert made.cap == made.mechanism.cap > 0
    table = {"user": [*range(3000)], "item": ["a"] * 3000}
    capped = Histogram.from_table(table, user="user", item="item", l0=2, cap=made.cap)
    assert made.release(capped).items == ["a"]
    too_low = Histogram.from_table(table, user="user", item="item", l0=2, cap=made.cap - 1)
    with pytest.raises(SensitivityError, match="cap"):
        made.release(too_low)
    assert Replacement.from_rho(GaussianThreshold, rho=1.0, delta=1e-6, l0=2).cap is None
