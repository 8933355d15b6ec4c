"""Odometers: J. Whitehouse, A. Ramdas, R. Rogers, Z. S. Wu, "Fully-Adaptive Composition in Differential
Privacy" (ICML 2023), arXiv 2203.05481.

An odometer bounds the privacy loss of all mechanisms run so far, at all times simultaneously, for any choice of each
mechanism. `spent` is the sum of the rhos so far. The other parameters are fixed before the first mechanism. Floats in,
floats out, rounded up.

For mechanisms that are delta_i-approximate rho_i-zCDP, let D bound the sum of the delta_i on every path. D is fixed
before the first mechanism. Let P and Q be the laws of the outputs under two neighbours. Along every path
P >= (1 - D) P' and Q >= (1 - D) Q', and the steps of P' and Q' are rho_i-zCDP. Under P' the loss log(P'/Q') exceeds
the reading at any time with probability at most `delta`, by Ville's inequality for the mixture below. Take a stopping
time, a number e and a set S of outputs at that time. Let B be the event "S, and the reading is at most e". Then

    P(B) <= (1 - D) P'(B) + D <= (1 - D) (exp(e) Q'(B) + delta) + D <= exp(e) Q(B) + delta + D.

So the delta of a reading is `delta` + D. The sum of the delta_i so far must not replace D. A stopping time can wait
for a mechanism to fail, with probability one in the end, and find a small sum.
"""

from __future__ import annotations

import math

from discreet.privacy.conversion import round_up

__all__ = ["half_normal_odometer"]


def half_normal_odometer(spent: float, delta: float, gamma: float) -> float:
    """Return v/2 + S, S the root of 2 sqrt(gamma/(v + gamma)) exp(S²/2(v + gamma)) Phi(S/sqrt(v + gamma)) = 1/delta.

    The mixture is over half of a normal law. Only this one is justified by zCDP, which bounds only the moments of
    positive order. The mixture over the whole law is an upper bound.
    """
    v = 2 * spent
    width = v + gamma
    # Add more than the rounding error of the sum below, whose terms are at most this large.
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
    """Return by how much the reading of the mixture over the whole normal law exceeds v/2."""
    width = v + gamma
    logarithm = -math.log(delta) + (math.log(width) - math.log(gamma)) / 2
    return math.sqrt(2 * width * logarithm)
