"""The exact law of one call of Private Count Release, on small neighbouring histograms.

A call selects one item or the stop element.
"""

import itertools
import math

import numpy as np
import pytest

from discreet import _core
from discreet.reference.private_count_release import private_count_release
from discreet.testing import seeded_rng
from discreet.theorems import rogers2024
from discreet.theorems.rogers2024 import UNIT


class Shown(Exception):
    """An exception that carries the arguments of a selection."""


class Recorder:
    """A random stream that raises the arguments of the first selection."""

    def select(self, counts, reference, gamma, bottom, offset):
        raise Shown(counts.tolist(), gamma, bottom, offset)


def call_law(table, level, k_bar, rows=None):
    """Return the exact law of one call on {label: count}, with None for the stop element.

    `rows` truncates the sorted table first.
    """
    ranked = sorted((item for item in table.items() if item[1] > 0), key=lambda item: (-item[1], item[0]))
    ranked = ranked[:rows]
    counts = np.array([count for _, count in ranked], dtype=np.int64)
    with pytest.raises(Shown) as caught:
        private_count_release(counts, rows, [level], 100 * UNIT, 1, k_bar, Recorder())
    shown, gamma, bottom, offset = caught.value.args
    assert shown == counts[:k_bar].tolist()
    top = max([*shown, bottom])
    weights = {label: math.exp(gamma * (c - top)) for (label, _), c in zip(ranked, shown, strict=False)}
    weights[None] = math.exp(gamma * (bottom - top) + offset)
    total = math.fsum(weights.values())
    return {label: weight / total for label, weight in weights.items()}


def hockey_stick(p, q, epsilon):
    return math.fsum(max(0.0, p[y] - math.exp(epsilon) * q.get(y, 0.0)) for y in p)


def neighbours(number, seed):
    """Yield small tables, each with a neighbour that has one more user with any old or new items."""
    random = np.random.default_rng(seed)
    for _ in range(number):
        labels = "abcdef"[: random.integers(1, 7)]
        table = {label: int(c) for label, c in zip(labels, random.integers(0, 5, len(labels)), strict=True)}
        user = [label for label in "abcdefg" if random.random() < 0.6]
        yield table, {label: table.get(label, 0) + (label in user) for label in {*table, *user}}


def one_level(epsilon, delta, k_bar):
    return rogers2024.price_list(100.0, epsilon_star=epsilon, delta_star=delta, k_bar=k_bar, relative_error=0.1)[0]


CASES = list(itertools.product([0.3, 1.0, 2.0], [0.2, 0.01, 1e-6], [1, 2, 4]))


