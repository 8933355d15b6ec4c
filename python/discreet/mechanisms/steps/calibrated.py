"""Steps of `CalibratedAggregates`: items that calibrated counts name, and one relative measurement of all numbers.

Each user's numbers of all items and columns are one vector, which is shortened to a norm. Weights, scales and caps
follow from published values. What would break: a weight from a number that is not released, a column with a norm of its
own, and an item without rows that is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet import _core
from discreet.engines.projection import FINE
from discreet.engines.weighing import Counting
from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts, CalibratedSteps
from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
from discreet.mechanisms.steps.base import SoFar, Step
from discreet.mechanisms.steps.numbers import PairRows
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.progress import shown_progress
from discreet.release.aggregates import Aggregate, to_digits
from discreet.release.export import shortened
from discreet.release.facts import Listed, Summed
from discreet.release.release import changed
from discreet.tables.histogram import Histogram
from discreet.theorems import calibrated_aggregates as theorem
from discreet.theorems.rogers2024 import budget_units, units_rho

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.engines.engine import Progress
    from discreet.engines.untrusted import Fields
    from discreet.release.aggregates import KindOfAggregate
    from discreet.release.facts import Facts

    Floats = NDArray[np.float64]

__all__ = ["Asked", "CountListed", "MeasureAll", "NameItems"]

_MOST = 2**127 - 1
_LARGEST = 2.0**53
_NEAR = 12
"""The fewest binary places of a scale in steps: below, the rounding of values shows in sums."""
_UNLIKE = 0.4
_TOO_FEW = "too few users for numbers without bounds, so nothing but the counts is known: give bounds and l0"
_HELD_BY_FEW = 1.5
_UNKNOWN = 1e50
"""The sigma of a number of which nothing is known: finite, so that every format has it."""


class Asked(NamedTuple):
    """A number that is asked for of each item."""

    kind: KindOfAggregate
    column: str | None = None
    step: float = 1.0
    low: int | None = None
    """The least sum of a user for an item, in steps; None for any."""
    high: int | None = None

    @property
    def measured(self) -> list[tuple[str, str | None, float, int, int]]:
        """Return the sums over users that the number needs."""
        bounds = (-_MOST if self.low is None else self.low, _MOST if self.high is None else self.high)
        if self.kind == "rows":
            return [("rows", None, 1.0, 0, _MOST)]
        own = [("sum", self.column, self.step, *bounds)]
        return [*own, ("values", self.column, self.step, 0, _MOST)] if self.kind == "mean" else own

    def published(self, values: Floats, sigmas: Floats) -> Aggregate:
        """Return the aggregate of numbers in the unit of the column."""
        rows = np.rint(values.clip(-_LARGEST, _LARGEST))
        own = rows.astype(np.int64) if self.kind == "rows" else to_digits(values, sigmas)
        low, high, step = self.low, self.high, self.step
        return Aggregate(
            kind=self.kind, column=self.column, low=low, high=high, resolution=step, values=own, sigmas=sigmas
        )


@dataclass(frozen=True, kw_only=True)
class NameItems(Step[Counting]):
    """Names items, and estimates their numbers of users, with `CalibratedCounts`."""

    given: CalibratedCounts

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of the mechanism."""
        return self.given.guarantee

    def read(self, so_far: SoFar) -> Counting:
        """Return access to the rows, after all that may be refused."""
        return self.given._lists(so_far.table).checked()

    def run(self, so_far: SoFar, read: Counting, rng: _core.Rng) -> None:
        """Release the counts."""
        # The sigma of a count says enough beside other numbers, which have no method of their own.
        so_far.release = changed(CalibratedSteps.of(self.given, read, rng).release(), confirmed=None)
        so_far.spent = so_far.release.spent

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has the counts of the mechanism. It does not say which of them are estimates, so all may be."""
        own = self.given._facts(l0, summed)

        def has_sigmas(rows: Fields, replaced: bool) -> bool:
            return own.has_sigmas({**rows, "confirmed": np.zeros(len(rows["items"]), bool)}, replaced)

        return replace(own, has_sigmas=has_sigmas, kind=facts.kind)


@dataclass(frozen=True, kw_only=True)
class CountListed(Step[Histogram]):
    """Counts the users of public items with `CorrelatedCounts`; a user may have any of them."""

    given: CorrelatedCounts

    lists: Listed = "all"

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of the mechanism, which has no delta."""
        return self.given.guarantee

    def read(self, so_far: SoFar) -> Histogram:
        """Return the number of users of each item, and of users with any of them."""
        assert isinstance(so_far.rows, PairRows)
        labels, counts = so_far.rows.pairs[0].counts(len(self.given.items))
        users = len(so_far.rows.numbers())
        histogram = Histogram._of(labels, counts, Sensitivity(l0=None, linf=1), None, users=users)  # noqa: SLF001
        self.given._require(histogram)
        return histogram

    def run(self, so_far: SoFar, read: Histogram, rng: _core.Rng) -> None:
        """Release the counts."""
        so_far.release = self.given.release(read, rng=rng)
        so_far.spent = so_far.release.spent

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has the counts of the mechanism."""
        return replace(self.given._facts(l0, summed), kind=facts.kind)


@dataclass(frozen=True, kw_only=True)
class MeasureAll(Step[None]):
    """Measures all numbers of the named items at once, and estimates what shortening took from them."""

    rho: float
    asked: tuple[Asked, ...]

    reads_rows = False

    @property
    def columns(self) -> list[tuple[str, str | None, float, int, int]]:
        """Return the sums over users of which all numbers are made, each once."""
        return [*dict.fromkeys(part for one in self.asked for part in one.measured)]

    @property
    def shares(self) -> theorem.Shares | None:
        """Return the prices of all parts, or None if rho is too small for noise."""
        return theorem.shares(budget_units(self.rho), len(self.columns))

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee, which has no delta (docs/calibrated-aggregates.md, the theorem)."""
        return Guarantee(self.rho, 0.0)

    def run(self, so_far: SoFar, read: None, rng: _core.Rng) -> None:
        """Release the numbers."""
        first = so_far.selected
        assert first.counts is not None
        assert first.sigmas is not None
        made = _Measuring(self, so_far, rng)
        values, notes = made.found()
        numbers = [one.published(*self._number(one, values, first.counts)) for one in self.asked]
        measures = [one.measure(so_far.table.unit) for one in numbers]
        so_far.release = changed(first, aggregates=tuple(numbers), notes=(*first.notes, *measures, *notes))
        assert so_far.spent is not None
        whole = so_far.mechanism.guarantee
        spent = so_far.spent.rho + units_rho(made.spent)
        so_far.spent = Guarantee(min(whole.rho, spent), min(whole.delta, so_far.spent.delta))

    def _number(
        self, one: Asked, found: dict[tuple[object, ...], _Estimate], counts: NDArray[np.int64] | Floats
    ) -> tuple[Floats, Floats]:
        """Return the values and the sigmas of a number, in the unit of its column."""
        size = len(counts)
        parts = [found.get(part) for part in one.measured]
        top, below = parts[0], parts[-1]
        if top is None or below is None:
            return np.zeros(size), np.full(size, _UNKNOWN)
        scale = one.step
        if one.kind != "mean":
            values, sigmas = top.values, top.sigmas
            if one.kind == "rows":
                # Each user of an item has a row of it, so there are no fewer rows than users.
                values, below_count = np.maximum(values, counts), np.maximum(0.0, counts - values)
                sigmas = np.hypot(sigmas, below_count)
            return values * scale, sigmas * scale
        rows = np.maximum(below.values, 1)
        mean = top.values / rows
        return mean * scale, np.hypot(top.sigmas, mean * below.sigmas) / rows * scale

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has these numbers. All sigmas are claims, but those of counts are positive."""
        counted, asked = facts.has_sigmas, self.asked

        def has_sigmas(rows: Fields, replaced: bool) -> bool:
            found: list[Aggregate] = rows["aggregates"]
            headers = [one.published(np.zeros(0), np.zeros(0)).header for one in asked]
            return counted(rows, replaced) and [one.header for one in found] == headers

        return replace(facts, has_sigmas=has_sigmas, steps=True, claims=(*facts.claims, "all sigmas"))


class _Estimate(NamedTuple):
    """The published sums of a column and their sigmas, in steps."""

    values: Floats
    sigmas: Floats


class _Measuring:
    """One relative measurement, step by step, and what it costs."""

    def __init__(self, step: MeasureAll, so_far: SoFar, rng: _core.Rng) -> None:
        assert isinstance(so_far.rows, PairRows)
        self.step, self.rng, self.spent = step, rng, 0
        self.progress = so_far.table.progress
        release = so_far.selected
        self.counts, self.sigmas = np.asarray(release.counts, float), np.asarray(release.sigmas, float)
        self.users = float(release.users[0]) if release.users else 0.0
        self.columns, self.notes = step.columns, list[str]()
        self.weighted = so_far.rows.weighted(self.columns, release.items) if len(release) else None

    def found(self) -> tuple[dict[tuple[object, ...], _Estimate], list[str]]:
        """Return the estimate of each column that has a scale, and notes."""
        shares = self.step.shares
        assert shares is not None
        if self.weighted is None:
            return {}, []
        with shown_progress(self.progress) as tick:
            return self._measured(self.weighted, shares, tick), self.notes

    def _measured(
        self, weighted: _core.WeightedPairs, shares: theorem.Shares, tick: Progress | None
    ) -> dict[tuple[object, ...], _Estimate]:
        weights = theorem.weights(self.counts, self.sigmas)
        bins = weighted.norms(weights.tolist(), progress=tick)
        noise = _core.Noise.discrete_gaussian(shares.scale_sigma)
        logs = list[float | None]()
        for place, own in enumerate(bins):
            noisy = own + self.rng.sample(noise, len(own))
            self.spent += shares.scale_price
            logs.append(theorem.exponents(noisy, shares.scale_sigma, self.users, first=place == 0))
            if logs[0] is None:
                self.notes.append(_TOO_FEW)
                return {}
            if logs[-1] is None:
                self.notes.append(
                    f"too few users have {self._name(place)} other than zero, so nothing is known of them"
                )
        live = [place for place, log in enumerate(logs) if log is not None]
        rest = shares.rest(len(self.columns), len(live) - 1)
        bits = theorem.norm_bits(rest)
        sigma = theorem.norm_sigma(rest, bits)
        own = theorem.multipliers(weights, [log for log in logs if log is not None], bits)
        given = [([0] * len(weights), 0)] * len(logs)
        for place, one in zip(live, own, strict=True):
            given[place] = one.factors.tolist(), one.shift
        sums = weighted.sums(given, bits, progress=tick)[:, live]
        self.spent += theorem.norm_price(sigma, bits)
        drawn = self.rng.sample(_core.Noise.discrete_gaussian(sigma), sums.size).reshape(sums.shape)
        raw = [(sums + drawn)[:, place] / one.floats for place, one in enumerate(own)]
        errors = [sigma / one.floats for one in own]
        adjusted = theorem.adjustment(self.counts, self.sigmas, raw[0], errors[0])
        found = dict[tuple[object, ...], _Estimate]()
        for place, values, error in zip(live[1:], raw[1:], errors[1:], strict=True):
            scaled, noisy = adjusted.ratios * values, adjusted.ratios * error
            up, missed = self._total(weighted, place, (scaled, noisy), shares, adjusted, tick)
            found[self.columns[place - 1]] = _Estimate(*theorem.estimates(scaled, noisy, adjusted, up, missed))
            self._note(place, up, missed, logs[place])
        return found

    def _total(
        self,
        weighted: _core.WeightedPairs,
        place: int,
        sums: tuple[Floats, Floats],
        shares: theorem.Shares,
        adjusted: theorem.Adjustment,
        tick: Progress | None,
    ) -> tuple[float, float]:
        """Return by how much the sums of a column are too small, and the relative error of this number."""
        asked = theorem.total(shares.total_price, self.counts, *sums, adjusted, self.users)
        if asked is None:
            return 1.0, 0.5
        layers = weighted.layers(place, asked.factors.tolist(), asked.shift, asked.cap, progress=tick)
        self.spent += theorem.totals_price(asked.cap, asked.sigma)
        drawn = self.rng.sample(_core.Noise.discrete_gaussian(asked.sigma), 3)
        return theorem.put_back(asked, [layer + int(noise) for layer, noise in zip(layers, drawn, strict=True)])

    def _name(self, place: int) -> str:
        kind, column, *_ = self.columns[place - 1]
        return "rows" if column is None else f"{'values' if kind == 'values' else 'sums'} of {shortened(column)}"

    def _note(self, place: int, up: float, missed: float, log: float | None) -> None:
        if self.columns[place - 1][2] == FINE and log is not None and log < 20 + _NEAR:
            near = f"{self._name(place)} are near 2^-32, to which values are rounded"
            self.notes.append(f"{near}: multiply the column, such as by 1e6, or give a resolution")
        if missed > _UNLIKE and up <= _HELD_BY_FEW:
            self.notes.append(
                f"the {self._name(place)} are uncertain by {missed:.0%}: users with much have values of other signs or "
                "sizes, or there are too few users"
            )
        if up > _HELD_BY_FEW:
            held = ": most of them are held by few users" if up > 3 else ""
            cut = f"{1 - 1 / up:.0%} of the {self._name(place)}"
            self.notes.append(f"{cut} were cut from users with much, and put back{held}")
