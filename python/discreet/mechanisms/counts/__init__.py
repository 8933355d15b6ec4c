"""Mechanisms that release many counts, bound the items of a user, or refine released counts."""

from discreet.mechanisms.counts.confirmed_counts import ConfirmedCounts
from discreet.mechanisms.counts.contribution_bound import ContributionBound
from discreet.mechanisms.counts.plume import Plume
from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
from discreet.mechanisms.counts.refinement import Refinement

__all__ = ["ConfirmedCounts", "ContributionBound", "Plume", "PrivateCountRelease", "Refinement"]
