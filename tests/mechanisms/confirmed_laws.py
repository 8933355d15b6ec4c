"""The exact law of confirmed counts on small tables, from every outcome of the draws of the reference.

The reference is `discreet.reference.confirmed_counts`, which Rust follows bit for bit. The reference runs on levels
whose noise is so small that all values of the noise can be enumerated. A slot holds an item that the next draw can
select, and k_bar is the number of slots. The bound is a noisy upper bound of the largest count outside the slots. A
transcript lists the bounds, the selected or rejected items, the published values and the reason for the end.
"""

import math
from functools import cache
from types import ModuleType

import numpy as np

from discreet.reference import confirmed_counts as reference
from discreet.theorems import confirmed_counts as theorem
from discreet.theorems.rogers2024 import UNIT

LEVELS = 16
LOWEST = 80
NEGLIGIBLE = 1e-12
FAR = -(10**9)


class Case:
    """The public parameters of a release.

    `mode` is "replace" if neighbours differ in one replaced user. Otherwise one user is added or removed, and the
    number of users is known ("centred") or unknown ("plain").
    """

    def __init__(
        self, mode, *, k_bar, epsilon, variance, bound_variance, delta, steps, room, cut=None, start=11, ranges=None
    ):
        self.mode, self.k_bar, self.cut = mode, k_bar, cut
        self.factor = 2 if mode == "centred" else 1
        self.ranges = ranges or (4 if mode == "replace" else 1)
        self.levels = []
        for number in range(LEVELS):
            scale = 2 ** (number / 16)
            gamma = epsilon / scale
            sigmas = [math.sqrt(variance) * scale / math.sqrt(2**choice) for choice in range(4)]
            prices = [self.ranges * gamma**2 / 8 + 1 / (2 * sigma**2) for sigma in sigmas]
            outside = math.sqrt(bound_variance) * scale
            self.levels.append(
                theorem.Level(
                    gamma=gamma,
                    ceiling=room,
                    steps=tuple(
                        theorem.Measurement(sigma, math.ceil(UNIT * price))
                        for sigma, price in zip(sigmas, prices, strict=True)
                    ),
                    outside=theorem.Measurement(outside, math.ceil(UNIT / (2 * outside**2))),
                    variance=1e9,
                )
            )
        first = self.levels[start]
        self.budget = first.outside.price + steps * first.steps[0].price + UNIT // 10**6
        self.rho, self.delta, self.start = self.budget / UNIT, delta, 16 * (LOWEST + start)
        self.step_deltas = theorem.deltas([s.price for level in self.levels for s in level.steps], self.rho, delta)
        self.bound_deltas = theorem.deltas([level.outside.price for level in self.levels], self.rho, delta)

    def plan(self, users, **changes):
        plan = reference.Plan(
            self.levels, LOWEST, self.step_deltas, self.bound_deltas, self.budget, self.k_bar, 1000, self.factor,
            users if self.factor == 2 else 0, 0, margin, reach, theorem.octaves, self.start, self.start + 256,
        )  # fmt: skip
        return plan._replace(**changes)


margin, reach = cache(theorem.margin), cache(theorem.reach)


class Table:
    """The items by descending count, and the number of users."""

    def __init__(self, users, missing=0):
        counts = {}
        for items in users:
            for item in items:
                counts[item] = counts.get(item, 0) + 1
        ordered = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
        self.labels, self.counts = [item for item, _ in ordered], [count for _, count in ordered]
        self.users = sum(map(bool, users)) + missing

    def slots(self, named, k_bar):
        """Return the labels in the slots after these items were released, and the largest count outside."""
        left = [(label, count) for label, count in zip(self.labels, self.counts, strict=True) if label not in named]
        return {label for label, _ in left[:k_bar]}, left[k_bar][1] if len(left) > k_bar else 0


class Path:
    """One path through all draws: the n-th draw has the outcome with the n-th number. Later draws have outcome 0."""

    def __init__(self, numbers):
        self.numbers, self.taken, self.widths, self.chance = numbers, [], [], 1.0

    def choose(self, options):
        number = self.numbers[len(self.taken)] if len(self.taken) < len(self.numbers) else 0
        self.taken.append(number)
        self.widths.append(len(options))
        value, chance = options[number]
        self.chance *= chance
        return value


@cache
def gaussian(sigma):
    """Return the values of the noise with their probabilities, without values of negligible probability."""
    wide = math.ceil(sigma * math.sqrt(-2 * math.log(NEGLIGIBLE)))
    weights = [math.exp(-(z**2) / (2 * sigma**2)) for z in range(-wide, wide + 1)]
    return [(z, weight / sum(weights)) for z, weight in zip(range(-wide, wide + 1), weights, strict=True)]


