"""Audits of every mechanism: the exact law on small neighbouring histograms is compared with the guarantee.

A law is the exact distribution of the releases. A mutant is a mechanism with an error that the audit must find.
"""

import re
from pathlib import Path

import pytest
from audited import CASES, SETS, names
from mutants import LAPLACE, MUTANTS

from discreet import (
    Guarantee,
    LaplaceThreshold,
    OptimalSelection,
    PrivateCountRelease,
    TruncatedGeometric,
    mechanisms,
    queries,
)
from discreet.audit import audit, examine
from discreet.audit.findings import hockey_stick
from discreet.errors import ParameterError
from discreet.laws import joint_law
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.privacy import Sensitivity
from discreet.testing import seeded_rng


def test_every_mechanism_whose_law_is_known_is_audited():
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text("utf-8")
    rows = [line.split("|") for line in page.split("## Where a mechanism is")[1].split("\n## ")[0].splitlines()]
    known = {name for row in rows if len(row) > 5 and "laws/" in row[5] for name in re.findall(r"`(\w+)`", row[1])}
    # The steps of calibrated counts have an audit of their own. The other two are audited around a mechanism.
    assert known - {kind.__name__ for kind in SETS} == {"CalibratedCounts", "KnownItems", "Replacement"}


@pytest.mark.parametrize("case", CASES, ids=names)
def test_no_neighbouring_pair_violates_the_guarantee(case):
    kind, number = case
    # 20 pairs of seed 7 find all mutants below but one.
    found = audit(kind(**SETS[kind][number]), pairs=20, seed=number, runs=100, rng=seeded_rng(number))
    assert not found.failed, str(found)


def test_an_audit_also_checks_the_requested_pair():
    mechanism = LaplaceThreshold(scale=2.0, delta=1e-2, l0=2)
    whole = audit(mechanism, pairs=20, runs=0)
    assert whole.guarantee == mechanism.guarantee
    asked = audit(mechanism, pairs=20, runs=0, dp=(1.5, 1e-2))
    assert not asked.violations
    assert asked.guarantee == mechanism.guarantee.stating(1.5, 1e-2)
    assert asked.quoted.epsilon == 1.5
    assert asked.tightest.ratio == whole.tightest.ratio
    # The first pair has an epsilon that is too small, the second a delta that novel items alone exceed.
    for pair in ((0.3, 1e-2), (1.5, 5e-3)):
        assert audit(mechanism, pairs=20, runs=0, dp=pair).violations
    assert audit(LaplaceThreshold(scale=200.0, delta=1e-2, l0=200), pairs=2, runs=0, dp=(1.0, 5e-3)).violations
    with pytest.raises(ParameterError, match="delta"):
        audit(mechanism, dp=(1.0, 2.0))


@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES, ids=names)
def test_none_of_10_000_pairs_violates_the_guarantee(case):
    kind, number = case
    found = audit(kind(**SETS[kind][number]), pairs=10_000, seed=1000 + number)
    assert not found.failed, str(found)
    assert found.tightest.ratio > 0.5, str(found)


@pytest.mark.parametrize("kind", SETS)
def test_the_worst_pair_uses_more_than_half_of_the_guarantee(kind):
    assert max(audit(kind(**given), pairs=40, runs=0).tightest.ratio for given in SETS[kind][:4]) > 0.5


@pytest.mark.parametrize("kind", [LaplaceThreshold, TruncatedGeometric, OptimalSelection])
def test_novel_items_use_up_delta(kind):
    mechanism = kind(**SETS[kind][0])
    delta = mechanism.guarantee.delta
    p, q = joint_law(mechanism, {}, {"a": 1})
    # An integer threshold leaves part of delta unused.
    assert 0.3 * delta < hockey_stick(q, p, 20.0) <= delta


def test_the_readme_states_the_number_of_mutants():
    readme = Path(__file__).resolve().parents[2] / "README.md"
    stated = re.search(r"(\d+)\s+mechanisms that are wrong on purpose", readme.read_text("utf-8"))
    assert int(stated[1]) == len(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("pairs", [20, pytest.param(400, marks=pytest.mark.statistical)])
def test_a_mutant_is_caught(name, pairs):
    # Law and releases have the same error, so a comparison of releases with the law cannot find the mutant.
    found = audit(MUTANTS[name](), pairs=max(pairs, 100 * name.endswith("first crossover")), seed=7, runs=0)
    assert found.violations, str(found)
    assert f"{len(found.violations):,} VIOLATION" in str(found)


def test_a_mechanism_without_a_known_law_is_refused():
    class NewMechanism(HistogramMechanism):
        protects = Sensitivity(l0=1, linf=1)
        guarantee = Guarantee(1.0, 1e-3)

        def release_chance(self, users):
            return 1.0

        def _run(self, histogram, rng):
            raise NotImplementedError

    items = {"items": ("a", "b"), "rho": 1.0}
    sums = {"low": 0, "high": 5, "l0": 1}
    for unknown in (
        NewMechanism(),
        mechanisms.CountsWithPublicItems(**items, delta=1e-6),
        mechanisms.ClippedSums(**items, **sums),
        mechanisms.DiscoverAndSum(rho=1.0, delta=1e-6, **sums),
        queries.GaussianAnswers(k=3, sigma=5.0),
    ):
        with pytest.raises(ParameterError, match=type(unknown).__name__):
            audit(unknown)
    with pytest.raises(ParameterError, match="more than 20,000,000 outcomes"):
        audit(PrivateCountRelease(rho=1.0, delta=1e-6))


def test_an_examination_contains_its_pair():
    found = examine(LAPLACE, {}, {"a": 1})
    assert (found.first, found.second) == ({}, {"a": 1})
    assert not found.violates
    found = audit(LAPLACE, pairs=3)
    text = str(found)
    assert text.startswith("On 3 pairs of neighbouring tables nothing exceeded the promise.")
    assert "LaplaceThreshold" in text
    assert found.releases == 1000 * found.tables > 0
    assert f"{found.releases:,} releases of {found.tables} tables follow the exact law" in text
    for fact in (*found.compared, *found.limits):
        assert f"- {fact}" in text
