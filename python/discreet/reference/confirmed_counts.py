"""Confirmed counts, step by step, with the same use of random bits as `rust/release/confirmed_counts.rs`.

docs/confirmed-counts.md describes the mechanism. c is the count of an item, and N the number of users. A slot holds an
item that is not released yet, or a dummy: an item of count zero that is never released. A step draws one slot. An
octave is a doubling of the count; levels and positions measure counts in parts of octaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.reference.gumbel import Tree
from discreet.reference.noise import Bits, bernoulli_exp, uniform_below

__all__ = ["Confirmed", "Plan", "Slots", "confirm"]

UNIT = 2**64
NO_BOUND = 1 << 40


class Draws(Bits, Protocol):
    """The random draws of a release, as `_core.Rng` makes them."""

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """Return `size` numbers of discrete Gaussian noise of scale sigma."""


class Plan(NamedTuple):
    """The public parameters, fixed before the first step."""

    levels: Sequence[Any]
    """`discreet.theorems.confirmed_counts.Level`, lowest first."""
    lowest: int
    """The number of the first level."""
    step_deltas: Sequence[float]
    """The delta of each choice of noise, four for each level."""
    bound_deltas: Sequence[float]
    """The delta of each level's bound."""
    budget: int
    """The budget, in units."""
    k_bar: int
    most_rows: int
    factor: int
    """2 if the query is 2 c - N, 1 if the query is c."""
    users: int
    """N, exactly; 0 if the query is c."""
    noisy_users: int
    """The published N; 0 if the query is c."""
    margin: Callable[[float, float], int]
    """`discreet.theorems.confirmed_counts.margin`, of a scale and a delta."""
    reach: Callable[[float, float], int]
    octaves: Callable[[int], int]
    start: int
    """The first position, in 1/256 octaves."""
    highest: int
    """The highest position."""


class Confirmed(NamedTuple):
    """The transcript of a release."""

    rows: NDArray[np.int64]
    values: NDArray[np.int64]
    """The noisy query of each row."""
    scales: NDArray[np.int64]
    """Four times the number of the level, counted from the lowest, plus the choice of noise."""
    spent: int
    steps: int
    state: tuple[int, int, int]
    """The position, the bound and the level of its last measurement. Without a bound, the level is 2^40."""
    reason: str
    """The reason why the release ended: "budget", "outside", "level", "most" or "rows"; or "pause"."""


class Slots:
    """The k_bar largest counts of items that are not released yet, filled up with dummies of count zero."""

    def __init__(self, counts: NDArray[np.int64], k_bar: int, rows: int) -> None:
        shown = [int(count) for count in counts[:rows] if count > 0]
        self.values = sorted(set(shown), reverse=True)
        place = {value: number for number, value in enumerate(self.values)}
        self.group_of = [place[count] for count in shown]
        self.members: list[list[int]] = [[] for _ in self.values]
        self.following = min(k_bar, len(shown))
        for row in range(self.following):
            self.members[self.group_of[row]].append(row)
        self.dummies = k_bar - self.following

    def remove(self, group: int, place: int) -> None:
        """Remove a released row, and insert the next row or a dummy."""
        last = self.members[group].pop()
        if place < len(self.members[group]):
            self.members[group][place] = last
        if self.following < len(self.group_of):
            self.members[self.group_of[self.following]].append(self.following)
            self.following += 1
        else:
            self.dummies += 1

    def place_of(self, row: int) -> tuple[int, int]:
        """Return the group of a row in a slot, and its place in the group."""
        group = self.group_of[row]
        return group, self.members[group].index(row)

    def draw(self, rng: Draws, gamma: float) -> tuple[int, int] | None:
        """Return the group of a drawn slot and its place in the group, or None for a dummy.

        A group is all slots with the same count. A slot is drawn with P proportional to exp(gamma count).
        """
        reference = self.values[0] if self.values else 0
        sizes = [len(members) for members in self.members] + [self.dummies]
        tree = Tree(self.values, sizes, reference, gamma)
        while True:
            group = tree.walk(rng)
            if group is None:
                continue
            exponent = Fraction(gamma) * (reference - ([*self.values, 0][group]))
            if not bernoulli_exp(rng, exponent, tree.halvings[group]):
                continue
            if group == len(self.values):
                return None
            return group, uniform_below(rng, len(self.members[group]))


def _passes(plan: Plan, at: int, v: int, bound: int | None) -> bool:
    """Return whether the bound allows a step for an item of this level, with this choice of noise."""
    level, delta = plan.levels[at], min(plan.step_deltas[4 * at + v], 0.5)
    return (
        bound is not None and bound + 2 + plan.margin(level.steps[v].sigma, delta) + plan.noisy_users <= level.ceiling
    )


