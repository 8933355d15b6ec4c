"""Exact samplers by rational arithmetic, reading the same bits as `rust/noise`."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Protocol

__all__ = ["Bits", "bernoulli_exp", "discrete_gaussian"]


class Bits(Protocol):
    """A source of random 64-bit words."""

    def bits64(self) -> int:
        """A uniform integer from 0 to 2^64 - 1."""


def bernoulli_exp(rng: Bits, x: Fraction, s: int = 0) -> bool:
    """True with probability exp(-x) 2^s: words are read until they differ from the probability's digits."""
    prefix, bits = rng.bits64(), 64
    while True:
        probability = _exp_neg(x, bits + 64) * Fraction(2) ** (s + bits)
        if prefix + 1 <= probability:
            return True
        if prefix >= probability:
            return False
        prefix, bits = prefix << 64 | rng.bits64(), bits + 64


def _exp_neg(x: Fraction, bits: int) -> Fraction:
    """exp(-x) to `bits` binary digits after the leading one, by the decimal library's rounded exponential."""
    if x == 0:
        return Fraction(1)
    with localcontext() as context:
        context.prec = bits // 3 + 60
        context.Emin, context.Emax = -(10**15), 10**15
        return Fraction(Decimal(-x.numerator / Decimal(x.denominator)).exp())


def discrete_gaussian(rng: Bits, sigma: float) -> int:
    """Canonne, Kamath and Steinke (2020), Algorithm 3, with a proposal whose scale is a power of two."""
    ulp = 2.0**-52
    precision = 0.5 / (sigma * sigma) * (1 - 4 * ulp)
    scale_bits = math.ceil(math.log2(max(sigma, 1.0)))
    scale = 1 << scale_bits
    headroom = 0.25 / (precision * scale * scale) * (1 + 8 * ulp)
    while True:
        while not bernoulli_exp(rng, Fraction(low := rng.bits64() % scale, scale)):
            pass
        quotient = 0
        while bernoulli_exp(rng, Fraction(1)):
            quotient += 1
        m = low + quotient * scale
        negative = rng.bits64() & 1
        if negative and m == 0:
            continue
        if bernoulli_exp(rng, Fraction(precision) * m * m + Fraction(headroom) - Fraction(m, scale)):
            return -m if negative else m
