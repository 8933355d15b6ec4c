"""Mechanisms that release sums of clipped values."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.sums.clipped_sums import ClippedSums
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.sums.clipped_sums": "ClippedSums",
        },
    )

__all__ = ["ClippedSums"]
