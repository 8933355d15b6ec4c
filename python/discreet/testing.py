"""Seeded randomness for tests. A release that uses it says that it gives no privacy."""

from __future__ import annotations

from discreet import _core
from discreet.privacy.validation import require_whole

__all__ = ["seeded_rng"]


def __dir__() -> list[str]:
    return __all__


def seeded_rng(seed: int) -> _core.Rng:
    """Return a repeatable stream of randomness, for tests only.

    With the seed, anyone can subtract the noise, so a release that uses it gives no privacy and says so.

    Args:
        seed: A whole number from 0 to 2^64 - 1.

    Returns:
        An Rng. Pass it as `rng` to a mechanism's `release`.

    Raises:
        ParameterError: The seed is not a whole number, or out of range.

    Example:
        >>> import discreet as dp
        >>> from discreet.testing import seeded_rng
        >>> histogram = dp.Histogram.from_counts(["a"], [9000], l0=1, linf=1, complete=True)
        >>> release = dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=1).release(histogram, rng=seeded_rng(1))
        >>> release.items, release.promise
        (['a'], 'no privacy: the randomness was seeded')
    """
    return _core.Rng.seeded(require_whole("seed", seed, 0, 2**64 - 1))
