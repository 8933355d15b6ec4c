"""`PermuteAndFlip`: the most common item, by permute-and-flip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.parameters import LINF_LIMIT, require_rho
from discreet.mechanisms.top_k.base import largest
from discreet.mechanisms.top_k.gumbel import GumbelTopK
from discreet.privacy.conversion import pure_rho, round_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number, require_whole
from discreet.theorems import rogers2023

if TYPE_CHECKING:
    from discreet import _core
    from discreet.release.release import Release
    from discreet.tables.histogram import Histogram

__all__ = ["PermuteAndFlip"]


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(GumbelTopK):
    """A mechanism that releases the most common item, or no item if none is safe to name.

    It visits candidates in random order. It takes a candidate that lies x scales below the best with probability
    e^(-x). This has the distribution of the largest count with exponential noise. With epsilon = linf/scale the
    guarantee is (epsilon, delta)-DP and delta-approximate (epsilon^2/2)-zCDP per user, added or removed. For one
    release in (epsilon, delta)-DP it is never worse than `GumbelTopK`; in rho it costs four times as much.

    Args:
        k: Always 1.
        scale: The scale of the exponential noise: above 0.001 and at most 1e12 users.
        delta: The probability that the guarantee fails: above 0 and at most 0.5.
        k_bar: Consider only the k_bar most common items: from 1 to 2^30. Choose it without the data.
        l0: The most items that one user contributes, or None for any number. A bound lowers the stop element.
        linf: The most that one user adds to one count: from 1 to 2^30.
        tight: If True, use the tighter epsilon tanh(epsilon/2) instead of epsilon^2/2 for rho.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.mechanisms.PermuteAndFlip.from_epsilon(epsilon=1, delta=1e-6)
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=None, linf=1, complete=True)
        >>> mechanism.release(table).items
        ['a']

    Source:
        McKenna and Sheldon (2020).
    """

    k: int = 1

    def __post_init__(self) -> None:
        GumbelTopK.__post_init__(self)
        if self.k != 1:
            raise ParameterError("permute-and-flip selects one item: leave out k, or use GumbelTopK")
        if self.delta > 0.5:
            raise ParameterError("delta must be at most 0.5")

    @classmethod
    def from_epsilon(  # type: ignore[override]
        cls, *, epsilon: float, delta: float, k_bar: int = 1_000, l0: int | None = None, linf: int = 1
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP."""
        scale = round_up(require_whole("linf", linf, 1, LINF_LIMIT) / require_number("epsilon", epsilon, 0, 1000), 64)
        return cls(scale=scale, delta=delta, k_bar=k_bar, l0=l0, linf=linf)

    @classmethod
    def from_rho(  # type: ignore[override]
        cls, *, rho: float, delta: float, k_bar: int = 1_000, l0: int | None = None, linf: int = 1
    ) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP, with epsilon = sqrt(2 rho)."""
        scale = round_up(require_whole("linf", linf, 1, LINF_LIMIT) / math.sqrt(2 * require_rho(rho)), 64)
        return cls(scale=scale, delta=delta, k_bar=k_bar, l0=l0, linf=linf)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: (epsilon, delta)-DP and delta-approximate (epsilon^2/2)-zCDP.

        Given which count is largest, the distribution of the stop element bounds the distribution of the novel items.
        """
        return Guarantee(pure_rho(self.epsilon, tight=self.tight), self.delta, dp=(self.epsilon, self.delta))

    @property
    def offset(self) -> float:
        """Return the stop element's lead over the (k_bar+1)-th count, in units of the scale."""
        differing = rogers2023.differing_items(self.l0, self.k_bar)
        return rogers2023.permute_and_flip_offset(self.epsilon, self.delta, differing)

    def release_chance(self, users: int) -> float:
        """Return the probability that the item is selected and not the stop element, if there is no other candidate."""
        lead = self.gamma * users - self.offset
        return 1 - math.exp(-lead) / 2 if lead > 0 else math.exp(lead) / 2

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        counts, bottom = largest(histogram, self.k_bar)
        slot = rng.permute_and_flip(counts, self.gamma, bottom, self.offset)
        rows = np.array([slot] if slot < len(counts) else [], np.int64)
        return self._published(histogram, rows, rng, ranked=True)
