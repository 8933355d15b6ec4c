"""`Exchange`: pay-what-you-get top-k lists, each charged for the items that it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from discreet.budgets.owner import Single
from discreet.budgets.states import States
from discreet.errors import BudgetExceeded
from discreet.mechanisms.parameters import LINF_LIMIT, require_delta
from discreet.mechanisms.top_k.gumbel import GumbelTopK
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee, Promising, Unit
from discreet.privacy.validation import require_number, require_whole
from discreet.tables.histogram import Histogram
from discreet.theorems import dong2020, rogers2023, rogers2024
from discreet.wording import counted

if TYPE_CHECKING:
    from discreet import _core
    from discreet.mechanisms.base import Opening
    from discreet.release.release import Release

__all__ = ["Exchange", "Publication"]


class Publication(Protocol):
    """A release of rows or of answers, with its cost."""

    @property
    def spent(self) -> Guarantee:
        """The cost of the steps that the release made, at most its guarantee."""

    @property
    def seeded(self) -> bool:
        """Whether the randomness was seeded. A seeded release gives no privacy."""


_Published = TypeVar("_Published", bound=Publication)


class Payer(Protocol):
    """The methods of a budget that an exchange calls."""

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all charges together."""

    def shortfall(self, total: Guarantee) -> tuple[Guarantee, Guarantee] | None:
        """Return None if charges that add up to `total` fit, else the cost and the remaining budget."""

    def publish(
        self,
        mechanism: Promising,
        draw: Callable[[Opening], _Published],
        charge: Literal["guarantee", "spent"],
        *,
        settled: Callable[[_Published], object],
        unit: Unit,
    ) -> _Published:
        """Return the release that `draw` makes. The budget is charged when `draw` opens its random stream."""


