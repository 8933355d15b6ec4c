"""The steps that all functions of the package share: the choice of a mechanism, the budget, the release."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from discreet import budgets, mechanisms
from discreet.engines.projection import is_free
from discreet.engines.table import Columns, Table, as_table
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
from discreet.privacy.guarantee import Guarantee, Promising, Unit, per_unit, require_promise, unusual
from discreet.privacy.validation import in_terms_of, is_equal, is_zero, require_flag
from discreet.release.export import kind_of
from discreet.release.provenance import Provenance, ReleaseTexts, inputs_of
from discreet.release.release import Release, changed
from discreet.signatures import showing
from discreet.tables.histogram import Histogram

if TYPE_CHECKING:
    from discreet.budgets.filter import Charging, PrivacyFilter
    from discreet.engines.engine import Label
    from discreet.mechanisms.base import Mechanism, Opening
    from discreet.release.export import ItemType

__all__ = [
    "Asked",
    "Call",
    "Options",
    "bounding",
    "given",
    "is_bounding",
    "publish",
    "quoted_at",
    "require_budget",
    "require_charge",
    "require_known",
    "required",
    "with_options",
]

_Data = TypeVar("_Data")
_Made = TypeVar("_Made", bound=Promising)
_WHOLE = re.compile("-?[0-9]+")
_TEXTS = re.compile(r"""'(-?[0-9]+)'|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
"""A text in a repr; the group has the digits of one that is a number. Quotes inside of a text begin no other."""


class Options(Columns, ReleaseTexts, total=False):
    """The options of all verbs: the columns of rows, and the labels of a charge."""


with_options = showing(Columns, ReleaseTexts, unit="user")
"""The decorator of a verb, which shows them in its signature and docstring."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a verb: its table, the budget that it charges, and its provenance."""

    table: Table
    budget: PrivacyFilter | None
    charge: Charging
    about: Provenance
    verb: Callable[..., Release]
    parameters: Mapping[str, object]
    """The other parameters of the call."""

    @classmethod
    def of(
        cls,
        verb: Callable[..., Release],
        data: object,
        options: Options,
        budget: PrivacyFilter | None,
        parameters: Mapping[str, object],
        charge: Charging = "guarantee",
        value: str | None = None,
        values: Sequence[str] = (),
    ) -> Call:
        """Return the call of a verb; raise ParameterError if its columns, charge or labels are wrong."""
        require_charge(charge, budget)
        texts = {name: options.get(name) for name in ReleaseTexts.__annotations__}
        columns: Any = {name: given for name, given in options.items() if name not in texts}
        table = as_table(data, columns, value, caller=verb)
        about = Provenance.of(verb.__name__, table, values=values, **texts)
        if budget is None:
            budgets.PrivacyFilter._refuse_names(about)  # noqa: SLF001 - as a budget in memory does
        return cls(table, budget, charge, about, verb, parameters)

    def require_paid(self, asked: Asked[_Made], mechanism: Promising, *more: object) -> str:
        """Return the promise of the release, or raise an error if the budget cannot pay for it or has done so.

        The promise is the SHA-256 of what the caller stated: a later version may have other defaults, and choose other
        mechanisms. The promises of earlier versions have the mechanism, its guarantee and `more`. If the data has a
        name, a period and the SHA-256 of the name follow.
        """
        if self.budget is None:
            return ""
        require_budget(self.budget)
        promise = earlier = ""
        if self.about.once:
            table = self.table
            columns = table.user, table.item, table.period, table.value, table.valued
            parts = self.about.verb, mechanism, self.guarantee(asked, mechanism), self.charge, columns, more
            earlier = _sha256(_TEXTS.sub(lambda found: found[1] or found[0], repr(parts)))
            inputs = inputs_of(table.data)
            promise = _sha256(self._stated()) + (f".{_sha256(inputs)}" if inputs else "")
        self.budget._require_unnamed(self.about, promise, earlier)  # noqa: SLF001 - before the data is read
        asked.require_paid(self.budget, mechanism, self.table.unit)
        return promise

    def _stated(self) -> str:
        """Return the verb, the columns, and the parameters that are not defaults, as text that no version changes."""
        table = self.table
        period = {} if table.period is None else table.period._asdict()
        columns = {"user": table.user, "item": table.item, "value": table.value, **period, "charge": self.charge}
        defaults = {"charge": "guarantee"}
        for function in (Table.__init__, self.verb):
            defaults |= function.__kwdefaults__ or {}
        return _named(self.about.verb, {**columns, **self.parameters}, defaults)

    def guarantee(self, asked: Asked[_Made], mechanism: Promising) -> Guarantee:
        """Return the guarantee of a release of the table, in epsilon if the caller gave epsilon."""
        return per_unit(asked.guarantee(mechanism), self.table.unit)

    def published(
        self, mechanism: Promising, draw: Callable[..., Release], promise: str, asked: Asked[_Made]
    ) -> Release:
        """Return the release that `draw` makes, charged to the budget if there is one."""

        def named(rng: Opening | None = None) -> Release:
            release = draw(rng)
            return changed(release, item_type=self._named(release.item_type), provenance=self.about)

        if self.budget is None:
            return named()
        return self.budget.publish(
            mechanism,
            named,
            self.charge,
            about=self.about,
            promise=promise,
            by_rho=self.parameters.get("rho") is not None,
            stated=self.guarantee(asked, mechanism),
        )

    def _named(self, kind: ItemType) -> ItemType:
        """Return the type of items with the name of their column, unless a release has a column of that name."""
        name = self.table.item
        one = kind_of(kind)
        return ((name, one),) if isinstance(name, str) and isinstance(one, str) and is_free(name) else kind


