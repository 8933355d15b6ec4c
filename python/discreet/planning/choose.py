"""The choice of a mechanism, from public parameters only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, Unpack, overload

from discreet import mechanisms
from discreet.errors import ParameterError
from discreet.logs import debug
from discreet.mechanisms.base import FromEpsilon, Made, made_for
from discreet.mechanisms.fewest import Notes, WithReleaseChance, fewest_users, users_for, with_counts
from discreet.mechanisms.parameters import K_BAR, RELATIVE_ERROR
from discreet.mechanisms.union.methods import UNION_METHODS
from discreet.privacy.guarantee import Guarantee, Promising, require_promise, resolve_rho, unusual
from discreet.privacy.validation import in_terms_of, is_equal, require_choice, require_whole

if TYPE_CHECKING:
    from discreet.mechanisms import CalibratedCounts, DiscoverAndPeel, HistogramMechanism, UnionMechanism

__all__ = [
    "SURE",
    "VERBS",
    "Chosen",
    "Parameters",
    "Verb",
    "choose",
    "reliability",
    "require_parameters",
    "required",
    "stated",
]

VERBS = "count, top_k, select or, in a plan, answer_queries"
"""The functions that have a plan, as text for errors."""
_LAPLACE_RATIO, _DP_SIPS_RATIO = 1.2, 1.5
"""The largest accepted ratios for "policy_laplace" and for dp_sips.

A ratio is the number of users that an item needs with the set union, divided by the number with a threshold.

The ratio is for the worst case of a set union, in which users have no other items in common. In practice users have
items in common, and an item needs fewer users. "policy_laplace" stays below its ratio for an l0 of up to about three.
For such an l0, "policy_laplace" releases more items than dp_sips if users have about l0 items. If users have more
items, it releases nearly as many."""
SURE, _MISSED = 10, 1e-6
"""An item with 10 times the users for a 50 % chance should be missed with a probability of at most this."""
_NO_VERBS = {
    "stream": "give it the mechanism of a stream, such as Stream.recommended(...)",
    "sum": "a mechanism of sums, such as DiscoverAndSum, has a guarantee and release_chance(users)",
    "aggregate": "mechanisms.Aggregates has a guarantee, scales and release_chance(users)",
}
"""How to forecast what has no plan by name."""
_ANY_ITEMS = 100
"""The most items of a user that `select` uses without l0.

