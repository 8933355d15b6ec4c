"""The least rho or epsilon at which an item of a given number of users is named with a probability of 95 %."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import ParameterError
from discreet.mechanisms.composed.discover_and_peel import DiscoverAndPeel
from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.top_k.gumbel import GumbelTopK
from discreet.mechanisms.union.iterated_set_union import IteratedSetUnion
from discreet.planning.choose import choose
from discreet.privacy.guarantee import RHO_LIMIT
from discreet.tables.histogram import Histogram
from discreet.testing import seeded_rng
from discreet.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.mechanisms.fewest import Notes
    from discreet.planning.choose import Chosen, Parameters
    from discreet.planning.sources import PublicData

__all__ = ["CHANCE", "Needed", "bound_of", "needed", "one_by_one"]

CHANCE = 0.95
_TRIALS = 200
"""The number of trials of a simulated chance. All trials of one search use the same seeds."""
_DRAWS, _MOST_RUNS = 100, 20
_FEW, _MOST_TOGETHER = 20, 20
"""One run tries at most 20 items of equal counts, and at most one in 20 of the more common items."""
_RUNS = 4
"""The number of runs on the rows of public data, each with `_FEW` items."""
_NEAR = 0.25
"""The largest distance of an item from the number of users, as the logarithm of a ratio."""
_DIGITS = 90
"""The number of numbers of two digits."""
_LEAST = {"rho": 1e-4, "epsilon": 1e-2}
_MOST = {"rho": RHO_LIMIT, "epsilon": 1000.0}
_EXAMPLES = (1.0, 0.1, 10.0)
"""Values of rho and epsilon that show whether the other parameters are valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """The answer of a plan with `users`: the least rho or epsilon that names an item of `users` users.

    Args:
        users: The number of users of the item.
        chance: The probability that the item is named.
        rho: The least rho from 0.0001 on, rounded up to two digits; None if the caller asked in epsilon, or if no rho
            suffices.
        epsilon: The least epsilon from 0.01 on, rounded up to two digits; None if the caller asked in rho, or if no
            epsilon suffices.
        simulated: Whether the chance is simulated on public data. It is exact otherwise.
        like: The public data of the simulation; empty if the chance is exact.
        l0: The bound on a user's items, if the chance is exact. The number of users is then the number after clipping.

    Example:
        >>> import discreet as dp
        >>> found = dp.plan("count", delta=1e-6, l0=10, users=50).needed
        >>> found.rho < dp.plan("count", delta=1e-6, l0=10, users=20).needed.rho
        True
    """

    users: int
    chance: float
    rho: float | None
    epsilon: float | None
    simulated: bool
    like: str
    l0: int | None = None

    def __str__(self) -> str:
        found = [f"{name} = {value:g}" for name, value in (("rho", self.rho), ("epsilon", self.epsilon)) if value]
        item = f"an item of {counted(self.users, 'user')}"
        if self.l0 is not None:
            item += f" after clipping to l0={self.l0:,}"
        on = f", simulated on public data ({self.like})" if self.simulated else ""
        if not found:
            return f"No rho or epsilon in range names {item} with a chance of {self.chance:.0%}{on}."
        return f"{item[0].upper()}{item[1:]} is named with a chance of {self.chance:.0%} at {' or '.join(found)}{on}."


def needed(verb: str, parameters: Parameters, users: int, source: PublicData | None) -> Needed:
    """Return the least rho or epsilon for an item of this many users: the one that the caller gave, or both."""
    given = [name for name in ("rho", "epsilon") if parameters.get(name) is not None]
    if len(given) > 1:
        raise ParameterError("give at most one of rho and epsilon with users=: the answer is in its terms")
    rest: dict[str, object] = {name: value for name, value in parameters.items() if name not in ("rho", "epsilon")}
    answers: dict[str, float | None] = {"rho": None, "epsilon": None}
    simulated, l0 = False, parameters.get("l0")
    for name in given or answers:
        answers[name], example = _least(verb, name, rest, users, source)
        simulated, l0 = one_by_one(example), bound_of(example)
    return Needed(
        users=users,
        chance=CHANCE,
        simulated=simulated,
        like=_named(source, verb, rest, users) if simulated and source is not None else "",
        l0=None if simulated else l0,
        **answers,
    )


def _least(
    verb: str, name: str, rest: dict[str, object], users: int, source: PublicData | None
) -> tuple[float | None, Chosen]:
    """Return the least value of rho or epsilon, and a mechanism of the same kind."""
    ask: Callable[..., tuple[Chosen, Notes]] = choose

    def made(value: float) -> Chosen | None:
        try:
            return ask(verb, **{name: value}, **rest)[0]
        except ParameterError:  # too small for any noise
            return None

    example = next((found for value in _EXAMPLES if (found := made(value)) is not None), None)
    if example is None:
        return None, ask(verb, **{name: _EXAMPLES[0]}, **rest)[0]  # raises the error of the other parameters
    if source is None and one_by_one(example):
        raise ParameterError.about(
            "items compete here, so the chance of one item depends on the others: give {like:=}, a public table or "
            "numbers"
        )

    @cache
    def suffices(value: float) -> bool:
        mechanism = made(value)
        return mechanism is not None and _chance(mechanism, users, source) >= CHANCE

    return _least_of_two_digits(suffices, _LEAST[name], _MOST[name]), example


def bound_of(mechanism: object) -> int | None:
    """Return the most items of a user that a mechanism uses, or None."""
    first = mechanism.rounds[0] if isinstance(mechanism, IteratedSetUnion) else mechanism
    found: int | None = getattr(first, "l0", None)
    return found


