"""The rows of a file by rounds of time; by DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from discreet.engines.batches import Rows
from discreet.engines.csv_rows import CsvRows
from discreet.engines.files import quoted
from discreet.engines.local import scan, scanning
from discreet.engines.sql import connect, interruptible
from discreet.errors import DiscreetError, InputError, ParameterError, SchemaError, raise_alone

__all__ = ["TimedEvents"]

_MOMENTS = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"}
_TEXT = {"VARCHAR"}


class TimedEvents:
    """Events of a file, each in the round of its first row alone.

    A time with a zone is a moment; one without is taken for UTC, whatever the zone of this machine. Raises
    SchemaError where the column of times has a type that times cannot have, InputError for what cannot be read,
    ParameterError where one column is named twice.
    """

    def __init__(self, data: str, *, event: str, item: str, time: str) -> None:
        if len({event, item, time}) < 3:
            raise ParameterError("user, item and time must be the names of three different columns")
        self._data, self._columns = data, (event, item, time)
        found = scan([data], list(self._columns))  # all three, since a near miss is looked for among known names alone
        kind = "VARCHAR" if isinstance(found, CsvRows) else str(found.types[2])
        self.text = kind in _TEXT
        """Whether the times are text, of which a cell may be any."""
        if not self.text and kind not in _MOMENTS:
            raise SchemaError(
                f"the column {time!r} is of the type {kind}, which no time is: give one of timestamps, dates or text"
            )
        self._moment = quoted(time) if "ZONE" in kind else f"TRY_CAST({quoted(time)} AS TIMESTAMP)"

    def rounds(self, since: datetime, span: timedelta) -> Callable[[int], Any]:
        """What gives the rows of a round, as a table of user and item."""
        event, item, _ = map(quoted, self._columns)

        def attempt(careful: bool) -> Any:
            connection = connect()
            connection.register("given", Rows(scan([self._data], list(self._columns), careful=careful)))
            place = f"floor((epoch({self._moment}) - {since.timestamp()!r}) / {span.total_seconds()!r}) + 1"
            with interruptible():
                connection.execute(
                    f'CREATE TEMP TABLE placed AS SELECT place, "user", item FROM '
                    f'(SELECT {place} AS place, {event} AS "user", {item} AS item FROM given) '
                    'QUALIFY place = min(place) OVER (PARTITION BY "user")'
                )
            return connection

        try:
            connection = scanning([self._data], attempt)
        except (MemoryError, DiscreetError):
            raise
        except Exception:
            raise_alone(InputError(f"cannot read the rounds of {self._data}; check its columns and times"))
        return lambda number: connection.sql(f'SELECT "user", item FROM placed WHERE place = {number}')
