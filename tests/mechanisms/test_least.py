"""Histograms that hold only counts of at least a number: thresholds and stop elements are higher."""

import itertools

import numpy as np
import pytest

from discreet import (
    ConfirmedCounts,
    GaussianThreshold,
    GaussianTopK,
    GumbelTopK,
    Histogram,
    LaplaceThreshold,
    LaplaceTopK,
    OptimalSelection,
    PrivateCountRelease,
    TruncatedGeometric,
)
from discreet.audit import examine
from discreet.errors import ParameterError, SensitivityError
from discreet.mechanisms import ExponentialMechanism, KnownItems, Replacement
from discreet.reference.threshold import threshold_release
from discreet.testing import seeded_rng

LEAST = 5
LAPLACE = LaplaceThreshold(scale=1.0, delta=1e-2, l0=2)
MECHANISMS = [
    LAPLACE,
    GaussianThreshold(sigma=1.0, delta=1e-2, l0=2),
    TruncatedGeometric(epsilon=2.0, delta=1e-2, l0=2),
    OptimalSelection(epsilon=2.0, delta=1e-2, l0=2),
    LaplaceTopK(scale=0.4, delta=1e-2, l0=2, k_bar=1),
    GaussianTopK(sigma=0.5, delta=1e-2, l0=2, k_bar=1),
    GumbelTopK(k=2, scale=1.0, delta=0.1, k_bar=2),
    Replacement.from_rho(GaussianThreshold, rho=1.0, delta=1e-2, l0=1),
]


def histogram(counts, least=LEAST, **given):
    kept = {label: count for label, count in counts.items() if count >= least}
    given = {"l0": 2, "linf": 1, "complete": False, "least": least, **given}
    return Histogram.from_counts(list(kept), list(kept.values()), **given)


def lowered(counts, by=LEAST - 1):
    """Return the counts that a query of counts of at least LEAST returns, lowered by `by`."""
    return {label: count - by for label, count in counts.items() if count >= LEAST}


def pairs():
    """Yield neighbouring tables with counts around LEAST. The second has one user more."""
    counts = (0, LEAST - 1, LEAST, LEAST + 2, LEAST + 9)
    for a, b, rest in itertools.product(counts, counts, (0, LEAST)):
        for moved in ("a", "ab"):
            first = {"a": a, "b": b, "c": rest}
            yield first, {label: count + (label in moved) for label, count in first.items()}


@pytest.mark.parametrize("mechanism", MECHANISMS[:-1], ids=lambda mechanism: type(mechanism).__name__)
def test_no_neighbouring_pair_violates_the_guarantee(mechanism):
    for first, second in pairs():
        found = examine(mechanism, lowered(first), lowered(second))
        assert not found.violates, (first, second, str(found))


