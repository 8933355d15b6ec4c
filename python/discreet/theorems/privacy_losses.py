"""Rigorous delta of many runs of a mechanism, from its privacy losses.

A pair of laws P, Q has the loss L(x) = log P(x)/Q(x), and delta(epsilon) = E_P[(1 - e^(epsilon - L))+]. Over
independent runs losses add up.

`delta_of` rounds losses to a grid and splits each mass so that P and Q keep their masses. The true pair is then a
post-processing of the rounded one, so delta can only grow. It tilts the law by e^(theta L) so that the mean is
epsilon. `_core.compose` convolves the laws and bounds its own rounding. A bound of the mass outside the window is
added. Elementary functions are assumed to be accurate to 16 units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.privacy.conversion import round_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PrivacyLoss", "bounded_loss", "bounded_rho", "delta_of", "response_loss"]

_U = 2.0**-53
_GROWTH, _GROWTH_OF_MANY, _MANY = 4e-3, 2e-2, 20_000
"""About how much the grid may increase delta, relatively, by default: the first for fewer than _MANY runs."""
_REACH, _LEAST_REACH, _FALL = 6.0, 3.0, 30.0
"""The window extends at most this many standard deviations to both sides of epsilon, and at least the second number. It
may end where the tilt makes masses smaller by e^-_FALL."""
_BITS = 20
_PLACES = 1 << 12
"""The places of the grid for the Renyi divergences of many losses."""
_CELLS = 1 << 16
"""The terms that are added at a time: 512 KB, which stay in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivacyLoss:
    """The law of a privacy loss; each loss and each mass is an upper bound.

    `infinite` is P's mass of outcomes that Q excludes.
    """

    losses: NDArray[np.float64]
    masses: NDArray[np.float64]
    infinite: float = 0.0

    def without(self, mass: float) -> PrivacyLoss:
        """Return the law with its largest losses, of total mass at most `mass`, counted as infinite."""
        order = np.argsort(-self.losses, kind="stable")
        lost = np.searchsorted(np.cumsum(self.masses[order]), mass / 2)
        infinite = round_up(self.infinite + math.fsum(self.masses[order[:lost]]))
        return PrivacyLoss(losses=self.losses[order[lost:]], masses=self.masses[order[lost:]], infinite=infinite)


def response_loss(epsilon: float) -> PrivacyLoss:
    """Return the loss of randomised response, the worst epsilon-DP mechanism (Kairouz, Oh and Viswanath 2015)."""
    chance = 1 / (1 + math.exp(-epsilon))
    losses, masses = np.array([-epsilon, epsilon]), np.array([1 - chance, chance])
    return PrivacyLoss(losses=losses, masses=_up(masses, 64))


def bounded_masses(reach: int, power: int) -> NDArray[np.float64]:
    """Return P[x] proportional to (reach^2 - x^2)^power for x from 0 to reach - 1.

    The error is about 2 power + 8 units in the last place.
    """
    x = np.arange(reach, dtype=np.float64)
    weights = ((reach - x) / reach * ((reach + x) / reach)) ** power
    return np.asarray(weights / (2 * math.fsum(weights) - weights[0]))


def bounded_loss(reach: int, power: int) -> PrivacyLoss:
    """Return the loss of bounded noise against the same noise moved by one.

    The noise has P[x] proportional to (reach^2 - x^2)^power on |x| < reach. The moved noise never takes the lowest
    value, so the loss there is infinite.
    """
    half = _up(bounded_masses(reach, power), 4 * power + 64)
    x = np.arange(2 - reach, reach, dtype=np.float64)
    losses = power * np.log1p((1 - 2 * x) / ((reach - x + 1) * (reach + x - 1)))
    return PrivacyLoss(losses=_up(losses, 128), masses=half[np.abs(x).astype(np.int64)], infinite=float(half[-1]))


