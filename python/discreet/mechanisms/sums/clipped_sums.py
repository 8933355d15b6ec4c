"""Sums over users for items that are already public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import _core
from discreet.engines.sums import clipped_sums
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.published import published
from discreet.privacy.guarantee import RHO_LIMIT, Guarantee, Sensitivity
from discreet.privacy.validation import require_number, require_whole
from discreet.release.release import Release
from discreet.tables.table import Table
from discreet.theorems import rogers2024

__all__ = ["ClippedSums"]

_LIMIT = 2**30


@dataclass(frozen=True, kw_only=True)
class ClippedSums(TableMechanism):
    """For each of `items` the sum of a value over the users, each user's own sum clipped to [`low`, `high`].

    Rogers (2024) names sums after a selection as an extension: one user moves an item's sum by at most
    max(|low|, |high|), and may have all of the items, so each sum has an equal part of `rho` and Gaussian noise
    of its own. rho-zCDP per user, added or removed. `items`: those of a release, or known without the data.
    `low`, `high`: whole numbers, in units of `resolution`, to which values are rounded; chosen without
    the data: for prices of up to 20.00 `high=2000, resolution=0.01`. The table's `value` names a column of numbers, or
    of text that holds such; a row whose value is missing or no finite number is left out. Raises ParameterError where
    a parameter is out of range.
    """

    items: tuple[Any, ...]
    rho: float
    low: int
    high: int
    resolution: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.items, str | bytes):
            raise ParameterError("items must be a sequence of labels, such as release.items")
        items = tuple(self.items)
        if not items:
            raise ParameterError("items must have at least one label")
        checked = {
            # As plain values, whatever they came as, so that the repr can be read.
            "items": tuple(_core.Labels.from_sequence(list(items)).take(np.arange(len(items)))),
            "rho": require_number("rho", self.rho, 0, RHO_LIMIT),
            "low": require_whole("low", self.low, -_LIMIT, _LIMIT),
            "high": require_whole("high", self.high, -_LIMIT, _LIMIT),
            "resolution": require_number("resolution", self.resolution, 1e-12, 1e12, open_low=False),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.low >= self.high:
            raise ParameterError("low must be below high")
        _ = _core.Noise.discrete_gaussian(self.sigma)

    @property
    def guarantee(self) -> Guarantee:
        """rho-zCDP: Gaussian noise on each of the sums (Rogers 2023, Theorem 4, summed)."""
        return Guarantee(self.rho, 0.0)

    @property
    def sigma(self) -> float:
        """The scale of the noise of each sum, in units of the resolution."""
        return max(abs(self.low), abs(self.high)) * rogers2024.measurement_sigma(self.rho / len(self.items))

    @property
    def protects(self) -> Sensitivity:
        """Any rows of a user, whose own sum of an item is clipped."""
        return Sensitivity(l0=None, linf=max(abs(self.low), abs(self.high)))

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        if table.value is None:
            raise ParameterError("ClippedSums sums a column: give value=, its name")
        if table.memory is not None or table.progress is not None:
            raise ParameterError("ClippedSums reads in one query: leave out memory and progress")
        sums = clipped_sums(
            table.data,
            columns=(table.user, table.item, table.value),
            items=list(self.items),
            bounds=(self.low, self.high),
            resolution=self.resolution,
        )
        rng = opened(rng)
        noisy = np.array(sums, np.int64) + rng.sample(_core.Noise.discrete_gaussian(self.sigma), len(sums))
        labels = _core.Labels.from_sequence(list(self.items))
        notes = (f"counts are sums of a value in units of {self.resolution:g}",)
        return published(self, labels, np.arange(len(sums)), rng, noisy=noisy, sigmas=self.sigma, notes=notes)
