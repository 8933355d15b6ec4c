"""`CountsWithShare`: counts under a bound on the items of a user, with the share of pairs that the bound keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from discreet.errors import ParameterError
from discreet.mechanisms.counts.kept_pairs import KeptPairs
from discreet.mechanisms.fewest import Notes, fewest_users, with_counts
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.kept import KeptShareOf
from discreet.mechanisms.steps.select import Run
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee, require_promise, resolve_rho

__all__ = ["RHO_SHARE", "CountsWithShare"]

RHO_SHARE = 0.01
"""The share of rho that the sums of kept and dropped pairs cost in the functions of the package."""
_EPSILON_SHARE = 0.05
"""The share of epsilon for the same sums, whose noise is then Laplace noise. A twentieth of epsilon is 1/400 of the rho
that it implies."""
_ULPS = 4096
"""Roundings that are left free, one part in 10^12: a mechanism made for a rho may cost a few roundings more."""


@dataclass(frozen=True, kw_only=True)
class CountsWithShare(Steps):
    """A mechanism that counts at most l0 items of each user, and estimates which share of the pairs this bound keeps.

    It releases the counts of `mechanism`, and `Release.kept_share` from the noisy sums of `pairs`. The guarantee is
    that of both together: rho, delta and epsilon add up. The mechanism reads the table twice, both times before the
    charge.

    Args:
        mechanism: A threshold mechanism that releases counts, or a `KnownItems` of one.
        pairs: The sums of kept and dropped pairs, for the l0 of `mechanism`.

    Raises:
        ParameterError: The mechanism is of another kind, or both have different l0.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(50_000)] * 2, "page": ["home"] * 50_000 + ["help"] * 50_000}
        >>> mechanism = dp.mechanisms.CountsWithShare.from_rho(rho=1, delta=1e-6, l0=1)
        >>> release = mechanism.release(log, user="user", item="page")
        >>> abs(release.kept_share.value - 0.5) < 0.1
        True

    Source:
        Rogers (2023), Theorem 6, for the sum of both guarantees.
    """

    mechanism: HistogramMechanism
    pairs: KeptPairs

    def __post_init__(self) -> None:
        inner = self.mechanism.mechanism if isinstance(self.mechanism, KnownItems) else self.mechanism
        if not isinstance(inner, ThresholdMechanism) or not getattr(inner, "with_counts", True):
            raise ParameterError(
                "mechanism must be a threshold mechanism that releases counts, such as a GaussianThreshold"
            )
        if not isinstance(self.pairs, KeptPairs):
            raise ParameterError("pairs must be a KeptPairs")
        if inner.protects.l0 != self.pairs.l0 or inner.protects.linf != 1:
            raise ParameterError("mechanism and pairs must have the same l0, and linf must be 1")
        super().__post_init__()

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP, with 1 % of rho for the share.

        A user has at most l0 items. The counts are those of the threshold mechanism whose items need the fewest users.
        """
        return cls.chosen(rho=rho, epsilon=None, delta=delta, l0=l0)[0]

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP, with 5 % of epsilon for the share.

        l0 and the counts are as in `from_rho`.
        """
        return cls.chosen(rho=None, epsilon=epsilon, delta=delta, l0=l0)[0]

    @classmethod
    def chosen(cls, *, rho: float | None, epsilon: float | None, delta: float, l0: int) -> tuple[Self, Notes]:
        """Return the mechanism for a guarantee in rho or in epsilon, and the reason for its threshold mechanism.

        If the threshold mechanism for an epsilon has no (epsilon, delta) with its own proof, the share costs 1 % of the
        rho that the epsilon allows, instead of 5 % of epsilon.

        Args:
            rho: The privacy cost in zCDP. Give exactly one of rho and epsilon.
            epsilon: The total epsilon.
            delta: The probability that the guarantee fails.
            l0: The most items of one user.

        Returns:
            The mechanism and notes.

        Raises:
            ParameterError: A parameter is out of range.
        """
        rho, epsilon, delta = require_promise(rho, epsilon, delta)
        most = KeptPairs.most_for(l0)
        if epsilon is not None:
            rest = round_down(epsilon - _EPSILON_SHARE * epsilon, _ULPS)
            mechanism, notes = fewest_users(with_counts(), None, rest, delta, l0)
            if mechanism.guarantee.dp is not None:
                pairs = KeptPairs(l0=l0, most=most, epsilon=round_down(_EPSILON_SHARE * epsilon))
                return cls(mechanism=mechanism, pairs=pairs), notes
        rho, delta = resolve_rho(rho, epsilon, delta)
        mechanism, notes = fewest_users(with_counts(), round_down(rho - RHO_SHARE * rho, _ULPS), None, delta, l0)
        return cls(mechanism=mechanism, pairs=KeptPairs(l0=l0, most=most, rho=round_down(RHO_SHARE * rho))), notes

    @property
    def steps(self) -> StepList:
        """Return the steps: the counts, and the share of kept pairs."""
        return Run(given=self.mechanism), KeptShareOf(given=self.pairs)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: the sum of the guarantees of the counts and of the share (Rogers 2023, Theorem 6)."""
        return self.mechanism.guarantee + self.pairs.guarantee

    @property
    def l0(self) -> int:
        """Return the most items of a user that count."""
        return self.pairs.l0