def _named(source: PublicData, verb: str, rest: dict[str, object], users: int) -> str:
    """Return the name of the public data, and whether confirmed items alone were simulated."""
    alone = verb == "count" and rest.get("l0") is None and _near(source, users) is None
    return f"{source.name}, with confirmed items alone: few items have about this many users" if alone else source.name


def one_by_one(mechanism: object) -> bool:
    """Return whether the items of a mechanism compete for its budget or its k."""
    return getattr(mechanism, "items_compete", False)


def _chance(mechanism: Chosen, users: int, source: PublicData | None) -> float:
    """Return the probability that an item of this many users is named, among the items of the public data."""
    if source is None:
        return mechanism.release_chance(users)
    if isinstance(mechanism, DiscoverAndPeel):
        ranked = _ranked(mechanism.epsilon, mechanism.k, users, source.counts, -math.inf)
        rank = min(int(np.searchsorted(-source.counts, -users)), len(source.counts) - 1)
        clipped = source.clipped(mechanism.l0)
        kept = 1.0 if clipped is None else clipped[rank] / max(int(source.counts[rank]), 1)
        return mechanism.release_chance(math.floor(users * min(kept, 1.0))) * ranked
    if isinstance(mechanism, GumbelTopK):
        candidates = source.counts[: mechanism.k_bar]
        bottom = int(source.counts[mechanism.k_bar]) if len(source.counts) > mechanism.k_bar else 0
        return _ranked(mechanism.gamma, mechanism.k, users, candidates, mechanism.offset + mechanism.gamma * bottom)
    if isinstance(mechanism, CalibratedCounts):
        return _on_rows(mechanism, users, source)
    if isinstance(mechanism, HistogramMechanism) and one_by_one(mechanism):
        return _simulated(mechanism, users, source)
    return mechanism.release_chance(users)


def _on_rows(mechanism: CalibratedCounts, users: int, source: PublicData) -> float:
    """Return the share of the items with about this many users that are named.

    If few items have about this many users, it is the chance that such an item is confirmed.
    """
    table, near = source.held(), _near(source, users)
    if table is None or near is None:
        return _simulated(mechanism.heads, users, source)
    named = 0
    for seed in range(1, _RUNS + 1):
        ranks = source.ranks(mechanism.release(table, rng=seeded_rng(seed)).items)
        named += int(np.isin(near, ranks).sum())
    return named / (_RUNS * len(near))


def _near(source: PublicData, users: int) -> NDArray[np.intp] | None:
    """Return the ranks of some items with about this many users in the rows of public data; None if they are few."""
    if source.held() is None:
        return None
    distance = np.abs(np.log(np.maximum(source.drawn, 0.5) / users))
    near = np.argsort(distance, kind="stable")[:_FEW]
    return near if len(near) == _FEW and distance[near].max() <= _NEAR else None


def _ranked(gamma: float, k: int, users: int, counts: NDArray[np.int64], stop: float) -> float:
    """Return the probability that an item has one of the k largest scores, and a larger one than the stop element.

    A score is gamma times the count, plus standard Gumbel noise. The scores of the others are drawn. Given these, the
    probability of the item is exact.
    """
    random = np.random.default_rng(1)  # public data, so plans may repeat it
    own = int(np.searchsorted(-counts, -users))
    others = np.delete(counts, min(own, len(counts) - 1))  # the item takes the place of the one nearest to it
    total = 0.0
    for _ in range(_DRAWS):
        scores = gamma * others + random.gumbel(size=len(others))
        bar = stop + random.gumbel() if math.isfinite(stop) else stop
        if k <= len(scores):
            bar = max(bar, float(np.partition(scores, len(scores) - k)[len(scores) - k]))
        total += -math.expm1(-math.exp(min(gamma * users - bar, 700.0)))
    return total / _DRAWS


def _simulated(mechanism: HistogramMechanism, users: int, source: PublicData) -> float:
    """Return the share of runs that name an item of this many users.

    The item replaces the item of the public data that is nearest to it. Some neighbours get the same count, as long as
    they are few of all more common items, so that a run tries several items.
    """
    rank = int(np.searchsorted(-source.counts, -users))
    together = min(max(1, rank // _FEW), _MOST_TOGETHER, len(source.counts))
    start = min(max(0, rank - together // 2), len(source.counts) - together)
    counts = np.array(source.counts)
    counts[start : start + together] = users
    known = None if source.users is None else max(source.users, users)
    items = np.arange(len(counts))
    table = Histogram.from_counts(items, counts, l0=None, linf=1, complete=True, users=known)
    runs, named = min(-(-_TRIALS // together), _MOST_RUNS), 0
    for seed in range(1, runs + 1):
        ranks = np.array(mechanism.release(table, rng=seeded_rng(seed)).items, np.int64)
        named += int(np.count_nonzero((ranks >= start) & (ranks < start + together)))
    return named / (runs * together)


def _least_of_two_digits(suffices: Callable[[float], bool], least: float, largest: float) -> float | None:
    """Return the least number of two digits that suffices; None if there is none up to `largest`.

    The search goes up by half a decade until a number suffices, because a run with a large budget takes longer. Then it
    halves the interval.
    """
    end, power = _DIGITS * round(math.log10(largest / least)), round(math.log10(least)) - 1
    low, high = 0, 0
    while not suffices(_two_digits(high, power)):
        if high == end:
            return None
        low, high = high + 1, min(high + _DIGITS // 2, end)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(_two_digits(middle, power)) else (middle + 1, high)
    return _two_digits(low, power)


def _two_digits(number: int, power: int) -> float:
    """Return the numbers 10 to 99 times 10^power, then 10 to 99 times ten times as much, and so on, by their place."""
    return float(f"{10 + number % _DIGITS}e{power + number // _DIGITS}")
