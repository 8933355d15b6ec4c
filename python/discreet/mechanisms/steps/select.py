"""Steps that select items: by a threshold on noisy counts, by a set union, or from a public list."""

from __future__ import annotations

from abc import abstractmethod
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

if TYPE_CHECKING:
    from discreet.release.facts import Facts
    from discreet.tables.histogram import Histogram

__all__ = ["Count", "FewestUsers", "Select", "Threshold"]


class Select(Step["Histogram | None"]):
    """Releases the items whose noisy counts of users exceed a threshold, with their counts.

    A table is read before the charge if l0 is a parameter, and after it if it is found.
    """

    __slots__ = ()

    l0: int | None

    @abstractmethod
    def mechanism(self, l0: int) -> HistogramMechanism:
        """Return the mechanism that selects the items of users with at most l0 items."""

    def choice(self, l0: int) -> tuple[HistogramMechanism, Notes]:
        """Return the mechanism, and the reason for it."""
        return self.mechanism(l0), ()

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of the mechanism."""
        return self.mechanism(l0).guarantee

    def chance(self, users: int, l0: int) -> float:
        """Return the release chance of the mechanism."""
        return self.mechanism(l0).release_chance(users)

    def read(self, so_far: SoFar) -> Histogram | None:
        """Return the counts, if they do not depend on a bound that is found."""
        if self.l0 is None:
            return None
        counts, mechanism = so_far.rows.counts(self.l0), self.mechanism(self.l0)
        mechanism._require(counts)
        return counts

    def run(self, so_far: SoFar, read: Histogram | None, rng: _core.Rng) -> None:
        """Release the selected items."""
        l0 = self.l0 or so_far.l0 or 1
        counts = so_far.rows.counts(l0) if read is None else read
        mechanism, reasons = self.choice(l0)
        release = mechanism.release(counts, rng=rng)
        so_far.release = changed(release, item_type=counts._named(release.item_type))  # noqa: SLF001 - the schema
        so_far.notes += reasons

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has the noise and the threshold of the mechanism."""
        made = self.mechanism(self.l0 or l0 or 1)._facts(l0, summed)
        own = replace(facts, has_sigmas=made.has_sigmas, law=made.law, threshold=made.threshold, items=made.items)
        return own if self.l0 is None else replace(own, l0=self.l0, largest_l0=self.l0)


@dataclass(frozen=True, kw_only=True)
class Threshold(Select):
    """Selects items with a `GaussianThreshold`."""

    rho: float
    delta: float
    l0: int | None

    def mechanism(self, l0: int) -> HistogramMechanism:
        """Return the mechanism that selects the items."""
        return self._gaussian(l0)

    def _gaussian(self, l0: int) -> GaussianThreshold:
        return GaussianThreshold.from_rho(rho=self.rho, delta=self.delta, l0=l0)

    def sigma(self, l0: int) -> float:
        """Return the scale of Gaussian noise of each count."""
        return self._gaussian(l0).sigma


@dataclass(frozen=True, kw_only=True)
class FewestUsers(Threshold):
    """Selects items with the threshold mechanism whose items need the fewest users."""

    def mechanism(self, l0: int) -> HistogramMechanism:
        """Return the mechanism that selects the items."""
        return self.choice(l0)[0]

    def choice(self, l0: int) -> tuple[HistogramMechanism, Notes]:
        """Return the mechanism, and the reason for it, from the parameters and l0 alone."""
        return fewest_users(with_counts(), self.rho, None, self.delta, l0)

    def check(self, l0: int) -> None:
        """Refuse noise that is out of the range of one of the mechanisms."""
        _ = self.sigma(l0)


@dataclass(frozen=True, kw_only=True)
class Count(Select):
    """Runs a given mechanism, which counts under a bound."""

    given: HistogramMechanism

    @property
    def l0(self) -> int | None:  # type: ignore[override]
        """Return the bound that the mechanism protects."""
        return self.given.protects.l0

    @property
    def lists(self) -> Listed:
        """Return which items the mechanism publishes even if nobody has them."""
        return self.given.lists_items

    def mechanism(self, l0: int) -> HistogramMechanism:
        """Return the given mechanism."""
        return self.given

    def read(self, so_far: SoFar) -> Histogram:
        """Return the counts; refuse items of another type than those of the table, which is public."""
        counts = so_far.rows.counts(self.l0)
        if (items := getattr(self.given, "items", None)) is not None:
            counts._require_type_of(items)  # noqa: SLF001 - the schema
        self.given._require(counts)
        return counts

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has the users of the mechanism, too."""
        made = self.given._facts(l0, summed)
        return replace(super().implied(facts, l0, summed), users=made.users, needs_users=made.needs_users)
