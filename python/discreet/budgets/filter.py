"""What a budget in memory and a dataset of a ledger share: `PrivacyFilter`."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal

from discreet import _core
from discreet.budgets.charge import NOTHING, Account, Charge, Protected
from discreet.budgets.exchange import Exchange
from discreet.budgets.owner import Uncopied
from discreet.budgets.record import Event, Spending, charging
from discreet.errors import OUT_OF_DELTA, BudgetExceeded, ParameterError
from discreet.mechanisms.base import Opening
from discreet.privacy.conversion import round_down, round_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number, require_text, require_whole
from discreet.release.release import Release
from discreet.theorems import whitehouse2023
from discreet.wording import counted

__all__ = ["PrivacyFilter"]

_LONGEST = 1000
"""The most characters in the name of what was charged, which a history prints in one line."""


class PrivacyFilter(Uncopied, ABC):
    """A total of rho and delta that all releases charged to it stay within, together.

    A charge is made, durably where there is a file, before the randomness of a release is drawn, and stands
    from then on whatever happens. What is refused before the draw costs nothing. Which mechanism is run next,
    with which parameters, may depend on everything that was released (Rogers 2024, Theorem 5).
    """

    __slots__ = ()

    @property
    @abstractmethod
    def _protected(self) -> Protected:
        """Between which data sets the promise holds."""

    @abstractmethod
    def _account(self) -> Account:
        """The account as it is now."""

    @abstractmethod
    def _reserve(self, event: Event) -> int:
        """Charges what an event says and returns its number; BudgetExceeded where it does not fit."""

    @abstractmethod
    def _settle(self, number: int, given_back: Charge, release: Release) -> None:
        """Notes that the draw which was reserved as `number` is to be published."""

    @property
    @abstractmethod
    def history(self) -> list[Spending]:
        """What was charged, in order."""

    def release(
        self, mechanism: Any, data: Any, *, charge: Literal["guarantee", "spent"] = "guarantee", **columns: Any
    ) -> Release:
        """Charges the mechanism's guarantee and publishes what it finds in `data`, the Histogram that it takes.

        A mechanism that reads a table, such as Plume, takes that and the names of its columns.
        `charge="spent"` gives back what the release did not need: a mechanism that is a sequence of steps with
        prices of their own, such as GumbelTopK or PrivateCountRelease, is charged for the steps that it made
        (Rogers 2023, Theorem 10).

        Raises BudgetExceeded where the guarantee does not fit into what is left, ParameterError where it
        protects another unit, and the errors of the mechanism; none of them costs anything.
        """
        if hasattr(mechanism, "start"):
            raise ParameterError("charge() pays for a stream, once for all its rounds; then start it")
        if not hasattr(mechanism, "release"):
            raise ParameterError(
                "release takes a mechanism and then the data; charge() pays for what is not a mechanism"
            )
        if "rng" in columns:
            raise ParameterError("a budget takes no seeded randomness: leave out rng, or release without a budget")
        return self._publish(mechanism, lambda open_rng: mechanism.release(data, rng=open_rng, **columns), charge)

    def _publish(
        self,
        mechanism: Any,
        draw: Callable[[Opening], Release],
        charge: Literal["guarantee", "spent"] = "guarantee",
    ) -> Release:
        """The release that `draw` makes of the stream that it opens, paid for when it is opened."""
        if charge not in ("guarantee", "spent"):
            raise ParameterError('charge must be "guarantee" or "spent"')
        guarantee = self._guaranteed(mechanism)
        account = self._account()
        promised = account.require(guarantee)
        reserved: list[int] = []

        def open_rng() -> _core.Rng:
            if reserved:
                raise ParameterError("a release has one stream of randomness")
            rng = _core.Rng()
            reserved.append(self._reserve(charging("reserved", promised, mechanism)))
            return rng

        release = draw(open_rng)
        if release.seeded or not reserved:
            raise ParameterError("a budget pays for private releases alone, and this one was seeded")
        given_back = account.unused(promised, Charge.of(release.spent)) if charge == "spent" else NOTHING
        self._settle(reserved[0], given_back, release)
        return release

    def charge(self, cost: Any, *, made_by: str | None = None) -> None:
        """Charges a Guarantee, or that of a mechanism, for what runs elsewhere: a stream, another library.

        `made_by` names it in the history. Charge before it runs. Raises BudgetExceeded where it does not fit.

        One charge pays for all rounds of a stream, also beside other releases. Given an event of probability 1 - delta,
        its rounds are post-processing of one release; see `StreamMechanism`, and "Streams beside other releases" in
        docs/budgets.md. For other interactive mechanisms charges add up by Lyu (2022) and Haney et al. (2023).
        """
        if made_by is not None:
            require_text("made_by", made_by)
            if len(made_by) > _LONGEST:
                raise ParameterError(f"made_by must have at most {_LONGEST:,} characters")
        charge = self._account().require(self._guaranteed(cost))
        self._reserve(charging("charged", charge, made_by or cost))

    def cost(self, mechanism: Any) -> Guarantee:
        """What a mechanism, or a Guarantee, would be charged: its rho and delta in whole units, rounded up."""
        account = self._account()
        return account.guarantee(account.price(self._guaranteed(mechanism)))

    def fits(self, mechanism: Any) -> bool:
        """Whether what a mechanism, or a Guarantee, would cost fits into what is left."""
        account = self._account()
        return account.fits(account.price(self._guaranteed(mechanism)))

    def require(self, mechanism: Any) -> None:
        """Raises BudgetExceeded where `fits` is false."""
        self._account().require(self._guaranteed(mechanism))

    def split(self, n: int) -> list[Guarantee]:
        """Return `n` Guarantees of equal rho and delta, which can all be charged to what is left.

        Each is rounded down to whole units and to floats, so less than n units, or one part in 2^52, is lost. Make a
        mechanism of a share with `from_rho(rho=share.rho, delta=share.delta, ...)`. Raises BudgetExceeded if less
        than n units of rho are left, or of delta, unless the total delta is 0.
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

    def afford(self, kind: Any, /, *, share: float = 1.0, **parameters: Any) -> Any:
        """The mechanism of a class, such as GumbelTopK, that makes the most of what is left.

        `parameters` are those of the class's `from_rho` but for rho and delta, of which it gets `share` of what
        is left. Raises BudgetExceeded where nothing fits.
        """
        if not callable(getattr(kind, "from_rho", None)):
            raise ParameterError("afford takes a class of mechanisms that has from_rho, such as GumbelTopK")
        share = require_number("share", share, 0, 1)
        left = self.remaining
        most = left.rho if share == 1 else round_down(share * left.rho)
        if "delta" in inspect.signature(kind.from_rho).parameters:
            delta = left.delta if share == 1 else round_down(share * left.delta)
            parameters = {"delta": delta} | parameters
        if min(most, parameters.get("delta", 1.0)) <= 0:
            raise BudgetExceeded(f"rho and delta for a {kind.__name__}", left)
        # The guarantee of what was made from a rho may lie a rounding above it.
        for ulps in (0, 8, 64, 512, 4096, 2**20):
            mechanism = kind.from_rho(rho=round_down(most, ulps) if ulps else most, **parameters)
            if self.fits(mechanism):
                return mechanism
        raise BudgetExceeded(self.cost(mechanism), left)

    def pay_what_you_get(self, *, outcomes: int, queries: int, epsilon: float, delta: float) -> Exchange:
        """An exchange of at most so many outcomes of top-k lists and so many lists; see `Exchange`.

        Raises BudgetExceeded where its guarantee does not fit into what is left.
        """
        return Exchange(self, outcomes=outcomes, queries=queries, epsilon=epsilon, delta=delta)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all releases charged to this budget together, fixed when it is made.

        Its rho and delta are the floats after those of the total, because charges round. A total in epsilon promises
        (epsilon, delta)-DP, and no less rho than any release has that is (epsilon, delta)-DP.
        """
        return self._account().promise

    @property
    def total(self) -> Guarantee:
        """The rho and delta that charges may add up to, which is an amount; the promise is `guarantee`."""
        account = self._account()
        return account.guarantee(account.total)

    @property
    def spent(self) -> Guarantee:
        """The sum of all charges so far, rounded up.

        It is an amount, not a promise: charges that were chosen with outputs in view, read at a time that depends on
        outputs, promise what the total promises. See `guarantee` and `odometer`.
        """
        account = self._account()
        return account.guarantee(account.spent)

    @property
    def remaining(self) -> Guarantee:
        """What is left, rounded down."""
        return self._account().remaining

    def odometer(self, delta: float) -> tuple[float, float]:
        """Return an (epsilon, delta) for what was charged so far, valid at any time, also one chosen by outputs.

        For every number e, all outputs up to now together with "the reading is at most e" are (e, delta)-
        indistinguishable between neighbours, whatever rule decides when to read (Whitehouse et al. 2023; the argument
        is in `discreet.theorems.whitehouse2023`). So an analysis that stops before the reading exceeds e is
        (e, delta)-DP. `delta`: the failure chance of the reading itself, between 1e-300 and 0.5.

        The returned delta is `delta` and the whole delta of the budget, not the deltas charged so far. Their sum at a
        time chosen by outputs bounds nothing: whoever stops at the first failure has paid little, and has failed.
        If one release used up a budget in epsilon, returns the (epsilon, delta) of the budget. Allows no release. The
        mixture's gamma is a tenth of the total rho. Raises ParameterError if `delta` is out of range.
        """
        delta = require_number("delta", delta, 1e-300, 0.5, open_low=False)
        account = self._account()
        if account.promise.dp is not None and account.used_by_epsilon:
            return account.promise.dp
        spent, total = account.guarantee(account.spent), account.terms
        reading = whitehouse2023.half_normal_odometer(spent.rho, delta, account.total.floats()[0] / 10)
        whole = math.nextafter(total["delta"], 1.0) if total["delta"] else 0.0
        return reading, min(1.0, round_up(whole + delta))

    def _guaranteed(self, cost: Any) -> Guarantee:
        """The guarantee to charge; ParameterError if `cost` has none, or it protects another unit."""
        guarantee = cost if isinstance(cost, Guarantee) else getattr(cost, "guarantee", None)
        if not isinstance(guarantee, Guarantee):
            raise ParameterError("a budget is charged with mechanisms and Guarantees; give one of them")
        protected = Protected.by(guarantee)
        if protected != self._protected:
            unlike = zip(protected._fields, protected, self._protected, strict=True)
            needed = " and ".join(f"{name}={value!r}" for name, value, own in unlike if value != own)
            raise ParameterError(
                f"a budget per {self._protected} does not pay for a guarantee per {protected}: open one with {needed}"
            )
        return guarantee

    def __repr__(self) -> str:
        account = self._account()
        return f"{type(self).__name__} of {account.stated}: {account.left}"
