"""`CalibratedCounts`: estimates of true counts, for users with any number of items, without a bound to choose."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Unpack

import numpy as np

from discreet import _core, engines
from discreet.cached import cached_property
from discreet.engines.engine import Weighed, Weighting, labels_of
from discreet.engines.table import Table
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError
from discreet.mechanisms.base import FromRhoAndDelta, Opening, opened_rng
from discreet.mechanisms.counts.confirmed_counts import Begun, ConfirmedCounts, Found
from discreet.mechanisms.counts.contribution_bound import ContributionBound
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import K_BAR, RELATIVE_ERROR
from discreet.mechanisms.published import CountFields, published
from discreet.privacy.guarantee import Guarantee
from discreet.release.facts import COUNTS, Facts, Summed
from discreet.release.release import Release, changed
from discreet.theorems import calibrated_counts as theorem
from discreet.theorems import calibration, confirmed_counts
from discreet.theorems.rogers2024 import budget_units, units_rho
from discreet.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.engines.weighing import Counting, Rest

__all__ = ["CalibratedCounts", "CalibratedSteps", "Weights"]

_SHOWN_SPREAD = 0.005
_CONFIRMED = "all counts are confirmed: there are too few users, or too few common items, to estimate rarer ones"
_Named = tuple["NDArray[np.int64]", "NDArray[np.float64]", "NDArray[np.float64]"]
"""Items by number, their weighted counts or estimates, and their sigmas."""


@dataclass(frozen=True, kw_only=True)
class CalibratedCounts(FromRhoAndDelta, TableMechanism):
    """A mechanism that releases items with estimates of their true counts, without a bound on a user's items.

    It confirms the most common items with a part of rho, as `ConfirmedCounts` does. It then counts the other items by
    weights whose squares add up to a bound for each user, and releases the items above a threshold. Medians of true
    counts correct the weighted counts, and measure by how much estimates miss the true counts: sigma is the standard
    deviation of an estimate. With too few users for weights, the release is that of `ConfirmedCounts`. If nearly no
    user has more than one item, it is that of a threshold on one item of each user. The guarantee is delta-approximate
    rho-zCDP per user, added or removed.

    Items that users with many items have alone can be estimated too low.

    Args:
        rho: The privacy cost in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: from 1e-100 to below 1.
        relative_error: The error of confirmed counts to aim for, as a fraction of a count: from 0.005 to below 1.
        k_bar: Confirm only the k_bar most common items: from 1 to 2^30. Choose it without the data.

    Raises:
        ParameterError: A parameter is out of range, or rho is too small for one measurement.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(9000)] * 2, "page": ["home"] * 9000 + ["help"] * 9000}
        >>> release = dp.CalibratedCounts(rho=1, delta=1e-6).release(log, user="user", item="page")
        >>> sorted(release.items)
        ['help', 'home']

    Source:
        The theorem of docs/calibrated-counts.md, a result of this project.
    """

    _costs_by_step = True
    items_compete = True

    rho: float
    delta: float
    relative_error: float = RELATIVE_ERROR
    k_bar: int = K_BAR

    def __post_init__(self) -> None:
        heads = self.heads
        self._set(rho=heads.rho, delta=heads.delta, relative_error=heads.relative_error, k_bar=heads.k_bar)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP (docs/calibrated-counts.md, the theorem)."""
        return Guarantee(self.rho, self.delta)

    @cached_property
    def heads(self) -> ConfirmedCounts:
        """Return the mechanism that confirms the most common items."""
        return ConfirmedCounts(rho=self.rho, delta=self.delta, relative_error=self.relative_error, k_bar=self.k_bar)

    @cached_property
    def bound(self) -> ContributionBound:
        """Return the mechanism that chooses the most items of a user that weigh fully."""
        return ContributionBound.from_rho(rho=theorem.BOUND_SHARE * self.rho, percentile=theorem.PERCENTILE)

    def release_chance(self, users: int) -> float:
        """Return the approximate probability that an item is confirmed, if no other item competes with it.

        Args:
            users: The number of users of the item.
        """
        return self.heads.release_chance(users)

    def _lists(self, table: Table) -> Counting:
        """Return access to the items of every user, or raise an error for a table that this mechanism does not take."""
        columns = [table.item] if isinstance(table.item, str) else [*table.item]
        if table.period is not None and table.every is not None:
            columns.append(table.period.column)
        if len(columns) > 1 and "method" in {name.lower() for name in columns}:
            raise ParameterError(
                "an item of several columns cannot have the column 'method', because the release has a column of this "
                "name; rename it, or give mechanism=ConfirmedCounts(rho=..., delta=...)"
            )
        return engines.counting(table)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        own, heads = super()._facts(l0, summed), self.heads._facts(l0, summed)
        return replace(own, clips=False, columns=((*COUNTS, "method"),), users=heads.users, needs_users=True)

    def _has_sigmas(self, rows: Fields, replaced: bool) -> bool:
        return self.heads._has_sigmas(rows, replaced)

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        return self._steps(table, rng).release()

    def _steps(
        self, table: Table, rng: _core.Rng | Opening | None, steps: type[CalibratedSteps] | None = None
    ) -> CalibratedSteps:
        """Return the steps of a release, after all that may be refused and the charge."""
        counting = self._lists(table).checked()
        return (steps or CalibratedSteps).of(self, counting, opened_rng(rng))


