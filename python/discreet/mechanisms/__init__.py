"""Mechanisms by family. Each has frozen parameters, a guarantee that depends on them alone, and a `release` method."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.base import Mechanism
    from discreet.mechanisms.composed.aggregates import Aggregates
    from discreet.mechanisms.composed.clipped_sums import ClippedSums
    from discreet.mechanisms.composed.counts_with_found_bound import CountsWithFoundBound
    from discreet.mechanisms.composed.counts_with_public_items import CountsWithPublicItems
    from discreet.mechanisms.composed.counts_with_share import CountsWithShare
    from discreet.mechanisms.composed.discover_and_peel import DiscoverAndPeel
    from discreet.mechanisms.composed.discover_and_sum import DiscoverAndSum
    from discreet.mechanisms.composed.plume import Plume
    from discreet.mechanisms.composed.private_sum_release import PrivateSumRelease
    from discreet.mechanisms.composed.sums_with_found_bounds import SumsWithFoundBounds
    from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts
    from discreet.mechanisms.counts.confirmed_counts import ConfirmedCounts
    from discreet.mechanisms.counts.contribution_bound import ContributionBound
    from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
    from discreet.mechanisms.counts.gaussian_counts import GaussianCounts
    from discreet.mechanisms.counts.kept_pairs import KeptPairs
    from discreet.mechanisms.counts.laplace_counts import LaplaceCounts
    from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
    from discreet.mechanisms.counts.refinement import Refinement
    from discreet.mechanisms.from_histogram import HistogramMechanism
    from discreet.mechanisms.from_table import TableMechanism
    from discreet.mechanisms.threshold.gaussian import GaussianThreshold
    from discreet.mechanisms.threshold.laplace import LaplaceThreshold
    from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
    from discreet.mechanisms.threshold.truncated_geometric import TruncatedGeometric
    from discreet.mechanisms.top_k.exponential_mechanism import ExponentialMechanism
    from discreet.mechanisms.top_k.gaussian import GaussianTopK
    from discreet.mechanisms.top_k.gumbel import GumbelTopK
    from discreet.mechanisms.top_k.laplace import LaplaceTopK
    from discreet.mechanisms.union.iterated_set_union import IteratedSetUnion
    from discreet.mechanisms.union.set_union import SetUnion, UnionMechanism
    from discreet.mechanisms.wrappers.known_items import KnownItems
    from discreet.mechanisms.wrappers.replacement import Replacement
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.base": "Mechanism",
            "mechanisms.counts.calibrated_counts": "CalibratedCounts",
            "mechanisms.counts.confirmed_counts": "ConfirmedCounts",
            "mechanisms.counts.contribution_bound": "ContributionBound",
            "mechanisms.counts.correlated_counts": "CorrelatedCounts",
            "mechanisms.counts.gaussian_counts": "GaussianCounts",
            "mechanisms.counts.kept_pairs": "KeptPairs",
            "mechanisms.counts.laplace_counts": "LaplaceCounts",
            "mechanisms.composed.plume": "Plume",
            "mechanisms.counts.private_count_release": "PrivateCountRelease",
            "mechanisms.counts.refinement": "Refinement",
            "mechanisms.from_histogram": "HistogramMechanism",
            "mechanisms.from_table": "TableMechanism",
            "mechanisms.composed.aggregates": "Aggregates",
            "mechanisms.composed.clipped_sums": "ClippedSums",
            "mechanisms.composed.discover_and_sum": "DiscoverAndSum",
            "mechanisms.composed.sums_with_found_bounds": "SumsWithFoundBounds",
            "mechanisms.composed.private_sum_release": "PrivateSumRelease",
            "mechanisms.threshold.gaussian": "GaussianThreshold",
            "mechanisms.threshold.laplace": "LaplaceThreshold",
            "mechanisms.threshold.optimal_selection": "OptimalSelection",
            "mechanisms.threshold.truncated_geometric": "TruncatedGeometric",
            "mechanisms.composed.discover_and_peel": "DiscoverAndPeel",
            "mechanisms.top_k.exponential_mechanism": "ExponentialMechanism",
            "mechanisms.top_k.gaussian": "GaussianTopK",
            "mechanisms.top_k.gumbel": "GumbelTopK",
            "mechanisms.top_k.laplace": "LaplaceTopK",
            "mechanisms.union.iterated_set_union": "IteratedSetUnion",
            "mechanisms.union.set_union": "SetUnion UnionMechanism",
            "mechanisms.composed.counts_with_found_bound": "CountsWithFoundBound",
            "mechanisms.composed.counts_with_public_items": "CountsWithPublicItems",
            "mechanisms.composed.counts_with_share": "CountsWithShare",
            "mechanisms.wrappers.known_items": "KnownItems",
            "mechanisms.wrappers.replacement": "Replacement",
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
