"""Exact samplers with integer and rational arithmetic, and the same use of random bits as `rust/noise`."""

from __future__ import annotations

from bisect import bisect_left
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isqrt
from typing import Protocol

__all__ = [
    "Bits",
    "Sampler",
    "bernoulli_exp",
    "bounded_beta",
    "discrete_gaussian",
    "discrete_laplace",
    "truncated_geometric",
    "uniform_below",
]

PLACES = 400  # binary places of the cumulative probabilities, more than any draw reads
FIRST = 31  # bits of a uniform number in its first word, which also holds the sign bit
TABLE_BITS, BLOCKS, NARROW = 10, 6, 16


class Bits(Protocol):
    """A source of random words."""

    def bits32(self) -> int:
        """Return a uniform integer from 0 to 2^32 - 1."""

    def bits64(self) -> int:
        """Return a uniform integer from 0 to 2^64 - 1: two words of 32 bits, the lower half first."""


class Sampler:
    """A sampler with P[x] proportional to exp(-c |x|) or exp(-c x²) for |x| <= limit."""

    def __init__(self, c: Fraction, scale_bits: int, *, square: bool = False, limit: int | None = None) -> None:
        self.c, self.square, self.limit = c, square, limit
        self.block_bits = scale_bits - BLOCKS if scale_bits >= TABLE_BITS else 0
        b = self.block_bits
        last = None if limit is None else limit >> b
        self.ends = _cumulative(c * 2 ** (2 * b if square else b), square, last, b == 0)
        self.firsts = [end >> (PLACES - FIRST) for end in self.ends]

    def draw(self, rng: Bits) -> int:
        """Return one draw."""
        if self.block_bits == 0:
            magnitude, negative = self._cell(rng)
        else:
            magnitude, negative = self._place(rng)
        return -magnitude if negative else magnitude

    def _cell(self, rng: Bits) -> tuple[int, bool]:
        """Return the interval (cell) of the cumulative table that contains a uniform number, and a fair bit."""
        word = rng.bits32()
        prefix, bits, ends = word >> 1, FIRST, self.firsts
        while True:
            cell = bisect_left(ends, prefix)
            if cell == len(ends) or ends[cell] != prefix:
                return cell, bool(word & 1)
            prefix, bits = prefix << 64 | rng.bits64(), bits + 64
            ends = [end >> (PLACES - bits) for end in self.ends]

    def _place(self, rng: Bits) -> tuple[int, bool]:
        """Return a magnitude and a fair bit.

        The table chooses a block. A uniform place in it is accepted with probability exp(-c (m² - start²)) or exp(-c
        place).
        """
        b = self.block_bits
        while True:
            block, negative = self._cell(rng)
            word, width = (rng.bits32(), 32) if b <= NARROW else (rng.bits64(), 64)
            place, start = word & ((1 << b) - 1), block << b
            m = start + place
            if (self.limit is not None and m > self.limit) or (negative and m == 0):
                continue
            factor = m * m - start * start if self.square else place
            if _below_exp(rng, word >> b, width - b, self.c, factor):
                return m, negative


