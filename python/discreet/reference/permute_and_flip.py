"""Permute-and-flip by rational arithmetic, reading the same bits as `rust/release/permute_and_flip.rs`."""

from __future__ import annotations

from discreet.reference.gumbel import exponent
from discreet.reference.noise import Bits, bernoulli_exp, uniform_below

__all__ = ["permute_and_flip"]


def permute_and_flip(rng: Bits, counts: list[int], gamma: float, bottom: int, offset: float) -> int:
    """Return the slot of the largest score with exponential noise, or len(counts) for the stop element."""
    scores = (counts, max(counts, default=0), gamma, bottom, offset)
    order = [slot for slot in range(len(counts) + 1) if slot == len(counts) or counts[slot] > 0]
    best = min(exponent(slot, *scores) for slot in order)
    while True:
        for passed in range(len(order)):
            chosen = passed + uniform_below(rng, len(order) - passed)
            order[passed], order[chosen] = order[chosen], order[passed]
            if bernoulli_exp(rng, exponent(order[passed], *scores) - best):
                return order[passed]
