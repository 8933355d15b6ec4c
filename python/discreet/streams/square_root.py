"""Running counts by the square root of the matrix that counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

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
"""A round costs each item time in proportion to the rounds before it."""
_SCALE_LIMIT = 2.0**25
"""So that noise fits into 32 bits but for a chance of e^-2048."""


@dataclass(frozen=True, kw_only=True)
class SquareRootMechanism(HorizonMechanism):
    """Running counts after every round of a short stream, with the least noise of all.

    Fichtenberger, Henzinger and Upadhyay (2023), with integer noise. Of the counts x by round of an item there are
    sums c_0 x_t + c_1 x_(t-1) + ..., with c_k the whole number nearest to Q f_k, f the coefficients of (1 - x)^(-1/2)
    and Q a power of two; each has discrete Gaussian noise of scale Q sigma. An event moves the sums of l0 items by a
    column of c at most, so that they are rho-zCDP with rho = l0 linf^2 |c|^2/(2 Q^2 sigma^2) (Canonne, Kamath and
    Steinke 2020, Theorem 4), and so is what is made of them: the sums weighted by b, the real numbers that undo c,
    which are the running counts and the noises weighted by b, rounded together to the whole number below a half and
    1/(3 Q) more. That is computed without error.

    delta-approximate (sqrt(rho) + sqrt(-log(1 - delta)))^2-zCDP per event, or per user as for `BinaryMechanism`. An
    item has a number of 32 bits for every round so far, and a round takes time in proportion to them: up to 8,192
    rounds. Raises ParameterError where a parameter is out of range.
    """

    sigma: float
    delta: float
    l0: int
    horizon: int
    linf: int = 1
    unit: Literal["event", "user"] = "event"

    def __post_init__(self) -> None:
        self._check()
        if self.horizon > _HORIZON_LIMIT:
            raise ParameterError(
                f"the square root mechanism takes at most {_HORIZON_LIMIT:,} rounds, not {self.horizon:,}: "
                "take a HonakerMechanism or a BinaryMechanism, or longer rounds"
            )
        if self._scale > _SCALE_LIMIT:
            raise ParameterError(
                f"the square root mechanism takes a sigma of at most {_SCALE_LIMIT / _unit(self.horizon):g} "
                f"with {self.horizon:,} rounds: take a HonakerMechanism or a BinaryMechanism"
            )

    @staticmethod
    def moved(horizon: int) -> float:
        """The same of a column of c, in units of Q."""
        return sum(c * c for c in _column(min(horizon, _HORIZON_LIMIT))) / _unit(min(horizon, _HORIZON_LIMIT)) ** 2

    @property
    def column(self) -> tuple[int, ...]:
        """c: how much of a count is in the sum of its own round, of the next one and so on, in units of 1/c[0]."""
        return _column(self.horizon)

    @property
    def _scale(self) -> float:
        """The scale of the noise of a sum."""
        return _unit(self.horizon) * self.sigma

    @property
    def widest(self) -> int:
        """The last round."""
        return self.horizon

    @property
    def item_bytes(self) -> int:
        """How many bytes a stream keeps for one item at most, beside its label: four for every round, and sums."""
        return ITEM_BYTES + 32 * (self.horizon // 8 + 1) + 64 + 8

    def deviation(self, number: int) -> float:
        """The standard deviation of the estimates of a round."""
        _, squares = _norms(self.horizon)
        return math.sqrt(self.sigma**2 * squares[number - 1] + 1 / 12)

    def rule(self, number: int) -> ReleaseRule:
        """Return the rule that a new count of linf passes with the round's share of delta at most.

        The noise is the weighted sum plus 1/2 and 1/(3 Q), rounded down.
        """
        unit = _unit(self.horizon)
        total, square = (norm[number - 1] * (1 + 1e-11) for norm in _norms(self.horizon))

        def tail(m: int) -> float:
            return fichtenberger2023.weighted_tail(self._scale, total, square, (m - 0.5 - 0.34 / unit) * unit)

        return ReleaseRule.least(tail, self.linf, self.novel_chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """All rounds so far, and the scale of the noises of their sums."""
        return [(node, self._scale) for node in range(1, number + 1)]

    def sums(self) -> NodeSums:
        """The noise of all items, from round to round."""
        return _Estimates(self)


def _unit(horizon: int) -> int:
    """Q: the least power of two from twice the horizon on, so that b can be computed as exactly as it is written."""
    return 2 << (horizon - 1).bit_length()


@lru_cache(maxsize=16)
def _column(horizon: int) -> tuple[int, ...]:
    """c: the factor in whole numbers. Any numbers near to it would do."""
    return tuple(round(_unit(horizon) * f) for f in fichtenberger2023.factor(horizon))


@lru_cache(maxsize=16)
def _norms(horizon: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each number of weights the sum of their sizes, and that of their squares."""
    weights = _core.WeightedNoise(np.array(_column(horizon))).weights / 2.0**62
    return np.cumsum(np.abs(weights)), np.cumsum(weights**2)


class _Estimates(NodeSums):
    """For every item its noises of all rounds, weighted and rounded."""

    def __init__(self, mechanism: SquareRootMechanism) -> None:
        self._noise = gaussian(mechanism._scale)
        self._column = mechanism.column
        self._weighted = _core.WeightedNoise(np.array(self._column))

    def advance(self, noise: _core.NodeNoise, number: int) -> NDArray[np.int64]:
        """The noise of every item in a round."""
        sums, unsettled = self._weighted.advance(noise, number, self._noise)
        for item in unsettled:  # one in 1e13
            sums[item] = rounded(self._column, self._weighted.history(item)[:number])
        return sums


def rounded(column: tuple[int, ...], noises: list[int], point: int = 64) -> int:
    """The sum of noises, the last one with the first weight, rounded: with so many bits, or as many as it takes."""
    bits, reach, rounds = column[0].bit_length() - 1, sum(map(abs, noises)), len(noises)
    while True:
        # As in the kernel: every weight is at most two units off.
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