def worst_delta(epsilon, delta, k_bar, *, number, change=lambda level: level, rows=None):
    """Return the largest hockey-stick divergence of one call over random neighbours, in units of delta."""
    level = change(one_level(epsilon, delta, k_bar))
    worst = 0.0
    for table, more in neighbours(number, seed=1):
        p, q = call_law(table, level, k_bar, rows), call_law(more, level, k_bar, rows)
        worst = max(worst, hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
    return worst / delta


@pytest.mark.parametrize(("epsilon", "delta", "k_bar"), CASES)
def test_one_call_is_epsilon_delta_private(epsilon, delta, k_bar):
    assert worst_delta(epsilon, delta, k_bar, number=400) <= 1 + 1e-9


@pytest.mark.parametrize(("epsilon", "delta", "k_bar"), CASES)
def test_one_call_on_a_truncated_table_is_private(epsilon, delta, k_bar):
    assert worst_delta(epsilon, delta, k_bar, number=400, rows=k_bar + 1) <= 1 + 1e-9


def test_a_lower_threshold_breaks_the_delta_bound():
    assert worst_delta(1.0, 0.2, 2, number=400) > 0.5
    lowered = worst_delta(1.0, 0.01, 2, number=400, change=lambda level: level._replace(offset=level.offset - 1))
    assert lowered > 1.5


def test_reading_a_missing_count_as_zero_breaks_the_bound():
    """A truncated table must stop when its rows run out: the (k_bar+1)-th count is then unknown, not zero."""
    epsilon, delta, k_bar = 1.0, 1e-6, 2
    level = one_level(epsilon, delta, k_bar)

    def careless(table):
        ranked = dict(sorted(table.items(), key=lambda item: (-item[1], item[0]))[:k_bar])
        return call_law(ranked, level, k_bar)

    p, q = careless({"a": 41, "b": 40, "c": 40}), careless({"a": 41, "b": 40, "c": 41})
    assert hockey_stick(q, p, epsilon) > 1000 * delta


@pytest.mark.parametrize(("epsilon", "delta", "k_bar"), CASES)
def test_a_bounded_range_mechanism_dominates_one_call(epsilon, delta, k_bar):
    """The proof of the guarantee, outcome by outcome: (1 - delta) P~ <= P, and P~, Q~ of range epsilon."""
    level = one_level(epsilon, delta, k_bar)
    for table, more in neighbours(300, seed=2):
        p, q = call_law(table, level, k_bar), call_law(more, level, k_bar)
        common = [y for y in p if y in q]
        raised = {y: 1 / (1 - delta) if y is None else 1.0 for y in common}
        ideals = []
        for law in (p, q):
            total = math.fsum(law[y] * raised[y] for y in common)
            ideal = {y: law[y] * raised[y] / total for y in common}
            assert all((1 - delta) * ideal[y] <= law[y] * (1 + 1e-12) for y in common)
            ideals.append(ideal)
        losses = [math.log(ideals[0][y] / ideals[1][y]) for y in common]
        assert max(losses) - min(losses) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [1.01, 1.5, 2, 8, 64])
def test_the_dominating_laws_meet_the_renyi_bound(alpha):
    epsilon, delta, k_bar = 1.0, 0.01, 3
    level = one_level(epsilon, delta, k_bar)
    for table, more in neighbours(300, seed=3):
        p, q = call_law(table, level, k_bar), call_law(more, level, k_bar)
        common = [y for y in p if y in q]
        ideals = []
        for law in (p, q):
            weights = {y: law[y] / (1 - delta) if y is None else law[y] for y in common}
            ideals.append({y: w / math.fsum(weights.values()) for y, w in weights.items()})
        for a, b in (ideals, ideals[::-1]):
            moment = math.fsum(a[y] ** alpha * b[y] ** (1 - alpha) for y in common)
            assert math.log(moment) / (alpha - 1) <= alpha * epsilon**2 / 8 + 1e-12


def test_a_call_in_rust_follows_the_enumerated_law():
    table = {"a": 6, "b": 4, "c": 4, "d": 1}
    level = one_level(1.0, 0.1, 2)
    law = call_law(table, level, 2)
    counts = np.array(sorted(table.values(), reverse=True))
    rng, seen = seeded_rng(11), {"a": 0, "b": 0, None: 0}
    for _ in range(60_000):
        rows = _core.private_count_release(counts, None, [level], 100 * UNIT, 1, 2, rng)[0]
        seen["ab"[rows[0]] if len(rows) else None] += 1
    for label, p in law.items():
        assert abs(seen[label] - 60_000 * p) < 5 * math.sqrt(60_000 * p * (1 - p))


def test_one_call_matches_the_vector_of_the_paper():
    counts = [100_000, 50_000, 20_000]
    level = rogers2024.price_list(1.0, epsilon_star=0.0005, delta_star=1e-8, k_bar=2, relative_error=0.1)[0]
    law = call_law(dict(enumerate(counts)), level, 2)
    assert law[0] == pytest.approx(0.999999999136, rel=1e-12)
    assert law[1] == pytest.approx(1.3887943853e-11, rel=1e-9)
    assert law[None] == pytest.approx(8.50095791976e-10, rel=1e-9)
