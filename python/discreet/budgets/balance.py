"""`Balance`: the amounts of a budget, and the questions whether and how often a charge fits."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from discreet.budgets.charge import Account, Charge, Protected
from discreet.budgets.owner import Uncopied
from discreet.errors import OUT_OF_DELTA, BudgetExceeded, ParameterError
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee, Promising
from discreet.privacy.validation import require_number, require_whole
from discreet.theorems import whitehouse2023
from discreet.wording import counted

__all__ = ["Balance"]


class Balance(Uncopied, ABC):
    """The part of a budget that only reads its account. `PrivacyFilter` adds the methods that charge."""

    __slots__ = ()

    @property
    @abstractmethod
    def _protected(self) -> Protected:
        """The neighbouring datasets of the guarantee."""

    @abstractmethod
    def _account(self) -> Account:
        """Return the current account."""

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
