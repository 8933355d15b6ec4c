"""Audits run the mechanism and find releases that do not follow the exact law."""

import itertools
import json
import math

import numpy as np
import pytest
from audited import SETS
from liars import HONEST, LAPLACE, LIARS, running

from discreet import Guarantee, _core
from discreet.audit import audit, runs, trial
from discreet.audit.neighbours import neighbours
from discreet.cli import main, without_data
from discreet.laws.views import views
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.privacy import Sensitivity
from discreet.testing import seeded_rng


@pytest.mark.parametrize("mechanism", HONEST, ids=lambda mechanism: type(mechanism).__name__)
def test_releases_that_follow_the_law_pass(mechanism):
    found = audit(mechanism, pairs=1, rng=seeded_rng(1))
    assert not found.failed, str(found)
    assert f"{found.releases:,} releases of {found.tables} tables follow the exact law" in str(found)


@pytest.mark.parametrize("lie", LIARS)
def test_releases_that_do_not_follow_the_law_fail(lie):
    mechanism, run = LIARS[lie]
    # The law keeps the guarantee, but the releases do not follow the law.
    found = audit(running(mechanism, run), pairs=1, rng=seeded_rng(2))
    assert not found.violations
    assert found.failed, str(found)
    assert "does NOT FOLLOW its exact law" in str(found)
    assert json.loads(found.to_json())["misfits"][0]["runs"] == 1000


@pytest.mark.parametrize("lie", ["GaussianThreshold publishes all exact counts", "OptimalSelection counts a user more"])
def test_a_trial_compares_its_runs_with_the_law(lie):
    mechanism, run = LIARS[lie]
    centre = runs.centre(mechanism)
    # Both tables are equal, so no guarantee can be violated. Only the comparison with the law finds the defect.
    alike = {"0": centre}
    found = trial(running(mechanism, run), alike, alike, runs=1000, rng=seeded_rng(3))
    assert not found.violates
    assert found.failed
    assert "does NOT FOLLOW its exact law" in str(found)
    honest = trial(mechanism, alike, alike, runs=1000, rng=seeded_rng(4))
    assert honest.compared
    assert not honest.failed


class Unknown(HistogramMechanism):
    """A mechanism without a known exact law."""

    protects = Sensitivity(l0=1, linf=1)
    guarantee = Guarantee(1.0, 1e-3)

    def release_chance(self, users):
        return 0.0

    def _run(self, histogram, rng):
        return self._published(histogram, np.zeros(0, np.int64), rng)


def test_a_trial_of_an_unknown_law_skips_the_comparison():
    found = trial(Unknown(), {"a": 5}, {"a": 6}, runs=100, rng=seeded_rng(5))
    assert not found.compared
    assert "exact law" not in str(found)


@pytest.mark.parametrize(("verb", "kind"), [("count", "TruncatedGeometric"), ("select", "OptimalSelection")])
def test_the_command_fails_if_releases_break_the_law(verb, kind, monkeypatch, capsys):
    lie = {"count": "publishes all exact counts", "select": "decides without chance"}[verb]
    mechanism, run = LIARS[f"{kind} {lie}"]
    for chosen, code in ((mechanism, 0), (running(mechanism, run), 1)):
        monkeypatch.setattr(without_data, "choose", lambda *_, chosen=chosen, **__: (chosen, ()))
        with pytest.raises(SystemExit) as ended:
            main(["audit", verb, "--epsilon", "1", "--delta", "1e-6", "--l0", "1", "--pairs", "2"])
        assert ended.value.code == code
        assert ("NOT FOLLOW" in capsys.readouterr().out) is bool(code)


def test_one_output_of_probability_zero_fails_the_comparison():
    table = {"0": runs.centre(LAPLACE)}
    rows = runs.released(LAPLACE, table, 300, seeded_rng(6))
    assert not runs.compared(LAPLACE, [(table, rows)])
    low, value = LAPLACE.threshold.value, LAPLACE.threshold.value + 3
    for impossible in (
        (("0", low, None),),
        (("other", value, None),),
        (("0", value, None), ("0", value, None)),
        (("0", None, None),),
    ):
        assert runs.compared(LAPLACE, [(table, [*rows, impossible])])


@pytest.mark.parametrize("kind", SETS)
def test_the_probabilities_of_every_view_sum_to_one(kind):
    for given in SETS[kind]:
        mechanism = kind(**given)
        for table in runs.tables(mechanism, itertools.islice(neighbours(mechanism, 2, 0), 2)):
            for view in views(mechanism, table):
                assert math.fsum(view.distribution.values()) == pytest.approx(1, abs=1e-9), (
                    mechanism,
                    table,
                    view.name,
                )
                assert min(view.distribution.values()) >= -1e-12


@pytest.mark.parametrize("chance", [0.5, 0.1, 0.01, 1e-4, 0.999])
def test_a_comparison_rejects_at_most_at_its_level(chance):
    trials, level = 200, 1e-3
    limit = math.log(2 / level)
    rejected = sum(
        math.comb(trials, hits) * chance**hits * (1 - chance) ** (trials - hits)
        for hits in range(trials + 1)
        if trials * runs.divergence(hits / trials, chance) > limit
    )
    assert 0 < rejected <= level


def test_an_audit_without_runs_says_so():
    found = audit(LAPLACE, pairs=2, runs=0)
    assert "the mechanism was not run" in str(found)
    assert audit(LAPLACE, pairs=2, runs=100, rng=_core.Rng()).runs == 100
    for few in (1, 99, -1, True):
        with pytest.raises(ValueError, match="runs"):
            audit(LAPLACE, pairs=2, runs=few)
