"""Mechanisms by family. Each has frozen parameters, a guarantee that depends on them alone, and a `release` method."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.base import Mechanism as Mechanism
    from discreet.mechanisms.composed.aggregates import Aggregates as Aggregates
    from discreet.mechanisms.composed.calibrated_aggregates import CalibratedAggregates as CalibratedAggregates
    from discreet.mechanisms.composed.clipped_sums import ClippedSums as ClippedSums
    from discreet.mechanisms.composed.counts_with_found_bound import CountsWithFoundBound as CountsWithFoundBound
    from discreet.mechanisms.composed.counts_with_public_items import CountsWithPublicItems as CountsWithPublicItems
    from discreet.mechanisms.composed.counts_with_share import CountsWithShare as CountsWithShare
    from discreet.mechanisms.composed.discover_and_peel import DiscoverAndPeel as DiscoverAndPeel
    from discreet.mechanisms.composed.discover_and_sum import DiscoverAndSum as DiscoverAndSum
    from discreet.mechanisms.composed.plume import Plume as Plume
    from discreet.mechanisms.composed.private_sum_release import PrivateSumRelease as PrivateSumRelease
    from discreet.mechanisms.composed.sums_with_found_bounds import SumsWithFoundBounds as SumsWithFoundBounds
    from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts as CalibratedCounts
    from discreet.mechanisms.counts.confirmed_counts import ConfirmedCounts as ConfirmedCounts
    from discreet.mechanisms.counts.contribution_bound import ContributionBound as ContributionBound
    from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts as CorrelatedCounts
    from discreet.mechanisms.counts.gaussian_counts import GaussianCounts as GaussianCounts
    from discreet.mechanisms.counts.kept_pairs import KeptPairs as KeptPairs
    from discreet.mechanisms.counts.laplace_counts import LaplaceCounts as LaplaceCounts
    from discreet.mechanisms.counts.private_count_release import PrivateCountRelease as PrivateCountRelease
    from discreet.mechanisms.counts.refinement import Refinement as Refinement
    from discreet.mechanisms.from_histogram import HistogramMechanism as HistogramMechanism
    from discreet.mechanisms.from_table import TableMechanism as TableMechanism
    from discreet.mechanisms.threshold.gaussian import GaussianThreshold as GaussianThreshold
    from discreet.mechanisms.threshold.laplace import LaplaceThreshold as LaplaceThreshold
    from discreet.mechanisms.threshold.optimal_selection import OptimalSelection as OptimalSelection
    from discreet.mechanisms.threshold.truncated_geometric import TruncatedGeometric as TruncatedGeometric
    from discreet.mechanisms.top_k.exponential_mechanism import ExponentialMechanism as ExponentialMechanism
    from discreet.mechanisms.top_k.gaussian import GaussianTopK as GaussianTopK
    from discreet.mechanisms.top_k.gumbel import GumbelTopK as GumbelTopK
    from discreet.mechanisms.top_k.laplace import LaplaceTopK as LaplaceTopK
    from discreet.mechanisms.union.iterated_set_union import IteratedSetUnion as IteratedSetUnion
    from discreet.mechanisms.union.set_union import SetUnion as SetUnion
    from discreet.mechanisms.union.set_union import UnionMechanism as UnionMechanism
    from discreet.mechanisms.wrappers.known_items import KnownItems as KnownItems
    from discreet.mechanisms.wrappers.replacement import Replacement as Replacement
else:
    __getattr__, __dir__, __all__ = lazy(
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
            "mechanisms.composed.calibrated_aggregates": "CalibratedAggregates",
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
