"""`Refinement`: released counts, measured again until their error is small enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from discreet import _core
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism, require_complete
from discreet.mechanisms.parameters import require_rho
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_number
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.theorems import rogers2024

__all__ = ["Refinement"]

_CERTAIN = 0.3
"""The smallest useful sigma: with smaller noise, few counts change after rounding."""


@dataclass(frozen=True, kw_only=True)
class Refinement(HistogramMechanism):
    """A mechanism that refines the counts of a release to a `relative_error`, the largest count first.

    A step draws another noisy count of an item. The mean of all noisy counts of an item, weighted by their precisions,
    is as accurate as one noisy count at the sum of their costs (Brownian noise reduction). Each step at most halves
    sigma. The mechanism goes on to the next item when 1.5 sigma is at most the error, or sigma is at most 0.3. It stops
    when the next step would exceed rho. The cost is rho-zCDP per user, added or removed, in addition to the cost of the
    refined release. The new release states the sum of both guarantees. Users may have any number of items.

    Args:
        of: A release with counts of users. Release from the same histogram that made it: another histogram may contain
            another choice of users' items.
        rho: The privacy cost of the refinement in zCDP: above 0 and at most 10,000.
        relative_error: The error to aim for, as a fraction of a count: above 0 and at most 100.

    Raises:
        ParameterError: A parameter is out of range, or the release has no counts of users.

    Example:
        >>> import discreet as dp
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=None, linf=1, complete=True, users=12000)
        >>> first = dp.ConfirmedCounts(rho=0.5, delta=1e-6).release(table)
        >>> refined = dp.mechanisms.Refinement(of=first, rho=0.5, relative_error=0.001).release(table)
        >>> print(refined.guarantee)
        1e-06-approximate 1-zCDP per user (added or removed)

    Source:
        Whitehouse et al. (2022), which Rogers (2024) names as an extension; Rogers (2024), Theorem 5, for the
        composition.
    """

    of: Release = field(repr=False)
    rho: float
    relative_error: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.of, Release) or self.of.counts is None or self.of.sigmas is None:
            raise ParameterError("of must be a Release with counts, such as dp.count returns")
        if self.of.guarantee.unit == "event" or self.of.kind != "users":
            raise ParameterError("of must be a Release that counts users: sums, pairs and streams cannot be refined")
        self._set(
            rho=require_rho(self.rho),
            relative_error=require_number("relative_error", self.relative_error, 0, 100),
        )

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: any number of items per user, each count changed by at most one."""
        return Sensitivity(l0=None, linf=1)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the refinement alone: rho-zCDP.

        It measures noisy counts in turn and stops before their cost exceeds rho (Rogers 2024, Theorem 5).
        """
        return Guarantee(self.rho, 0.0, self.of.guarantee.unit, neighbours=self.of.guarantee.neighbours)

    def release_chance(self, users: int) -> float:
        """Return one: the items are already public."""
        return 1.0

    def _require(self, histogram: Histogram) -> None:
        if histogram.unit != self.of.guarantee.unit:
            raise ParameterError(
                f"the release is per {self.of.guarantee.unit}, and the histogram counts per {histogram.unit}: make it "
                "with the same unit"
            )
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
            notes=(
                f"it refines a release with {self.of.promise}; the stated guarantee covers both releases",
                *((self.of.measure,) if self.of.clipped else ()),
            ),
            item_type=self.of.item_type,
            clipped=self.of.clipped,
            l0=self.of.l0,
            listed=self.of.listed,
            noise=self.of.noise,
            claimed=self.of.claimed,
        )

    def _next_sigma(self, mean: float, sigma: float) -> float | None:
        """Return the scale of the item's next noisy count, or None if its error is small enough."""
        allowed = max(self.relative_error * mean / 1.5, _CERTAIN)
        if sigma <= allowed:
            return None
        precision = max(allowed, sigma / 2) ** -2 - sigma**-2
        # Floor the precision gain at 1e-6/sigma^2: a smaller gain would need an unboundedly large sigma.
        return max(1e-3, min(1 / math.sqrt(max(precision, 1e-6 * sigma**-2)), 1e9))
