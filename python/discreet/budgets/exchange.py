"""Pay what you get: lists of the most common items, paid for by the items that they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol

from discreet.budgets.charge import Account, Charge
from discreet.budgets.owner import Single
from discreet.budgets.states import States
from discreet.errors import BudgetExceeded
from discreet.mechanisms.parameters import require_delta
from discreet.mechanisms.top_k.gumbel import GumbelTopK
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number, require_whole
from discreet.tables.histogram import Histogram
from discreet.theorems import dong2020, rogers2023, rogers2024

if TYPE_CHECKING:
    from discreet import _core
    from discreet.mechanisms.base import Opening
    from discreet.release.release import Release

__all__ = ["Exchange"]


class Payer(Protocol):
    """What an exchange needs of the budget that pays for it."""

    def _account(self) -> Account:
        """The account as it is now."""

    def _guaranteed(self, cost: object) -> Guarantee:
        """The guarantee to charge."""

    def _publish(
        self, mechanism: object, draw: Callable[[Opening], Release], charge: Literal["guarantee", "spent"]
    ) -> Release:
        """The release that `draw` makes of the stream that it opens, paid for when it is opened."""


class Exchange(Single):
    """At most `outcomes` items, by at most `queries` top-k lists, each asked for with the earlier ones in view.

    Rogers (2023), Algorithm 4 and Theorem 10, after Durfee and Rogers (2019). Every list is that of `GumbelTopK` with
    one `epsilon` for all; its stop element depends on its own k_bar. A list pays epsilon²/8 of rho for each item
    that it returns, and for its stop element where that ended it, and `delta` once. Made by
    `Budget.pay_what_you_get`, which the lists are charged to. Raises ParameterError where a parameter is out
    of range.
    """

    __slots__ = ("_delta", "_epsilon", "_outcomes", "_payer", "_queries", "_used")

    _payer: Payer
    _outcomes: int
    _queries: int
    _epsilon: float
    _delta: float
    _used: States[tuple[int, int]]
    """Outcomes and lists."""

    def __init__(self, payer: Payer, *, outcomes: int, queries: int, epsilon: float, delta: float) -> None:
        self._set(
            _payer=payer,
            _outcomes=require_whole("outcomes", outcomes, 1, 2**30),
            _queries=require_whole("queries", queries, 1, 2**30),
            _epsilon=require_number("epsilon", epsilon, 1e-9, 100),
            _delta=require_delta(delta),
            _used=States((0, 0)),
        )
        self._own()
        # Its lists are charged one by one, so their sum must fit: the rule for a single release does not apply.
        account, charge = payer._account(), Charge.of(payer._guaranteed(self.guarantee))
        if not account.fits(charge):
            cost, left = account.guarantee(charge), account.remaining
            raise BudgetExceeded(cost, left, _advice(cost.rho > left.rho, cost.delta > left.delta))

    @property
    def guarantee(self) -> Guarantee:
        """(outcomes epsilon²/8)-zCDP and (outcomes epsilon)-DP, with 1 - (1 - delta)^queries (Theorem 10)."""
        rho = rogers2023.gumbel_rho(self._epsilon, self._outcomes)
        delta = rogers2024.call_delta(self._queries, self._delta)
        return Guarantee(rho, delta, dp=(round_up(self._outcomes * self._epsilon, 1), delta))

    def epsilon(self, delta: float) -> float:
        """The least epsilon of all lists together at a total `delta`, rounded up.

        The least of three: outcomes epsilon, the conversion from rho, and the composition of bounded ranges,
        each chosen after the ones before (Dong, Durfee and Rogers 2020).
        """
        guarantee = self.guarantee
        own = dong2020.approximate_epsilon(self._epsilon, self._outcomes, guarantee.delta, delta)
        return min(guarantee.epsilon(delta), own)

    @property
    def outcomes_left(self) -> int:
        """How many items, stop elements included, can still be returned."""
        return self._outcomes - self._used.latest[0]

    @property
    def queries_left(self) -> int:
        """How many lists can still be asked for."""
        return self._queries - self._used.latest[1]

    @property
    def spent(self) -> Guarantee:
        """What the lists so far cost."""
        outcomes, queries = self._used.latest
        rho = rogers2023.gumbel_rho(self._epsilon, outcomes)
        return Guarantee(rho, rogers2024.call_delta(queries, self._delta))

    def top_k(self, histogram: Histogram, *, k: int, k_bar: int = 1_000, l0: int | None = None) -> Release:
        """The `k` most common items of a histogram, or fewer, in order; see `GumbelTopK`.

        Raises BudgetExceeded where `k` outcomes or another list are more than is left, here or of the budget, and
        the errors of GumbelTopK; none of them costs anything.
        """
        self._require_owner()
        mechanism = GumbelTopK(k=k, scale=round_up(1 / self._epsilon, 8), delta=self._delta, k_bar=k_bar, l0=l0)
        drawn = False

        def draw(open_rng: Opening) -> Release:
            def noted() -> _core.Rng:
                nonlocal drawn
                rng = open_rng()
                drawn = True
                return rng

            return mechanism.release(histogram, rng=noted)

        self._take(mechanism.k)
        try:
            release = self._payer._publish(mechanism, draw, "spent")
        except BaseException:
            if not drawn:
                self._give_back(mechanism.k, 1)
            raise
        self._give_back(mechanism.k - release.calls, 0)
        return release

    def _take(self, outcomes: int) -> None:
        def taken(used: tuple[int, int]) -> tuple[int, int]:
            if used[0] + outcomes > self._outcomes or used[1] >= self._queries:
                left = f"{self._outcomes - used[0]} outcomes and {self._queries - used[1]} lists"
                raise BudgetExceeded(f"{outcomes} outcomes and one list", left)
            return used[0] + outcomes, used[1] + 1

        self._used.append(taken)

    def _give_back(self, outcomes: int, queries: int) -> None:
        if outcomes or queries:
            self._used.append(lambda used: (used[0] - outcomes, used[1] - queries))

    def __repr__(self) -> str:
        return f"Exchange of {self.guarantee}: {self.outcomes_left} outcomes and {self.queries_left} lists left"


def _advice(lacks_rho: bool, lacks_delta: bool) -> str:
    """Return which parameters of an exchange to reduce: its epsilon is for one item, its delta for one list."""
    if lacks_rho and lacks_delta:
        return "Try fewer outcomes and queries, or a smaller epsilon and delta: they are for each item and each list."
    if lacks_delta:
        return "Try fewer queries, or a smaller delta: it is for each list."
    return "Try fewer outcomes, or a smaller epsilon: it is for each item."
