"""Assignment of a file's rows to rounds of time, by DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from discreet import _core
from discreet.engines.batches import SmallBatches
from discreet.engines.csv_rows import CsvRows
from discreet.engines.files import quoted
from discreet.engines.json_rows import JsonRows
from discreet.engines.local import retried_carefully, scan
from discreet.engines.memory import Memory
from discreet.engines.sql import connect
from discreet.engines.validated import interruptible
from discreet.errors import DiscreetError, InputError, ParameterError, ResourceError, SchemaError, raise_alone
from discreet.privacy.validation import require_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["TimedEvents"]

_LOCAL = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"}
_TEXT = {"VARCHAR"}
_FIRST, _END = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999, as counts have them: seconds since 1970 of 0001-01-01, and of the end of 9999."""


class TimedEvents:
    """The rows of a file by round. With `one_round`, an event is in the round of its first row only.

    Times may have an offset from UTC, as in 2026-01-31T12:00:00+01:00. A time without one is UTC, whatever the zone of
    this machine. Text with an offset of more than 18 hours, or with the name of a zone, is not a time. A time outside
    the years 1 to 9999 is left out, and its fraction of a microsecond is cut off, as in counts by periods.

    Raises:
        SchemaError: The column of times has a type that cannot hold times.
        InputError: The file cannot be read.
        ParameterError: Two of the names are the same.
    """

    def __init__(self, data: str, *, event: str, item: str, time: str, one_round: bool = True) -> None:
        if len({event, item, time}) < 3:
            raise ParameterError.about("{user}, {item} and {time} must be the names of three different columns")
        for name in (event, item, time):
            require_text("the name of a column", name)
        self._data, self._columns, self._one_round = data, (event, item, time), one_round
        # All three columns: if a column is missing, the error suggests a similar name only if another column exists.
        found = scan([data], list(self._columns))
        kind = "VARCHAR" if isinstance(found, CsvRows | JsonRows) else str(found.types[2])
        self.text = kind in _TEXT
        """Whether the times are text. Cells of text need not be times."""
        if not self.text and kind not in _LOCAL | _ZONED:
            raise SchemaError(
                f"the column {time!r} is of the type {kind}, which cannot hold times: give timestamps, dates or "
                "text, such as seconds since 1970 by to_timestamp(...) in SQL"
            )
        cell = quoted(time)
        typed = f"TRY_CAST({cell} AS TIMESTAMP{'TZ' if kind in _ZONED else ''})"
        if kind.endswith("_NS"):  # a cast rounds nanoseconds, which may begin the next round
            micros = f"epoch_ns({cell}) // 1000 - CAST(epoch_ns({cell}) % 1000 < 0 AS INTEGER)"
            typed = f"make_timestamp({micros})"
        # The grammar of counts, so that streams and counts drop the same rows. A cast would also read names of zones.
        self._moment = f"make_timestamp(moment_of(coalesce({cell}, '')))" if self.text else typed

    @interruptible()
    def rows_by_round(self, since: datetime, span: timedelta) -> Callable[[int], DuckDBPyRelation]:
        """Return a function that returns the rows of a round, as a table of the columns of users and items.

        Raises:
            InputError: The rows cannot be read.
            ResourceError: The rounds do not fit into half of the machine's memory.
        """
        event, item, _ = map(quoted, self._columns)

        def attempt(careful: bool) -> DuckDBPyConnection:
            connection = connect(limit=Memory.of(None).total)
            connection.execute("SET TimeZone = 'UTC'")
            if self.text:
                from duckdb.func import SPECIAL  # a function that may return None

                connection.create_function("moment_of", _core.moment_of, ["VARCHAR"], "BIGINT", null_handling=SPECIAL)
            connection.register("given", SmallBatches(scan([self._data], list(self._columns), careful=careful)))
            second = f"epoch({self._moment})"
            place = f"floor(({second} - {since.timestamp()!r}) / {span.total_seconds()!r}) + 1"
            place = f"CASE WHEN {second} >= {_FIRST} AND {second} < {_END} THEN {place} END"
            connection.execute(
                f'CREATE TEMP TABLE placed AS SELECT DISTINCT place, "user", item FROM '
                f'(SELECT {place} AS place, {event} AS "user", {item} AS item FROM given)'
                + (' QUALIFY place = min(place) OVER (PARTITION BY "user")' if self._one_round else "")
            )
            return connection

        try:
            connection = retried_carefully([self._data], attempt)
        except (MemoryError, DiscreetError):
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryException":
                raise_alone(
                    ResourceError("the rounds need more memory than half of this machine's; use a machine with more")
                )
            raise_alone(InputError(f"cannot read the rounds of {self._data}; check its columns and times"))
        # The names of the columns are those of the file: a stream requires the same column of users in all rounds.
        columns = f'"user" AS {event}, item AS {item}'
        return lambda number: connection.sql(f"SELECT {columns} FROM placed WHERE place = {number}")
