"""Continual mechanisms: their noise, their thresholds, and their exact laws on short streams."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from discreet import (
    BinaryMechanism,
    HonakerMechanism,
    HybridMechanism,
    ParameterError,
    SchemaError,
    SquareRootMechanism,
    StateError,
    Stream,
    _core,
)
from discreet.audit.findings import hockey_stick, promises
from discreet.laws.outcomes import NoiseLaw
from discreet.mechanisms.square_root_mechanism import rounded
from discreet.mechanisms.stream_mechanism import gaussian
from discreet.reference.node_noise import node_noise
from discreet.reference.square_root import square_root_noise
from discreet.theorems import chan_shi_song2011, fichtenberger2023, honaker2015, rogers2023

KINDS = [BinaryMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism]


def made(kind, rho=0.5, delta=1e-6, l0=1, horizon=1000):
    given = {} if kind is HybridMechanism else {"horizon": horizon}
    return kind.from_rho(rho=rho, delta=delta, l0=l0, **given)


# --- exact laws ---------------------------------------------------------------------------------------


class Grid:
    """Stands in for the noise of the items: each item is one combination of values of all nodes."""

    def __init__(self, nodes, reach):
        self.values = np.arange(-reach, reach + 1)
        self.nodes = nodes
        self.size = len(self.values) ** len(nodes)
        self.chance = np.ones(self.size)
        self.items = 0

    def __len__(self):
        return self.items

    def all_of(self, node):
        places = np.arange(self.size) // len(self.values) ** self.nodes.index(node) % len(self.values)
        return self.values[places]

    def draw(self, node, law):
        return self.all_of(node)[: self.items]

    def draw_from(self, first, node, law):
        return self.draw(node, law)[first:]


class Asked:
    """Finds out which nodes a stream of so many rounds draws from."""

    def __init__(self):
        self.nodes = {}

    def __len__(self):
        return 1

    def draw(self, node, law):
        self.nodes[node] = law
        return np.zeros(1, np.int64)

    def draw_from(self, first, node, law):
        return self.draw(node, law)


def estimates(mechanism, rounds, arrival):
    """The noise of an item in each round from its arrival, over all combinations, and their chances."""
    if isinstance(mechanism, SquareRootMechanism):
        return weighted_estimates(mechanism, rounds)
    asked = Asked()
    sums = mechanism.sums()
    for number in range(1, rounds + 1):
        sums.advance(asked, number)
    reach = 4 if len(asked.nodes) < 6 else 2
    grid = Grid(list(asked.nodes), reach)
    for node, law in asked.nodes.items():
        chances = NoiseLaw(law).of(grid.values)
        grid.chance *= chances[grid.all_of(node) + reach]
    sums, found = mechanism.sums(), {}
    for number in range(1, rounds + 1):
        grid.items = grid.size if number >= arrival else 0
        noise = sums.advance(grid, number)
        found[number] = noise.copy()
    return found, grid.chance


@lru_cache(maxsize=8)
def weighted_estimates(mechanism, rounds):
    """The same of weighted sums, which do not depend on the arrival, in whole numbers: 6 Q^rounds is one."""
    column, scale = mechanism.column, mechanism.nodes(1)[0][1]
    reach = math.ceil(5.2 * scale)
    grid = Grid(list(range(rounds)), reach)
    chances = NoiseLaw(gaussian(scale)).of(grid.values)
    found = {}
    for number in range(1, rounds + 1):
        total = np.full(grid.size, 3 * column[0] ** rounds + 2 * column[0] ** (rounds - 1))
        weights = [Fraction(1)]
        for n in range(1, number):
            weights.append(1 - sum(weights[k] * Fraction(column[n - k], column[0]) for k in range(n)))
        for node, weight in zip(range(number), reversed(weights), strict=True):
            total += int(6 * column[0] ** (rounds - 1) * weight) * grid.all_of(node)
        found[number] = total // (6 * column[0] ** rounds)
    for place in range(0, grid.size, grid.size // 7):
        noises = [int(grid.all_of(node)[place]) for node in range(rounds)]
        assert [rounded(column, noises[:n]) for n in found] == [found[n][place] for n in found]
    for node in range(rounds):
        grid.chance *= chances[grid.all_of(node) + reach]
    rows, where = np.unique(np.stack(list(found.values())), axis=1, return_inverse=True)
    return dict(zip(found, rows, strict=True)), np.bincount(where.ravel(), grid.chance)


def law(mechanism, counts):
    """What an item of these running counts shows in every round, and how likely that is; the rest is left out."""
    arrival = next((number for number, count in enumerate(counts, 1) if count), len(counts) + 1)
    noise, chance = estimates(mechanism, len(counts), arrival)
    seen = []
    for number, count in enumerate(counts, 1):
        if number < arrival:
            seen.append(np.full(len(chance), -999))
        else:
            value = count + noise[number]
            seen.append(np.where(value > mechanism.threshold(number), value, -999))
    outcomes, where = np.unique(np.stack(seen), axis=1, return_inverse=True)
    return dict(zip(map(tuple, outcomes.T.tolist()), np.bincount(where.ravel(), chance), strict=True))


SMALL = [
    BinaryMechanism(sigma=0.7, delta=0.1, l0=1, horizon=3),
    BinaryMechanism(sigma=0.6, delta=0.02, l0=1, horizon=4),
    BinaryMechanism(sigma=0.9, delta=0.3, l0=1, horizon=4),
    BinaryMechanism(sigma=0.6, delta=0.05, l0=1, horizon=2, restarts=True),
    HonakerMechanism(sigma=0.6, delta=0.1, l0=1, horizon=3),
    HonakerMechanism(sigma=0.45, delta=0.02, l0=1, horizon=4),
    HybridMechanism(rho=3.0, delta=0.1, l0=1),
    HybridMechanism(rho=5.0, delta=0.4, l0=1),
    SquareRootMechanism(sigma=0.7, delta=0.3, l0=1, horizon=2),
    SquareRootMechanism(sigma=0.5, delta=0.1, l0=1, horizon=3),
    SquareRootMechanism(sigma=0.4, delta=0.02, l0=1, horizon=4),
]


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_no_event_shows_more_than_is_promised(mechanism):
    rounds = 4 if mechanism.last_round in (None, 4) else min(3, mechanism.last_round)
    used = 0.0
    for event in range(rounds):
        # Honaker's four rounds have seven nodes.
        most = 1 if isinstance(mechanism, HonakerMechanism) and rounds == 4 else 3
        for others in itertools.product((0, 1, 2), repeat=rounds):
            if sum(others) > most:
                continue
            added = [n + (place == event) for place, n in enumerate(others)]
            laws = [law(mechanism, running(mechanism, rows)) for rows in (others, added)]
            outcomes = list({**laws[0], **laws[1]})
            p, q = (np.array([each.get(outcome, 0.0) for outcome in outcomes]) for each in laws)
            cut = max(1 - p.sum(), 1 - q.sum())
            for epsilon, allowed in promises(mechanism.guarantee):
                found = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
                assert found <= allowed + cut + 1e-12, (others, event, epsilon)
                used = max(used, found / allowed)
    assert used > 0.02


def running(mechanism, rows):
    counts, total = [], 0
    for number, n in enumerate(rows, 1):
        total = n + (0 if mechanism.starts_over(number, number) else total)
        counts.append(total)
    return counts


@pytest.mark.parametrize(("kind", "sigma"), [(BinaryMechanism, 0.6), (SquareRootMechanism, 0.5)])
def test_a_threshold_that_is_lower_breaks_the_promise(kind, sigma):
    class Lower(kind):
        def threshold(self, number):
            return super().threshold(number) - 2

    mechanism = Lower(sigma=sigma, delta=0.02, l0=1, horizon=3)
    p, q = law(mechanism, [0, 0, 0]), law(mechanism, [1, 1, 1])
    unseen = (-999,) * 3
    assert p[unseen] > 1 - 1e-6
    assert 1 - q[unseen] > 2 * mechanism.delta


# --- noise --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.4, 3.0, 700.0, 5000.0])
def test_noise_is_that_of_the_twin(sigma):
    keys = [bytes([n]) * 32 for n in range(30)]
    ours = _core.NodeNoise()
    ours.extend(b"".join(keys))
    for node in (0, 1, 7, 8, 123_456_789):
        assert ours.draw(node, gaussian(sigma)).tolist() == [node_noise(key, node, sigma) for key in keys]


@pytest.mark.parametrize(("horizon", "sigma"), [(1, 1.0), (3, 2.0), (26, 3.0), (26, 500_000.0)])
def test_weighted_noise_is_that_of_the_twin_without_any_rounding_before_the_last(horizon, sigma):
    mechanism = SquareRootMechanism(sigma=sigma, delta=1e-6, l0=1, horizon=horizon)
    keys = [bytes([n]) * 32 for n in range(11)]
    noise, scale = _core.NodeNoise(), mechanism.nodes(1)[0][1]
    noise.extend(b"".join(keys))
    drawn = [[node_noise(key, node, scale) for node in range(1, horizon + 1)] for key in keys]
    sums = mechanism.sums()
    for number in range(1, horizon + 1):
        expected = [square_root_noise(mechanism.column, noises[:number]) for noises in drawn]
        assert sums.advance(noise, number).tolist() == expected
        # However few bits it begins with.
        assert [rounded(mechanism.column, noises[:number], 1) for noises in drawn] == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [1, 5, 12, 100])
def test_estimates_have_the_variance_that_is_stated(kind, number):
    mechanism = made(kind)
    noise = _core.NodeNoise()
    noise.extend(np.random.default_rng(1).bytes(32 * 100_000))
    drawn = mechanism.sums().advance(noise, number)
    # Ten standard errors of a variance from 1e5 draws are 4.5 %.
    assert np.var(drawn) == pytest.approx(mechanism.deviation(number) ** 2, rel=0.025)
    assert abs(drawn.mean()) < 5 * mechanism.deviation(number) / math.sqrt(100_000)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_variances_are_right_to_a_hundredth_over_a_million_draws(kind):
    mechanism = made(kind)
    noise = _core.NodeNoise()
    noise.extend(np.random.default_rng(2).bytes(32 * 1_000_000))
    sums = mechanism.sums()
    for number in (1, 7, 8, 63, 200):
        drawn = sums.advance(noise, number)
        assert np.var(drawn) == pytest.approx(mechanism.deviation(number) ** 2, rel=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_depends_on_the_round_and_not_on_the_way_to_it(kind):
    """Late items, skipped rounds and other items beside it change nothing of an item's noise."""
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
            late.extend(keys[32 * len(late) :][:32])
        if number % 3 == 0 or number in (5, 6, 24):
            assert by_and_by.advance(late, number).tolist() == expected[number][: len(late)].tolist()


