"""Plans: the noise, threshold, guarantee and release chances of a mechanism, before any data is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack, cast, overload

from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.composed.discover_and_peel import DiscoverAndPeel
from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts
from discreet.mechanisms.counts.confirmed_counts import ConfirmedCounts
from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
from discreet.mechanisms.fewest import users_for
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.parameters import require_relative_error
from discreet.mechanisms.union.set_union import UnionMechanism
from discreet.planning.candidates import compared, compared_alone
from discreet.planning.choose import VERBS, Chosen, Parameters, Verb, choose, reliability, require_parameters, stated
from discreet.planning.inverse import Needed, needed, one_by_one
from discreet.planning.sources import PublicData, source_of
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_whole
from discreet.queries.choose import AnswerPlan, plan_answers
from discreet.release import plot
from discreet.streams.base import FORECAST, StreamMechanism
from discreet.streams.endless import EndlessMechanism
from discreet.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.engines.projection import Names
    from discreet.planning.comparison import PlanComparison

__all__ = ["NUMBERS", "Plan", "plan"]

NUMBERS = (
    "To forecast it for your data, give like=dp.Shape.of_numbers(users=..., median=..., p95=...): the users, and the "
    "items of the median user and of one at the 95th percentile. Or give a public table as like=."
)
"""The advice of a plan without public data."""

Planned = HistogramMechanism | StreamMechanism | UnionMechanism | DiscoverAndPeel | CalibratedCounts
"""The mechanisms whose items have a release chance by their number of users."""
_WITH_FORECAST = (ConfirmedCounts, PrivateCountRelease)
"""Mechanisms that forecast the number of released items, and have another noise for each count."""
_LARGEST = (1_000, 10_000, 100_000, 1_000_000)
"""The largest counts for which a plan forecasts the number of released items."""
_ALL_ITEMS = (
    "A user may have any number of items. Where users have several, it confirms common items and estimates the counts "
    "of many rarer ones."
)
_DOUBLINGS = 8
"""The number of entries in the lists of affordable items and of deviations. Each entry doubles the users."""


class _Question(NamedTuple):
    """The question of a plan: a verb with its parameters, or one mechanism, on public data."""

    asked: Verb | str | Chosen
    parameters: Parameters
    source: PublicData | None


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """The behaviour of a mechanism, computed from its parameters and public data only.

    `comparison` is a forecast on public data, the shape or table that the caller gave as `like`. It is computed when
    it is first read or printed. Without `like`, the plan says only what does not depend on data.

    For `CalibratedCounts`, these numbers of users are those of a confirmed item without competitors. `comparison` runs
    the whole mechanism, which releases rarer items too.

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
            counts.
        reasons: The reasons for this mechanism, if it was chosen.
        deviations: If the noise grows with the count: pairs of a number of users and the standard deviation of a count
            of this number.
        memory: The most bytes that a stream keeps for one item, in addition to its label.
        rounds: The number of rounds of a stream that the plan covers.
        grows: Whether the stream has later rounds with more noise.
        needed: The least rho or epsilon that names an item of the given number of users; None if no number was given.
        single_item: Whether `users_for_50_percent`, `users_for_95_percent` and the chances are for an item without
            competitors, because the mechanism selects one item after another. They are not printed then.
        worst_case: Whether the chances are for the worst case: the users of an item share none of their other items.

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
    rounds: int | None = None
    grows: bool = False
    needed: Needed | None = None
    single_item: bool = False
    worst_case: bool = False
    _question: _Question | None = field(default=None, compare=False)

    @cached_property
    def comparison(self) -> PlanComparison | None:
        """The forecasts of all mechanisms that could do the job; None without `like`, or for a stream."""
        asked, parameters, source = self._question or (None, {}, None)
        if asked is None or source is None:
            return None
        return compared(asked, parameters, source) if isinstance(asked, str) else compared_alone(asked, source)

    def __str__(self) -> str:
        return self.text(NUMBERS)

    def text(self, advice: str) -> str:
        """Return the plan as lines of text.

        Args:
            advice: The sentence at the end of a plan without public data.

        Returns:
            The lines, joined.
        """
        return "\n".join([*self._lines(advice), *([] if self.comparison is None else [str(self.comparison)])])

    def _lines(self, advice: str) -> list[str]:
        """Return the lines that depend on no data."""
        lines = [self.mechanism, f"guarantee: {self.guarantee.promise}"]
        if self.deviation is not None:
            lines.append(f"noise of standard deviation {self.deviation:.4g} on every count")
        if self.memory is not None:
            rounds = counted(self.rounds or 0, "round")
            of = f"the first {rounds}, and more in later ones" if self.grows else rounds
            lines.append(f"in the noisiest of {of}; at most {self.memory:,} bytes for an item, without its label")
        if self.deviations:
            ends = [(number, _rounded(sigma)) for number, sigma in (self.deviations[0], self.deviations[-1])]
            on = " and ".join(f"{sigma} on a count of {number:,}" for number, sigma in ends)
            lines.append(f"noise of a standard deviation (sigma) that depends on the count: {on}")
        unit = self.guarantee.unit if self.rounds is None else "event"
        if not self.single_item:
            half, nearly = counted(self.users_for_50_percent, unit), f"{self.users_for_95_percent:,}"
            worst = "in the worst case, " if self.worst_case else ""
            lines.append(f"{worst}an item needs {half} for a 50 % chance of a release, {nearly} for 95 %")
            lines += [
                f"{number:>12,} {_noun(number, unit):<{len(unit) + 1}}  {chance:10.4g}"
                for number, chance in self.chances
            ]
        lines += self.reasons
        if self.needed is not None:
            lines.append(str(self.needed))
        if self._question is not None and self._question.source is None:
            lines.append(f"How many items it names depends on the data. {advice}")
        return lines

    def __repr__(self) -> str:
        return str(self)

    def _repr_png_(self) -> bytes | None:
        """Return the plot as PNG for notebooks, or None without matplotlib or a forecast."""
        if self.single_item and self.comparison is None:
            return None
        try:
            return plot.picture(self.plot)
        except ImportError:
            return None

    def _repr_html_(self) -> str:
        import base64
        import html

        lines = html.escape("\n".join(self._lines(NUMBERS)))
        compared = "" if self.comparison is None else self.comparison._repr_html_()
        text, picture = f'<pre style="white-space:pre-wrap">{lines}</pre>{compared}', self._repr_png_()
        if picture is None:
            return text
        # A notebook shows HTML and not the PNG, so the picture is part of the HTML.
        source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        return f'{text}<img alt="{html.escape(self.mechanism)}" src="{source}">'

    def to_dict(self) -> dict[str, object]:
        """Return the plan as plain values, the comparison included."""
        return {
            "mechanism": self.mechanism,
            "rho": self.guarantee.rho,
            "delta": self.guarantee.delta,
            "unit": self.guarantee.unit,
            "dp": self.guarantee.dp,
            "deviation": self.deviation,
            "deviations": [{"users": users, "deviation": sigma} for users, sigma in self.deviations],
            "bytes_per_item": self.memory,
            "rounds": self.rounds,
            "single_item": self.single_item,
            "users_for_50_percent": self.users_for_50_percent,
            "users_for_95_percent": self.users_for_95_percent,
            "chances": [{"users": users, "chance": chance} for users, chance in self.chances],
            "affordable": [{"users": users, "items": items} for users, items in self.affordable],
            "forecast": [
                {"largest": largest, "items": items, "smallest": smallest} for largest, items, smallest in self.forecast
            ],
            "reasons": list(self.reasons),
            "needed": None if self.needed is None else asdict(self.needed),
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def plot(self, ax: Axes | None = None, **options: object) -> Axes:
        """Plot the release chance over the number of users (needs matplotlib).

        For mechanisms that select one item after another, plot how many items the compared mechanisms name instead.

        Args:
            ax: The axes to draw into; by default pyplot's current ones if they are empty, else a new figure.
            options: Options of `Axes.plot` or `Axes.barh`, such as a color.

        Returns:
            Matplotlib Axes, which a notebook shows.
        """
        if self.single_item:
            if self.comparison is None:
                raise ParameterError("a plan without public data has no forecast to plot: give like= to plan")
            rows = self.comparison.rows
            names, values = [row.label for row in rows], [row.score[0] for row in rows]
            return plot.shares(names, values, title=self.mechanism, label=self.comparison.goal, ax=ax, options=options)
        users, chances = zip(*self.chances, strict=True)
        return plot.curve(users, chances, title=self.mechanism, ax=ax, options=options)


@overload
def plan(mechanism: Literal["answer_queries"], **parameters: Unpack[Parameters]) -> AnswerPlan: ...
@overload
def plan(
    mechanism: Planned | Verb = "count",
    *,
    like: object = None,
    user: Names | None = None,
    item: Names | None = None,
    users: int | None = None,
    **parameters: Unpack[Parameters],
) -> Plan: ...
@overload
def plan(
    mechanism: str,
    *,
    like: object = None,
    user: Names | None = None,
    item: Names | None = None,
    users: int | None = None,
    **parameters: Unpack[Parameters],
) -> Plan | AnswerPlan: ...
def plan(
    mechanism: Planned | str = "count",
    *,
    like: object = None,
    user: Names | None = None,
    item: Names | None = None,
    users: int | None = None,
    **parameters: Unpack[Parameters],
) -> Plan | AnswerPlan:
    """Forecast the behaviour of a mechanism or a public function, without private data.

    The plan compares all mechanisms that could do the job, on public data: how many items each of them names, how many
    of their counts are close to the true count, and what clipping loses. The recommended mechanism has the most items
    within `relative_error` of the true count. The choice of the mechanism that the function uses does not depend on
    `like`.

    The plan of a stream is for the round with the widest noise. The plan of "answer_queries" compares the errors of all
    methods.

    Args:
        mechanism: A mechanism, or the name of a function: "count", "top_k", "select" or "answer_queries".
        like: The public data for the forecast: a `Shape`, such as `Shape.of_numbers(...)`, a public table, with `user`
            and `item`, a dict of counts by item, or a Release of counts. It is read WITHOUT privacy. Without it there
            is no forecast.
        user: The name of the column of users of a public table, or of several columns.
        item: The name of the column of items of a public table, or of several columns.
        users: Also find the least rho at which an item of this number of users is named with 95 %, or the least
            epsilon if epsilon is given. With neither, it finds both, and the plan is for that rho.
        parameters: Keyword arguments of the function: rho or epsilon, delta, l0, k and so on. For "answer_queries", k
            is the number of queries.

    Returns:
        A Plan, or for "answer_queries" an AnswerPlan. Print it to read the forecast.

    Raises:
        ParameterError: A parameter is missing or out of range.

    Example:
        >>> import discreet as dp
        >>> shape = dp.Shape(users=5_000, items=2_000, exponent=1.0, items_per_user=10)
        >>> for row in dp.plan("top_k", k=5, rho=1, delta=1e-6, like=shape).comparison.rows[:1]:
        ...     print(row.name, row.items, row.in_top_k)
        gumbel 5 5
        >>> dp.plan("count", delta=1e-6, l0=10, users=50).needed.rho
        0.11
    """
    given = {"like": like, "user": user, "item": item, "users": users}
    if isinstance(mechanism, str) and mechanism.replace("-", "_") == "answer_queries":
        _require_none(given, "a plan of answer_queries needs no data")
        forecast: Callable[..., AnswerPlan] = plan_answers
        require_parameters("answer_queries", forecast, parameters)
        return forecast(**parameters)
    if isinstance(mechanism, str):
        parameters = _plain(parameters)
        source, found = source_of(like, user, item), None
        if users is not None:
            found = needed(mechanism, parameters, require_whole("users", users, 1, 2**35), source)
            if parameters.get("rho") is None and parameters.get("epsilon") is None:
                if found.rho is None:
                    raise ParameterError(f"{str(found).rstrip('.')}: give more users, or a larger k")
                parameters = {**parameters, "rho": found.rho}
        made, reasons = choose(mechanism, **parameters)
        reasons = (_ALL_ITEMS, *reasons) if isinstance(made, CalibratedCounts) else reasons
        promise = stated(made, parameters.get("epsilon"), parameters.get("delta"))
        return _planned(made, promise, reasons, _Question(mechanism, parameters, source), found)
    if hasattr(mechanism, "guarantee") and not isinstance(mechanism, Planned):
        chance = (
            ", and its release_chance(users) for the chance of an item" if hasattr(mechanism, "release_chance") else ""
        )
        raise ParameterError(f"a {type(mechanism).__name__} has no plan: see its guarantee{chance}")
    if not isinstance(mechanism, Planned) or parameters or users is not None:
        raise ParameterError(f"plan takes either a mechanism, or the name and parameters of a function: {VERBS}")
    if isinstance(mechanism, StreamMechanism):
        _require_none(given, "a plan of a stream needs no data")
        return _planned(mechanism, mechanism.guarantee, ())
    notes = () if one_by_one(mechanism) else reliability(mechanism)
    return _planned(mechanism, mechanism.guarantee, notes, _Question(mechanism, {}, source_of(like, user, item)))


def _plain(parameters: Parameters) -> Parameters:
    """Return parameters whose numbers are plain, for tables and texts; `choose` validates their ranges."""
    found = dict(parameters)
    for name in ("l0", "k", "k_bar"):
        if not isinstance(found.get(name), str | None):
            found[name] = require_whole(name, found[name], 1)
    if "relative_error" in found:
        found["relative_error"] = require_relative_error(found["relative_error"])
    return cast("Parameters", found)


def _require_none(given: dict[str, object], reason: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise ParameterError(f"{reason}: leave out {name}")


def _planned(
    mechanism: Planned,
    guarantee: Guarantee,
    reasons: tuple[str, ...],
    question: _Question | None = None,
    found: Needed | None = None,
) -> Plan:
    half, nearly = (users_for(mechanism, chance) for chance in (0.5, 0.95))
    forecast = _forecast(mechanism)
    steps = sorted({1, *(max(1, round(half * x)) for x in (0.25, 0.5, 0.75, 0.9)), half, nearly, 2 * half})
    return Plan(
        mechanism=repr(mechanism),
        guarantee=guarantee,
        deviation=_deviation(mechanism),
        deviations=_deviations(mechanism, min((smallest for *_, smallest in forecast), default=nearly)),
        memory=mechanism.item_bytes if isinstance(mechanism, StreamMechanism) else None,
        grows=isinstance(mechanism, EndlessMechanism),
        rounds=(mechanism.last_round or FORECAST) if isinstance(mechanism, StreamMechanism) else None,
        users_for_50_percent=half,
        users_for_95_percent=nearly,
        chances=tuple((users, mechanism.release_chance(users)) for users in steps),
        affordable=_affordable(mechanism, nearly),
        forecast=forecast,
        reasons=reasons,
        needed=found,
        single_item=one_by_one(mechanism),
        worst_case=isinstance(mechanism, UnionMechanism | DiscoverAndPeel),
        _question=question,
    )


def _forecast(mechanism: Planned) -> tuple[tuple[int, int, int], ...]:
    if not isinstance(mechanism, _WITH_FORECAST):
        return ()
    found = ((largest, *mechanism.forecast(largest)) for largest in _LARGEST)
    return tuple(row for row in found if row[1])


def _affordable(mechanism: Planned, users: int) -> tuple[tuple[int, int], ...]:
    if not isinstance(mechanism, PrivateCountRelease):
        return ()
    found = ((users << doubled, mechanism.affordable(users << doubled)) for doubled in range(_DOUBLINGS))
    return tuple((number, items) for number, items in found if items)


def _deviations(mechanism: Planned, users: int) -> tuple[tuple[int, float], ...]:
    if not isinstance(mechanism, _WITH_FORECAST):
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
