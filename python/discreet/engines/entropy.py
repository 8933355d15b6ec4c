"""Secret random bits from the operating system, for keys, limits and names but not for noise."""

from __future__ import annotations

import os

from discreet.errors import EntropyError

__all__ = ["fresh_bits", "fresh_key"]


def fresh_bits(size: int) -> bytes:
    """Return `size` random bytes; raise EntropyError if the operating system provides none."""
    try:
        return os.urandom(size)
    except (OSError, NotImplementedError):
        raise EntropyError("the operating system refused to give randomness; nothing was released") from None


def fresh_key() -> str:
    """Return 256 secret bits as 64 characters, such as a key for orders; errors are the same as in `fresh_bits`."""
    return fresh_bits(32).hex()
