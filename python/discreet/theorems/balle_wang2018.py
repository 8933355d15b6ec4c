"""The exact (epsilon, delta) of Gaussian noise, and its correction for noise on a fine lattice.

After B. Balle, Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy: Analytical Calibration and
Optimal Denoising" (2018). mu is the l2 sensitivity over the scale of the noise. Sensitivities chosen after earlier
outcomes compose to the root of the sum of their squares (Dong, Roth and Su 2022, Corollary 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.privacy.conversion import round_up

__all__ = ["LatticeGaussian", "gaussian_delta", "lattice_delta"]


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), rounded up.

    Source: Balle and Wang (2018), Theorem 8.
    """
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    above, below = _tail(near), _tail(far)
    # The relative error of a tail at x is about x^2 times the relative error of x.
    slack = 1e-15 * (8 + near**2 + epsilon / mu + mu)
    log_below = epsilon + math.log(below) if below > 0 else -math.inf
    return min(1.0, max(0.0, above * (1 + slack) - math.exp(log_below) * (1 - 1e-15 * (8 + far**2 + mu))) + 1e-300)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeGaussian:
    """Discrete Gaussian noise of scale `sigma` on integers.

    One user moves up to `entries` of the integers, by `change` in l2 in total.
    """

    sigma: float
    change: float
    entries: int

    @property
    def mu(self) -> float:
        """The l2 sensitivity over the scale, rounded up."""
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
    """Return an upper bound of the delta at `epsilon` of these releases.

    The sensitivity of each release may be chosen after the outcomes of the earlier ones.

    Let noise x be moved by d. The privacy loss is (|d|^2 - 2 <x, d>)/(2 sigma^2), over the entries that move. Let g be
    the density of N(0, sigma^2). By Poisson summation its values at the integers add up to at least one, so the
    discrete Gaussian has masses of at most g(x). Let U be uniform on [-1/2, 1/2]. A Gaussian rounded to the nearest
    integer has the mass g(x) E[cosh(x U/sigma^2) e^(-U^2/(2 sigma^2))], which is at least g(x) (1 - 1/(24 sigma^2)). So
    the discrete law of n entries is everywhere at most (1 - 1/(24 sigma^2))^-n times the law of the rounded Gaussians.

    Rounding moves x by at most 1/2, and the loss by at most |d|_1/(2 sigma^2) <= sqrt(n) |d|_2/(2 sigma^2). Both bounds
    hold after any history. delta is the expectation of (1 - e^(epsilon - loss))+, which is nonnegative and grows with
    the loss. Hence delta is at most e^distortion times the delta of continuous noise at epsilon - shift.
    """
    mu = round_up(math.sqrt(math.fsum(part.mu**2 for part in parts)), 16)
    at = epsilon - round_up(math.fsum(part.shift for part in parts), 16)
    factor = math.exp(min(math.fsum(part.distortion for part in parts), 600.0))
    return min(1.0, round_up(gaussian_delta(at, mu) * factor, 64))


def _tail(x: float) -> float:
    """Return the probability that standard Gaussian noise is above x."""
    return math.erfc(x / math.sqrt(2)) / 2
