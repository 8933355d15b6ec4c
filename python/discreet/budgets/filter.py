"""`PrivacyFilter`: the methods that a `Budget` and a `Dataset` of a ledger have in common."""

from __future__ import annotations

import inspect
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar, Unpack, overload

from discreet import _core
from discreet.budgets.charge import NOTHING, Account, Charge, Protected
from discreet.budgets.exchange import Exchange, Publication
from discreet.budgets.owner import Uncopied
from discreet.budgets.record import Event, Spending, charging
from discreet.errors import OUT_OF_DELTA, BudgetExceeded, ParameterError
from discreet.mechanisms.base import Kind, Mechanism, Opening
from discreet.mechanisms.from_table import TableMechanism
from discreet.privacy.conversion import round_down, round_up
from discreet.privacy.guarantee import Guarantee, Promising
from discreet.privacy.validation import require_number, require_text, require_whole
from discreet.release.release import Release
from discreet.tables.table import TableColumns
from discreet.theorems import whitehouse2023
from discreet.wording import counted

__all__ = ["PrivacyFilter"]

_LONGEST = 1000
"""The most characters in `made_by`, since a history prints it in one line."""
Affordable = TypeVar("Affordable", bound=Promising)
Data = TypeVar("Data")


Published = TypeVar("Published", bound=Publication)


class Releasing(Promising, Protocol):
    """The type of a mechanism in the body of `PrivacyFilter.release`, where `data` may have any type."""

    @property
    def release(self) -> Callable[..., Publication]:
        """The method that returns a release of some data."""


