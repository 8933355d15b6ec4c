"""What continual mechanisms are: running counts of items after every round, from noise that is tied to nodes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from discreet import _core
from discreet.errors import ParameterError
from discreet.mechanisms.base import Mechanism, Opening
from discreet.mechanisms.parameters import require_bounds, require_delta
from discreet.privacy.guarantee import Sensitivity
from discreet.privacy.validation import require_whole
from discreet.private import Private
from discreet.release.release import Release
from discreet.streams.release_rule import ReleaseRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from discreet.streams.stream import Stream

__all__ = [
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
"""The most rounds."""
ITEM_BYTES = 8 + 32 + 20
"""What a stream keeps of an item: its count, its key, and its place in the table of items, with room to grow."""
_WORDS = 64
"""The keystream that an item's next nodes share."""
_NARROW = 2.0**22
"""The largest scale of which sums have 32 bits: a chance of e^-2000 to need more is far below what thresholds round."""


class StreamMechanism(Mechanism[Iterable[object], list[Release]]):
    """A frozen value whose guarantee, thresholds and noise are functions of its parameters and the round alone.

    `start` opens a stream of rounds. The estimate of an item in a round is its running count and a sum of noises,
    each of a node: a set of rounds. An item's noise at a node is the same whenever it is used.

    The guarantee holds beside other releases, however they and later events are chosen. Let K say that no item of one
    event passes a threshold by that event alone. Mechanisms give K a chance of at least 1 - delta with and without the
    event. Given K, all rounds follow from one rho-zCDP release, the noisy values at the nodes that contain the event's
    round, and from what the event does not touch.

    Conditioning on K changes the law of lattice noise, so the noise has a
    smaller rho of its own, by the conditioning lemma (Rogers 2023, Theorem 8; `unconditioned_rho`).
    A mechanism keeps to this where no noise of a node is used before the
    node's last round, and where the union bound over thresholds covers all rounds.
    """

    __slots__ = ()

    reads = Iterable

    delta: float
    l0: int
    linf: int
    unit: Literal["event", "user"]

    _opens: ClassVar[Callable[..., Stream]]
    """What opens a stream. `Stream` puts itself here: its files know all mechanisms, so none of these imports it."""

    @property
    def protects(self) -> Sensitivity:
        """At most `l0` items of an event, or of a user in all rounds together, each at most `linf` times."""
        return Sensitivity(l0=self.l0, linf=self.linf)

    @abstractmethod
    def deviation(self, number: int) -> float:
        """The standard deviation of the counts of a round, or a hair more."""

    @abstractmethod
    def rule(self, number: int) -> ReleaseRule:
        """Return the rule by which an estimate is released in a round."""

    def threshold(self, number: int) -> int:
        """Return what an estimate must exceed in a round: an integer."""
        return self.rule(number).value

    @abstractmethod
    def nodes(self, number: int) -> list[tuple[int, float]]:
        """The nodes whose noises make up a round's, as number and scale, the largest first."""

    @property
    def last_round(self) -> int | None:
        """The last round, None where there is none."""
        return None

    def release_chance(self, users: int) -> float:
        """The chance that an item whose running count is so large is released in a round of the widest noise.

        That of continuous noise of the same deviation, which integer noise is near to.
        """
        number = self.widest
        return 0.5 * math.erfc((self.threshold(number) + 0.5 - users) / (math.sqrt(2) * self.deviation(number)))

    @property
    def widest(self) -> int:
        """A round of the widest noise: the last one below the horizon whose binary digits are all ones, or the
        round 2^20 - 1 of a stream without end."""
        last = self.last_round or 2**20 - 1
        ones = (1 << last.bit_length()) - 1
        return ones if ones <= last else max(ones >> 1, 1)

    @property
    def item_bytes(self) -> int:
        """How many bytes a stream keeps for one item at most, beside its label: those of every item, and its noises."""
        return ITEM_BYTES + _WORDS + self._sum_bytes

    @property
    def _sum_bytes(self) -> int:
        """The bytes of an item's sums, one for each node of a round, with a little room."""
        return math.ceil(sum_type(self.deviation(self.widest)).itemsize * self.widest.bit_length() * 17 / 16)

    def starts_over(self, first: int, last: int) -> bool:
        """Whether running counts begin anew with one of these rounds."""
        return False

    def sums(self) -> NodeSums:
        """The noise of all items, from round to round."""
        return NodeSums(self)

    def start(self, *, items: Literal["text", "integer", "bytes"] | None = None) -> Stream:
        """A new stream in memory; `Stream.open` keeps one in a file.

        `items`: what its items are. Whatever else an event has is left out then, as missing values are. Without it
        the first round decides, and what is of another type is refused: by then somebody's one odd item would
        have decided for all, and the refusal would tell of it. Name the type where users choose the items.
        """
        return type(self)._opens(self, items=items)

    def release(self, data: Iterable[object], *, rng: _core.Rng | Opening | None = None) -> list[Release]:
        """The releases of all these rounds, one after the other, by a stream in memory.

        `data`: rounds, each as `Stream.step` takes it. A stream has a key of its own and takes no seeded randomness.
        Raises ParameterError for an `rng`, and the errors of `Stream.step`; the rounds before are then lost.
        """
        if rng is not None:
            raise ParameterError("a stream makes a key of its own, and takes no seeded_rng: leave out rng")
        stream = self.start()
        return [stream.step(events) for events in data]

    def _check(self) -> None:
        object.__setattr__(self, "delta", require_delta(self.delta))
        l0, linf = require_bounds(self.l0, self.linf)
        object.__setattr__(self, "l0", l0)
        object.__setattr__(self, "linf", linf)
        if self.unit not in ("event", "user"):
            raise ParameterError("unit must be 'event' or 'user'")
        if self.unit == "event" and linf != 1:
            raise ParameterError("an event has an item once: leave out linf, or take unit='user'")