class Weights(NamedTuple):
    """The public parameters of weights."""

    scale: float
    """The scale of their noise, in users."""
    full: int
    """l, the most items of a user that weigh fully."""
    most: int
    """K, the most items of a user that weigh."""
    bits: int
    """The binary places of a weight."""
    threshold: _core.Threshold

    @classmethod
    def of(cls, scale: float, full: int, most: int, delta: float) -> Self:
        """Return the parameters for this scale. `delta` is the chance that a user's own items are released."""
        bits = theorem.places_of(scale, most)
        noise = _core.Noise.discrete_gaussian(math.ldexp(scale, bits))
        return cls(scale, full, most, bits, theorem.threshold(noise, full, most, bits, delta))

    @property
    def least(self) -> float:
        """The threshold, in users."""
        return math.ldexp(self.threshold.value, -self.bits)


class CalibratedSteps:
    """The steps of one release.

    A cluster or a warehouse reads its rows up to four times: for counts, for the number of users with more than one
    item if there are many users, for the numbers of items of users, and for weights. Each measured value has all its
    numbers from one of these reads, as the theorem needs.
    """

    weighed: Weighed
    """The weights of items that are not confirmed."""
    margin = math.nan
    """The published number of users over the least number with which weights go on; NaN if it was not needed."""
    opening = math.nan
    """The published number of users over the least number with which one item of each user may be counted, or NaN."""
    single = False
    """Whether one item of each user was counted."""

    def __init__(self, mechanism: CalibratedCounts, counting: Counting, rng: _core.Rng) -> None:
        self.mechanism, self.counting, self.rng = mechanism, counting, rng
        self.counted = counting.counted()
        self.labels, self.counts, users = self.counted
        self.users = users or 0
        present = int(np.count_nonzero(self.counts))
        self.order = _core.top(self.labels, self.counts, min(present, mechanism.heads.rows_needed))
        self.noisy_users, self.precision, self.spent, self.begun = 0.0, 0.0, 0, 0

    @classmethod
    def of(cls, mechanism: CalibratedCounts, counting: Counting, rng: _core.Rng) -> Self:
        """Return the steps of a release that is charged. The rows of a seeded one have an order of their own."""
        return cls(mechanism, counting.ordered() if rng.is_seeded else counting, rng)

    def release(self) -> Release:
        """Return the release."""
        heads = self.mechanism.heads
        begun = heads._begun(self.users, self.rng)
        _, self.noisy_users, self.precision, self.begun, _ = begun
        self.spent = self.begun
        release = self._alone()
        if release is not None:
            return release
        found = self._confirm(begun, pause=self._share(theorem.FIRST_SHARE) - self.begun)
        ending = found[-1]
        decided = ending in ("outside", "pause")
        if decided:
            release = self._weighed(found)
            if release is not None:
                return release
        if ending == "pause":
            found = self._confirm(begun, resumed=found[:-1])
        later = begun._replace(noisy_users=self.noisy_users, precision=self.precision, spent=self.spent)
        release = heads._finished(found, later, self.rng, self._published)
        return changed(release, notes=(*release.notes, _CONFIRMED)) if decided and len(release) else release

    def _confirm(self, begun: Begun, **more: Any) -> Found:
        """Confirm items with all that is left, and pause or resume."""
        mechanism, heads = self.mechanism, self.mechanism.heads
        levels = confirmed_counts.priced_levels(heads.relative_error, 2, False, mechanism.rho, mechanism.delta)
        setting = heads._setting(begun, budget_units(mechanism.rho) - self.spent)
        return _core.confirm(self.counts[self.order], heads.rows_needed, levels, setting, self.rng, **more)

    def _published(self, rows: NDArray[np.int64], rng: _core.Rng, **more: Unpack[CountFields]) -> Release:
        """Return the release of confirmed rows."""
        return published(self.mechanism, self.labels, self.order[rows], rng, confirmed=np.ones(len(rows), bool), **more)

    def _measured(self, value: int, users: int, sigma: float, *, bits: int = 0) -> float:
        """Return a measured number of users, from twice the number less that of all users (theorem, Lemma 4).

        Args:
            value: The exact number, in units of 2^-bits.
            users: The exact number of all users, from the same read of the rows.
            sigma: The scale of its noise, in users.
            bits: The binary places of the number.
        """
        noise = int(self.rng.discrete_gaussian(math.ldexp(2 * sigma, bits), 1)[0])
        return (math.ldexp(2 * value - (users << bits) + noise, -bits) + self.noisy_users) / 2

    def _measure_users(self) -> None:
        """Measure the number of users with the rest of its share."""
        share = self._share(theorem.USERS_SHARE) - self.begun
        sigma = confirmed_counts.affordable_sigma(share)
        if sigma is not None:
            self.spent += confirmed_counts.variance_price(sigma)
            again, more = self.users + int(self.rng.discrete_gaussian(sigma, 1)[0]), sigma**-2
            self.noisy_users = (self.noisy_users * self.precision + again * more) / (self.precision + more)
            self.precision += more

    def _alone(self) -> Release | None:
        """Return the release of a threshold on one item of each user, or None if users have more items."""
        sigma = theorem.ordered_sigma(self._share(theorem.SINGLE_SHARE))
        if sigma is not None:
            self.opening = self.noisy_users / theorem.least_single(theorem.deviation(sigma, self.precision))
        if sigma is None or self.opening < 1:
            return None  # so few users that noise would decide: the numbers of items are not read
        rest = self.counting.rest(self.counted, np.zeros(0, np.int64))
        none = self._few_have_more(rest.users_by_size(1), 1, sigma)
        scale = theorem.weights_sigma(budget_units(self.mechanism.rho) - self.spent, 1) if none else None
        if scale is None:
            return None
        self.single, given = True, Weights.of(scale, 1, 1, theorem.unspent_delta(self.mechanism.delta, 0.0))
        self._weigh(rest, given)
        return self._both(None, self._named(self.weighed.weights, given), given)

    def _weighed(self, found: Found) -> Release | None:
        """Return the release of confirmed and of weighted items, or None if confirming goes on."""
        rows, _, _, confirming, *_, ending = found
        mechanism, stuck = self.mechanism, ending == "outside"
        self._measure_users()
        rest, bound = self.counting.rest(self.counted, self.order[rows]), mechanism.bound
        users = rest.users_by_size(bound.most)
        full = bound._drawn_from(np.append(users[:-2], users[-2:].sum()), self.rng)
        self.spent += theorem.selection_price(bound.epsilon)
        heavy = theorem.ordered_sigma(self._share(theorem.HEAVY_SHARE))
        looking = theorem.ordered_sigma(self._share(theorem.LOOK_SHARE))
        if heavy is None or looking is None:
            return None  # the noise would be too large for the sampler
        none = self._few_have_more(users, full, heavy)
        bands_budget = 0 if none else self._share(theorem.CALIBRATION_SHARE)
        look_price = 0 if stuck else theorem.ordered_price(looking)
        left = budget_units(mechanism.rho) - self.spent - confirming - look_price - bands_budget
        scale = theorem.weights_sigma(left, full)
        if scale is None or (not none and theorem.band_sigma(bands_budget, theorem.MOST_BANDS) is None):
            return None
        own = confirmed_counts.spent_delta(confirming, mechanism.rho, mechanism.delta)
        given = Weights.of(scale, full, theorem.TIMES * full, theorem.unspent_delta(mechanism.delta, own))
        reach = theorem.reach(len(rows), given.least)
        if not stuck:
            least = theorem.least_users(reach)
            self.margin = self.noisy_users / least
            if self.noisy_users < least:
                return None
        self._weigh(rest, given)
        if not stuck and self._look(given.bits, looking) < theorem.least_weight(reach, looking):
            return None
        items, shown, sigmas = self._named(self.weighed.weights, given)
        curve = None
        if len(items) and not none:
            curve = self._calibrated(self._counts_of(items), shown, bands_budget, scale)
            shown, sigmas = calibration.estimates(shown, sigmas, curve)
        return self._both(found, (items, shown, sigmas), given, curve)

    def _share(self, share: float) -> int:
        """Return a share of rho in units."""
        return theorem.share_of(self.mechanism.rho, share)

    def _few_have_more(self, users: NDArray[np.int64], most: int, sigma: float) -> bool:
        """Measure the number of users with more than `most` items, and return whether it is nearly none."""
        self.spent += theorem.ordered_price(sigma)
        measured = self._measured(int(users[most + 1 :].sum()), int(users.sum()), sigma)
        return theorem.nearly_none(measured, theorem.deviation(sigma, self.precision), self.noisy_users)

    def _weigh(self, rest: Rest, given: Weights) -> None:
        """Read the weights."""
        weighting = Weighting(method="capped_squares", bits=given.bits, l0=given.most, full=given.full)
        self.weighed = rest.weighed(weighting, self.rng)

    def _look(self, bits: int, sigma: float) -> float:
        """Return the measured weight of rank 20, 0 beyond the last item."""
        weights, coarse = self.weighed.weights, min(bits, theorem.places(2 * sigma))
        largest = _ordered(weights, len(weights) - theorem.RANK) >> (bits - coarse)
        self.spent += theorem.ordered_price(sigma)
        return self._measured(largest, self.weighed.users, sigma, bits=coarse)

    def _counts_of(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts of weighed items, zero for an item that the read of counts did not have."""
        if self.weighed.labels is self.labels:
            return self.counts[items]
        known = _core.KnownLabels.from_sequence(self.weighed.labels.take(items))
        places = known.split(self.labels, np.arange(1, len(self.counts) + 1))[1]
        return np.append(self.counts, 0)[places - 1]

    def _named(self, weights: NDArray[np.int64], given: Weights) -> _Named:
        """Return the items above the threshold, their unbiased weighted counts and the scales of their errors.

        The items are in descending order of their weighted counts.
        """
        passed, noisy = self._passed(given.threshold, weights)
        self.spent += theorem.weights_price(given.scale, given.full)
        # Labels break ties: the numbers of items follow private rows, and would decide which items a band has.
        _, down = self.weighed.labels.ordered(passed, noisy)
        shown, sigmas = calibration.unbiased(np.ldexp(noisy[down], -given.bits), given.scale, given.least)
        again = np.argsort(-shown, kind="stable")
        return passed[down[again]], shown[again], sigmas[again]

    def _passed(
        self, threshold: _core.Threshold, weights: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the items of positive weight that pass the threshold, and their noisy weights."""
        present = np.flatnonzero(weights > 0)
        rows, noisy = threshold.release(weights[present], self.rng)
        return present[rows], noisy

    def _both(
        self, found: Found | None, named: _Named, given: Weights, curve: calibration.Curve | None = None
    ) -> Release:
        """Return the release of confirmed items, if any were looked for, and of estimated items."""
        empty, (items, shown, sigmas) = np.zeros(0, np.int64), named
        rows, values, scales, confirming, steps, *_ = found or (empty, empty, empty, 0, 0)
        mechanism, common = self.mechanism, 1 / self.precision
        levels = confirmed_counts.levels(mechanism.relative_error, factor=2, replaced=False)
        variances = mechanism.heads._variances(scales, levels)
        labels, order = self.labels, np.concatenate([self.order[rows], items])
        if self.weighed.labels is not labels:
            both = [*labels.take(self.order[rows]), *self.weighed.labels.take(items)]
            labels, order = labels_of(both, labels.type_name), np.arange(len(both))
        return published(
            mechanism,
            labels,
            order,
            self.rng,
            noisy=np.rint(np.concatenate([(values + self.noisy_users) / 2, shown])).astype(np.int64),
            sigmas=np.concatenate([np.sqrt(variances + common) / 2, sigmas]),
            confirmed=np.arange(len(rows) + len(items)) < len(rows),
            spent=Guarantee(min(mechanism.rho, units_rho(self.spent + confirming)), mechanism.delta),
            calls=steps,
            users=(round(self.noisy_users), math.sqrt(common)),
            notes=self._notes(None if found is None else len(rows), len(items), given.full, curve),
        )

    def _calibrated(
        self, counts: NDArray[np.int64], shown: NDArray[np.float64], budget: int, scale: float
    ) -> calibration.Curve:
        """Return the ratio of true to weighted counts, from medians and ends of bands of released items."""
        made = calibration.bands(shown)
        sigma = theorem.band_sigma(budget, len(made)) or math.inf  # never None: `_weighed` checked more bands
        measured, ratio = [], 1.0
        for band in made:
            own, exact = shown[band.start : band.stop], counts[band.start : band.stop]
            size, noise = len(own), calibration.least_sigma(sigma, band.centre)
            offset = calibration.offsets(own, ratio)
            median = self._measured(_ordered(exact - offset, size // 2), self.users, noise)
            ratio = calibration.ratio_of(ratio, median, band.centre)
            offset = calibration.offsets(own, ratio)
            ends = [_ordered(exact - offset, rank) for rank in calibration.end_ranks(size)]
            low, high = (self._measured(end, self.users, 2 * noise) for end in ends)
            measured.append(calibration.Measured(ratio, low, high, noise))
            self.spent += theorem.ordered_price(noise) + 2 * theorem.ordered_price(2 * noise)
        return calibration.curve(made, measured, scale, 1 / math.sqrt(self.precision) / 2)

    def _notes(self, heads: int | None, others: int, full: int, curve: calibration.Curve | None) -> tuple[str, ...]:
        """Return the notes of a release, which depend on published values alone."""
        notes = [f"confirmed: {counted(heads or 0, 'item')}; estimated from weighted counts: {counted(others, 'item')}"]
        if heads is None:
            notes[0] = f"counts of one item of each user: {counted(others, 'item')} above a threshold"
        elif others:
            notes[0] += f". A user with at most {counted(full, 'other item')} gave full weight to each"
        if curve is not None:
            bottom, top, spread = math.exp(curve.logs[0]), math.exp(curve.logs[-1]), float(np.median(curve.spreads))
            differ = f"; estimates of single items differ by {100 * spread:.2g} %, which is part of sigma"
            notes.append(
                f"estimates are weighted counts times {top:.3g} at the top and {bottom:.3g} at the bottom, from "
                f"medians of true counts{differ if spread >= _SHOWN_SPREAD else ''}"
            )
        elif others:
            notes.append("nearly no user has more items, so estimates are weighted counts")
        if others:
            notes.append("an item that only users with many items have can have more users than its interval says")
        deviation, which = 1 / math.sqrt(self.precision), "count" if curve is not None else "confirmed count"
        users = f"about {max(0, round(self.noisy_users)):,} (sigma {deviation:.3g})"
        notes.append(f"number of users with at least one item: {users}")
        if heads or curve is not None:
            share = f"Half of the error of this number (sigma {deviation / 2:.3g})"
            notes[-1] += f". {share} is in every {which}, and in its sigma"
        return (*notes,)


def _ordered(values: NDArray[np.int64], rank: int) -> int:
    """Return the value of a rank from 0 in ascending order, or 0 beyond the ends."""
    return int(np.partition(values, rank)[rank]) if 0 <= rank < len(values) else 0
