"""Mechanisms that release sums of clipped values."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.sums.aggregates import Aggregates
    from discreet.mechanisms.sums.clipped_sums import ClippedSums
    from discreet.mechanisms.sums.discover_and_sum import DiscoverAndSum
    from discreet.mechanisms.sums.found_bounds import SumsWithFoundBounds
    from discreet.mechanisms.sums.private_sum_release import PrivateSumRelease
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.sums.aggregates": "Aggregates",
            "mechanisms.sums.clipped_sums": "ClippedSums",
            "mechanisms.sums.discover_and_sum": "DiscoverAndSum",
            "mechanisms.sums.found_bounds": "SumsWithFoundBounds",
            "mechanisms.sums.private_sum_release": "PrivateSumRelease",
        },
    )

__all__ = ["Aggregates", "ClippedSums", "DiscoverAndSum", "PrivateSumRelease", "SumsWithFoundBounds"]