Users with fewer items give the same weights with any bound above. On four shapes of data, at rho 0.1 and 1, dp_sips
with this bound named 0.79 to 1 times the items of the best bound among 1 to 300, and 6 to 13 times those of l0=1 where
users have many items."""
_SHARED = (
    f"at most {_ANY_ITEMS} items of each user count. They share one weight, so this bound costs users of few items "
    "little; l0=1 is best if users have one item"
)


Verb: TypeAlias = Literal["count", "top_k", "select"]
Chosen: TypeAlias = "HistogramMechanism | UnionMechanism | DiscoverAndPeel | CalibratedCounts"


class Parameters(TypedDict, total=False):
    """The parameters of the public functions. Each function takes some of them."""

    rho: float | None
    epsilon: float | None
    delta: float
    l0: int | None
    k: int
    k_bar: int
    relative_error: float
    method: str
    rows_here: bool
    """Whether this machine reads the rows, so that a mechanism that needs them may be chosen."""


def required(delta: float | None) -> float:
    """Return delta, or raise ParameterError if it is missing."""
    if delta is None:
        raise ParameterError.about(
            "{delta} is missing: give the probability that the guarantee fails, far below 1 / users"
        )
    return delta


def reliability(mechanism: WithReleaseChance) -> Notes:
    """Return a note with the release chance of an item of many users, if such an item may be missed."""
    users = SURE * users_for(mechanism, 0.5)
    chance = mechanism.release_chance(users)
    if chance >= 1 - _MISSED:
        return ()
    return (
        f"an item of {users:,} users, {SURE} times as many as for a 50 % chance, is released with a chance of only "
        f"{chance:.7f}",
    )


@overload
def choose(
    verb: Literal["count"], /, **parameters: Unpack[Parameters]
) -> tuple[HistogramMechanism | CalibratedCounts, Notes]: ...
@overload
def choose(
    verb: Literal["top_k"], /, **parameters: Unpack[Parameters]
) -> tuple[HistogramMechanism | DiscoverAndPeel, Notes]: ...
@overload
def choose(
    verb: Literal["select"], /, **parameters: Unpack[Parameters]
) -> tuple[HistogramMechanism | UnionMechanism, Notes]: ...
@overload
def choose(verb: str, /, **parameters: Unpack[Parameters]) -> tuple[Chosen, Notes]: ...
def choose(verb: str, /, **parameters: Unpack[Parameters]) -> tuple[Chosen, Notes]:
    """Return the mechanism of a public function and the reasons for it, from public parameters only."""
    verbs: dict[str, Callable[..., tuple[Chosen, Notes]]] = {
        "count": _for_count,
        "top_k": _for_top_k,
        "select": _for_select,
    }
    if verb in _NO_VERBS:
        raise ParameterError(f"plan takes no {verb!r}: {_NO_VERBS[verb]}")
    verb = require_choice("the function of a plan", verb.replace("-", "_"), (*verbs, "answer_queries"))
    require_parameters(verb, verbs[verb], parameters)
    with in_terms_of(parameters.get("rho"), parameters.get("epsilon"), parameters.get("delta")):
        made, reasons = verbs[verb](**parameters)
    notes = (*reasons, *unusual(_asked(made.guarantee, parameters)))
    debug("%s: %r was chosen from the parameters, without data", verb, made)
    for note in notes:
        debug("%s: %s", verb, note)
    return made, notes


def require_parameters(verb: str, function: Callable[..., object], parameters: Mapping[str, object]) -> None:
    """Raise ParameterError for a parameter that a function does not have, or for one that is missing."""
    known = signature(function).parameters
    for name in parameters:
        if name not in known:
            require_choice(f"a parameter of {verb}", name, sorted(known.keys() - {"rows_here"}))
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in parameters:
            raise ParameterError(f"{verb} needs {name}: it is missing")


def _asked(guarantee: Guarantee, parameters: Parameters) -> Guarantee:
    """Return the guarantee in the caller's terms: with epsilon if the caller gave epsilon."""
    epsilon, delta = parameters.get("epsilon"), parameters["delta"]
    return guarantee if epsilon is None else guarantee.stating(float(epsilon), float(delta))


def stated(mechanism: Promising, epsilon: float | None, delta: float | None) -> Guarantee:
    """Return the mechanism's guarantee, quoted as (epsilon, delta)-DP if the caller gave epsilon.

    A pure guarantee keeps its delta of zero.
    """
    guarantee = mechanism.guarantee
    is_pure = guarantee.dp is not None and guarantee.dp[1] == 0
    if epsilon is None or delta is None or is_pure:
        return guarantee
    # The mechanism was chosen for these floats. A Decimal would be rounded up, and not fit a budget of the same number.
    return guarantee.stating(float(epsilon), float(delta))


def _for_count(
    *,
    delta: float,
    rho: float | None = None,
    epsilon: float | None = None,
    l0: int | None = None,
    relative_error: float = RELATIVE_ERROR,
    k_bar: int = K_BAR,
) -> tuple[HistogramMechanism | CalibratedCounts, Notes]:
    require_promise(rho, epsilon, delta)
    if isinstance(l0, str):
        raise ParameterError('a plan of count needs l0 as a number: l0="auto" finds the number in the data')
    if l0 is not None:
        if not (is_equal(relative_error, RELATIVE_ERROR) and is_equal(k_bar, K_BAR)):
            raise ParameterError.about("{l0} excludes {relative_error} and {k_bar}: leave out either {l0} or these")
        return fewest_users(with_counts(), rho, epsilon, delta, l0)
    own_rho, own_delta = resolve_rho(rho, epsilon, delta)
    made = mechanisms.CalibratedCounts(rho=own_rho, delta=own_delta, relative_error=relative_error, k_bar=k_bar)
    return made, ()