# --- the theorems' numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("l0", "horizon", "sigma", "delta", "statement", "proof", "least"),
    [
        (1, 8, 1, 1e-6, 12.532970741717, 11.315402624398, 9.9334007229931),
        (5, 1000, 10, 1e-6, 208.42263333137, 198.76972104427, 188.6208312148),
        (3, 2**20, 50, 1e-9, 1896.4575735193, 1852.8780108219, 1808.2478858529),
    ],
)
def test_thresholds_are_those_of_theorem_11(l0, horizon, sigma, delta, statement, proof, least):
    levels, most = math.ceil(math.log2(horizon + 1)), math.floor(math.log2(horizon + 1))
    for nodes, value in ((levels + 1, statement), (levels, proof), (most, least)):
        assert rogers2023.prefix_threshold(sigma, delta / (l0 * horizon), nodes) == pytest.approx(value, rel=1e-12)


def test_variances_are_those_of_the_table():
    for horizon, binary, refined in [(8, 12, 8.9524), (100, 42, 26.5685), (1000, 90, 53.0237), (16384, 210, 117.0498)]:
        levels = rogers2023.tree_levels(horizon)
        rounds = range(1, horizon + 1)
        assert levels * max(number.bit_count() for number in rounds) == binary
        assert levels * max(map(honaker2015.prefix_variance, rounds)) == pytest.approx(refined, abs=5e-5)


