"""The audit of `CalibratedCounts`: exact laws and costs of its steps on small tables, and releases of larger ones."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import _core
from discreet.audit.findings import (
    LEVEL,
    ORDERS,
    Audit,
    Cost,
    Divergence,
    Finding,
    Misfit,
    delta_findings,
    promises,
    renyi,
)
from discreet.audit.runs import divergence
from discreet.laws.calibrated_counts import at_least, banded
from discreet.laws.calibrated_replays import Past, Steps, copied, plan, taken
from discreet.mechanisms.base import opened_rng
from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts, CalibratedSteps, Weights
from discreet.mechanisms.counts.confirmed_counts import Begun, Found
from discreet.privacy.guarantee import Guarantee
from discreet.reference import calibrated_counts as reference
from discreet.release.release import Release
from discreet.tables.table import Table
from discreet.testing import seeded_rng
from discreet.theorems import calibrated_counts as theorem
from discreet.theorems.confirmed_counts import spent_delta
from discreet.theorems.rogers2024 import units_rho

__all__ = ["audited"]

_HEADS, _RARE = 4, 3
_SINGLE, _MOST_SINGLE = 12_000, 200_000
"""Users of the table of one item a user, times the root of rho: half again as many as it needs; and the most users."""
_TWINS = 5
"""The number of releases of each table that are compared with the reference, from the same random bits."""
_NOT_RELEASED, _ANOTHER = "not released", "another item"
_CELLS = (_NOT_RELEASED, "more than sigma below", "below", "above", "more than sigma above")
"""A noisy weight, in relation to the exact weight."""
_COMPARED = (
    "the exact distribution of the weighted counts, in bands of values, with the delta and the rho of this step",
    "the chance that a user's own items are released, for a user with any number of items up to 16 l",
    "the exact rho of all other measurements after the most common items are confirmed, with the rho that a release is "
    "charged; and whether both tables of a pair lead to the same decisions",
)
_BY_LAW = (
    "releases of larger tables with their exact law, step by step: which rare items are named and their noisy weights, "
    "given what was published before"
)
_BY_BITS = (
    f"{_TWINS} releases of each of these tables, from seeded random bits, with the slower implementation whose steps "
    "were verified: all items, all counts and the number of users"
)
_LIMITS = (
    "the distribution of the step that confirms the most common items, which has too many outcomes: only its releases "
    "are compared with the slower implementation. docs/calibrated-counts.md has the proof",
    "users with more than 16 l items, of whose items the mechanism chooses some at random",
)


def audited(
    mechanism: CalibratedCounts,
    *,
    pairs: int,
    seed: int,
    dp: tuple[float, float] | None,
    runs: int,
    rng: _core.Rng | None,
) -> Audit:
    """Return the audit of a mechanism; `discreet.audit.audit` describes the arguments.

    A label of a table in a finding is the set of items of its users.
    """
    guarantee = mechanism.guarantee if dp is None else mechanism.guarantee.stating(*dp)
    chance, module, given = np.random.default_rng(seed), copied(), plan(mechanism)
    violations, tightest, seen = list[Finding](), None, set[tuple[int, int]]()
    none: dict[str, Mapping[str, int]] = {"first": {}, "second": {}}
    if mechanism.rho > guarantee.rho:  # all steps together may cost this much
        violations.append(Cost(epsilon=0.0, delta=mechanism.rho, allowed=guarantee.rho, **none))
    if mechanism.delta > guarantee.delta:
        violations.append(Finding(epsilon=math.inf, delta=mechanism.delta, allowed=guarantee.delta, **none))
    for _ in range(pairs):
        past = Past(chance, given)
        worst = max(_findings(past, taken(past, module), seen), key=_badness)
        if worst.violates:
            violations.append(worst)
        tightest = max(tightest or worst, worst, key=_badness)
    assert tightest is not None
    violations.sort(key=lambda finding: -finding.ratio)
    misfits, reached, tables = list[Misfit](), 0, list(_tables(mechanism)) if runs else []
    stream = opened_rng(rng)
    for sets in tables:
        rows = Table(_rows(sets), user="user", item="item").read()
        drawn = _watched(mechanism, rows, runs, stream)
        reached += len(drawn)
        misfits += _compared(mechanism, sets, drawn, LEVEL / len(tables))
        misfits += _twins(mechanism, sets, rows, stream)
    return Audit(
        mechanism=repr(mechanism),
        guarantee=guarantee,
        pairs=pairs,
        violations=tuple(violations),
        tightest=tightest,
        quoted=None,
        runs=runs,
        misfits=tuple(misfits),
        tables=len(tables),
        releases=reached,
        compared=(*_COMPARED, *([_BY_LAW] if reached else []), _BY_BITS) if runs else _COMPARED,
        limits=_LIMITS,
    )


def _badness(finding: Finding) -> tuple[bool, bool, float]:
    """Return the order of findings. A cost in rho is charged exactly, and says something only if it is violated."""
    return finding.violates, type(finding) is Finding and math.isfinite(finding.epsilon), finding.ratio


def _findings(past: Past, steps: Steps | None, seen: set[tuple[int, int]]) -> list[Finding]:
    """Return the findings of one pair. `seen` has each l and K whose own items were examined, and gets new ones."""
    tables = {"first": _users(past.first), "second": _users(past.second)}
    if steps is None:
        return [Finding(epsilon=math.inf, delta=1.0, allowed=0.0, **tables)]
    found: list[Finding] = [Cost(epsilon=0.0, delta=float(steps.cost), allowed=float(steps.charged), **tables)]
    if steps.weights is None or past.weighing is None:
        return found
    scale, full, most, bits, own = past.weighing
    sigma = math.ldexp(scale, bits)
    noise = _core.Noise.discrete_gaussian(sigma)
    promised = Guarantee(units_rho(theorem.weights_price(scale, full)), own)
    p, q = banded(noise, sigma, steps.threshold, *steps.weights)
    found += delta_findings(p, q, promises(promised), tables)
    if not np.any((steps.weights[0] == 0) & (steps.weights[1] > 0)):
        for order in ORDERS:
            spread = renyi(p, q, order) / order
            found.append(Divergence(epsilon=order, delta=spread, allowed=promised.rho, **tables))
    if (full, most) not in seen:
        seen.add((full, most))
        threshold = _core.Threshold(noise, steps.threshold)
        for number in range(1, most + 1):
            each = min(threshold.chance(theorem.weight(number, full, bits)), 1 - 1e-16)
            delta = -math.expm1(number * math.log1p(-each)) * (1 - 1e-9)
            alone = {f"{number} items that nobody else has": 1}
            found.append(Finding(epsilon=math.inf, delta=delta, allowed=own, first={}, second=alone))
    return found


def _users(lists: Sequence[Sequence[int]]) -> Mapping[str, int]:
    """Return the number of users with each set of items."""
    return Counter(" ".join(map(str, items)) for items in lists if items)


_Sets = Sequence[tuple[tuple[int, ...], int]]
"""Sets of items, and the number of users with exactly these items."""


def _tables(mechanism: CalibratedCounts) -> Iterator[_Sets]:
    """Yield tables whose releases nearly always weigh items: without and with users of more than l items.

    Four items are so common that they are confirmed, three are near the threshold, and other users have items alone. In
    a third table nobody has more than one item. It is left out if rho is so small that it would need too many users.
    """
    rho = mechanism.rho
    scale = theorem.weights_sigma(theorem.share_of(rho, 0.8), 1) or 1.0
    bits = theorem.places(scale)
    middle = math.ldexp(theorem.threshold_of(scale, 1, theorem.TIMES, bits, 0.9 * mechanism.delta), -bits)
    tenth = round(min(20_000, max(200, 500 / math.sqrt(rho), 4 * middle)))
    alone = min(20_000, math.ceil(0.3 / mechanism.bound.gamma))  # l is then 1 with a chance above 0.99
    heads = [((0, 1, 2, 3), 7 * tenth), ((0, 1, 2), tenth), ((0, 1), tenth), ((0,), tenth)]
    rare = [((_HEADS + place,), max(1, round(middle + (place - 1) * scale))) for place in range(_RARE)]
    first = _HEADS + _RARE
    yield [*heads, *rare, *(((first + place,), 1) for place in range(alone))]
    many = tenth // 6
    alone = max(alone, 2 * many)
    own: list[tuple[tuple[int, ...], int]] = [((first + place,), 1) for place in range(alone)]
    own += [(tuple(range(start, start + 4)), 1) for start in range(first + alone, first + alone + 4 * many, 4)]
    yield [*heads, *rare, ((4, 5, 6, first), 4), *own]
    many = math.ceil(_SINGLE / math.sqrt(rho))
    if many <= _MOST_SINGLE:
        scale = theorem.weights_sigma(theorem.share_of(rho, 0.98), 1) or 1.0
        middle = math.ldexp(theorem.threshold_of(scale, 1, 1, bits, mechanism.delta), -bits)
        single = [((item,), many // 4) for item in range(_HEADS)]
        single += [((_HEADS + place,), max(1, round(middle + (place - 1) * scale))) for place in range(_RARE)]
        yield [*single, *(((first + place,), 1) for place in range(many // 8))]


def _rows(sets: _Sets) -> dict[str, NDArray[np.int64]]:
    lists = _lists(sets)
    users = np.repeat(np.arange(len(lists)), [len(items) for items in lists])
    return {"user": users, "item": np.array([item for items in lists for item in items], np.int64)}


def _lists(sets: _Sets) -> list[list[int]]:
    return [list(items) for items, users in sets for _ in range(users)]


class _Drawn(NamedTuple):
    """One release: the public parameters of its weights, the confirmed items, and the items above the threshold."""

    given: Weights
    spent: int
    """The price of the confirmed items."""
    confirmed: frozenset[object]
    noisy: Mapping[object, int]


def _watched(mechanism: CalibratedCounts, table: Table, runs: int, rng: _core.Rng) -> list[_Drawn]:
    """Release a table many times, and return those releases that weighed items."""
    found = list[_Drawn]()

    class Watched(CalibratedSteps):
        past: Weights | None = None
        confirming = 0
        noisy: Mapping[object, int]

        def _confirm(self, begun: Begun, **more: Any) -> Found:
            found = super()._confirm(begun, **more)
            self.confirming = found[3]
            return found

        def _named(
            self, weights: NDArray[np.int64], given: Weights
        ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
            self.past = given
            return super()._named(weights, given)

        def _passed(
            self, threshold: _core.Threshold, weights: NDArray[np.int64]
        ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            items, noisy = super()._passed(threshold, weights)
            self.noisy = dict(zip(self.labels.take(items), noisy.tolist(), strict=True))
            return items, noisy

        def release(self) -> Release:
            release = super().release()
            if self.past is not None:
                assert release.confirmed is not None
                rows = zip(release.items, release.confirmed, strict=True)
                heads = frozenset(item for item, is_head in rows if is_head)
                found.append(_Drawn(self.past, self.confirming, heads, self.noisy))
            return release

    for _ in range(runs):
        mechanism._steps(table, rng, Watched).release()  # noqa: SLF001 - a watched release is no public use
    return found


def _compared(mechanism: CalibratedCounts, sets: _Sets, drawn: Sequence[_Drawn], level: float) -> list[Misfit]:
    """Return the misfits between the weighted items of releases and their law.

    The law of a release follows from what was published before its weights. So the chance of a cell differs between
    releases, which are independent given these values. Chernoff's bound then holds for the mean chance (Hoeffding
    1963, Theorem 1). A release that confirmed an item says nothing about its weight, and is left out for this item.
    """
    views: dict[str, tuple[Counter[str], Counter[str], int]] = {}
    exact: dict[tuple[frozenset[object], int, int], dict[int, int]] = {}

    def add(view: str, distribution: Mapping[str, float], cell: str) -> None:
        chances, seen, number = views.get(view, (Counter(), Counter(), 0))
        chances.update(distribution)
        seen[cell] += 1
        views[view] = chances, seen, number + 1

    for one in drawn:
        scale, full, most, bits, _ = one.given
        noise = _core.Noise.discrete_gaussian(math.ldexp(scale, bits))
        own = theorem.unspent_delta(mechanism.delta, spent_delta(one.spent, mechanism.rho, mechanism.delta))
        least = theorem.threshold_of(scale, full, most, bits, own) + 1
        key = one.confirmed, full, bits
        weights = exact[key] = exact.get(key) or _weights(sets, *key)
        rare = [item for item in range(_HEADS, _HEADS + _RARE) if item not in one.confirmed]
        laws = {item: _distribution(noise, least, weights[item], round(math.ldexp(scale, bits))) for item in rare}
        cells = {item: laws[item][1](one.noisy.get(item)) for item in rare}
        for item in rare:
            add(f"the weight of item {item}", laws[item][0], cells[item])
        if len(rare) == _RARE:
            coarse = [
                (chances[_NOT_RELEASED], sum(chances.values()) - chances[_NOT_RELEASED]) for chances, _ in laws.values()
            ]
            both = {
                str(found): math.prod(part[is_named] for part, is_named in zip(coarse, found, strict=True))
                for found in product((0, 1), repeat=_RARE)
            }
            add("which rare items are released", both, str(tuple(int(item in one.noisy) for item in rare)))
        others = [weight for item, weight in weights.items() if item not in rare]
        none = math.exp(
            sum(
                n * math.log1p(-min(at_least(noise, least - weight), 1 - 1e-16))
                for weight, n in Counter(others).items()
            )
        )
        known = one.noisy.keys() <= weights.keys()
        cell = ("some" if one.noisy.keys() - {*rare} else "none") if known else _ANOTHER
        add("items of one user", {"none": none, "some": 1 - none}, cell)
    limit = math.log(2 * sum(len(chances) + 1 for chances, *_ in views.values()) / level) if views else 0.0
    table = _shown(sets)
    return [
        Misfit(table=table, view=view, cell=cell, chance=min(1.0, chances[cell] / number), seen=seen[cell], runs=number)
        for view, (chances, seen, number) in views.items()
        for cell in {**chances, **seen}
        if number * divergence(seen[cell] / number, min(1.0, chances[cell] / number)) > limit
    ]


def _weights(sets: _Sets, confirmed: frozenset[object], full: int, bits: int) -> dict[int, int]:
    """Return the exact weight of each item that is not confirmed. No user has more than K of them."""
    weights = dict[int, int]()
    for items, users in sets:
        rest = [item for item in items if item not in confirmed]
        for item in rest:
            weights[item] = weights.get(item, 0) + users * theorem.weight(len(rest), full, bits)
    return weights


def _distribution(
    noise: _core.Noise, least: int, weight: int, sigma: int
) -> tuple[dict[str, float], Callable[[int | None], str]]:
    """Return the probability of each cell of a noisy weight that is released from `least` on, and its cell."""
    edges = [least, *(max(least, weight + by) for by in (-sigma, 0, sigma))]
    above = [at_least(noise, edge - weight) for edge in edges] + [0.0]
    distribution = {_NOT_RELEASED: 1 - above[0]}
    distribution |= {name: high - low for name, high, low in zip(_CELLS[1:], above, above[1:], strict=False)}

    def cell(noisy: int | None) -> str:
        if noisy is None:
            return _NOT_RELEASED
        place = bisect_right(edges, noisy)
        return _CELLS[place] if place else "not above the threshold"

    return distribution, cell


def _shown(sets: _Sets) -> dict[str, int]:
    """Return the counts of the common and the rare items, and the number of other items."""
    counts = Counter[int]()
    for items, users in sets:
        counts.update(dict.fromkeys(items, users))
    named = {str(item): counts[item] for item in range(_HEADS + _RARE)}
    return {**named, "items of few users": len(counts) - len(named)}


def _twins(mechanism: CalibratedCounts, sets: _Sets, table: Table, rng: _core.Rng) -> list[Misfit]:
    """Return a misfit if releases differ from those of the reference with the same random bits."""
    lists, given, differ = _lists(sets), plan(mechanism), 0
    size = 1 + max(item for items, _ in sets for item in items)
    order = np.argsort(-np.bincount([item for items in lists for item in items], minlength=size), kind="stable")
    for _ in range(_TWINS):
        seed = int(rng.words(1)[0])
        draws = seeded_rng(seed)

        def kept(rest: Sequence[Sequence[int]], most: int, draws: _core.Rng = draws) -> list[Sequence[int]]:
            draws.words(8)  # the key of a choice of items, which no user needs
            return [items for items in rest if items]

        found = reference.release(lists, size, given, kept, draws)
        heads, later, expected = found.confirmed, found.calibrated, dict[int, int]()
        if heads is not None:
            values = zip(order[heads.rows].tolist(), heads.values.tolist(), strict=True)
            expected = {item: round((value + found.users[0]) / 2) for item, value in values}
        if later is not None:
            expected |= dict(zip(later.rows.tolist(), np.rint(later.estimates).astype(int).tolist(), strict=True))
        release = mechanism.release(table, rng=seeded_rng(seed))
        users = release.users is not None and release.users[0] == round(found.users[0])
        differ += release.to_dict() != expected or not users
    if not differ:
        return []
    cell = "differs from the slower implementation"
    return [Misfit(table=_shown(sets), view="the release", cell=cell, chance=0.0, seen=differ, runs=_TWINS)]
