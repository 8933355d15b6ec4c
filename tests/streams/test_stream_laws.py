"""Exact output distributions of continual mechanisms on short streams, compared with their guarantees."""

import dataclasses
import itertools
import math
from fractions import Fraction
from functools import lru_cache
from unittest import mock

import numpy as np
import pytest
from continual import by_epoch, made
from stream_mutants import RIGHT, STREAM_MUTANTS

from discreet import BinaryMechanism, Guarantee, _core
from discreet.audit.findings import hockey_stick, promises
from discreet.laws.outcomes import NoiseLaw
from discreet.reference.node_sums import NodeSums
from discreet.streams import EpochMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism
from discreet.streams.base import gaussian
from discreet.streams.square_root import rounded


class Grid:
    """A replacement for the noise of a stream: each item has another combination of noise values at all nodes."""

    def __init__(self, nodes, reach):
        self.values = np.arange(-reach, reach + 1)
        self.nodes = nodes
        self.size = len(self.values) ** len(nodes)
        self.chance = np.ones(self.size)
        self.held = 0

    def items(self):
        return self.held

    def all_of(self, node):
        places = np.arange(self.size) // len(self.values) ** self.nodes.index(node) % len(self.values)
        return self.values[places]

    def draw(self, node, law):
        return self.all_of(node)[: self.held]

    def draw_from(self, first, node, law):
        return self.draw(node, law)[first:]


class Asked:
    """A replacement for the noise of items that records the nodes from which a stream draws."""

    def __init__(self):
        self.nodes = {}

    def items(self):
        return 1

    def draw(self, node, law):
        self.nodes[node] = law
        return np.zeros(1, np.int64)

    def draw_from(self, first, node, law):
        return self.draw(node, law)


def sums_of(mechanism):
    """Return the mechanism's sums over the reference of the table in Rust, which takes any noise.

    tests/streams/test_stream_noise.py compares both tables.
    """
    with mock.patch.object(_core, "NodeSums", NodeSums):
        return mechanism.sums()


@lru_cache(maxsize=8)
def estimates(mechanism, rounds, arrival):
    """Return an item's noise in each round, over all combinations of node noise, and the combinations' chances.

    `arrival` is the first round of the item.
    """
    if isinstance(mechanism, EpochMechanism | SquareRootMechanism):
        return weighted_estimates(mechanism, rounds)
    asked = Asked()
    sums = sums_of(mechanism)
    for number in range(1, rounds + 1):
        sums.advance(asked, number)
    reach = 4 if len(asked.nodes) < 6 else 2
    grid = Grid(list(asked.nodes), reach)
    for node, law in asked.nodes.items():
        chances = NoiseLaw(law).of(grid.values)
        grid.chance *= chances[grid.all_of(node) + reach]
    sums, found = sums_of(mechanism), {}
    for number in range(1, rounds + 1):
        grid.held = grid.size if number >= arrival else 0
        noise = sums.advance(grid, number)
        found[number] = noise.copy()
    return found, grid.chance


