"""Plans: the noise, threshold, guarantee and release chances of a mechanism, before any data is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from discreet.errors import ParameterError
from discreet.mechanisms.counts.confirmed_counts import ConfirmedCounts
from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.top_k.discover_and_peel import DiscoverAndPeel
from discreet.mechanisms.union.set_union import UnionMechanism
from discreet.planning.choose import VERBS, Parameters, Verb, choose, stated, users_for
from discreet.privacy.guarantee import Guarantee
from discreet.queries.choose import AnswerPlan, plan_answers
from discreet.release import plot
from discreet.streams.base import StreamMechanism
from discreet.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plan", "plan"]

Planned = HistogramMechanism | StreamMechanism | UnionMechanism | DiscoverAndPeel
"""The mechanisms whose items have a release chance by their number of users."""
_ONE_BY_ONE = (ConfirmedCounts, PrivateCountRelease)
"""Mechanisms that select items one after another, each at a cost."""
_WORST = ("SetUnion(", "IteratedSetUnion(", "DiscoverAndPeel(")
"""Mechanisms whose chances are for the worst case: no other user has the other items of an item's users."""
_LARGEST = (1_000, 10_000, 100_000, 1_000_000)
"""The largest counts for which a plan forecasts the number of released items."""
_DOUBLINGS = 8
"""The number of entries in the lists of affordable items and of deviations. Each entry doubles the users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The behaviour of a mechanism, computed from its parameters only.

    For a top-k mechanism that considers k_bar items, a number of users is a difference: how many more users an item has
    than the (k_bar+1)-th item. For a set union, the chances are for the worst case, in which users have no other items
    in common.

    Args:
        mechanism: The mechanism and its parameters.
        guarantee: The guarantee of the mechanism.
        deviation: The standard deviation of the noise of every count; None if the mechanism publishes no counts, or if
            the deviation depends on the count.
        users_for_50_percent: The least number of users (or events, if these are protected) for which an item has a 50 %
            chance of a release.
        users_for_95_percent: The least number of users for a chance of 95 %.
        chances: Pairs of a number of users and the chance that an item with this number is released.
        affordable: For `PrivateCountRelease`: pairs of a number of users and about how many items with this number
            the budget suffices for.
        forecast: For mechanisms that select items one after another, on counts that follow Zipf's law (the i-th is 1/i
            of the largest): triples of the largest count, about how many items are released, and the smallest of their
            counts. With a forecast, `users_for_50_percent` and the chances are for a single item, and are not printed.
        reasons: The reasons for this mechanism, if it was chosen.
        deviations: If the noise grows with the count: pairs of a number of users and the standard deviation of a count
            of this number.
        memory: The most bytes that a stream keeps for one item, in addition to its label.

    Example:
        >>> import discreet as dp
        >>> forecast = dp.plan("select", epsilon=1, delta=1e-6, l0=1)
        >>> forecast.users_for_50_percent < forecast.users_for_95_percent
        True
    """

    mechanism: str
    guarantee: Guarantee
    deviation: float | None
    users_for_50_percent: int
    users_for_95_percent: int
    chances: tuple[tuple[int, float], ...]
    affordable: tuple[tuple[int, int], ...] = ()
    forecast: tuple[tuple[int, int, int], ...] = ()
    reasons: tuple[str, ...] = ()
    deviations: tuple[tuple[int, float], ...] = ()
    memory: int | None = None

    def __str__(self) -> str:
        lines = [self.mechanism, f"guarantee: {self.guarantee.promise}"]
        if self.deviation is not None:
            lines.append(f"noise of standard deviation {self.deviation:.4g} on every count")
        if self.memory is not None:
            lines.append(
                f"in the round with the most noise; at most {self.memory:,} bytes for an item, without its label"
            )
        if self.deviations:
            ends = [(number, _rounded(sigma)) for number, sigma in (self.deviations[0], self.deviations[-1])]
            on = " and ".join(f"{sigma} on a count of {number:,}" for number, sigma in ends)
            lines.append(f"noise of a standard deviation (sigma) that depends on the count: {on}")
        unit = self.guarantee.unit
        if not self.forecast:
            half, nearly = counted(self.users_for_50_percent, unit), f"{self.users_for_95_percent:,}"
            worst = "in the worst case, " if self.mechanism.startswith(_WORST) else ""
            lines.append(f"{worst}an item needs {half} for a 50 % chance of a release, {nearly} for 95 %")
            lines += [
                f"{number:>12,} {_noun(number, unit):<{len(unit) + 1}}  {chance:10.4g}"
                for number, chance in self.chances
            ]
        if self.forecast:
            lines.append(
                f"If counts follow Zipf's law (the second item has half as many {unit}s as the first, the third a "
                "third), about"
            )
            lines += [
                f"{items:>12,} {_noun(items, 'item')} {'is' if items == 1 else 'are'} released, down to about "
                f"{counted(smallest, unit)}, if the first has {largest:,}"
                for largest, items, smallest in self.forecast
            ]
        return "\n".join([*lines, *self.reasons])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    def to_json(self) -> str:
        """Return the plan as JSON."""
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

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Plot the release chance over the number of users (needs matplotlib).

        Args:
            ax: The axes to draw into; pyplot's current axes by default.
            options: Options of `Axes.plot`, such as a color.

        Returns:
            Matplotlib Axes, which a notebook shows.
        """
        users, chances = zip(*self.chances, strict=True)
        return plot.curve(users, chances, title=self.mechanism, ax=ax, options=options)


@overload
def plan(mechanism: Literal["answer_queries"], **parameters: Unpack[Parameters]) -> AnswerPlan: ...
@overload
def plan(mechanism: Planned | Verb = "count", **parameters: Unpack[Parameters]) -> Plan: ...
@overload
def plan(mechanism: str, **parameters: Unpack[Parameters]) -> Plan | AnswerPlan: ...
def plan(mechanism: Planned | str = "count", **parameters: Unpack[Parameters]) -> Plan | AnswerPlan:
    """Forecast the behaviour of a mechanism or a public function, without data.

    The plan of a stream is for the round with the widest noise. The plan of "answer_queries" compares the errors of all
    methods.

    Args:
        mechanism: A mechanism, or the name of a function: "count", "top_k", "select" or "answer_queries".
        parameters: Keyword arguments of the function: rho or epsilon, delta, l0, k and so on. For "answer_queries", k
            is the number of queries.

    Returns:
        A Plan, or for "answer_queries" an AnswerPlan. Print it to read the forecast.

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
            forecast: Callable[..., AnswerPlan] = plan_answers
            return forecast(**parameters)
        except TypeError as error:
            raise ParameterError(f"answer_queries: {str(error).partition('() ')[2]}") from None
    if isinstance(mechanism, str):
        made, reasons = choose(mechanism, **parameters)
        return _planned(made, stated(made, parameters.get("epsilon"), parameters.get("delta")), reasons)
    if hasattr(mechanism, "guarantee") and not isinstance(mechanism, Planned):
        kind = type(mechanism).__name__
        raise ParameterError(
            f"a {kind} does not release items by their numbers of users, so it has no plan; see its guarantee"
        )
    if not isinstance(mechanism, Planned) or parameters:
        raise ParameterError(f"plan takes either a mechanism, or the name and parameters of a function: {VERBS}")
    return _planned(mechanism, mechanism.guarantee, ())


def _planned(mechanism: Planned, guarantee: Guarantee, reasons: tuple[str, ...]) -> Plan:
    half, nearly = (users_for(mechanism, chance) for chance in (0.5, 0.95))
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
    """Return the noun of `counted`, for a number in its own column."""
    return counted(number, noun).partition(" ")[2]


def _deviation(mechanism: Planned) -> float | None:
    if isinstance(mechanism, StreamMechanism):
        return mechanism.deviation(mechanism.widest)
    deviation: float | None = getattr(mechanism, "deviation", None)
    return deviation
