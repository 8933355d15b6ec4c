"""Set union: guarantees, thresholds and released items."""

import dataclasses
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import discreet as dp
from discreet import _core
from discreet.audit import audit
from discreet.mechanisms import IteratedSetUnion, SetUnion
from discreet.mechanisms.fewest import users_for
from discreet.mechanisms.union.methods import UNION_METHODS
from discreet.reference.union import weights
from discreet.testing import seeded_rng
from discreet.theorems import gopi2020, rogers2023
from discreet.theorems.union_noise import bits_of, is_gaussian, least_threshold

LOG = {"user": np.repeat(np.arange(4000), 12), "item": np.random.default_rng(1).zipf(1.4, 48_000)}
MECHANISMS = [
    *(SetUnion.from_epsilon(method=method, epsilon=2.0, delta=1e-6, l0=8) for method in UNION_METHODS),
    IteratedSetUnion.from_epsilon(epsilon=2.0, delta=1e-6, l0=8),
]


@pytest.fixture(scope="module")
def items():
    return dp.tables.UserItems.from_table(LOG, user="user", item="item")


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: getattr(m, "method", "dp_sips"))
def test_items_are_released_in_order_with_the_guarantee(mechanism, items):
    release = mechanism.release(items)
    # An item that stops at the target is missed now and then.
    assert len({1, 2, 3, 4, 5} & set(release.items)) >= 3
    assert set(release.items) <= set(LOG["item"].tolist())
    assert release.items == sorted(release.items)
    assert release.counts is None
    assert not release.seeded
    assert release.guarantee.epsilon(1e-6) <= 2.0
    first, second = (mechanism.release(items, rng=seeded_rng(3)).items for _ in range(2))
    assert first == second


@pytest.mark.parametrize("method", UNION_METHODS)
def test_rho_is_met_and_nearly_used_up(method):
    mechanism = SetUnion.from_rho(method=method, rho=0.4, delta=1e-6, l0=10)
    assert 0.399 < mechanism.guarantee.rho <= 0.4
    assert mechanism.guarantee.delta == 1e-6
    rounds = IteratedSetUnion.from_rho(rho=0.4, delta=1e-6, l0=10)
    assert 0.399 < rounds.guarantee.rho <= 0.4
    assert rounds.guarantee.delta <= 1e-6


def test_a_method_that_rounds_covers_the_rounding():
    for l0, scale in [(1, 1.0), (3, 7.0), (100, 0.5), (64, 10.0)]:
        mechanism = SetUnion(method="policy_gaussian", scale=scale, delta=1e-6, l0=l0)
        # Three units of 2^-50 for each of l0 items of 2^32 users, and a unit of 2^-bits for each of 2^32 items, in l2.
        rounding = l0 * 2**32 * Fraction(3, 2**50) + Fraction(2**16, 2**mechanism.bits)
        assert 1 + rounding <= Fraction(mechanism.sensitivity) <= 1 + 2 * rounding
        # The noise and rho are for the larger change.
        law = mechanism.lattice
        assert Fraction(law.change) == Fraction(mechanism.sensitivity) * 2**mechanism.bits
        assert Fraction(law.sigma) >= Fraction(scale) * Fraction(mechanism.sensitivity) * 2**mechanism.bits
    # A change above one occurs: with a sensitivity of one the guarantee would be false.
    rng, bits, most = np.random.default_rng(5), 12, Fraction(0)
    for _ in range(300):
        size = int(rng.integers(2, 9))
        users = [sorted(rng.permutation(size)[: int(rng.integers(1, size + 1))].tolist()) for _ in range(6)]
        sides = [*users[1:], users[0]], users[1:]
        made = [weights(lists, size, "step", bits, target=4 << bits) for lists in sides]
        most = max(most, Fraction(sum((a - b) ** 2 for a, b in zip(*made, strict=True)), 4**bits))
    assert most > 1


@pytest.mark.parametrize("method", sorted(set(UNION_METHODS) - {"policy_gaussian"}))
def test_a_method_that_does_not_round_has_sensitivity_one(method):
    assert SetUnion(method=method, scale=2.0, delta=1e-6, l0=3).sensitivity == 1.0


