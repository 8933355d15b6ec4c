"""Steps that select items: with a threshold on noisy counts, or by any mechanism of counts or of users' items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from discreet import _core
from discreet.mechanisms.fewest import Notes, fewest_users, with_counts
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.steps.base import SoFar, Step
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.privacy.guarantee import Guarantee
from discreet.release.facts import Listed, Summed
from discreet.release.release import changed
from discreet.tables.histogram import Histogram

if TYPE_CHECKING:
    from discreet.mechanisms.union.set_union import UnionMechanism
    from discreet.release.facts import Facts

__all__ = ["FewestUsers", "Run", "Threshold"]


@dataclass(frozen=True, kw_only=True)
class Threshold(Step[Histogram | None]):
    """Selects items with a `GaussianThreshold`, and has their counts.

    A table is read before the charge if l0 is a parameter, and after it if it is found.
    """

    rho: float
    delta: float
    l0: int | None

    def mechanism(self, l0: int) -> HistogramMechanism:
        """Return the mechanism that selects the items of users with at most l0 items."""
        return self.choice(l0)[0]

    def choice(self, l0: int) -> tuple[HistogramMechanism, Notes]:
        """Return the mechanism, and the reason for it."""
        return self._gaussian(l0), ()

    def _gaussian(self, l0: int) -> GaussianThreshold:
        return GaussianThreshold.from_rho(rho=self.rho, delta=self.delta, l0=l0)

    def sigma(self, l0: int) -> float:
        """Return the scale of Gaussian noise of each count."""
        return self._gaussian(l0).sigma

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of the mechanism."""
        return self.mechanism(l0).guarantee

    def check(self, l0: int) -> None:
        """Refuse Gaussian noise that is out of range."""
        _ = self.sigma(l0)

    def chance(self, users: int, l0: int) -> float:
        """Return the release chance of the mechanism."""
        return self.mechanism(l0).release_chance(users)

    def read(self, so_far: SoFar) -> Histogram | None:
        """Return the counts, if they do not depend on a bound that is found."""
        if self.l0 is None:
            return None
        counts = so_far.rows.counts(self.l0)
        self.mechanism(self.l0)._require(counts)
        return counts

    def run(self, so_far: SoFar, read: Histogram | None, rng: _core.Rng) -> None:
        """Release the selected items."""
        l0 = self.l0 or so_far.l0 or 1
        counts = so_far.rows.counts(l0) if read is None else read
        mechanism, reasons = self.choice(l0)
        so_far.release = mechanism.release(counts, rng=rng)
        so_far.notes += reasons

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has the noise and the threshold of the mechanism."""
        made = self.mechanism(self.l0 or l0 or 1)._facts(l0, summed)
        own = replace(facts, has_sigmas=made.has_sigmas, law=made.law, threshold=made.threshold)
        return own if self.l0 is None else replace(own, l0=self.l0, largest_l0=self.l0)


@dataclass(frozen=True, kw_only=True)
class FewestUsers(Threshold):
    """Selects items with the threshold mechanism whose items need the fewest users."""

    def choice(self, l0: int) -> tuple[HistogramMechanism, Notes]:
        """Return the mechanism, and the reason for it, from the parameters and l0 alone."""
        return fewest_users(with_counts(), self.rho, None, self.delta, l0)


@dataclass(frozen=True, kw_only=True)
class Run(Step[object]):
    """Runs a given mechanism on what it takes of the table."""

    given: HistogramMechanism | UnionMechanism

    @property
    def lists(self) -> Listed:
        """Return which items the mechanism publishes even if nobody has them."""
        return self.given.lists_items

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of the mechanism, which is that for every l0."""
        return self.given.guarantee

    def sigma(self, l0: int) -> float:
        """Return the standard deviation of the noise of each count, for a mechanism of counts."""
        found: float = self.given.deviation  # type: ignore[union-attr]
        return found

    def chance(self, users: int, l0: int) -> float:
        """Return the release chance of the mechanism."""
        return self.given.release_chance(users)

    def read(self, so_far: SoFar) -> object:
        """Return counts, or the items of users; refuse items of another type than those of the schema."""
        data = so_far.rows.taken_by(self.given)
        if isinstance(data, Histogram) and isinstance(self.given, HistogramMechanism):
            if (items := getattr(self.given, "items", None)) is not None:
                data._require_type_of(items)  # noqa: SLF001 - the schema
            self.given._require(data)
        return data

    def run(self, so_far: SoFar, read: object, rng: _core.Rng) -> None:
        """Release what the mechanism finds."""
        release = self.given.release(read, rng=rng)  # type: ignore[arg-type]
        if isinstance(read, Histogram):
            release = changed(release, item_type=read._named(release.item_type))  # noqa: SLF001 - the schema
        so_far.release = release

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has the noise, the threshold and the users of the mechanism."""
        made, bound = self.given._facts(l0, summed), self.given.protects.l0
        own = replace(facts, has_sigmas=made.has_sigmas, law=made.law, threshold=made.threshold, items=made.items)
        own = replace(own, users=made.users, needs_users=made.needs_users, rows=made.rows)
        return replace(own, l0=bound, largest_l0=bound, clips=bound is not None)
