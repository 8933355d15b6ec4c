"""Differentially private counts, top-k lists and sets of items, even if the items are not known in advance."""

from discreet import startup  # noqa: F401 - imported first: handles Ctrl-C during the other imports
from discreet._core import __version__
from discreet.api import answer_queries, count, select, top_k
from discreet.budgets import Budget, Ledger
from discreet.certificate import verify
from discreet.errors import BudgetExceeded, DiscreetError
from discreet.mechanisms import (
    ConfirmedCounts,
    GaussianThreshold,
    GaussianTopK,
    GumbelTopK,
    LaplaceThreshold,
    LaplaceTopK,
    OptimalSelection,
    Plume,
    PrivateCountRelease,
    TruncatedGeometric,
)
from discreet.names import __dir__, __getattr__  # noqa: F401 - look up public modules and deprecated names
from discreet.planning.plan import plan
from discreet.privacy import Guarantee
from discreet.release import Release
from discreet.streams import BinaryMechanism, Stream
from discreet.tables import Histogram

__all__ = [
    "BinaryMechanism",
    "Budget",
    "BudgetExceeded",
    "ConfirmedCounts",
    "DiscreetError",
    "GaussianThreshold",
    "GaussianTopK",
    "Guarantee",
    "GumbelTopK",
    "Histogram",
    "LaplaceThreshold",
    "LaplaceTopK",
    "Ledger",
    "OptimalSelection",
    "Plume",
    "PrivateCountRelease",
    "Release",
    "Stream",
    "TruncatedGeometric",
    "__version__",
    "answer_queries",
    "count",
    "plan",
    "select",
    "top_k",
    "verify",
]
