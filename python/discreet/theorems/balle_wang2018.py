"""The exact (epsilon, delta) of Gaussian noise, after B. Balle, Y.-X. Wang, "Improving the Gaussian Mechanism for
Differential Privacy: Analytical Calibration and Optimal Denoising" (2018), and what a fine lattice changes in it.

mu is the change over the noise's scale, both in l2. Changes that are chosen after earlier outcomes compose to the
root of the sum of squares (Dong, Roth and Su 2022, Corollary 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.privacy.conversion import round_up

__all__ = ["LatticeGaussian", "gaussian_delta", "lattice_delta"]


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), rounded up (Balle and Wang 2018, Theorem 8)."""
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    above, below = _tail(near), _tail(far)
    # A tail at x is off by about x^2 times as much as x is.
    slack = 1e-15 * (8 + near**2 + epsilon / mu + mu)
    log_below = epsilon + math.log(below) if below > 0 else -math.inf
    return min(1.0, max(0.0, above * (1 + slack) - math.exp(log_below) * (1 - 1e-15 * (8 + far**2 + mu))) + 1e-300)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeGaussian:
    """Discrete Gaussian noise of scale `sigma` on whole numbers, of which one user moves up to `entries`, by `change`
    in l2 in all."""

    sigma: float
    change: float
    entries: int

    @property
    def mu(self) -> float:
        """The change over the scale, rounded up."""
        return round_up(self.change / self.sigma)

    @property
    def distortion(self) -> float:
        """entries times -log(1 - 1/(24 sigma^2)), rounded up."""
        return round_up(-self.entries * math.log1p(-1 / (24 * self.sigma**2)), 16)

    @property
    def shift(self) -> float:
        """sqrt(entries) change/(2 sigma^2), rounded up."""
        return round_up(math.sqrt(self.entries) * self.mu / (2 * self.sigma), 16)


def lattice_delta(epsilon: float, parts: Sequence[LatticeGaussian]) -> float:
    """An upper bound of the delta at `epsilon` of these releases, the changes of each chosen after those before.

    Where noise x is moved by d, the privacy loss is (|d|^2 - 2 <x, d>)/(2 sigma^2), in the entries that move. Let g be
    the density of N(0, sigma^2). By Poisson summation its values at the whole numbers sum up to one at least, so that
    the discrete Gaussian has masses of at most g(x); a Gaussian that is rounded to the nearest whole number has that of
    g(x) E[cosh(x U/sigma^2) e^(-U^2/(2 sigma^2))] with U uniform on +-1/2, which is at least g(x) (1 - 1/(24 sigma^2)).
    So the discrete law of n entries is everywhere at most (1 - 1/(24 sigma^2))^-n times that of the rounded ones.
    Rounding moves x by 1/2 at most, and with it the loss by |d|_1/(2 sigma^2) <= sqrt(n) |d|_2/(2 sigma^2). Both hold
    after any history; delta is the expectation of (1 - e^(epsilon - loss))+, which is nonnegative and grows with the
    loss. Hence it is at most e^distortion times that of continuous noise at epsilon - shift.
    """
    mu = round_up(math.sqrt(math.fsum(part.mu**2 for part in parts)), 16)
    at = epsilon - round_up(math.fsum(part.shift for part in parts), 16)
    factor = math.exp(min(math.fsum(part.distortion for part in parts), 600.0))
    return min(1.0, round_up(gaussian_delta(at, mu) * factor, 64))


def _tail(x: float) -> float:
    """The chance that standard Gaussian noise is above x."""
    return math.erfc(x / math.sqrt(2)) / 2
