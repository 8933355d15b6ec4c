"""Seeded randomness, for tests alone: a release made with it says that it gives no privacy."""

from __future__ import annotations

from discreet import _core
from discreet.privacy.validation import require_whole

__all__ = ["seeded_rng"]


def seeded_rng(seed: int) -> _core.Rng:
    """A repeatable stream of randomness; whoever knows `seed` knows the noise."""
    return _core.Rng.seeded(require_whole("seed", seed, 0, 2**64 - 1))
