"""Which continual mechanism fits a promise."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

from discreet.errors import ParameterError
from discreet.privacy.validation import require_whole
from discreet.streams.base import StreamMechanism, require_horizon
from discreet.streams.binary import BinaryMechanism
from discreet.streams.honaker import HonakerMechanism
from discreet.streams.hybrid import HybridMechanism
from discreet.streams.square_root import SquareRootMechanism

__all__ = ["recommended"]

_SHORT = 10_000
"""Up to how many rounds an item that comes late costs little by mechanisms that draw noise for all before it."""


def recommended(
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float,
    l0: int,
    horizon: int | None = None,
    item_bytes: int = 4400,
    unit: Literal["event", "user"] = "event",
    linf: int = 1,
) -> StreamMechanism:
    """The continual mechanism that fits: of those with this promise the one with the lowest threshold at its
    widest, from public parameters alone.

    Without a `horizon` the hybrid mechanism. With one the binary mechanism; that with Honaker's estimates up to
    10,000 rounds, where late items cost little; the square root mechanism where an item takes no more than
    `item_bytes` of memory beside its label, which by default it does up to 1,063 rounds.

    `unit="user"` promises the same for a user, and needs a horizon: all rounds together must hold at most `l0`
    items of a user and each of them at most `linf` times, which is for the caller to see to.
    """
    if (rho is None) == (epsilon is None):
        raise ParameterError("give exactly one of rho and epsilon")
    promise: dict[str, Any] = {"delta": delta, "l0": l0}
    if horizon is None and (unit, linf) != ("event", 1):
        raise ParameterError("unit and linf need a horizon: say how many rounds there will be")
    promise |= {"rho": rho} if epsilon is None else {"epsilon": epsilon}
    make = "from_rho" if epsilon is None else "from_epsilon"
    if horizon is None:
        hybrid: StreamMechanism = getattr(HybridMechanism, make)(**promise)
        return hybrid
    horizon = require_horizon(horizon)
    promise |= {"unit": unit, "linf": linf}
    item_bytes = require_whole("item_bytes", item_bytes, 1)
    made: list[StreamMechanism] = [getattr(BinaryMechanism, make)(**promise, horizon=horizon)]
    for kind in (HonakerMechanism, SquareRootMechanism) if horizon <= _SHORT else ():
        with suppress(ParameterError):  # a narrower range leaves the others
            made.append(getattr(kind, make)(**promise, horizon=horizon))
    small = [mechanism for mechanism in made if mechanism.item_bytes <= item_bytes]
    return min(small or made[:1], key=lambda mechanism: mechanism.threshold(mechanism.widest))
