"""`LaplaceCounts`: counts of given items with Laplace noise, without delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from discreet.cached import cached_property
from discreet.mechanisms.counts.given_counts import GivenCounts
from discreet.mechanisms.noises import LaplaceNoise
from discreet.mechanisms.parameters import require_rho
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_flag, require_number
from discreet.theorems import rogers2023

__all__ = ["LaplaceCounts"]


@dataclass(frozen=True, kw_only=True)
class LaplaceCounts(LaplaceNoise, GivenCounts):
    """A mechanism that releases the counts of all given `items` with discrete Laplace noise, without delta.

    It is `GaussianCounts` with other noise. With epsilon = linf/scale, and n the smaller of l0 and the number of items,
    the guarantee is (n epsilon)-DP and (n epsilon^2/2)-zCDP per user, added or removed. `KnownItems` also releases
    unknown items above a threshold, which needs delta.

    Args:
        items: Distinct integers, strings or bytes. Choose them without the data, or take them from a release.
        scale: The scale of the noise, P[x] proportional to e^(-|x|/scale): above 0.001 and at most 1e9 users.
        l0: The most items that one user contributes, or None for any number. A bound lowers the cost.
        linf: The most that one user adds to one count: from 1 to 2^30.
        tight: If True, use the tighter epsilon tanh(epsilon/2) instead of epsilon^2/2 for the rho of each item.

    Raises:
        ParameterError: A parameter is out of range, or items repeat.
        SchemaError: The items are of mixed types.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.mechanisms.LaplaceCounts.from_epsilon(items=("a", "b", "c"), epsilon=1, l0=1)
        >>> print(mechanism.guarantee)
        0.5-zCDP per user (added or removed), and (1, 0)-DP
        >>> table = dp.Histogram.from_counts(["a", "x"], [9000, 9500], l0=1, linf=1, complete=True)
        >>> sorted(mechanism.release(table).items)
        ['a', 'b', 'c']

    Source:
        Dwork et al. (2006); Durfee and Rogers (2019), for known items of users with at most l0 items.
    """

    items: tuple[str | int | bytes, ...]
    scale: float
    l0: int | None = None
    linf: int = 1
    tight: bool = False

    def __post_init__(self) -> None:
        self._check("scale")
        require_flag("tight", self.tight)
        _ = self.guarantee

    @classmethod
    def from_rho(
        cls, *, items: tuple[str | int | bytes, ...], rho: float, l0: int | None = None, linf: int = 1
    ) -> Self:
        """Return the mechanism that guarantees rho-zCDP."""
        one = cls(items=items, scale=1, l0=l0, linf=linf)
        scale = rogers2023.laplace_threshold_scale(require_rho(rho), one.moved, one.linf)
        return cls(items=one.items, scale=scale, l0=l0, linf=linf)

    @classmethod
    def from_epsilon(
        cls, *, items: tuple[str | int | bytes, ...], epsilon: float, l0: int | None = None, linf: int = 1
    ) -> Self:
        """Return the mechanism whose total guarantee is epsilon-DP, with delta = 0."""
        one = cls(items=items, scale=1e9, l0=l0, linf=linf)
        scale = round_up(one.moved * one.linf / require_number("epsilon", epsilon, 0, 1000), 16)
        return cls(items=one.items, scale=scale, l0=l0, linf=linf)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: (n epsilon)-DP and (n epsilon^2/2)-zCDP, for n changed counts.

        Source:
            Rogers (2023), Theorem 7, without novel items.
        """
        rho = rogers2023.laplace_threshold_rho(self.epsilon, self.moved, tight=self.tight)
        return Guarantee(rho, 0.0, dp=(round_up(self.moved * self.epsilon), 0.0))
