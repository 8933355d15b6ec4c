"""What a mechanism will do, before any data: its noise, its threshold, its guarantee, whom it names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, overload

from discreet.errors import ParameterError
from discreet.mechanisms.counts.confirmed_counts import ConfirmedCounts
from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.top_k.discover_and_peel import DiscoverAndPeel
from discreet.mechanisms.union.set_union import UnionMechanism
from discreet.planning.choose import VERBS, choose, users_for
from discreet.privacy.guarantee import Guarantee
from discreet.queries.choose import AnswerPlan, plan_answers
from discreet.release import plot
from discreet.streams.base import StreamMechanism
from discreet.wording import counted

__all__ = ["Plan", "plan", "stated"]

Planned = HistogramMechanism | StreamMechanism | UnionMechanism | DiscoverAndPeel
"""What can be planned by the number of users that an item needs."""
_ONE_BY_ONE = (ConfirmedCounts, PrivateCountRelease)
"""Mechanisms that pay for items one after the other."""
_LARGEST = (1_000, 10_000, 100_000, 1_000_000)
"""The largest counts for which a plan says how many items are named."""
_DOUBLINGS = 8
"""How often the number of users is doubled for which a plan says how many items are paid for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a mechanism will do, from its parameters alone.

    Where ranks decide, users are those that an item has more than the (k_bar+1)-th one.
    """

    mechanism: str
    """The mechanism and its parameters."""
    guarantee: Guarantee
    """What it promises."""
    deviation: float | None
    """The standard deviation of a count's noise, None where it publishes no counts or has several."""
    users_for_50_percent: int
    """The least number of users, or of events where those are protected, that an item needs for a chance of 50 %
    to be released."""
    users_for_95_percent: int
    """The same for 95 %."""
    chances: tuple[tuple[int, float], ...]
    """Numbers of users, and the chance that an item of so many is released."""
    affordable: tuple[tuple[int, int], ...] = ()
    """Where items are selected one after another: numbers of users, and about how many items of so many users each the
    promise pays for. `users_for_50_percent` and the chances are then those of an item alone, and are not printed."""
    forecast: tuple[tuple[int, int, int], ...] = ()
    """Where items are named one after another and counts follow a law of Zipf, the i-th a share 1/i of the largest: the
    largest count, about how many items are named, and the smallest of their counts."""
    reasons: tuple[str, ...] = ()
    """Why this mechanism, where there was a choice."""
    deviations: tuple[tuple[int, float], ...] = ()
    """Where the noise grows with the count: numbers of users, and the standard deviation of the count of an item of so
    many."""
    memory: int | None = None
    """The most bytes that a stream keeps for one item, beside its label."""

    def __str__(self) -> str:
        lines = [self.mechanism, f"promises {self.guarantee.promise}"]
        if self.deviation is not None:
            lines.append(f"noise of standard deviation {self.deviation:.4g} on every count")
        if self.memory is not None:
            lines.append(f"at the widest; {self.memory:,} bytes for an item, beside its label")
        if self.deviations:
            ends = [(number, _rounded(sigma)) for number, sigma in (self.deviations[0], self.deviations[-1])]
            on = " and ".join(f"{sigma} on a count of {number:,}" for number, sigma in ends)
            lines.append(f"noise of a standard deviation (sigma) that depends on the count: {on}")
        unit = self.guarantee.unit
        if not self.forecast:
            half, nearly = counted(self.users_for_50_percent, unit), f"{self.users_for_95_percent:,}"
            lines.append(f"an item needs {half} for a chance of 50 %, {nearly} for 95 %")
            lines += [
                f"{number:>12,} {_noun(number, unit):<{len(unit) + 1}}  {chance:10.4g}"
                for number, chance in self.chances
            ]
        if self.forecast:
            lines.append(
                "Where the second item has half as many users as the first, the third a third, and so on, about"
            )
            lines += [
                f"{items:>12,} {_noun(items, 'item')} are named, down to about {counted(smallest, unit)}, "
                f"where the first has {largest:,}"
                for largest, items, smallest in self.forecast
            ]
        return "\n".join([*lines, *self.reasons])

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(
            {
                "mechanism": self.mechanism,
                "rho": self.guarantee.rho,
                "delta": self.guarantee.delta,
                "unit": self.guarantee.unit,
                "dp": self.guarantee.dp,
                "deviation": self.deviation,
                "deviations": [{"users": users, "deviation": sigma} for users, sigma in self.deviations],
                "bytes_per_item": self.memory,
                "users_for_50_percent": self.users_for_50_percent,
                "users_for_95_percent": self.users_for_95_percent,
                "chances": [{"users": users, "chance": chance} for users, chance in self.chances],
                "affordable": [{"users": users, "items": items} for users, items in self.affordable],
                "forecast": [
                    {"largest": largest, "items": items, "smallest": smallest}
                    for largest, items, smallest in self.forecast
                ],
                "reasons": list(self.reasons),
            },
            indent=1,
        )

    def plot(self) -> Any:
        """Draws the chances over the users; returns matplotlib Axes (needs matplotlib)."""
        users, chances = zip(*self.chances, strict=True)
        return plot.curve(users, chances, title=self.mechanism)