@pytest.mark.parametrize(
    ("epsilon", "delta", "l0", "laplace"),
    [(3, math.exp(-10), 100, 4.6473335106795), (1, 1e-6, 10, 15.524948020398), (0.1, 1e-9, 50, 239.44141661325)],
)
def test_laplace_thresholds_match_known_values(epsilon, delta, l0, laplace):
    rough = max(gopi2020.laplace_threshold(1 / epsilon, delta, t) for t in range(1, l0 + 1))
    assert rough == pytest.approx(laplace, rel=1e-12)
    mechanism = SetUnion.from_epsilon(method="weighted_laplace", epsilon=epsilon, delta=delta, l0=l0)
    assert mechanism.threshold.value / 2**mechanism.bits == pytest.approx(laplace, rel=1e-6)


@pytest.mark.parametrize(
    ("rho", "delta", "l0", "threshold"),
    [(0.1, 1e-6, 10, 11.942299850721), (0.5, 1e-8, 100, 6.6120012441748), (1, 1e-6, 1, 4.3611785626256)],
)
def test_gaussian_thresholds_match_known_values(rho, delta, l0, threshold):
    mechanism = SetUnion.from_rho(method="weighted_gaussian", rho=rho, delta=delta, l0=l0)
    assert mechanism.threshold.value / 2**mechanism.bits == pytest.approx(threshold, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta", "l0", "sigma", "threshold"),
    [
        (3, math.exp(-10), 100, 1.3327913294062, 6.8236609810289),
        (1, 1e-6, 10, 4.3651549411357, 23.56820268026),
        (0.1, 1e-9, 50, 51.439639882958, 345.09683751984),
    ],
)
def test_epsilon_is_as_tight_as_for_continuous_noise(epsilon, delta, l0, sigma, threshold):
    mechanism = SetUnion.from_epsilon(method="weighted_gaussian", epsilon=epsilon, delta=delta, l0=l0)
    # The known values use half of delta; the best fraction is slightly better.
    assert 0.98 * sigma < mechanism.scale < 1.02 * sigma
    assert 0.99 * threshold < mechanism.threshold.value / 2**mechanism.bits < threshold
    assert mechanism.guarantee.dp[0] == epsilon
    assert delta * (1 - 1e-6) < mechanism.guarantee.dp[1] <= delta


@pytest.mark.parametrize("method", ["weighted_gaussian", "policy_gaussian"])
def test_less_noise_exceeds_epsilon(method):
    mechanism = SetUnion.from_epsilon(method=method, epsilon=1.0, delta=1e-6, l0=10)
    less = dataclasses.replace(mechanism, scale=mechanism.scale * 0.999)
    assert less.guarantee.dp[1] > 1e-6
    assert less.guarantee.epsilon(1e-6) > 1.0


def test_rounds_meet_epsilon_as_one_release():
    mechanism = IteratedSetUnion.from_epsilon(epsilon=1.0, delta=1e-6, l0=10)
    assert mechanism.guarantee.dp[0] == 1.0
    assert 1e-6 * (1 - 1e-6) < mechanism.guarantee.dp[1] <= 1e-6
    single = SetUnion.from_epsilon(method="weighted_gaussian", epsilon=1.0, delta=1e-6, l0=10)
    joint = sum(1 / part.scale**2 for part in mechanism.rounds) ** -0.5
    assert 0.98 * single.scale < joint < 1.02 * single.scale
    laplace = SetUnion.from_epsilon(method="policy_laplace", epsilon=1.0, delta=1e-6, l0=10)
    with pytest.raises(dp.errors.ParameterError, match="Gaussian"):
        IteratedSetUnion(rounds=(laplace,), epsilon=1.0)
    for rounds in ((), [laplace], (laplace, 3)):
        with pytest.raises(dp.errors.ParameterError, match="rounds"):
            IteratedSetUnion(rounds=rounds)


def test_small_and_large_epsilons_are_met():
    for epsilon in (0.01, 0.1, 20.0, 150.0):
        for kind in (
            IteratedSetUnion,
            partial(SetUnion.from_epsilon, method="weighted_gaussian"),
        ):
            make = getattr(kind, "from_epsilon", kind)
            assert make(epsilon=epsilon, delta=1e-9, l0=50).guarantee.epsilon(1e-9) <= epsilon


