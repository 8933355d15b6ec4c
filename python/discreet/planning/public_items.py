"""The mechanisms for public items, which need no delta, from public parameters only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from discreet import mechanisms
from discreet.errors import ParameterError
from discreet.mechanisms.parameters import RELATIVE_ERROR
from discreet.planning.choose import choose, required, stated
from discreet.privacy.conversion import cdp_rho, round_down
from discreet.privacy.guarantee import Promising, require_promise, resolve_rho, unusual
from discreet.privacy.validation import is_equal, is_zero, require_whole

if TYPE_CHECKING:
    from discreet.mechanisms.counts.given_counts import GivenCounts
    from discreet.mechanisms.fewest import Notes

__all__ = ["for_public_items", "public_counts", "public_top_k", "with_known"]

_Made = TypeVar("_Made", bound=Promising)
_ANY_DELTA = 1e-6
"""A delta with which the other parameters are validated if there is none."""


def public_counts(
    items: tuple[Any, ...],
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    l0: int | None = None,
    counts_users: bool = True,
) -> tuple[GivenCounts, Notes]:
    """Return the mechanism that counts public items with the least noise for a guarantee, and the reason for it.

    `counts_users` says whether the table counts users together with items, which `CorrelatedCounts` needs.

    Raises:
        ParameterError: A parameter is missing or out of range.
    """
    own, pure = _spendable(rho, epsilon, delta)
    l0 = None if l0 is None else require_whole("l0", l0, 1)
    kinds: list[Callable[[], GivenCounts]] = []
    if pure is not None:
        kinds.append(lambda: mechanisms.LaplaceCounts.from_epsilon(items=items, epsilon=pure, l0=l0))
    if own is not None:
        kinds.append(lambda: mechanisms.GaussianCounts.from_rho(items=items, rho=own, l0=l0))
    is_unbounded = l0 is None or l0 >= len(items)
    if own is not None and is_unbounded and counts_users:
        kinds.append(lambda: mechanisms.CorrelatedCounts(items=items, rho=own))
    made = sorted(_possible(kinds, epsilon), key=lambda mechanism: mechanism.deviation)
    described = [f"{type(mechanism).__name__} {mechanism.deviation:.4g}" for mechanism in made]
    reasons = [f"{described[0]} has the least standard deviation of noise (others: {', '.join(described[1:])})"]
    if own is not None and is_unbounded and not counts_users:
        reasons.append(
            "this backend does not count users in the query that counts items, so counts have no noise in common, and "
            "about twice the standard deviation"
        )
    return made[0], tuple(reasons[len(made) == 1 :])


def public_top_k(
    items: tuple[Any, ...],
    *,
    k: int,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
) -> tuple[mechanisms.ExponentialMechanism, Notes]:
    """Return the mechanism that ranks public items with the least noise for a guarantee; see `public_counts`."""
    own, pure = _spendable(rho, epsilon, delta)
    kind, kinds = mechanisms.ExponentialMechanism, list[Callable[[], mechanisms.ExponentialMechanism]]()
    if pure is not None:
        kinds.append(lambda: kind.from_epsilon(items=items, epsilon=pure, k=k))
    if own is not None:
        kinds.append(lambda: kind.from_rho(items=items, rho=own, k=k))
    return min(_possible(kinds, epsilon), key=lambda mechanism: mechanism.scale), ()


def for_public_items(
    items: tuple[Any, ...],
    *,
    others: bool,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    l0: int | None = None,
    relative_error: float = RELATIVE_ERROR,
    counts_users: bool = True,
) -> tuple[GivenCounts | mechanisms.KnownItems | mechanisms.CountsWithPublicItems, Notes]:
    """Return the mechanism of `count` for public items, and for other items too, and the reasons for it.

    Raises:
        ParameterError: A parameter is missing, out of range or without use.
    """
    if not others:
        if not is_equal(relative_error, RELATIVE_ERROR):
            raise ParameterError.about(
                "{items} excludes {relative_error}, because all counts have the same noise: leave out either of them"
            )
        return public_counts(items, rho=rho, epsilon=epsilon, delta=delta, l0=l0, counts_users=counts_users)
    delta = required(delta)
    if l0 is not None:
        found, notes = choose("count", rho=rho, epsilon=epsilon, delta=delta, l0=l0, relative_error=relative_error)
        return with_known(found, items), notes
    own, rest = resolve_rho(rho, epsilon, delta)
    made = mechanisms.CountsWithPublicItems(items=items, rho=own, delta=rest, relative_error=relative_error)
    return made, unusual(stated(made, epsilon, delta))


def with_known(found: object, items: Iterable[object]) -> mechanisms.KnownItems:
    """Return a mechanism that counts public items without its threshold, and other items with it."""
    # With l0, `choose` returns a mechanism with a threshold. KnownItems raises an error for any other.
    parameters: dict[str, Any] = {"mechanism": found, "items": tuple(items)}
    return mechanisms.KnownItems(**parameters)


def _spendable(rho: float | None, epsilon: float | None, delta: float | None) -> tuple[float | None, float | None]:
    """Return the rho of noise in zCDP and the epsilon of pure noise; None for noise without this guarantee."""
    is_pure = delta is None or is_zero(delta)
    rho, epsilon, total = require_promise(rho, epsilon, _ANY_DELTA if is_pure else delta)  # type: ignore[arg-type]
    if epsilon is None:
        return rho, None
    # All of delta goes to the conversion. Both numbers are rounded down, so that the guarantee implies this epsilon in
    # spite of its own roundings.
    return None if is_pure else round_down(cdp_rho(epsilon, round_down(total, 64)), 64), epsilon


def _possible(kinds: Iterable[Callable[[], _Made]], epsilon: float | None) -> list[_Made]:
    """Return the mechanisms that can be made, or raise an error that names epsilon if the caller gave it."""
    made, refused = list[_Made](), ParameterError("no mechanism has this guarantee; give a larger rho or epsilon")
    for make in kinds:
        try:
            mechanism = make()
            _ = mechanism.guarantee
            made.append(mechanism)
        except ParameterError as error:  # out of the range of this mechanism: try the next
            refused = error
    if not made and epsilon is not None and {*refused.names} & {"rho", "scale", "sigma"}:
        other = "smaller" if epsilon > 1 else "larger"
        raise ParameterError.about("no noise has an {epsilon} of {:g}: give a {} one", epsilon, other)
    if not made:
        raise refused
    return made