@overload
def plan(mechanism: Literal["answer_queries"], **parameters: Any) -> AnswerPlan: ...
@overload
def plan(mechanism: Planned | str = "count", **parameters: Any) -> Plan: ...
def plan(mechanism: Planned | str = "count", **parameters: Any) -> Plan | AnswerPlan:
    """Say what a mechanism or a verb will do, without data.

    A plan of a stream is about the round with the widest noise. A plan of "answer_queries" compares the errors of all
    methods.

    Args:
        mechanism: A mechanism, or a verb: "count", "top_k", "select" or "answer_queries".
        **parameters: Those of the verb: rho or epsilon, delta, l0, k and so on; for "answer_queries" also k, the number
            of queries.

    Returns:
        A Plan, or for "answer_queries" an AnswerPlan. Both print what they say.

    Raises:
        ParameterError: A parameter is missing or out of range.

    Example:
        >>> import discreet as dp
        >>> dp.plan("count", rho=1, delta=1e-6, l0=10).users_for_50_percent < 20
        True
        >>> round(dp.plan(dp.GumbelTopK.from_rho(k=10, rho=1, delta=1e-6)).guarantee.rho, 6)
        1.0
    """
    if isinstance(mechanism, str) and mechanism.replace("-", "_") == "answer_queries":
        try:
            return plan_answers(**parameters)
        except TypeError as error:
            raise ParameterError(f"answer_queries: {str(error).partition('() ')[2]}") from None
    if isinstance(mechanism, str):
        made, reasons = choose(mechanism, **parameters)
        return _planned(made, stated(made, parameters.get("epsilon"), parameters.get("delta")), reasons)
    if hasattr(mechanism, "guarantee") and not isinstance(mechanism, Planned):
        kind = type(mechanism).__name__
        raise ParameterError(
            f"a {kind} releases no items by their numbers of users, and has no plan; see its guarantee"
        )
    if not isinstance(mechanism, Planned) or parameters:
        raise ParameterError(f"plan takes a mechanism, or the parameters of a verb: {VERBS}")
    return _planned(mechanism, mechanism.guarantee, ())


def _planned(mechanism: Planned, guarantee: Guarantee, reasons: tuple[str, ...]) -> Plan:
    half, nearly = (users_for(mechanism.release_chance, chance) for chance in (0.5, 0.95))
    forecast = _forecast(mechanism)
    steps = sorted({1, *(max(1, round(half * x)) for x in (0.25, 0.5, 0.75, 0.9)), half, nearly, 2 * half})
    return Plan(
        mechanism=repr(mechanism),
        guarantee=guarantee,
        deviation=_deviation(mechanism),
        deviations=_deviations(mechanism, min((smallest for *_, smallest in forecast), default=nearly)),
        memory=mechanism.item_bytes if isinstance(mechanism, StreamMechanism) else None,
        users_for_50_percent=half,
        users_for_95_percent=nearly,
        chances=tuple((users, mechanism.release_chance(users)) for users in steps),
        affordable=_affordable(mechanism, nearly),
        forecast=forecast,
        reasons=reasons,
    )


def _forecast(mechanism: Planned) -> tuple[tuple[int, int, int], ...]:
    if not isinstance(mechanism, _ONE_BY_ONE):
        return ()
    found = ((largest, *mechanism.forecast(largest)) for largest in _LARGEST)
    return tuple(row for row in found if row[1])


def _affordable(mechanism: Planned, users: int) -> tuple[tuple[int, int], ...]:
    if not isinstance(mechanism, PrivateCountRelease):
        return ()
    found = ((users << doubled, mechanism.affordable(users << doubled)) for doubled in range(_DOUBLINGS))
    return tuple((number, items) for number, items in found if items)


def _deviations(mechanism: Planned, users: int) -> tuple[tuple[int, float], ...]:
    if not isinstance(mechanism, _ONE_BY_ONE):
        return ()
    found = ((users << doubled, mechanism.deviation_of(users << doubled)) for doubled in range(_DOUBLINGS))
    return tuple((number, sigma) for number, sigma in found if sigma is not None)


def _rounded(sigma: float) -> str:
    return f"{sigma:,.0f}" if sigma >= 100 else f"{sigma:.3g}"


def _noun(number: int, noun: str) -> str:
    """The noun of `counted`, for a number in a column."""
    return counted(number, noun).partition(" ")[2]


def stated(mechanism: Planned, epsilon: float | None, delta: float | None) -> Guarantee:
    """The mechanism's guarantee, quoted as it was asked for where that was by epsilon."""
    guarantee = mechanism.guarantee
    return guarantee if epsilon is None or delta is None else guarantee.stating(epsilon, delta)


def _deviation(mechanism: Planned) -> float | None:
    if isinstance(mechanism, StreamMechanism):
        return mechanism.deviation(mechanism.widest)
    deviation: float | None = getattr(mechanism, "deviation", None)
    return deviation
