"""The threshold mechanism whose items need the fewest users, among those with one guarantee."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol, TypeAlias

from discreet.errors import ParameterError
from discreet.mechanisms.base import FromEpsilon, made_for
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.mechanisms.threshold.laplace import LaplaceThreshold
from discreet.mechanisms.threshold.truncated_geometric import TruncatedGeometric
from discreet.theorems.tails import least

__all__ = ["Notes", "WithReleaseChance", "fewest_users", "users_for", "with_counts"]

Notes: TypeAlias = tuple[str, ...]

_LIMIT = 2**36


class WithReleaseChance(Protocol):
    """A mechanism whose items have a release chance by their number of users. Its parameters are hashable."""

    def release_chance(self, users: int, /) -> float:
        """Return the probability that an item of this many users is released."""

    def __hash__(self) -> int: ...


@lru_cache(maxsize=64)
def users_for(mechanism: WithReleaseChance, chance: float) -> int:
    """Return the least number of users that gives an item this chance of a release, but at most 2^36."""
    start = users_for(mechanism, 0.5) if chance > 0.5 else 1
    return least(lambda users: users >= _LIMIT or mechanism.release_chance(users) >= chance, start)


def with_counts() -> tuple[FromEpsilon[HistogramMechanism], ...]:
    """Return the threshold mechanisms that release counts."""
    return TruncatedGeometric, GaussianThreshold, LaplaceThreshold


def fewest_users(
    kinds: tuple[FromEpsilon[HistogramMechanism], ...], rho: float | None, epsilon: float | None, delta: float, l0: int
) -> tuple[HistogramMechanism, Notes]:
    """Return the mechanism with this guarantee whose items need the fewest users for a 50 % chance of a release."""
    half: dict[HistogramMechanism, int] = {}
    refused: ParameterError | None = None
    for kind in kinds:
        try:
            mechanism = made_for(kind, rho, epsilon, delta=delta, l0=l0)
            half[mechanism] = users_for(mechanism, 0.5)
        except ParameterError as error:  # parameters out of this mechanism's range: try the next
            refused = error
    if not half:
        raise refused or ParameterError("no mechanism has this guarantee; give a larger rho, epsilon or delta")
    best = min(half, key=lambda mechanism: half[mechanism])
    others = ", ".join(f"{type(m).__name__} {users:,}" for m, users in half.items() if m is not best)
    reason = f"{type(best).__name__} was chosen: an item needs {half[best]:,} users for a 50 % chance of a release"
    return best, (f"{reason} (others: {others})" if others else reason,)
