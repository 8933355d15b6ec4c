"""The theorem of calibrated counts on small tables, by two methods.

The exact law of the weighted counts comes from `discreet.laws`. All other steps are checked by replay: the reference
runs on two neighbours with the same published values. Each step must be the same for both, because the published past
alone may choose it. A measurement moves by a whole number, whose exact cost is its square over twice the variance.
"""

import inspect
import math
from fractions import Fraction
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np
from calibrated import plan

from discreet import _core
from discreet.laws.calibrated_counts import Step, thresholded
from discreet.reference import calibrated_counts as reference
from discreet.theorems import calibrated_counts as theorem
from discreet.theorems import calibration
from discreet.theorems.rogers2024 import UNIT

ORDERS = (1.0001, 1.5, 2, 4, 12, 40)
FAR = 7
"""An order a compares both laws about a times the distance of their centres away. Beyond seven deviations a law has no
values, because it lists probabilities down to 1e-16."""


class Case:
    """Public parameters of the weights, and two neighbours."""

    def __init__(self, rng, **changes):
        scale = math.inf
        while scale > 5:  # the law has the cube of the number of values above the threshold as its size
            self.full, self.most, self.bits = (int(rng.integers(*ends)) for ends in ((1, 3), (1, 4), (0, 3)))
            self.rho, self.delta = math.exp(rng.uniform(-3, 0.4)), math.exp(rng.uniform(-5.8, -1.6))
            scale = math.sqrt(self.full / (2 * self.rho)) * 2**self.bits
        labels = "abc"
        self.users = [self.items(rng, labels) for _ in range(rng.integers(0, 4))]
        self.place, self.new = int(rng.integers(0, len(self.users) + 1)), self.items(rng, labels) or ["a"]
        self.__dict__.update(changes)

    @staticmethod
    def items(rng, labels):
        return [label for label in labels if rng.random() < 0.6]

    def step(self, *, price=1.0, **changes):
        """Return the step, with changes, or with noise that costs more."""
        sigma = math.sqrt(self.full / (2 * self.rho * price))
        noise = _core.Noise.discrete_gaussian(sigma * 2**self.bits)
        found = theorem.threshold(noise, self.full, self.most, self.bits, self.delta)
        weight = lambda number: theorem.weight(number, self.full, self.bits)  # noqa: E731
        return Step(self.most, weight, noise, found)._replace(**changes)


def beyond(case, step):
    """Return by how much the laws of two neighbours exceed the theorem, and the largest shares that they use."""
    first, second, compared = thresholded(step, case.users, case.place, case.new)
    for law in (first, second, compared):
        assert math.isclose(law.sum(), 1, abs_tol=1e-9)
    seen = compared > 1e-13
    delta = 1 - float(np.min(second[seen] / compared[seen])) if seen.any() else 0.0
    if np.any((first > 1e-9) & (compared <= 0)) or np.any((compared > 1e-9) & (first <= 0)):
        return math.inf, delta / case.delta, math.inf
    both = (first > 0) & (compared > 0)
    largest = 0.0
    for p, q in ((first[both], compared[both]), (compared[both], first[both])):
        for order in (order for order in ORDERS if order * math.sqrt(2 * case.rho) <= FAR):
            terms = order * np.log(p) + (1 - order) * np.log(q)
            moment = float(terms.max() + math.log(np.exp(terms - terms.max()).sum()))
            largest = max(largest, moment / (order - 1) / order / case.rho)
    return max(delta - case.delta, largest - 1), delta / case.delta, largest


def changed(*edits, module=reference):
    """Return a module with these pieces of its source replaced."""
    text = inspect.getsource(module)
    for old, new in edits:
        assert text.count(old) == 1, (text.count(old), old)
        text = text.replace(old, new)
    made = ModuleType("changed")
    made.__dict__["__name__"] = "changed"
    exec(compile(text, "changed", "exec"), made.__dict__)
    return made


class Differs(Exception):
    """The neighbour takes another step after the same published values."""


class Replay:
    """Draws with given published values, which records the exact values before the noise."""

    def __init__(self, rng, given=None):
        self.rng, self.given, self.published, self.steps = rng, given, [], []

    def publish(self, name, exact, make, *public):
        """Return the next published value, and record it with the exact value and the public parameters."""
        self.steps.append((name, public, exact))
        if self.given is None:
            self.published.append((name, public, make()))
        elif len(self.given) == len(self.published) or self.given[len(self.published)][:2] != (name, public):
            raise Differs
        else:
            self.published.append(self.given[len(self.published)])
        return self.published[-1][2]

    def select(self, scores, reference, gamma, bottom, offset):
        every = np.append(scores, bottom)
        return self.publish("select", every - reference, lambda: int(self.rng.integers(0, 3)), gamma)

    def measured(self, of, *arguments):
        """Return a published value for a function that measures: it adds noise to an exact value."""
        scales = []
        noiseless = SimpleNamespace(discrete_gaussian=lambda scale, size: scales.append(scale) or [0])
        exact = of(*arguments[:-1], noiseless)
        return self.publish("measure", exact, lambda: exact + round(self.rng.normal() * scales[0]), scales[0])

    def named(self, weights, threshold, noise, rng):
        scales = SimpleNamespace(discrete_gaussian=lambda scale, n: scale)

        def made():
            present = np.flatnonzero(weights)
            rows = np.sort(self.rng.permutation(present)[: self.rng.integers(0, len(present) + 1)])
            return rows, threshold + 1 + self.rng.integers(0, 1 + 2 * threshold, len(rows))

        return self.publish("threshold", weights.copy(), made, threshold, noise(scales, 0))