class PrivacyFilter(Uncopied, ABC):
    """A privacy filter: a total of rho and delta that limits all releases charged to it together.

    A charge is made before the randomness of a release is drawn, and is not undone if the release then fails. If the
    budget is in a file, the charge is on the disk before the draw. So a crash or an interrupt can waste budget, but the
    same budget is never spent twice. An error before the charge costs nothing. The choice of each mechanism and of its
    parameters may depend on everything that was released before (Rogers 2024, Theorem 5).
    """

    __slots__ = ()

    @property
    @abstractmethod
    def _protected(self) -> Protected:
        """The neighbouring datasets of the guarantee."""

    @abstractmethod
    def _account(self) -> Account:
        """Return the current account."""

    @abstractmethod
    def _reserve(self, event: Event) -> int:
        """Make the charge of an event and return its number; raise BudgetExceeded if it does not fit."""

    @abstractmethod
    def _settle(self, number: int, given_back: Charge, release: object) -> None:
        """Record that the release which was reserved as event `number` is published, and refund `given_back`."""

    @property
    @abstractmethod
    def history(self) -> list[Spending]:
        """The charges in order, one row each."""

    @overload
    def release(
        self,
        mechanism: TableMechanism,
        data: object,
        *,
        charge: Literal["guarantee", "spent"] = "guarantee",
        **columns: Unpack[TableColumns],
    ) -> Release: ...
    @overload
    def release(
        self,
        mechanism: Mechanism[Data, Published],
        data: Data,
        *,
        charge: Literal["guarantee", "spent"] = "guarantee",
    ) -> Published: ...
    def release(
        self,
        mechanism: Releasing,
        data: object,
        *,
        charge: Literal["guarantee", "spent"] = "guarantee",
        **columns: Unpack[TableColumns],
    ) -> object:
        """Charge the mechanism's guarantee, and return its release of `data`.

        The charge is made after the data was read and before noise is drawn.

        Args:
            mechanism: A mechanism, such as `GumbelTopK.from_rho(...)`.
            data: The Histogram that the mechanism takes. For a mechanism that reads a table, such as Plume, the table.
            charge: "guarantee" to charge the whole guarantee, or "spent" to charge only the steps that the release
                made (Rogers 2023, Theorem 10). "spent" helps with a mechanism that is a sequence of priced steps, such
                as GumbelTopK or PrivateCountRelease. The whole guarantee must fit in both cases.
            **columns: The names of the columns, for a mechanism that reads a table.

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
        if "rng" in columns:
            raise ParameterError("a budget takes no seeded randomness: leave out rng, or release without a budget")
        return self.publish(mechanism, lambda open_rng: mechanism.release(data, rng=open_rng, **columns), charge)

    def publish(
        self,
        mechanism: Promising,
        draw: Callable[[Opening], Published],
        charge: Literal["guarantee", "spent"] = "guarantee",
    ) -> Published:
        """Return the release that `draw` makes. The budget is charged when `draw` opens its random stream.

        Args:
            mechanism: The mechanism to charge.
            draw: Returns the release, from the random stream that its argument opens.
            charge: "guarantee" or "spent", as for `release`.
        """
        if charge not in ("guarantee", "spent"):
            raise ParameterError('charge must be "guarantee" or "spent"')
        guarantee = self._guaranteed(mechanism)
        account = self._account()
        promised = account.require(guarantee)
        reserved: list[int] = []

        def open_rng() -> _core.Rng:
            if reserved:
                raise ParameterError("a release may open its random stream only once")
            rng = _core.Rng()
            reserved.append(self._reserve(charging("reserved", promised, mechanism)))
            return rng

        release = draw(open_rng)
        if release.seeded or not reserved:
            raise ParameterError(
                "a budget cannot be charged for a seeded release, which gives no privacy; leave out rng"
            )
        given_back = account.unused(promised, Charge.of(release.spent)) if charge == "spent" else NOTHING
        self._settle(reserved[0], given_back, release)
        return release

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
        charge = self._account().require(self._guaranteed(cost))
        self._reserve(charging("charged", charge, made_by or cost))

    def cost(self, mechanism: Guarantee | Promising) -> Guarantee:
        """Return the Guarantee that would be charged: rho and delta rounded up to whole units, or the whole budget.

        Args:
            mechanism: A mechanism or a Guarantee.
        """
        account = self._account()
        return account.guarantee(account.price(self._guaranteed(mechanism)))

    def fits(self, mechanism: Guarantee | Promising) -> bool:
        """Return whether a charge would fit into the remaining budget.

        Args:
            mechanism: A mechanism or a Guarantee.
        """
        account = self._account()
        return account.fits(account.price(self._guaranteed(mechanism)))

    def require(self, mechanism: Guarantee | Promising) -> None:
        """Raise BudgetExceeded if `fits` is false.

        Args:
            mechanism: A mechanism or a Guarantee.
        """
        self._account().require(self._guaranteed(mechanism))

    def shortfall(self, total: Guarantee) -> tuple[Guarantee, Guarantee] | None:
        """Return None if charges that add up to `total` fit, else the rounded `total` and the remaining budget.

        A total in epsilon lets one (epsilon, delta)-DP release use up the whole budget. This rule is not used here,
        since `total` stands for several charges.

        Args:
            total: The sum of the charges.
        """
        account, charge = self._account(), Charge.of(self._guaranteed(total))
        return None if account.fits(charge) else (account.guarantee(charge), account.remaining)

    def split(self, n: int) -> list[Guarantee]:
        """Return `n` equal Guarantees that can all be charged to the remaining budget.

        A unit is 2^-64 of rho, or 2^-128 of delta. Each share is rounded down to whole units and then to floats. So
        fewer than n units, plus at most one part in 2^52 of the rest, stay unused. Make a mechanism from one with
        `from_rho(rho=share.rho, delta=share.delta, ...)`.

        Args:
            n: The number of shares, from 1 to 2^24.

        Raises:
            BudgetExceeded: Fewer than n units of rho are left. Or fewer than n units of delta are left, and the total
                delta is not 0.

        Example:
            >>> import discreet as dp
            >>> [share.rho for share in dp.Budget(rho=1, delta=1e-6).split(4)]
            [0.25, 0.25, 0.25, 0.25]
        """
        n = require_whole("n", n, 1, 2**24)
        account = self._account()
        left = account.total - account.spent
        share = Charge(max(0, left.rho) // n, max(0, left.delta) // n)
        if share.rho > 0 and account.out_of_delta:
            raise BudgetExceeded(counted(n, "share"), account.remaining, OUT_OF_DELTA)
        if share.rho == 0 or (left.delta > 0 and share.delta == 0):
            raise BudgetExceeded(counted(n, "share"), account.remaining)
        return [account.guarantee(share, up=False)] * n

    def afford(self, kind: Kind[Affordable], /, *, share: float = 1.0, **parameters: object) -> Affordable:
        """Return the mechanism of a class that uses all of the remaining budget, or a share of it.

        Args:
            kind: A class of mechanisms with `from_rho`, such as GumbelTopK.
            share: The share of the remaining rho and delta to use, above 0 and at most 1.
            **parameters: The other parameters of `from_rho`. A delta here replaces the share of delta.

        Raises:
            BudgetExceeded: No rho or delta is left.
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
        left = self.remaining
        most = left.rho if share == 1 else round_down(share * left.rho)
        if "delta" in inspect.signature(kind.from_rho).parameters:
            delta = left.delta if share == 1 else round_down(share * left.delta)
            parameters = {"delta": delta} | parameters
        given = parameters.get("delta", 1.0)
        if most <= 0 or (isinstance(given, numbers.Real) and given <= 0):
            raise BudgetExceeded(f"rho and delta for a {getattr(kind, '__name__', kind)}", left)
        # Rounding may make the guarantee of a mechanism from a rho slightly larger than this rho.
        for ulps in (0, 8, 64, 512, 4096, 2**20):
            mechanism = kind.from_rho(rho=round_down(most, ulps) if ulps else most, **parameters)
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

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all releases charged to this budget together, fixed when the budget is made.

        For a total in rho, its rho and delta are the next floats after the total, since rounded charges may exceed it
        slightly. A delta of 0 stays 0. A total in epsilon has an (epsilon, delta)-DP guarantee, with a rho large enough
        for every release that is (epsilon, delta)-DP.
        """
        return self._account().promise

    @property
    def total(self) -> Guarantee:
        """The largest sum of charges, in rho and delta. It is an amount; `guarantee` is the guarantee."""
        account = self._account()
        return account.guarantee(account.total)

    @property
    def spent(self) -> Guarantee:
        """The sum of all charges so far, rounded up.

        It is an amount, not a guarantee. If outputs decided which charges were made, or when this sum is read, only the
        guarantee of the total holds. See `guarantee` and `odometer`.
        """
        account = self._account()
        return account.guarantee(account.spent)

    @property
    def remaining(self) -> Guarantee:
        """The remaining rho and delta, rounded down.

        It is an amount, not a guarantee, although it prints like one. An unused budget in epsilon includes the pair
        (epsilon, delta) of its total.
        """
        return self._account().remaining

    def odometer(self, delta: float) -> tuple[float, float]:
        """Return an (epsilon, delta) for the charges so far. It holds at any time, even a time chosen by outputs.

        The reading is the epsilon. For every number e, restrict the outputs so far to those with a reading of at most
        e. These outputs are (e, delta)-indistinguishable between neighbouring datasets, whatever rule decides when to
        read. So an analysis that stops before the reading exceeds e is (e, delta)-DP. The odometer does not limit
        releases; the total does.

        Args:
            delta: The probability that the reading itself fails, from 1e-300 to 0.5.

        Returns:
            The epsilon and the delta. The delta is `delta` plus the whole delta of the budget. The sum of the deltas
            charged so far would not suffice: an analyst who stops at the first failure was charged little, and has
            failed. If one release used up a budget in epsilon, the (epsilon, delta) of the budget is returned.

        Raises:
            ParameterError: `delta` is out of range.

        Source:
            Whitehouse et al. (2023), with a mixture whose gamma is a tenth of the total rho. The argument is in
            `discreet.theorems.whitehouse2023`.
        """
        delta = require_number("delta", delta, 1e-300, 0.5, open_low=False)
        account = self._account()
        if account.promise.dp is not None and account.used_by_epsilon:
            return account.promise.dp
        spent, total = account.guarantee(account.spent), account.terms
        reading = whitehouse2023.half_normal_odometer(spent.rho, delta, account.total.floats()[0] / 10)
        whole = math.nextafter(total["delta"], 1.0) if total["delta"] else 0.0
        return reading, min(1.0, round_up(whole + delta))

    def _guaranteed(self, cost: object) -> Guarantee:
        """Return the guarantee to charge; raise ParameterError if there is none, or its unit or neighbours differ."""
        guarantee = cost if isinstance(cost, Guarantee) else getattr(cost, "guarantee", None)
        if not isinstance(guarantee, Guarantee):
            raise ParameterError("a budget can be charged for mechanisms and Guarantees only; give one of them")
        protected = Protected.by(guarantee)
        if protected != self._protected:
            unlike = zip(protected._fields, protected, self._protected, strict=True)
            needed = " and ".join(f"{name}={value!r}" for name, value, own in unlike if value != own)
            raise ParameterError(
                f"a budget per {self._protected} cannot pay for a guarantee per {protected}, since unit and neighbours "
                f"must match: open one with {needed}"
            )
        return guarantee

    def __repr__(self) -> str:
        account = self._account()
        return f"{type(self).__name__} of {account.stated}: {account.left}"
