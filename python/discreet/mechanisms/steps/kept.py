"""A step that estimates the share of (user, item) pairs that a bound on the items of a user keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from discreet import _core
from discreet.mechanisms.counts.kept_pairs import KeptPairs
from discreet.mechanisms.steps.base import SoFar, Step
from discreet.privacy.guarantee import Guarantee
from discreet.release.facts import Summed

if TYPE_CHECKING:
    from discreet.release.facts import Facts

__all__ = ["KeptShareOf"]


@dataclass(frozen=True, kw_only=True)
class KeptShareOf(Step[None]):
    """Measures the numbers of kept and dropped pairs (`KeptPairs`), for `Release.kept_share`.

    Of a bound that is found, it leaves out a user's items beyond `times` as many.
    """

    given: KeptPairs | None = None
    rho: float = 0.0
    times: int = 0

    def pairs(self, l0: int) -> KeptPairs:
        """Return the mechanism that measures the pairs."""
        return self.given or KeptPairs(l0=l0, most=self.times * l0, rho=self.rho)

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of the mechanism."""
        return self.pairs(l0).guarantee

    def read(self, so_far: SoFar) -> None:
        """Read the number of items of each user."""
        _ = so_far.rows.numbers()

    def run(self, so_far: SoFar, read: None, rng: _core.Rng) -> None:
        """Measure the share."""
        pairs = self.pairs(so_far.l0 or 1)
        so_far.kept_share = pairs.share(*pairs._measured(so_far.rows.numbers(), rng))
        so_far.notes += (pairs.note(so_far.kept_share),)

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """The share is a claim of a release."""
        return replace(facts, claims=(*facts.claims, "kept_share"))
