"""Composition of bounded-range mechanisms: J. Dong, D. Durfee, R. Rogers, "Optimal Differential Privacy
Composition for Exponential Mechanisms" (2020), arXiv 1909.13830.

A selection by the exponential mechanism has range epsilon: its privacy loss lies in an interval of that length. In a
list that is selected item by item, each selection depends on the earlier ones. The formula for selections fixed in
advance does not hold here, so this module uses the adaptive composition. Floats in, floats out, rounded up.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.privacy.conversion import round_down, round_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["approximate_epsilon", "bounded_range_epsilon", "closed_form_epsilon"]

_MOST = 1_000
"""The most selections that the recursion is computed for."""
_WORK = 2e7
"""About how many steps the recursion may take. It determines how fine the grid is."""


def bounded_range_epsilon(epsilon: float, k: int, delta: float) -> float:
    """Return the least total epsilon at `delta` of k selections of range epsilon, each chosen after the earlier ones.

    The result is the least of k epsilon, the closed form and, for up to 1,000 selections, the recursion of the adaptive
    composition. Between points of the recursion's grid it uses the chord, which lies above the curve.
    """
    best = min(round_up(k * epsilon, 1), closed_form_epsilon(epsilon, k, delta))
    if k > _MOST:
        return best
    step, table = _profile(epsilon, k)
    above = int(np.argmax(table <= delta))  # the table ends with zeros
    if above == 0:
        return 0.0
    share = (table[above - 1] - delta) / (table[above - 1] - table[above])
    total = (above - 1) * step + math.log1p(share * math.expm1(step))
    return min(best, round_up(total + step * 1e-9, 64), round_up(above * step))


def approximate_epsilon(epsilon: float, k: int, own: float, delta: float) -> float:
    """Return `bounded_range_epsilon` for distributions of which a part of mass 1 - own is such a composition.

    The composition gets the part of `delta` that remains after `own`. The result is infinite if nothing remains.
    """
    rest = round_down((delta - own) / (1 - own)) if own < 1 else 0.0
    return bounded_range_epsilon(epsilon, k, rest) if rest > 0 else math.inf


def closed_form_epsilon(epsilon: float, k: int, delta: float) -> float:
    """Return k (x - 1 - log x) + epsilon sqrt(k log(1/delta)/2) with x = epsilon/(e^epsilon - 1).

    The formula also holds if each selection is chosen after the earlier ones.
    """
    if epsilon < 0.05:
        mean = round_up(epsilon**2 / 8, 4)
    else:
        x = epsilon / math.expm1(epsilon)
        mean = x - 1 - math.log(x) + 1e-15
    return round_up(k * mean + epsilon * math.sqrt(k * -math.log(delta) / 2), 16)


@lru_cache(maxsize=32)
def _profile(epsilon: float, k: int) -> tuple[float, NDArray[np.float64]]:
    """Return h, and upper bounds of the least delta at g = 0, h, 2h, ..., k epsilon.

    delta_k(g) = sup over t in [0, epsilon] of p_t delta_{k-1}(g - t) + (1 - p_t) delta_{k-1}(g - t + epsilon),
    p_t = (1 - e^(t - epsilon)) / (1 - e^-epsilon), delta_0(g) = max(0, 1 - e^g). Each delta_j is convex in e^g, because
    it is a supremum of lines. So the chord between two points of the grid is never below it. Over one cell, with
    s = e^-t, the right side with chords is c_0 + c_1 s - c_2/s, whose maximum is known.
    """
    cells = int(min(400, max(4, math.sqrt(_WORK / (2 * k * k)))))
    step = epsilon / cells
    points = k * cells
    grid = np.arange(-points - cells, points + 1) * step
    certain = -np.expm1(np.minimum(grid, 0.0))  # the value if the loss always exceeds g
    edges = np.exp(-np.arange(cells + 1) * step)  # s at the ends of the cells
    whole = -math.expm1(-epsilon)
    chance = -np.expm1(np.arange(cells + 1) * step - epsilon) / whole
    alpha, beta = 1 / whole, math.exp(-epsilon) / whole
    rounding = 64 * 2.0**-52 / -math.expm1(-step)
    values = certain.copy()
    for _ in range(k):
        padded = np.concatenate([values, np.zeros(cells)])

        def at(shift: int, padded: NDArray[np.float64] = padded) -> NDArray[np.float64]:
            """Return the values at g + shift steps, for g = -k epsilon ... k epsilon."""
            return padded[cells + shift : cells + shift + 2 * points + 1]

        best = chance[0] * at(0) + (1 - chance[0]) * at(cells)
        for i in range(cells):
            low, high = edges[i + 1], edges[i]
            near, far = at(-i), at(-i - 1)  # for the loss t, at high and at low
            near_less, far_less = at(cells - i), at(cells - i - 1)  # for the loss t - epsilon
            np.maximum(best, chance[i + 1] * far + (1 - chance[i + 1]) * far_less, out=best)
            slope, slope_less = (near - far) / (high - low), (near_less - far_less) / (high - low)
            c1 = alpha * slope + (1 - alpha) * slope_less
            c2 = beta * ((far - slope * low) - (far_less - slope_less * low))
            inner = (c1 < 0) & (c2 > 0)
            s = np.clip(np.sqrt(np.where(inner, c2, 0.0) / np.where(inner, -c1, 1.0)), low, high)
            p = np.clip(alpha - beta / s, chance[i + 1], chance[i])
            w = (s - low) / (high - low)
            first, second = far + (near - far) * w, far_less + (near_less - far_less) * w
            np.maximum(best, p * first + (1 - p) * second, out=best)
        values[cells:] = np.minimum(best + rounding * at(-cells), 1.0)
        values[:cells] = certain[:cells]
    return step, values[cells + points :]
