"""The events of a budget, and the rows of its history that are made from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from discreet import _core
from discreet.budgets.charge import NOTHING, Charge, EpsilonDelta
from discreet.errors import needs
from discreet.release import export, markup
from discreet.release.provenance import Provenance
from discreet.wording import shown_up

if TYPE_CHECKING:
    import pandas

    from discreet.privacy.guarantee import Guarantee

__all__ = ["Event", "History", "Spending", "charging", "shown_columns", "spendings", "spent_over_time"]

_SHOWN = 50
"""The most charges that the text of a history shows: the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An entry in the log of a budget."""

    kind: Literal["created", "opened", "reserved", "charged", "released"]
    """The kind of entry.

    A ledger was "created", or a dataset "opened" with its total. A charge was "reserved" for a release that is drawn
    next, or "charged" for a release made elsewhere. A reserved release was "released".
    """
    dataset: str = ""
    of: int | None = None
    """For a release, the number of the event that reserved its charge."""
    charge: Charge = NOTHING
    """The total, the charge, or the refund of a release."""
    mechanism: str = ""
    parameters: str = ""
    """The parameters in the mechanism's repr; for a total JSON."""
    digest: str = ""
    """The SHA-256 of the published rows."""
    about: Provenance | None = None
    """The provenance of the release that was charged."""
    promise: str = ""
    """The SHA-256 of the parameters of a release that is charged once. A period and that of its input may follow."""
    version: str = _core.__version__
    time: str = dataclasses.field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


def charging(
    kind: Literal["reserved", "charged"],
    charge: Charge,
    maker: object,
    about: Provenance | None = None,
    promise: str = "",
) -> Event:
    """Return the event of a charge for `maker`, which is a mechanism or a name."""
    if isinstance(maker, str):
        return Event(kind=kind, charge=charge, mechanism=maker)
    name, text = type(maker).__name__, repr(maker)
    parameters = text[len(name) + 1 : -1] if text.startswith(f"{name}(") else ""
    return Event(kind=kind, charge=charge, mechanism=name, parameters=parameters, about=about, promise=promise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """One charge in a budget's history. PUBLIC: it depends on the data only through releases."""

    number: int
    """The place of the charge among the charges of the budget, or of all datasets of the ledger: 1, 2, 3 and so on."""
    time: str
    dataset: str
    mechanism: str
    parameters: str
    rho: float
    """The cost after refunds, rounded up."""
    delta: float
    status: Literal["reserved", "charged", "released"]
    """The last step of the charge.

    "reserved": charged for a release that is not published, or not yet. "charged": charged for work outside the
    budget. "released": the release was published."""
    digest: str
    """The SHA-256 of the published rows; empty if there are none."""
    version: str
    label: str = ""
    """The caller's label. This field and the next ones are empty for charges without them; see `Provenance`."""
    verb: str = ""
    columns: str = ""
    period: str = ""
    files: str = ""
    once: str = ""
    """The caller's key of a release that is charged once."""
    replaces: str = ""
    """The key or label of the earlier charge that this one replaces."""
    begun: str = ""
    """The time of the call, before any data was read."""
    pair: EpsilonDelta | None = None
    """The epsilon and delta of a charge to a budget that adds up epsilons. Its rho and delta are the same shares."""
    stated: tuple[float, float] = (0.0, 0.0)
    """The rho and delta before a refund. Outputs decide refunds, so only these add up to a guarantee."""

    @property
    def is_refunded(self) -> bool:
        """Whether a part of the charge was given back after the release."""
        return self.stated != (self.rho, self.delta)

    def __repr__(self) -> str:
        made_by = export.shown_call(f"{self.mechanism}({self.parameters})")
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["parameters"] = made_by.removeprefix(f"{self.mechanism}(").removesuffix(")")
        return f"Spending({', '.join(f'{name}={value!r}' for name, value in fields.items())})"

    @property
    def epsilon(self) -> float | None:
        """The epsilon of a charge to a budget that adds up epsilons; None for other charges."""
        return None if self.pair is None else self.pair[0]

    def shown(self, name: str) -> str:
        """Return a field as text: the epsilon and delta of a charge that has them, instead of its shares."""
        if self.pair is not None and name in ("rho", "delta"):
            return shown_up(self.pair[1]) if name == "delta" else ""
        value = getattr(self, name)
        return "" if value is None else shown_up(value) if isinstance(value, float) else export.shortened(value)


_SHOWN_IF_ANY = (*(name for name in Provenance.__slots__ if name != "begun"), "rho", "epsilon")
"""The columns of a table of charges that are left out if all their cells are empty."""


class History(list[Spending]):
    """The charges to a budget in order: a list that prints as a table."""

    __slots__ = ()

    @property
    def _columns(self) -> list[str]:
        return shown_columns(self[-_SHOWN:], ("number", "time", "dataset", "mechanism"), ("delta", "status"))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the charges as a pandas.DataFrame with one column for each field (needs pandas).

        Returns:
            A frame with the fields of `Spending`, one row for each charge.
        """
        with needs("pandas"):
            import pandas
        names = [field.name for field in dataclasses.fields(Spending)]
        return pandas.DataFrame([dataclasses.astuple(row) for row in self], columns=names)

    def _cells(self) -> list[list[str]]:
        """Return the last charges as text."""
        columns = self._columns
        return [[row.shown(name) for name in columns] for row in self[-_SHOWN:]]

    @property
    def _more(self) -> tuple[str, ...]:
        return (f"the last {_SHOWN} of {len(self):,} charges",) if len(self) > _SHOWN else ()

    def __repr__(self) -> str:
        rows = [list(self._columns), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join([*self._more, *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        return markup.table(self._columns, self._cells(), notes=self._more)


def shown_columns(rows: Iterable[Spending], first: Iterable[str], last: Iterable[str]) -> list[str]:
    """Return the columns of a table of charges: some first and last ones, and between them what the charges are for."""
    rows = [*rows]
    return [*first, *(name for name in _SHOWN_IF_ANY if any(row.shown(name) for row in rows)), *last]


def spendings(events: Iterable[tuple[int, Event]]) -> History:
    """Return the rows of a history from numbered events, one for each charge."""
    charged: dict[int, Event] = {}
    released: dict[int, Event] = {}
    for number, event in events:
        if event.kind in ("reserved", "charged"):
            charged[number] = event
        elif event.of is not None:
            released[event.of] = event
    return History(
        _spending(place, event, released.get(number)) for place, (number, event) in enumerate(charged.items(), 1)
    )


def spent_over_time(rows: Iterable[Spending], total: Guarantee) -> list[tuple[datetime, float]]:
    """Return the time of each charge, and the part of the total that is spent then, in percent.

    The part is that of rho or of delta, whichever is larger: the budget ends when either is spent.
    """
    points, rho, delta = [], 0.0, 0.0
    for row in rows:
        rho, delta = rho + row.rho, delta + row.delta
        parts = [spent / whole for spent, whole in ((rho, total.rho), (delta, total.delta)) if whole]
        # One release that is (epsilon, delta)-DP by its own proof may have more rho than the total.
        points.append((datetime.fromisoformat(row.time), 100 * min(1.0, max(parts, default=0.0))))
    return points


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
        status="released" if end is not None else "reserved" if event.kind == "reserved" else "charged",
        digest="" if end is None else end.digest,
        version=event.version,
        pair=event.charge.pair,
        stated=event.charge.floats(),
        **dict(event.about or ()),
    )
