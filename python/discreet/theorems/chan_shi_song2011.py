"""The hybrid mechanism: running counts without a horizon, with Gaussian noise and an unknown domain.

After T.-H. H. Chan, E. Shi, D. Song, "Private and Continual Release of Statistics" (2011), ACM TISSEC 14(3).

Epoch m consists of rounds 2^m to 2^(m+1) - 1 and has a tree of its own. The total of the epoch has one more noise,
which is part of the counts of all later epochs.
"""

from __future__ import annotations

import math

from discreet.privacy.conversion import round_down, round_up

__all__ = ["epoch_of", "epoch_sigma", "round_chance"]


def epoch_of(number: int) -> tuple[int, int]:
    """Return the epoch of a round, and the round's place in it, counted from one."""
    epoch = number.bit_length() - 1
    return epoch, number - (1 << epoch) + 1


def epoch_sigma(rho: float, epoch: int, l0: int, linf: int = 1) -> float:
    """Return linf sqrt(l0 (m + 1) / (2 rho)): an event is in m levels of its epoch's tree and in the epoch's total."""
    return round_up(linf * math.sqrt(l0 * (epoch + 1) / (2 * rho)), 16)


def round_chance(delta: float, epoch: int, rounds: int) -> float:
    """Return delta / ((m + 1)(m + 2) rounds): the share of a round in epoch m. All shares add up to delta."""
    return round_down(delta / ((epoch + 1) * (epoch + 2) * float(rounds)), 4)
