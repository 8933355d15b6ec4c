"""Mechanisms by family. Each has frozen parameters, a guarantee that depends on them alone, and a `release` method."""

from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.counts import ConfirmedCounts, ContributionBound, Plume, PrivateCountRelease, Refinement
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.sums import ClippedSums
from discreet.mechanisms.threshold import GaussianThreshold, LaplaceThreshold, OptimalSelection, TruncatedGeometric
from discreet.mechanisms.top_k import DiscoverAndPeel, GaussianTopK, GumbelTopK, LaplaceTopK, PermuteAndFlip
from discreet.mechanisms.union import IteratedSetUnion, SetUnion, UnionMechanism
from discreet.mechanisms.wrappers import KnownItems, Replacement

__all__ = [
    "ClippedSums",
    "ConfirmedCounts",
    "ContributionBound",
    "DiscoverAndPeel",
    "GaussianThreshold",
    "GaussianTopK",
    "GumbelTopK",
    "HistogramMechanism",
    "IteratedSetUnion",
    "KnownItems",
    "LaplaceThreshold",
    "LaplaceTopK",
    "Mechanism",
    "OptimalSelection",
    "PermuteAndFlip",
    "Plume",
    "PrivateCountRelease",
    "Refinement",
    "Replacement",
    "SetUnion",
    "TableMechanism",
    "TruncatedGeometric",
    "UnionMechanism",
]
