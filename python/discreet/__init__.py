"""Counts, top-k lists and sets of items with differential privacy, when nobody knows the items in advance."""

from discreet import startup  # noqa: F401 - first: it ends the command at a Ctrl-C during the imports below
from discreet._core import __version__
from discreet.api import answer_queries, count, select, top_k
from discreet.budgets.budget import Budget
from discreet.budgets.ledger import Ledger
from discreet.certificate import verify
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    EntropyError,
    InputError,
    LedgerError,
    ParameterError,
    ResourceError,
    SchemaError,
    SensitivityError,
    StateError,
)
from discreet.mechanisms.counts.contribution_bound import ContributionBound
from discreet.mechanisms.counts.plume import Plume
from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
from discreet.mechanisms.counts.refinement import Refinement
from discreet.mechanisms.sums.clipped_sums import ClippedSums
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.mechanisms.threshold.laplace import LaplaceThreshold
from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
from discreet.mechanisms.threshold.truncated_geometric import TruncatedGeometric
from discreet.mechanisms.top_k.discover_and_peel import DiscoverAndPeel
from discreet.mechanisms.top_k.gaussian import GaussianTopK
from discreet.mechanisms.top_k.gumbel import GumbelTopK
from discreet.mechanisms.top_k.laplace import LaplaceTopK
from discreet.mechanisms.top_k.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.union.iterated_set_union import IteratedSetUnion
from discreet.mechanisms.union.set_union import SetUnion
from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.mechanisms.wrappers.replacement import Replacement
from discreet.planning.plan import Plan, plan
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.queries.answers import Answers
from discreet.queries.bounded import BoundedAnswers
from discreet.queries.gumbel_correction import GumbelCorrection
from discreet.queries.noisy import GaussianAnswers, LaplaceAnswers
from discreet.queries.sparse_correction import GuardedCorrection, SparseVectorCorrection
from discreet.queries.sparse_vector import AboveThreshold, IterativeSparseVector, PermutedAboveThreshold
from discreet.release.release import Release
from discreet.streams.binary import BinaryMechanism
from discreet.streams.honaker import HonakerMechanism
from discreet.streams.hybrid import HybridMechanism
from discreet.streams.square_root import SquareRootMechanism
from discreet.streams.stream import Stream
from discreet.tables.histogram import Histogram
from discreet.tables.user_items import UserItems

__all__ = [
    "AboveThreshold",
    "Answers",
    "BinaryMechanism",
    "BoundedAnswers",
    "Budget",
    "BudgetExceeded",
    "ClippedSums",
    "ContributionBound",
    "DiscoverAndPeel",
    "DiscreetError",
    "EntropyError",
    "GaussianAnswers",
    "GaussianThreshold",
    "GaussianTopK",
    "Guarantee",
    "GuardedCorrection",
    "GumbelCorrection",
    "GumbelTopK",
    "Histogram",
    "HonakerMechanism",
    "HybridMechanism",
    "InputError",
    "IteratedSetUnion",
    "IterativeSparseVector",
    "KnownItems",
    "LaplaceAnswers",
    "LaplaceThreshold",
    "LaplaceTopK",
    "Ledger",
    "LedgerError",
    "OptimalSelection",
    "ParameterError",
    "PermuteAndFlip",
    "PermutedAboveThreshold",
    "Plan",
    "Plume",
    "PrivateCountRelease",
    "Refinement",
    "Release",
    "Replacement",
    "ResourceError",
    "SchemaError",
    "Sensitivity",
    "SensitivityError",
    "SetUnion",
    "SparseVectorCorrection",
    "SquareRootMechanism",
    "StateError",
    "Stream",
    "TruncatedGeometric",
    "UserItems",
    "__version__",
    "answer_queries",
    "count",
    "plan",
    "select",
    "top_k",
    "verify",
]
