"""The steps that all functions of the package share: the choice of a mechanism, the budget, the release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from discreet import budgets, mechanisms
from discreet.errors import ParameterError
from discreet.logs import debug
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.published import uncounted
from discreet.planning.choose import Notes, stated
from discreet.privacy.guarantee import Guarantee, Promising
from discreet.privacy.validation import require_flag
from discreet.release.release import changed
from discreet.tables.histogram import Histogram
from discreet.tables.table import PairColumns, Table

if TYPE_CHECKING:
    from discreet.budgets.filter import PrivacyFilter
    from discreet.mechanisms.base import Mechanism, Opening
    from discreet.mechanisms.top_k.discover_and_peel import DiscoverAndPeel
    from discreet.release.release import Release

__all__ = ["Asked", "given", "known", "publish", "read_twice", "require_budget", "require_known", "required"]

_Data = TypeVar("_Data")
_Made = TypeVar("_Made", bound=Promising)


@dataclass(frozen=True, slots=True)
class Asked(Generic[_Made]):
    """The guarantee that the caller asked for, and the choice of a mechanism for it."""

    choose: Callable[[float | None, float | None], tuple[_Made, Notes]]
    """Returns the mechanism for an epsilon and a delta, and notes on the choice."""
    epsilon: float | None
    delta: float | None
    every: str | None = None
    """The length of the periods that are part of an item."""

    def chosen(self) -> tuple[_Made, Notes]:
        """Return the mechanism for these parameters, and notes on the choice."""
        return self.choose(self.epsilon, self.delta)

    def guarantee(self, mechanism: Promising) -> Guarantee:
        """Return the mechanism's guarantee, in epsilon if the caller gave epsilon."""
        return stated(mechanism, self.epsilon, self.delta)

    def require_paid(self, budget: PrivacyFilter, mechanism: Promising) -> None:
        """Raise BudgetExceeded unless the budget suffices; the advice is in epsilon if the caller gave epsilon."""
        require_budget(budget)
        budgets.require(budget, mechanism, lambda e, d: self.choose(e, d)[0], self.epsilon, self.delta)


def required(delta: float | None) -> float:
    """Return delta, or raise ParameterError if it is missing."""
    if delta is None:
        raise ParameterError("delta is missing: give the probability that the guarantee fails, far below 1 / users")
    return delta


def given(
    mechanism: object, promised: tuple[object, ...], parameters: Mapping[str, object]
) -> tuple[HistogramMechanism, Notes]:
    """Return the caller's mechanism, or raise ParameterError if other parameters contradict it."""
    if not isinstance(mechanism, HistogramMechanism):
        raise ParameterError("mechanism must be a mechanism that reads a histogram, such as PrivateCountRelease")
    if promised != (None, None, None):
        raise ParameterError("a mechanism has its own privacy parameters: leave out rho, epsilon and delta")
    if parameters != {"l0": None, "relative_error": 0.1, "k_bar": 2**14}:
        raise ParameterError("a mechanism has its own parameters: leave out l0, relative_error and k_bar")
    return mechanism, ()


def require_known(
    items: object, *, others: bool, l0: int | None, mechanism: object
) -> tuple[str | int | bytes | tuple[str | int | bytes, ...], ...] | None:
    """Return the public items of a count, or None; raise ParameterError if other parameters contradict them."""
    if items is None:
        if require_flag("others", others):
            raise ParameterError("others needs items, the items that are public")
        return None
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise ParameterError("items must be a list of labels")
    if mechanism is not None:
        raise ParameterError("items chooses the mechanism: leave out one of items and mechanism")
    found = tuple(items)
    if not found:
        raise ParameterError("items must have at least one label")
    if require_flag("others", others) and l0 is None:
        raise ParameterError("others needs l0, the most items of a user that count: other items need a threshold")
    return found


def known(
    found: HistogramMechanism, items: Iterable[object], notes: Notes, *, others: bool
) -> tuple[HistogramMechanism, Notes]:
    """Return a mechanism that counts public items without its threshold, with the notes on its choice.

    The notes are about other items.
    """
    # With l0, `choose` returns a mechanism with a threshold. KnownItems raises an error for any other.
    parameters: dict[str, Any] = {"mechanism": found, "items": tuple(items)}
    return mechanisms.KnownItems(**parameters), notes if others else ()


def read_twice(
    mechanism: DiscoverAndPeel,
    data: object,
    budget: PrivacyFilter | None,
    asked: Asked[_Made],
    **columns: Unpack[PairColumns],
) -> Release:
    """Return the release of a mechanism that reads the rows twice."""
    table = Table(data, **columns)
    if budget is None:
        return mechanism.release(table)
    asked.require_paid(budget, mechanism)
    return budget.publish(mechanism, lambda rng: mechanism.release(table, rng=rng))


def require_budget(budget: object) -> None:
    """Raise ParameterError for an object that is no budget."""
    if not isinstance(budget, budgets.PrivacyFilter):
        raise ParameterError(
            'budget must be a Budget, or a dataset of a Ledger: Ledger.open("privacy.ledger").dataset("name")'
        )


def publish(
    mechanism: Mechanism[_Data, Release],
    read: Callable[[], _Data],
    budget: PrivacyFilter | None,
    asked: Asked[_Made],
    reasons: Notes,
    *,
    without_counts: bool = False,
) -> Release:
    """Return the release of the counts or items that `read` returns, charged to the budget if there is one."""
    debug("%s reads %s and protects %s", type(mechanism).__name__, mechanism.reads.__name__, mechanism.protects)
    if budget is not None:
        asked.require_paid(budget, mechanism)  # refuse before reading the data
    data, guarantee = read(), asked.guarantee(mechanism)
    if isinstance(data, Histogram) and isinstance(mechanism, mechanisms.KnownItems):
        data._require_type_of(mechanism.items)  # noqa: SLF001 - the schema, which is public

    def draw(rng: Opening | None = None) -> Release:
        release = mechanism.release(data, rng=rng)
        if isinstance(data, Histogram):
            release = changed(release, item_type=data._named(release.item_type))  # noqa: SLF001 - as above
        if without_counts:
            release = changed(uncounted(release), items=sorted(release.items))
        return changed(release, guarantee=guarantee, notes=(*release.notes, *reasons), every=asked.every)

    return draw() if budget is None else budget.publish(mechanism, draw)
