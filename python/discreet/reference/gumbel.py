"""Exact exponential mechanism in rational arithmetic, with the same use of random bits as `rust/release/gumbel.rs`.

A slot is the place of a candidate in the list of counts. The stop element comes after all slots.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from discreet.reference.noise import Bits, bernoulli_exp

__all__ = ["Tree", "exponent", "one_shot", "peel", "select"]

LOG2_E = 0x71547652B82FE177  # 2^64 / ln 2 - 2^64, rounded down


def select(rng: Bits, counts: list[int], reference: int, gamma: float, bottom: int, offset: float) -> int:
    """Return the selected slot, with P[i] proportional to exp(gamma counts[i]); len(counts) for the stop element.

    The score of the stop element is gamma bottom + offset. A count of zero is never selected.
    """
    sizes = [int(count > 0) for count in counts] + [1]
    tree = Tree(counts, sizes, reference, gamma, bottom, offset)
    while True:
        slot = tree.walk(rng)
        if slot is None:
            continue
        if bernoulli_exp(rng, exponent(slot, counts, reference, gamma, bottom, offset), tree.halvings[slot]):
            return slot


def peel(
    rng: Bits, counts: list[int], reference: int, gamma: float, bottom: int, offset: float, k: int
) -> tuple[list[int], bool]:
    """Return up to k slots selected one after the other, and whether the stop element ended the selection."""
    left, selected = list(counts), list[int]()
    while len(selected) < k:
        slot = select(rng, left, reference, gamma, bottom, offset)
        if slot == len(counts):
            return selected, True
        selected.append(slot)
        left[slot] = 0
    return selected, False


def one_shot(counts: NDArray[np.int64], noise: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return the slots of the k largest noisy counts, largest first, for each row of noise.

    With Gumbel noise of scale 1/gamma they have the law of `peel` without a stop element. The noise is a float, so this
    is for tests only.
    """
    return np.argsort(-(counts + noise), axis=-1, kind="stable")[..., :k]


def exponent(slot: int, counts: list[int], reference: int, gamma: float, bottom: int, offset: float) -> Fraction:
    """Return how far the score of a slot lies below the reference's score."""
    if slot == len(counts):
        return Fraction(gamma) * (reference - bottom) - Fraction(offset)
    return Fraction(gamma) * (reference - counts[slot])


class Tree:
    """A tree of sums of envelopes `size` 2^-s, rounded up to 64 bits.

    The last leaf belongs to the stop element, of count `bottom` and `offset`.
    """

    def __init__(
        self, counts: list[int], sizes: list[int], reference: int, gamma: float, bottom: int = 0, offset: float = 0.0
    ) -> None:
        self.halvings = []
        for slot, count in enumerate([*counts, bottom]):
            # The exponent in units of 2^-64, too small by less than two; then x / ln 2, rounded down.
            least = floor(Fraction(gamma) * (reference - count) * 2**64) - 1
            if slot == len(counts):
                least -= floor(Fraction(offset) * 2**64) + 1
            whole, part = least >> 64, least % 2**64
            self.halvings.append((least + whole * LOG2_E + (part * LOG2_E >> 64) - abs(whole) - 2) >> 64)
        self.leaves = 1 << len(counts).bit_length()
        self.nodes = [Fraction(0)] * (2 * self.leaves)
        for slot, (size, s) in enumerate(zip(sizes, self.halvings, strict=True)):
            self.nodes[self.leaves + slot] = size * Fraction(2) ** -s
        for node in range(self.leaves - 1, 0, -1):
            self.nodes[node] = _plus(self.nodes[2 * node], self.nodes[2 * node + 1])

    def walk(self, rng: Bits) -> int | None:
        """Return a leaf with probability of its envelope over the root's, or None."""
        node: int | None = 1
        while node is not None and node < self.leaves:
            node = _step(rng, self.nodes, node)
        return None if node is None else node - self.leaves


def _exponent(weight: Fraction) -> int:
    """Return the exponent of a weight's last bit, for a mantissa of exactly 64 bits."""
    bits = weight.numerator.bit_length() - weight.denominator.bit_length()
    exponent = bits - 64
    while weight >= Fraction(2) ** (exponent + 64):
        exponent += 1
    while weight < Fraction(2) ** (exponent + 63):
        exponent -= 1
    return exponent


def _plus(a: Fraction, b: Fraction) -> Fraction:
    if a == 0 or b == 0:
        return a + b
    unit = Fraction(2) ** max(_exponent(a), _exponent(b))
    total = -(-max(a, b) // unit) + -(-min(a, b) // unit)
    return (total if total < 2**64 else -(-total // 2) * 2) * unit


def _step(rng: Bits, tree: list[Fraction], node: int) -> int | None:
    """Return the left child for the lowest part of the node, the right one for the highest, None in between."""
    weight, left, right = tree[node], tree[2 * node], tree[2 * node + 1]
    unit = Fraction(2) ** _exponent(weight)
    while (word := rng.bits64()) >= weight / unit:
        pass
    words = [word]
    if _below(rng, words, left / unit, None):
        return 2 * node
    if _below(rng, words, right / unit, int(weight / unit) - 1):
        return 2 * node + 1
    return None


def _below(rng: Bits, words: list[int], bound: Fraction, mirror: int | None) -> bool:
    """Return whether the position with these digits in base 2^64 lies below the bound.

    Digits are drawn when they are needed. With `mirror`, the node's largest integer part, the position is measured from
    the node's upper end.
    """
    index = 0
    while True:
        if index == len(words):
            words.append(rng.bits64())
        largest = mirror if index == 0 else 2**64 - 1
        digit = words[index] if mirror is None or largest is None else largest - words[index]
        if digit != int(bound):
            return digit < int(bound)
        bound = (bound - int(bound)) * 2**64
        if bound == 0:
            return False
        index += 1
