"""The noise of continual mechanisms, and their thresholds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from continual import ENDLESS, KINDS, by_epoch, made

from discreet import BinaryMechanism, _core
from discreet.laws.outcomes import NoiseLaw
from discreet.reference.node_noise import node_noise
from discreet.reference.node_sums import NodeSums
from discreet.reference.square_root import square_root_noise
from discreet.streams import EpochMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism
from discreet.streams.base import gaussian
from discreet.streams.square_root import rounded
from discreet.theorems import chan_shi_song2011, fichtenberger2023, honaker2015, rogers2023


@pytest.mark.parametrize("sigma", [0.4, 3.0, 700.0, 5000.0])
def test_noise_equals_the_reference(sigma):
    keys = [bytes([n]) * 32 for n in range(30)]
    ours = _core.NodeNoise()
    ours.extend(b"".join(keys))
    for node in (0, 1, 7, 8, 123_456_789):
        assert ours.draw(node, gaussian(sigma)).tolist() == [node_noise(key, node, sigma) for key in keys]


@pytest.mark.parametrize("scales", [(3.0, 50.0), (3.0, 1e7)])
def test_sums_over_nodes_equal_the_reference(scales):
    """Any nodes, with shared beginnings or without, and late items; from scales of 2^22 on the table has 64 bits."""
    random, nodes = np.random.default_rng(4), []
    noise, ours, reference = _core.NodeNoise(), _core.NodeSums(), NodeSums()
    for number in range(60):
        # A thread draws for 2^14 items: many come at once, and others before and after the end of a thread's part.
        noise.extend(random.bytes(32 * (20_000 if number == 45 else int(random.choice([0, 0, 1, 9, 3000])))))
        nodes = nodes[: random.integers(len(nodes) + 1)]
        for node, scale in zip(random.integers(2**40, size=random.integers(4)), random.choice(scales, 3), strict=False):
            nodes.append((int(node), float(scale), gaussian(float(scale))))
        found = ours.advance(noise, nodes)
        assert found.dtype == np.int64
        assert np.array_equal(found, reference.advance(noise, nodes))
    # Items that come while the words of a block are kept, and more of them than one thread takes.
    law = gaussian(scales[1])
    for node in (40, 41):
        noise.extend(random.bytes(32 * 20_000))
        assert np.array_equal(noise.draw(node, law), noise.draw_from(0, node, law))


@pytest.mark.parametrize(
    ("mechanism", "rounds"),
    [
        (SquareRootMechanism(sigma=1.0, delta=1e-6, l0=1, horizon=1), 1),
        (SquareRootMechanism(sigma=2.0, delta=1e-6, l0=1, horizon=3), 3),
        (SquareRootMechanism(sigma=3.0, delta=1e-6, l0=1, horizon=26), 26),
        (SquareRootMechanism(sigma=500_000.0, delta=1e-6, l0=1, horizon=26), 26),
        (EpochMechanism(rho=0.5, delta=1e-6, l0=1, epoch=1), 15),
        (EpochMechanism(rho=1e-5, delta=1e-6, l0=1, epoch=3), 31),
    ],
    ids=repr,
)
def test_weighted_noise_equals_the_exact_reference(mechanism, rounds):
    keys = [bytes([n]) * 32 for n in range(11)]
    noise, sums = _core.NodeNoise(), mechanism.sums()
    noise.extend(b"".join(keys))
    scales = dict(mechanism.nodes(rounds)) | {node: s for n in range(1, rounds) for node, s in mechanism.nodes(n)}
    drawn = [{node: node_noise(key, node, scale) for node, scale in scales.items()} for key in keys]
    for number in range(1, rounds + 1):
        epochs, whole = by_epoch(mechanism, number)
        noises = [[[of[node] for node in epoch] for epoch in epochs] for of in drawn]
        weighted = [square_root_noise(mechanism.column, *each) for each in noises]
        expected = [w + sum(of[node] for node in whole) for w, of in zip(weighted, drawn, strict=True)]
        assert sums.advance(noise, number).tolist() == expected
        # The result does not depend on the number of bits at the start.
        assert [rounded(mechanism.column, each, 1) for each in noises] == weighted


# Ten standard errors of a variance estimated from 1e5 draws are 4.5 %, and of one from 1e6 draws 1.4 %.
MILLION = pytest.param(1_000_000, (1, 7, 8, 63, 200), 0.01, marks=pytest.mark.statistical)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("draws", "rounds", "rel"), [(100_000, (1, 5, 12, 100), 0.025), MILLION])
def test_estimates_have_the_stated_variance(kind, draws, rounds, rel):
    mechanism, noise = made(kind), _core.NodeNoise()
    noise.extend(np.random.default_rng(1).bytes(32 * draws))
    sums = mechanism.sums()
    for number in rounds:
        drawn = sums.advance(noise, number)
        assert np.var(drawn) == pytest.approx(mechanism.deviation(number) ** 2, rel=rel), number
        # The rounding adds at most 1/(2 Q), and Q is 8 with epochs of 4 rounds.
        error, bias = 5 * mechanism.deviation(number) / math.sqrt(draws), 1 / 16 if kind is EpochMechanism else 0.0
        assert -error < drawn.mean() < bias + error, number


@pytest.mark.parametrize("kind", KINDS)
def test_noise_does_not_depend_on_the_path_to_a_round(kind):
    """Late items, skipped rounds and other items do not change an item's noise."""
    mechanism = made(kind)
    keys = np.random.default_rng(3).bytes(32 * 6)
    whole = _core.NodeNoise()
    whole.extend(keys)
    all_at_once = mechanism.sums()
    expected = {number: all_at_once.advance(whole, number).copy() for number in range(1, 38)}
    late, by_and_by = _core.NodeNoise(), mechanism.sums()
    late.extend(keys[:64])
    for number in range(1, 38):
        if number in (5, 6, 24):
            late.extend(keys[32 * late.items() :][:32])
        if number % 3 == 0 or number in (5, 6, 24):
            assert by_and_by.advance(late, number).tolist() == expected[number][: late.items()].tolist()


