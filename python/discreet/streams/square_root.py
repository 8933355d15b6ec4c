"""The square root mechanism: continual counting with the square root of the prefix-sum matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.errors import ParameterError
from discreet.streams.base import ITEM_BYTES, NodeSums, gaussian
from discreet.streams.horizon import HorizonMechanism
from discreet.streams.release_rule import ReleaseRule
from discreet.theorems import fichtenberger2023

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SquareRootMechanism"]

_HORIZON_LIMIT = 2**13
"""The time of a round grows with the number of rounds before it, for each item."""
_SCALE_LIMIT = 2.0**25
"""Noise of this scale exceeds 32 bits with a chance of e^-2048."""


@dataclass(frozen=True, kw_only=True)
class SquareRootMechanism(HorizonMechanism):
    """A continual mechanism for short streams, with the least noise of the four.

    Let x_t be an item's count in round t alone, and f_k the coefficients of (1 - z)^(-1/2). Let Q be a power of two,
    and c_k the whole number nearest to Q f_k. The mechanism computes the sums c_0 x_t + c_1 x_(t-1) + ... and adds
    discrete Gaussian noise of scale Q sigma to each. One event changes the sums of l0 items by at most linf times a
    column of c. So the noisy sums are rho-zCDP with rho = l0 linf^2 |c|^2 / (2 Q^2 sigma^2).

    The estimates are post-processing of the noisy sums. Weights b, the real numbers that invert c, turn the sums into
    running counts plus weighted noise. One half and 1/(3 Q) are added to the result, and it is rounded down. This is
    computed without numerical error.

    The guarantee is delta-approximate (sqrt(rho) + sqrt(-log(1 - delta)))^2-zCDP per event, or per user as for
    `BinaryMechanism`. For each item the stream keeps a 32-bit number for every round so far, and a round takes time in
    proportion to them.

    Args:
        sigma: The scale of the noise in units of one count, at least 1e-3. Q sigma is at most 2^25.
        delta: The chance that the guarantee fails, between 0 and 1.
        l0: The most items that one event (or user) contributes.
        horizon: The number of rounds, from 1 to 8,192, fixed before the data is seen.
        linf: The most times that a user contributes an item. It is 1 for `unit="event"`.
        unit: The protected unit, "event" or "user". For "user" see `BinaryMechanism`.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.streams.SquareRootMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=365)
        >>> binary = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=365)
        >>> mechanism.threshold(365) < binary.threshold(255)
        True

    Source:
        Fichtenberger, Henzinger and Upadhyay (2023), with integer noise; rho is Canonne, Kamath and Steinke (2020),
        Theorem 4.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon > _HORIZON_LIMIT:
            raise ParameterError(
                f"SquareRootMechanism takes at most {_HORIZON_LIMIT:,} rounds, not {self.horizon:,}; "
                "use HonakerMechanism or BinaryMechanism, or longer rounds"
            )
        if self._scale > _SCALE_LIMIT:
            raise ParameterError(
                f"SquareRootMechanism takes a sigma of at most {_SCALE_LIMIT / _unit(self.horizon):g} "
                f"for {self.horizon:,} rounds; use HonakerMechanism or BinaryMechanism"
            )

    @staticmethod
    def moved(horizon: int) -> float:
        """Return the squared l2 norm of a column of c, in units of Q: the squared sensitivity of one item's sums."""
        return sum(c * c for c in _column(min(horizon, _HORIZON_LIMIT))) / _unit(min(horizon, _HORIZON_LIMIT)) ** 2

    @property
    def column(self) -> tuple[int, ...]:
        """The weights c of a count in the sum of its own round, of the next round and so on, in units of 1/c[0]."""
        return _column(self.horizon)

    @property
    def _scale(self) -> float:
        """The scale of the noise of a sum, Q sigma."""
        return _unit(self.horizon) * self.sigma

    @property
    def widest(self) -> int:
        """The last round."""
        return self.horizon

    @property
    def item_bytes(self) -> int:
        """The most bytes that a stream holds for one item, without its label: four for every round, and its sums."""
        return ITEM_BYTES + 32 * (self.horizon // 8 + 1) + 64 + 8

    def deviation(self, number: int) -> float:
        """Return the standard deviation of the estimates of a round."""
        _, squares = _norms(self.horizon)
        return math.sqrt(self.sigma**2 * squares[number - 1] + 1 / 12)

    def rule(self, number: int) -> ReleaseRule:
        """Return the release rule of a round, from the tail of its weighted sum of discrete Gaussians."""
        # The noise is the weighted sum plus 1/2 and 1/(3 Q), rounded down.
        unit = _unit(self.horizon)
        total, square = (norm[number - 1] * (1 + 1e-11) for norm in _norms(self.horizon))

        def tail(m: int) -> float:
            return fichtenberger2023.weighted_tail(self._scale, total, square, (m - 0.5 - 0.34 / unit) * unit)

        return ReleaseRule.least(tail, self.linf, self.novel_chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """Return all rounds so far, each with the scale of the noise of its sum."""
        return [(node, self._scale) for node in range(1, number + 1)]

    def sums(self) -> NodeSums:
        """Return a new object that computes the noise of all items, round after round."""
        return _Estimates(gaussian(self._scale), self.column)


def _unit(horizon: int) -> int:
    """Return Q, the least power of two that is at least twice the horizon. It keeps b within its stored precision."""
    return 2 << (horizon - 1).bit_length()


@lru_cache(maxsize=16)
def _column(horizon: int) -> tuple[int, ...]:
    """Return c, the coefficients f in units of 1/Q, rounded. Privacy holds for any whole numbers."""
    return tuple(round(_unit(horizon) * f) for f in fichtenberger2023.factor(horizon))


@lru_cache(maxsize=16)
def _norms(horizon: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of the absolute values and of the squares of the first 1, 2, 3, ... weights of b."""
    weights = _core.WeightedNoise(np.array(_column(horizon))).weights / 2.0**62
    return np.cumsum(np.abs(weights)), np.cumsum(weights**2)


class _Estimates(NodeSums):
    """The weighted and rounded sum of every item's noise over all rounds so far."""

    def __init__(self, noise: _core.Noise, column: tuple[int, ...]) -> None:
        self._noise = noise
        self._column = column
        self._weighted = _core.WeightedNoise(np.array(self._column))

    def advance(self, noise: _core.NodeNoise, number: int) -> NDArray[np.int64]:
        """Return the noise of every item in a round."""
        sums, unsettled = self._weighted.advance(noise, number, self._noise)
        for item in unsettled:  # about one in 1e13, whose rounding needs more bits
            sums[item] = rounded(self._column, self._weighted.history(item)[:number])
        return sums


def rounded(column: tuple[int, ...], noises: list[int], point: int = 64) -> int:
    """Return the rounded weighted sum of noises, the last one with the first weight.

    Starts with weights of `point` binary places, and doubles them until the rounding is certain.
    """
    bits, reach, rounds = column[0].bit_length() - 1, sum(map(abs, noises)), len(noises)
    while True:
        # As in the Rust kernel: every weight has an error of at most two units of its last place.
        weights: list[int] = []
        for n in range(rounds):
            known = sum(map(int.__mul__, weights, column[n:0:-1]))
            weights.append(((1 << (point + bits)) - known + (1 << (bits - 1))) >> bits)
        total = sum(map(int.__mul__, weights, reversed(noises)))
        total += (1 << (point + bits - 1)) + (1 << point) // 3
        low, high = ((total + error) >> (point + bits) for error in (-2 * reach, 2 * reach + 1))
        if low == high:
            return low
        point *= 2
