"""`Budget`: a privacy budget in the memory of one process."""

from __future__ import annotations

from typing import Self

from discreet.budgets.charge import Account, Charge, Protected
from discreet.budgets.filter import PrivacyFilter
from discreet.budgets.owner import Single
from discreet.budgets.record import Event, Spending, spendings
from discreet.budgets.states import States
from discreet.release.release import Release

__all__ = ["Budget"]


class Budget(Single, PrivacyFilter):
    """A total of `rho` and `delta`, or `epsilon` and `delta`, that all releases charged to it stay within, together.

    It lives as long as this process: many threads may charge it, a forked process may not, and it is neither
    copied nor pickled. A `Ledger` keeps a budget in a file. `epsilon`: instead of rho the total (epsilon, delta)-DP
    promise. Such a budget pays either for releases whose rhos add up to the rho that implies epsilon, and whose
    deltas add up to half of delta, or for one release that is (epsilon, delta)-DP by itself. `unit`: what is
    protected, a whole "user" or one "event"; `neighbours`: whether that is "added" (or removed) or "replaced".
    Raises ParameterError if a parameter is out of range.
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
        unit: str = "user",
        neighbours: str = "added",
    ) -> None:
        account = Account.holding(rho, delta, unit, neighbours, epsilon=epsilon)
        self._set(_log=States((Event(kind="opened", charge=account.total), account)))
        self._own()

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float) -> Self:
        """Return the budget whose total promise is (epsilon, delta)-DP."""
        return cls(epsilon=epsilon, delta=delta)

    @property
    def history(self) -> list[Spending]:
        """What was charged, in order; without digests, which a Ledger keeps."""
        self._require_owner()
        return spendings((number, event) for number, (event, _) in self._log.all())

    @property
    def _protected(self) -> Protected:
        return self._log[0][1].protected

    def _account(self) -> Account:
        self._require_owner()
        return self._log.latest[1]

    def _reserve(self, event: Event) -> int:
        self._require_owner()
        return self._log.append(lambda latest: (event, latest[1].paying(event.charge)))

    def _settle(self, number: int, given_back: Charge, release: Release) -> None:
        self._require_owner()
        event = Event(kind="released", of=number, charge=given_back)
        self._log.append(lambda latest: (event, latest[1].given_back(given_back)))
