"""`Stream`: the state of a continual mechanism. SENSITIVE; only its releases are PUBLIC."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NoReturn, Self

from discreet import _core
from discreet.engines.entropy import fresh_key
from discreet.errors import ParameterError, StateError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_flag, require_whole
from discreet.release.release import Release
from discreet.streams.base import StreamMechanism
from discreet.streams.clock import Clock
from discreet.streams.counts import RunningCounts
from discreet.streams.events import (
    EMPTY_TYPES,
    Given,
    Limit,
    counts_by_item,
    counts_by_user,
    require_item_type,
    type_of,
)
from discreet.streams.file import StreamFile
from discreet.streams.plotted import Plotted
from discreet.streams.recommend import recommended
from discreet.streams.seal import ItemType, Remembered, Round, UserName

__all__ = ["Stream"]

_MANY = 100_000
"""Items that are read from a file at a time."""


class Stream(Plotted):
    """A stream that counts items and releases the running counts after every round.

    `mechanism.start()` opens a stream in memory, and `Stream.open` one in a file that survives crashes. A round is a
    batch of events, and an event is a list of items. An event counts for at most `l0` of its items, chosen by a keyed
    hash. With `rounds`, a round is a table of users and items. A user counts in the first `rounds` rounds that have one
    of the user's items, for at most `l0` of them in each. For this the stream keeps the number of rounds of each user
    under a keyed hash of the user. The guarantee covers all releases together, however many rounds are released.

    A stream is as sensitive as its data, and only its releases are public. It cannot be copied or pickled, and a forked
    process cannot use it. Two copies with one key would add the same noise to different data, and the difference of
    their releases would reveal the data.

    Args:
        mechanism: A continual mechanism, such as `BinaryMechanism.from_rho(...)`.
        items: The type of the items, as for `StreamMechanism.start`.

    Raises:
        ParameterError: `mechanism` is not a continual mechanism, or `items` is not a type.

    Example:
        >>> import discreet as dp
        >>> stream = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=365).start()
        >>> stream.step([["home"]] * 1000 + [["help"]] * 3).items
        ['home']
        >>> stream.step([["help"]] * 1000).items == stream.show().items
        True
        >>> print(stream.guarantee)
        1e-06-approximate 0.5-zCDP per event (added or removed)
    """

    _used: StreamFile | None = None
    """The file while it is written, overwritten or closed.

    A signal handler must not close the file meanwhile. Otherwise another file could get the same file descriptors, and
    the interrupted code would write to that other file.
    """

    def __init__(self, mechanism: StreamMechanism, *, items: ItemType | None = None) -> None:
        if not isinstance(mechanism, StreamMechanism):
            raise ParameterError("a stream needs a continual mechanism, such as BinaryMechanism.from_rho(...)")
        self._begin(mechanism, bytes.fromhex(fresh_key()), require_item_type(items))
        self._file: StreamFile | None = None

    def _begin(self, mechanism: StreamMechanism, key: bytes, items: ItemType | None) -> None:
        self.mechanism = mechanism
        self._declared = items
        # A list with the key while the stream is open. Closing replaces the list by an empty one. A step in progress
        # returns its key to the old list, so the step cannot reopen the stream.
        self._keys = [key]
        self._process = _core.process()
        self._lock = threading.RLock()
        self._round = 0
        self._known = Remembered(items=items)
        self._coming: Clock | None = None
        self._forget_shown()
        self._forget()

    def _forget(self) -> None:
        """Reset the counts, the cached noise and the last release."""
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
        """Open the stream in a file, or create it if the file is missing and a mechanism is given.

        A round is on the disk before its release is returned, so a crash loses no released round. A journal, in
        `<path>-rounds`, has a digest of each released round. If an older copy of the file is restored, the stream
        accepts only the same events for these rounds, and releases the same counts again. The rows of a table may have
        another order, but must have the same form, such as a file of the same format.

        Args:
            path: The file. The secret key is in `<path>-key`.
            mechanism: The mechanism of a new stream. For an existing stream leave it out, or repeat it.
            items: The type of the items of a new stream, as for `StreamMechanism.start`.

        Returns:
            A Stream, which holds the lock of the file until `detach` or `close`.

        Raises:
            StateError: The file is corrupt, open elsewhere or of another version, or its key or journal is missing. Or
                the file has another mechanism or item type. Or the file is missing and no mechanism is given.
            ParameterError: `items` is not a type, or no file can store the mechanism.
            EntropyError: The operating system gives no randomness for the key of a new stream.

        Example:
            >>> import tempfile
            >>> import discreet as dp
            >>> mechanism = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=365)
            >>> folder = tempfile.TemporaryDirectory()
            >>> path = f"{folder.name}/visits.stream"
            >>> with dp.Stream.open(path, mechanism) as stream:
            ...     items = stream.step([["home"]] * 1000).items
            >>> with dp.Stream.open(path) as stream:
            ...     stream.round, stream.show().items == items
            (1, True)
            >>> folder.cleanup()
        """
        file = StreamFile.open(path, mechanism, require_item_type(items))
        try:
            self = object.__new__(cls)
            self._begin(file.mechanism, file.key, file.item_type)
            self._known = file.remembered
            self._coming = self._known.clock
            self._file = file
            rows = file.items()
            while some := dict(islice(rows, _MANY)):
                if self._known.items is None:  # earlier versions stored no type beside the items
                    known = next((type_of(item) for item in some if not isinstance(item, UserName)), None)
                    self._known = dataclasses.replace(self._known, items=known)
                self._running.add(some, file.key)
            self._round = file.round
        except BaseException:
            file.close()
            raise
        return self

    recommended = staticmethod(recommended)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all releases together."""
        return self.mechanism.guarantee

    @property
    def round(self) -> int:
        """The number of rounds so far."""
        return self._round

    @property
    def item_type(self) -> ItemType | None:
        """The declared type of the items; None if the first round decides it."""
        return self._declared

    @property
    def clock(self) -> Clock | None:
        """The times at which rounds begin and end; None if no times were given."""
        return self._known.clock

    def require_clock(self, clock: Clock) -> None:
        """Raise StateError if the stream has rounds that began and ended at other times.

        Args:
            clock: The clock of the next round.
        """
        known = self._known.clock
        if self._round and known is not None and not clock.keeps_time_with(known):
            raise StateError(
                f"the rounds of this stream take {known.every} since {known.since}, not {clock.every} since "
                f"{clock.since}; leave out --since and --every, or start a new stream"
            )

    def keep(self, clock: Clock) -> None:
        """Store a clock together with the next round.

        Args:
            clock: The times at which rounds begin and end.

        Raises:
            StateError: The stream has rounds by another clock.
        """
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
        """Add a round of events, and release the running counts above the round's threshold.

        An interrupt or a disk error while the round is added closes the stream, since memory and file may then differ.
        Open the file again, and look at `round`: the file may or may not have the round. After an interrupt while the
        release is computed, the stream stays open, and `show` computes the same release.

        Args:
            events: One list of items for each event: text, 64-bit integers or bytes. Or a `Table`, or rows as for
                `Histogram.from_table`; all rows with one value of `user` are then one event. An event that is no list
                has one item.
            user: The name of the column that identifies an event, with rows. If the mechanism has `rounds`, it
                identifies a user, in the same way in all rounds.
            item: The name of the column of items, with rows.
            round: The number of this round; the next one by default. Skipped rounds count as empty.
            release: False to add the events and return a release without rows.
            progress: Called now and then while a table is read, with no arguments.

        Returns:
            A Release of items and noisy running counts; without rows for `release=False`.

        Raises:
            StateError: The round is closed already or beyond the horizon, or the stream is closed. Or the columns of
                users are not those of earlier rounds. Or the file is an older copy, and this round was already released
                from other data.
            ParameterError: The events have another form.
            SchemaError: The column of items has another type. None of these errors changes the stream.

        Example:
            >>> import discreet as dp
            >>> stream = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=365).start()
            >>> visits = {"visit": [*range(1000)], "page": ["home"] * 1000}
            >>> stream.step(visits, user="visit", item="page", round=7).items
            ['home']
        """
        require_flag("release", release)
        with self._exclusively() as key:
            keys = self._keys
            number = self._next(round)
            rounds, before = self.mechanism.rounds, self._round
            users = None
            given = Given(events, user, item, self._declared, self._before(number).items, progress)
            if rounds is None:
                kind, added = counts_by_item(given, self.mechanism.l0, key, number)
            else:
                limit = Limit(rounds, self._running.rounds_of)
                kind, added, users = counts_by_user(given, self.mechanism.l0, key, number, limit)
            # Iterating over the events runs the caller's code, which may have closed the stream or added a round.
            self._next(number)
            self._require_open(keys)
            known = self._before(number)
            known.require(Remembered(self._coming, users, kind))
            known = Remembered(self._coming, users or known.users, kind)
            restart = self.mechanism.starts_over(self._round + 1, number)
            step = Round(number, added, restart, None if known == self._known else known)
            if (file := self._file) is not None:
                file.require(step)
            # File and memory may differ until both have the round. The stream is closed meanwhile. So an interrupt
            # leaves it closed, even if the handler below is interrupted too, and no release uses a half-added round.
            keys.clear()
            try:
                # A signal handler may have added this round before the stream was closed. It cannot from here on.
                self._next(number)
                if rounds is not None and self._round != before:
                    raise StateError("a round was added while this one was counted; step it again")
                self._advance(step, key)
                keys.append(key)
                self._require_open(keys)
            except BaseException:
                self._used = None
                self.detach()
                raise
            return self.show() if release else self._running.empty(self._round)

    def _before(self, number: int) -> Remembered:
        """Return what the stream remembers before a round. If it starts over, it forgets the type of its items."""
        restart = self.mechanism.starts_over(self._round + 1, number)
        return dataclasses.replace(self._known, items=self._declared) if restart else self._known

    def _advance(self, step: Round, key: bytes) -> None:
        """Add a round to the file, then to the counts in memory."""
        # The counts are taken before the file: a signal handler that forgets the counts then closes the file too.
        running = self._running
        if (file := self._file) is not None:
            try:
                self._used = file
                file.write(step, [] if step.restart else running.of(step.added))
            finally:
                self._used = None
        if step.restart:
            self._forget()
        self._running.add(step.added, key)
        self._round = step.number
        self._known = step.remembered or self._known
        self._latest = None

    def show(self) -> Release:
        """Return the release of the last round. Every call returns the same release, and costs no budget.

        Raises:
            StateError: The stream is closed, or a round was added meanwhile.
        """
        with self._exclusively():
            keys, latest = self._keys, self._latest
            if latest is None:
                number = self._round
                try:
                    latest = self._running.release(number)
                finally:
                    # A signal handler may have changed the counts while they were read. This error replaces any other
                    # error that the change has caused.
                    if self._round != number:
                        raise StateError("a round was added while this release was computed; call show again")
                    self._require_open(keys)
                self._latest = latest
                self._remember(latest)
            return latest

    def close(self) -> None:
        """End the stream, and destroy its key and counts. Nobody can then compute the noise of its releases again.

        If this call is interrupted or fails, the next `open` of the file destroys them.

        Raises:
            StateError: A file cannot be written.
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
        """Close the file without ending the stream; `open` continues it."""
        if self._process != _core.process():
            # Another thread may have held the lock during the fork. The file belongs to the parent process.
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
        raise TypeError("a Stream is sensitive and is neither copied nor pickled; use Stream.open to keep it in a file")

    def _next(self, number: int | None) -> int:
        following = self._round + 1
        number = following if number is None else require_whole("round", number, 1)
        if number < following:
            raise StateError(f"round {number} is closed: the last is {self._round}; show returns the last release")
        last = self.mechanism.last_round
        if last is not None and number > last:
            raise StateError(f"round {number} is beyond the horizon of {last} rounds; start a new stream")
        return number

    @contextmanager
    def _exclusively(self) -> Iterator[bytes]:
        """Let one thread at a time use the stream, and yield the key.

        The check for a fork comes before the lock, because a forked process may have a copy of the lock that another
        thread held.
        """
        self._require_owner()
        with self._lock:
            keys = self._keys
            if not keys:
                self._let_go()
            self._require_open(keys)
            yield keys[0]

    def _require_owner(self) -> None:
        """Raise StateError in a forked process, whose copy of the stream would use the same noise again."""
        if self._process != _core.process():
            raise StateError("this stream belongs to another process; open its file in this one")

    def _require_open(self, keys: list[bytes]) -> None:
        """Raise StateError if the stream was closed or the process forked, even by the caller's code during a step."""
        self._require_owner()
        if self._keys is not keys or not keys:
            raise StateError("this stream is closed; start a new one, or open its file again")

    def _let_go(self) -> None:
        """Close the stream in memory, then its file. An interrupt in between leaves the stream closed."""
        self._keys = []
        if (file := self._file) is not None and self._used is None:
            try:
                self._used = file
                file.close()
            finally:
                self._used = None
            self._file = None
        self._forget()


StreamMechanism.opens = Stream
