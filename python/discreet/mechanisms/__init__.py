"""One mechanism a module, all of one shape: frozen parameters, a guarantee without data, a release."""

from discreet.mechanisms.clipped_sums import ClippedSums
from discreet.mechanisms.contribution_bound import ContributionBound
from discreet.mechanisms.discover_and_peel import DiscoverAndPeel
from discreet.mechanisms.gaussian_threshold import GaussianThreshold
from discreet.mechanisms.gaussian_top_k import GaussianTopK
from discreet.mechanisms.gumbel_top_k import GumbelTopK
from discreet.mechanisms.iterated_set_union import IteratedSetUnion
from discreet.mechanisms.known_items import KnownItems
from discreet.mechanisms.laplace_threshold import LaplaceThreshold
from discreet.mechanisms.laplace_top_k import LaplaceTopK
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.optimal_selection import OptimalSelection
from discreet.mechanisms.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.plume import Plume
from discreet.mechanisms.private_count_release import PrivateCountRelease
from discreet.mechanisms.refinement import Refinement
from discreet.mechanisms.replacement import Replacement
from discreet.mechanisms.set_union import SetUnion, UnionMechanism
from discreet.mechanisms.truncated_geometric import TruncatedGeometric

__all__ = [
    "ClippedSums",
    "ContributionBound",
    "DiscoverAndPeel",
    "GaussianThreshold",
    "GaussianTopK",
    "GumbelTopK",
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
    "TruncatedGeometric",
    "UnionMechanism",
]
