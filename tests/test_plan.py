"""Plans compared with releases of the planned mechanisms."""

import html
import json
import math
import sys

import numpy as np
import pytest

import discreet as dp
from discreet.planning.choose import choose
from discreet.testing import seeded_rng

MECHANISMS = [
    dp.LaplaceThreshold(scale=2.0, delta=1e-3, l0=2),
    dp.GaussianThreshold(sigma=3.0, delta=1e-3, l0=2),
    dp.TruncatedGeometric(epsilon=0.8, delta=1e-3),
    dp.OptimalSelection(epsilon=0.8, delta=1e-3),
    dp.LaplaceTopK(scale=2.0, delta=1e-2, l0=1, k_bar=3),
    dp.GaussianTopK(sigma=2.0, delta=1e-2, l0=1, k_bar=3),
    dp.GumbelTopK(k=1, scale=3.0, delta=1e-2, k_bar=3),
    dp.PrivateCountRelease(rho=0.5, delta=1e-3, epsilon_star=0.05, delta_star=1e-4, k_bar=3),
]
ONE_BY_ONE = (dp.ConfirmedCounts, dp.PrivateCountRelease, dp.GumbelTopK)
"""Mechanisms that select one item after another."""


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("releases", [1000, pytest.param(10_000, marks=pytest.mark.statistical)])
def test_items_are_released_as_often_as_planned(mechanism, releases):
    planned = dp.plan(mechanism)
    protected = mechanism.protects
    rng = seeded_rng(4)
    half, nearly = planned.users_for_50_percent, planned.users_for_95_percent
    for users in {half, nearly, max(1, half * 3 // 4)}:
        histogram = dp.Histogram.from_counts(["a"], [users], l0=protected.l0, linf=protected.linf, complete=True)
        seen = sum(len(mechanism.release(histogram, rng=rng)) for _ in range(releases))
        chance = mechanism.release_chance(users)
        assert abs(seen / releases - chance) < 5 * math.sqrt(chance * (1 - chance) / releases) + 1e-3


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_planned_numbers_of_users_are_the_least(mechanism):
    planned = dp.plan(mechanism)
    for users, chance in ((planned.users_for_50_percent, 0.5), (planned.users_for_95_percent, 0.95)):
        assert mechanism.release_chance(users) >= chance
        assert users == 1 or mechanism.release_chance(users - 1) < chance
    assert [c for _, c in planned.chances] == sorted(c for _, c in planned.chances)
    assert json.loads(planned.to_json())["users_for_50_percent"] == planned.users_for_50_percent
    is_printed = f"{planned.users_for_50_percent:,} users for a 50 % chance" in str(planned)
    assert is_printed is not planned.single_item
    assert planned.single_item is isinstance(mechanism, ONE_BY_ONE)


@pytest.mark.parametrize(
    ("l0", "kind"), [(1, dp.TruncatedGeometric), (2, dp.TruncatedGeometric), (10, dp.GaussianThreshold)]
)
def test_l0_decides_between_bounded_and_gaussian_noise(l0, kind):
    mechanism, reasons = choose("count", epsilon=1.0, delta=1e-6, l0=l0)
    assert isinstance(mechanism, kind)
    assert kind.__name__ in reasons[0]
    assert mechanism.guarantee.epsilon(1e-6) <= 1


def test_chosen_mechanisms_keep_the_guarantee():
    for l0 in (1, 3, 10, 100):
        for verb in ("count", "select"):
            mechanism, _ = choose(verb, epsilon=0.7, delta=1e-7, l0=l0)
            assert mechanism.guarantee.epsilon(1e-7) <= 0.7
            mechanism, _ = choose(verb, rho=0.2, delta=1e-7, l0=l0)
            assert mechanism.guarantee.rho <= 0.2
            assert mechanism.guarantee.delta <= 1e-7
    for k in (1, 5, 100):
        assert choose("top_k", k=k, epsilon=0.7, delta=1e-7)[0].guarantee.epsilon(1e-7) <= 0.7
        assert choose("top_k", k=k, rho=0.2, delta=1e-7)[0].guarantee.rho <= 0.2


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("sum", {}),
        ("count", {}),
        ("count", {"rho": 1, "epsilon": 1, "delta": 1e-6}),
        ("count", {"rho": 1, "delta": 1e-6, "foo": 1}),
        ("count", {"rho": 1, "delta": 1e-6, "l0": 0}),
        ("select", {"rho": 1, "delta": 1e-6, "method": "threshold"}),
        ("top_k", {"rho": 1, "delta": 1e-6, "k": 0}),
        ("top_k", {"rho": 1, "delta": 1e-6, "k": 5, "k_bar": 3}),
        ("count", {"rho": 1, "delta": 1e-6, "l0": 2, "relative_error": 0.3}),
    ],
)
def test_wrong_parameters_of_a_function_are_refused(verb, given):
    with pytest.raises(dp.errors.ParameterError):
        dp.plan(verb, **given)
    with pytest.raises(dp.errors.ParameterError):
        dp.plan(MECHANISMS[0], delta=1)