@pytest.mark.parametrize("method", ["weighted_gaussian", "weighted_laplace"])
@pytest.mark.parametrize("scale", [0.05, 0.4, 1.0, 30.0])
@pytest.mark.parametrize("delta", [0.6, 0.25, 0.19, 1e-3, 1e-12])
def test_the_threshold_is_safe_for_every_number_of_novel_items(method, scale, delta):
    l0, unit = 60, 1 << bits_of(scale)
    law = _core.Noise.discrete_gaussian if is_gaussian(method) else _core.Noise.discrete_laplace
    noise = law(scale * unit)
    found = least_threshold(method, noise, scale, delta, l0)
    most = [math.isqrt(unit**2 // t) if is_gaussian(method) else -(-unit // t) for t in range(1, l0 + 1)]
    chances = [rogers2023.novel_chance(delta, t) for t in range(1, l0 + 1)]
    assert all(noise.tail(found - value + 1) <= chance for value, chance in zip(most, chances, strict=True))
    if delta < 0.5:
        assert found == max(value - 1 + noise.quantile(p) for value, p in zip(most, chances, strict=True))


@pytest.mark.parametrize("method", UNION_METHODS)
@pytest.mark.parametrize("l0", [1, 3, 20])
def test_novel_items_are_released_with_at_most_delta(method, l0):
    mechanism = SetUnion.from_rho(method=method, rho=0.5, delta=1e-5, l0=l0)
    unit = 1 << mechanism.bits

    def seen(threshold, t, up):
        """Return the probability that one of t novel items is released, each with its largest weight."""
        if method.endswith("gaussian"):
            weights = [math.isqrt(unit**2 // t)] * t
        else:
            weights = [-(-unit // t) if up else unit // t] * t
        return -math.expm1(math.fsum(math.log1p(-threshold.chance(weight)) for weight in weights))

    for t in range(1, l0 + 1):
        assert seen(mechanism.threshold, t, True) <= 1e-5 * (1 + 1e-6)
    # The threshold is tight: lowering it by a hundredth of the scale exceeds delta.
    lower = dp._core.Threshold(mechanism.noise, mechanism.threshold.value - int(unit * mechanism.scale / 100))
    assert max(seen(lower, t, False) for t in range(1, l0 + 1)) > 1e-5


def named_law(mechanism, rows):
    """Return the probabilities of all sets of five items, if no user has more than l0 items."""
    users, items = np.nonzero(rows)
    if len(users) == 0:
        return np.eye(1, 32)[0]
    weighing = dp.tables.UserItems.from_pairs(users, items)._lists.weighing(mechanism.weighting)
    weight = weighing.weights(mechanism.weighting, seeded_rng(1))
    weighing.name(np.arange(len(weight)))
    law = np.ones(1)
    found = dict(zip(weighing.named.take(np.arange(len(weight))), weight.tolist(), strict=True))
    for item in range(5):
        chance = mechanism.threshold.chance(found[item]) if found.get(item) else 0.0
        law = np.concatenate([law * (1 - chance), law * chance])
    return law


def worst_excess(mechanism, epsilon, tries):
    """Return the largest hockey-stick divergence at epsilon between tables that differ by one user."""
    rng, worst = np.random.default_rng(4), 0.0
    for _ in range(tries):
        rows = rng.random((int(rng.integers(1, 60)), 5)) < rng.choice([0.2, 0.5, 0.8])
        rows[:, 4] &= rng.random() < 0.5
        rows[rows.sum(axis=1) > mechanism.l0, 0] = False
        p, q = named_law(mechanism, rows), named_law(mechanism, rows[1:])
        for a, b in ((p, q), (q, p)):
            worst = max(worst, float(np.maximum(a - math.exp(epsilon) * b, 0).sum()))
    return worst


@pytest.mark.parametrize("method", UNION_METHODS)
def test_exact_laws_of_small_neighbours_meet_epsilon(method):
    mechanism = SetUnion.from_epsilon(method=method, epsilon=0.5, delta=0.01, l0=4)
    assert 0.001 < worst_excess(mechanism, 0.5, 80) <= 0.01
    less = dataclasses.replace(mechanism, scale=mechanism.scale / 3, delta=0.3, epsilon=None, alpha=6.0)
    assert worst_excess(less, 0.5, 80) > 0.01


def test_round_shares_match_known_values():
    assert gopi2020.round_shares(3) == pytest.approx([0.076923076923077, 0.23076923076923, 0.69230769230769])
    assert gopi2020.round_shares(3, 0.3) == pytest.approx([0.064748201438849, 0.2158273381295, 0.71942446043165])


@pytest.mark.parametrize("method", [*UNION_METHODS, "dp_sips"])
def test_items_of_one_user_are_not_released(method):
    make = IteratedSetUnion.from_rho if method == "dp_sips" else partial(SetUnion.from_rho, method=method)
    # An item of these users is released with a chance of 3 delta.
    mechanism = make(rho=1.0, delta=1e-12, l0=8)
    users, items = np.repeat(np.arange(3), 2000), np.arange(6000)
    alone = dp.tables.UserItems.from_pairs(users, items)
    for _ in range(3):
        assert mechanism.release(alone).items == []
    assert mechanism.release(dp.tables.UserItems.from_pairs([], [])).items == []


def test_a_shared_order_releases_more_of_long_lists():
    users, items = np.repeat(np.arange(300), 400), np.tile(np.arange(400), 300)
    alike = dp.tables.UserItems.from_pairs(users, items)
    promise = {"epsilon": 1.0, "delta": 1e-6, "l0": 10}
    for make in (
        partial(SetUnion.from_epsilon, method="weighted_gaussian"),
        IteratedSetUnion.from_epsilon,
    ):
        apart, shared = (make(**promise, shared_order=shared) for shared in (False, True))
        assert apart.guarantee == shared.guarantee
        assert len(apart.release(alike, rng=seeded_rng(1))) == 0
        found = [shared.release(alike, rng=seeded_rng(seed)).items for seed in range(4)]
        assert all(8 <= len(items) <= 30 for items in found)
        names = {*map(tuple, found)}
        assert len(names) == 4
    with pytest.raises(dp.errors.ParameterError, match="shared_order"):
        SetUnion(method="policy_laplace", scale=1.0, delta=1e-6, l0=5, shared_order=1)


def test_strings_and_dictionaries_are_read_alike():
    pa = pytest.importorskip("pyarrow")
    words = [f"word-{n}" for n in LOG["item"].tolist()]
    plain = pa.table({"user": LOG["user"], "item": words})
    coded = pa.table({"user": LOG["user"], "item": pa.array(words).dictionary_encode()})
    mechanism = SetUnion.from_rho(method="weighted_gaussian", rho=50, delta=1e-6, l0=20)
    named = [
        set(mechanism.release(dp.tables.UserItems.from_table(table, user="user", item="item"), rng=seeded_rng(1)).items)
        for table in (plain, coded, {"user": LOG["user"], "item": words})
    ]
    assert len(named[0]) > 100
    # The rows and the item numbers are in the same order, so the noise is the same.
    assert named[0] == named[1] == named[2]


@pytest.mark.parametrize("method", UNION_METHODS)
@pytest.mark.parametrize("l0", [2, 8])
def test_the_release_chance_is_that_of_the_worst_case(method, l0):
    mechanism = SetUnion.from_epsilon(method=method, epsilon=1.0, delta=1e-6, l0=l0)
    users, runs = users_for(mechanism, 0.9), 200
    items = 1 + np.arange(users * l0)
    items[::l0] = 0  # the only item that users share; all others have one user
    data = dp.tables.UserItems.from_pairs(np.repeat(np.arange(users), l0), items)
    released = sum(0 in mechanism.release(data, rng=seeded_rng(run)).items for run in range(runs))
    assert released / runs > 0.9 - 4 * math.sqrt(0.1 * 0.9 / runs)


def test_a_set_union_reads_user_items_and_has_no_audit():
    with pytest.raises(dp.errors.ParameterError, match="UserItems"):
        MECHANISMS[0].release([1, 2])
    with pytest.raises(dp.errors.ParameterError, match="exact law"):
        audit(MECHANISMS[0])