def _reserve(plan: Plan, variance: float, accuracy: float) -> int:
    """Return the units that are kept for the weights of the rows, if the counts are weighted."""
    if plan.factor != 2:
        return 0
    return math.ceil((2 + math.sqrt(accuracy * variance + 1)) / (8 * variance) * UNIT)


def _moved(plan: Plan, position: int, number: int, value: int) -> int:
    """Return the position after a confirmed query with this noisy value."""
    seen = number * 16 - 512
    if value + plan.noisy_users > 0:
        seen = max(seen, plan.octaves(value + plan.noisy_users) - 256 * (plan.factor - 1))
    return min(plan.highest, position + max(-128, min(128, seen - position + 40)) // 4)


def confirm(
    counts: NDArray[np.int64],
    limit: int | None,
    plan: Plan,
    rng: Draws,
    *,
    pause: int | None = None,
    resumed: Confirmed | None = None,
) -> Confirmed:
    """Return the rows, their noisy queries, and the transcript of the release.

    With `pause`, the release pauses before it spends more units, unless it ends before. With `resumed`, it continues
    such a release of the same counts.
    """
    slots = Slots(counts, plan.k_bar, plan.k_bar + plan.most_rows + 1)
    spent, steps, position = 0, 0, plan.start
    bound: int | None = None
    bound_level = NO_BOUND
    accuracy = 0.0
    rows, values, scales = list[int](), list[int](), list[int]()
    if resumed is not None:
        spent, steps = resumed.spent, resumed.steps
        position, noisy, bound_level = resumed.state
        bound = None if bound_level == NO_BOUND else noisy
        rows, values, scales = resumed.rows.tolist(), resumed.values.tolist(), resumed.scales.tolist()
        for row, scale in zip(rows, scales, strict=True):
            slots.remove(*slots.place_of(row))
            sigma = plan.levels[scale // 4].steps[scale % 4].sigma
            accuracy += plan.factor**2 / (sigma * sigma)

    def ended(reason: str) -> Confirmed:
        columns = [np.array(column, np.int64) for column in (rows, values, scales)]
        state = position, 0 if bound is None else bound, bound_level
        return Confirmed(columns[0], columns[1], columns[2], spent, steps, state, reason)

    while True:
        number = (position + 8) // 16
        at = number - plan.lowest
        if at < 0:
            return ended("level")
        if len(rows) == plan.most_rows:
            return ended("most")
        if limit is not None and plan.k_bar + len(rows) >= limit:
            return ended("rows")
        level = plan.levels[at]
        reserve = _reserve(plan, level.variance, accuracy)
        if not _passes(plan, at, 0, bound) and bound_level - number >= 3:
            if pause is not None and spent + level.outside.price > pause:
                return ended("pause")
            if spent + level.outside.price + reserve > plan.budget or plan.bound_deltas[at] >= 0.5:
                return ended("budget")
            spent += level.outside.price
            following = plan.k_bar + len(rows)
            outside = int(counts[following]) if following < len(counts) else 0
            noisy = plan.factor * outside - plan.users + int(rng.discrete_gaussian(level.outside.sigma, 1)[0])
            reach = plan.reach(level.outside.sigma, plan.bound_deltas[at])
            bound = noisy + reach if bound is None else min(bound, noisy + reach)
            bound_level = number
        v = next((v for v in range(4) if _passes(plan, at, v, bound)), None)
        if v is None or bound is None:
            return ended("outside")
        sigma, price = level.steps[v]
        if pause is not None and spent + price > pause:
            return ended("pause")
        if spent + price + reserve > plan.budget or plan.step_deltas[4 * at + v] >= 0.5:
            return ended("budget")
        spent += price
        steps += 1
        drawn = slots.draw(rng, level.gamma)
        noise = int(rng.discrete_gaussian(sigma, 1)[0])
        value = 0
        confirmed = False
        if drawn is not None:
            row = slots.members[drawn[0]][drawn[1]]
            value = plan.factor * int(counts[row]) - plan.users + noise
            confirmed = value >= bound + 2 + plan.margin(sigma, plan.step_deltas[4 * at + v])
        if drawn is None or not confirmed:
            position -= 48 if rows else 112
            continue
        rows.append(slots.members[drawn[0]][drawn[1]])
        values.append(value)
        scales.append(4 * at + v)
        slots.remove(*drawn)
        accuracy += plan.factor**2 / (sigma * sigma)
        position = _moved(plan, position, number, value)
