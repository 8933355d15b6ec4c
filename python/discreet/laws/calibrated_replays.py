"""Replays of calibrated counts: the reference runs on two neighbours with the same published values.

Each step must be the same for both neighbours, because the published past alone may choose it. A measurement moves by a
whole number, whose exact cost is its square over twice the variance. The first step, which confirms items, is replaced
by random published values: the theorem holds for each of them, and for every public rule of the decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts
from discreet.reference import calibrated_counts as reference
from discreet.reference import confirmed_counts as confirming
from discreet.theorems import calibrated_counts as theorem
from discreet.theorems import calibration
from discreet.theorems import confirmed_counts as heads
from discreet.theorems.rogers2024 import UNIT, budget_units

__all__ = ["Past", "Replay", "Steps", "copied", "plan", "replayed", "taken"]

_Lists = Sequence[Sequence[int]]
_Kept = Callable[[_Lists, int], _Lists]


def plan(mechanism: CalibratedCounts) -> reference.Plan:
    """Return the public parameters of a mechanism for the reference."""
    rho, delta, bound = mechanism.rho, mechanism.delta, mechanism.bound
    levels = heads.levels(mechanism.relative_error, factor=2, replaced=False)
    budget = budget_units(rho)
    confirmed = confirming.Plan(
        levels, heads.LOWEST, heads.deltas([step.price for level in levels for step in level.steps], rho, delta),
        heads.deltas([level.outside.price for level in levels], rho, delta), budget, mechanism.k_bar, heads.MOST,
        2, 0, 0, heads.margin, heads.reach, heads.octaves, 0, 0,
    )  # fmt: skip
    return reference.Plan(
        rho, delta, budget, confirmed, theorem, heads, calibration, bound.scores,
        bound.gamma, theorem.selection_price(bound.epsilon),
    )  # fmt: skip


class _DiffersError(Exception):
    """The neighbour takes another step after the same published values."""


class _Noiseless:
    """Noise of zero, which records its scale."""

    scale = 0.0

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        self.scale = sigma
        return np.zeros(size, np.int64)


class Replay:
    """Draws with given published values, which records the exact values before the noise."""

    def __init__(self, rng: np.random.Generator | None, given: list[tuple[object, ...]] | None = None) -> None:
        self._rng, self._given = rng, given
        self.published: list[tuple[object, ...]] = []
        self.steps: list[tuple[str, tuple[float, ...], Any]] = []

    def _publish(self, name: str, exact: object, make: Callable[[np.random.Generator], Any], *public: float) -> Any:
        """Return the next published value, and record it with the exact value and the public parameters."""
        self.steps.append((name, public, exact))
        if self._given is None:
            assert self._rng is not None
            self.published.append((name, public, make(self._rng)))
        elif len(self._given) == len(self.published) or self._given[len(self.published)][:2] != (name, public):
            raise _DiffersError
        else:
            self.published.append(self._given[len(self.published)])
        return self.published[-1][2]

    def select(self, scores: NDArray[np.int64], base: int, gamma: float, bottom: int, offset: float) -> Any:
        """Return a published choice of the first three."""
        return self._publish("select", np.append(scores, bottom) - base, lambda rng: int(rng.integers(0, 3)), gamma)

    def measured(self, of: Callable[..., int], *arguments: Any) -> Any:
        """Return a published value for a function that measures: it adds noise to an exact value."""
        noiseless = _Noiseless()
        exact = of(*arguments[:-1], noiseless)
        scale = noiseless.scale
        return self._publish("measure", exact, lambda rng: exact + round(rng.normal() * scale), scale)

    def named(self, weights: NDArray[np.int64], threshold: int, noise: Callable[..., Any], _: object) -> Any:
        """Return published items and noisy weights above the threshold."""

        def made(rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            present = np.flatnonzero(weights)
            rows = np.sort(rng.permutation(present)[: rng.integers(0, len(present) + 1)])
            return rows, threshold + 1 + rng.integers(0, 1 + 2 * threshold, len(rows))

        noiseless = _Noiseless()
        noise(noiseless, 1)
        return self._publish("threshold", weights.copy(), made, threshold, noiseless.scale)


class Past:
    """A table, a neighbour with one more user, and the published values of the first step.

    Bands have two items or more, so that small tables have several bands.
    """

    def __init__(self, rng: np.random.Generator, given: reference.Plan) -> None:
        self.size, self.alone = 7, bool(rng.random() < 0.3)
        """Whether the pair is for the steps before the first one, which take one item of each user."""
        cut = float(rng.choice([99 if self.alone else -99, 1.5, 2.5, 99]))
        enough, high = float(rng.choice([0, rng.uniform(0, 1)])), float(rng.choice([-99, rng.uniform(-1, 1)]))
        prices = SimpleNamespace(**vars(theorem))
        prices.nearly_none = lambda heavy, deviation, users: heavy < cut
        prices.least_single = lambda deviation: float("-inf")
        prices.least_users = lambda reach: enough * reach
        prices.least_weight = lambda reach, sigma: high * reach
        prices.RANK = int(rng.integers(1, 7))
        prices.threshold_of = self._threshold_of
        estimator = SimpleNamespace(**{**vars(calibration), "bands": partial(calibration.bands, fewest=2)})
        self.plan = given._replace(prices=prices, estimator=estimator)
        self.weighing: tuple[float, int, int, int, float] | None = None
        """The scale in users, l, K, the binary places and the delta of the last weights."""
        users = [self.items(rng) for _ in range(rng.integers(2, 9))]
        self.number = 0 if self.alone else int(rng.integers(0, 3))
        self.place, self.new = int(rng.integers(0, len(users) + 1)), self.items(rng)
        self.first: _Lists = users
        self.second: _Lists = [*users[: self.place], self.new, *users[self.place :]]
        self.noisy_users = float(len(users) + round(rng.normal() * 3))
        self.stuck = bool(rng.random() < 0.2)
        self.seed = int(rng.integers(2**32))
        self.spent = 0 if self.alone else self.plan.budget // 400
        """The price of the first step."""

    def items(self, rng: np.random.Generator) -> list[int]:
        """Return the items of a user."""
        return [item for item in range(self.size) if rng.random() < 0.5]

    def _threshold_of(self, scale: float, full: int, most: int, bits: int, delta: float) -> int:
        self.weighing = scale, full, most, bits, delta
        return theorem.threshold_of(*self.weighing)

    def heads(self, module: ModuleType, users: _Lists) -> reference.Heads:
        """Return the table without its last items, which are confirmed."""
        confirmed = range(self.size - self.number, self.size)
        found = SimpleNamespace(
            rows=np.array(list(confirmed)), values=[0], reason="outside" if self.stuck else "pause", spent=self.spent
        )
        made: reference.Heads = module.heads_of(users, self.size, found, np.arange(self.size), self.noisy_users)
        return made

    def chosen(self, users: _Lists, most: int) -> list[list[int]]:
        """Choose the items of each user by the user's own items, which a further user does not change."""
        return [
            sorted(np.random.default_rng([self.seed, *items]).permutation(items)[:most]) for items in users if items
        ]


