"""`Balance`: the amounts of a budget, and the checks whether a charge fits."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction

from discreet.budgets.charge import NOTHING, Account, Charge, Protected
from discreet.budgets.owner import Uncopied
from discreet.errors import OUT_OF_DELTA, BudgetExceeded, Parameter, ParameterError
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee, Promising, Unit, per_unit, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.theorems import whitehouse2023
from discreet.wording import counted, shown_down, shown_up

__all__ = ["Balance"]


class Balance(Uncopied, ABC):
    """A base class of budgets that only reads the account. `PrivacyFilter` adds the methods that charge the account."""

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

        It has the rho and delta of the total. A total in epsilon has an (epsilon, delta)-DP guarantee. Its rho is large
        enough for every release that is (epsilon, delta)-DP.
        """
        return self._account().promise

    @property
    def total(self) -> Guarantee:
        """The largest sum of charges, in rho and delta. The total is an amount; report `guarantee` instead."""
        account = self._account()
        return account.guarantee(account.total)

    @property
    def spent(self) -> Guarantee:
        """The sum of all charges so far, rounded up, and at most the total.

        This sum is an amount, not a guarantee. Outputs may decide which charges are made, or when this sum is read.
        Then only the guarantee of the total holds. See `guarantee` and `odometer`.
        """
        account = self._account()
        return account.guarantee(account.sum_spent)

    @property
    def remaining(self) -> Guarantee:
        """The remaining rho and delta, rounded down.

        The remaining budget is an amount, not a guarantee, although it prints like a guarantee. For an unused budget in
        epsilon, it includes the pair (epsilon, delta) of the total.
        """
        return self._account().remaining

    def odometer(self, delta: float) -> tuple[float, float]:
        """Return an (epsilon, delta) for the charges so far. It holds at any time, even if outputs choose the time.

        The reading is the epsilon. For every number e, restrict the outputs so far to those with a reading of at most
        e. These outputs are (e, delta)-indistinguishable between neighbouring datasets, whatever rule decides when to
        read. So an analysis that stops before the reading exceeds e is (e, delta)-DP. The odometer does not limit
        releases; the total does.

        Args:
            delta: The probability that the reading itself fails, from 1e-300 to 0.5.

        Returns:
            The epsilon and the delta. The delta is `delta` plus the whole delta of the budget. The deltas charged so
            far do not suffice: an analyst can stop as soon as one release fails, when their sum is still small. If a
            budget in epsilon is charged by epsilons, the result is the (epsilon, delta) of the budget.

        Raises:
            ParameterError: `delta` is out of range.

        Source:
            Whitehouse et al. (2023). The mixture is half of a normal law, with gamma equal to a tenth of the total rho.
            The proof is in `discreet.theorems.whitehouse2023`.
        """
        delta = require_number("delta", delta, 1e-300, 0.5, open_low=False)
        account = self._account()
        if account.promise.dp is not None and (account.used_by_epsilon or account.used is not None):
            return account.promise.dp
        rho = account.guarantee(account.spent).rho
        reading = whitehouse2023.half_normal_odometer(rho, delta, account.total.floats()[0] / 10)
        return reading, min(1.0, round_up(account.terms["delta"] + delta))

    def cost(self, mechanism: Guarantee | Promising) -> Guarantee:
        """Return the charge for a release as a Guarantee: its rho and delta, rounded up to whole units.

        The charge is the whole budget if the release uses up a budget in epsilon.

        Args:
            mechanism: A mechanism or a Guarantee.

        Raises:
            ParameterError: `mechanism` has no guarantee, or its unit or neighbours differ from those of the budget.
        """
        account = self._account()
        return account.guarantee(account.price(self._guaranteed(mechanism)))

    def fits(self, mechanism: Guarantee | Promising) -> bool:
        """Return whether the charge for a release would fit into the remaining budget.

        Args:
            mechanism: A mechanism or a Guarantee.

        Raises:
            ParameterError: `mechanism` has no guarantee, or its unit or neighbours differ from those of the budget.
        """
        account = self._account()
        return account.fits(account.price(self._guaranteed(mechanism)))

    def require(self, mechanism: Guarantee | Promising) -> None:
        """Raise BudgetExceeded if the charge for a release would not fit into the remaining budget.

        Args:
            mechanism: A mechanism or a Guarantee.

        Raises:
            BudgetExceeded: The charge would not fit.
            ParameterError: `mechanism` has no guarantee, or its unit or neighbours differ from those of the budget.
        """
        self._account().require(self._guaranteed(mechanism))

    def shortfall(self, total: Guarantee) -> tuple[Guarantee, Guarantee] | None:
        """Return None if charges that add up to `total` fit, else the rounded `total` and the remaining budget.

        Args:
            total: The sum of the charges.

        Raises:
            BudgetExceeded: The budget adds up epsilons: what one charge costs then is no part of `total`.
            ParameterError: The unit or neighbours of `total` differ from those of the budget.
        """
        account, charge = self._account(), Charge.of(self._guaranteed(total))
        if account.used is not None:
            epsilon, delta = account.remaining.dp or (0.0, 0.0)
            raise BudgetExceeded(
                f"rho={shown_up(total.rho)} and delta={shown_up(total.delta)} for several lists",
                f"epsilon={shown_down(epsilon)} and delta={shown_down(delta)}",
                "This budget adds up epsilons since its first charge, and lists that share a rho need one that adds up "
                f"rhos. {'Release each list with top_k and an epsilon.' if epsilon else 'No epsilon is left, either.'}",
            )
        return None if account.fits(charge) else (account.guarantee(charge), account.remaining)

    def split(self, n: int) -> list[Guarantee]:
        """Return `n` equal Guarantees that can all be charged to the remaining budget.

        A unit is a rho of 2^-64, or a delta of 2^-128. Each share is rounded down to whole units and then to floats. So
        fewer than n units, plus at most one part in 2^52 of the remaining budget, stay unused. Make a mechanism from a
        share with `from_rho(rho=share.rho, delta=share.delta, ...)`. If a budget in epsilon is charged by epsilons, a
        share has an epsilon and a delta too, its `dp`.

        Args:
            n: The number of shares, from 1 to 2^24.

        Raises:
            BudgetExceeded: Fewer than n units of rho are left, or fewer than n units of delta although the total delta
                is not 0.
            ParameterError: `n` is out of range.

        Example:
            >>> import discreet as dp
            >>> [share.rho for share in dp.Budget(rho=1, delta=1e-6).split(4)]
            [0.25, 0.25, 0.25, 0.25]
        """
        n = require_whole("n", n, 1, 2**24)
        account = self._account()
        if (pair := account.remaining.dp) is not None and account.used is not None:
            epsilon, delta = (_part(x, n) for x in pair)
            if delta == 0:
                raise BudgetExceeded(counted(n, "share"), account.remaining, OUT_OF_DELTA)
            # A little less, because mechanisms round, and have a little less delta.
            rho, own = resolve_rho(None, epsilon * (1 - 1e-6), delta)
            return [replace(account.guarantee(NOTHING), rho=rho, delta=own, dp=(epsilon, delta))] * n
        left = account.total - account.spent
        share = Charge(max(0, left.rho) // n, max(0, left.delta) // n)
        if share.rho > 0 and account.out_of_delta:
            raise BudgetExceeded(counted(n, "share"), account.remaining, OUT_OF_DELTA)
        if share.rho == 0 or (left.delta > 0 and share.delta == 0):
            raise BudgetExceeded(counted(n, "share"), account.remaining)
        return [account.guarantee(share, up=False)] * n

    def split_epsilon(self, n: int) -> tuple[float, float] | None:
        """Return an epsilon and a delta of which `n` equal releases fit, or None if only rhos and deltas add up.

        The same release fits n times: by its epsilons, or by its rhos if more of them fit. The first charge decides.
        So different releases may not fit together; for these use `split`.

        Args:
            n: The number of releases, from 1 to 2^24.

        Returns:
            The epsilon and delta of each release.

        Raises:
            ParameterError: `n` is out of range.

        Example:
            >>> import discreet as dp
            >>> dp.Budget(epsilon=1, delta=1e-6).split_epsilon(2)
            (0.5, 5e-07)
        """
        n, pair = require_whole("n", n, 1, 2**24), self._account().remaining.dp
        return None if pair is None else (_part(pair[0], n), _part(pair[1], n))

    def _guaranteed(self, cost: object, unit: Unit = "user") -> Guarantee:
        """Return the guarantee to charge; raise ParameterError if there is none or its unit or neighbours differ.

        `unit` is what counts as one user in the data of a mechanism.
        """
        guarantee = cost if isinstance(cost, Guarantee) else getattr(cost, "guarantee", None)
        if not isinstance(guarantee, Guarantee):
            raise ParameterError("a budget can be charged for mechanisms and Guarantees only; give one of them")
        guarantee = per_unit(guarantee, unit)
        protected = Protected.by(guarantee)
        if protected != self._protected:
            unlike = zip(protected._fields, protected, self._protected, strict=True)
            needed = [Parameter(name, repr(value)) for name, value, own in unlike if value != own]
            raise ParameterError.about(
                "a budget per {} cannot pay for a guarantee per {}, since unit and neighbours must match: release with "
                f"the unit and neighbours of the budget, or open one with {' and '.join('{}' for _ in needed)}",
                self._protected,
                protected,
                *needed,
            )
        return guarantee

    def __repr__(self) -> str:
        account = self._account()
        return f"{type(self).__name__} of {account.stated}: {account.left}"


def _part(total: float, n: int) -> float:
    """Return the largest float of which n times is at most the total."""
    part = total / n
    return part if Fraction(part) * n <= Fraction(total) else math.nextafter(part, 0.0)
