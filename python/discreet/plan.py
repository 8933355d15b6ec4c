"""What a mechanism will do, before any data: its noise, its threshold, its guarantee, whom it names; and the
choice between mechanisms from public parameters alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, overload

from discreet import plot
from discreet.errors import ParameterError
from discreet.mechanisms.discover_and_peel import DiscoverAndPeel
from discreet.mechanisms.gaussian_threshold import GaussianThreshold
from discreet.mechanisms.gumbel_top_k import GumbelTopK
from discreet.mechanisms.iterated_set_union import IteratedSetUnion
from discreet.mechanisms.laplace_threshold import LaplaceThreshold
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.optimal_selection import OptimalSelection
from discreet.mechanisms.private_count_release import PrivateCountRelease
from discreet.mechanisms.set_union import METHODS as UNION_METHODS
from discreet.mechanisms.set_union import SetUnion, UnionMechanism
from discreet.mechanisms.stream_mechanism import StreamMechanism
from discreet.mechanisms.tails import least
from discreet.mechanisms.truncated_geometric import TruncatedGeometric
from discreet.privacy import Guarantee, require_whole, resolve_rho
from discreet.queries.choice import AnswerPlan, plan_answers

__all__ = ["Plan", "choose", "plan", "stated"]

_LIMIT = 2**36
_VERBS = "count, top_k, select or, in a plan, answer_queries"
_CLOSE, _FAR = 1.3, 1.5
"""Up to so many times as many users as by a threshold may be needed where users share nothing, by the greedy method and
by rounds, for what they share in fact."""

Planned = Mechanism | StreamMechanism | UnionMechanism | DiscoverAndPeel
"""What can be planned by the number of users that an item needs."""


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
    half: int
    """The least number of users, or of events where those are protected, that an item needs for a chance of 50 %
    to be released."""
    nearly: int
    """The same for 95 %."""
    chances: tuple[tuple[int, float], ...]
    """Numbers of users, and the chance that an item of so many is released."""
    reasons: tuple[str, ...] = ()
    """Why this mechanism, where there was a choice."""
    memory: int | None = None
    """The most bytes that a stream keeps for one item, beside its label."""

    def __str__(self) -> str:
        lines = [self.mechanism, f"promises {self.guarantee}"]
        lines.append("and ({:.4g}, {:.4g})-DP".format(*self.guarantee.quoted))
        if self.deviation is not None:
            lines.append(f"noise of standard deviation {self.deviation:.4g} on every count")
        if self.memory is not None:
            lines.append(f"at the widest; {self.memory:,} bytes for an item, beside its label")
        what = f"{self.guarantee.unit}s"
        lines.append(f"an item needs {self.half:,} {what} for a chance of 50 %, {self.nearly:,} for 95 %")
        lines += [f"{number:>12,} {what}  {chance:10.4g}" for number, chance in self.chances]
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
                "bytes_per_item": self.memory,
                "users_for_50_percent": self.half,
                "users_for_95_percent": self.nearly,
                "chances": [{"users": users, "chance": chance} for users, chance in self.chances],
                "reasons": list(self.reasons),
            },
            indent=1,
        )

    def plot(self) -> Any:
        """Draws the chances over the users; returns matplotlib Axes (needs discreet[plot])."""
        users, chances = zip(*self.chances, strict=True)
        return plot.curve(users, chances, title=self.mechanism)


@overload
def plan(mechanism: Literal["answer_queries"], **parameters: Any) -> AnswerPlan: ...
@overload
def plan(mechanism: Planned | str = "count", **parameters: Any) -> Plan: ...
def plan(mechanism: Planned | str = "count", **parameters: Any) -> Plan | AnswerPlan:
    """What a mechanism, or the verb "count", "top_k", "select" or "answer_queries" with these parameters, will do;
    without data.

    Of a stream: what it will do in a round of its widest noise. Of "answer_queries", whose number of queries is k: the
    errors of every method.
    `plan(GumbelTopK.from_rho(k=10, rho=1, delta=1e-6))` or `plan("count", rho=1, delta=1e-6, l0=10)`.
    Raises ParameterError where a parameter is missing or out of range.
    """
    if isinstance(mechanism, str) and mechanism.replace("-", "_") == "answer_queries":
        try:
            return plan_answers(**parameters)
        except TypeError as error:
            raise ParameterError(f"answer_queries: {str(error).partition('() ')[2]}") from None
    if isinstance(mechanism, str):
        made, reasons = choose(mechanism, **parameters)
        return _planned(made, stated(made, parameters.get("epsilon"), parameters.get("delta")), reasons)
    if not isinstance(mechanism, Planned) or parameters:
        raise ParameterError(f"plan takes a mechanism, or the parameters of a verb: {_VERBS}")
    return _planned(mechanism, mechanism.guarantee, ())


def _planned(mechanism: Planned, guarantee: Guarantee, reasons: tuple[str, ...]) -> Plan:
    half, nearly = _users_for(mechanism, 0.5), _users_for(mechanism, 0.95)
    steps = sorted({1, *(max(1, round(half * x)) for x in (0.25, 0.5, 0.75, 0.9)), half, nearly, 2 * half})
    return Plan(
        mechanism=repr(mechanism),
        guarantee=guarantee,
        deviation=_deviation(mechanism),
        memory=mechanism.item_bytes if isinstance(mechanism, StreamMechanism) else None,
        half=half,
        nearly=nearly,
        chances=tuple((users, mechanism.release_chance(users)) for users in steps),
        reasons=reasons,
    )


def stated(mechanism: Planned, epsilon: float | None, delta: float | None) -> Guarantee:
    """The mechanism's guarantee, quoted as it was asked for where that was by epsilon."""
    guarantee = mechanism.guarantee
    return guarantee if epsilon is None or delta is None else guarantee.stating(epsilon, delta)


