"""`Stream`: the rounds of a continual mechanism. SENSITIVE inside, its releases PUBLIC."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NoReturn, Self

import numpy as np

from discreet import _core
from discreet.engines.entropy import fresh_key
from discreet.errors import ParameterError, SchemaError, StateError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_flag, require_whole
from discreet.private import Private
from discreet.release.release import Release
from discreet.streams.base import StreamMechanism
from discreet.streams.clock import Clock
from discreet.streams.counts import RunningCounts
from discreet.streams.events import (
    EMPTY_TYPES,
    ItemType,
    bounded,
    can_be_released,
    column_type,
    require_item_type,
    type_of,
)
from discreet.streams.file import StreamFile
from discreet.streams.recommend import recommended
from discreet.streams.seal import Item, Round
from discreet.tables.histogram import Histogram

__all__ = ["Stream"]

_MANY = 100_000
"""How many items of a file are taken in at a time."""


class Stream(Private):
    """Running counts of items, released after every round.

    `mechanism.start()` opens one in memory, `Stream.open` one in a file that survives crashes. A round is a batch
    of events, each a list of items; an event counts for at most `l0` of its items, chosen by a keyed hash. A stream is
    as private as its data: it is not copied or pickled, and only its releases are public. All of them together
    promise `guarantee`, however many rounds are released.
    """

    _used: StreamFile | None = None
    """The file while it is written to, overwritten or closed. A handler of a signal that closed it meanwhile would free
    descriptors that are used next, and another file may get them."""

    def __init__(self, mechanism: StreamMechanism, *, items: ItemType | None = None) -> None:
        if not isinstance(mechanism, StreamMechanism):
            raise ParameterError("a stream needs a continual mechanism, such as BinaryMechanism.from_rho(...)")
        self._begin(mechanism, bytes.fromhex(fresh_key()), require_item_type(items))
        self._file: StreamFile | None = None

    def _begin(self, mechanism: StreamMechanism, key: bytes, items: ItemType | None) -> None:
        self.mechanism = mechanism
        self._declared = items
        # The key while the stream is open. To close it puts another list in the place of this one, so that a step
        # that is under way cannot open it again.
        self._keys = [key]
        self._process = _core.process()
        self._lock = threading.RLock()
        self._round = 0
        self._clock: Clock | None = None
        self._coming: Clock | None = None
        self._forget()

    def _forget(self) -> None:
        """No items, and none of their noise."""
        self._type = self._declared
        self._running = RunningCounts(self.mechanism, EMPTY_TYPES.get(self._declared, "string"))
        self._latest: Release | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        mechanism: StreamMechanism | None = None,
        *,
        items: ItemType | None = None,
    ) -> Self:
        """The stream kept in a file: a new one where there is no file and a mechanism is given, of `items` of a type.

        Every round is durable before its release is returned. A file that is restored from a copy knows, by the
        journal beside it, which rounds it has forgotten, and takes the same lists of items for them and no others (a
        table's items beyond l0 of an event are chosen anew, so that only one without such events is the same). Raises
        StateError where the file is another mechanism's, corrupt, of a newer version, or open elsewhere.
        """
        file = StreamFile.open(path, mechanism, require_item_type(items))
        try:
            self = object.__new__(cls)
            self._begin(file.mechanism, file.key, file.item_type)
            self._clock = self._coming = file.clock
            self._file = file
            rows = file.items()
            while some := dict(islice(rows, _MANY)):
                self._type = type_of(next(iter(some)))
                self._running.add(some, file.key)
            self._round = file.round
        except BaseException:
            file.close()
            raise
        return self

    recommended = staticmethod(recommended)

    @property
    def guarantee(self) -> Guarantee:
        """What all releases together promise."""
        return self.mechanism.guarantee

    @property
    def round(self) -> int:
        """How many rounds there have been."""
        return self._round

    @property
    def item_type(self) -> ItemType | None:
        """What items were declared to be, None where that is left to what comes first."""
        return self._declared

    @property
    def clock(self) -> Clock | None:
        """When rounds begin and end, None where that was never said."""
        return self._clock

    def require_clock(self, clock: Clock) -> None:
        """Raises StateError where rounds have been that began and ended by another clock."""
        known = self._clock
        if self._round and known is not None and not clock.keeps_time_with(known):
            raise StateError(
                f"the rounds of this stream take {known.every} since {known.since}, not {clock.every} since "
                f"{clock.since}; leave out --since and --every, or start a new stream"
            )

    def keep(self, clock: Clock) -> None:
        """Remembers when rounds begin and end, together with the next round; StateError as `require_clock`."""
        with self._exclusively():
            self.require_clock(clock)
            self._coming = clock

    def step(
        self,
        events: object,
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
        An interrupt or an error of the disk while the round is taken in closes the stream: open its file again. One
        while the release is made does not: `show` makes it again.
        """
        require_flag("release", release)
        with self._exclusively() as key:
            keys = self._keys
            number = self._next(round)
            kind, added = self._added(events, user, item, key, number, progress)
            # The events are the caller's own code, which may have closed rounds of this stream, or the stream.
            self._next(number)
            self._require_open(keys)
            restart = self.mechanism.starts_over(self._round + 1, number)
            known = self._declared if restart else self._type
            if None not in (kind, known) and kind != known:
                raise SchemaError(f"this stream's items are of the type {known}, not {kind}; cast them")
            step = Round(number, added, restart, None if self._coming == self._clock else self._coming)
            if (file := self._file) is not None:
                file.require(step)
            # File and memory may differ until both have the round. The stream is closed meanwhile, so that one that is
            # interrupted stays closed even where the handler below is interrupted, too.
            keys.clear()
            try:
                # A handler of a signal may have taken in this round; from here on it cannot.
                self._next(number)
                self._advance(step, key)
                self._type = self._type or kind
                keys.append(key)
                self._require_open(keys)
            except BaseException:
                self._used = None
                self.detach()
                raise
            return self.show() if release else self._running.empty(self._round)

    def _added(
        self,
        events: object,
        user: str | None,
        item: str | None,
        key: bytes,
        number: int,
        progress: Callable[[], None] | None,
    ) -> tuple[ItemType | None, dict[Item, int]]:
        """The type of the items of a round, and how many events have each. A table says the type, rows or no rows."""
        if user is None and item is None:
            added = bounded(events, self.mechanism.l0, key, number, self._declared)
            kind = self._declared or next(map(type_of, added), None)
        elif user is None or item is None:
            raise ParameterError("give both user and item with a table, or neither with lists of items")
        else:
            table = Histogram.from_table(events, user=user, item=item, l0=self.mechanism.l0, progress=progress)
            counts = table._counts()
            added = dict(zip(table._labels.take(np.arange(len(counts))), counts.tolist(), strict=True))
            kind = column_type(table._labels.type_name, None if added else events, item)
        return kind, {label: count for label, count in added.items() if can_be_released(label)}

    def _advance(self, step: Round, key: bytes) -> None:
        """Takes in a round, on disk first."""
        if (file := self._file) is not None:
            try:
                self._used = file
                file.write(step)
            finally:
                self._used = None
        if step.restart:
            self._forget()
        self._running.add(step.added, key)
        self._round = step.number
        self._clock = self._coming
        self._latest = None

    def show(self) -> Release:
        """The release of the round that was last: the same whenever it is asked for, at no further cost."""
        with self._exclusively():
            keys, latest = self._keys, self._latest
            if latest is None:
                number = self._round
                try:
                    latest = self._running.release(number)
                finally:
                    # A signal handler may have changed the counts while they were read, with whatever error of that.
                    if self._round != number:
                        raise StateError("a round was taken in while its release was made; call show again")
                    self._require_open(keys)
                self._latest = latest
            return latest

    def close(self) -> None:
        """Ends the stream and destroys its key and counts: no noise of it can be drawn or removed again.

        Where this is interrupted or fails, the next `open` of the file finishes it. Raises StateError where a file
        cannot be written.
        """
        with self._exclusively():
            self._keys = []
            try:
                if (file := self._file) is not None:
                    self._used = file
                    file.destroy()
            finally:
                self._used = None
                self.detach()

    def detach(self) -> None:
        """Lets go of the file without ending the stream; `open` goes on with it."""
        if self._process != _core.process():
            # The lock may have been taken when the process was forked; the file is the other's.
            self._file, self._keys = None, []
            return
        with self._lock:
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def __repr__(self) -> str:
        return f"Stream({self.mechanism!r}, round {self._round}, SENSITIVE)"

    def _refuse(self) -> NoReturn:
        raise TypeError("a Stream is sensitive and is neither copied nor pickled; keep it in a file by Stream.open")

    def _next(self, number: int | None) -> int:
        following = self._round + 1
        number = following if number is None else require_whole("round", number, 1)
        if number < following:
            raise StateError(f"round {number} is closed: the last was {self._round}, whose release show gives again")
        last = self.mechanism.last_round
        if last is not None and number > last:
            raise StateError(f"round {number} is beyond the horizon of {last} rounds; start a new stream")
        return number

    @contextmanager
    def _exclusively(self) -> Iterator[bytes]:
        """One thread at a time, in the stream's own process: a fork may have copied a lock that is taken."""
        self._require_owner()
        with self._lock:
            keys = self._keys
            if not keys:
                self._let_go()
            self._require_open(keys)
            yield keys[0]

    def _require_owner(self) -> None:
        """Raise StateError in a process that was forked from the stream's own."""
        if self._process != _core.process():
            raise StateError("this stream belongs to another process; open its file there")

    def _require_open(self, keys: list[bytes]) -> None:
        """Raise StateError if the stream was closed, or the process forked, also by the caller's code during a step."""
        self._require_owner()
        if self._keys is not keys or not keys:
            raise StateError("this stream is closed; start a new one, or open its file again")

    def _let_go(self) -> None:
        """Close the stream in memory, and its file. An interrupt in between leaves it closed."""
        self._keys = []
        if (file := self._file) is not None and self._used is None:
            try:
                self._used = file
                file.close()
            finally:
                self._used = None
            self._file = None
        self._forget()


StreamMechanism._opens = Stream
