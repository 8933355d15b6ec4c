"""Odometers: J. Whitehouse, A. Ramdas, R. Rogers, Z. S. Wu, "Fully-Adaptive Composition in Differential
Privacy" (2023), arXiv 2203.05481.

An odometer reads the epsilon of all that has been run so far, whatever the total will be and however the next
mechanism was chosen: with probability 1 - delta over the outputs the privacy loss is below the reading at
every moment at once. `spent` is the sum of the rhos so far; the other parameters are fixed before the first
mechanism. `delta` belongs to the reading: the mechanisms' own deltas are added to it. Floats in, floats
out, rounded up.
"""

from __future__ import annotations

import math

from discreet.conversion import round_up

__all__ = ["half_normal_odometer"]


def half_normal_odometer(spent: float, delta: float, gamma: float) -> float:
    """v/2 + S, S the root of 2 sqrt(gamma/(v + gamma)) exp(S²/2(v + gamma)) Phi(S/sqrt(v + gamma)) = 1/delta.

    The mixture over half of a normal law, which alone zCDP justifies: it bounds the moments of positive order
    only. The mixture over all of it is an upper bound.
    """
    v = 2 * spent
    width = v + gamma
    # Beyond the rounding of the sum below, whose terms are at most this large.
    wanted = -math.log(delta)
    wanted += 1e-15 * (8 + wanted + abs(math.log(gamma)) + abs(math.log(width)))
    constant = math.log(2) + (math.log(gamma) - math.log(width)) / 2
    low, high = 0.0, round_up(_mixture_excess(v, delta, gamma), 64)
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        mass = math.erfc(-middle / math.sqrt(2 * width)) / 2
        reached = constant + middle * middle / (2 * width) + math.log(mass) >= wanted
        low, high = (low, middle) if reached else (middle, high)
    return round_up(spent + high)


def _mixture_excess(v: float, delta: float, gamma: float) -> float:
    """By how much the mixture's reading exceeds v/2."""
    width = v + gamma
    logarithm = -math.log(delta) + (math.log(width) - math.log(gamma)) / 2
    return math.sqrt(2 * width * logarithm)