SUMS = dp.mechanisms.DiscoverAndSum(rho=1, delta=1e-6, l0=1, low=0, high=9)


@pytest.mark.parametrize(
    ("asked", "way"),
    [("stream", "Stream.recommended"), ("sum", "DiscoverAndSum"), ("aggregate", "scales"), (SUMS, "release_chance")],
)
def test_what_has_no_plan_names_another_way(asked, way):
    with pytest.raises(dp.errors.ParameterError, match=way):
        dp.plan(asked)


def test_releases_and_plans_quote_the_given_epsilon():
    log = skewed(20_000, 2000)
    for release in (
        dp.count(log, user="user", item="item", epsilon=1.0, delta=1e-6, l0=10),
        dp.top_k(log, user="user", item="item", epsilon=1.0, delta=1e-6, k=10),
        dp.select(log, user="user", item="item", epsilon=1.0, delta=1e-6, l0=30),
        dp.count(log, user="user", item="item", epsilon=1.0, delta=1e-6),
    ):
        assert "(1, 1e-06)-DP" in release.promise
        assert (release.header["epsilon"], release.header["total_delta"]) == (1.0, 1e-6)
    planned = dp.plan("top-k", epsilon=1.0, delta=1e-6, k=10)
    assert "(1, 1e-06)-DP" in str(planned)
    assert json.loads(planned.to_json())["dp"] == [1.0, 1e-6]
    with pytest.raises(dp.errors.ParameterError, match="does not imply"):
        planned.guarantee.stating(0.5, 1e-6)


def test_a_mechanism_is_found_for_small_epsilons():
    for epsilon in (1e-3, 1e-5):
        for l0 in (1, 10):
            assert dp.LaplaceTopK.from_epsilon(epsilon=epsilon, delta=1e-6, l0=l0).guarantee.epsilon(1e-6) <= epsilon
    count, select = (dp.plan(verb, epsilon=1e-6, delta=1e-9, l0=1) for verb in ("count", "select"))
    assert select.users_for_50_percent <= count.users_for_50_percent


def test_a_plan_of_items_that_compete_plots_how_many_are_named():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")
    with pytest.raises(dp.errors.ParameterError, match="give like="):
        dp.plan("count", rho=1, delta=1e-6).plot()
    shape = dp.Shape(users=1_000, items=50, exponent=1.0, items_per_user=2)
    planned = dp.plan("count", rho=1, delta=1e-6, like=shape)
    axes = planned.plot()
    assert axes.get_xlabel() == "items within 10 % of the true count"
    assert [bar.get_width() for bar in axes.patches] == [row.within for row in planned.comparison.rows]
    assert axes._repr_png_().startswith(b"\x89PNG")
    pyplot.close("all")


# --- the public functions ------------------------------------------------------------------------------


def skewed(rows=200_000, users=20_000, l0=10, seed=1):
    """Return a log of at most l0 items per user, a few of them common."""
    random = np.random.default_rng(seed)
    return {"user": np.arange(rows) % users, "item": random.zipf(1.2, rows) % 50_000}


