"""What a budget writes down: events, in the order in which they happened, and the rows that they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from discreet import _core
from discreet.budgets.charge import NOTHING, Charge

__all__ = ["Event", "Spending", "charging", "spendings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to a budget."""

    kind: Literal["created", "opened", "reserved", "charged", "released"]
    """A ledger was created, a dataset's total fixed, a charge made for a draw that follows, a charge made for what
    runs elsewhere, a draw published."""
    dataset: str = ""
    of: int | None = None
    """For a release, the number of the event that reserved its charge."""
    charge: Charge = NOTHING
    """The total, the charge, or what a release gave back."""
    mechanism: str = ""
    parameters: str = ""
    """As the mechanism shows them; those of a total or a ledger as JSON."""
    digest: str = ""
    """That of the published rows."""
    version: str = _core.__version__
    time: str = dataclasses.field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


def charging(kind: Literal["reserved", "charged"], charge: Charge, maker: object) -> Event:
    """The event of a charge for a mechanism, or for what has the name `maker`."""
    if isinstance(maker, str):
        return Event(kind=kind, charge=charge, mechanism=maker)
    name, text = type(maker).__name__, repr(maker)
    parameters = text[len(name) + 1 : -1] if text.startswith(f"{name}(") else ""
    return Event(kind=kind, charge=charge, mechanism=name, parameters=parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """One release, or one charge, in a budget's history. PUBLIC: it depends on the data through what was released."""

    number: int
    time: str
    dataset: str
    mechanism: str
    parameters: str
    rho: float
    """What it cost in the end, rounded up."""
    delta: float
    status: Literal["reserved", "charged", "released"]
    """Charged before a draw of which nothing was published, or not yet; charged for what ran elsewhere; published."""
    digest: str
    """The SHA-256 of the published rows, empty where there are none."""
    version: str


def spendings(events: Iterable[tuple[int, Event]]) -> list[Spending]:
    """The rows that numbered events make."""
    charged: dict[int, Event] = {}
    released: dict[int, Event] = {}
    for number, event in events:
        if event.kind in ("reserved", "charged"):
            charged[number] = event
        elif event.of is not None:
            released[event.of] = event
    return [_spending(number, event, released.get(number)) for number, event in charged.items()]


def _spending(number: int, event: Event, end: Event | None) -> Spending:
    rho, delta = (event.charge if end is None else event.charge - end.charge).floats()
    return Spending(
        number=number,
        time=event.time,
        dataset=event.dataset,
        mechanism=event.mechanism,
        parameters=event.parameters,
        rho=rho,
        delta=delta,
        status="released" if end is not None else event.kind,  # type: ignore[arg-type]
        digest="" if end is None else end.digest,
        version=event.version,
    )
