"""`Clock`: the times at which the rounds of a stream begin and end. PUBLIC."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from discreet import _core
from discreet.errors import ParameterError

__all__ = ["Clock"]

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The start of round one and the length of a round.

    Args:
        since: The time at which round one begins, such as 2026-01-31T12:00. Without a zone it is in UTC.
        every: The length of a round, such as 30m, 6h, 1d or 2w.
        column: The text column that the caller has confirmed to hold times, if there is one.

    Raises:
        ParameterError: `since` or `every` cannot be parsed.
    """

    since: str
    every: str
    column: str | None = None

    def __post_init__(self) -> None:
        _ = self.begin, self.span

    @property
    def begin(self) -> datetime:
        """The time at which round one begins."""
        return _moment(self.since)

    @property
    def span(self) -> timedelta:
        """The length of a round."""
        found = re.fullmatch(r"(\d{1,6})\s*([mhdw])", self.every.strip())
        if found is None or int(found[1]) == 0:
            raise ParameterError(
                f"the length of a round must be a number and m, h, d or w, such as 30m or 1d, not {self.every[:20]!r}"
            )
        return timedelta(**{_UNITS[found[2]]: int(found[1])})

    def keeps_time_with(self, other: Clock) -> bool:
        """Return whether the rounds of both clocks begin and end at the same times."""
        return (self.begin, self.span) == (other.begin, other.span)

    def rounds_until(self, until: str) -> int:
        """Return the number of rounds until a time; raise ParameterError unless a round ends at that time."""
        passed = _moment(until) - self.begin
        if passed <= timedelta(0):
            raise ParameterError.about(
                "{until} must be later than {}, when round one begins, not {}", self.since, until
            )
        number = passed // self.span
        if passed % self.span:
            first = number + (number == 0)
            raise ParameterError(
                f"until {until} is in the middle of a round: rounds take {self.every} since {self.since}, and "
                f"round {first} ends {self.end(first)}"
            )
        return number

    def end(self, number: int) -> str:
        """Return the time at which a round ends, as text."""
        moment = self.begin + number * self.span
        if moment.utcoffset():
            return moment.isoformat()
        return moment.isoformat().removesuffix("+00:00").removesuffix("T00:00:00").removesuffix(":00")


def _moment(text: str) -> datetime:
    """Return a time in a form that a column of text may have, with its offset from UTC if ISO 8601 has the form."""
    zone, found = None, None
    with suppress(ValueError):
        found = _core.moment_of(text)
        zone = datetime.fromisoformat(text).tzinfo
    if found is None:
        raise ParameterError(f"a time is written 2026-01-31 or 2026-01-31T12:00, not {text[:30]!r}")
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=found)).astimezone(zone or UTC)
