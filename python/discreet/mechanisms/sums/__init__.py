"""Mechanisms that release sums of clipped values."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.sums.aggregates import Aggregates
    from discreet.mechanisms.sums.clipped_sums import ClippedSums
    from discreet.mechanisms.sums.discover_and_sum import DiscoverAndSum
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.sums.aggregates": "Aggregates",
            "mechanisms.sums.clipped_sums": "ClippedSums",
            "mechanisms.sums.discover_and_sum": "DiscoverAndSum",
        },
    )

__all__ = ["Aggregates", "ClippedSums", "DiscoverAndSum"]