def bounded_rho(reach: int, power: int, k: int, delta: float) -> tuple[float, float]:
    """Return rho and delta' <= delta, rounded up, for k such noises, each moved by at most one.

    The result is (inf, 1) if the mass excluded by any restriction is too large for delta.

    The k noises are delta'-approximate rho-zCDP. Proof: for any c below the reach, P and Q restricted to the values
    from 1 - c to c are mirror images of each other. The excluded mass of one noise may be 1 - (1 - delta)^(1/k). rho is
    the largest D_alpha/alpha between the restricted laws. D_alpha grows with alpha, so on [a, b] the ratio is at most
    D_b/a.

    More than _PLACES losses L are rounded to a grid, and each mass is split as in `_on_grid`. This keeps the mean of
    e^-L, and e^((alpha - 1) L) is convex in e^-L, so no D_alpha falls. If the losses span 12 of their deviations, rho
    grows by about (12/_PLACES)^2/6 of itself: 1.4e-6.
    """
    loss = bounded_loss(reach, power)
    # Masses of x = 2 - reach, ..., reach - 1. The pairs (1 - c, c) are excluded from the outermost inwards.
    gone = loss.infinite + np.concatenate(
        [[0.0], np.cumsum((loss.masses + loss.masses[::-1])[: len(loss.masses) // 2 - 1])]
    ) * (1 + 1e-12)
    cut = int(np.searchsorted(gone, -math.expm1(math.log1p(-delta) / k) * (1 - 1e-9))) - 1
    if cut < 0:
        return math.inf, 1.0
    lost = float(gone[cut])
    inner = slice(cut, len(loss.losses) - cut)
    logs, masses = loss.losses[inner], loss.masses[inner]
    largest = float(logs.max())
    if len(logs) > _PLACES:
        logs, masses = _merged(PrivacyLoss(losses=logs, masses=masses))
    kept = np.log(masses) - math.log1p(-lost)

    def ratios(orders: NDArray[np.float64], floors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return D_order/floor for each order; D_alpha = log E_P[e^((alpha - 1) L)]/(alpha - 1)."""
        exponents = np.multiply.outer(orders - 1, logs) + kept
        tops = exponents.max(axis=1)
        errors = 64 * _U * (np.abs(exponents).max(axis=1) + 1 + len(logs) / 64)
        sums = tops + np.log(np.exp(exponents - tops[:, None]).sum(axis=1)) + errors
        return np.asarray(np.minimum(sums / (orders - 1), largest) / floors)

    edges = np.concatenate([[1.0], 1 + np.geomspace(1e-2, 1.0, 9), np.geomspace(2.1, 1e9, 400)])
    intervals = np.stack([edges[:-1], edges[1:]])
    rows = max(_CELLS // len(logs), 1)
    best = 0.0
    for _ in range(4):
        starts = range(0, intervals.shape[1], rows)
        bounds = np.concatenate([ratios(*intervals[::-1, start : start + rows]) for start in starts])
        best = max(float(bounds.max()), largest / edges[-1])
        # Split the intervals that may contain the largest ratio. No other one has a bound as large as this ratio.
        ends = intervals[1, np.argsort(bounds)[-2:]]
        hopeful = intervals[:, bounds > ratios(ends, ends).max() * (1 - 1e-9)]
        parts = np.geomspace(hopeful[0], hopeful[1], 9)
        intervals = np.stack([parts[:-1].T.ravel(), parts[1:].T.ravel()])
    chance = -math.expm1(k * math.log1p(-lost))
    return round_up(k * best, 64), round_up(chance, 64)


def _merged(loss: PrivacyLoss) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the losses and masses of a pair of laws on a grid of about _PLACES places; both are upper bounds."""
    start = float(loss.losses.min())
    step = (float(loss.losses.max()) - start) / _PLACES
    places, masses = _on_grid(loss, step)
    merged = np.bincount(places, masses) * (1 + 2 * _U * float(np.bincount(places).max()))
    seen = merged > 0
    return np.asarray(start + step * np.flatnonzero(seen), np.float64), np.asarray(merged[seen], np.float64)


def delta_of(
    parts: Sequence[tuple[PrivacyLoss, int]], epsilon: float, *, spare: float = 0.0, growth: float | None = None
) -> float:
    """Return an upper bound of the delta at `epsilon` of all parts, each run a number of times.

    The bound also holds if each run is chosen after the outcomes of earlier runs. About `spare` may be added to delta
    if that makes the computation easier. The grid makes delta larger by about the factor 1 + `growth`.

    No sum of finite losses exceeds the sum S of the largest ones. So such sums add at most 1 - e^(epsilon - S) to
    delta. If no loss is infinite, delta is exactly zero from epsilon = S on, so S is computed exactly.
    """
    beyond = sum((Fraction(float(loss.losses.max())) * k for loss, k in parts), Fraction(0)) - Fraction(epsilon)
    if all(loss.infinite == 0 for loss, _ in parts) and beyond <= 0:
        return 0.0
    found = _delta_of(parts, epsilon, spare, growth)
    infinite = math.fsum(k * loss.infinite for loss, k in parts)
    return min(found, round_up(infinite + max(0.0, float(beyond)), 8))


def _delta_of(parts: Sequence[tuple[PrivacyLoss, int]], epsilon: float, spare: float, growth: float | None) -> float:
    """Return the bound of `delta_of` by convolution."""
    if spare > 0:
        parts = [(loss.without(spare / (k * len(parts))), k) for loss, k in parts]
    infinite = round_up(-math.expm1(math.fsum(k * math.log1p(-loss.infinite) for loss, k in parts)), 64)
    if math.fsum(k * loss.losses.max() for loss, k in parts) <= epsilon * (1 - 1e-12):
        return infinite
    theta, slope, deviation = _tilt(parts, epsilon)
    reach = min(_REACH, max(_LEAST_REACH, _FALL / (theta * deviation))) if theta > 0 else _REACH
    step, bits = _grid(parts, slope, reach * deviation, growth)
    size, runs = 1 << bits, sum(k for _, k in parts)
    laws: list[tuple[NDArray[np.float64], int]] = []
    scales, uncertain, start, rest = [], 0.0, [], 0.0
    for loss, k in parts:
        places, masses = _on_grid(loss, step)
        exponents = theta * (loss.losses.min() + step * places)
        shift = float(exponents[np.argmax(exponents + np.log(masses))])
        tilted = masses * np.exp(exponents - shift)
        total = math.fsum(tilted)
        shift += math.log(total)
        tilted = masses * np.exp(exponents - shift)
        error = _U * (16 * float(np.abs(exponents).max()) + 16 * abs(shift) + 96)
        cells = places % size
        law = np.asarray(np.bincount(cells, tilted, size), np.float64)
        uncertain += k * (error + _U * float(np.bincount(cells).max()))
        rest += k * math.log1p(max(math.fsum(tilted) - 1, 0.0))
        laws.append((law, k))
        scales.append(k * shift)
        start.append(k * float(loss.losses.min()))
    composed, error = _core.compose(laws)
    base = math.fsum(start)
    first = math.floor((epsilon - base) / step) - size // 2
    indices = first + np.arange(size)
    sums = base + step * indices
    slack = (
        8
        * _U
        * (math.fsum(map(abs, start)) + abs(epsilon) + step * float(np.abs(indices[[0, -1]]).max()) + runs * step)
    )
    over = sums - epsilon + slack
    seen = np.maximum(composed[indices % size] + error, 0.0)
    above = over > 0
    inside = float(np.sum(np.exp(-theta * (over[above] - 2 * slack)) * seen[above] * -np.expm1(-over[above])))
    # No mass lies beyond the largest possible sum.
    most = math.fsum(k * (float(loss.losses.max()) + 2 * step) for loss, k in parts)
    beyond = float(sums[-1]) <= most + slack
    outside = math.exp(rest - theta * (float(over[-1]) + step - 2 * slack)) if beyond else 0.0
    log_scale = math.fsum([*scales, -theta * epsilon])
    lost = uncertain + 16 * _U * (math.fsum(map(abs, scales)) + theta * abs(epsilon) + 64)
    finite = inside * (1 + _U * (size + 256)) + outside
    if not 0 < finite < math.inf:
        return infinite if finite == 0 else 1.0
    exponent = math.log(finite) + log_scale + lost + 1e-12
    return min(1.0, round_up(infinite + math.exp(exponent), 64)) if exponent < 0 else 1.0


def _tilt(parts: Sequence[tuple[PrivacyLoss, int]], epsilon: float) -> tuple[float, float, float]:
    """Return three numbers: a tilt, a rate of decay, and the deviation of the tilted sum.

    With the tilt, the losses sum to about epsilon on average. The tilt is 0 if they sum to more without it. The rate is
    about how fast log delta falls at epsilon.
    """
    most = 300 / max(float(np.abs(loss.losses).max()) for loss, _ in parts)
    low, high, theta, slope, variance = 0.0, most, 0.0, 0.0, 1.0
    for turn in range(50):
        mean = variance = 0.0
        for loss, k in parts:
            exponents = theta * loss.losses
            weights = loss.masses * np.exp(exponents - exponents.max())
            weights /= weights.sum()
            centre = float(weights @ loss.losses)
            mean += k * centre
            variance += k * float(weights @ (loss.losses - centre) ** 2)
        variance = max(variance, 1e-300)
        if turn == 0:
            slope = max((epsilon - mean) / variance, 1 / math.sqrt(variance))
            if mean >= epsilon:  # a tilt would not make the bound smaller
                break
        low, high = (theta, high) if mean < epsilon else (low, theta)
        # Newton's step, or bisection if that step leaves the interval.
        step = theta + (epsilon - mean) / variance
        if abs(step - theta) <= 1e-4 * theta or high - low <= 1e-4 * low:  # the second one at the largest tilt
            break
        theta = step if low < step < high else (low + high) / 2
    return theta, max(theta, slope), math.sqrt(variance)


def _grid(
    parts: Sequence[tuple[PrivacyLoss, int]], slope: float, reach: float, growth: float | None
) -> tuple[float, int]:
    """Return the step of the grid, and the base-2 logarithm of the number of its cells.

    The window extends by `reach` to both sides. Rounding adds at most step^2/4 to the variance of a loss, and about
    step^2/6 on average.
    """
    runs = sum(k for _, k in parts)
    gaps = {float(loss.losses[-1] - loss.losses[0]) for loss, _ in parts if len(loss.losses) == 2}
    if len(gaps) == len(parts) == 1:
        (step,) = gaps
    else:
        if growth is None:
            growth = _GROWTH if runs < _MANY else _GROWTH_OF_MANY
        step = math.sqrt(12 * growth / (runs * slope * (slope + 1)))
    step = max(step, 2 * reach / (1 << _BITS))
    return step, max(10, math.ceil(math.log2(2 * reach / step + 2)))


def _on_grid(loss: PrivacyLoss, step: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return places on a grid that starts at the least loss, and their masses.

    Each mass is split between two neighbouring places. Let a mass w be at L, between l and l + step. The upper place
    gets the part w (1 - e^(l - L))/(1 - e^-step).
    """
    start = float(loss.losses.min())
    raised = loss.losses + 32 * _U * (np.abs(loss.losses) + abs(start) + step)
    places = np.floor((raised - start) / step)
    part = np.expm1(start + step * places - raised) / math.expm1(-step)
    part = np.clip(part * (1 + 1e-12) + 1e-18, 0.0, 1.0)
    places = places.astype(np.int64)
    upper, lower = loss.masses * part, loss.masses * (1 - part)
    whole = np.concatenate([places, places + 1])
    masses = np.concatenate([lower, upper]) * (1 + 8 * _U)
    seen = masses > 0
    return whole[seen], masses[seen]


def _up(values: NDArray[np.float64], ulps: int) -> NDArray[np.float64]:
    """Return the values, increased by `ulps` halves of a unit in the last place."""
    return np.asarray(values + np.abs(values) * ulps * _U)