@pytest.mark.parametrize(
    ("l0", "horizon", "sigma", "delta", "statement", "proof", "least"),
    [
        (1, 8, 1, 1e-6, 12.532970741717, 11.315402624398, 9.9334007229931),
        (5, 1000, 10, 1e-6, 208.42263333137, 198.76972104427, 188.6208312148),
        (3, 2**20, 50, 1e-9, 1896.4575735193, 1852.8780108219, 1808.2478858529),
    ],
)
def test_thresholds_match_theorem_11(l0, horizon, sigma, delta, statement, proof, least):
    p = delta / (l0 * horizon)
    levels, most = math.ceil(math.log2(horizon + 1)), math.floor(math.log2(horizon + 1))
    for nodes, value in ((levels + 1, statement), (levels, proof), (most, least)):
        assert rogers2023.gaussian_threshold(math.sqrt(nodes) * sigma, p) == pytest.approx(value, rel=1e-12)


def test_variances_match_the_table_in_the_documentation():
    for horizon, binary, refined in [(8, 12, 8.9524), (100, 42, 26.5685), (1000, 90, 53.0237), (16384, 210, 117.0498)]:
        levels = rogers2023.tree_levels(horizon)
        rounds = range(1, horizon + 1)
        assert levels * max(number.bit_count() for number in rounds) == binary
        weights = [honaker2015.own_weight(level) for level in range(levels)]
        prefixes = (sum(w for level, w in enumerate(weights) if number >> level & 1) for number in rounds)
        assert levels * max(prefixes) == pytest.approx(refined, abs=5e-5)


@pytest.mark.parametrize(
    ("number", "variance", "threshold"),
    [(1, 1, 5.8916384756986), (5, 6, 14.432115341689), (12, 14, 22.30036791958), (1000, 105, 68.852138031342)],
)
def test_hybrid_variances_and_thresholds_match_the_theory(number, variance, threshold):
    epoch, _ = chan_shi_song2011.epoch_of(number)
    rho = rogers2023.conditioned_rho(0.5, 1e-6)
    found = HybridMechanism.from_rho(rho=rho, delta=1e-6, l0=1).deviation(number) ** 2
    assert found == pytest.approx(variance, rel=1e-12)
    p = chan_shi_song2011.round_chance(1e-6, epoch, 2**epoch)
    assert rogers2023.gaussian_threshold(math.sqrt(found), p) == pytest.approx(threshold, rel=1e-12)