def _deviation(mechanism: Planned) -> float | None:
    if isinstance(mechanism, StreamMechanism):
        return mechanism.deviation(mechanism.widest)
    deviation: float | None = getattr(mechanism, "deviation", None)
    return deviation


def _users_for(mechanism: Planned, chance: float) -> int:
    """The least number of users with this chance of a release; 2^36 where none has."""
    return least(lambda users: users >= _LIMIT or mechanism.release_chance(users) >= chance)


def choose(verb: str, **parameters: Any) -> tuple[Any, tuple[str, ...]]:
    """The mechanism of a verb and why it was chosen, from public parameters alone."""
    verbs: dict[str, Callable[..., tuple[Any, tuple[str, ...]]]] = {
        "count": _for_count,
        "top_k": _for_top_k,
        "select": _for_select,
    }
    verb = verb.replace("-", "_")
    if verb not in verbs:
        raise ParameterError(f"there is no verb {verb!r}: use {_VERBS}; or give a mechanism")
    try:
        return verbs[verb](**parameters)
    except TypeError as error:
        raise ParameterError(f"{verb}: {str(error).partition('() ')[2]}") from None


def _for_count(
    *,
    delta: float,
    rho: float | None = None,
    epsilon: float | None = None,
    l0: int | None = None,
    relative_error: float = 0.1,
    k_bar: int = 10_000,
    epsilon_star: float = 0.0005,
    delta_star: float = 1e-11,
    spend: bool = False,
) -> tuple[Mechanism, tuple[str, ...]]:
    own_rho, own_delta = resolve_rho(rho, epsilon, delta)
    if l0 is not None:
        if (relative_error, k_bar, epsilon_star, delta_star, spend) != (0.1, 10_000, 0.0005, 1e-11, False):
            raise ParameterError("with l0 leave out relative_error, k_bar, epsilon_star, delta_star and spend")
        return _lowest([TruncatedGeometric, GaussianThreshold, LaplaceThreshold], rho, epsilon, delta, l0)
    try:
        mechanism = PrivateCountRelease(
            rho=own_rho,
            delta=own_delta,
            relative_error=relative_error,
            k_bar=k_bar,
            epsilon_star=epsilon_star,
            delta_star=delta_star,
            spend=spend,
        )
    except ParameterError as error:
        if epsilon is None:
            raise
        spent = f"epsilon = {epsilon:g} and delta = {delta:g} leave rho = {own_rho:.4g} and delta = {own_delta:g}"
        raise ParameterError(f"{error} ({spent})") from None
    return mechanism, ()