class NodeSums(Private):
    """For every item the sums of its noises over the nodes of a round, first to last.

    From one round to the next only the last nodes change, so a round costs about one new noise for each item.
    """

    def __init__(self, mechanism: StreamMechanism) -> None:
        self._mechanism = mechanism
        self._nodes: list[tuple[int, float]] = []
        self._sums: NDArray[Any] = np.zeros((0, 0), np.int32)
        self._items = 0

    def advance(self, noise: _core.NodeNoise, number: int) -> NDArray[Any]:
        """The noise of every item in a round, not before those asked for until now."""
        nodes = self._mechanism.nodes(number)
        kept = 0
        while kept < min(len(nodes), len(self._nodes)) and nodes[kept] == self._nodes[kept]:
            kept += 1
        self._reserve(len(nodes), noise.items(), sum_type(max(sigma for _, sigma in nodes)))
        known, self._items = self._items, noise.items()
        if known < self._items:
            for depth, (node, sigma) in enumerate(nodes[:kept]):
                self._put(depth, known, noise.draw_from(known, node, gaussian(sigma)))
        for depth, (node, sigma) in enumerate(nodes[kept:], kept):
            self._put(depth, 0, noise.draw(node, gaussian(sigma)))
        self._nodes = nodes
        return self._sums[len(nodes) - 1, : self._items]

    def _put(self, depth: int, first: int, drawn: NDArray[np.int64]) -> None:
        """The sums of the items from the first on, from those of the node before and the noise of this one."""
        row = self._sums[depth, first : self._items]
        if depth:
            np.add(self._sums[depth - 1, first : self._items], drawn, out=row, casting="same_kind")
        else:
            row[:] = drawn

    def _reserve(self, depth: int, items: int, kind: np.dtype[Any]) -> None:
        """Makes room, with a sixteenth to spare."""
        rows, columns = self._sums.shape
        kind = np.promote_types(kind, self._sums.dtype)
        if depth > rows or items > columns or kind != self._sums.dtype:
            grown = np.zeros((max(rows, depth), columns if items <= columns else items + items // 16 + 16), kind)
            grown[:rows, : self._items] = self._sums[:, : self._items]
            self._sums = grown


def prefix(rounds: int) -> list[int]:
    """The nodes of a binary tree that together are the first rounds, by the last round of each, the largest first."""
    return [rounds >> j << j for j in reversed(range(rounds.bit_length())) if rounds >> j & 1]


def sum_type(scale: float) -> np.dtype[Any]:
    """What sums of noises of a scale are kept in."""
    return np.dtype(np.int32 if scale <= _NARROW else np.int64)


@lru_cache(maxsize=64)
def gaussian(sigma: float) -> _core.Noise:
    """The law of a node's noise."""
    return _core.Noise.discrete_gaussian(sigma)


def require_horizon(horizon: object) -> int:
    """A number of rounds."""
    return require_whole("horizon", horizon, 1, HORIZON_LIMIT)