BANDS = changed(("_FEWEST = 24", "_FEWEST = 2"), module=calibration)
"""The estimator with bands of two items, so that small tables have several bands."""


def replayed(module, setting, heads, kept, draws):
    """Run the steps after the first one with these draws."""
    given = module.measured, module.named
    module.measured, module.named = partial(draws.measured, given[0]), draws.named
    try:
        return module.calibrated(heads, setting.size, setting.plan, kept, draws)
    finally:
        module.measured, module.named = given


class Past:
    """A table, a neighbour with one more user, and the published values of the first step."""

    def __init__(self, rng, factor=2):
        self.size, self.factor = 7, factor
        rho = math.exp(rng.uniform(-1, 3))
        cut = float(rng.choice([-99, 1.5, 2.5, 99]))
        deeper = float(rng.choice([0.02, 1.0, 9.0]))
        prices = SimpleNamespace(**vars(theorem))
        prices.nearly_none = lambda heavy, deviation, users: heavy < cut
        prices.reaches_deeper = lambda heads, smallest, following, sigma, ratio: ratio < deeper * 5
        self.plan = plan(rho, 1e-3, factor=factor, estimator=BANDS, prices=prices)
        users = [self.items(rng) for _ in range(rng.integers(2, 9))]
        self.number = int(rng.integers(1, 3))
        self.place, self.new = int(rng.integers(0, len(users) + 1)), self.items(rng)
        self.first = users
        self.second = [*users[: self.place], self.new, *users[self.place :]]
        self.known = float(len(users) + round(rng.normal() * 3))
        self.smallest, self.stuck = float(rng.choice([0.5, 3, 1e4])), bool(rng.random() < 0.2)
        self.seed = int(rng.integers(2**32))

    def items(self, rng):
        return [item for item in range(self.size) if rng.random() < 0.5]

    def heads(self, module, users, **changes):
        """Return the table without its last items, which are confirmed."""
        confirmed = range(self.size - self.number, self.size)
        found = SimpleNamespace(
            rows=np.array(list(confirmed)), values=[0], reason="bound" if self.stuck else "pause", spent=UNIT // 1000
        )
        heads = module.heads_of(users, self.size, found, np.arange(self.size), self.known, self.factor)
        return heads._replace(smallest=self.smallest, **changes)

    def chosen(self, users, most):
        """Choose the items of each user by the user's own items, which a further user does not change."""
        return [
            sorted(np.random.default_rng([self.seed, *items]).permutation(items)[:most]) for items in users if items
        ]


def loss(past, module=reference, kept=None):
    """Return the exact cost of the measurements of two neighbours, over what the release charges, less 1.

    The result is infinite if the neighbours differ in a public value or in a decision.
    """
    kept = kept or past.chosen
    one = Replay(np.random.default_rng(past.seed))
    first = replayed(module, past, past.heads(module, past.first), kept, one)
    other = Replay(None, one.published)
    try:
        second = replayed(module, past, past.heads(module, past.second), kept, other)
    except Differs:
        return math.inf
    if len(one.steps) != len(other.steps) or first.spent != second.spent:
        return math.inf
    if not np.array_equal(first.estimates, second.estimates):
        return math.inf
    cost = Fraction(0)
    for (name, public, before), (_, _, after) in zip(one.steps, other.steps, strict=True):
        if name == "select":
            moved = after - before
            # A constant that all scores share does not change the selection.
            cost += (Fraction(public[0]) * int(moved.max() - moved.min())) ** 2 / 8
        elif name == "measure":
            cost += Fraction(abs(after - before)) ** 2 / (2 * Fraction(public[0]) ** 2)
        else:
            seen = before > 0
            square = int(((after - before)[seen].astype(object) ** 2).sum()) if seen.any() else 0
            cost += Fraction(square) / (2 * Fraction(public[1]) ** 2)
    charged = Fraction(first.spent - UNIT // 1000, UNIT)
    total = Fraction(first.spent, UNIT) + (0 if past.factor == 1 else Fraction(1, 100) * Fraction(past.plan.rho))
    if total > Fraction(past.plan.rho) * (1 + Fraction(1, 2**40)):
        return math.inf
    return float(cost / charged - 1)
