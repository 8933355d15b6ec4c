"""`Stream`: the rounds of a continual mechanism. SENSITIVE inside, its releases PUBLIC."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, Self

import numpy as np

from discreet import _core
from discreet.errors import ParameterError, SchemaError, StateError
from discreet.histogram import Histogram
from discreet.mechanisms.binary_mechanism import BinaryMechanism
from discreet.mechanisms.honaker_mechanism import HonakerMechanism
from discreet.mechanisms.hybrid_mechanism import HybridMechanism
from discreet.mechanisms.square_root_mechanism import SquareRootMechanism
from discreet.mechanisms.stream_file import Item, Round, StreamFile, keyed, label_bytes
from discreet.mechanisms.stream_mechanism import StreamMechanism, require_horizon
from discreet.privacy import Guarantee, require_whole
from discreet.release import Release

__all__ = ["Stream"]

_SHORT = {SquareRootMechanism: 1024, HonakerMechanism: 10_000}
"""Up to how many rounds what a mechanism keeps of an item, or does for one that comes late, is little enough."""


class Stream:
    """Running counts of items, released after every round.

    `mechanism.start()` opens one in memory, `Stream.open` one in a file that survives crashes. A round is a batch
    of events, each a list of items; an event counts for at most `l0` of its items, chosen by a keyed hash. A stream is
    as private as its data: it is not copied or pickled, and only its releases are public. All of them together
    promise `guarantee`, however many rounds are released.
    """

    def __init__(self, mechanism: StreamMechanism) -> None:
        if not isinstance(mechanism, StreamMechanism):
            raise ParameterError("a stream needs a continual mechanism, such as BinaryMechanism.from_rho(...)")
        self._begin(mechanism, secrets.token_bytes(32))
        self._file: StreamFile | None = None

    def _begin(self, mechanism: StreamMechanism, key: bytes) -> None:
        self.mechanism = mechanism
        self._key: bytes | None = key
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._round = 0
        self._forget()

    def _forget(self) -> None:
        """No items, and none of their noise."""
        self._items: list[Item] = []
        self._rows: dict[Item, int] = {}
        self._counts = np.zeros(0, np.int64)
        self._noise = _core.NodeNoise()
        self._sums = self.mechanism.sums()
        self._latest: Release | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str], mechanism: StreamMechanism | None = None) -> Self:
        """The stream kept in a file: a new one where there is no file and a mechanism is given.

        Every round is durable before its release is returned. A file that is restored from a copy knows, by the
        journal beside it, which rounds it has forgotten, and takes the same lists of items for them and no others (a
        table's items beyond l0 of an event are chosen anew, so that only one without such events is the same). Raises
        StateError where the file is another mechanism's, corrupt, of a newer version, or open elsewhere.
        """
        file = StreamFile.open(path, mechanism)
        self = object.__new__(cls)
        self._begin(file.mechanism, file.key)
        self._file = file
        counts: list[int] = []
        items: list[Item] = []
        for item, count in file.items():
            items.append(item)
            counts.append(count)
        self._add(items, np.array(counts, np.int64), file.key)
        self._round = file.round
        return self

    @staticmethod
    def recommended(
        *, rho: float | None = None, epsilon: float | None = None, delta: float, l0: int, horizon: int | None = None
    ) -> StreamMechanism:
        """The continual mechanism that fits: of those with this promise the one with the lowest threshold at its
        widest, from public parameters alone.

        Without a `horizon` the hybrid mechanism. With one the binary mechanism; that with Honaker's estimates up to
        10,000 rounds, where late items cost little; the square root mechanism up to 1,024, where an item takes 4 KiB.
        """
        if (rho is None) == (epsilon is None):
            raise ParameterError("give exactly one of rho and epsilon")
        promise: dict[str, Any] = {"delta": delta, "l0": l0}
        promise |= {"rho": rho} if epsilon is None else {"epsilon": epsilon}
        make = "from_rho" if epsilon is None else "from_epsilon"
        if horizon is None:
            hybrid: StreamMechanism = getattr(HybridMechanism, make)(**promise)
            return hybrid
        horizon = require_horizon(horizon)
        made: list[StreamMechanism] = [getattr(BinaryMechanism, make)(**promise, horizon=horizon)]
        for kind in (kind for kind, longest in _SHORT.items() if horizon <= longest):
            with suppress(ParameterError):  # a narrower range leaves the others
                made.append(getattr(kind, make)(**promise, horizon=horizon))
        return min(made, key=lambda mechanism: mechanism.threshold(mechanism.widest))

    @property
    def guarantee(self) -> Guarantee:
        """What all releases together promise."""
        return self.mechanism.guarantee

    @property
    def round(self) -> int:
        """How many rounds there have been."""
        return self._round

    def step(
        self,
        events: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        round: int | None = None,  # noqa: A002 - the word of the field
        release: bool = True,
        progress: Callable[[], None] | None = None,
    ) -> Release:
        """Adds a round of events and releases the running counts that exceed the round's threshold.

        `events`: one list of items (text, integers of 64 bits or bytes) for each event; or a table as that of
        `Histogram.from_table`, in which all rows of one `user` are an event. `round`: the number of this round,
        where rounds before it may be missing and count as empty; without it the next one. With
        `release=False` nothing is published. Raises StateError for a round that is closed already or beyond the
        horizon, ParameterError or SchemaError for events of another form; nothing has changed then.
        An interrupt or an error of the disk while the round is taken in closes the stream: open its file again.
        """
        with self._lock:
            key = self._require_open()
            number = self._next(round)
            added = self._added(events, user, item, key, number, progress)
            restart = self.mechanism.starts_over(self._round + 1, number)
            if not restart:
                self._require_one_type(added)
            step = Round(number, added, restart)
            if self._file is not None:
                self._file.require(step)
            try:
                self._advance(step, key)
            except BaseException:
                # File and memory may differ now: what is in the file is right, and is read anew.
                self.detach()
                raise
            return self.show() if release else self._empty()

    def _added(
        self,
        events: Any,
        user: str | None,
        item: str | None,
        key: bytes,
        number: int,
        progress: Callable[[], None] | None,
    ) -> dict[Item, int]:
        """How many events of a round have each item."""
        if user is None and item is None:
            added = _bounded(events, self.mechanism.l0, key, number)
        elif user is None or item is None:
            raise ParameterError("give both user and item with a table, or neither with lists of items")
        else:
            table = Histogram.from_table(events, user=user, item=item, l0=self.mechanism.l0, progress=progress)
            added = dict(zip(table._labels.take(np.arange(len(table._counts))), table._counts.tolist(), strict=True))
        return {label: count for label, count in added.items() if _can_be_released(label)}

    def _advance(self, step: Round, key: bytes) -> None:
        """Takes in a round, on disk first."""
        if self._file is not None:
            self._file.write(step)
        if step.restart:
            self._forget()
        self._add(list(step.added), np.array(list(step.added.values()), np.int64), key)
        self._round = step.number
        self._latest = None

    def show(self) -> Release:
        """The release of the round that was last: the same whenever it is asked for, at no further cost."""
        with self._lock:
            self._require_open()
            if self._round == 0:
                return self._empty()
            if self._latest is None:
                noise = self._sums.advance(self._noise, self._round)
                noisy = self._counts + noise
                rows = np.flatnonzero(noisy > self.mechanism.threshold(self._round))
                self._latest = self._published([self._items[row] for row in rows], noisy[rows])
            return self._latest

    def close(self) -> None:
        """Ends the stream and destroys its key: no noise of it can be drawn or removed again."""
        with self._lock:
            self._require_open()
            if self._file is not None:
                self._file.destroy()
                self._file = None
            self.detach()

    def detach(self) -> None:
        """Lets go of the file without ending the stream; `open` goes on with it."""
        with self._lock:
            if self._file is not None and self._process == os.getpid():
                self._file.close()
            self._file = None
            self._key = None
            self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def __repr__(self) -> str:
        return f"Stream({self.mechanism!r}, round {self._round}, SENSITIVE)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Stream is sensitive and is neither copied nor pickled; keep it in a file by Stream.open")

    def _next(self, number: int | None) -> int:
        following = self._round + 1
        number = following if number is None else require_whole("round", number, 1)
        if number < following:
            raise StateError(f"round {number} is closed: {self._round} rounds have been; show() gives the last release")
        last = self.mechanism.last_round
        if last is not None and number > last:
            raise StateError(f"round {number} is beyond the horizon of {last} rounds; start a new stream")
        return number

    def _require_open(self) -> bytes:
        if self._key is None:
            raise StateError("this stream is closed; start a new one, or open its file again")
        if self._process != os.getpid():
            raise StateError("this stream belongs to another process; open its file there")
        return self._key

    def _require_one_type(self, added: dict[Item, int]) -> None:
        if self._items and added and type(next(iter(added))) is not type(self._items[0]):
            raise SchemaError("items must be of the type that the stream began with")

    def _add(self, items: list[Item], added: Any, key: bytes) -> None:
        """Adds counts to items, new ones at the end."""
        # The order of items in memory is their own, not that of the events.
        new = sorted(item for item in items if item not in self._rows)
        if new:
            self._rows.update(zip(new, range(len(self._items), len(self._items) + len(new)), strict=True))
            self._items += new
            self._noise.extend(b"".join(_item_key(key, item) for item in new))
            self._counts = np.concatenate([self._counts, np.zeros(len(new), np.int64)])
        # Each item comes once, so that no two additions meet.
        self._counts[[self._rows[item] for item in items]] += added

    def _published(self, items: Sequence[Item], noisy: Any) -> Release:
        labels = _core.Labels.from_sequence(list(items))
        order = _core.top(labels, noisy, len(noisy))
        deviation = self.mechanism.deviation(self._round) if self._round else 0.0
        return Release(
            items=labels.take(order),
            counts=noisy[order],
            sigmas=np.full(len(noisy), deviation),
            guarantee=self.guarantee,
            spent=self.guarantee,
            made_by=repr(self.mechanism),
            notes=(f"round {self._round}; the guarantee is for all rounds together",),
            # Where nothing is released the type tells nothing of what was seen.
            item_type=labels.type_name if items else "string",
        )

    def _empty(self) -> Release:
        return self._published([], np.zeros(0, np.int64))


def _bounded(events: Any, l0: int, key: bytes, number: int) -> dict[Item, int]:
    """How many events have each item, at most `l0` items of each: those whose keyed hashes are the least."""
    if isinstance(events, str | bytes | dict) or not hasattr(events, "__iter__"):
        raise ParameterError(
            "events must be a list with one list of items for each event; with a table give user and item"
        )
    priorities: dict[Item, bytes] = {}

    def priority(item: Item) -> bytes:
        if item not in priorities:
            priorities[item] = keyed(key, b"choice", number.to_bytes(8, "little") + _priority_bytes(item))
        return priorities[item]

    added: dict[Any, int] = {}
    kinds: set[type] = set()
    for event in events:
        if isinstance(event, str | bytes | dict):
            raise ParameterError("each event must be a list of items")
        try:
            distinct = set(event)
        except TypeError:
            raise ParameterError("each event must be a list of items: text, integers or bytes") from None
        distinct.discard(None)
        kinds.update(map(type, distinct))
        _require_one_kind(kinds)
        for item in distinct if len(distinct) <= l0 else sorted(distinct, key=priority)[:l0]:
            added[item] = added.get(item, 0) + 1
    return {_plain(item): n for item, n in added.items()}


def _plain(item: Any) -> Item:
    """An item as a value of Python's own types."""
    return str(item) if isinstance(item, str) else bytes(item) if isinstance(item, bytes) else int(item)


def _require_one_kind(kinds: set[type]) -> None:
    """Items of one stream are all text, all whole numbers or all bytes."""
    if len(kinds) > 1 or not kinds <= {str, int, bytes}:
        one = [next((k for k in (str, bytes, np.integer, int) if issubclass(kind, k)), None) for kind in kinds]
        names = {int if kind is np.integer else kind for kind in one}
        if len(names) > 1 or None in names or bool in kinds:
            raise SchemaError("items must be all text, all integers or all bytes")


def _can_be_released(label: Item) -> bool:
    """Whether a label fits a column: no integer beyond 64 bits, no text that is not UTF-8. Others are left out."""
    if isinstance(label, int):
        return -(2**63) <= label < 2**63
    try:
        return isinstance(label, bytes) or bool(label.encode("utf-8") or True)
    except UnicodeEncodeError:
        return False


def _priority_bytes(label: Item) -> bytes:
    """What orders an event's items, of whatever kind."""
    if isinstance(label, int):
        return b"i" + format(label, "x").encode()
    return b"t" + label.encode("utf-8", "surrogatepass") if isinstance(label, str) else b"b" + label


def _item_key(key: bytes, item: Item) -> bytes:
    """The secret of an item's noise: a keyed hash of its label."""
    return keyed(key, b"noise", label_bytes(item))
