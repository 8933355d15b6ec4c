"""The rows of a file by rounds of time; by DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from discreet.engines.batches import Rows
from discreet.engines.csv_rows import CsvRows
from discreet.engines.files import quoted
from discreet.engines.local import scan, scanning
from discreet.engines.memory import Memory
from discreet.engines.sql import connect, interruptible
from discreet.errors import DiscreetError, InputError, ParameterError, ResourceError, SchemaError, raise_alone

__all__ = ["TimedEvents"]

_LOCAL = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"}
_TEXT = {"VARCHAR"}
_MOST_OFFSET = 18
"""In hours. Times of ISO 8601 in use are at most 14 hours from UTC, and java.time allows 18."""


class TimedEvents:
    """Events of a file, each in the round of its first row alone.

    A time with a zone is a moment, also in text such as 2026-01-31T12:00:00+01:00; one without is taken for UTC,
    whatever the zone of this machine. Text with an offset from UTC of more than 18 hours is no time. Raises SchemaError
    where the column of times has a type that times cannot have, InputError for what cannot be read,
    ParameterError where one column is named twice.
    """

    def __init__(self, data: str, *, event: str, item: str, time: str) -> None:
        if len({event, item, time}) < 3:
            raise ParameterError("user, item and time must be the names of three different columns")
        self._data, self._columns = data, (event, item, time)
        found = scan(
            [data], list(self._columns), time=time
        )  # all three, since a near miss is looked for among known names alone
        kind = "VARCHAR" if isinstance(found, CsvRows) else str(found.types[2])
        self.text = kind in _TEXT
        """Whether the times are text, of which a cell may be any."""
        if not self.text and kind not in _LOCAL | _ZONED:
            raise SchemaError(
                f"the column {time!r} is of the type {kind}, which no time is: give one of timestamps, dates or text"
            )
        cell = quoted(time)
        zoned = f"TRY_CAST({cell} AS TIMESTAMP{'TZ' if kind in _ZONED else ''})"
        self._moment = _text_moment(cell) if self.text else zoned

    def rounds(self, since: datetime, span: timedelta) -> Callable[[int], Any]:
        """What gives the rows of a round, as a table of user and item."""
        event, item, _ = map(quoted, self._columns)
        time = self._columns[2]

        def attempt(careful: bool) -> Any:
            connection = connect(Memory.of(None))
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("given", Rows(scan([self._data], list(self._columns), careful=careful, time=time)))
            place = f"floor((epoch({self._moment}) - {since.timestamp()!r}) / {span.total_seconds()!r}) + 1"
            with interruptible():
                connection.execute(
                    f'CREATE TEMP TABLE placed AS SELECT DISTINCT place, "user", item FROM '
                    f'(SELECT {place} AS place, {event} AS "user", {item} AS item FROM given) '
                    'QUALIFY place = min(place) OVER (PARTITION BY "user")'
                )
            return connection

        try:
            connection = scanning([self._data], attempt)
        except (MemoryError, DiscreetError):
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryException":
                raise_alone(ResourceError("the rounds need more memory than half of what the machine allows"))
            raise_alone(InputError(f"cannot read the rounds of {self._data}; check its columns and times"))
        return lambda number: connection.sql(f'SELECT "user", item FROM placed WHERE place = {number}')


def _text_moment(cell: str) -> str:
    """Return the SQL of a moment in UTC for a cell of text, NULL where it is no time.

    DuckDB takes any two digits for the hours and minutes of an offset. A cast to TIMESTAMP ignores the offset, so the
    difference between both casts is the offset.
    """
    # A space before the offset, as in 2026-01-31 12:00:00 +0100, is no part of what DuckDB parses.
    text = f"regexp_replace({cell}, ' ([+-][0-9]{{2}}:?[0-9]{{2}})$', '\\1')"
    moment, local = f"TRY_CAST({text} AS TIMESTAMPTZ)", f"TRY_CAST({text} AS TIMESTAMP)"
    is_near = f"abs(epoch({local}) - epoch({moment})) <= {_MOST_OFFSET * 3600}"
    return f"CASE WHEN {is_near} AND NOT regexp_matches({text}, '[+-][0-9]{{2}}:?[6-9][0-9]$') THEN {moment} END"