class Exchange(Single):
    """A series of top-k lists, each of which is charged for the items that it returns.

    `Budget.pay_what_you_get` makes an exchange. `GumbelTopK` makes each list, with the exchange's `epsilon`. An outcome
    is an item of a list, or the stop element if the stop element ended the list. A list costs `delta`, and a rho of
    epsilon²/8 for each outcome. The parameters of a list may depend on earlier lists.

    An exchange cannot be copied or pickled, and a forked process cannot use it, because a copy could spend the same
    outcomes again.

    Args:
        payer: The budget or the ledger's dataset to which the lists are charged.
        outcomes: The most outcomes of all lists together, from 1 to 2^30.
        queries: The most lists, from 1 to 2^30.
        epsilon: The epsilon of each selection, from 1e-9 to 100.
        delta: The delta of each list.

    Raises:
        ParameterError: A parameter is out of range.
        BudgetExceeded: The guarantee of the whole exchange does not fit into the remaining budget.

    Example:
        >>> import discreet as dp
        >>> budget = dp.Budget(rho=1, delta=1e-6)
        >>> exchange = budget.pay_what_you_get(outcomes=50, queries=20, epsilon=0.1, delta=1e-9)
        >>> users = dp.Histogram.from_counts(["a", "b"], [9000, 4000], l0=None, linf=1, complete=True)
        >>> exchange.top_k(users, k=2).items
        ['a', 'b']
        >>> exchange.outcomes_left, exchange.queries_left
        (48, 19)

    Source:
        Rogers (2023), Algorithm 4 and Theorem 10, after Durfee and Rogers (2019).
    """

    __slots__ = ("_delta", "_epsilon", "_outcomes", "_payer", "_queries", "_unit", "_used")

    _payer: Payer
    _outcomes: int
    _queries: int
    _epsilon: float
    _delta: float
    _unit: Unit
    """What counts as one user in all histograms: the unit of the budget."""
    _used: States[tuple[int, int]]
    """The number of outcomes and the number of lists used so far."""

    def __init__(self, payer: Payer, *, outcomes: int, queries: int, epsilon: float, delta: float) -> None:
        self._set(
            _payer=payer,
            _outcomes=require_whole("outcomes", outcomes, 1, 2**30),
            _queries=require_whole("queries", queries, 1, 2**30),
            _epsilon=require_number("epsilon", epsilon, 1e-9, 100),
            _delta=require_delta(delta),
            _unit="user" if payer.guarantee.unit == "event" else payer.guarantee.unit,
            _used=States((0, 0)),
        )
        self._own()
        # Nothing is charged here: each list is charged when it is released. The budget must suffice for all of them.
        lacking = payer.shortfall(self.guarantee)
        if lacking is not None:
            cost, left = lacking
            raise BudgetExceeded(cost, left, _advice(cost.rho > left.rho, cost.delta > left.delta))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all lists: (outcomes epsilon²/8)-zCDP and (outcomes epsilon)-DP (Theorem 10).

        Both have delta 1 - (1 - delta)^queries.
        """
        rho = rogers2023.gumbel_rho(self._epsilon, self._outcomes)
        delta = rogers2024.call_delta(self._queries, self._delta)
        return Guarantee(rho, delta, self._unit, dp=(round_up(self._outcomes * self._epsilon, 1), delta))

    def epsilon(self, delta: float) -> float:
        """Return the total epsilon of all lists at a total delta, rounded up.

        The result is the least of three bounds: outcomes times epsilon, the conversion from rho, and the adaptive
        composition of bounded-range mechanisms (Dong, Durfee and Rogers 2020).

        Args:
            delta: The total delta, at least the delta of `guarantee`.

        Raises:
            ParameterError: `delta` is too small. The text says which delta suffices.
        """
        delta = require_number("delta", delta, 0, 1)
        guarantee = self.guarantee
        own = dong2020.approximate_epsilon(self._epsilon, self._outcomes, guarantee.delta, delta)
        return min(guarantee.epsilon(delta), own)

    @property
    def outcomes_left(self) -> int:
        """The number of outcomes, which are items and stop elements, that can still be returned."""
        return self._outcomes - self._used.latest[0]

    @property
    def queries_left(self) -> int:
        """The number of lists that can still be requested."""
        return self._queries - self._used.latest[1]

    @property
    def spent(self) -> Guarantee:
        """The cost of the lists so far."""
        outcomes, queries = self._used.latest
        rho = rogers2023.gumbel_rho(self._epsilon, outcomes)
        return Guarantee(rho, rogers2024.call_delta(queries, self._delta), self._unit)

    def top_k(
        self, histogram: Histogram, *, k: int, k_bar: int = 1_000, l0: int | None = None, linf: int = 1
    ) -> Release:
        """Release the `k` most common items of a histogram in order, or fewer; see `GumbelTopK`.

        `k` outcomes are charged before noise is drawn, and the unused outcomes are refunded after the release. If an
        error occurs before the draw, the whole charge is refunded. If an error occurs later, nothing is refunded.

        Args:
            histogram: The counts.
            k: The most items to return.
            k_bar: Consider only the k_bar most common items.
            l0: The most items that one user has in the histogram, or None for any number.
            linf: The most that one user adds to one count. The scale of the noise is linf/epsilon.

        Returns:
            A Release of items in order, without counts.

        Raises:
            BudgetExceeded: `k` outcomes or one more list do not fit into the exchange or into its budget.
            ParameterError: A parameter is out of range.
            SensitivityError: One user may change the counts by more than `GumbelTopK` allows, or counts are missing.
                None of these errors costs anything.
        """
        self._require_owner()
        scale = round_up(require_whole("linf", linf, 1, LINF_LIMIT) / self._epsilon, 8)
        mechanism = GumbelTopK(k=k, scale=scale, delta=self._delta, k_bar=k_bar, l0=l0, linf=linf)
        drawn = False

        def draw(open_rng: Opening) -> Release:
            def noted() -> _core.Rng:
                nonlocal drawn
                rng = open_rng()
                drawn = True
                return rng

            return mechanism.release(histogram, rng=noted)

        def settled(release: Release) -> None:
            self._give_back(mechanism.k - release.calls, 0)

        self._take(mechanism.k)
        try:
            unit = histogram.unit if isinstance(histogram, Histogram) else self._unit
            return self._payer.publish(mechanism, draw, "spent", settled=settled, unit=unit)
        except BaseException:
            if not drawn:
                self._give_back(mechanism.k, 1)
            raise

    def _take(self, outcomes: int) -> None:
        def taken(used: tuple[int, int]) -> tuple[int, int]:
            if used[0] + outcomes > self._outcomes or used[1] >= self._queries:
                left = f"{counted(self._outcomes - used[0], 'outcome')} and {counted(self._queries - used[1], 'list')}"
                raise BudgetExceeded(f"{counted(outcomes, 'outcome')} and one list", left)
            return used[0] + outcomes, used[1] + 1

        self._used.append(taken)

    def _give_back(self, outcomes: int, queries: int) -> None:
        if outcomes or queries:
            self._used.append(lambda used: (used[0] - outcomes, used[1] - queries))

    def __repr__(self) -> str:
        left = f"{counted(self.outcomes_left, 'outcome')} and {counted(self.queries_left, 'list')}"
        return f"Exchange of {self.guarantee}: {left} left"


def _advice(lacks_rho: bool, lacks_delta: bool) -> str:
    """Return advice on which parameters of an exchange to reduce."""
    if lacks_rho and lacks_delta:
        return "Try fewer outcomes and queries, or a smaller epsilon and delta: epsilon is per item, delta per list."
    if lacks_delta:
        return "Try fewer queries, or a smaller delta: delta is per list."
    return "Try fewer outcomes, or a smaller epsilon: epsilon is per item."
