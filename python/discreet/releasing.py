"""The steps that all functions of the package share: the choice of a mechanism, the budget, the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from discreet import budgets, mechanisms
from discreet.engines.table import Table
from discreet.errors import ParameterError
from discreet.logs import debug
from discreet.mechanisms.base import made_for
from discreet.mechanisms.fewest import Notes
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import RELATIVE_ERROR, require_countable, require_list
from discreet.mechanisms.published import uncounted
from discreet.planning.choose import required, stated
from discreet.planning.public_items import with_known
from discreet.privacy.guarantee import Guarantee, Promising, require_promise, unusual
from discreet.privacy.validation import is_equal, require_flag
from discreet.release.release import changed
from discreet.tables.histogram import Histogram

if TYPE_CHECKING:
    from discreet.budgets.filter import Charging, PrivacyFilter
    from discreet.mechanisms.base import Mechanism, Opening
    from discreet.mechanisms.top_k.discover_and_peel import DiscoverAndPeel
    from discreet.release.release import Release

__all__ = [
    "Asked",
    "Bounding",
    "given",
    "publish",
    "publish_rows",
    "read_twice",
    "require_budget",
    "require_charge",
    "require_known",
    "required",
]

_Data = TypeVar("_Data")
_Made = TypeVar("_Made", bound=Promising)


@dataclass(frozen=True, slots=True)
class Asked(Generic[_Made]):
    """The guarantee that the caller asked for, and the choice of a mechanism for it."""

    choose: Callable[[float | None, float | None], tuple[_Made, Notes]]
    """Returns the mechanism for an epsilon and a delta, and notes on the choice."""
    epsilon: float | None
    delta: float | None
    quoted_at: float | None = None
    """The delta at which a guarantee without a delta of its own is stated as (epsilon, delta)-DP."""

    def chosen(self) -> tuple[_Made, Notes]:
        """Return the mechanism for these parameters, and notes on the choice."""
        return self.choose(self.epsilon, self.delta)

    def guarantee(self, mechanism: Promising) -> Guarantee:
        """Return the mechanism's guarantee, in epsilon if the caller gave epsilon."""
        if self.quoted_at is None:
            return stated(mechanism, self.epsilon, self.delta)
        guarantee = mechanism.guarantee
        epsilon = guarantee.epsilon(self.quoted_at)
        return guarantee if guarantee.dp == (epsilon, 0) else guarantee.stating(epsilon, self.quoted_at)

    def require_paid(self, budget: PrivacyFilter, mechanism: Promising) -> None:
        """Raise BudgetExceeded unless the budget suffices; the advice is in epsilon if the caller gave epsilon."""
        require_budget(budget)
        budget._require_chargeable()  # noqa: SLF001 - a ledger that is read-only is refused before the data is read
        budgets.require(budget, mechanism, lambda e, d: self.choose(e, d)[0], self.epsilon, self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounding:
    """The way in which `count` bounds the items of a user and measures what the bound keeps."""

    l0: int | None
    """The bound; None to find it with privacy."""

    @classmethod
    def of(cls, l0: int | Literal["auto"] | None, *, kept_share: bool) -> Bounding | None:
        """Return how to find or measure a bound, or None if neither is asked for.

        Raises:
            ParameterError: A parameter has no use, or l0 is text other than "auto".
        """
        measures = require_flag("kept_share", kept_share)
        if isinstance(l0, str):
            if l0 != "auto":
                raise ParameterError('l0 must be a whole number of at least 1, "auto" or None')
            return cls(l0=None)
        if not measures:
            return None
        if l0 is None:
            raise ParameterError(
                "kept_share needs l0: without a bound, all pairs of users and items are kept", names="kept_share l0"
            )
        return cls(l0=l0)

    def require_rows(self, items: object, *, others: bool, mechanism: object, relative_error: float) -> None:
        """Raise ParameterError for parameters of `count` that exclude this bound."""
        name = 'l0="auto"' if self.l0 is None else "kept_share"
        if mechanism is not None:
            raise ParameterError(f"a mechanism has its own parameters: leave out {name}")
        if not is_equal(relative_error, RELATIVE_ERROR):
            raise ParameterError("l0 excludes relative_error: leave out either of them", names="l0 relative_error")
        if items is not None and self.l0 is None:
            raise ParameterError('l0="auto" finds a bound for all items: with items, give l0 as a number', names="l0")
        if items is not None and not others:
            raise ParameterError(
                "kept_share is about all items of a user: with items, give others=True", names="kept_share"
            )

    def made(
        self, rho: float | None, epsilon: float | None, delta: float, listed: tuple[object, ...] | None
    ) -> tuple[mechanisms.CountsWithShare | mechanisms.CountsWithFoundBound, Notes]:
        """Return the mechanism for a guarantee, and notes on the choice."""
        require_promise(rho, epsilon, delta)
        if self.l0 is None:
            made = made_for(mechanisms.CountsWithFoundBound, rho, epsilon, delta=delta)
            return made, unusual(stated(made, epsilon, delta))
        shared, notes = mechanisms.CountsWithShare.chosen(rho=rho, epsilon=epsilon, delta=delta, l0=self.l0)
        if listed is not None:
            shared = replace(shared, mechanism=with_known(shared.mechanism, listed))
        return shared, (*notes, *unusual(stated(shared, epsilon, delta)))


def publish_rows(
    bounding: Bounding,
    table: Table,
    promised: tuple[float | None, float | None, float | None],
    listed: tuple[object, ...] | None,
    budget: PrivacyFilter | None,
    charge: Charging,
) -> Release:
    """Return the release of counts whose bound is found or measured, charged to the budget if there is one."""
    rho, epsilon, delta = promised
    asked = Asked(lambda e, d: bounding.made(rho, e, required(d), listed), epsilon, delta)
    made, reasons = asked.chosen()
    return publish(made, lambda: table, budget, asked, reasons, charge=charge)


def given(
    mechanism: object, promised: tuple[object, ...], parameters: Mapping[str, object]
) -> tuple[HistogramMechanism | TableMechanism, Notes]:
    """Return the caller's mechanism, or raise ParameterError if other parameters contradict it."""
    if not isinstance(mechanism, HistogramMechanism | TableMechanism):
        raise ParameterError(
            "mechanism must be a mechanism that reads a histogram or a table, such as PrivateCountRelease"
        )
    if promised != (None, None, None):
        raise ParameterError("a mechanism has its own privacy parameters: leave out rho, epsilon and delta")
    if parameters != {"l0": None, "relative_error": RELATIVE_ERROR}:
        raise ParameterError("a mechanism has its own parameters: leave out l0 and relative_error")
    require_countable(getattr(mechanism, "items", ()))
    return mechanism, unusual(mechanism.guarantee)


def require_known(
    items: object, *, others: bool, l0: int | None, mechanism: object
) -> tuple[str | int | bytes | tuple[str | int | bytes, ...], ...] | None:
    """Return the public items of a count, or None; raise ParameterError if other parameters contradict them."""
    if items is None:
        if require_flag("others", others):
            raise ParameterError("others needs items, the items that are public", names="others items")
        return None
    items = require_list(items)
    if mechanism is not None:
        raise ParameterError("items chooses the mechanism: leave out one of items and mechanism")
    found: tuple[Any, ...] = tuple(items)
    if not found:
        raise ParameterError("items must have at least one label")
    if any(isinstance(label, list) for label in found):
        raise ParameterError('an item of several columns must be a tuple, such as ("home", "DE"), not a list')
    require_countable(found)
    require_flag("others", others)
    return found


def read_twice(
    mechanism: DiscoverAndPeel,
    table: Table,
    budget: PrivacyFilter | None,
    asked: Asked[_Made],
    reasons: Notes,
    charge: Charging = "guarantee",
) -> Release:
    """Return the release of a mechanism that reads the rows twice."""

    def draw(rng: Opening | None = None) -> Release:
        release = mechanism.release(table, rng=rng)
        return changed(release, notes=(*release.notes, *reasons))

    if budget is None:
        return draw()
    asked.require_paid(budget, mechanism)
    return budget.publish(mechanism, draw, charge)


def require_charge(charge: object, budget: PrivacyFilter | None) -> None:
    """Raise ParameterError for a `charge` that is unknown, or that has no budget."""
    if isinstance(charge, str) and charge == "guarantee":
        return
    budgets.require_charging(charge)
    if budget is None:
        raise ParameterError('charge="spent" needs budget: a Budget, or a dataset of a Ledger')


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
    charge: Charging = "guarantee",
) -> Release:
    """Return the release of the counts or items that `read` returns, charged to the budget if there is one."""
    debug("%s reads %s and protects %s", type(mechanism).__name__, mechanism.reads.__name__, mechanism.protects)
    if budget is not None:
        asked.require_paid(budget, mechanism)  # refuse before reading the data
    data, guarantee = read(), asked.guarantee(mechanism)
    if isinstance(data, Histogram) and (items := getattr(mechanism, "items", None)) is not None:
        data._require_type_of(items)  # noqa: SLF001 - the schema, which is public

    def draw(rng: Opening | None = None) -> Release:
        release = mechanism.release(data, rng=rng)
        if isinstance(data, Histogram):
            release = changed(release, item_type=data._named(release.item_type))  # noqa: SLF001 - as above
        if without_counts:
            release = changed(uncounted(release), items=sorted(release.items))
        return changed(release, guarantee=guarantee, notes=(*release.notes, *reasons))

    return draw() if budget is None else budget.publish(mechanism, draw, charge)
