"""The baseline of Private Count Release: select the items, then count a bounded number of each user's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from discreet import _core, engines
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened
from discreet.mechanisms.from_table import TableMechanism, without_value
from discreet.mechanisms.parameters import require_delta
from discreet.mechanisms.published import clipped, published
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import RHO_LIMIT, Guarantee, resolve_rho
from discreet.privacy.validation import require_flag, require_number, require_whole
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.tables.table import Table
from discreet.theorems import rogers2024

__all__ = ["Plume"]


@dataclass(frozen=True, kw_only=True)
class Plume(TableMechanism):
    """Items found with `m` of each user's, then counted anew with `m_prime` of each user's among those found.

    The baseline of Rogers (2024), Sections 1 and 4, after Amin et al. (2022): delta-approximate rho-zCDP per
    user, added or removed. `share` of rho goes to finding items, by `GaussianThreshold`; the rest to the
    counts, Gaussian noise of scale sqrt(m_prime / (2 (1 - share) rho)). `relative_error`: publish only counts
    above (2 + r) sigma / r. `literal`: take m_prime itself for the l2-sensitivity, as the paper does, which
    is too much noise by its square root. Choose m and m_prime without looking at the data, or by
    `ContributionBound`. It reads a table twice. Raises ParameterError where a parameter is out of range.
    """

    rho: float
    delta: float
    m: int
    m_prime: int
    share: float = 0.5
    relative_error: float | None = None
    literal: bool = False

    def __post_init__(self) -> None:
        m = require_whole("m", self.m, 1, 2**30)
        m_prime = require_whole("m_prime", self.m_prime, 1, 2**30)
        checked = {
            "rho": require_number("rho", self.rho, 0, RHO_LIMIT),
            "delta": require_delta(self.delta),
            "m": m,
            "m_prime": m_prime,
            "share": require_number("share", self.share, 0, 1),
            "literal": require_flag("literal", self.literal),
        }
        if self.relative_error is not None:
            checked["relative_error"] = require_number("relative_error", self.relative_error, 0, 100)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.share >= 1:
            raise ParameterError("share must be below 1: the counts need some of rho")
        _ = self.selection
        require_number("sigma, the scale of the noise of the counts,", self.sigma, 1e-3, 1e9)

    @classmethod
    def from_rho(
        cls,
        *,
        rho: float,
        delta: float,
        m: int,
        m_prime: int,
        share: float = 0.5,
        relative_error: float | None = None,
        literal: bool = False,
    ) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        return cls(
            rho=rho,
            delta=delta,
            m=m,
            m_prime=m_prime,
            share=share,
            relative_error=relative_error,
            literal=literal,
        )

    @classmethod
    def from_epsilon(
        cls,
        *,
        epsilon: float,
        delta: float,
        m: int,
        m_prime: int,
        share: float = 0.5,
        relative_error: float | None = None,
        literal: bool = False,
    ) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, half of delta going to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(
            rho=rho,
            delta=own,
            m=m,
            m_prime=m_prime,
            share=share,
            relative_error=relative_error,
            literal=literal,
        )

    @property
    def guarantee(self) -> Guarantee:
        """delta-approximate rho-zCDP, the sum of both steps (Rogers 2023, Theorem 6)."""
        return Guarantee(self.rho, self.delta)

    @property
    def selection(self) -> GaussianThreshold:
        """The mechanism that finds the items."""
        return GaussianThreshold.from_rho(rho=round_down(self.share * self.rho), delta=self.delta, l0=self.m)

    @property
    def sigma(self) -> float:
        """The scale of the noise of the counts."""
        rest = round_down(self.rho - self.selection.guarantee.rho, 8)
        return rogers2024.plume_sigma(rest, self.m_prime, literal=self.literal)

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        # A user's items are chosen anew for the second time, among those that were found.
        without_value(table, "Plume")
        engines.require_rows_again(table.data)
        wanted: Any = {"user": table.user, "item": table.item, "memory": table.memory, "progress": table.progress}
        histogram = Histogram.from_table(table.data, **wanted, l0=self.m)
        rng = opened(rng)
        found = self.selection.release(histogram, rng=rng)
        again = Histogram.from_table(table.data, **wanted, l0=self.m_prime, only=found.items)
        noise = rng.sample(_core.Noise.discrete_gaussian(self.sigma), len(found))
        noisy = again._counts_of(found.items) + noise
        least = -np.inf
        if self.relative_error is not None:
            least = rogers2024.plume_threshold(self.sigma, self.relative_error)
        kept = np.flatnonzero(noisy > least)
        labels = _core.Labels.from_sequence(found.items)
        kind = found.item_type
        release = published(self, labels, kept, rng, noisy=noisy[kept], sigmas=self.sigma, item_type=kind)
        return clipped(release, self.m_prime)
