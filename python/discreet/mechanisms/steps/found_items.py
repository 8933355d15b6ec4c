"""Steps for items that a set union or a threshold found: their counts from a second read, and their ranks.

The found items are public, so the second read counts only these, and each user's items are chosen again among them.
What would break: counts or ranks that depend on which items the table has, besides those that were found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.mechanisms.published import marked_clipped, published
from discreet.mechanisms.steps.base import SoFar, Step
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee
from discreet.release.facts import Summed, all_close
from discreet.tables.histogram import Histogram
from discreet.theorems import rogers2024

if TYPE_CHECKING:
    from discreet.engines.untrusted import Fields
    from discreet.release.facts import Facts

__all__ = ["CountAgain", "Rank"]

_NEVER = -1e8
"""The offset of the stop element, so low that it is never drawn before the items."""


@dataclass(frozen=True, kw_only=True)
class CountAgain(Step[None]):
    """Counts the found items, at most l0 of each user; with a relative error, only counts that are large enough."""

    sigma: float
    l0: int
    relative_error: float | None

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of Gaussian noise on l0 counts (Rogers 2023, Theorem 4)."""
        return Guarantee(round_up(self.l0 / (2 * self.sigma**2), 4), 0.0)

    def run(self, so_far: SoFar, read: None, rng: _core.Rng) -> None:
        """Release the counts."""
        found = so_far.selected
        again = Histogram.from_table(so_far.table, l0=self.l0, only=found.items)
        noisy = again._counts_of(found.items)
        noisy = noisy + rng.sample(_core.Noise.discrete_gaussian(self.sigma), len(found))
        least = -np.inf
        if self.relative_error is not None:
            least = rogers2024.plume_threshold(self.sigma, self.relative_error)
        kept, labels = np.flatnonzero(noisy > least), _core.Labels.from_sequence(found.items)
        mechanism, kind = so_far.mechanism, found.item_type
        release = published(mechanism, labels, kept, rng, noisy=noisy[kept], sigmas=self.sigma, item_type=kind)
        so_far.release = marked_clipped(release, self.l0)

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has this noise and this bound."""

        def has_sigmas(rows: Fields, replaced: bool) -> bool:
            return all_close(rows["sigmas"], np.array([self.sigma]))

        return replace(facts, has_sigmas=has_sigmas, threshold=None, l0=self.l0, largest_l0=self.l0, clips=True)


@dataclass(frozen=True, kw_only=True)
class Rank(Step[None]):
    """Draws k of the found items without replacement, by the number of all their users."""

    k: int
    epsilon: float
    """The bounded range of one draw."""

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of k draws (Rogers 2023, Theorem 5)."""
        return Guarantee(round_up(self.k * self.epsilon**2 / 8, 4), 0.0)

    def run(self, so_far: SoFar, read: None, rng: _core.Rng) -> None:
        """Release the ranked items."""
        found = so_far.selected
        again = Histogram.from_table(so_far.table, only=found.items) if found.items else None
        # Add one to every count: the selection skips counts of zero, but the candidates must not depend on the data.
        counts = np.ones(0, np.int64) if again is None else again._counts_of(found.items) + 1
        rows, _ = rng.peel(counts, int(counts.max(initial=0)), self.epsilon, 0, _NEVER, self.k)
        labels, order = _core.Labels.from_sequence(found.items), np.array(rows, np.int64)
        so_far.release = published(so_far.mechanism, labels, order, rng, ranked=True, item_type=found.item_type)
