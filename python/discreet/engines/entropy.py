"""Secret bits from the operating system, for what is no noise: keys of orders, limits and names."""

from __future__ import annotations

import os

from discreet.errors import EntropyError

__all__ = ["fresh_bits", "fresh_key"]


def fresh_bits(size: int) -> bytes:
    """Return `size` random bytes; EntropyError where the operating system gives none."""
    try:
        return os.urandom(size)
    except (OSError, NotImplementedError):
        raise EntropyError("the operating system refused to give randomness; nothing was released") from None


def fresh_key() -> str:
    """Return 256 secret bits as 64 characters, such as for the order of a user's items; errors as `fresh_bits`."""
    return fresh_bits(32).hex()
