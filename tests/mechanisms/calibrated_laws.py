"""The theorem of calibrated counts on small tables, by two methods.

The exact law of the weighted counts comes from `discreet.laws`. All other steps are checked by replay: the reference
runs on two neighbours with the same published values. Each step must be the same for both, because the published past
alone may choose it. A measurement moves by a whole number, whose exact cost is its square over twice the variance.
"""

import inspect
import math
from types import ModuleType

import numpy as np

from discreet import _core
from discreet.laws import calibrated_replays
from discreet.laws.calibrated_counts import Step, thresholded
from discreet.reference import calibrated_counts as reference
from discreet.theorems import calibrated_counts as theorem

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


def loss(past, module=None, kept=None):
    """Return the exact cost of the measurements of two neighbours, over what the release charges, less 1.

    The result is infinite if the neighbours differ in a public value or in a decision, or if nothing is charged.
    """
    found = calibrated_replays.taken(past, module or calibrated_replays.copied(), kept)
    return math.inf if found is None or not found.charged else float(found.cost / found.charged - 1)
