"""Sparse vector: finds a query above a threshold, at a privacy cost that does not grow with the number of queries.

After B. Ghazi, R. Kumar, P. Manurangsi, "On Avoiding the Union Bound When Answering Multiple Differentially Private
Queries" (2020), arXiv 2012.09116; with discrete Laplace noise. Noisy values and thresholds are integers, so the
comparison `>=` is exact.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet import _core
from discreet.cached import cached_property
from discreet.mechanisms.base import Opening, opened_rng
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_number, require_whole
from discreet.queries.answers import QueryMechanism, require_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["AboveThreshold", "Crossing", "PermutedAboveThreshold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The index of a query that reached the threshold; safe to publish.

    Args:
        index: The index of the query, counted from 0, or None if no query reached the threshold.
        guarantee: The guarantee, fixed before any value is read.
        made_by: The mechanism and its parameters.
        seeded: True if the randomness was seeded. A seeded answer gives no privacy.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.AboveThreshold(epsilon=1.0, threshold=1000)
        >>> mechanism.release([0, 1_000_000, 0]).index
        1
    """

    index: int | None
    guarantee: Guarantee
    made_by: str
    seeded: bool = False

    @property
    def spent(self) -> Guarantee:
        """The privacy cost of the answer: all of the guarantee."""
        return self.guarantee

    @property
    def digest(self) -> str:
        """The SHA-256 of the answer, in hexadecimal."""
        return hashlib.sha256(repr(self.index).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class AboveThreshold(QueryMechanism[Crossing]):
    """A mechanism that returns the index of the first query whose noisy value reaches a noisy threshold, or None.

    It is epsilon-DP for any number of queries. The threshold has noise of scale 2/epsilon, drawn once. Each query has
    its own noise of scale 4/epsilon. Only the index is published. One user changes the value of each query by at most
    one, up or down.

    Args:
        epsilon: The epsilon of the guarantee, above 1e-6 and at most 100.
        threshold: The value to reach, a whole number from -2^40 to 2^40.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.AboveThreshold(epsilon=1.0, threshold=1000)
        >>> print(mechanism.guarantee)
        0.462118-zCDP per user (added or removed), and (1, 0)-DP

    Source:
        Dwork and Roth (2014), Theorem 3.23; Ghazi, Kumar and Manurangsi (2020), Theorem 3.
    """

    epsilon: float
    threshold: int

    def __post_init__(self) -> None:
        self._set(
            epsilon=require_number("epsilon", self.epsilon, 1e-6, 100),
            threshold=require_whole("threshold", self.threshold, -(2**40), 2**40),
        )

    @property
    def guarantee(self) -> Guarantee:
        """epsilon-DP, and the zCDP that it implies."""
        return Guarantee.from_dp(self.epsilon, tight=True)

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the noise on the threshold and on a query, rounded up."""
        return round_up(2 / self.epsilon), round_up(4 / self.epsilon)

    @cached_property
    def noises(self) -> tuple[_core.Noise, _core.Noise]:
        """The laws of the noise on the threshold and on a query."""
        first, second = self.scales
        return _core.Noise.discrete_laplace(first), _core.Noise.discrete_laplace(second)

    def release(self, data: object, *, rng: _core.Rng | Opening | None = None) -> Crossing:
        """Return the first query that reaches the threshold, with noise on both.

        Args:
            data: A list or one-dimensional array of whole numbers, one for each query. Values are clipped to -2^40 to
                2^40.
            rng: Randomness for tests (`discreet.testing.seeded_rng`). By default the system provides it.

        Returns:
            A Crossing.

        Raises:
            ParameterError: `data` does not hold whole numbers.
            EntropyError: The system provides no randomness.
        """
        whole = require_values(data)
        stream = opened_rng(rng)
        order = self._order(len(whole), stream)
        place = _core.first_above(whole if order is None else whole[order], self.threshold, *self.noises, stream)
        return Crossing(
            index=place if order is None or place is None else int(order[place]),
            guarantee=self.guarantee,
            made_by=repr(self),
            seeded=stream.is_seeded,
        )

    def _order(self, size: int, rng: _core.Rng) -> NDArray[np.int64] | None:
        """Return the order of the search, or None for the order of the queries. It must not depend on private data."""
        return None


@dataclass(frozen=True, kw_only=True)
class PermutedAboveThreshold(AboveThreshold):
    """A mechanism that runs `AboveThreshold` on the queries in a random order; epsilon-DP.

    All queries far above the threshold have about the same probability to be found.

    Args:
        epsilon: The epsilon of the guarantee, above 1e-6 and at most 100.
        threshold: The value to reach, a whole number from -2^40 to 2^40.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.queries.PermutedAboveThreshold(epsilon=1.0, threshold=1000)
        >>> mechanism.release([0, 1_000_000, 0]).index
        1

    Source:
        Ghazi, Kumar and Manurangsi (2020), Algorithm 2 and Observation 7.
    """

    def _order(self, size: int, rng: _core.Rng) -> NDArray[np.int64]:
        return _core.shuffled(size, rng)
