"""Mechanisms by family. Each has frozen parameters, a guarantee that depends on them alone, and a `release` method."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.base import Mechanism
    from discreet.mechanisms.counts import (
        CalibratedCounts,
        ConfirmedCounts,
        ContributionBound,
        CorrelatedCounts,
        GaussianCounts,
        KeptPairs,
        LaplaceCounts,
        Plume,
        PrivateCountRelease,
        Refinement,
    )
    from discreet.mechanisms.from_histogram import HistogramMechanism
    from discreet.mechanisms.from_table import TableMechanism
    from discreet.mechanisms.sums import Aggregates, ClippedSums, DiscoverAndSum, PrivateSumRelease, SumsWithFoundBounds
    from discreet.mechanisms.threshold import GaussianThreshold, LaplaceThreshold, OptimalSelection, TruncatedGeometric
    from discreet.mechanisms.top_k import (
        DiscoverAndPeel,
        ExponentialMechanism,
        GaussianTopK,
        GumbelTopK,
        LaplaceTopK,
    )
    from discreet.mechanisms.union import IteratedSetUnion, SetUnion, UnionMechanism
    from discreet.mechanisms.wrappers import (
        CountsWithFoundBound,
        CountsWithPublicItems,
        CountsWithShare,
        KnownItems,
        Replacement,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.base": "Mechanism",
            "mechanisms.counts": "CalibratedCounts ConfirmedCounts ContributionBound CorrelatedCounts GaussianCounts "
            "KeptPairs LaplaceCounts Plume PrivateCountRelease Refinement",
            "mechanisms.from_histogram": "HistogramMechanism",
            "mechanisms.from_table": "TableMechanism",
            "mechanisms.sums": "Aggregates ClippedSums DiscoverAndSum PrivateSumRelease SumsWithFoundBounds",
            "mechanisms.threshold": "GaussianThreshold LaplaceThreshold OptimalSelection TruncatedGeometric",
            "mechanisms.top_k": "DiscoverAndPeel ExponentialMechanism GaussianTopK GumbelTopK LaplaceTopK",
            "mechanisms.union": "IteratedSetUnion SetUnion UnionMechanism",
            "mechanisms.wrappers": "CountsWithFoundBound CountsWithPublicItems CountsWithShare KnownItems Replacement",
        },
    )

__all__ = [
    "Aggregates",
    "CalibratedCounts",
    "ClippedSums",
    "ConfirmedCounts",
    "ContributionBound",
    "CorrelatedCounts",
    "CountsWithFoundBound",
    "CountsWithPublicItems",
    "CountsWithShare",
    "DiscoverAndPeel",
    "DiscoverAndSum",
    "ExponentialMechanism",
    "GaussianCounts",
    "GaussianThreshold",
    "GaussianTopK",
    "GumbelTopK",
    "HistogramMechanism",
    "IteratedSetUnion",
    "KeptPairs",
    "KnownItems",
    "LaplaceCounts",
    "LaplaceThreshold",
    "LaplaceTopK",
    "Mechanism",
    "OptimalSelection",
    "Plume",
    "PrivateCountRelease",
    "PrivateSumRelease",
    "Refinement",
    "Replacement",
    "SetUnion",
    "SumsWithFoundBounds",
    "TableMechanism",
    "TruncatedGeometric",
    "UnionMechanism",
]
