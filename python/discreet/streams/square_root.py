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

__all__ = [
    "LONGEST_HORIZON",
    "WIDEST_SCALE",
    "SquareRootMechanism",
    "WeightedSums",
    "column_of",
    "norms_of",
    "rounded",
    "unit_of",
    "weighted_bytes",
]

LONGEST_HORIZON = 2**13
"""The most rounds. The time of a round grows with the number of rounds before it, for each item."""
WIDEST_SCALE = 2.0**25
"""Noise of this scale exceeds 32 bits with a chance of e^-2048."""


@dataclass(frozen=True, kw_only=True)
class SquareRootMechanism(HorizonMechanism):
    """A continual mechanism for short streams, with the least noise of all, for up to about 1,000 rounds.

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
        rounds: The most rounds in which the stream counts a user, as for `BinaryMechanism`. The inner product of two
            columns of c falls with their distance, so one user changes the sums most in consecutive rounds.

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
        if self.horizon > LONGEST_HORIZON:
            raise ParameterError(
                f"SquareRootMechanism takes at most {LONGEST_HORIZON:,} rounds, not {self.horizon:,}; "
                "use HonakerMechanism or BinaryMechanism, or longer rounds"
            )
        if self._scale > WIDEST_SCALE:
            raise ParameterError(
                f"SquareRootMechanism takes a sigma of at most {WIDEST_SCALE / unit_of(self.horizon):g} "
                f"for {self.horizon:,} rounds; use HonakerMechanism or BinaryMechanism"
            )

    @staticmethod
    def moved(horizon: int, rounds: int = 1) -> float:
        """Return the squared l2 norm of a sum of consecutive columns of c, in units of Q.

        It is the squared sensitivity of one item's sums to events in at most `rounds` rounds.

        Args:
            horizon: The number of rounds.
            rounds: The most rounds with events.
        """
        return _moved(min(horizon, LONGEST_HORIZON), rounds)

    @property
    def column(self) -> tuple[int, ...]:
        """The weights c of a count in the sum of its own round, of the next round and so on, in units of 1/c[0]."""
        return column_of(self.horizon)

    @property
    def _scale(self) -> float:
        """The scale of the noise of a sum, Q sigma."""
        return unit_of(self.horizon) * self.sigma

    @property
    def widest(self) -> int:
        """The last round."""
        return self.horizon

    @property
    def item_bytes(self) -> int:
        """The most bytes that a stream holds for one item, without its label: four for every round, and its sums."""
        return weighted_bytes(self.horizon)

    def deviation(self, number: int) -> float:
        """Return the standard deviation of the estimates of a round."""
        _, squares = norms_of(self.horizon)
        return math.sqrt(self.sigma**2 * squares[number - 1] + 1 / 12)

    def rule(self, number: int) -> ReleaseRule:
        """Return the release rule of a round, from the tail of its weighted sum of discrete Gaussians."""
        # The noise is the weighted sum plus 1/2 and 1/(3 Q), rounded down.
        unit = unit_of(self.horizon)
        total, square = (norm[number - 1] * (1 + 1e-11) for norm in norms_of(self.horizon))

        def tail(m: int) -> float:
            return fichtenberger2023.weighted_tail(self._scale, total, square, (m - 0.5 - 0.34 / unit) * unit)

        return ReleaseRule.least(tail, self.alone, self.novel_chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """Return all rounds so far, each with the scale of the noise of its sum."""
        return [(node, self._scale) for node in range(1, number + 1)]

    def sums(self) -> NodeSums:
        """Return a new object that computes the noise of all items, round after round."""
        return WeightedSums(gaussian(self._scale), self.column)


def unit_of(horizon: int) -> int:
    """Return Q, the least power of two that is at least twice the horizon. It keeps b within its stored precision."""
    return 2 << (horizon - 1).bit_length()


@lru_cache(maxsize=16)
def column_of(horizon: int) -> tuple[int, ...]:
    """Return c, the coefficients f in units of 1/Q, rounded. Privacy holds for any whole numbers."""
    return tuple(round(unit_of(horizon) * f) for f in fichtenberger2023.factor(horizon))


@lru_cache(maxsize=16)
def _moved(horizon: int, rounds: int) -> float:
    return fichtenberger2023.squared_reach(column_of(horizon), rounds) / unit_of(horizon) ** 2


@lru_cache(maxsize=16)
def norms_of(horizon: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of the absolute values and of the squares of the first 1, 2, 3, ... weights of b."""
    weights = _core.WeightedNoise(np.array(column_of(horizon))).weights / 2.0**62
    return np.cumsum(np.abs(weights)), np.cumsum(weights**2)


def weighted_bytes(horizon: int) -> int:
    """Return the most bytes that `WeightedSums` and a stream hold for one item, without its label."""
    return ITEM_BYTES + 32 * (horizon // 8 + 1) + 64 + 16 + 8


class WeightedSums(NodeSums):
    """The weighted and rounded sum of every item's noise over all rounds so far, in one epoch or several."""

    def __init__(self, noise: _core.Noise, column: tuple[int, ...]) -> None:
        self._noise = noise
        self._column = column
        self._weighted = _core.WeightedNoise(np.array(self._column))
        self._epoch = 0

    def advance(self, noise: _core.NodeNoise, number: int) -> NDArray[np.int64]:
        """Return the noise of every item in a round. Rounds must not decrease from call to call."""
        return self.in_epoch(noise, 0, number)

    def in_epoch(self, noise: _core.NodeNoise, epoch: int, number: int) -> NDArray[np.int64]:
        """Return the noise of every item in a round of an epoch, which includes the last noise of all earlier epochs.

        Round 0 of an epoch is the end of the epoch before it.
        """
        # One epoch at a time, so that an interrupt need not wait for all of them.
        for earlier in range(self._epoch + 1, epoch):
            self._weighted.advance(noise, (earlier, 0), self._noise)
        self._epoch = epoch
        sums, unsettled = self._weighted.advance(noise, (epoch, number), self._noise)
        for item in unsettled:  # about one in 1e13, whose rounding needs more bits
            *whole, last = self._weighted.history(noise, item, self._noise)
            sums[item] = rounded(self._column, [*whole, last[:number]])
        return sums


def rounded(column: tuple[int, ...], epochs: list[list[int]], point: int = 64) -> int:
    """Return the rounded weighted sum of noises by epoch, the last one of each epoch with the first weight.

    Starts with weights of `point` binary places, and doubles them until the rounding is certain.
    """
    bits = column[0].bit_length() - 1
    reach, rounds = sum(sum(map(abs, noises)) for noises in epochs), max(map(len, epochs))
    while True:
        # As in the Rust kernel: every weight has an error of at most two units of its last place.
        weights: list[int] = []
        for n in range(rounds):
            known = sum(map(int.__mul__, weights, column[n:0:-1]))
            weights.append(((1 << (point + bits)) - known + (1 << (bits - 1))) >> bits)
        total = sum(sum(map(int.__mul__, weights, reversed(noises))) for noises in epochs)
        total += (1 << (point + bits - 1)) + (1 << point) // 3
        low, high = ((total + error) >> (point + bits) for error in (-2 * reach, 2 * reach + 1))
        if low == high:
            return low
        point *= 2
