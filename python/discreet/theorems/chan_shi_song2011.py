"""Running counts without a horizon: T.-H. H. Chan, E. Shi, D. Song, "Private and Continual Release of Statistics"
(2011), ACM TISSEC 14(3), the hybrid mechanism; with Gaussian noise and an unknown domain.

Epoch m has the rounds 2^m to 2^(m+1) - 1, a tree of its own and one more noise for all of it, which every later epoch
starts from.
"""

from __future__ import annotations

import math

from discreet.privacy.conversion import round_down, round_up

__all__ = ["epoch_of", "epoch_sigma", "hybrid_variance", "round_chance"]


def epoch_of(number: int) -> tuple[int, int]:
    """The epoch of a round, and the round's place in it from one on."""
    epoch = number.bit_length() - 1
    return epoch, number - (1 << epoch) + 1


def epoch_sigma(rho: float, epoch: int, l0: int, linf: int = 1) -> float:
    """linf sqrt(l0 (m + 1) / (2 rho)): an event touches m levels of its epoch's tree and the epoch's own noise."""
    return round_up(linf * math.sqrt(l0 * (epoch + 1) / (2 * rho)), 16)


def hybrid_variance(sigmas: list[float], place: int) -> float:
    """The variance of a running count in the last of the epochs with these scales, at a place of it."""
    epoch = len(sigmas) - 1
    nodes = 1 if place == 1 << epoch else place.bit_count()
    return math.fsum(sigma**2 for sigma in sigmas[:-1]) + nodes * sigmas[-1] ** 2


def round_chance(delta: float, epoch: int) -> float:
    """delta / ((m + 1)(m + 2) 2^m): the share of a round of epoch m, which sum up to delta over all rounds."""
    return round_down(delta / ((epoch + 1) * (epoch + 2) * 2.0**epoch), 4)