def most_moved(columns, rounds, l0):
    """Return the largest squared change of all sums, over all users with events of l0 items in these many rounds."""
    horizon, found = len(columns), 0
    choices = list(itertools.combinations(range(l0 * rounds), l0))
    for places in itertools.combinations(range(horizon), rounds):
        for items in itertools.product(choices, repeat=rounds):
            moved = np.zeros((l0 * rounds, columns.shape[1]))
            for place, some in zip(places, items, strict=True):
                moved[list(some)] += columns[place]
            found = max(found, float((moved**2).sum()))
    return found


@pytest.mark.parametrize(
    ("horizon", "rounds", "l0"), [(8, 1, 1), (8, 2, 1), (8, 3, 1), (5, 3, 2), (6, 4, 1), (4, 4, 1)]
)
def test_no_user_moves_the_sums_more_than_the_bound(horizon, rounds, l0):
    levels = range(rogers2023.tree_levels(horizon))
    nodes = [(level, place) for level in levels for place in range((horizon >> level) + 1)]
    tree = np.array([[t >> level == place for level, place in nodes] for t in range(horizon)], float)
    assert most_moved(tree, rounds, l0) == l0 * rogers2023.tree_reach(horizon, rounds)
    column = SquareRootMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=horizon).column
    sums = np.array([[0] * t + list(column[: horizon - t]) for t in range(horizon)], float)
    assert most_moved(sums, rounds, l0) == l0 * fichtenberger2023.squared_reach(column, rounds)


def factor_square(rounds):
    return math.fsum(f * f for f in fichtenberger2023.factor(rounds))


def test_square_root_variances_match_the_theory():
    assert fichtenberger2023.factor(6) == [1, 0.5, 0.375, 0.3125, 0.2734375, 0.24609375]
    for rounds, square in [(4, 1.48828125), (16, 1.9438788471568), (1000, 3.2650030806724)]:
        assert factor_square(rounds) == pytest.approx(square, rel=1e-13)
    for horizon, variance in [(8, 2.9528), (100, 6.4077), (1000, 10.6602), (16384, 17.2654)]:
        assert factor_square(horizon) ** 2 == pytest.approx(variance, abs=5e-5)
    mechanism = SquareRootMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=1000)
    for number, deviation, threshold in [
        (1, 1.8069319524189, 11.83762913986),
        (10, 2.4184175586161, 15.505201798285),
        (1000, 3.2650030806724, 20.582858381279),
    ]:
        assert mechanism.deviation(number) == pytest.approx(deviation, rel=0.04)
        assert threshold - 1 < mechanism.threshold(number) < threshold + 3


@pytest.mark.parametrize("horizon", [1, 2, 7, 100, 1000, 8192])
def test_rounding_the_column_adds_less_than_1_percent(horizon):
    mechanism = SquareRootMechanism.from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon)
    least = factor_square(horizon) ** 2
    assert least * (1 - 1e-3) < mechanism.deviation(horizon) ** 2 - 1 / 12 < least * 1.006
    weights = _core.WeightedNoise(np.array(mechanism.column)).weights / 2.0**62
    assert np.all(weights > 0)
    undone = np.convolve(weights, np.array(mechanism.column) / mechanism.column[0])[:horizon]
    assert np.abs(undone - 1).max() < 1e-12


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.7, 1.0, 4.0, 50.0])
def test_integer_noise_is_below_continuous_noise_plus_two(scale):
    """The thresholds of weighted sums rely on this inequality between tails."""
    law = gaussian(scale)
    for n in range(-int(12 * scale) - 3, int(12 * scale) + 3):
        assert law.tail(n) <= 0.5 * math.erfc((n - 2) / scale / math.sqrt(2)) * (1 + 1e-9) + 1e-30