def _sha256(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _named(name: str, values: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """Return values by name as text, without those that are missing or have their default."""
    said = {key: _said(value) for key, value in sorted(values.items()) if value is not None}
    return f"{name}({', '.join(f'{key}={text}' for key, text in said.items() if text != _said(defaults.get(key)))})"


def _said(value: object) -> str:
    """Return a value of a parameter as text: equal numbers of all types alike, and mechanisms by their parameters.

    Texts of whole numbers are as these numbers: a command lists public items as text, even if the column has numbers.
    """
    if isinstance(value, str):
        return str(value) if _WHOLE.fullmatch(value) else ascii(str(value))
    if isinstance(value, Real | Decimal) and not isinstance(value, bool) and isfinite(value):
        return str(Fraction(str(value)))
    if isinstance(value, Release):
        return value.digest
    if is_dataclass(value) and not isinstance(value, type):
        values = {field.name: getattr(value, field.name) for field in fields(value)}
        return _named(type(value).__name__, values, {field.name: field.default for field in fields(value)})
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!a}: {_said(one)}' for key, one in value.items())}}}"
    if isinstance(value, tuple | list) or any(hasattr(value, name) for name in ("ndim", "to_list", "to_pylist")):
        return f"({', '.join(map(_said, require_list(value)))})"
    return ascii(value)


def quoted_at(epsilon: float | None, delta: float | None, *, is_public: bool) -> float | None:
    """Return the delta at which to state a guarantee for public items, which has none: one that is given with rho."""
    return None if not is_public or epsilon is not None or is_zero(delta) else delta


@dataclass(frozen=True, slots=True)
class Asked(Generic[_Made]):
    """The guarantee that the caller asked for, and the choice of a mechanism for it."""

    choose: Callable[[float | None, float | None], tuple[_Made, Notes]]
    """Returns the mechanism for an epsilon and a delta, and notes on the choice."""
    rho: float | None
    epsilon: float | None
    delta: float | None
    quoted_at: float | None = None
    """The delta at which a guarantee without a delta of its own is stated as (epsilon, delta)-DP."""

    def chosen(self) -> tuple[_Made, Notes]:
        """Return the mechanism for these parameters, and notes on the choice."""
        with in_terms_of(self.rho, self.epsilon, self.delta):
            return self.choose(self.epsilon, self.delta)

    def guarantee(self, mechanism: Promising) -> Guarantee:
        """Return the mechanism's guarantee, in epsilon if the caller gave epsilon."""
        if self.quoted_at is None:
            return stated(mechanism, self.epsilon, self.delta)
        guarantee = mechanism.guarantee
        epsilon = guarantee.epsilon(self.quoted_at)
        return guarantee if guarantee.dp == (epsilon, 0) else replace(guarantee, dp=(epsilon, float(self.quoted_at)))

    def require_paid(self, budget: PrivacyFilter, mechanism: Promising, unit: Unit = "user") -> None:
        """Raise BudgetExceeded unless the budget suffices; the advice is in epsilon if the caller gave epsilon."""
        budget._require_chargeable()  # noqa: SLF001 - a ledger that is read-only is refused before the data is read
        stated = per_unit(self.guarantee(mechanism), unit)

        def made(epsilon: float, delta: float) -> Guarantee:
            return per_unit(self.choose(epsilon, delta)[0].guarantee, unit)

        budgets.require(budget, stated, made, self.epsilon, self.delta)


def is_bounding(parameters: Mapping[str, object]) -> bool:
    """Return whether `count` with these parameters finds a bound on a user's items, or measures what one keeps.

    Raises:
        ParameterError: A parameter has no use or excludes this, or l0 is text other than "auto".
    """
    l0, items = parameters["l0"], parameters["items"]
    is_found, measures = isinstance(l0, str), require_flag("kept_share", parameters["kept_share"])
    if is_found and l0 != "auto":
        raise ParameterError('l0 must be a whole number of at least 1, "auto" or None')
    if not (is_found or measures):
        return False
    if l0 is None:
        raise ParameterError.about("{kept_share} needs {l0}: without a bound, all pairs of users and items are kept")
    if parameters["mechanism"] is not None:
        name = 'l0="auto"' if is_found else "kept_share"
        raise ParameterError(f"a mechanism has its own parameters: leave out {name}")
    if not is_equal(parameters["relative_error"], RELATIVE_ERROR):
        raise ParameterError.about("{l0} excludes {relative_error}: leave out either of them")
    if items is not None and is_found:
        raise ParameterError.about('{l0:"auto"} finds a bound for all items: with items, give {l0} as a number')
    if items is not None and not parameters["others"]:
        raise ParameterError.about("{kept_share} is about all items of a user: with items, give {others:True}")
    return True


def bounding(
    l0: int | Literal["auto"] | None,
    rho: float | None,
    epsilon: float | None,
    delta: float,
    listed: tuple[object, ...] | None,
) -> tuple[mechanisms.CountsWithShare | mechanisms.CountsWithFoundBound, Notes]:
    """Return the mechanism that finds a bound, or measures what it keeps, and notes on the choice."""
    require_promise(rho, epsilon, delta)
    if l0 is None or isinstance(l0, str):
        made = made_for(mechanisms.CountsWithFoundBound, rho, epsilon, delta=delta)
        return made, unusual(stated(made, epsilon, delta))
    shared, notes = mechanisms.CountsWithShare.chosen(rho=rho, epsilon=epsilon, delta=delta, l0=l0)
    if listed is not None:
        shared = replace(shared, mechanism=with_known(shared.mechanism, listed))
    return shared, (*notes, *unusual(stated(shared, epsilon, delta)))


def given(
    mechanism: object, promised: tuple[object, ...], parameters: Mapping[str, object]
) -> tuple[HistogramMechanism | TableMechanism, Notes]:
    """Return the caller's mechanism, or raise ParameterError if other parameters contradict it."""
    if not isinstance(mechanism, HistogramMechanism | TableMechanism):
        raise ParameterError(
            "mechanism must be a mechanism that reads a histogram or a table, such as PrivateCountRelease"
        )
    if getattr(mechanism, "releases", None) == "sums":
        raise ParameterError(
            "this mechanism releases sums, not counts: call mechanism.release(data, ..., value=), or "
            "budget.release(mechanism, data, ..., value=) to charge a budget"
        )
    if promised != (None, None, None):
        raise ParameterError("a mechanism has its own privacy parameters: leave out rho, epsilon and delta")
    if parameters != {"l0": None, "relative_error": RELATIVE_ERROR}:
        raise ParameterError("a mechanism has its own parameters: leave out l0 and relative_error")
    require_countable(getattr(mechanism, "items", None) or ())
    return mechanism, unusual(mechanism.guarantee)


def require_known(
    items: object, *, others: bool, l0: int | None, mechanism: object
) -> tuple[str | int | bytes | tuple[str | int | bytes, ...], ...] | None:
    """Return the public items of a count, or None; raise ParameterError if other parameters contradict them."""
    if items is None:
        if require_flag("others", others):
            raise ParameterError.about("{others} needs {items}, the items that are public")
        return None
    items = require_list(items)
    if mechanism is not None:
        raise ParameterError("items chooses the mechanism: leave out one of items and mechanism")
    found = tuple(items)
    if not found:
        raise ParameterError("items must have at least one label")
    if any(isinstance(label, list) for label in found):
        raise ParameterError('an item of several columns must be a tuple, such as ("home", "DE"), not a list')
    require_countable(found)
    require_flag("others", others)
    return found


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
    call: Call,
    asked: Asked[_Made],
    reasons: Notes,
    *,
    only: tuple[Label, ...] | None = None,
    without_counts: bool = False,
    told: tuple[object, ...] | None = None,
) -> Release:
    """Return the release of a table, or of public items in it, charged to the budget if there is one.

    `told` is what the promise of an earlier version has besides the mechanism: by default `without_counts`.
    """
    debug("%s reads %s and protects %s", type(mechanism).__name__, mechanism.reads.__name__, mechanism.protects)
    told = (without_counts,) if told is None else told
    promise = call.require_paid(asked, mechanism, *told)  # refuse before reading the data
    data = mechanism._of_table(call.table, only)
    guarantee = call.guarantee(asked, mechanism)
    if isinstance(data, Histogram) and (items := getattr(mechanism, "items", None)) is not None:
        data._require_type_of(items)  # noqa: SLF001 - the schema, which is public

    def draw(rng: Opening | None) -> Release:
        release = mechanism.release(data, rng=rng)  # type: ignore[arg-type]
        if isinstance(data, Histogram):
            release = changed(release, item_type=data._named(release.item_type))  # noqa: SLF001 - as above
        if without_counts:
            release = changed(uncounted(release), items=sorted(release.items))
        whole, cost = release.guarantee, release.spent
        spent = guarantee if (cost.rho, cost.delta) == (whole.rho, whole.delta) else cost  # as files say it
        return changed(release, guarantee=guarantee, spent=spent, notes=(*release.notes, *reasons))

    return call.published(mechanism, draw, promise, asked)
