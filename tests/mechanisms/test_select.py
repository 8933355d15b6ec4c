"""The function `select`: its methods, and the choice between them."""

import numpy as np
import pytest

import discreet as dp
from discreet.mechanisms import SetUnion
from discreet.mechanisms.union.methods import UNION_METHODS
from discreet.planning.choose import choose
from discreet.testing import seeded_rng

LOG = {"user": np.repeat(np.arange(4000), 12), "item": np.random.default_rng(1).zipf(1.4, 48_000)}


@pytest.mark.parametrize("method", ["auto", "threshold", "dp_sips", *UNION_METHODS])
@pytest.mark.parametrize("promise", [{"epsilon": 2.0}, {"rho": 0.3}])
def test_select_takes_every_method(method, promise):
    release = dp.select(LOG, user="user", item="item", **promise, delta=1e-6, l0=8, method=method)
    assert len({1, 2, 3, 4, 5} & set(release.items)) >= 3
    assert release.counts is None
    planned = dp.plan("select", **promise, delta=1e-6, l0=8, method=method)
    assert 1 < planned.users_for_50_percent <= planned.users_for_95_percent
    if "epsilon" in promise:
        assert "(2, 1e-06)-DP" in release.promise


def test_a_release_explains_the_chosen_method():
    assert "IteratedSetUnion" in dp.select(LOG, user="user", item="item", epsilon=1, delta=1e-6, l0=30).notes[0]
    assert "policy_laplace" in dp.select(LOG, user="user", item="item", epsilon=1, delta=1e-6, l0=3).notes[0]
    free, (note, *_) = choose("select", rho=1.0, delta=1e-6)
    assert (free, "100 items" in note) == (choose("select", rho=1.0, delta=1e-6, l0=100, method="dp_sips")[0], True)
    with pytest.raises(dp.errors.ParameterError, match="needs l0"):
        choose("select", rho=1.0, delta=1e-6, method="threshold")
    assert "OptimalSelection" in dp.plan("select", epsilon=1.0, delta=1e-6, l0=1).reasons[0]
    with pytest.raises(dp.errors.ParameterError, match="policy_gaussian"):
        dp.select(LOG, user="user", item="item", epsilon=1, delta=1e-6, l0=8, method="policy")


@pytest.mark.parametrize(
    ("promise", "of_two"),
    [
        # In the worst case an item needs 1.51 times the users of the threshold.
        pytest.param({"epsilon": 0.1}, "OptimalSelection", marks=pytest.mark.statistical),
        ({"epsilon": 1.0}, "SetUnionwater"),
        ({"epsilon": 3.0}, "SetUnionwater"),
        ({"rho": 0.1}, "IteratedSetUnion"),
    ],
    ids=str,
)
def test_the_choice_depends_on_the_guarantee_and_l0(promise, of_two):
    plans = [dp.plan("select", **promise, delta=1e-6, l0=l0).mechanism for l0 in (1, 2, 8, 100)]
    assert plans[3] == dp.plan("select", **promise, delta=1e-6, l0=100, method="auto").mechanism
    chosen = [plan.partition("(")[0] + ("water" if "'policy_laplace'" in plan else "") for plan in plans]
    assert chosen[0] in ("OptimalSelection", "GaussianThreshold", "TruncatedGeometric")
    assert chosen[1:] == [of_two, "IteratedSetUnion", "IteratedSetUnion"]


@pytest.mark.parametrize(
    ("epsilon", "l0", "size", "own"),
    [(1.0, 3, 3, 0), (0.5, 2, 2, 0), (1.0, 10, 8, 0), (1.0, 30, 20, 0), (3.0, 2, 1, 1), (1.0, 3, 1, 2), (1.0, 8, 3, 5)],
)
def test_an_item_of_all_users_is_never_missing(epsilon, l0, size, own):
    """A target a few scales above the threshold would miss such an item in about 1 % of releases.

    `own` is the number of items that each user alone has, in two rows each, so that they are the most frequent ones.
    """
    users = 5_000
    log = {
        "user": np.concatenate([np.repeat(np.arange(users), size), np.repeat(np.arange(users), 2 * own)]),
        "item": np.concatenate([np.tile(np.arange(size), users), np.repeat(-1 - np.arange(users * own), 2)]),
    }
    # Planning takes longer than a release, and gives the same mechanism each time.
    mechanism, _ = choose("select", epsilon=epsilon, delta=1e-6, l0=l0)
    assert repr(mechanism) == dp.select(log, user="user", item="item", epsilon=epsilon, delta=1e-6, l0=l0).made_by
    kept = mechanism.l0 if isinstance(mechanism, SetUnion) else None
    # No user has more than l0 items, so the seeds decide all. Without them, an item is missed with a chance of 3e-7.
    items = dp.tables.UserItems.from_table(log, user="user", item="item", l0=kept)
    for seed in range(100):
        # An item of one user is released with chance delta.
        assert set(range(size)) <= set(mechanism.release(items, rng=seeded_rng(seed)).items)


def test_another_method_is_chosen_if_the_first_cannot_run():
    for epsilon, kind in ((0.005, "IteratedSetUnion"), (0.001, "GaussianThreshold")):
        plan = dp.plan("select", epsilon=epsilon, delta=1e-9, l0=20)
        assert plan.mechanism.startswith(kind)
        assert plan.reasons[0].startswith(f"{kind} was chosen")