def test_tails_of_weighted_sums_bound_the_exact_tails():
    """Compare the bound with the exact distribution of a sum of three."""
    scale, weights = 1.5, [Fraction(1), Fraction(1, 2), Fraction(3, 8)]
    values = np.arange(-14, 15)
    chances = NoiseLaw(gaussian(scale)).of(values)
    totals = 8 * values[:, None, None] + 4 * values[None, :, None] + 3 * values[None, None, :]
    mass = chances[:, None, None] * chances[None, :, None] * chances[None, None, :]
    total, square = float(sum(weights)), float(sum(w * w for w in weights))
    for reach in (0.5, 2.0, 4.125, 8.0, 12.5):
        bound = fichtenberger2023.weighted_tail(scale, total, square, reach)
        assert mass[totals >= 8 * reach].sum() <= bound
        assert bound <= math.exp(-((reach / scale) ** 2) / (2 * square)) * (1 + 1e-9)


def test_honaker_thresholds_match_the_sub_gaussian_tail():
    """Compare with the least T with e^(-(T + 1/2 - linf)^2 / (2 V)) <= p, computed from exact weights."""
    for sigma, delta, l0, linf, horizon in [(0.6, 0.1, 1, 1, 3), (9.0, 1e-6, 1, 1, 1000), (40.0, 1e-9, 7, 5, 365)]:
        unit = "event" if linf == 1 else "user"
        mechanism = HonakerMechanism(sigma=sigma, delta=delta, l0=l0, horizon=horizon, linf=linf, unit=unit)
        p = -math.expm1(math.log1p(-delta / horizon) / l0)
        for number in range(1, horizon + 1, max(1, horizon // 50)):
            variance = 0.0
            for level in (level for level in range(20) if number >> level & 1):
                least, made = Fraction(1), Fraction(1)
                for _ in range(level):
                    # The best weight of the own count is (1/v) / (1/v + 1/2v'), rounded to the nearest 1024th.
                    own = Fraction(round(1024 * (2 * least / (1 + 2 * least))), 1024)
                    least = 2 * least / (1 + 2 * least)
                    made = own**2 + 2 * (1 - own) ** 2 * made
                variance += float(made) * sigma**2
            reach = math.sqrt(-2 * variance * math.log(p))
            assert mechanism.threshold(number) == linf + math.ceil(reach - 0.5), number


@pytest.mark.parametrize("kind", KINDS)
def test_integer_thresholds_are_close_to_continuous_ones(kind):
    mechanism = made(kind, rho=0.01)
    for number in (1, 7, 100, 1000):
        p = 1e-6 / 1000
        if kind is HybridMechanism:
            epoch, _ = chan_shi_song2011.epoch_of(number)
            p = chan_shi_song2011.round_chance(1e-6, epoch, 2**epoch)
        elif kind is EpochMechanism:
            epoch, _, rounds = mechanism.place(number)
            p = chan_shi_song2011.round_chance(1e-6, epoch, rounds)
        least = 1 + mechanism.deviation(number) * rogers2023.gaussian_threshold(1.0, p, 0)
        assert 0.9 * least < mechanism.threshold(number) < 1.3 * least + 2


def test_the_guarantee_is_the_requested_one():
    for kind in KINDS:
        guarantee = made(kind, rho=0.3, l0=4).guarantee
        assert 0.3 * (1 - 1e-9) < guarantee.rho <= 0.3
        assert (guarantee.delta, guarantee.unit) == (1e-6, "event")
        given = ENDLESS.get(kind, {"horizon": 365})
        assert kind.from_epsilon(epsilon=1.0, delta=1e-6, l0=2, **given).guarantee.epsilon(1e-6) <= 1.0
    user = BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=3, horizon=30, linf=5, unit="user")
    assert user.guarantee.unit == "user"
    assert user.sigma > made(BinaryMechanism, l0=3, horizon=30).sigma * 4.9


@pytest.mark.parametrize("sigma", [3.0, 1e7])
def test_sums_have_as_many_bits_as_they_need(sigma):
    mechanism = BinaryMechanism(sigma=sigma, delta=1e-6, l0=1, horizon=100)
    noise, sums = _core.NodeNoise(), mechanism.sums()
    noise.extend(np.random.default_rng(1).bytes(32 * 500))
    law = gaussian(sigma)
    for number in (3, 63):
        expected = sum(noise.draw(node, law) for node, _ in mechanism.nodes(number))
        assert sums.advance(noise, number).tolist() == expected.tolist()
