"""The choice of a continual mechanism for a guarantee."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from discreet.errors import ParameterError
from discreet.logs import debug
from discreet.privacy.guarantee import require_one
from discreet.privacy.validation import require_whole
from discreet.streams.base import StreamMechanism, require_horizon
from discreet.streams.binary import BinaryMechanism
from discreet.streams.epochs import EpochMechanism
from discreet.streams.honaker import HonakerMechanism
from discreet.streams.hybrid import HybridMechanism
from discreet.streams.square_root import SquareRootMechanism

__all__ = ["recommended"]

_EPOCHS = tuple(2**m for m in range(13, 6, -1))
"""The lengths of epochs without a horizon, the longest first. Shorter ones are hardly better than trees alone."""
_SHORT = 10_000
"""The most rounds for which late items cost little with mechanisms that draw noise for all earlier rounds."""


def recommended(
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float,
    l0: int,
    horizon: int | None = None,
    item_bytes: int = 4400,
    unit: Literal["event", "user"] = "event",
    linf: int | None = None,
    rounds: int | None = None,
) -> StreamMechanism:
    """Return the continual mechanism with the lowest threshold in its widest round, for this guarantee.

    The choice depends on public parameters alone. With a `horizon` it is usually `SquareRootMechanism` up to 1,055
    rounds, `HonakerMechanism` up to 10,000, and `BinaryMechanism` beyond. Without a horizon it is `EpochMechanism` with
    the longest epochs that `item_bytes` allows, from 128 to 8,192 rounds. With less memory it is `HybridMechanism`.

    Args:
        rho: The privacy cost of all rounds together, in zCDP. Give exactly one of `rho` and `epsilon`.
        epsilon: The epsilon of the (epsilon, delta)-DP guarantee of all rounds together.
        delta: The probability that the guarantee fails; with `epsilon` the total delta.
        l0: The most items that one event contributes, or a user in each round.
        horizon: The number of rounds, fixed before the data is seen; by default a stream has no end.
        item_bytes: The most memory for one item, in bytes, without its label.
        unit: The protected unit, "event" or "user". "user" needs a horizon, and either `rounds` or limits that you
            enforce: a user has at most `l0` items in all rounds together, and each of them at most `linf` times.
        linf: The most times that a user contributes an item. You must make sure of it; it is not checked. With
            `rounds`, and for `unit="event"`, it is 1.
        rounds: The most rounds in which the stream counts a user, with at most `l0` items in each. The stream enforces
            it: it keeps the number of rounds of each user.

    Returns:
        A mechanism; `start` opens a stream of it.

    Raises:
        ParameterError: A parameter is missing or out of range.

    Example:
        >>> import discreet as dp
        >>> type(dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=365)).__name__
        'SquareRootMechanism'
    """
    require_one(rho, epsilon)
    promise: dict[str, object] = {"delta": delta, "l0": l0}
    if unit == "event" and (rounds is not None or linf not in (None, 1)):
        raise ParameterError.about("{rounds} and {linf} limit a user: give {unit:'user'} too")
    if unit == "user" and linf is None and rounds is None:
        raise ParameterError.about(
            "{unit:'user'} needs {rounds}, the most rounds in which the stream counts a user; or, if you "
            "limit the rows of each user yourself, {linf}, the most times that a user has one item, over "
            "all rounds"
        )
    if horizon is None and unit == "user":
        raise ParameterError.about("{unit:'user'} needs {horizon}, the number of rounds of the whole stream: give it")
    promise |= {"rho": rho} if epsilon is None else {"epsilon": epsilon}
    make = "from_rho" if epsilon is None else "from_epsilon"
    item_bytes = require_whole("item_bytes", item_bytes, 1)
    if horizon is None:
        hybrid: StreamMechanism = getattr(HybridMechanism, make)(**promise)
        for epoch in _EPOCHS:
            with suppress(ParameterError):  # rho may be too small for epochs as long as this
                made_of: StreamMechanism = getattr(EpochMechanism, make)(**promise, epoch=epoch)
                if made_of.item_bytes <= item_bytes:
                    return made_of
        return hybrid
    horizon = require_horizon(horizon)
    promise |= {"unit": unit, "linf": 1 if linf is None else linf, "rounds": rounds}
    made: list[StreamMechanism] = [getattr(BinaryMechanism, make)(**promise, horizon=horizon)]
    for kind in (HonakerMechanism, SquareRootMechanism) if horizon <= _SHORT else ():
        with suppress(ParameterError):  # its range of parameters is narrower; the others remain
            made.append(getattr(kind, make)(**promise, horizon=horizon))
    small = [mechanism for mechanism in made if mechanism.item_bytes <= item_bytes]
    best = min(small or made[:1], key=lambda mechanism: mechanism.threshold(mechanism.widest))
    thresholds = ", ".join(f"{type(one).__name__} {one.threshold(one.widest):,}" for one in made)
    debug("stream: %r was chosen: thresholds of the widest round are %s", best, thresholds)
    return best