def _for_top_k(
    *,
    k: int,
    delta: float,
    rho: float | None = None,
    epsilon: float | None = None,
    k_bar: int = 1_000,
    method: str = "gumbel",
    l0: int | None = None,
) -> tuple[HistogramMechanism | DiscoverAndPeel, Notes]:
    require_promise(rho, epsilon, delta)
    require_choice("method", method, ("gumbel", "discover+peel"))
    if method == "discover+peel":
        if l0 is None:
            raise ParameterError.about(
                '{method:"discover+peel"} needs {l0}: the most items of one user that count in the search for items'
            )
        return made_for(mechanisms.DiscoverAndPeel, rho, epsilon, delta=delta, k=k, l0=l0), ()
    if l0 is not None:
        raise ParameterError.about(
            '{l0} needs {method:"discover+peel"}; with "gumbel" a user may have any number of items, so leave out {l0}'
        )
    return made_for(mechanisms.GumbelTopK, rho, epsilon, delta=delta, k=k, k_bar=k_bar), ()


def _for_select(
    *,
    delta: float,
    l0: int | None = None,
    rho: float | None = None,
    epsilon: float | None = None,
    method: str = "auto",
    rows_here: bool = True,
) -> tuple[HistogramMechanism | UnionMechanism, Notes]:
    """Return the mechanism of a method, and the reasons for it.

    Without l0, "auto" means dp_sips with at most 100 items of a user. With l0, it means a threshold for l0=1. For a
    larger l0, it means the first of "policy_laplace" and dp_sips whose worst case is acceptable, or a threshold. It
    considers "policy_laplace" only with an epsilon and rows on this machine.
    """
    require_promise(rho, epsilon, delta)
    require_choice("method", method, ("auto", "threshold", "dp_sips", *UNION_METHODS))
    notes: Notes = ()
    if l0 is None:
        if method == "threshold":
            raise ParameterError.about('{method:"threshold"} needs {l0}: the most items of a user that count')
        l0, method, notes = _ANY_ITEMS, "dp_sips" if method == "auto" else method, (_SHARED,)
    l0 = require_whole("l0", l0, 1)

    def made(kind: FromEpsilon[Made], **more: object) -> Made:
        return made_for(kind, rho, epsilon, delta=delta, l0=l0, **more)

    if method == "dp_sips":
        rounds = made(mechanisms.IteratedSetUnion)
        return rounds, (*notes, *reliability(rounds))
    if method not in ("auto", "threshold"):
        union = made(mechanisms.SetUnion, method=method)
        return union, (*notes, *reliability(union))
    threshold, reasons = fewest_users((mechanisms.OptimalSelection, *with_counts()), rho, epsilon, delta, l0)
    # For a given rho, the Laplace noise of "policy_laplace" is larger than the Gaussian noise of dp_sips.
    laplace = rows_here and epsilon is not None
    found = None if method == "threshold" or l0 == 1 else _set_union(made, threshold, laplace)
    chosen, reasons = found or (threshold, reasons)
    return chosen, (*reasons, *reliability(chosen))


def _set_union(
    made: Callable[..., UnionMechanism], threshold: HistogramMechanism, laplace: bool
) -> tuple[UnionMechanism, Notes] | None:
    """Return the first set union whose ratio to the threshold is accepted, with the reason for it; or None."""
    needed = users_for(threshold, 0.5)
    kinds: tuple[tuple[str, FromEpsilon[UnionMechanism], dict[str, object], float], ...] = (
        ("policy_laplace", mechanisms.SetUnion, {"method": "policy_laplace"}, _LAPLACE_RATIO),
        ("dp_sips", mechanisms.IteratedSetUnion, {}, _DP_SIPS_RATIO),
    )
    for name, kind, more, ratio in kinds[not laplace :]:
        try:
            union = made(kind, **more)
        except ParameterError:  # parameters out of this method's range: try the next
            continue
        users = users_for(union, 0.5)
        if users <= ratio * needed:
            return union, (
                f"{type(union).__name__} was chosen (method {name}): it usually releases more items than a "
                f"threshold on counts, because users have items in common. In the worst case, an item needs {users:,} "
                f"users for a 50 % chance of a release. With the threshold, an item always needs {needed:,}",
            )
    return None
