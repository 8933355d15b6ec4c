"""`Sensitivity`, the most one user can change in a histogram, and `Guarantee`, the privacy of a release."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Protocol

from discreet.errors import ParameterError
from discreet.privacy.conversion import bounded_range_rho, cdp_epsilon, cdp_implies, cdp_rho, pure_rho, round_down
from discreet.privacy.validation import require_choice, require_flag, require_number, require_whole
from discreet.wording import shown_up

__all__ = [
    "RHO_LIMIT",
    "UNITS",
    "Guarantee",
    "Promising",
    "Sensitivity",
    "Unit",
    "claimed_pair",
    "pair_text",
    "per_unit",
    "require_one",
    "require_pair",
    "require_promise",
    "resolve_rho",
    "unusual",
]

Unit = Literal["user", "event", "user-hour", "user-day", "user-week", "user-month"]
UNITS: dict[Unit, str] = {
    "user": "user",
    "event": "event",
    "user-hour": "user and hour in UTC",
    "user-day": "user and day in UTC",
    "user-week": "user and week in UTC",
    "user-month": "user and month in UTC",
}
"""The units that a guarantee protects, in words."""
RHO_LIMIT = 10_000.0
"""The largest rho of a guarantee. A larger one gives no privacy."""
_LARGE_DELTA, _LARGE_EPSILON = 1e-3, 10.0
"""A guarantee gets a note for a delta of at least 0.001 and for an epsilon above 10."""
_STRONGER = 0.9
"""The conversion of rho is quoted instead of a pair with its own proof if its epsilon is below this share of it."""


def _claimed(name: str, value: float, high: float) -> float:
    """Return a claimed parameter as a float from zero to `high`, rounded up."""
    number = require_number(name, value, 0, high, open_low=False)
    return number if number >= value else min(high, math.nextafter(number, math.inf))


def claimed_pair(dp: object) -> tuple[float, float] | None:
    """Return a claimed (epsilon, delta) as floats, rounded up, or None; raise ParameterError for all else."""
    if dp is None:
        return None
    if not isinstance(dp, tuple) or len(dp) != 2:
        raise ParameterError("dp must be None or a pair of epsilon and delta")
    return _claimed("epsilon", dp[0], math.inf), _claimed("delta", dp[1], 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The most that one user can change in a histogram, with all changes in the same direction.

    Args:
        l0: The most counts that one user changes; at least 1, or None for any number.
        linf: The most that one user changes one count; at least 1.

    Raises:
        ParameterError: l0 or linf is not a whole number of at least 1.

    Example:
        >>> import discreet as dp
        >>> dp.privacy.Sensitivity(l0=3, linf=1).within(dp.privacy.Sensitivity(l0=None, linf=1))
        True
    """

    l0: int | None
    linf: int

    def __post_init__(self) -> None:
        if self.l0 is not None:
            object.__setattr__(self, "l0", require_whole("l0", self.l0, 1))
        object.__setattr__(self, "linf", require_whole("linf", self.linf, 1, 2**95))

    def within(self, other: Sensitivity) -> bool:
        """Return whether a mechanism that protects `other` also protects this sensitivity.

        Args:
            other: The sensitivity that a mechanism protects.

        Returns:
            True if neither l0 nor linf exceeds the other's.
        """
        l0_fits = other.l0 is None or (self.l0 is not None and self.l0 <= other.l0)
        return l0_fits and self.linf <= other.linf


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A guarantee of delta-approximate rho-zCDP between neighbouring datasets.

    Guarantees compose adaptively: the second mechanism may depend on the first one's output (Rogers 2023, Definition
    2.2 and Theorem 6). A sum of guarantees has the sum of the rhos and the delta 1 - (1 - delta_1)(1 - delta_2).
    `3 * g` is g + g + g, and `sum` adds up a list. Guarantees with different units or neighbours cannot be added.

    Args:
        rho: The privacy cost in zCDP, from 0 to 10,000.
        delta: The probability that the guarantee fails, from 0 to 1.
        unit: The protected unit: "user", with all their events; a single "event"; or "user-hour", "user-day",
            "user-week" or "user-month": all events of a user in one period.
        dp: A pair (epsilon, delta) of differential privacy with its own proof; None if there is none. Such pairs add by
            basic composition.
        neighbours: The relation of neighbouring datasets: one unit is "added" (or removed), or one is "replaced" by
            another.

    Raises:
        ParameterError: A parameter is out of range.

    Example:
        >>> import discreet as dp
        >>> total = dp.Guarantee(0.5, 1e-6) + dp.Guarantee(0.25, 0)
        >>> print(total)
        1e-06-approximate 0.75-zCDP per user (added or removed)
        >>> round(total.epsilon(1e-5), 2)
        6.01
    """

    rho: float
    delta: float
    unit: Unit = "user"
    dp: tuple[float, float] | None = None
    neighbours: Literal["added", "replaced"] = "added"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _claimed("rho", self.rho, RHO_LIMIT))
        object.__setattr__(self, "delta", _claimed("delta", self.delta, 1.0))
        require_choice("unit", self.unit, tuple(UNITS))
        require_choice("neighbours", self.neighbours, ("added", "replaced"))
        object.__setattr__(self, "dp", claimed_pair(self.dp))

    @classmethod
    def from_dp(cls, epsilon: float, delta: float = 0.0, *, tight: bool = False) -> Guarantee:
        """Return the guarantee of an (epsilon, delta)-DP mechanism: rho = epsilon^2/2 (Rogers 2023, Theorem 3).

        Args:
            epsilon: The epsilon of the mechanism, above 0 and at most 100.
            delta: The delta of the mechanism.
            tight: Use epsilon tanh(epsilon/2) instead of epsilon^2/2.

        Returns:
            A Guarantee whose `dp` is (epsilon, delta).
        """
        rho = pure_rho(require_number("epsilon", epsilon, 0, 100), tight=require_flag("tight", tight))
        return cls(rho, delta, dp=(epsilon, delta))

    @classmethod
    def from_bounded_range(cls, epsilon: float, delta: float = 0.0, *, tight: bool = False) -> Guarantee:
        """Return the guarantee of a mechanism of bounded range epsilon: rho = epsilon^2/8 (Rogers 2023, Theorem 5).

        Args:
            epsilon: The range of the mechanism, above 0 and at most 100.
            delta: The delta of the mechanism.
            tight: Use x - 1 - log x at x = epsilon/(e^epsilon - 1) instead of epsilon^2/8.

        Returns:
            A Guarantee whose `dp` is (epsilon, delta).
        """
        rho = bounded_range_rho(require_number("epsilon", epsilon, 0, 100), tight=require_flag("tight", tight))
        return cls(rho, delta, dp=(epsilon, delta))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon for which this guarantee implies (epsilon, delta)-DP, rounded up.

        The part of delta above this guarantee's own goes into the conversion of Canonne, Kamath and Steinke (2020),
        Corollary 13.

        Args:
            delta: The total delta, above 0; larger than this guarantee's own.

        Returns:
            The epsilon.

        Raises:
            ParameterError: `delta` is too small for this guarantee. The text says which delta suffices.
        """
        delta = require_number("delta", delta, 0, 1)
        epsilon = self._least_epsilon(delta)
        if math.isinf(epsilon):
            pair = f", or {self.dp[1]} or more" if self.dp is not None else ""
            raise ParameterError(f"{self} implies no epsilon at delta {delta}; give a delta above {self.delta}{pair}")
        return epsilon

    def implies(self, epsilon: float, delta: float) -> bool:
        """Return whether this guarantee implies (epsilon, delta)-DP.

        A `dp` that suffices saves the conversion.

        Args:
            epsilon: The epsilon, at least 0.
            delta: The total delta, above 0.

        Returns:
            Whether `epsilon(delta)` is at most `epsilon`.
        """
        epsilon = require_number("epsilon", epsilon, 0, math.inf, open_low=False)
        delta = require_number("delta", delta, 0, 1)
        if delta >= 1 or (self.dp is not None and self.dp[0] <= epsilon and self.dp[1] <= delta):
            return True
        rest = self._rest(delta)
        return cdp_implies(self.rho, epsilon, rest) if rest > 0 else self._converted(delta) <= epsilon

    def _least_epsilon(self, delta: float) -> float:
        """Return the least epsilon at a total `delta`; infinity if there is none."""
        if delta >= 1:
            return 0.0
        proved = self.dp[0] if self.dp is not None and self.dp[1] <= delta else math.inf
        return min(proved, self._converted(delta))

    def _converted(self, delta: float) -> float:
        """Return the epsilon that rho implies at a total `delta`, without `dp`."""
        rest = self._rest(delta)
        if rest <= 0:
            return 0.0 if self.rho == 0 and delta >= self.delta else math.inf
        return cdp_epsilon(self.rho, rest)

    def _rest(self, delta: float) -> float:
        """Return the part of a total `delta` that is left for the conversion, rounded down."""
        if self.delta == 0:
            return delta
        return 0.0 if self.delta >= 1 else round_down((delta - self.delta) / (1 - self.delta))

    @property
    def quoted(self) -> tuple[float, float]:
        """The (epsilon, delta) pair to quote: `dp`, or the conversion at twice this delta if it is clearly stronger.

        The epsilon of a conversion is rounded up to four digits, as it is printed.
        """
        total = min(2 * self.delta, 0.5) or 1e-6
        converted = rounded_up(self._converted(total)), total
        # A dp of nearly the same epsilon is quoted: the caller stated it, or its delta is smaller.
        return converted if self.dp is None or converted[0] < _STRONGER * self.dp[0] else self.dp

    @property
    def promise(self) -> str:
        """The guarantee in one line, with the pair to quote."""
        epsilon, delta = self.quoted
        if (epsilon, delta) == self.dp or math.isinf(epsilon):
            return str(self)
        stated = self if self.dp is not None and self.dp[1] == 0 else replace(self, dp=None)  # pure DP says more
        return f"{stated}, which implies {pair_text(epsilon, delta)}"

    def stating(self, epsilon: float, delta: float) -> Guarantee:
        """Return the same guarantee, quoted as (epsilon, delta)-DP.

        Args:
            epsilon: The epsilon to quote.
            delta: The delta to quote.

        Returns:
            A Guarantee whose `dp` is (epsilon, delta).

        Raises:
            ParameterError: The guarantee does not imply (epsilon, delta)-DP.
        """
        if not self.implies(epsilon, delta):
            pair = f"({float(epsilon)}, {float(delta)})"
            raise ParameterError(f"{self} does not imply {pair}-DP; give a larger epsilon or delta")
        return replace(self, dp=(epsilon, delta))

    def _repr_html_(self) -> str:
        import html

        rows = [("rho", shown_up(self.rho)), ("delta", shown_up(self.delta)), ("unit", self.unit)]
        rows += [("neighbours", self.neighbours)]
        cells = "".join(f"<tr><td>{name}</td><td>{html.escape(value)}</td></tr>" for name, value in rows)
        return f"<p><b>{html.escape(self.promise)}</b></p><table>{cells}</table>"

    def __add__(self, other: Guarantee) -> Guarantee:
        if not isinstance(other, Guarantee):
            return NotImplemented
        if other.unit != self.unit:
            raise ParameterError(
                f"a guarantee per {self.unit} and one per {other.unit} do not add up: the units must match"
            )
        if other.neighbours != self.neighbours:
            raise ParameterError(
                "a guarantee for units added or removed and one for units replaced do not add up: neighbours must match"
            )
        rho = self.rho + other.rho
        if Fraction(rho) < Fraction(self.rho) + Fraction(other.rho):
            rho = math.nextafter(rho, math.inf)
        pair = None
        if self.dp is not None and other.dp is not None:
            epsilon = self.dp[0] + other.dp[0]
            if math.isfinite(epsilon) and Fraction(epsilon) < Fraction(self.dp[0]) + Fraction(other.dp[0]):
                epsilon = math.nextafter(epsilon, math.inf)
            pair = (epsilon, _either(self.dp[1], other.dp[1]))
        return Guarantee(rho, _either(self.delta, other.delta), self.unit, pair, self.neighbours)

    def __radd__(self, other: object) -> Guarantee:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # `sum` begins with 0

    def __mul__(self, n: int) -> Guarantee:
        """Return the guarantee of `n` releases with this guarantee each, a whole number from 1 to 2^24."""
        if isinstance(n, Guarantee):
            return NotImplemented
        n = require_whole("n", n, 1, 2**24)
        half = self * (n // 2) if n > 1 else None
        return self if half is None else half + half + self if n % 2 else half + half

    __rmul__ = __mul__

    def __str__(self) -> str:
        approximate = f"{shown_up(self.delta)}-approximate " if self.delta else ""
        how = "added or removed" if self.neighbours == "added" else "replaced"
        proved = "" if self.dp is None else f", and {pair_text(*self.dp)}"
        return f"{approximate}{shown_up(self.rho)}-zCDP per {UNITS[self.unit]} ({how}){proved}"


def per_unit(guarantee: Guarantee, unit: Unit) -> Guarantee:
    """Return the guarantee of a mechanism for users, of data in which a user in one period counts as one user.

    A mechanism sees keys of users. Data of two neighbours that differ in one user in one period differ in one key.
    """
    return guarantee if unit == "user" else replace(guarantee, unit=unit)


class Promising(Protocol):
    """A value with a guarantee."""

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of every release of this value."""


def unusual(guarantee: Guarantee) -> tuple[str, ...]:
    """Return a note for each parameter of a guarantee that is unusually weak."""
    delta = guarantee.delta if guarantee.dp is None else guarantee.dp[1]
    epsilon = guarantee.quoted[0]
    notes = []
    if delta >= _LARGE_DELTA:
        notes.append(
            f"delta {shown_up(delta)} makes a weak guarantee: delta is the probability that the guarantee fails. "
            "Choose it far below 1 / number of users, such as 1e-6"
        )
    if epsilon > _LARGE_EPSILON:
        notes.append(
            f"epsilon {shown_up(epsilon, 4)} makes a weak guarantee: most published releases have an epsilon of 10 or "
            "less. Choose a smaller epsilon or rho"
        )
    return tuple(notes)


def pair_text(epsilon: float, delta: float) -> str:
    """Return (epsilon, delta)-DP as text, rounded up."""
    return f"({shown_up(epsilon, 4)}, {shown_up(delta, 4)})-DP"


def rounded_up(number: float) -> float:
    """Return a number rounded up to four significant digits."""
    from decimal import ROUND_CEILING, Context

    return float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(number)))


def _either(a: float, b: float) -> float:
    """Return 1 - (1 - a)(1 - b), rounded up, and never above the rounded-up sum."""
    if a == 0 or b == 0:
        return a + b
    if a >= 1 or b >= 1:
        return 1.0
    exact = Fraction(a) + Fraction(b) - Fraction(a) * Fraction(b)
    rounded = float(exact)
    return rounded if Fraction(rounded) >= exact else min(1.0, math.nextafter(rounded, 1.0))


def resolve_rho(rho: float | None, epsilon: float | None, delta: float) -> tuple[float, float]:
    """Return the rho and delta that a mechanism may spend, from exactly one of `rho` and `epsilon`.

    `epsilon` is the total guarantee: half of `delta` goes to the mechanism, the rest to the conversion (Canonne, Kamath
    and Steinke 2020, Corollary 13).
    """
    rho, epsilon, delta = require_promise(rho, epsilon, delta)
    if rho is not None:
        return rho, delta
    assert epsilon is not None
    return _spendable(epsilon, delta)


def require_one(rho: object, epsilon: object) -> None:
    """Raise ParameterError if both or neither of rho and epsilon are given. The text suggests no value."""
    if rho is not None and epsilon is not None:
        raise ParameterError.about(
            "give exactly one of {rho} and {epsilon}: both are given. Leave out {rho} or {epsilon}."
        )
    if rho is None and epsilon is None:
        raise ParameterError.about(
            "give exactly one of {rho} and {epsilon}: neither is given. {rho} is the privacy cost in "
            "zCDP; {epsilon} belongs to the total (epsilon, delta)-DP guarantee."
        )


def require_promise(
    rho: float | None, epsilon: float | None, delta: float, *, with_zero: bool = False
) -> tuple[float | None, float | None, float]:
    """Return rho or epsilon, and delta, as floats in range; `with_zero` allows a delta of zero.

    Raises:
        ParameterError: A parameter is out of range, or both or neither of rho and epsilon are given.
    """
    require_one(rho, epsilon)
    delta = require_number("delta", delta, 0, 1, open_low=not with_zero, open_high=True)
    if epsilon is None:
        return require_number("rho", rho, 0, RHO_LIMIT), None, delta
    return None, require_number("epsilon", epsilon, 0, 1000), delta


def require_pair(epsilon: float, delta: float, *, with_zero: bool = False) -> tuple[float, float]:
    """Return epsilon and delta as floats in range; `with_zero` allows a delta of zero. See `require_promise`."""
    _, _, delta = require_promise(None, epsilon, delta, with_zero=with_zero)
    return float(epsilon), delta


@lru_cache(maxsize=64)
def _spendable(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the rho and delta that a mechanism may spend if all is to be (epsilon, delta)-DP."""
    own = delta / 2
    rho = cdp_rho(epsilon, round_down((delta - own) / (1 - own))) if own > 0 else 0.0
    for _ in range(8):
        # The two bisections may differ by a rounding error, so the guarantee itself is checked.
        if rho > 0 and not Guarantee(rho, own).implies(epsilon, delta):
            rho = round_down(rho, 64)
    if rho <= 0 or not Guarantee(rho, own).implies(epsilon, delta):
        raise ParameterError("epsilon and delta are too small for any noise to fit; give larger ones")
    return rho, own
