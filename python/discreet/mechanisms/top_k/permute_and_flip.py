"""The most common item, by permute-and-flip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

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
    """The most common item, or nothing where none is safe to name; by permute-and-flip.

    Candidates are visited in random order and each is taken with the chance e^(-x) of lying x scales below
    the best, the law of the largest count with exponential noise (McKenna and Sheldon 2020). With
    epsilon = linf/scale it is (epsilon, delta)-DP and delta-approximate (epsilon^2/2)-zCDP per user, added
    or removed: never worse than GumbelTopK for one release by itself, and four times as dear by rho.
    Parameters as those of GumbelTopK, with k = 1. Raises ParameterError where one is out of range.
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
        """The mechanism whose total promise is (epsilon, delta)-DP."""
        scale = round_up(require_whole("linf", linf, 1, LINF_LIMIT) / require_number("epsilon", epsilon, 0, 1000), 64)
        return cls(scale=scale, delta=delta, k_bar=k_bar, l0=l0, linf=linf)

    @classmethod
    def from_rho(  # type: ignore[override]
        cls, *, rho: float, delta: float, k_bar: int = 1_000, l0: int | None = None, linf: int = 1
    ) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP: epsilon = sqrt(2 rho)."""
        scale = round_up(require_whole("linf", linf, 1, LINF_LIMIT) / math.sqrt(2 * require_rho(rho)), 64)
        return cls(scale=scale, delta=delta, k_bar=k_bar, l0=l0, linf=linf)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta)-DP and delta-approximate (epsilon^2/2)-zCDP: the stop element's law bounds the novel
        items' given which count is largest."""
        return Guarantee(pure_rho(self.epsilon, tight=self.tight), self.delta, dp=(self.epsilon, self.delta))

    @property
    def offset(self) -> float:
        """By how much the stop element's score exceeds that of the (k_bar+1)-th count, over the scale."""
        differing = rogers2023.differing_items(self.l0, self.k_bar)
        return rogers2023.permute_and_flip_offset(self.epsilon, self.delta, differing)

    def release_chance(self, users: int) -> float:
        """The chance of an item of so many users more than the (k_bar+1)-th one against the stop element alone."""
        lead = self.gamma * users - self.offset
        return 1 - math.exp(-lead) / 2 if lead > 0 else math.exp(lead) / 2

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        counts, bottom = largest(histogram, self.k_bar)
        slot = rng.permute_and_flip(counts, self.gamma, bottom, self.offset)
        rows = np.array([slot] if slot < len(counts) else [], np.int64)
        return self._published(histogram, rows, rng, ranked=True)
