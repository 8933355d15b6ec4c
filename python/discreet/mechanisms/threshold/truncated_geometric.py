"""Bounded noise on every count, and its bound as the threshold."""

from __future__ import annotations

from dataclasses import dataclass

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.noises import EpsilonPerItem, laplace_deviation
from discreet.mechanisms.parameters import require_delta
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.privacy.conversion import round_up
from discreet.privacy.validation import require_number, require_whole
from discreet.theorems import desfontaines2020
from discreet.theorems.tails import least

__all__ = ["TruncatedGeometric"]


@dataclass(frozen=True, kw_only=True)
class TruncatedGeometric(EpsilonPerItem, ThresholdMechanism):
    """All items whose count and truncated geometric noise exceed the noise's bound, with these noisy counts.

    Desfontaines et al. (2020), Definitions 6 to 8 and Theorems 4 to 6: (epsilon, delta)-DP per user, added or
    removed, where delta is the chance that the noise takes its bound; it releases an item about as
    often as any mechanism can, and its count for nothing more. A user of up to `l0` items has epsilon/l0
    and delta/l0 for each. Raises ParameterError where a parameter is out of range.
    """

    epsilon: float
    delta: float
    l0: int = 1

    def __post_init__(self) -> None:
        checked = {
            "epsilon": require_number("epsilon", self.epsilon, 1e-9, 100, open_low=False),
            "delta": require_delta(self.delta),
            "l0": require_whole("l0", self.l0, 1, 2**20),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.each[0] < 1e-12 or self.each[1] < 1e-290:
            raise ParameterError("epsilon/l0 or delta/l0 is too small; use a GaussianThreshold")
        _ = self.noise

    @property
    def linf(self) -> int:  # type: ignore[override]
        """One: a user counts once for each item."""
        return 1

    @property
    def scale(self) -> float:
        """l0/epsilon."""
        return round_up(1 / self.each[0], 1)

    @cached_property
    def bound(self) -> int:
        """k: the least bound that the noise takes with a chance of delta/l0 at most (Definition 6)."""
        epsilon, delta = self.each
        first = max(1, desfontaines2020.truncation_bound(epsilon, delta) - 1)
        return least(lambda k: _core.Noise.truncated_geometric(self.scale, k).tail(k) <= delta, first)

    @property
    def noise(self) -> _core.Noise:
        """Discrete Laplace noise within the bound."""
        return _core.Noise.truncated_geometric(self.scale, self.bound)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, or a little more: that of noise without a bound."""
        return laplace_deviation(self.scale)

    @cached_property
    def threshold(self) -> _core.Threshold:
        """The rule; its `value` is the bound: what exceeds it came from a count above zero (Definition 8)."""
        return _core.Threshold(self.noise, self.bound)