@pytest.mark.parametrize("mechanism", MECHANISMS[:-1], ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize("by", [0, LEAST - 3])
def test_a_threshold_that_is_not_raised_enough_is_caught(mechanism, by):
    assert any(examine(mechanism, *(lowered(counts, by) for counts in pair)).violates for pair in pairs())


@pytest.mark.parametrize("mechanism", MECHANISMS[2:4] + MECHANISMS[6:8], ids=lambda mechanism: type(mechanism).__name__)
def test_a_threshold_one_too_low_is_caught(mechanism):
    # These mechanisms use all of delta. The others have an integer threshold that covers more than delta.
    assert any(examine(mechanism, *(lowered(counts, LEAST - 2) for counts in pair)).violates for pair in pairs())


def test_a_missing_next_count_is_not_read_as_zero():
    # The k_bar-th count is LEAST. The next count is unknown: it may be LEAST - 1, but not more.
    mechanism = GumbelTopK(k=1, scale=1.0, delta=0.1, k_bar=1)
    assert examine(mechanism, {}, {"a": LEAST}).violates
    assert not examine(mechanism, lowered({"a": LEAST - 1}), lowered({"a": LEAST})).violates


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_a_release_is_that_of_the_lowered_counts(mechanism):
    l0 = mechanism.protects.l0
    counts = {f"{n}": 3 * n for n in range(1, 12)}
    lower = Histogram.from_counts(*map(list, zip(*lowered(counts).items(), strict=True)), l0=l0, linf=1, complete=True)
    for seed in range(20):
        found = mechanism.release(histogram(counts, l0=l0), rng=seeded_rng(seed))
        plain = mechanism.release(lower, rng=seeded_rng(seed))
        assert found.items == plain.items
        assert found.guarantee == plain.guarantee
        assert "at least 5" in found.notes[-1]
        if found.counts is not None:
            assert found.counts.tolist() == (plain.counts + LEAST - 1).tolist()


def test_a_release_agrees_with_the_reference():
    counts = {f"{n:02d}": n for n in range(1, 60)}
    release = LAPLACE.release(histogram(counts), rng=seeded_rng(4))
    order = sorted((label for label, n in counts.items() if n >= LEAST), key=lambda label: -counts[label])
    exact = np.array([counts[label] for label in order])
    rows, noisy = threshold_release(
        exact,
        LAPLACE.threshold.value,
        lambda rng, size: rng.sample(LAPLACE.noise, size),
        seeded_rng(4),
        least=LEAST,
    )
    assert dict(release) == {order[row]: count for row, count in zip(rows, noisy.tolist(), strict=True)}


def test_an_item_at_least_is_released_as_rarely_as_one_user():
    table = histogram({"a": LEAST})
    rng, chance = seeded_rng(9), LAPLACE.release_chance(1)
    runs = 10_000
    seen = sum(len(LAPLACE.release(table, rng=rng)) for _ in range(runs))
    assert abs(seen / runs - chance) < 5 * np.sqrt(chance / runs)
    assert chance <= 1e-2


def test_least_one_and_smaller_counts_change_nothing():
    plain = Histogram.from_counts(["a", "b"], [9, 8], l0=2, linf=1, complete=True)
    one = histogram({"a": 9, "b": 8}, least=1)
    same = Histogram.from_counts(["a", "b", "c"], [9, 8, 3], l0=2, linf=1, complete=False, least=LEAST)
    for seed in range(9):
        assert dict(LAPLACE.release(one, rng=seeded_rng(seed))) == dict(LAPLACE.release(plain, rng=seeded_rng(seed)))
        assert "c" not in LAPLACE.release(same, rng=seeded_rng(seed)).items


def test_a_limit_cuts_the_counts_of_at_least_a_number():
    counts = {f"{n}": 50 + n for n in range(9)}
    cut = histogram(counts, limit=9)
    with pytest.raises(SensitivityError, match="all counts"):
        LAPLACE.release(cut)
    assert len(LaplaceTopK(scale=0.4, delta=1e-2, l0=2, k_bar=8).release(cut)) <= 8


@pytest.mark.parametrize(
    "mechanism",
    [
        ConfirmedCounts(rho=1.0, delta=1e-6),
        PrivateCountRelease(rho=1.0, delta=1e-6),
        KnownItems(mechanism=LAPLACE, items=("a",)),
        ExponentialMechanism(items=("a",), scale=1.0),
        Replacement.from_rho(ConfirmedCounts, rho=1.0, delta=1e-6),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_other_mechanisms_refuse_the_histogram(mechanism):
    with pytest.raises(SensitivityError, match="only counts of at least 5"):
        mechanism.release(histogram({"a": 9}))


@pytest.mark.parametrize(
    "bad", [{"complete": True}, {"users": 9}, {"least": 0}, {"least": 1.5}, {"least": 2**36}, {"limit": 0}]
)
def test_parameters_out_of_range_are_refused(bad):
    with pytest.raises(ParameterError):
        Histogram.from_counts(["a"], [9], **{"l0": 2, "linf": 1, "complete": False, "least": LEAST, **bad})