def _for_top_k(
    *,
    k: int,
    delta: float,
    rho: float | None = None,
    epsilon: float | None = None,
    k_bar: int = 1_000,
    method: str = "gumbel",
    l0: int | None = None,
) -> tuple[Any, tuple[str, ...]]:
    resolve_rho(rho, epsilon, delta)
    if method == "discover+peel":
        if l0 is None:
            raise ParameterError('method="discover+peel" needs l0, the most items of a user that it looks at')
        if rho is not None:
            return DiscoverAndPeel.from_rho(k=k, rho=rho, delta=delta, l0=l0), ()
        return DiscoverAndPeel.from_epsilon(k=k, epsilon=epsilon, delta=delta, l0=l0), ()  # type: ignore[arg-type]
    if method != "gumbel":
        raise ParameterError(f'there is no method {method!r}: use "gumbel" or "discover+peel"')
    if l0 is not None:
        raise ParameterError('l0 goes with method="discover+peel": by "gumbel" a user may have any number of items')
    if rho is not None:
        return GumbelTopK.from_rho(k=k, rho=rho, delta=delta, k_bar=k_bar), ()
    return GumbelTopK.from_epsilon(k=k, epsilon=epsilon, delta=delta, k_bar=k_bar), ()  # type: ignore[arg-type]


def _for_select(
    *,
    delta: float,
    l0: int,
    rho: float | None = None,
    epsilon: float | None = None,
    method: str = "auto",
    rows_here: bool = True,
) -> tuple[Mechanism | UnionMechanism, tuple[str, ...]]:
    """By a threshold for one item of a user, greedily for few, by rounds of set union for more; or as was asked for.

    The greedy method needs the rows on this machine.
    """
    resolve_rho(rho, epsilon, delta)
    if method not in ("auto", "threshold", "dp_sips", *UNION_METHODS):
        known = ", ".join(["auto", "threshold", "dp_sips", *UNION_METHODS])
        raise ParameterError(f"there is no method {method!r}: use {known}")
    l0 = require_whole("l0", l0, 1)

    def made(kind: Any, **more: Any) -> Any:
        if rho is not None:
            return kind.from_rho(rho=rho, delta=delta, l0=l0, **more)
        return kind.from_epsilon(epsilon=epsilon, delta=delta, l0=l0, **more)

    if method == "threshold" or (method == "auto" and l0 == 1):
        kinds = [OptimalSelection, TruncatedGeometric, GaussianThreshold, LaplaceThreshold]
        return _lowest(kinds, rho, epsilon, delta, l0)
    if method == "dp_sips":
        return made(IteratedSetUnion), ()
    if method != "auto":
        return made(SetUnion, method=method), ()
    threshold, reasons = _for_select(delta=delta, l0=l0, rho=rho, epsilon=epsilon, method="threshold")
    needed = _users_for(threshold, 0.5)
    for kind, more, close in ((SetUnion, {"method": "greedy"}, _CLOSE), (IteratedSetUnion, {}, _FAR)):
        if more and not rows_here:
            continue
        try:
            union = made(kind, **more)
        except ParameterError:  # a method of a narrower range leaves the others
            continue
        users = _users_for(union, 0.5)
        if users <= close * needed:
            name = "greedy" if more else "dp_sips"
            return union, (
                f"{kind.__name__} was chosen (method {name}), which gains from what users share: half of the time it "
                f"names an item of {users:,} users where they share nothing else, often of fewer where they do; "
                f"a threshold on counts needs {needed:,} either way",
            )
    return threshold, reasons


def _lowest(
    kinds: list[Any], rho: float | None, epsilon: float | None, delta: float, l0: int
) -> tuple[Mechanism, tuple[str, ...]]:
    """Of the mechanisms that keep the promise the one that names an item of the fewest users half of the time."""
    resolve_rho(rho, epsilon, delta)
    half, refused = {}, None
    for kind in kinds:
        try:
            if rho is not None:
                mechanism = kind.from_rho(rho=rho, delta=delta, l0=l0)
            else:
                mechanism = kind.from_epsilon(epsilon=epsilon, delta=delta, l0=l0)
            half[mechanism] = _users_for(mechanism, 0.5)
        except ParameterError as error:  # a mechanism of a narrower range leaves the others
            refused = error
    if not half:
        raise refused or ParameterError("no mechanism keeps this promise")
    best = min(half, key=lambda mechanism: half[mechanism])
    others = ", ".join(f"{type(m).__name__} {users:,}" for m, users in half.items() if m is not best)
    reason = f"{type(best).__name__} was chosen: it names an item of {half[best]:,} users half of the time"
    return best, (f"{reason} ({others})" if others else reason,)
