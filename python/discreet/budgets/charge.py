"""Charges in whole units (`Charge`), and the privacy filter that limits their sum (`Account`)."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple, NotRequired, TypedDict, TypeVar

from discreet.errors import LEAST, OUT_OF_DELTA, BudgetExceeded, ParameterError, about, trying
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.privacy.guarantee import UNITS, Guarantee, Unit, claimed_pair, pair_text, require_one, resolve_rho
from discreet.privacy.validation import exact, require_number
from discreet.wording import shown_down, shown_up

__all__ = ["NOTHING", "Account", "Charge", "EpsilonDelta", "Protected"]

RHO_UNIT = 2**64
DELTA_UNIT = 2**128
_LARGEST_TOTAL = 5_000.0
"""The largest rho of a budget. One release may promise more (`privacy.guarantee.RHO_LIMIT`)."""
_AS_PAIR = "epsilon={} and delta={}"
Neighbours = Literal["added", "replaced"]
EpsilonDelta = tuple[float, float]
"""An epsilon and a delta."""
Amount = TypeVar("Amount", int, Fraction)


@dataclass(frozen=True, slots=True)
class Charge:
    """A cost with rho in units of 2^-64 and delta in units of 2^-128, so that sums are exact."""

    rho: int
    delta: int
    pair: EpsilonDelta | None = None
    """The epsilon and delta of a charge to an account that adds up epsilons. Its rho and delta are then the same shares
    of the total."""
    less: int = 0
    """What rounding has added to a rho below 2^-11, in units of 2^-128 and rounded down, so that many of them fit."""

    @classmethod
    def of(cls, guarantee: Guarantee) -> Charge:
        """Return the cost of a guarantee, rounded up to whole units."""
        exact = Fraction(guarantee.rho) * RHO_UNIT
        rho = math.ceil(exact)
        less = math.floor((rho - exact) * RHO_UNIT)
        return cls(rho, math.ceil(Fraction(guarantee.delta) * DELTA_UNIT), less=less)

    def __add__(self, other: Charge) -> Charge:
        return Charge(self.rho + other.rho, self.delta + other.delta, less=self.less + other.less)

    def __sub__(self, other: Charge) -> Charge:
        pair = self.pair if other == NOTHING else None
        return Charge(self.rho - other.rho, self.delta - other.delta, pair, self.less - other.less)

    @property
    def fine(self) -> int:
        """The rho in units of 2^-128, rounded up."""
        return self.rho * RHO_UNIT - self.less

    def within(self, other: Charge) -> bool:
        """Return whether neither rho nor delta exceeds the one of `other`."""
        return self.rho <= other.rho and self.delta <= other.delta

    def floats(self, *, up: bool = True) -> tuple[float, float]:
        """Return rho and delta as floats, rounded up or down."""
        return _float(self.rho, RHO_UNIT, up), min(1.0, _float(self.delta, DELTA_UNIT, up))


NOTHING = Charge(0, 0)


def _float(units: int, unit: int, up: bool) -> float:
    exact = Fraction(units, unit)
    value = float(exact)
    if up and Fraction(value) < exact:
        return math.nextafter(value, math.inf)
    return math.nextafter(value, 0.0) if not up and Fraction(value) > exact else value


class Protected(NamedTuple):
    """The neighbouring datasets of a guarantee: the protected unit, and whether it is added or replaced.

    Guarantees with different units or neighbours do not add up.
    """

    unit: Unit
    neighbours: Neighbours

    @classmethod
    def by(cls, guarantee: Guarantee) -> Protected:
        """Return the unit and neighbours of a guarantee."""
        return cls(guarantee.unit, guarantee.neighbours)

    def __str__(self) -> str:
        return f"{UNITS[self.unit]} ({'added or removed' if self.neighbours == 'added' else 'replaced'})"


class Terms(TypedDict):
    """The parameters of a total."""

    rho: float
    delta: float
    dp: NotRequired[tuple[float, float]]
    """For a total in epsilon, the epsilon and delta."""
    unit: Unit
    neighbours: Neighbours


@dataclass(frozen=True, slots=True)
class Account:
    """A privacy filter: a total fixed beforehand, and the sum of the charges so far.

    If the rhos and the deltas of releases add up to at most the total, the total is a guarantee of all releases
    together. This holds even if the choice of each release depends on earlier releases (Rogers 2024, Theorem 5;
    Whitehouse et al. 2023). The filter compares rho and delta separately.

    A total in (epsilon, delta) has a second rule: the epsilons and the deltas of (epsilon, delta)-DP releases, by any
    proof, add up to at most the total. Basic composition is a privacy filter too (Rogers, Roth, Ullman and Vadhan
    2016). The first charge decides the rule for good (`price`). No release came before it, so this does not depend on
    the data, and with each rule all releases together are (epsilon, delta)-DP. A later choice of the rule could depend
    on outputs, and then the two deltas would add up.
    """

    total: Charge
    spent: Charge
    promise: Guarantee
    """The guarantee of all charges together, fixed when the account is opened."""
    terms: Terms = field(compare=False)
    used: tuple[Fraction, Fraction] | None = None
    """The exact sums of the epsilons and of the deltas, if the charges are added up in this way."""

    @classmethod
    def holding(
        cls, rho: object, delta: object, unit: Unit, neighbours: Neighbours, *, epsilon: object | None = None
    ) -> Account:
        """Return a new account with a total in rho and delta, or in epsilon and delta, rounded down to whole units.

        Raises ParameterError if a parameter is out of range, or if both or neither of rho and epsilon are given.
        """
        require_one(rho, epsilon)
        if epsilon is None:
            terms = Terms(
                rho=require_number("rho", rho, 0, _LARGEST_TOTAL),
                delta=require_number("delta", delta, 0, 1, open_low=False, open_high=True),
                unit=unit,
                neighbours=neighbours,
            )
        else:
            stated = (
                float(require_number("epsilon", epsilon, 0, 1000)),
                require_number("delta", delta, 0, 1, open_high=True),
            )
            total_rho, total_delta = _total_of(*stated)
            terms = Terms(rho=total_rho, delta=total_delta, dp=stated, unit=unit, neighbours=neighbours)
        total = Charge(math.floor(Fraction(terms["rho"]) * RHO_UNIT), math.floor(Fraction(terms["delta"]) * DELTA_UNIT))
        if total.rho == 0 or (terms["delta"] > 0 and total.delta == 0):
            raise ParameterError(
                "the total is too small: rho must be at least 5.5e-20, and delta must be 0 or at least 3e-39; give "
                "larger ones"
            )
        return cls.opened(total, terms)

    @classmethod
    def opened(cls, total: Charge, terms: Terms) -> Account:
        """Return the account of this total, with the guarantee that its `terms` imply."""
        unit, neighbours = terms["unit"], terms["neighbours"]
        rho, delta, stated = terms["rho"], terms["delta"], terms.get("dp")
        if stated is None:
            return cls(total, NOTHING, Guarantee(rho, delta, unit, None, neighbours), terms)
        epsilon, whole = stated
        # The least rho that covers every (epsilon, delta)-DP release.
        rho = max(rho, pure_rho(epsilon, tight=True))
        return cls(total, NOTHING, Guarantee(rho, whole, unit, (epsilon, whole), neighbours), terms)

    def require_same(
        self,
        name: str,
        rho: float | None,
        delta: float | None,
        unit: Unit | None,
        neighbours: Neighbours | None,
        epsilon: float | None,
    ) -> None:
        """Raise ParameterError if a given parameter differs from this account, which belongs to the dataset `name`."""
        pair = self.terms.get("dp") or (self.terms["rho"], self.terms["delta"])
        total = dict(zip(("rho" if self.promise.dp is None else "epsilon", "delta"), pair, strict=True))
        asked = {"rho": rho, "delta": delta, "epsilon": epsilon}
        given: dict[str, float | None] = {**total, **{key: value for key, value in asked.items() if value is not None}}
        if epsilon is not None:
            given["delta"] = delta  # an epsilon must be repeated with its delta
        beside = unit or self.terms["unit"], neighbours or self.terms["neighbours"]
        alike = given.keys() == total.keys()
        if alike:
            other = self.holding(given.get("rho"), given["delta"], *beside, epsilon=given.get("epsilon"))
            alike = (other.total, other.promise) == (self.total, self.promise)
        if not alike:
            stated = " and ".join(f"{key} {exact(value)}" for key, value in total.items())
            raise ParameterError(
                f"the dataset {name!r} has a total of {stated} per {self.protected}, which is fixed for good: repeat "
                "this total. Another dataset is for the data of other users: two budgets for the same users add up"
            )

    @property
    def protected(self) -> Protected:
        """The neighbouring datasets of the guarantee."""
        return Protected.by(self.promise)

    @property
    def remaining(self) -> Guarantee:
        """The remaining rho and delta, rounded down. If epsilons may be charged, it has the remaining pair."""
        if (pair := self._pair_left) is not None:
            with suppress(ParameterError):
                rho, delta = resolve_rho(None, *pair)
                return replace(self.guarantee(NOTHING), rho=rho, delta=delta, dp=pair)
            return replace(self.guarantee(NOTHING), dp=pair if pair[0] > 0 else None)
        left = self.total - self.spent
        rest = self.guarantee(Charge(max(0, left.rho), max(0, left.delta)), up=False)
        return replace(rest, dp=self.promise.dp) if self.spent == NOTHING else rest

    @property
    def _pair_left(self) -> EpsilonDelta | None:
        """The remaining epsilon and delta, rounded down, of an account that adds them up."""
        if self.used is None or self.promise.dp is None:
            return None
        left = [max(Fraction(0), Fraction(most) - used) for most, used in zip(self.promise.dp, self.used, strict=True)]
        epsilon, delta = (math.nextafter(float(x), 0.0) if Fraction(float(x)) > x else float(x) for x in left)
        return epsilon, delta

    def guarantee(self, charge: Charge, *, up: bool = True) -> Guarantee:
        """Return a charge as a Guarantee, rounded up or down."""
        return Guarantee(*charge.floats(up=up), unit=self.protected.unit, neighbours=self.protected.neighbours)

    def price(self, guarantee: Guarantee, *, by_rho: bool = False) -> Charge:
        """Return the charge for a guarantee: its rho and delta rounded up to whole units, or its epsilon and delta.

        An account in epsilon that is not charged yet adds up epsilons from now on if the rho does not fit. It also does
        so if the guarantee states an epsilon and more releases of it fit than of this rho, but not with `by_rho`, and
        not for a share of `Balance.split`.

        Rounding up to units must not refuse a charge equal to the total. So a rho or delta within the account's
        guarantee is capped at `_largest`. A capped rho fits only if no rho was spent before, and a capped delta
        likewise.
        """
        charge, largest = Charge.of(guarantee), self._largest
        if self.promise.dp is not None:
            if self.used is None and self.spent != NOTHING:
                return charge
            if self.used is None and self.fits(charge) and (by_rho or guarantee.dp is None or self._divides(charge)):
                return charge
            by_pair = self._by_pair(guarantee, self.promise.dp)
            return by_pair if self.used is not None or self._times(by_pair) > self._times(charge) else charge
        if self.fits(charge):
            return charge
        rho = min(charge.rho, largest.rho) if guarantee.rho <= self.promise.rho else charge.rho
        delta_units = min(charge.delta, largest.delta) if guarantee.delta <= self.promise.delta else charge.delta
        capped = Charge(rho, delta_units)
        return capped if self.fits(capped) else charge

    def _by_pair(self, guarantee: Guarantee, total: EpsilonDelta) -> Charge:
        """Return the charge of the epsilon and delta of a guarantee.

        It is the pair of the guarantee, or one that its rho implies if this is clearly a smaller part of what is left.
        The guarantee has both pairs, and what is left is public. A guarantee with an epsilon that is not smaller than
        the total's, or with a larger delta, takes the whole total.
        """
        left = self._pair_left or total
        pair = (0.0, guarantee.delta) if guarantee.rho == 0 else guarantee.dp
        none_left = min(left) <= 0
        if guarantee.rho > 0 and guarantee.delta < 0.5 and (pair is None or not none_left):
            left = total if none_left else left  # nothing fits then, and the charge says what is needed
            at = 2 * guarantee.delta or _even(guarantee, left)
            converted = guarantee.epsilon(at), at
            if pair is None or _part_of(converted, left) < (1 - 1e-6) * _part_of(pair, left):
                pair = converted
        # Roundings make an epsilon a little smaller than the one that was asked for.
        if pair is None or not (pair[0] < (1 - 1e-9) * total[0] and pair[1] <= total[1]):
            if not guarantee.implies(*total):
                return replace(Charge.of(guarantee), pair=(math.inf, 1.0))
            return replace(self._largest, pair=total)
        units = zip(pair, total, (self.total.rho, self.total.delta), strict=True)
        rho, delta = (math.ceil(Fraction(own) / Fraction(whole) * most) for own, whole, most in units)
        return Charge(rho, delta, pair)

    def _times(self, charge: Charge) -> float:
        """Return how many charges of this size fit into the whole total."""
        costs, most = (
            [Fraction(charge.rho), Fraction(charge.delta)],
            [Fraction(self.total.rho), Fraction(self.total.delta)],
        )
        if charge.pair is not None and self.promise.dp is not None:
            if math.isinf(charge.pair[0]):
                return 0
            costs, most = ([*map(Fraction, pair)] for pair in (charge.pair, self.promise.dp))
        tolerance = Fraction(2**52 + 1, 2**52)  # as in `_fits`
        return min(
            (whole * tolerance // cost for cost, whole in zip(costs, most, strict=True) if cost), default=math.inf
        )

    def _divides(self, charge: Charge) -> bool:
        """Return whether the rho of a charge is an n-th part of the total, as a share of `Balance.split` is.

        n is below 2^25. Shares are rounded, so n of them may differ from the total by a part of 1e-9.
        """
        if charge.rho * 2**25 <= self.total.rho:
            return False
        rest = self.total.rho * (1 + 1e-9) % charge.rho
        return rest < 2e-9 * self.total.rho

    def require(self, guarantee: Guarantee, *, by_rho: bool = False) -> Charge:
        """Return the charge for a guarantee, as `price` does; raise BudgetExceeded if it does not fit."""
        charge = self.price(guarantee, by_rho=by_rho)
        if not self.fits(charge):
            if (left := self._pair_left) is not None and charge.pair is not None:
                pair = guarantee.dp if math.isinf(charge.pair[0]) else charge.pair
                needed = f"rho={guarantee.rho} and delta={guarantee.delta}" if pair is None else _AS_PAIR.format(*pair)
                advice: str = trying(dict(zip(("epsilon", "delta"), left, strict=True)))
                if left[0] < LEAST:
                    advice = "No epsilon is left: nothing more can be released."
                elif left[1] == 0:
                    without = trying({"epsilon": left[0]}, " without a delta")
                    advice = OUT_OF_DELTA if guarantee.delta > 0 else about("No delta is left. {}", without)
                raise BudgetExceeded(needed, _AS_PAIR.format(*left), advice)
            raise BudgetExceeded(replace(self.guarantee(charge), dp=guarantee.dp), self.remaining)
        return charge

    def unused(self, charge: Charge, cost: Charge) -> Charge:
        """Return the refund for a release that was charged `charge` and cost `cost`.

        A release that was charged by its epsilon gets none: its rho is not the rho that was charged.
        """
        return charge - cost if cost.within(charge) and charge.pair is None else NOTHING

    @property
    def stated(self) -> str:
        """The total as text, in the terms in which it was given."""
        if self.promise.dp is None:
            return str(self.guarantee(self.total))
        epsilon, delta = self.promise.dp
        return f"{pair_text(epsilon, delta)} per {self.protected}"

    @property
    def whole(self) -> str:
        """The note of a release that takes the whole account."""
        rho, delta = map(shown_down, self.total.floats(up=False))
        return (
            f"this release took the whole budget of {self.stated}, because only releases of at most rho {rho} and "
            f"delta {delta} in total can share it"
        )

    @property
    def amounts(self) -> tuple[str, tuple[EpsilonDelta, EpsilonDelta, EpsilonDelta]]:
        """Whether rho or epsilon adds up beside delta; and the total, the spent and the remaining pair of both."""
        if (whole := self.promise.dp) is None or (self.used is None and self.spent != NOTHING):
            left = self.remaining
            return "rho", (self.total.floats(), self.sum_spent.floats(), (left.rho, left.delta))
        epsilon, delta = map(float, self.used or (0, 0))
        return "epsilon", (whole, (epsilon, delta), self._pair_left or whole)

    @property
    def sum_spent(self) -> Charge:
        """The spent amount, at most the total: what exceeds it was added by rounding; see `_fits`."""
        return Charge(min(self.spent.rho, self.total.rho), min(self.spent.delta, self.total.delta))

    @property
    def spending(self) -> Guarantee:
        """The guarantee of all charges so far, if no output has decided which charges were made."""
        if self.used is not None and self.promise.dp is not None:
            left = self._pair_left or (0.0, 0.0)
            sums = [own if rest else most for own, most, rest in zip(self.used, self.promise.dp, left, strict=True)]
            epsilon, delta = claimed_pair((*sums,)) or (0.0, 0.0)
            return self.cost_of(0, 0, (epsilon, delta))
        if self.used_by_epsilon:
            return self.promise
        return self.cost_of(*self.sum_spent.floats(), (0.0, 0.0) if self.spent == NOTHING else None)

    def cost_of(self, rho: float, delta: float, pair: EpsilonDelta | None) -> Guarantee:
        """Return the guarantee of a charge. With a pair, its rho is the least one that covers the pair."""
        if pair is not None:
            rho, delta = pure_rho(pair[0], tight=True) if pair[0] else 0.0, pair[1]
        return Guarantee(rho, delta, self.protected.unit, pair, self.protected.neighbours)

    @property
    def left(self) -> str:
        """The remaining budget as text."""
        if self.used_by_epsilon:
            return "one release of at most this epsilon and delta took all of it; nothing is left for others"
        if (pair := self._pair_left) is not None and (whole := self.promise.dp) is not None:
            parts = zip(("epsilon", "delta"), pair, whole, strict=True)
            return " and ".join(f"{name} {shown_down(one)} of {shown_up(most)}" for name, one, most in parts) + " left"
        left, total = self.remaining, self.guarantee(self.total, up=False)
        rho, delta = shown_down(left.rho), shown_down(left.delta)
        rest = f"rho {rho} of {shown_up(total.rho)} and delta {delta} of {shown_up(total.delta)} left"
        if self.promise.dp is not None and self.spent == NOTHING:
            return (
                f"nothing is spent; it covers releases that add up to rho {rho} and delta {delta}, or "
                "one larger release of at most this epsilon and delta, or several whose epsilons and deltas add up so"
            )
        return f"{rest}. {OUT_OF_DELTA}" if self.out_of_delta else rest

    @property
    def out_of_delta(self) -> bool:
        """Whether all delta is spent but not all rho, so that only releases without delta fit."""
        return self.used is None and self.spent.rho < self.total.rho and 0 < self.total.delta <= self.spent.delta

    def is_whole(self, charge: Charge) -> bool:
        """Return whether a charge is that of one release which takes a whole account in epsilon."""
        if charge.pair is not None:
            return charge.pair == self.promise.dp
        return self.promise.dp is not None and (charge.rho, charge.delta) == (self._largest.rho, self._largest.delta)

    @property
    def used_by_epsilon(self) -> bool:
        """Whether one (epsilon, delta)-DP release used up the account."""
        return self.is_whole(self.spent)

    def fits(self, charge: Charge) -> bool:
        """Return whether both rho and delta of a charge fit, or both of its epsilon and delta."""
        if charge.pair is not None and self.promise.dp is not None:
            before = self.used or (Fraction(0), Fraction(0))
            sums = zip(before, charge.pair, self.promise.dp, strict=True)
            return (self.used is not None or self.spent == NOTHING) and all(
                _fits(used, Fraction(own), Fraction(most)) if math.isfinite(own) else False for used, own, most in sums
            )
        if self.used is not None:
            return charge == NOTHING
        total = math.floor(Fraction(self.terms["rho"]) * RHO_UNIT**2)
        return _fits(self.spent.fine, charge.fine, total) and _fits(self.spent.delta, charge.delta, self.total.delta)

    def paying(self, charge: Charge) -> Account:
        """Return the account after this charge; raise BudgetExceeded if it does not fit."""
        if not self.fits(charge):
            raise BudgetExceeded(self.guarantee(charge), self.remaining)
        return replace(self, spent=self.spent + charge, used=self.used_with(charge.pair))

    def used_with(self, pair: EpsilonDelta | None) -> tuple[Fraction, Fraction] | None:
        """Return the sums of the epsilons and deltas after one more charge."""
        if pair is None:
            return self.used
        epsilon, delta = self.used or (Fraction(0), Fraction(0))
        return epsilon + Fraction(pair[0]), delta + Fraction(pair[1])

    def given_back(self, charge: Charge) -> Account:
        """Return the account after this refund of an earlier charge."""
        return replace(self, spent=self.spent - charge)

    @property
    def _largest(self) -> Charge:
        """The largest charge. It fits only if nothing was spent: after one unit it does not fit any more."""
        return Charge(self.total.rho + _slack(self.total.rho), self.total.delta + _slack(self.total.delta))


def _total_of(epsilon: float, delta: float) -> tuple[float, float]:
    """Return a total rho and delta that imply (epsilon, delta)-DP, even with the tolerance of `_fits`."""
    rho, own = resolve_rho(None, epsilon, delta)
    for _ in range(8):
        rho = round_down(rho, 64)
        after = Guarantee(round_up(rho, 1), round_up(own, 1)) if rho > 0 else None
        if after is not None and after.implies(epsilon, delta):
            return rho, own
    raise ParameterError("epsilon and delta are too small for any release; give larger values")


def _part_of(pair: EpsilonDelta, whole: EpsilonDelta) -> float:
    """Return the part of an epsilon and a delta that a pair takes, of that of which it takes more."""
    return max(pair[0] / whole[0], pair[1] / whole[1])


@lru_cache(maxsize=64)
def _even(guarantee: Guarantee, left: EpsilonDelta) -> float:
    """Return the delta at which a guarantee without delta takes about the same part of epsilon and delta that are left.

    So n releases fit if each is (epsilon, delta)-DP for an n-th of both: the first takes at most the n-th part of what
    is left, the next one at most the (n-1)-th of the rest, and so on.
    """
    low, high = -70.0, 0.0
    for _ in range(24):
        middle = (low + high) / 2
        epsilon, delta = (2.0**middle * most for most in left)
        low, high = (low, middle) if delta > 0 and guarantee.implies(epsilon, delta) else (middle, high)
    return float(2.0**high * left[1])


def _fits(spent: Amount, charge: Amount, total: Amount) -> bool:
    """Return whether a charge fits, with a tolerance for rounded floats.

    Ten times the float nearest to 0.1 is 1 + 2^-54. So a charge that begins below the total may end above it, by less
    than one part in 2^52, and a first charge by less than one part in 2^53. After that nothing fits. If a number is
    divided by n and the float nearest to it is the total, n charges of the float nearest to the quotient stay within
    the tolerance. The total is the guarantee nevertheless, because the true cost of a mechanism is below the one that
    it states by more than the tolerance: see docs/decisions/total-and-parts.md.
    """
    over = spent + charge - total
    return charge == 0 or over <= 0 or (spent < total and over * 2 ** (53 if spent == 0 else 52) < total)


def _slack(total: int) -> int:
    """Return the largest number of units that is less than one part in 2^53 of a total."""
    return max(0, total - 1) >> 53
