"""Differentially private counts, top-k lists and sets of items, even if the items are not known in advance."""

from discreet import startup  # noqa: F401 - first: it handles Ctrl-C during all other imports

# isort: split
from typing import TYPE_CHECKING

from discreet.names import deprecated, lazy

if TYPE_CHECKING:
    from discreet import (
        audit as audit,
    )
    from discreet import (
        budgets as budgets,
    )
    from discreet import (
        errors as errors,
    )
    from discreet import (
        mechanisms as mechanisms,
    )
    from discreet import (
        planning as planning,
    )
    from discreet import (
        privacy as privacy,
    )
    from discreet import (
        queries as queries,
    )
    from discreet import (
        release as release,
    )
    from discreet import (
        streams as streams,
    )
    from discreet import (
        tables as tables,
    )
    from discreet import (
        testing as testing,
    )
    from discreet._core import __version__
    from discreet.api import answer_queries, count, select, top_k
    from discreet.budgets import Budget, Ledger
    from discreet.certificate import verify
    from discreet.errors import BudgetExceeded, DiscreetError
    from discreet.mechanisms import (
        CalibratedCounts,
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
    from discreet.planning.plan import plan
    from discreet.planning.shape import Shape
    from discreet.privacy import Guarantee
    from discreet.release import Release
    from discreet.streams import BinaryMechanism, Stream
    from discreet.sums import aggregate, sum  # noqa: A004 - the name of the command, and of SQL
    from discreet.tables import Histogram, Table
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "": "audit budgets errors mechanisms planning privacy queries release streams tables testing",
            "_core": "__version__",
            "api": "answer_queries count select top_k",
            "budgets": "Budget Ledger",
            "certificate": "verify",
            "errors": "BudgetExceeded DiscreetError",
            "mechanisms": "CalibratedCounts ConfirmedCounts GaussianThreshold GaussianTopK GumbelTopK LaplaceThreshold "
            "LaplaceTopK OptimalSelection Plume PrivateCountRelease TruncatedGeometric",
            "planning.plan": "plan",
            "planning.shape": "Shape",
            "privacy": "Guarantee",
            "release": "Release",
            "streams": "BinaryMechanism Stream",
            "sums": "aggregate sum",
            "tables": "Histogram Table",
        },
        otherwise=deprecated,
    )

__all__ = [
    "BinaryMechanism",
    "Budget",
    "BudgetExceeded",
    "CalibratedCounts",
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
    "Shape",
    "Stream",
    "Table",
    "TruncatedGeometric",
    "__version__",
    "aggregate",
    "answer_queries",
    "count",
    "plan",
    "select",
    "sum",
    "top_k",
    "verify",
]
