"""Convolution powers of probability distributions on a grid, without a bound on the rounding error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["compose"]


def compose(parts: Sequence[tuple[NDArray[np.float64], int]]) -> NDArray[np.float64]:
    """Return the cyclic convolution of all parts, each convolved with itself to its power."""
    size = len(parts[0][0])
    product = np.ones(size // 2 + 1, complex)
    for masses, power in parts:
        product = product * np.fft.rfft(masses) ** power
    return np.fft.irfft(product, size)