def copied(module: ModuleType = reference) -> ModuleType:
    """Return a copy of a module whose functions call each other, so that `replayed` can replace some of them."""
    made = ModuleType("copied")
    made.__dict__.update(vars(module))
    for name, function in vars(module).items():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            made.__dict__[name] = FunctionType(function.__code__, made.__dict__, name, function.__defaults__)
    return made


def replayed(
    module: ModuleType, past: Past, found: reference.Heads, kept: _Kept, draws: Replay
) -> reference.Calibrated:
    """Run the steps after the first one, by a copy of the reference, with these draws."""
    given = module.noised, module.named
    module.__dict__.update(noised=partial(draws.measured, given[0]), named=draws.named)
    try:
        steps = module.alone if past.alone else module.calibrated
        made: reference.Calibrated = steps(found, past.size, past.plan, kept, draws)
        return made
    finally:
        module.__dict__.update(noised=given[0], named=given[1])


class Steps(NamedTuple):
    """The steps of two neighbours after the same published values."""

    cost: Fraction
    """The exact rho of all steps after the first one, for this pair."""
    charged: Fraction
    """The rho that a release charges for them."""
    weights: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    """The exact weights of both tables at the threshold; None if the replay ended before."""
    threshold: int


def taken(past: Past, module: ModuleType, kept: _Kept | None = None) -> Steps | None:
    """Return the steps of two neighbours with their exact cost, by a copy of the reference.

    Return None if the neighbours differ in a public value or in a decision, or if the charges exceed rho.
    """
    kept = kept or past.chosen
    one = Replay(np.random.default_rng(past.seed))
    first = replayed(module, past, past.heads(module, past.first), kept, one)
    other = Replay(None, one.published)
    try:
        second = replayed(module, past, past.heads(module, past.second), kept, other)
    except _DiffersError:
        return None
    if len(one.steps) != len(other.steps) or first.spent != second.spent:
        return None
    if not np.array_equal(first.estimates, second.estimates):
        return None
    cost, weights, threshold = Fraction(0), None, 0
    for (name, public, before), (_, _, after) in zip(one.steps, other.steps, strict=True):
        if name == "select":
            moved = after - before
            # A constant that all scores share does not change the selection.
            cost += (Fraction(public[0]) * int(moved.max() - moved.min())) ** 2 / 8
        elif name == "measure":
            cost += Fraction(abs(after - before)) ** 2 / (2 * Fraction(public[0]) ** 2)
        else:
            seen, weights, threshold = before > 0, (before, after), int(public[0])
            square = int(((after - before)[seen].astype(object) ** 2).sum()) if seen.any() else 0
            cost += Fraction(square) / (2 * Fraction(public[1]) ** 2)
    total = Fraction(first.spent, UNIT) + Fraction(1, 100) * Fraction(past.plan.rho)
    if total > Fraction(past.plan.rho) * (1 + Fraction(1, 2**40)):
        return None
    return Steps(cost, Fraction(first.spent - past.spent, UNIT), weights, threshold)