def test_bounded_counts_are_released_with_the_reason():
    release = dp.count(skewed(), user="user", item="item", epsilon=1.0, delta=1e-6, l0=10)
    assert release.counts is not None
    assert len(release) > 50
    assert "GaussianThreshold was chosen" in release.notes[-1]
    assert release.guarantee.epsilon(1e-6) <= 1


def test_the_top_k_are_ranked():
    release = dp.top_k(skewed(), user="user", item="item", k=3, epsilon=2.0, delta=1e-6)
    assert release.items == [1, 2, 3]
    assert [name for name, _, _ in release.columns] == ["item", "rank"]
    assert list(release) == [1, 2, 3]


def test_count_releases_more_than_the_analytic_gaussian():
    # 100,000 users with ten items each. numpy uses half of delta for the noise, and half for the threshold.
    random = np.random.default_rng(2)
    users, items = np.repeat(np.arange(100_000), 10), random.zipf(1.3, 1_000_000) % 50_000
    table = dp.Histogram.from_table({"user": users, "item": items}, user="user", item="item", l0=10)
    mechanism, rng = choose("count", epsilon=1.0, delta=1e-6, l0=10)[0], seeded_rng(3)
    ours = [len(mechanism.release(table, rng=rng)) for _ in range(3)]
    counts = table._counts()
    sigma, threshold = analytic_gaussian(1.0, 1e-6, 10)
    theirs = [np.count_nonzero(counts + random.normal(0, sigma, len(counts)) > threshold) for _ in range(20)]
    assert np.mean(ours) >= np.mean(theirs)


def analytic_gaussian(epsilon, delta, l0):
    """Return the least sigma of Balle and Wang (2018) for half of delta, and the threshold for the other half."""
    from statistics import NormalDist

    normal = NormalDist()

    def spent(sigma):
        mu = math.sqrt(l0) / sigma
        return normal.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal.cdf(-mu / 2 - epsilon / mu)

    low, high = 0.1, 1e4
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > delta / 2 else (low, middle)
    return high, 1 + high * -normal.inv_cdf(delta / 2 / l0)


def test_streams_are_planned_at_the_widest_noise():
    shortest = dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=1000)
    assert isinstance(shortest, dp.streams.SquareRootMechanism)
    made = dp.plan(shortest)
    assert made.deviation == shortest.deviation(1000) < 3.3
    assert made.users_for_50_percent == shortest.threshold(1000) + 1
    assert 4 * 1000 < made.memory < 4 * 1000 + 200
    mechanism = dp.streams.HonakerMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=1000)
    made = dp.plan(mechanism)
    assert made.deviation == mechanism.deviation(511)
    assert made.users_for_50_percent == mechanism.threshold(511) + 1
    # The theoretical bound: 2 (floor(log2 L) + 1) + 1 numbers of 64 bits.
    assert made.memory <= 8 * (2 * 10 + 1)
    assert dp.plan(dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=1000)).memory <= 8 * (2 * 10 + 1)
    assert "bytes" in str(made)
    assert "events for a 50 % chance" in str(made)
    assert "users" not in str(made)
    assert json.loads(made.to_json())["unit"] == "event"
    assert isinstance(dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, item_bytes=500), dp.streams.HybridMechanism)
    assert [dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, item_bytes=n).epoch for n in (4400, 1000)] == [1024, 128]
    endless = dp.plan(dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1))
    assert (endless.rounds, endless.grows) == (1024, True)
    assert "noisiest of the first 1,024 rounds, and more in later ones" in str(endless)
    assert isinstance(dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=2000), dp.streams.HonakerMechanism)
    longer = dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=2000, item_bytes=10_000)
    assert isinstance(longer, dp.streams.SquareRootMechanism)
    assert isinstance(dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=9, item_bytes=1), dp.BinaryMechanism)
    assert isinstance(dp.Stream.recommended(epsilon=1.0, delta=1e-6, l0=1, horizon=10**6), dp.BinaryMechanism)
    with pytest.raises(dp.errors.ParameterError, match="exactly one"):
        dp.Stream.recommended(delta=1e-6, l0=1)


