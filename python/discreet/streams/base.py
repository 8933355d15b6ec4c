"""`StreamMechanism`, the base class of continual mechanisms, and `NodeSums`, the noise of their estimates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from discreet import _core
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError
from discreet.mechanisms.base import Mechanism, Opening
from discreet.mechanisms.parameters import require_bounds, require_delta
from discreet.privacy.guarantee import Sensitivity
from discreet.privacy.validation import brief, require_choice, require_whole
from discreet.private import Private
from discreet.release.facts import Facts, Summed, all_close
from discreet.release.release import Release
from discreet.streams.release_rule import ReleaseRule
from discreet.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from discreet.streams.stream import Stream

__all__ = [
    "FORECAST",
    "HORIZON_LIMIT",
    "ITEM_BYTES",
    "NodeSums",
    "StreamMechanism",
    "gaussian",
    "prefix",
    "require_horizon",
    "sum_type",
]

HORIZON_LIMIT = 2**40
"""The largest number of rounds."""
FORECAST = 1024
"""The rounds for which the noise of a stream without end is forecast."""
ITEM_BYTES = 8 + 32 + 20
"""Bytes for an item: 8 for the count, 32 for the key, and 20 for the entry in the item table, with room to grow."""
_WORDS = 64
"""Bytes of keystream (random bits) that are cached for each item. The noise of the next nodes is made of them."""
_NARROW = 2.0**22
"""Sums of noise have 32 bits up to this scale, here and in `rust/stream/node_sums.rs`. They overflow with a chance of
about e^-2000, far below the rounding of the thresholds."""


class StreamMechanism(Mechanism[Iterable[object], list[Release]]):
    """A continual mechanism that releases running counts of items after every round.

    Its guarantee, thresholds and noise depend only on its parameters and on the round. `start` opens a stream.

    The estimate of an item in a round is its running count plus noise. A node is a set of rounds, and an item has one
    noise value for each node. The noise in a round is the sum of the item's noise values at some nodes (`nodes`). All
    rounds that use a node use the same value.

    The guarantee composes with other releases, even if these releases and later events are chosen adaptively. Take one
    event, and let K be the outcome that no item of the event passes a threshold through this event alone. K has a
    probability of at least 1 - delta, with and without the event. Given K, all rounds are post-processing of one
    rho-zCDP release and of data that the event does not change. The rho-zCDP release is the noisy values at the nodes
    that contain the event's round.

    Conditioning on K changes the distribution of lattice noise. So the noise has a smaller rho of its own, by the
    conditioning lemma (Rogers 2023, Theorem 8; `unconditioned_rho`). The proof has two conditions. No noise of a node
    is used before the node's last round. The union bound over thresholds covers all rounds.
    """

    __slots__ = ()

    reads = Iterable
    releases = "events"

    delta: float
    l0: int
    linf: int
    unit: Literal["event", "user"]
    rounds: int | None = None
    """The most rounds in which the stream counts a user; None if users do not matter, or the caller limits them."""

    opens: ClassVar[Callable[..., Stream]]
    """The class `Stream`. Its module sets this attribute, because an import of `Stream` here would be circular."""

    @property
    def protects(self) -> Sensitivity:
        """The most that one event, or one user over all rounds, contributes: `l0` items, each `linf` times.

        With `rounds` it is `l0` items in each of that many rounds.
        """
        return Sensitivity(l0=self.l0 * (self.rounds or 1), linf=self.alone)

    @property
    def assumes(self) -> str | None:
        """The assumption of the guarantee about the data, which the stream does not check; None if there is none."""
        if self.unit == "event" or self.rounds is not None:
            return None
        held = f"at most {counted(self.l0, 'item')}, each at most {counted(self.linf, 'time')}"
        return f"every user has {held}, in all rounds together; discreet does not check this"

    @property
    def alone(self) -> int:
        """The largest count of an item that no other event, or no other user, has."""
        return self.rounds or self.linf

    @abstractmethod
    def deviation(self, number: int) -> float:
        """Return the standard deviation of the counts of a round, or an upper bound close to it.

        Args:
            number: The round, from 1.
        """

    @abstractmethod
    def rule(self, number: int) -> ReleaseRule:
        """Return the release rule of a round.

        An item with a count of `alone` passes the rule with a probability that this round's share of delta covers.

        Args:
            number: The round, from 1.
        """

    def threshold(self, number: int) -> int:
        """Return the threshold of a round. An item is released if its estimate exceeds this integer.

        Args:
            number: The round, from 1.
        """
        return self.rule(number).value

    @abstractmethod
    def nodes(self, number: int) -> list[tuple[int, float]]:
        """Return the nodes whose noise a round sums, as pairs of node number and noise scale, the largest node first.

        Args:
            number: The round, from 1.
        """

    @property
    def last_round(self) -> int | None:
        """The last round; None if the stream has no end."""
        return None

    def release_chance(self, users: int) -> float:
        """Return the chance that an item is released in the round with the widest noise.

        The chance is that of continuous Gaussian noise with the same deviation. Integer noise is close to it.

        Args:
            users: The running count of the item.
        """
        number = self.widest
        return 0.5 * math.erfc((self.threshold(number) + 0.5 - users) / (math.sqrt(2) * self.deviation(number)))

    @property
    def widest(self) -> int:
        """The round with the widest noise: the last one up to the horizon whose binary digits are all ones."""
        last = self.last_round or HORIZON_LIMIT
        ones = (1 << last.bit_length()) - 1
        return ones if ones <= last else max(ones >> 1, 1)

    @property
    def item_bytes(self) -> int:
        """The most bytes that a stream holds in memory for one item, without its label."""
        return ITEM_BYTES + _WORDS + self._sum_bytes

    @property
    def _sum_bytes(self) -> int:
        """Bytes for an item's sums, one for each node of a round, plus a sixteenth for growth."""
        return math.ceil(sum_type(self.deviation(self.widest)).itemsize * self.widest.bit_length() * 17 / 16)

    def starts_over(self, first: int, last: int) -> bool:
        """Return whether running counts are reset at one of these rounds.

        Args:
            first: The first round to look at.
            last: The last round to look at, at least `first`.
        """
        return False

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        return replace(
            super()._facts(l0, summed),
            l0=self.protects.l0,
            most=self.alone if self.alone > 1 else None,
            clips=True,
            last_round=self.last_round or math.inf,
            claims=("round",),
        )

    def _has_sigmas(self, rows: Fields, replaced: bool) -> bool:
        return all_close(rows["sigmas"], np.array([self.deviation(rows["round"]) if rows["round"] else 0.0]))

    def sums(self) -> NodeSums:
        """Return a new object that computes the noise of all items, round after round."""
        return NodeSums(self.nodes)

    def start(self, *, items: Literal["text", "integer", "bytes"] | None = None) -> Stream:
        """Start a new stream in memory. `Stream.open` keeps one in a file.

        Args:
            items: The type of the items. Values of another type are then dropped, as missing values are. Without
                `items`, items in lists are text, and a table whose column of items has a type decides the type of the
                stream: later tables of another type are refused.

        Returns:
            A Stream at round 0.

        Raises:
            ParameterError: `items` is another value.
            EntropyError: The operating system gives no randomness for the stream's key.

        Example:
            >>> import discreet as dp
            >>> stream = dp.BinaryMechanism.from_rho(rho=1, delta=1e-6, l0=1, horizon=7).start(items="text")
            >>> stream.round
            0
        """
        return type(self).opens(self, items=items)

    def release(self, data: Iterable[object], *, rng: _core.Rng | Opening | None = None) -> list[Release]:
        """Release all rounds of `data`, one after the other, with a new stream in memory.

        Args:
            data: The rounds, each a list of events as `Stream.step` takes it.
            rng: Not supported: a stream draws its noise from a secret key of its own.

        Returns:
            One Release for each round.

        Raises:
            ParameterError: `rng` is given, or `data` is no list. The other errors are the same as in `Stream.step`.
                After an error, the releases of the earlier rounds are not returned.
        """
        if rng is not None:
            raise ParameterError("a stream draws noise from its own secret key and takes no seeded_rng: leave out rng")
        if not hasattr(data, "__iter__") or getattr(data, "ndim", 1) == 0:
            raise ParameterError(f"data must be a list of rounds, each a list of events, not {brief(data)}")
        stream = self.start()
        return [stream.step(events) for events in data]

    def _check(self) -> None:
        delta = require_delta(self.delta)
        l0, linf = require_bounds(self.l0, self.linf)
        self._set(delta=delta, l0=l0, linf=linf)
        require_choice("unit", self.unit, ("event", "user"))
        if self.unit == "event" and linf != 1:
            raise ParameterError.about(
                "{linf} must be 1 for {unit:'event'}, since an event has an item once; leave out {linf}"
            )


