"""`PrivacyFilter`: the methods that a `Budget` and a `Dataset` of a ledger have in common."""

from __future__ import annotations

import inspect
import numbers
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar, Unpack, cast, overload

from discreet import _core
from discreet.budgets.balance import Balance
from discreet.budgets.charge import NOTHING, Charge
from discreet.budgets.exchange import Exchange, Publication
from discreet.budgets.paid import Receipt
from discreet.budgets.record import Event, History, charging
from discreet.engines.table import Columns, Table
from discreet.errors import BudgetExceeded, ParameterError
from discreet.logs import debug
from discreet.mechanisms.base import FromRho, Mechanism, Opening
from discreet.mechanisms.from_table import TableMechanism
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee, Promising, Unit
from discreet.privacy.validation import require_choice, require_number, require_text
from discreet.release import markup, plot
from discreet.release.provenance import Provenance
from discreet.release.release import Release, changed
from discreet.signatures import showing
from discreet.tables.histogram import Histogram
from discreet.tables.user_items import UserItems
from discreet.wording import counted, shown_down, shown_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Charging", "PrivacyFilter", "require_charging"]

Charging: TypeAlias = Literal["guarantee", "spent"]
"""The charge of a release: its whole guarantee, or the steps that it made."""

_DRAWN = 30
"""The most charges in a plot: the last ones."""
_LONGEST = 1000
"""The most characters in `made_by`, since a history prints it in one line."""


def require_charging(charge: object) -> None:
    """Raise ParameterError unless `charge` is "guarantee" or "spent"."""
    require_choice("charge", charge, ("guarantee", "spent"))


Affordable = TypeVar("Affordable", bound=Promising)
Data = TypeVar("Data")
Published = TypeVar("Published", bound=Publication)


class Releasing(Promising, Protocol):
    """The type of a mechanism in the body of `PrivacyFilter.release`, where `data` may have any type."""

    @property
    def release(self) -> Callable[..., Publication]:
        """The method that returns a release of some data."""