def _cumulative(c: Fraction, square: bool, limit: int | None, doubled: bool) -> list[int]:
    """Return P[M <= m] in units of 2^-PLACES, by summing the weights. The last value is left out."""
    places = PLACES + 100
    unit = Fraction(2) ** places
    ratio = int(_exp_neg(c, places) * unit)
    shrink = int(_exp_neg(2 * c, places) * unit) if square else int(unit)
    weight, total, sums = int(unit), 0, list[int]()
    while weight > 1 << 40:
        total += weight << 1 if doubled and sums else weight
        if len(sums) == limit:
            break
        sums.append(total)
        weight = weight * ratio >> places
        ratio = ratio * shrink >> places
    return [(total_so_far << PLACES) // total for total_so_far in sums]


def _exp_neg(x: Fraction, bits: int) -> Fraction:
    """Return exp(-x) to `bits` binary digits after the leading one, by the decimal library's rounded exponential."""
    if x == 0:
        return Fraction(1)
    with localcontext() as context:
        context.prec = bits // 3 + 60
        context.Emin, context.Emax = -(10**15), 10**15
        return Fraction(Decimal(-x.numerator / Decimal(x.denominator)).exp())


def _below(rng: Bits, prefix: int, bits: int, x: Fraction, s: int = 0) -> bool:
    """Return whether a uniform number that begins with these bits lies below exp(-x) 2^s.

    More words are read until the comparison is decided.
    """
    while True:
        # If exp(-x) < 2^-x is far below the prefix's last place, its digits are not needed.
        tiny = x > max(0, s + bits + 64)
        probability = Fraction(1, 2**64) if tiny else _exp_neg(x, bits + 64) * Fraction(2) ** (s + bits)
        if prefix + 1 <= probability:
            return True
        if prefix >= probability:
            return False
        prefix, bits = prefix << 64 | rng.bits64(), bits + 64


def _below_exp(rng: Bits, prefix: int, bits: int, c: Fraction, factor: int) -> bool:
    """Return `_below` for exp(-c factor); the integer bounds 1 - x <= exp(-x) <= 1 - x + x²/2 often decide."""
    x, one = c.numerator * factor, c.denominator
    if (prefix + 1) * one <= (one - x) << bits:
        return True
    if 2 * prefix * one * one >= (2 * one * (one - x) + x * x) << bits:
        return False
    return _below(rng, prefix, bits, c * factor)


def bernoulli_exp(rng: Bits, x: Fraction, s: int = 0) -> bool:
    """Return True with probability exp(-x) 2^s."""
    return _below(rng, rng.bits64(), 64, x, s)


def uniform_below(rng: Bits, n: int) -> int:
    """Return a uniform integer from 0 to n - 1."""
    mask = (1 << max(n.bit_length(), 1)) - 1
    while (draw := rng.bits64() & mask) >= n:
        pass
    return draw


def _reciprocal(x: Fraction) -> Fraction:
    """Return 1 / x rounded down to 64 significant bits."""
    shift = 64 - x.denominator.bit_length() + x.numerator.bit_length()
    mantissa = int(Fraction(2) ** shift / x)
    excess = mantissa.bit_length() - 64
    return (mantissa >> excess) / Fraction(2) ** (shift - excess)


def _scale_bits(scale: float) -> int:
    return max(isqrt(int(Fraction(scale) ** 2)).bit_length() - 1, 0)


def discrete_gaussian(sigma: float) -> Sampler:
    """Return a sampler of P[x] proportional to exp(-x² / (2 sigma²)), as in `rust/noise/discrete_gaussian.rs`."""
    return Sampler(_reciprocal(2 * Fraction(sigma) ** 2), _scale_bits(sigma), square=True)


def discrete_laplace(scale: float) -> Sampler:
    """Return a sampler of P[x] proportional to exp(-|x| / scale), as in `rust/noise/discrete_laplace.rs`."""
    return Sampler(_reciprocal(Fraction(scale)), _scale_bits(scale))


def truncated_geometric(scale: float, bound: int) -> Sampler:
    """Return a sampler of the same law for |x| <= bound, as in `rust/noise/truncated_geometric.rs`."""
    return Sampler(_reciprocal(Fraction(scale)), min(_scale_bits(scale), max(bound, 1).bit_length() - 1), limit=bound)


def bounded_beta(rng: Bits, reach: int, power: int) -> int:
    """Return a draw of P[x] proportional to (reach² - x²)^power for |x| < reach, as in `rust/noise/bounded_beta.rs`."""
    while True:
        x = uniform_below(rng, 2 * reach - 1) - (reach - 1)
        if all(uniform_below(rng, reach**2) < reach**2 - x**2 for _ in range(power)):
            return x
