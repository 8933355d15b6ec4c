"""`ExponentialMechanism`: the k most common of given items in order, without a stop element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.errors import ParameterError
from discreet.mechanisms.counts.given_counts import GivenItems
from discreet.mechanisms.noises import GumbelNoise
from discreet.mechanisms.parameters import LINF_LIMIT, require_items, require_rho
from discreet.mechanisms.published import published
from discreet.privacy.conversion import cdp_rho, round_up
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_flag, require_number, require_whole
from discreet.release.facts import RANKS
from discreet.theorems import durfee_rogers2019, rogers2023

if TYPE_CHECKING:
    from discreet import _core
    from discreet.release.release import Release
    from discreet.tables.histogram import Histogram

__all__ = ["ExponentialMechanism"]

_NEVER = -5000.0
"""The offset of the kernel's stop element, whose probability is below e^(-5000).

The guarantee holds with the stop element too: it is one more candidate, whose score no user changes.
"""


@dataclass(frozen=True, kw_only=True)
class ExponentialMechanism(GumbelNoise, GivenItems):
    """A mechanism that releases k of the given `items`, the most common first, without counts.

    The exponential mechanism draws one item after the other without replacement. It draws an item of c users with a
    probability proportional to e^(c/scale). The k items in order have the law of the k largest counts with Gumbel noise
    of this scale. Items without users are candidates too, so the release always has k items and needs no delta. One
    user changes any number of counts, each by at most linf and all in the same direction. With epsilon = linf/scale
    each draw has the bounded range epsilon. The guarantee is (k epsilon)-DP and (k epsilon^2/8)-zCDP per user, added or
    removed.

    All other whole numbers from 0 to 2^35 can be the scores of items: give them as counts to `Histogram.from_counts`,
    with linf as the most that one user changes a score. If a user may raise some scores and lower others, each by at
    most D, the range is that of 2 D: give linf = 2 D.

    Args:
        items: The candidates: distinct integers, strings or bytes. Choose them without the data, or take them from a
            release.
        scale: The scale of the Gumbel noise: above 0.001 and at most 1e12 users.
        k: The number of items to release: from 1 to the number of candidates.
        linf: The most that one user adds to one count: from 1 to 2^30.
        tight: If True, use the exact rho of a bounded range instead of epsilon^2/8.

    Raises:
        ParameterError: A parameter is out of range, or items repeat.
        SchemaError: The items are of mixed types.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.mechanisms.ExponentialMechanism.from_epsilon(items=("a", "b", "c"), epsilon=1, k=2)
        >>> print(mechanism.guarantee)
        0.0625-zCDP per user (added or removed), and (1, 0)-DP
        >>> table = dp.Histogram.from_counts(["a", "b", "x"], [9000, 8000, 9500], l0=None, linf=1, complete=True)
        >>> mechanism.release(table).items
        ['a', 'b']

    Source:
        McSherry and Talwar (2007); Durfee and Rogers (2019), for the Gumbel noise, the draws without replacement and
        the bounded range; Rogers (2023), Theorem 5, for the rho.
    """

    _columns = (RANKS,)

    items: tuple[str | int | bytes, ...]
    scale: float
    k: int = 1
    linf: int = 1
    tight: bool = False

    def __post_init__(self) -> None:
        self._set(
            items=require_items(self.items),
            scale=require_number("scale", self.scale, 1e-3, 1e12),
            k=require_whole("k", self.k, 1),
            linf=require_whole("linf", self.linf, 1, LINF_LIMIT),
            tight=require_flag("tight", self.tight),
        )
        if self.k > len(self.items):
            raise ParameterError(f"k ({self.k}) must be at most the number of items ({len(self.items)}): lower k")
        _ = self.guarantee

    @classmethod
    def from_rho(cls, *, items: tuple[str | int | bytes, ...], rho: float, k: int = 1, linf: int = 1) -> Self:
        """Return the mechanism that guarantees rho-zCDP, with epsilon = sqrt(8 rho/k)."""
        scale = rogers2023.gumbel_scale(require_rho(rho), require_whole("k", k, 1), _linf(linf))
        return cls(items=items, scale=scale, k=k, linf=linf)

    @classmethod
    def from_epsilon(
        cls, *, items: tuple[str | int | bytes, ...], epsilon: float, delta: float = 0.0, k: int = 1, linf: int = 1
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP; delta may be 0.

        It takes the smaller scale of two: epsilon/k for each draw; and with delta a conversion from a rho.
        """
        epsilon = require_number("epsilon", epsilon, 0, 1000)
        delta = require_number("delta", delta, 0, 1, open_low=False, open_high=True)
        shared = cls(items=items, scale=round_up(require_whole("k", k, 1) * _linf(linf) / epsilon, 64), k=k, linf=linf)
        if delta == 0 or k == 1:
            return shared
        converted = cls.from_rho(items=items, rho=cdp_rho(epsilon, delta), k=k, linf=linf)
        return min(shared, converted, key=lambda mechanism: mechanism.scale)

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: any number of items per user, each count changed by at most linf."""
        return Sensitivity(l0=None, linf=self.linf)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: (k epsilon)-DP and (k epsilon^2/8)-zCDP.

        Source:
            Rogers (2023), Theorem 5, for one draw of bounded range epsilon; Theorem 6, for the composition of k draws.
        """
        rho = rogers2023.gumbel_rho(self.epsilon, self.k, tight=self.tight)
        return Guarantee(rho, 0.0, dp=(round_up(self.k * self.epsilon, 1), 0.0))

    @property
    def raised(self) -> int:
        """Return one, which is added to every count before a draw.

        The kernel never draws a count of zero, but the candidates must not depend on the data. The same number on all
        counts changes no probability.
        """
        return 1

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is released, if no other candidate has users."""
        return durfee_rogers2019.exponential_mechanism_chance(self.gamma, users, len(self.items) - 1, self.k)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        labels, exact = self._counted(histogram)
        counts = exact + self.raised
        rows, _ = rng.peel(counts, int(counts.max()), self.gamma, 0, _NEVER, self.k)
        return published(self, labels, np.array(rows, np.int64), rng, ranked=True)


def _linf(linf: object) -> int:
    return require_whole("linf", linf, 1, LINF_LIMIT)