class PrivacyFilter(Balance):
    """A privacy filter: a total of rho and delta that limits all releases charged to it together.

    A charge is made before the randomness of a release is drawn, and is not undone if the release then fails. If the
    budget is in a file, the charge is on the disk before the draw. So a crash or an interrupt can waste budget, but the
    same budget is never spent twice. An error before the charge costs nothing. Every later exception has the attribute
    `charged`, with the dataset, the cost and the release if that was complete. The choice of each mechanism and of its
    parameters may depend on everything that was released before (Rogers 2024, Theorem 5).
    """

    __slots__ = ()

    @abstractmethod
    def _reserve(self, event: Event, receipt: Receipt) -> int:
        """Make the charge of an event and return its number; raise BudgetExceeded if it does not fit.

        The receipt is begun just before the charge is made, and cancelled if the charge is refused or undone.
        """

    @abstractmethod
    def _settle(self, number: int, given_back: Charge, release: object) -> None:
        """Record that the release which was reserved as event `number` is published, and refund `given_back`."""

    @property
    @abstractmethod
    def history(self) -> History:
        """The charges in order, one row each."""

    def plot(self, ax: Axes | None = None, **options: object) -> Axes:
        """Plot the rho of each charge and of the rest, as shares of the total (needs matplotlib).

        Args:
            ax: The axes to draw into; by default pyplot's current ones if they are empty, else a new figure.
            options: Options of `Axes.barh`, such as a color.

        Returns:
            Matplotlib Axes, which a notebook shows.
        """
        total, left = self.total, self.remaining
        parts = [(f"{row.number}  {row.mechanism}", row.rho) for row in self.history[-_DRAWN:]]
        names, values = zip(*parts, ("remaining", left.rho), strict=True)
        shares = [100 * value / total.rho for value in values]
        label = f"percent of the total rho, {shown_up(total.rho)}"
        return plot.shares(names, shares, title=repr(self), label=label, ax=ax, options=options)

    def _repr_html_(self) -> str:
        costs, left = {"total": self.total, "spent": self.spent}, self.remaining
        rows = [[name, shown_up(cost.rho), shown_up(cost.delta, 3)] for name, cost in costs.items()]
        rows += [["remaining", shown_down(left.rho), shown_down(left.delta, 3)]]
        history = self.history
        charges = (
            markup.paragraph(counted(len(history), "charge"), bold=True) + history._repr_html_() if history else ""
        )
        return markup.table(["", "rho", "delta"], rows, title=repr(self)) + charges

    @overload
    def release(
        self,
        mechanism: TableMechanism,
        data: object,
        *,
        charge: Charging = "guarantee",
        value: str | None = None,
        **columns: Unpack[Columns],
    ) -> Release: ...
    @overload
    def release(
        self,
        mechanism: Mechanism[Data, Published],
        data: Data,
        *,
        charge: Charging = "guarantee",
    ) -> Published: ...
    @showing(Columns, unit="user")
    def release(
        self,
        mechanism: Releasing,
        data: object,
        *,
        charge: Charging = "guarantee",
        value: str | None = None,
        **columns: Unpack[Columns],
    ) -> object:
        """Charge the mechanism's guarantee, and return its release of `data`.

        The charge is made after the data was read and before noise is drawn.

        Args:
            mechanism: A mechanism, such as `GumbelTopK.from_rho(...)`.
            data: The Histogram that the mechanism takes. For a mechanism that reads a table, such as Plume, the table.
            charge: "guarantee" to charge the whole guarantee, or "spent" to charge only the steps that the release
                made (Rogers 2023, Theorem 10). "spent" helps with a mechanism that is a sequence of priced steps, such
                as GumbelTopK or PrivateCountRelease. The whole guarantee must fit in both cases.
            value: The name of the column to sum, for a mechanism that sums.
            **columns: The columns of rows, for a mechanism that reads a table.

        Returns:
            The release of the mechanism.

        Raises:
            BudgetExceeded: The guarantee does not fit into the remaining budget.
            ParameterError: The guarantee has another unit or other neighbours, or is a stream's. The mechanism raises
                its own errors too. An error before the charge costs nothing.

        Example:
            >>> import discreet as dp
            >>> budget = dp.Budget(rho=1, delta=1e-6)
            >>> users = dp.Histogram.from_counts(["a", "b"], [9000, 4000], l0=None, linf=1, complete=True)
            >>> budget.release(dp.GumbelTopK.from_rho(k=2, rho=0.5, delta=1e-7), users).items
            ['a', 'b']
        """
        if hasattr(mechanism, "start"):
            raise ParameterError(
                "a stream is charged once for all its rounds: call budget.charge(mechanism), then mechanism.start()"
            )
        if not hasattr(mechanism, "release"):
            raise ParameterError(
                "release takes a mechanism and then the data; use charge() for anything that is not a mechanism"
            )
        named = {**columns, "value": value} if value is not None else columns
        given = sorted(named.keys() & {*Columns.__annotations__, "value"})
        if given and not isinstance(mechanism, TableMechanism):
            raise ParameterError(
                f"a {type(mechanism).__name__} reads no table, so it takes no {' and no '.join(given)}: leave that out"
            )
        if "rng" in columns:
            raise ParameterError("a budget takes no seeded randomness: leave out rng, or release without a budget")
        unit = data.unit if isinstance(data, Table | Histogram | UserItems) else columns.get("unit", "user")
        return self.publish(
            mechanism, lambda open_rng: mechanism.release(data, rng=open_rng, **named), charge, unit=unit
        )

    def publish(
        self,
        mechanism: Promising,
        draw: Callable[[Opening], Published],
        charge: Charging = "guarantee",
        *,
        settled: Callable[[Published], object] | None = None,
        about: Provenance | None = None,
        promise: str = "",
        by_rho: bool = False,
        stated: Guarantee | None = None,
        unit: Unit = "user",
    ) -> Published:
        """Return the release that `draw` makes. The budget is charged when `draw` opens its random stream.

        Args:
            mechanism: The mechanism to charge.
            draw: Returns the release, from the random stream that its argument opens.
            charge: "guarantee" or "spent", as for `release`.
            settled: Called with the release after the refund. An exception in it has the attribute `charged` too.
            about: What the charge is for.
            promise: The SHA-256 of the parameters of the release, for `about.once`.
            by_rho: Whether the caller stated the guarantee in rho.
            stated: The guarantee of the mechanism as the caller stated it; that of the mechanism by default.
            unit: What counts as one user in the data.
        """
        require_charging(charge)
        self._require_unnamed(about, promise)
        guarantee = self._guaranteed(mechanism if stated is None else stated, unit)
        self._require_chargeable()
        account = self._account()
        promised = account.require(guarantee, by_rho=by_rho or charge == "spent")
        reserved: list[int] = []
        receipt = Receipt(self._label, promised)

        def open_rng() -> _core.Rng:
            if reserved:
                raise ParameterError("a release may open its random stream only once")
            rng = _core.Rng()
            reserved.append(self._pay(charging("reserved", promised, mechanism, about, promise), receipt))
            rho, delta = promised.floats()
            debug("budget: rho %.6g and delta %.3g were charged for %s", rho, delta, type(mechanism).__name__)
            return rng

        try:
            release = draw(open_rng)
            if release.seeded or not reserved:
                raise ParameterError(
                    "a budget cannot be charged for a seeded release, which gives no privacy; leave out rng"
                )
            if isinstance(release, Release) and release.guarantee.unit != guarantee.unit:
                raise ParameterError(
                    f"the release is per {release.guarantee.unit}, and the budget was charged per {guarantee.unit}: "
                    "give both the same unit"
                )
            if isinstance(release, Release) and account.is_whole(promised):
                release = cast("Published", changed(release, notes=(*release.notes, account.whole)))
            receipt.release = release
            given_back = account.unused(promised, Charge.of(release.spent)) if charge == "spent" else NOTHING
            self._settle(reserved[0], given_back, release)
            receipt.cost = promised - given_back
            if settled is not None:
                settled(release)
            return release
        except BaseException as error:
            receipt.tell(error)
            raise

    def _pay(self, event: Event, receipt: Receipt) -> int:
        """Make the charge of an event and return its number, with a receipt that no interrupt leaves wrong."""
        try:
            number = self._reserve(event, receipt)
        except BudgetExceeded:
            receipt.cancel()
            raise
        receipt.made()
        return number

    def _require_chargeable(self) -> None:
        """Raise an error if no charge can be made at all, as in a file that is read-only."""

    def _require_unnamed(self, about: Provenance | None, *promises: str) -> None:
        """Raise an error if a charge has a key that was charged before, or replaces one that was not.

        Raises:
            AlreadyCharged: The key was charged for one of these promises.
            ParameterError: The key was charged for other promises, or nothing has the name of the replaced charge.
        """
        self._refuse_names(about)

    @staticmethod
    def _refuse_names(about: Provenance | None) -> None:
        """Raise ParameterError for a key or a replaced charge, which only the datasets of a ledger remember."""
        if about is not None and (about.once or about.replaces):
            raise ParameterError.about(
                "{once} and {replaces} need a dataset of a Ledger, which remembers charges: "
                "budget=Ledger.open(path).dataset(name)"
            )

    @property
    def _label(self) -> str:
        """The name of the budget in its ledger; empty for a budget in memory."""
        return ""

    def charge(self, cost: Guarantee | Promising, *, made_by: str | None = None) -> None:
        """Charge a guarantee for a stream, another library or anything else that runs outside this budget.

        Charge before the mechanism runs. One charge suffices for all rounds of a stream, even with other releases in
        between. With probability 1 - delta the rounds are post-processing of one release; see `StreamMechanism`, and
        "Streams beside other releases" in docs/budgets.md. For other interactive mechanisms charges add up by Lyu
        (2022) and Haney et al. (2023).

        Args:
            cost: A Guarantee, or a mechanism, whose guarantee is charged.
            made_by: A name for the history, of at most 1,000 characters; by default the name of the mechanism.

        Raises:
            BudgetExceeded: The guarantee does not fit into the remaining budget. Nothing is charged.
            ParameterError: The guarantee has another unit or other neighbours, or `made_by` is no such text.

        Example:
            >>> import discreet as dp
            >>> budget = dp.Budget(rho=1, delta=1e-6)
            >>> budget.charge(dp.Guarantee(rho=0.25, delta=0), made_by="another library")
            >>> budget.remaining.rho
            0.75
        """
        if made_by is not None:
            require_text("made_by", made_by)
            if len(made_by) > _LONGEST:
                raise ParameterError(f"made_by must have at most {_LONGEST:,} characters")
        self._require_chargeable()
        charge = self._account().require(self._guaranteed(cost))
        receipt = Receipt(self._label, charge, alone=True)
        try:
            self._pay(charging("charged", charge, made_by or cost), receipt)
        except BaseException as error:
            receipt.tell(error)
            raise

    def afford(self, kind: FromRho[Affordable], /, *, share: float = 1.0, **parameters: object) -> Affordable:
        """Return the mechanism of a class that uses all of the remaining budget, or a share of it.

        Args:
            kind: A class of mechanisms with `from_rho`, such as GumbelTopK. If the budget adds up epsilons, its
                `from_epsilon` makes the mechanism.
            share: The share of the remaining rho (or epsilon) and delta to use, above 0 and at most 1.
            **parameters: The other parameters of `from_rho`. A delta here replaces the share of delta.

        Raises:
            BudgetExceeded: No rho or epsilon is left, or no delta.
            ParameterError: The class has no `from_rho`, or a parameter is out of range.

        Example:
            >>> import discreet as dp
            >>> budget = dp.Budget(rho=1, delta=1e-6)
            >>> budget.fits(budget.afford(dp.GumbelTopK, k=10, share=0.5))
            True
        """
        if not callable(getattr(kind, "from_rho", None)):
            raise ParameterError("afford takes a class of mechanisms with from_rho, such as GumbelTopK")
        share = require_number("share", share, 0, 1)
        if {"rho", "epsilon"} & parameters.keys():
            raise ParameterError("afford takes rho from the remaining budget: leave out rho and epsilon, or give share")
        account = self._account()
        left = account.remaining
        cost, make, most, delta = "rho", kind.from_rho, left.rho, left.delta
        if (
            account.used is not None
            and left.dp is not None
            and callable(by_epsilon := getattr(kind, "from_epsilon", 0))
        ):
            cost, make, (most, delta) = "epsilon", by_epsilon, left.dp
        if share < 1:
            most, delta = round_down(share * most), round_down(share * delta)
        if "delta" in inspect.signature(make).parameters:
            parameters = {"delta": delta} | parameters
        given = parameters.get("delta", 1.0)
        if most <= 0 or (isinstance(given, numbers.Real) and given <= 0):
            raise BudgetExceeded(f"{cost} and delta for a {getattr(kind, '__name__', kind)}", left)
        # Rounding may make the guarantee of a mechanism from a rho slightly larger than this rho.
        for ulps in (0, 8, 64, 512, 4096, 2**20):
            mechanism = make(**{cost: round_down(most, ulps) if ulps else most}, **parameters)
            if self.fits(mechanism):
                return mechanism
        raise BudgetExceeded(self.cost(mechanism), left)

    def pay_what_you_get(self, *, outcomes: int, queries: int, epsilon: float, delta: float) -> Exchange:
        """Return an exchange: top-k lists that are charged by the items they return. See `Exchange`.

        Args:
            outcomes: The most items of all lists together, stop elements included, from 1 to 2^30.
            queries: The most lists, from 1 to 2^30.
            epsilon: The epsilon of each selection, from 1e-9 to 100.
            delta: The delta of each list.

        Raises:
            BudgetExceeded: The guarantee of the whole exchange does not fit into the remaining budget.
            ParameterError: A parameter is out of range.
        """
        return Exchange(self, outcomes=outcomes, queries=queries, epsilon=epsilon, delta=delta)
