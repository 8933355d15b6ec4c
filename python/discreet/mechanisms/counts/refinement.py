"""Counts that were released, measured again until they are close enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from discreet import _core
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism, require_complete
from discreet.privacy.guarantee import RHO_LIMIT, Guarantee, Sensitivity
from discreet.privacy.validation import require_number
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.theorems import rogers2024

__all__ = ["Refinement"]

_CERTAIN = 0.3
"""Noise below this scale rarely changes a count."""


@dataclass(frozen=True, kw_only=True)
class Refinement(HistogramMechanism):
    """The counts of a release, brought to a `relative_error` one after the other, the largest first.

    Brownian noise reduction (Whitehouse et al. 2022), which Rogers (2024) names as an extension: a further
    noisy count of the item is drawn, and the mean of all its counts, weighted by their precisions, is as close
    as one count for the sum of their costs. At each step the noise is halved at most; an item is done when
    1.5 sigma is within the error, and the release when the next step does not fit into rho. rho-zCDP per user,
    added or removed, beside what the release itself cost; users may have any number of items.

    `of`: a release of counts, made from the very histogram that is then given to `release`, since another one may
    hold another choice of users' items. What is released promises both together. Raises ParameterError where a
    parameter is out of range, or the release has no counts of users.
    """

    of: Release = field(repr=False)
    rho: float
    relative_error: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.of, Release) or self.of.counts is None or self.of.sigmas is None:
            raise ParameterError("of must be a Release with counts, such as that of dp.count")
        if self.of.guarantee.unit != "user" or self.of.made_by.startswith("ClippedSums"):
            raise ParameterError("of must be a Release that counts users: sums and streams are not refined")
        object.__setattr__(self, "rho", require_number("rho", self.rho, 0, RHO_LIMIT))
        object.__setattr__(self, "relative_error", require_number("relative_error", self.relative_error, 0, 100))

    @property
    def protects(self) -> Sensitivity:
        """Any number of items per user, each count moved by one."""
        return Sensitivity(l0=None, linf=1)

    @property
    def guarantee(self) -> Guarantee:
        """rho-zCDP: noisy counts in turn, stopped before their cost exceeds rho (Rogers 2024, Theorem 5)."""
        return Guarantee(self.rho, 0.0, neighbours=self.of.guarantee.neighbours)

    def release_chance(self, users: int) -> float:
        """One: the items are known."""
        return 1.0

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        assert self.of.counts is not None
        assert self.of.sigmas is not None
        true = histogram._counts_of(self.of.items)
        means, sigmas = self.of.counts.astype(float), self.of.sigmas.astype(float)
        purse = rogers2024.budget_units(self.rho)
        spent = 0
        for row in range(len(true)):
            while (step := self._next_sigma(means[row], sigmas[row])) is not None:
                price = math.ceil(rogers2024.UNIT / (2 * Fraction(step) ** 2))
                if spent + price > purse:
                    break
                spent += price
                noisy = int(true[row]) + int(rng.sample(_core.Noise.discrete_gaussian(step), 1)[0])
                refined = rogers2024.refined_sigma(sigmas[row], step)
                means[row] += (noisy - means[row]) * (refined / step) ** 2
                sigmas[row] = refined
            if step is not None:
                break
        counts = np.rint(means).astype(np.int64)
        labels = _core.Labels.from_sequence(self.of.items)
        order = _core.top(labels, counts, len(counts))
        return Release(
            items=labels.take(order),
            counts=counts[order],
            sigmas=sigmas[order],
            guarantee=self.of.guarantee + self.guarantee,
            spent=replace(self.guarantee, rho=min(self.rho, rogers2024.units_rho(spent))),
            made_by=f"{self!r} of {self.of.made_by}",
            seeded=self.of.seeded or rng.is_seeded,
            notes=(f"it refines a release that promised {self.of.promise}; the guarantee is that of both",),
            item_type=self.of.item_type,
            clipped=self.of.clipped,
        )

    def _next_sigma(self, mean: float, sigma: float) -> float | None:
        """The scale of the next count of an item, None where its error is small enough."""
        allowed = max(self.relative_error * mean / 1.5, _CERTAIN)
        if sigma <= allowed:
            return None
        precision = max(allowed, sigma / 2) ** -2 - sigma**-2
        # A hair of precision would be noise without end.
        return max(1e-3, min(1 / math.sqrt(max(precision, 1e-6 * sigma**-2)), 1e9))