@lru_cache(maxsize=8)
def weighted_estimates(mechanism, rounds):
    """Return what `estimates` returns, for weighted sums.

    The sums are computed exactly, as multiples of 1/(6 Q^rounds). The noise does not depend on the arrival.
    """
    column = mechanism.column
    scales = {node: scale for number in range(1, rounds + 1) for node, scale in mechanism.nodes(number)}
    reaches = [math.ceil(5.2 * scale) for scale in scales.values()]
    axes = np.meshgrid(*(np.arange(-reach, reach + 1) for reach in reaches), indexing="ij")
    drawn = dict(zip(scales, (axis.ravel() for axis in axes), strict=True))
    unit, found = 6 * column[0] ** rounds, {}
    weights = [Fraction(1)]
    for n in range(1, min(rounds, len(column))):
        weights.append(1 - sum(weights[k] * Fraction(column[n - k], column[0]) for k in range(n)))
    for number in range(1, rounds + 1):
        epochs, whole = by_epoch(mechanism, number)
        total = np.full(axes[0].size, unit // 2 + unit // (3 * column[0]))
        for epoch in epochs:
            for node, weight in zip(reversed(epoch), weights, strict=False):
                total += int(unit // column[0] * weight) * drawn[node]
        found[number] = total // unit + sum(drawn[node] for node in whole)
        for place in range(0, total.size, total.size // 7):
            noises = [[int(drawn[node][place]) for node in epoch] for epoch in epochs]
            assert rounded(column, noises) == total[place] // unit
    chance = np.ones(axes[0].size)
    for (node, scale), reach in zip(scales.items(), reaches, strict=True):
        chance *= NoiseLaw(gaussian(scale)).of(np.arange(-reach, reach + 1))[drawn[node] + reach]
    rows, where = distinct(np.stack(list(found.values())))
    return dict(zip(found, rows, strict=True)), np.bincount(where, chance)


def distinct(rows):
    """Return the distinct columns of a matrix of integers, and the place of each column among them.

    One number for each column makes this several times as fast as numpy.unique along an axis.
    """
    least, width = rows.min(), int(np.ptp(rows)) + 1
    assert width ** len(rows) < 2**63
    keys = sum((row - least) * width**place for place, row in enumerate(rows))
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    return rows[:, first], where


@lru_cache(maxsize=200)
def law(mechanism, counts):
    """Return the probability of each sequence of released estimates of an item with these running counts.

    -999 stands for a round without release. Rare noise beyond the grid is left out.
    """
    arrival = next((number for number, count in enumerate(counts, 1) if count), len(counts) + 1)
    noise, chance = estimates(mechanism, len(counts), arrival)
    seen = []
    for number, count in enumerate(counts, 1):
        if number < arrival:
            seen.append(np.full(len(chance), -999))
        else:
            value = count + noise[number]
            seen.append(np.where(mechanism.rule(number).passed(value), value, -999))
    outcomes, where = distinct(np.stack(seen))
    return dict(zip(map(tuple, outcomes.T.tolist()), np.bincount(where, chance), strict=True))


class ManyTrees(EpochMechanism):
    """The epoch mechanism with trees after the first epoch."""

    squares = 1


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
    BinaryMechanism(sigma=1.1, delta=0.2, l0=1, horizon=3, unit="user", rounds=2),
    HonakerMechanism(sigma=0.9, delta=0.2, l0=1, horizon=3, unit="user", rounds=3),
    SquareRootMechanism(sigma=0.8, delta=0.2, l0=1, horizon=3, unit="user", rounds=2),
    EpochMechanism(rho=3.0, delta=0.1, l0=1, epoch=2),
    EpochMechanism(rho=5.0, delta=0.4, l0=1, epoch=3),
    ManyTrees(rho=4.0, delta=0.2, l0=1, epoch=1),
    ManyTrees(rho=4.0, delta=0.2, l0=1, epoch=2),
]


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_the_exact_privacy_loss_is_within_the_guarantee(mechanism):
    rounds = 4 if mechanism.last_round in (None, 4) else min(3, mechanism.last_round)
    used = 0.0
    # One event, or a user with an item in as many rounds as the stream counts.
    most_rounds = range(1, 1 + (mechanism.rounds or 1))
    for event in itertools.chain.from_iterable(itertools.combinations(range(rounds), k) for k in most_rounds):
        # Four rounds of Honaker's mechanism have seven nodes, so fewer combinations are feasible.
        most = 1 if isinstance(mechanism, HonakerMechanism) and rounds == 4 else 3
        for others in itertools.product((0, 1, 2), repeat=rounds):
            if sum(others) > most:
                continue
            added = [n + (place in event) for place, n in enumerate(others)]
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
    return tuple(counts)


@pytest.mark.parametrize(("kind", "sigma"), [(BinaryMechanism, 0.6), (SquareRootMechanism, 0.5)])
def test_a_lower_threshold_breaks_the_guarantee(kind, sigma):
    class Lower(kind):
        def rule(self, number):
            rule = super().rule(number)
            return dataclasses.replace(rule, value=rule.value - 2)

    mechanism = Lower(sigma=sigma, delta=0.02, l0=1, horizon=3)
    p, q = law(mechanism, (0, 0, 0)), law(mechanism, (1, 1, 1))
    unseen = (-999,) * 3
    assert p[unseen] > 1 - 1e-6
    assert 1 - q[unseen] > 2 * mechanism.delta


def test_an_estimate_depends_only_on_noisy_counts():
    """Whole counts added to the noisy counts of all nodes change a Honaker estimate by exactly their sum."""

    class Moved(Grid):
        def __init__(self, by):
            self.held, self.by = 1000, by
            self.noise = _core.NodeNoise()
            self.noise.extend(np.random.default_rng(9).bytes(32 * 1000))

        def draw(self, node, law):
            # A node of level j covers 2^j rounds.
            return self.noise.draw(node, law) + self.by * 2 ** (node % 64)

    mechanism = made(HonakerMechanism)
    still, moved = mechanism.sums(), mechanism.sums()
    for number in range(1, 30):
        assert np.all(moved.advance(Moved(7), number) - still.advance(Moved(0), number) == 7 * number)


def novel_chances(mechanism):
    """Yield a new item's exact release chance, its bound, and the share of delta, for up to three rounds."""
    rounds = min(3, mechanism.last_round or 3)
    noise, chance = estimates(mechanism, rounds, 1)
    for number in range(1, rounds + 1):
        rule = mechanism.rule(number)
        exact = chance[rule.passed(mechanism.alone + noise[number])].sum()
        yield exact, rule.chance(mechanism.alone), share(mechanism, number)


def share(mechanism, number):
    # Epoch m has 6/(pi (m + 1))^2 of delta, in equal shares.
    if isinstance(mechanism, HybridMechanism):
        epoch = number.bit_length() - 1
        return mechanism.delta * 6 / (math.pi * (epoch + 1)) ** 2 / 2**epoch
    if isinstance(mechanism, EpochMechanism):
        epoch, _, length = mechanism.place(number)
        return mechanism.delta * 6 / (math.pi * (epoch + 1)) ** 2 / length
    return mechanism.delta / mechanism.horizon / (mechanism.rounds or 1)


def is_within_its_share(mechanism):
    return all(
        exact <= bound * (1 + 1e-9) and bound <= part * (1 + 1e-9) for exact, bound, part in novel_chances(mechanism)
    )


@pytest.mark.parametrize("mechanism", [*RIGHT.values(), *SMALL], ids=repr)
def test_a_new_item_is_released_within_its_share_of_delta(mechanism):
    assert is_within_its_share(mechanism)


@pytest.mark.parametrize("name", STREAM_MUTANTS)
def test_a_wrong_rule_is_caught(name):
    assert not is_within_its_share(STREAM_MUTANTS[name]())


def test_a_threshold_passed_by_equality_exceeds_delta():
    mechanism = STREAM_MUTANTS["the binary mechanism's threshold is passed by equal estimates too"]()
    assert max(exact for exact, _, _ in novel_chances(mechanism)) > 2 * mechanism.delta


def test_a_threshold_is_the_least_that_its_tail_allows():
    for mechanism in (*RIGHT.values(), *SMALL, *map(made, (BinaryMechanism, HonakerMechanism, HybridMechanism))):
        for number in range(1, min(9, mechanism.last_round or 9)):
            rule = mechanism.rule(number)
            assert rule.value == mechanism.threshold(number)
            assert rule.chance(mechanism.alone + 1) > share(mechanism, number) * 0.5
            assert rule.chance(rule.value + 1) == 1.0


@pytest.mark.parametrize(
    "mechanism",
    [
        BinaryMechanism(sigma=0.9, delta=0.1, l0=1, horizon=2),
        BinaryMechanism(sigma=0.6, delta=0.05, l0=1, horizon=2),
        HybridMechanism(rho=3.0, delta=0.1, l0=1),
        EpochMechanism(rho=3.0, delta=0.1, l0=1, epoch=1),
        SquareRootMechanism(sigma=0.7, delta=0.3, l0=1, horizon=2),
    ],
    ids=repr,
)
def test_an_interleaved_release_costs_the_sum(mechanism):
    """An analyst sees round one, releases a noisy count of the same events, and chooses round two by both."""
    values = np.arange(-9, 13)
    widths = (0.8, 1.3)
    both = Guarantee(
        mechanism.guarantee.rho + 1 / (2 * widths[0] ** 2), mechanism.guarantee.delta, mechanism.guarantee.unit
    )

    def interleaved(counts, mean, choose):
        """Return the distribution of all outputs: round one, the noisy count, round two."""
        seen = {}
        for added in (0, 2):
            for (first, second), chance in law(mechanism, (counts[0], counts[1] + added)).items():
                # If round one releases nothing, the count gets less noise.
                noise = NoiseLaw(gaussian(widths[first > 0])).of(values - mean)
                for value, likely in zip(values.tolist(), noise.tolist(), strict=True):
                    if choose(first, value) == added:
                        seen[first, value, second] = chance * likely
        return seen

    used = 0.0
    for choose in (
        lambda _, value: 2 * (value > 0),
        lambda _, value: 2 * (value <= 0),
        lambda first, _: 2 * (first < 0),
    ):
        for without, event in (([0, 0], [1, 1]), ([0, 0], [0, 1]), ([1, 1], [2, 2]), ([1, 2], [2, 3])):
            laws = [interleaved(without, without[1], choose), interleaved(event, without[1] + 1, choose)]
            outcomes = list({**laws[0], **laws[1]})
            p, q = (np.array([each.get(outcome, 0.0) for outcome in outcomes]) for each in laws)
            cut = max(1 - p.sum(), 1 - q.sum())
            assert cut < 0.01
            for epsilon, allowed in promises(both):
                found = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
                assert found <= allowed + cut + 1e-12, (without, event, epsilon)
                used = max(used, found / allowed)
    assert used > 0.1
