"""Mechanisms that release many counts, bound the items of a user, or refine released counts."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts
    from discreet.mechanisms.counts.confirmed_counts import ConfirmedCounts
    from discreet.mechanisms.counts.contribution_bound import ContributionBound
    from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
    from discreet.mechanisms.counts.gaussian_counts import GaussianCounts
    from discreet.mechanisms.counts.kept_pairs import KeptPairs
    from discreet.mechanisms.counts.laplace_counts import LaplaceCounts
    from discreet.mechanisms.counts.plume import Plume
    from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
    from discreet.mechanisms.counts.refinement import Refinement
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.counts.calibrated_counts": "CalibratedCounts",
            "mechanisms.counts.confirmed_counts": "ConfirmedCounts",
            "mechanisms.counts.contribution_bound": "ContributionBound",
            "mechanisms.counts.correlated_counts": "CorrelatedCounts",
            "mechanisms.counts.gaussian_counts": "GaussianCounts",
            "mechanisms.counts.kept_pairs": "KeptPairs",
            "mechanisms.counts.laplace_counts": "LaplaceCounts",
            "mechanisms.counts.plume": "Plume",
            "mechanisms.counts.private_count_release": "PrivateCountRelease",
            "mechanisms.counts.refinement": "Refinement",
        },
    )

__all__ = [
    "CalibratedCounts",
    "ConfirmedCounts",
    "ContributionBound",
    "CorrelatedCounts",
    "GaussianCounts",
    "KeptPairs",
    "LaplaceCounts",
    "Plume",
    "PrivateCountRelease",
    "Refinement",
]