def test_a_notebook_shows_the_printed_plan():
    for verb, parameters in (("count", {"l0": 2}), ("answer_queries", {"k": 3})):
        plan = dp.plan(verb, epsilon=1.0, delta=1e-6, **parameters)
        assert str(plan) in html.unescape(plan._repr_html_())


@pytest.mark.parametrize("l0", [None, 2])
def test_a_notebook_shows_the_picture_of_a_plan(l0):
    pytest.importorskip("matplotlib")
    shape = dp.Shape(users=1_000, items=50, exponent=1.0, items_per_user=2)
    plan = dp.plan("count", rho=1, delta=1e-6, l0=l0, like=shape)
    assert plan._repr_png_().startswith(b"\x89PNG")
    assert '<img alt="' in plan._repr_html_()


def test_a_plan_has_no_picture_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    plan = dp.plan("count", rho=1, delta=1e-6)
    assert plan._repr_png_() is None
    assert html.escape(str(plan)) in plan._repr_html_()
    shape = dp.Shape(users=1_000, items=50, exponent=1.0, items_per_user=2)
    assert "<th>within 10 %" in dp.plan("count", rho=1, delta=1e-6, like=shape)._repr_html_()


@pytest.mark.parametrize("kind", [dp.PrivateCountRelease, dp.ConfirmedCounts])
@pytest.mark.parametrize(("largest", "exponent"), [(10_000, 1.0), (100_000, 0.7), (100_000, 1.3)])
@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_a_forecast_matches_the_release(kind, largest, exponent, rho):
    mechanism, rng = kind(rho=rho, delta=1e-6), seeded_rng(7)
    counts = np.floor(largest / np.arange(1, 40_001) ** exponent).astype(np.int64)
    counts = counts[counts > 0]
    users = {} if kind is dp.PrivateCountRelease else {"users": 2 * largest}
    table = dp.Histogram.from_counts(list(range(len(counts))), counts, l0=None, linf=1, complete=True, **users)
    items, smallest = mechanism.forecast(largest, exponent)
    release = mechanism.release(table, rng=rng)
    assert items / 1.25 <= len(release) <= items * 1.25
    # Noise dominates the smallest counts, so the 5 % quantile stands for them.
    assert smallest / 1.5 <= np.quantile(release.counts, 0.05) <= smallest * 1.5


def test_a_plan_of_counts_forecasts_the_released_items():
    for mechanism in (dp.PrivateCountRelease(rho=1.0, delta=1e-6), dp.ConfirmedCounts(rho=1.0, delta=1e-6)):
        shape = dp.Shape(users=20_000, items=50_000, exponent=1.0, items_per_user=20)
        planned = dp.plan(mechanism, like=shape)
        (row,) = planned.comparison.rows
        assert f"{row.items:,}" in str(planned)
        # The chances of a single item are not printed: among other items it needs more users.
        assert "50 % chance" not in str(planned)
        assert json.loads(planned.to_json())["forecast"][0]["items"] == planned.forecast[0][1]
    rng = seeded_rng(7)
    for users, items in dp.plan(dp.PrivateCountRelease(rho=1.0, delta=1e-6)).affordable[:6]:
        many = dp.Histogram.from_counts(list(range(2 * items)), [users] * 2 * items, l0=None, linf=1, complete=True)
        found = dp.PrivateCountRelease(rho=1.0, delta=1e-6)
        named = sorted(len(found.release(many, rng=rng)) for _ in range(9))[4]
        assert items / 1.5 <= named <= items * 1.5


def test_a_larger_rho_affords_more_items():
    bought = [dp.PrivateCountRelease(rho=rho, delta=1e-6).affordable(400) for rho in (0.1, 0.5, 1.0, 5.0)]
    assert bought == sorted(bought)
    assert bought[0] < bought[-1]
