"""`TruncatedGeometric`: bounded noise on every count, with the bound as the threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.noises import EpsilonPerItem, laplace_deviation
from discreet.mechanisms.published import published
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.privacy.conversion import round_up
from discreet.privacy.validation import require_flag
from discreet.release.facts import Facts, Summed
from discreet.release.intervals import Law
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.theorems import desfontaines2020
from discreet.theorems.tails import least

__all__ = ["TruncatedGeometric"]


@dataclass(frozen=True, kw_only=True)
class TruncatedGeometric(EpsilonPerItem, ThresholdMechanism):
    """A mechanism that releases all items whose noisy counts exceed the bound of its truncated geometric noise.

    The mechanism publishes the noisy counts. The guarantee is (epsilon, delta)-DP per user, added or removed. Each of a
    user's l0 items gets epsilon/l0 and delta/l0: the noise of a count takes its bound with probability at most
    delta/l0. The release probabilities are about as high as with `OptimalSelection`, which publishes no counts.

    With `with_counts=False` the mechanism releases the items alone. An item of 2 bound + 1 users is then always
    released, so counting may stop there: `cap` is this number.

    Args:
        epsilon: The total epsilon: from 1e-9 to 100.
        delta: The probability that the guarantee fails: above 0 and below 1.
        l0: The most items that one user contributes: from 1 to 2^20.
        with_counts: If False, release no counts.

    Raises:
        ParameterError: A parameter is out of range, or epsilon/l0 is below 1e-12 or delta/l0 below 1e-290.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.TruncatedGeometric(epsilon=1, delta=1e-6)
        >>> mechanism.bound
        14
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=1, linf=1, complete=True)
        >>> mechanism.release(table).items
        ['a', 'b']
        >>> dp.TruncatedGeometric(epsilon=1, delta=1e-6, with_counts=False).cap
        29

    Source:
        Desfontaines et al. (2020), Definitions 6 to 8 and Theorems 4 to 6.
    """

    with_counts: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_flag("with_counts", self.with_counts)
        if self.each[0] < 1e-12 or self.each[1] < 1e-290:
            raise ParameterError(
                "epsilon/l0 must be at least 1e-12 and delta/l0 at least 1e-290; raise epsilon or delta, or lower l0"
            )
        _ = self.noise

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int = 1, with_counts: bool = True) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP, with epsilon sqrt(2 rho l0); rho <= 5000."""
        return replace(super().from_rho(rho=rho, delta=delta, l0=l0), with_counts=with_counts)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int = 1, with_counts: bool = True) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP."""
        return cls(epsilon=epsilon, delta=delta, l0=l0, with_counts=with_counts)

    @property
    def linf(self) -> int:  # type: ignore[override]
        """Return 1: a user counts once for each item."""
        return 1

    @property
    def cap(self) -> int | None:
        """Return the least number of users with a release probability of one, or None if counts are released.

        The noise is at least -bound, so the noisy count of 2 bound + 1 users exceeds the bound (Definition 8).
        """
        return None if self.with_counts else 2 * self.bound + 1

    @property
    def scale(self) -> float:
        """Return the scale of the noise: l0/epsilon."""
        return round_up(1 / self.each[0], 1)

    @cached_property
    def bound(self) -> int:
        """Return k: the least bound that the noise takes with probability at most delta/l0 (Definition 6)."""
        epsilon, delta = self.each
        first = max(1, desfontaines2020.truncation_bound(epsilon, delta) - 1)
        return least(lambda k: _core.Noise.truncated_geometric(self.scale, k).tail(k) <= delta, first)

    @property
    def law(self) -> Law:
        """Return the law of the noise: discrete Laplace, up to the bound."""
        return "laplace"

    @property
    def noise(self) -> _core.Noise:
        """Return the distribution of the noise: discrete Laplace, truncated to the bound."""
        return _core.Noise.truncated_geometric(self.scale, self.bound)

    @property
    def deviation(self) -> float:
        """Return an upper bound of the standard deviation of the noise: the deviation without truncation."""
        return laplace_deviation(self.scale)

    @cached_property
    def threshold(self) -> _core.Threshold:
        """Return the release rule. Its `value` is the bound: only a count above zero can exceed it (Definition 8)."""
        return _core.Threshold(self.noise, self.bound)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        own = super()._facts(l0, summed)
        return own if self.with_counts else replace(own, columns=((),))

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        if self.with_counts:
            return super()._run(histogram, rng)
        labels, counts = histogram._for_noise(rng)
        rows, _ = self.threshold.release(counts, rng)
        return published(self, labels, rows, rng)
