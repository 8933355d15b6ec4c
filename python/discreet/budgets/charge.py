"""What is spent, in whole numbers (`Charge`), and the privacy filter that lets it through (`Account`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple

from discreet.conversion import round_down
from discreet.errors import BudgetExceeded
from discreet.privacy import Guarantee, require_number, resolve_rho

__all__ = ["NOTHING", "Account", "Charge", "Protected", "total_of"]

RHO_UNIT = 2**64
DELTA_UNIT = 2**128
RHO_LIMIT = 5_000.0


@dataclass(frozen=True, slots=True)
class Charge:
    """A rho in units of 2^-64 and a delta in units of 2^-128."""

    rho: int
    delta: int

    @classmethod
    def of(cls, guarantee: Guarantee) -> Charge:
        """What a guarantee costs, rounded up."""
        return cls(
            math.ceil(Fraction(guarantee.rho) * RHO_UNIT),
            math.ceil(Fraction(guarantee.delta) * DELTA_UNIT),
        )

    def __add__(self, other: Charge) -> Charge:
        return Charge(self.rho + other.rho, self.delta + other.delta)

    def __sub__(self, other: Charge) -> Charge:
        return Charge(self.rho - other.rho, self.delta - other.delta)

    def within(self, other: Charge) -> bool:
        """Whether neither component exceeds that of `other`."""
        return self.rho <= other.rho and self.delta <= other.delta

    def floats(self, *, up: bool = True) -> tuple[float, float]:
        """rho and delta, rounded up or down."""
        return _float(self.rho, RHO_UNIT, up), min(1.0, _float(self.delta, DELTA_UNIT, up))


NOTHING = Charge(0, 0)


def _float(units: int, unit: int, up: bool) -> float:
    exact = Fraction(units, unit)
    value = float(exact)
    if up and Fraction(value) < exact:
        return math.nextafter(value, math.inf)
    return math.nextafter(value, 0.0) if not up and Fraction(value) > exact else value


class Protected(NamedTuple):
    """Between which data sets a promise holds; promises about unlike ones do not add."""

    unit: Literal["user", "event"]
    neighbours: Literal["added", "replaced"]

    @classmethod
    def by(cls, guarantee: Guarantee) -> Protected:
        """Those of a guarantee."""
        return cls(guarantee.unit, guarantee.neighbours)

    def __str__(self) -> str:
        return f"{self.unit} ({'added or removed' if self.neighbours == 'added' else 'replaced'})"


@dataclass(frozen=True, slots=True)
class Account:
    """A total fixed beforehand, and what was charged to it so far.

    Releases whose rhos and deltas add up to no more than the total are, all together, approximate zCDP for the
    total, however each was chosen with the earlier ones in view (Rogers 2024, Theorem 5; Whitehouse et al. 2023).
    rho and delta are compared one by one.
    """

    total: Charge
    spent: Charge
    protected: Protected

    @classmethod
    def holding(cls, rho: object, delta: object, unit: str, neighbours: str) -> Account:
        """A new account of these parameters, rounded down; ParameterError where they are out of range."""
        rho = require_number("rho", rho, 0, RHO_LIMIT)
        delta = require_number("delta", delta, 0, 1, open_low=False, open_high=True)
        checked = Guarantee(rho, delta, unit=unit, neighbours=neighbours)  # type: ignore[arg-type]
        total = Charge(math.floor(Fraction(rho) * RHO_UNIT), math.floor(Fraction(delta) * DELTA_UNIT))
        return cls(total, NOTHING, Protected.by(checked))

    @property
    def remaining(self) -> Guarantee:
        """What is left, rounded down."""
        left = self.total - self.spent
        return self.guarantee(Charge(max(0, left.rho), max(0, left.delta)), up=False)

    def guarantee(self, charge: Charge, *, up: bool = True) -> Guarantee:
        """A charge as a promise, rounded up or down."""
        return Guarantee(*charge.floats(up=up), unit=self.protected.unit, neighbours=self.protected.neighbours)

    def fits(self, charge: Charge) -> bool:
        """Whether both components fit."""
        return _fits(self.spent.rho, charge.rho, self.total.rho) and _fits(
            self.spent.delta, charge.delta, self.total.delta
        )

    def paying(self, charge: Charge) -> Account:
        """The account after this charge; BudgetExceeded where it does not fit."""
        if not self.fits(charge):
            raise BudgetExceeded(self.guarantee(charge), self.remaining)
        return replace(self, spent=self.spent + charge)

    def given_back(self, charge: Charge) -> Account:
        """The account after this much of an earlier charge was not used."""
        return replace(self, spent=self.spent - charge)


def total_of(epsilon: object, delta: object) -> tuple[float, float]:
    """The rho and delta of a total whose promise is (epsilon, delta)-DP, also where charges end a rounding above it."""
    total = require_number("delta", delta, 0, 1, open_high=True)
    rho, own = resolve_rho(None, epsilon, total)  # type: ignore[arg-type]
    return round_down(rho, 64), own


def _fits(spent: int, charge: int, total: int) -> bool:
    """Whether a charge fits, but for the rounding of a float.

    Ten times the float nearest to 0.1 is 1 + 2^-54. A charge that begins below the total may therefore end above it
    by less than one part in 2^53, within which n charges of the float nearest to total/n always stay; after that
    nothing fits. So what is spent never exceeds the next float after the total.
    """
    over = spent + charge - total
    return charge == 0 or over <= 0 or (spent < total and over << 53 < total)