class Draws:
    """The random draws of the reference.

    With `other`, the draws are limited to the part of the law that the proof compares: items in the slots of only one
    neighbour are rejected, and the bound stays within the ranges of both neighbours.
    """

    def __init__(self, path, case, table, other=None):
        self.path, self.case, self.table, self.other = path, case, table, other
        self.events, self.named, self.row, self.price, self.kept = [], set(), None, 0.0, 1.0

    def discrete_gaussian(self, sigma, size):
        assert size == 1
        if self.row is None:
            return [self.bound(sigma)]
        row, self.row = self.row, None
        self.charge(self.case.ranges * self.gamma**2 / 8 + 1 / (2 * sigma**2))
        self.events.append("rejected")
        if row < 0 or (self.other and self.table.labels[row] not in self.other.slots(self.named, self.case.k_bar)[0]):
            return [FAR]
        return [self.path.choose(gaussian(sigma))]

    def charge(self, price):
        self.price += price
        self.kept *= 1 - self.case.delta * price / self.case.rho

    def bound(self, sigma):
        self.charge(1 / (2 * sigma**2))
        options = gaussian(sigma)
        own, others = (self.beta(table) for table in (self.table, self.other or self.table))
        if self.other:
            delta = self.case.bound_deltas[[level.outside.sigma for level in self.case.levels].index(sigma)]
            wide = reach(sigma, delta)
            low, high = max(own, others) - wide, min(own, others) + wide - (own == others)
            options = [(z, chance) for z, chance in options if low <= own + z <= high]
            total = sum(chance for _, chance in options)
            options = [(z, chance / total) for z, chance in options]
        z = self.path.choose(options)
        self.events.append(("bound", own + z))
        return z

    def beta(self, table):
        factor = self.case.factor
        return factor * table.slots(self.named, self.case.k_bar)[1] - (table.users if factor == 2 else 0)


def slots_of(module):
    """Return the class of the reference's slots with a draw that is enumerated."""

    class Slots(module.Slots):
        def draw(self, draws, gamma):
            options = [((group, place), value) for group, value in enumerate(self.values) for place in
                       range(len(self.members[group]))]  # fmt: skip
            weights = [math.exp(gamma * value) for _, value in options] + [float(self.dummies)]
            places = [place for place, _ in options] + [None]
            law = [(place, w / sum(weights)) for place, w in zip(places, weights, strict=True) if w]
            drawn = draws.path.choose(law) if law else None
            draws.gamma, draws.row = gamma, -1 if drawn is None else self.members[drawn[0]][drawn[1]]
            self.draws = draws
            return drawn

        def remove(self, group, place):
            self.draws.events[-1] = self.draws.table.labels[self.members[group][place]]
            self.draws.named.add(self.draws.events[-1])
            super().remove(group, place)

    return Slots


def changed(*edits):
    """Return the reference with these pieces of its source replaced."""
    with open(reference.__file__, encoding="utf-8") as file:
        text = file.read()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    module = ModuleType("changed")
    exec(compile(text, "changed", "exec"), module.__dict__)
    return module


def law(case, table, other=None, *, module=reference, limit="as cut", **changes):
    """Return each transcript with its probability, its price, and 1 less its share of delta."""
    rows = len(table.counts) if case.cut is None else min(len(table.counts), case.cut)
    counts = np.array(table.counts[:rows], np.int64)
    limit = case.cut if limit == "as cut" else limit
    plan = case.plan(table.users, **changes)
    slots = slots_of(module)
    found, waiting = {}, [()]
    kept = module.Slots
    module.Slots = slots
    try:
        while waiting:
            numbers = waiting.pop()
            path = Path(numbers)
            draws = Draws(path, case, table, other)
            done = module.confirm(counts, limit, plan, draws)
            for depth in range(len(numbers), len(path.taken)):
                waiting += [(*path.taken[:depth], number) for number in range(1, path.widths[depth])]
            transcript = (*draws.events, *map(int, done.values), done[-1])
            chance, price, share = found.get(transcript, (0.0, draws.price, draws.kept))
            found[transcript] = (chance + path.chance, max(price, draws.price), min(share, draws.kept))
    finally:
        module.Slots = kept
    return found


def worst(case, first, second, **how):
    """Return by how much the laws of two neighbours exceed the theorem: at most zero if the theorem holds.

    The theorem has three parts. No path exceeds the budget. The compared part of a law, times 1 less its share of
    delta, is below the law. The Renyi divergence of the two compared parts is within the prices, at several orders.
    """
    beyond = -1.0
    ways = (first, second), (second, first)
    compared = [law(case, *way, **how) for way in ways]
    for (one, _), part, others in zip(ways, compared, compared[::-1], strict=True):
        whole = law(case, one, **how)
        for transcript, (chance, price, share) in part.items():
            beyond = max(beyond, price - case.rho - 1e-6)
            if chance > 1e-9:
                beyond = max(beyond, share * chance / max(whole.get(transcript, (0.0,))[0], 1e-300) - 1 - 1e-6)
        for order in (1.5, 2, 4, 12):
            total = 0.0
            for transcript, (chance, price, _) in part.items():
                other = others.get(transcript, (0.0,))[0]
                if chance > 1e-9 and other <= 0:
                    return math.inf
                if other > 0:
                    exponent = order * math.log(chance) + (1 - order) * math.log(other) - order * (order - 1) * price
                    total += math.exp(min(exponent, 700))
            beyond = max(beyond, total - 1 - 1e-6)
    return beyond


def random_case(rng, mode):
    """Return parameters so small that all outcomes can be tried."""
    k_bar = int(rng.integers(1, 4))
    return Case(
        mode,
        k_bar=k_bar,
        epsilon=float(rng.uniform(0.2, 2)),
        variance=float(rng.uniform(0.15, 0.5)),
        bound_variance=float(rng.uniform(0.15, 0.5)),
        delta=float(rng.choice([1e-6, 0.02, 0.3])),
        steps=int(rng.integers(1, 3)),
        room=int(rng.integers(2, 9)),
        cut=None if rng.random() < 0.6 else k_bar + 1,
        start=int(rng.integers(8, 13)),
    )


def random_pair(rng, mode, missing=0):
    """Return two tables that differ in one user."""

    def items():
        return {label for label in "abcd" if rng.random() < 0.5}

    users = [items() for _ in range(rng.integers(1, 6))]
    other = [*users[1:], items()] if mode == "replace" else users[1:]
    return Table(users), Table(other, missing)