@pytest.mark.parametrize(
    ("number", "variance", "threshold"),
    [(1, 1, 5.8916384756986), (5, 6, 14.432115341689), (12, 14, 22.30036791958), (1000, 105, 68.852138031342)],
)
def test_hybrid_variances_and_thresholds_are_those_of_the_theory(number, variance, threshold):
    epoch, place = chan_shi_song2011.epoch_of(number)
    sigmas = [chan_shi_song2011.epoch_sigma(0.5, m, 1) for m in range(epoch + 1)]
    found = chan_shi_song2011.hybrid_variance(sigmas, place)
    assert found == pytest.approx(variance, rel=1e-12)
    p = chan_shi_song2011.round_chance(1e-6, epoch)
    assert rogers2023.gaussian_threshold(math.sqrt(found), p) == pytest.approx(threshold, rel=1e-12)


def test_square_roots_are_those_of_the_theory():
    assert fichtenberger2023.factor(6) == [1, 0.5, 0.375, 0.3125, 0.2734375, 0.24609375]
    for rounds, square in [(4, 1.48828125), (16, 1.9438788471568), (1000, 3.2650030806724)]:
        assert fichtenberger2023.factor_square(rounds) == pytest.approx(square, rel=1e-13)
    for horizon, variance in [(8, 2.9528), (100, 6.4077), (1000, 10.6602), (16384, 17.2654)]:
        assert fichtenberger2023.factor_square(horizon) ** 2 == pytest.approx(variance, abs=5e-5)
    sigma = fichtenberger2023.square_root_sigma(0.5, 1000, 1)
    for number, deviation, threshold in [
        (1, 1.8069319524189, 11.83762913986),
        (10, 2.4184175586161, 15.505201798285),
        (1000, 3.2650030806724, 20.582858381279),
    ]:
        assert fichtenberger2023.square_root_deviation(sigma, number) == pytest.approx(deviation, rel=1e-12)
        found = fichtenberger2023.square_root_threshold(sigma, number, 1e-6 / 1000)
        assert found == pytest.approx(threshold, rel=1e-12)


