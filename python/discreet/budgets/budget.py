"""`Budget`: a privacy budget in the memory of one process."""

from __future__ import annotations

from typing import Self

from discreet.budgets.charge import Account, Charge, Neighbours, Protected
from discreet.budgets.filter import PrivacyFilter
from discreet.budgets.owner import Single
from discreet.budgets.paid import Receipt
from discreet.budgets.record import Event, History, spendings
from discreet.budgets.states import States
from discreet.privacy.guarantee import Unit

__all__ = ["Budget"]


class Budget(Single, PrivacyFilter):
    """A privacy budget in memory that limits the total cost of all releases charged to it.

    A budget lives as long as its process, and any number of threads may charge it. It cannot be copied or pickled, and
    a forked process cannot charge it, since a copy could spend the same budget again. A `Ledger` keeps budgets in a
    file for many processes.

    A budget in epsilon can be spent in one of two ways. Either several releases share the rho that implies epsilon, and
    half of delta. Or the epsilons and deltas of releases add up to the total. The first charge decides between them.

    Args:
        rho: The total rho, in zCDP, above 0 and at most 5,000. Give exactly one of rho and epsilon.
        delta: The total delta, below 1 and at least 0; above 0 if epsilon is given.
        epsilon: The epsilon of the total (epsilon, delta)-DP guarantee, at most 1,000.
        unit: The protected unit: "user", "event", or a user in one period, such as "user-day"; see `Guarantee`. Charges
            must have the same unit.
        neighbours: "added" if neighbouring datasets differ by one added or removed unit, "replaced" if by one replaced
            unit. Charges must have the same neighbours.

    Raises:
        ParameterError: A parameter is out of range.

    Example:
        >>> import discreet as dp
        >>> budget = dp.Budget(rho=1, delta=1e-6)
        >>> log = {"user": [*range(5000)], "page": ["home"] * 5000}
        >>> release = dp.count(log, user="user", item="page", rho=0.25, delta=1e-7, budget=budget)
        >>> print(budget.spent)
        1e-07-approximate 0.25-zCDP per user (added or removed)
        >>> budget.fits(dp.Guarantee(rho=0.8, delta=0))
        False
    """

    __slots__ = ("_log",)

    _log: States[tuple[Event, Account]]
    """Every event, with the account after it."""

    def __init__(
        self,
        *,
        rho: float | None = None,
        delta: float,
        epsilon: float | None = None,
        unit: Unit = "user",
        neighbours: Neighbours = "added",
    ) -> None:
        account = Account.holding(rho, delta, unit, neighbours, epsilon=epsilon)
        self._set(_log=States((Event(kind="opened", charge=account.total), account)))
        self._own()

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float) -> Self:
        """Return the budget whose total guarantee is (epsilon, delta)-DP.

        Args:
            epsilon: The total epsilon, at most 1,000.
            delta: The total delta, above 0.

        Returns:
            A Budget, as from `Budget(epsilon=epsilon, delta=delta)`.

        Raises:
            ParameterError: A parameter is out of range.
        """
        return cls(epsilon=epsilon, delta=delta)

    @property
    def history(self) -> History:
        """The charges in order, one row each. Their digests are empty; only a Ledger records them."""
        self._require_owner()
        return spendings((number, event) for number, (event, _) in self._log.all())

    @property
    def _protected(self) -> Protected:
        return self._log[0][1].protected

    def _account(self) -> Account:
        self._require_owner()
        return self._log.latest[1]

    def _reserve(self, event: Event, receipt: Receipt) -> int:
        self._require_owner()
        receipt.begin()
        return self._log.append(lambda latest: (event, latest[1].paying(event.charge)))

    def _settle(self, number: int, given_back: Charge, release: object) -> None:
        self._require_owner()
        event = Event(kind="released", of=number, charge=given_back)
        self._log.append(lambda latest: (event, latest[1].given_back(given_back)))
