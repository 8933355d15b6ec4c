"""`KeptPairs`: noisy numbers of (user, item) pairs that a bound on the items of a user keeps and drops."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism, require_complete
from discreet.mechanisms.noises import laplace_deviation
from discreet.mechanisms.parameters import require_rho
from discreet.mechanisms.published import noted, published
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee, Sensitivity, require_one
from discreet.privacy.validation import require_number, require_whole
from discreet.release.facts import Facts, Summed
from discreet.release.intervals import Law
from discreet.release.kept import MOST_NOISE, KeptShare
from discreet.release.release import Release, changed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.tables.histogram import Histogram

__all__ = ["KeptPairs"]

_L0_LIMIT = 2**20
_TIMES, _LEAST_MOST = 20, 100


@dataclass(frozen=True, kw_only=True)
class KeptPairs(HistogramMechanism):
    """A mechanism that releases how many (user, item) pairs a bound `l0` keeps and drops, for the share of kept pairs.

    A user of n items adds min(n, l0) to the kept pairs, and min(n, most) - min(n, l0) to the dropped pairs. The number
    of all pairs has no bound for one user, so items of a user beyond `most` are left out of both numbers. If users have
    more than `most` items, the share of kept pairs is therefore too high, never too low, except for the noise.

    Both sums get noise of one scale. With `rho` it is discrete Gaussian: the squared l2-sensitivity of the pair is
    l0^2 + (most - l0)^2, which a user of `most` items reaches, and sigma^2 is that divided by 2 rho. With `epsilon` it
    is discrete Laplace: the l1-sensitivity is `most`, and the scale is most/epsilon. The guarantee is per user, added
    or removed.

    The histogram has the number of distinct items of each user as its counts, at most `most` each: one user changes
    one count. `CountsWithShare` makes it from rows.

    Args:
        l0: The bound: from 1 to 2^20.
        most: The largest number of items of a user that the sums include: above l0, at most 2^26. Choose it without the
            data.
        rho: The privacy cost in zCDP: above 0 and at most 10,000. Give exactly one of rho and epsilon.
        epsilon: The privacy cost in pure DP: above 0 and at most 100.

    Raises:
        ParameterError: A parameter is out of range, or the noise would have a scale outside 0.001 to 1e9.

    Example:
        >>> import discreet as dp
        >>> pairs = dp.mechanisms.KeptPairs(l0=3, most=60, rho=0.01)
        >>> print(pairs.guarantee)
        0.01-zCDP per user (added or removed)
        >>> users = dp.Histogram.from_counts(range(50_000), [4] * 50_000, l0=1, linf=60, complete=True)
        >>> abs(pairs.release(users).kept_share.value - 0.75) < 0.1
        True

    Source:
        Canonne, Kamath and Steinke (2020), Theorem 4, for Gaussian noise on one integer; Rogers (2023), Theorem 6, for
        both sums together, whose costs l0^2/(2 sigma^2) and (most - l0)^2/(2 sigma^2) add up; Rogers (2023), Theorem 3,
        for Laplace noise, with the rho of a pure epsilon.
    """

    releases = "pairs"
    lists_items = "all"

    l0: int
    most: int
    rho: float | None = None
    epsilon: float | None = None

    def __post_init__(self) -> None:
        l0 = require_whole("l0", self.l0, 1, _L0_LIMIT)
        self._set(l0=l0, most=require_whole("most", self.most, l0 + 1, 2**26))
        require_one(self.rho, self.epsilon)
        if self.rho is not None:
            self._set(rho=require_rho(self.rho))
        else:
            self._set(epsilon=require_number("epsilon", self.epsilon, 0, 100))
        if not 1e-3 < self.scale <= 1e9:
            raise ParameterError(
                "the noise of kept pairs would have a scale outside 0.001 to 1e9; give another rho or epsilon, or a "
                "smaller l0 and most"
            )

    @staticmethod
    def most_for(l0: int) -> int:
        """Return the `most` that the functions of the package use for a given bound: 20 l0, and at least 100.

        Args:
            l0: The bound: from 1 to 2^20.

        Returns:
            A number of items.

        Raises:
            ParameterError: l0 is out of range.
        """
        return max(_LEAST_MOST, _TIMES * require_whole("l0", l0, 1, _L0_LIMIT))

    @property
    def squared_change(self) -> int:
        """Return the squared l2-sensitivity of both sums: l0^2 + (most - l0)^2.

        The vector (min(n, l0), min(n, most) - min(n, l0)) grows in both entries with n, up to n = most.
        """
        return self.l0**2 + (self.most - self.l0) ** 2

    @property
    def scale(self) -> float:
        """Return the scale of the noise of each sum: sigma of Gaussian noise, or the scale of Laplace noise."""
        if self.rho is not None:
            return round_up(math.sqrt(self.squared_change / (2 * self.rho)), 8)
        assert self.epsilon is not None
        return round_up(self.most / self.epsilon)

    @property
    def law(self) -> Law:
        """Return the law of the noise: "gaussian" with rho, "laplace" with epsilon."""
        return "gaussian" if self.rho is not None else "laplace"

    @cached_property
    def noise(self) -> _core.Noise:
        """Return the distribution of the noise of each sum."""
        if self.law == "gaussian":
            return _core.Noise.discrete_gaussian(self.scale)
        return _core.Noise.discrete_laplace(self.scale)

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the noise of each sum, in pairs."""
        return self.scale if self.law == "gaussian" else laplace_deviation(self.scale)

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: one user changes one count, that of the user, by at most `most`."""
        return Sensitivity(l0=1, linf=self.most)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: rho-zCDP, or epsilon-DP."""
        if self.rho is not None:
            return Guarantee(self.rho, 0.0)
        assert self.epsilon is not None
        return Guarantee.from_dp(self.epsilon)

    def release_chance(self, users: int) -> float:
        """Return one: both sums are always released."""
        return 1.0

    def _sums(self, numbers: NDArray[np.int64]) -> tuple[int, int]:
        """Return the exact numbers of kept and dropped pairs. They are as sensitive as the data.

        `numbers` has the number of items of each user.
        """
        kept = int(np.minimum(numbers, self.l0).sum())
        return kept, int(np.minimum(numbers, self.most).sum()) - kept

    def _measured(self, numbers: NDArray[np.int64], rng: _core.Rng) -> tuple[int, int]:
        """Return the noisy numbers of kept and dropped pairs, drawn from the random stream of a release."""
        kept, dropped = np.array(self._sums(numbers), np.int64) + rng.sample(self.noise, 2)
        return int(kept), int(dropped)

    def share(self, kept: int, dropped: int) -> KeptShare:
        """Return the share of kept pairs and the standard deviation of its noise, from the noisy sums.

        Args:
            kept: The noisy number of kept pairs.
            dropped: The noisy number of dropped pairs.

        Returns:
            A KeptShare.
        """
        return KeptShare.of(kept=kept, dropped=dropped, deviation=self.deviation)

    def note(self, share: KeptShare) -> str:
        """Return a note for readers of a release about its share of kept pairs.

        Args:
            share: The estimate.

        Returns:
            One line of text.
        """
        if share.sigma > MOST_NOISE:
            return (
                "the noise hides the share of kept (user, item) pairs: there are too few pairs for this rho or epsilon"
            )
        return (
            f"about {100 * share.value:.1f} % of the (user, item) pairs were kept (sigma {100 * share.sigma:.2g} %), "
            f"not counting a user's items beyond {self.most:,}; if users have more, the share is lower"
        )

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        own = super()._facts(l0, summed)
        return replace(
            own,
            items=frozenset({"kept", "dropped"}),
            rows=2,
            l0=self.l0,
            largest_l0=self.l0,
            claims_l0=False,
            linf=1,
            most=self.most,
            clips=True,
            claims=("kept_share",),
        )

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        kept, dropped = self._measured(histogram._in_any_order()[1], rng)
        labels = _core.Labels.from_sequence(["kept", "dropped"])
        noisy = np.array([kept, dropped], np.int64)
        release = published(
            self, labels, np.arange(2), rng, noisy=noisy, sigmas=self.deviation, clipped=True, most=self.most
        )
        return noted(changed(release, l0=self.l0, kept_share=self.share(kept, dropped)))