class NodeSums(Private):
    """The prefix sums of every item's noise over the nodes of a round.

    Only the last nodes change from one round to the next. So a round costs about one new noise value for each item.

    Args:
        nodes_of: A function that returns the nodes of a round, as `StreamMechanism.nodes` does.
    """

    def __init__(self, nodes_of: Callable[[int], list[tuple[int, float]]]) -> None:
        self._nodes_of = nodes_of
        self._sums = _core.NodeSums()

    def advance(self, noise: _core.NodeNoise, number: int) -> NDArray[np.int64]:
        """Return the noise of every item in a round, in a new array. Rounds must not decrease from call to call."""
        return self._sums.advance(noise, [(node, sigma, gaussian(sigma)) for node, sigma in self._nodes_of(number)])


def prefix(number: int) -> list[int]:
    """Return the binary tree nodes that together cover the first `number` rounds, each named by its last round.

    The largest node comes first.
    """
    return [number >> j << j for j in reversed(range(number.bit_length())) if number >> j & 1]


def sum_type(scale: float) -> np.dtype[np.signedinteger]:
    """Return the integer type for sums of noise of this scale."""
    return np.dtype(np.int32 if scale <= _NARROW else np.int64)


@lru_cache(maxsize=64)
def gaussian(sigma: float) -> _core.Noise:
    """Return the discrete Gaussian distribution of a node's noise."""
    return _core.Noise.discrete_gaussian(sigma)


def require_horizon(horizon: object) -> int:
    """Return `horizon` as an int; raise ParameterError unless it is a whole number from 1 to `HORIZON_LIMIT`."""
    return require_whole("horizon", horizon, 1, HORIZON_LIMIT)