@pytest.mark.parametrize("horizon", [1, 2, 7, 100, 1000, 8192])
def test_whole_columns_lose_next_to_nothing_of_the_least_noise(horizon):
    mechanism = SquareRootMechanism.from_rho(rho=0.5, delta=1e-9, l0=1, horizon=horizon)
    least = fichtenberger2023.factor_square(horizon) ** 2
    assert least * (1 - 1e-3) < mechanism.deviation(horizon) ** 2 - 1 / 12 < least * 1.006
    weights = _core.WeightedNoise(np.array(mechanism.column)).weights / 2.0**62
    assert np.all(weights > 0)
    undone = np.convolve(weights, np.array(mechanism.column) / mechanism.column[0])[:horizon]
    assert np.abs(undone - 1).max() < 1e-12


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.7, 1.0, 4.0, 50.0])
def test_integer_noise_is_less_than_continuous_noise_and_two(scale):
    """The order of tails by which thresholds of weighted sums are found."""
    law = gaussian(scale)
    for n in range(-int(12 * scale) - 3, int(12 * scale) + 3):
        assert law.tail(n) <= 0.5 * math.erfc((n - 2) / scale / math.sqrt(2)) * (1 + 1e-9) + 1e-30


def test_tails_of_weighted_sums_keep_to_their_chance():
    """Held against the exact law of a sum of three."""
    scale, weights = 1.5, [Fraction(1), Fraction(1, 2), Fraction(3, 8)]
    values = np.arange(-14, 15)
    chances = NoiseLaw(gaussian(scale)).of(values)
    totals = 8 * values[:, None, None] + 4 * values[None, :, None] + 3 * values[None, None, :]
    mass = chances[:, None, None] * chances[None, :, None] * chances[None, None, :]
    for p in (0.3, 1e-2, 1e-5, 1e-9):
        total, square = float(sum(weights)), float(sum(w * w for w in weights))
        reach = fichtenberger2023.weighted_tail_reach(scale, total, square, p)
        assert mass[totals >= 8 * reach].sum() <= p
        assert reach < 2.3 * scale * math.sqrt(square) * math.sqrt(-math.log(p))


@pytest.mark.parametrize("kind", KINDS)
def test_integer_thresholds_are_near_those_of_continuous_noise(kind):
    mechanism = made(kind, rho=0.01)
    for number in (1, 7, 100, 1000):
        epoch, _ = chan_shi_song2011.epoch_of(number)
        p = chan_shi_song2011.round_chance(1e-6, epoch) if kind is HybridMechanism else 1e-6 / 1000
        least = 1 + mechanism.deviation(number) * rogers2023.gaussian_threshold(1.0, p, 0)
        assert 0.9 * least < mechanism.threshold(number) < 1.3 * least + 2


