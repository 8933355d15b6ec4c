"""Plans with a number of users: the least rho or epsilon that names an item of so many users."""

import json

import numpy as np
import pytest

import discreet as dp
from discreet.planning.choose import choose
from discreet.planning.inverse import needed
from discreet.planning.sources import PublicCounts, PublicShape
from discreet.testing import seeded_rng

SHAPE = dp.Shape(users=5_000, items=3_000, exponent=1.0, items_per_user=10)


def below(value):
    """Return the next smaller number of two digits."""
    digits, power = f"{value:.1e}".split("e")
    tens = round(float(digits) * 10)
    return float(f"{tens - 1}e{int(power) - 1}") if tens > 10 else float(f"99e{int(power) - 2}")


@pytest.mark.parametrize(
    ("verb", "parameters"),
    [
        ("count", {"l0": 1}),
        ("count", {"l0": 30}),
        ("select", {"l0": 3}),
        ("select", {"l0": 10, "method": "dp_sips"}),
        ("select", {"l0": 3, "method": "policy_laplace"}),
    ],
)
@pytest.mark.parametrize("users", [20, 50, 1_000])
def test_a_threshold_needs_the_least_rho_and_epsilon_of_two_digits(verb, parameters, users):
    found = dp.plan(verb, delta=1e-6, users=users, **parameters).needed
    assert not found.simulated
    for name, least in (("rho", 1e-4), ("epsilon", 1e-2)):
        value = getattr(found, name)
        assert choose(verb, delta=1e-6, **{name: value}, **parameters)[0].release_chance(users) >= 0.95
        if value == least:
            continue
        try:
            smaller = choose(verb, delta=1e-6, **{name: below(value)}, **parameters)[0]
        except dp.errors.ParameterError:  # below the least parameters of the mechanism
            continue
        assert smaller.release_chance(users) < 0.95


def test_the_default_of_count_names_items_of_so_many_users():
    users, source = 60, PublicShape(SHAPE)
    found = needed("count", {"delta": 1e-6, "rho": 1.0}, users, source)
    assert found.simulated
    assert found.epsilon is None
    near = np.flatnonzero(abs(source.drawn - users) <= 4)
    assert len(near) > 10

    def named(rho):
        mechanism, rng = dp.CalibratedCounts(rho=rho, delta=1e-6), seeded_rng(77)
        return np.mean([np.isin(near, mechanism.release(source.held(), rng=rng).items) for _ in range(10)])

    assert named(found.rho) >= 0.88
    assert named(found.rho / 2) < 0.8


def test_without_rows_confirmed_counts_name_an_item_of_so_many_users():
    users = 60
    counts = np.array(SHAPE.counts())
    found = needed("count", {"delta": 1e-6, "rho": 1.0}, users, PublicCounts(counts.tolist(), SHAPE.users, "counts"))
    assert found.simulated
    rank = int(np.searchsorted(-counts, -users))
    counts[rank] = users
    table = dp.Histogram.from_counts(np.arange(len(counts)), counts, l0=None, linf=1, complete=True, users=SHAPE.users)

    def named(rho):
        mechanism, rng = dp.ConfirmedCounts(rho=rho, delta=1e-6), seeded_rng(77)
        return np.mean([rank in mechanism.release(table, rng=rng).items for _ in range(100)])

    assert named(found.rho) >= 0.88
    assert named(found.rho / 2) < 0.8


def test_more_users_need_less():
    found = [needed("count", {"delta": 1e-6, "rho": 1.0}, users, PublicShape(SHAPE)).rho for users in (50, 800)]
    assert found[0] > 4 * found[1]


@pytest.mark.parametrize("method", [{}, {"method": "discover+peel", "l0": 10}], ids=["gumbel", "discover+peel"])
def test_a_top_k_list_names_an_item_among_its_competitors(method):
    parameters = {"k": 20, "delta": 1e-6, **method}
    counts = np.array(SHAPE.counts())
    users = int(counts[12])
    found = needed("top_k", {**parameters, "rho": 1.0}, users, PublicShape(SHAPE))
    mechanism, rng = choose("top_k", rho=found.rho, **parameters)[0], seeded_rng(5)
    if method:
        table = SHAPE.table()
        seen = np.bincount(table["item"], minlength=len(counts))
        rank = int(np.argmin(np.where(seen >= users, seen, np.iinfo(np.int64).max)))
        runs = [mechanism.release(table, user="user", item="item", rng=rng).items for _ in range(60)]
    else:
        rank = 12
        rows = dp.Histogram.from_counts(np.arange(len(counts)), counts, l0=None, linf=1, complete=True)
        runs = [mechanism.release(rows, rng=rng).items for _ in range(200)]
    assert np.mean([rank in run for run in runs]) > 0.85


def test_an_item_outside_the_top_k_is_named_by_no_rho():
    found = needed("top_k", {"k": 5, "delta": 1e-6, "rho": 1.0}, 10, PublicShape(SHAPE))
    assert (found.rho, found.epsilon) == (None, None)
    assert "No rho or epsilon in range" in str(found)
    with pytest.raises(dp.errors.ParameterError, match="larger k"):
        dp.plan("top_k", k=5, delta=1e-6, users=10, like=SHAPE)


def test_the_answer_is_in_the_terms_that_were_asked():
    in_rho = dp.plan("count", l0=3, rho=1, delta=1e-6, users=50)
    assert in_rho.needed.epsilon is None
    assert in_rho.guarantee.rho == pytest.approx(1.0)
    in_epsilon = dp.plan("count", l0=3, epsilon=1, delta=1e-6, users=50)
    assert in_epsilon.needed.rho is None
    assert in_epsilon.guarantee.dp == (1.0, 1e-6)
    both = dp.plan("count", l0=3, delta=1e-6, users=50)
    assert both.guarantee.rho == pytest.approx(both.needed.rho)
    assert "An item of 50 users after clipping to l0=3" in str(both)
    assert f"at rho = {both.needed.rho:g} or epsilon = {both.needed.epsilon:g}" in str(both)
    assert json.loads(both.to_json())["needed"]["rho"] == both.needed.rho
    with pytest.raises(dp.errors.ParameterError, match="at most one"):
        dp.plan("count", rho=1, epsilon=1, delta=1e-6, users=50)
    assert (
        dp.plan("select", delta=1e-6, users=50).needed
        == dp.plan("select", l0=100, method="dp_sips", delta=1e-6, users=50).needed
    )
    with pytest.raises(dp.errors.ParameterError):
        dp.plan("count", delta=1e-6, l0=0, users=50)