def test_what_is_promised_is_what_was_asked_for():
    for kind in KINDS:
        guarantee = made(kind, rho=0.3, l0=4).guarantee
        assert 0.3 * (1 - 1e-9) < guarantee.rho <= 0.3
        assert (guarantee.delta, guarantee.unit) == (1e-6, "event")
        given = {} if kind is HybridMechanism else {"horizon": 365}
        assert kind.from_epsilon(epsilon=1.0, delta=1e-6, l0=2, **given).guarantee.epsilon(1e-6) <= 1.0
    user = BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=3, horizon=30, linf=5, unit="user")
    assert user.guarantee.unit == "user"
    assert user.sigma > made(BinaryMechanism, l0=3, horizon=30).sigma * 4.9


# --- streams ------------------------------------------------------------------------------------------


def events(common, rare=()):
    return [["common"]] * common + [["other"]] * (common // 2) + [[name] for name in rare]


@pytest.mark.parametrize("kind", KINDS)
def test_running_counts_are_released_and_rare_items_are_not(kind):
    stream = made(kind).start()
    for number in range(1, 21):
        release = stream.step(events(40, rare=[f"secret-{number}"]))
        assert stream.round == number
        assert set(release.items) <= {"common", "other"}
    counts = dict(release)
    assert abs(counts["common"] - 800) < 7 * stream.mechanism.deviation(20)
    assert abs(counts["other"] - 400) < 7 * stream.mechanism.deviation(20)
    assert release.guarantee == stream.guarantee
    assert "round 20" in release.notes[0]
    assert list(stream.show()) == list(release)


class Interrupted:
    """The noise of a stream, interrupted at one of its draws."""

    def __init__(self, noise, at):
        self.noise, self.left = noise, at

    def __len__(self):
        return len(self.noise)

    def draw(self, *given):
        return self._drawn(self.noise.draw(*given))

    def draw_from(self, *given):
        return self._drawn(self.noise.draw_from(*given))

    def _drawn(self, noise):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return noise


@pytest.mark.parametrize("kind", [BinaryMechanism, HonakerMechanism, HybridMechanism])
@pytest.mark.parametrize("rounds", [1, 6, 7, 8])
def test_no_noise_is_missing_after_an_interrupt(kind, rounds):
    def begun():
        stream = Stream(made(kind))
        stream._begin(stream.mechanism, b"k" * 32, "text")
        for _ in range(rounds - 1):
            stream.step(events(40))
        return stream

    late = [["late", "later"]] * 40
    undisturbed = begun()
    expected, after = list(undisturbed.step(late)), list(undisturbed.step(late))
    for at in itertools.count(1):
        stream = begun()
        stream.step(late, release=False)
        noise = stream._running.noise
        stream._running.noise = Interrupted(noise, at)
        try:
            stream.show()
            break
        except KeyboardInterrupt:
            stream._running.noise = noise
        assert list(stream.show()) == expected
        assert list(stream.step(late)) == after
    assert at > 1


def test_what_an_event_keeps_does_not_depend_on_the_types_of_numbers():
    def kept(first):
        stream = Stream(made(BinaryMechanism, l0=2))
        stream._begin(stream.mechanism, b"k" * 32, "integer")
        stream.step([first, *[list(range(6))] * 5], release=False)
        running = stream._running
        labels = running.items.select(np.arange(len(running.counts))).take(np.arange(len(running.counts)))
        return dict(zip(labels, running.counts.tolist(), strict=True))

    plain = kept(list(range(6)))
    for kind in (np.int64, np.int32, np.uint8):
        assert kept(np.arange(6, dtype=kind)) == plain
    assert kept([]) == {item: count - 1 for item, count in plain.items()}


def test_a_table_makes_a_round_too():
    stream = made(BinaryMechanism, l0=2).start()
    table = {"visit": [n // 3 for n in range(900)], "page": ["a", "b", "c"] * 300}
    counts = dict(stream.step(table, user="visit", item="page"))
    assert set(counts) == {"a", "b", "c"}
    # Two of three items of each of 300 visits count.
    assert abs(sum(counts.values()) - 600) < 3 * 7 * stream.mechanism.deviation(1)


def test_an_event_counts_for_l0_items_and_each_once():
    stream = made(BinaryMechanism, rho=50.0, l0=2).start()
    release = stream.step([["a", "a", "b", "c", None]] * 3000)
    assert len(release) == 2
    assert all(abs(count - 3000) < 60 for _, count in release)


def test_empty_skipped_and_unpublished_rounds():
    stream = made(BinaryMechanism).start()
    assert len(stream.step([])) == 0
    assert len(stream.step(events(500), release=False)) == 0
    later = stream.step([], round=40)
    assert stream.round == 40
    assert set(later.items) == {"common", "other"}
    empty = made(BinaryMechanism).start().show()
    assert [(name, kind) for name, _, kind in empty.columns] == [(n, k) for n, _, k in later.columns]


def test_a_stream_that_restarts_counts_anew():
    stream = BinaryMechanism.from_rho(rho=5.0, delta=1e-6, l0=1, horizon=3, restarts=True).start()
    for _ in range(3):
        stream.step(events(300))
    first = dict(stream.show())["common"]
    assert dict(stream.step(events(300)))["common"] < first / 2
    assert stream.round == 4


def test_noise_of_two_periods_differs():
    mechanism = BinaryMechanism(sigma=9.0, delta=1e-6, l0=1, horizon=4, restarts=True)
    assert not {node for node, _ in mechanism.nodes(3)} & {node for node, _ in mechanism.nodes(7)}
    assert mechanism.starts_over(2, 5)
    assert not mechanism.starts_over(2, 4)


def test_an_estimate_is_a_function_of_noisy_counts():
    """Whole counts added to the noisy counts of all nodes move a Honaker estimate by exactly so much."""

    class Moved(Grid):
        def __init__(self, by):
            self.items, self.by = 1000, by
            self.noise = _core.NodeNoise()
            self.noise.extend(np.random.default_rng(9).bytes(32 * 1000))

        def draw(self, node, law):
            # A node of level j covers 2^j rounds.
            return self.noise.draw(node, law) + self.by * 2 ** (node % 64)

    mechanism = made(HonakerMechanism)
    still, moved = mechanism.sums(), mechanism.sums()
    for number in range(1, 30):
        assert np.all(moved.advance(Moved(7), number) - still.advance(Moved(0), number) == 7 * number)


@pytest.mark.parametrize("odd", [2**70, -(2**63) - 1, 10**5000, "\ud800"], ids=["large", "small", "huge", "half"])
def test_what_no_column_holds_is_left_out(odd):
    stream = made(BinaryMechanism, rho=50.0, l0=2).start()
    plain = "a" if isinstance(odd, str) else 1
    release = stream.step([[odd, plain, plain]] * 500 + [[odd]] * 500)
    assert release.items == [plain]


def test_threads_do_not_share_a_round():
    from threading import Thread

    for _ in range(30):
        stream = made(BinaryMechanism, rho=50.0).start()
        threads = [Thread(target=stream.step, args=([["a"]] * 300,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stream.round == 4
        assert abs(dict(stream.show())["a"] - 1200) < 50


def test_skipping_very_many_rounds_takes_no_time():
    stream = HybridMechanism.from_rho(rho=1.0, delta=1e-6, l0=1).start()
    stream.step(events(10))
    assert stream.step([], round=2**39).private
    assert stream.round == 2**39


def test_what_comes_too_late_or_too_far_is_refused():
    stream = made(BinaryMechanism, horizon=3).start()
    stream.step(events(10), round=2)
    for closed in (1, 2):
        with pytest.raises(StateError, match="closed"):
            stream.step(events(10), round=closed)
    with pytest.raises(StateError, match="horizon"):
        stream.step(events(10), round=4)
    stream.step(events(10))
    with pytest.raises(StateError, match="horizon"):
        stream.step(events(10))
    stream.close()
    with pytest.raises(StateError, match="closed"):
        stream.step(events(10))


@pytest.mark.parametrize("bad", [None, 3, "abc", [3], ["abc"], {"a": 1}, [[1.5]], [["a", 1]], [["a"], [1]], [[True]]])
def test_events_of_another_form_are_refused_and_change_nothing(bad):
    stream = made(BinaryMechanism).start()
    with pytest.raises((ParameterError, SchemaError)):
        stream.step(bad)
    assert stream.round == 0


def test_items_keep_one_type():
    stream = made(BinaryMechanism).start()
    stream.step([[1]])
    with pytest.raises(SchemaError, match="type"):
        stream.step([["one"]])
    assert stream.round == 1


def test_a_declared_type_leaves_out_what_is_of_another():
    """What one user's odd item does to the releases of all others: nothing."""
    for kind, plain, odd in [
        ("text", "a", [1, b"a", 1.5, True, None]),
        ("integer", 7, ["7", b"7", 7.5, True, None]),
        ("bytes", b"a", ["a", 1, None, True]),
    ]:
        stream = made(BinaryMechanism, rho=50.0, l0=9).start(items=kind)
        assert stream.step([odd, [[1]], odd]).items == []
        release = stream.step([[plain, *odd]] * 300)
        assert release.items == [plain]
        assert stream.step([]).items == [plain]
    with pytest.raises(ParameterError, match="items must be"):
        made(BinaryMechanism).start(items="str")


def test_the_type_of_a_table_is_that_of_its_column_with_and_without_rows():
    empty = {"u": np.array([], np.int64), "i": np.array([], np.int64)}
    texts = {"u": [1, 2], "i": ["a", "b"]}
    for before in (empty, {"u": [1], "i": [1]}):
        stream = made(BinaryMechanism).start()
        stream.step(before, user="u", item="i")
        for after in ({"events": texts, "user": "u", "item": "i"}, {"events": [["a"]]}):
            with pytest.raises(SchemaError, match="integer, not text"):
                stream.step(**after)
        stream.step({"u": [], "i": []}, user="u", item="i")
        assert stream.round == 2
    declared = made(BinaryMechanism).start(items="text")
    with pytest.raises(SchemaError, match="text, not integer"):
        declared.step(empty, user="u", item="i")
    declared.step(texts, user="u", item="i")


def test_very_many_items_are_each_found_again():
    stream = made(BinaryMechanism, rho=1e-3).start()
    names = [f"item-{n}" for n in range(3000)]
    for part in (names[:10], names[5:2000], names, names):
        stream.step([[name] for name in part], release=False)
    running = stream._running
    counts = dict(zip(names, running.counts[running.items.find(names)].tolist(), strict=True))
    assert counts == {name: 2 + (n < 2000 and n >= 5) + (n < 10) for n, name in enumerate(names)}
    assert len(running.items) == 3000


@pytest.mark.parametrize("sigma", [3.0, 1e7])
def test_sums_are_kept_in_as_many_bits_as_they_need(sigma):
    mechanism = BinaryMechanism(sigma=sigma, delta=1e-6, l0=1, horizon=100)
    noise, sums = _core.NodeNoise(), mechanism.sums()
    noise.extend(np.random.default_rng(1).bytes(32 * 500))
    law = gaussian(sigma)
    for number in (3, 63):
        expected = sum(noise.draw(node, law) for node, _ in mechanism.nodes(number))
        assert sums.advance(noise, number).tolist() == expected.tolist()


def test_a_stream_is_neither_copied_nor_shown():
    import copy
    import pickle

    stream = made(BinaryMechanism).start()
    stream.step([["secret"]] * 9)
    assert "secret" not in repr(stream)
    for take in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            take(stream)


@pytest.mark.parametrize(
    "bad",
    [
        {"horizon": 0},
        {"horizon": None},
        {"l0": 0},
        {"rho": math.nan},
        {"delta": 1},
        {"unit": "day"},
        {"linf": 2},
        {"restarts": 1},
        {"restarts": True, "unit": "user"},
    ],
)
def test_parameters_out_of_range_are_refused(bad):
    with pytest.raises(ParameterError):
        BinaryMechanism.from_rho(**{"rho": 1.0, "delta": 1e-6, "l0": 1, "horizon": 10, **bad})


def test_what_the_square_root_mechanism_does_not_reach_is_left_to_others():
    with pytest.raises(ParameterError, match=r"at most 8,192 rounds.*HonakerMechanism"):
        made(SquareRootMechanism, horizon=8193)
    with pytest.raises(ParameterError, match=r"sigma of at most.*HonakerMechanism"):
        made(SquareRootMechanism, l0=2**30)
    assert isinstance(Stream.recommended(rho=0.5, delta=1e-6, l0=2**30, horizon=1000), HonakerMechanism)


def test_a_stream_needs_a_continual_mechanism():
    with pytest.raises(ParameterError, match="continual"):
        Stream("BinaryMechanism")
