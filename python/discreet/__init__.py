"""Differentially private counts, top-k lists and sets of items, even if the items are not known in advance."""

from typing import TYPE_CHECKING

from discreet.names import deprecated, lazy

if TYPE_CHECKING:
    from discreet import audit as audit
    from discreet import budgets as budgets
    from discreet import errors as errors
    from discreet import mechanisms as mechanisms
    from discreet import planning as planning
    from discreet import privacy as privacy
    from discreet import queries as queries
    from discreet import release as release
    from discreet import streams as streams
    from discreet import tables as tables
    from discreet import testing as testing
    from discreet._core import __version__ as __version__
    from discreet.api import answer_queries as answer_queries
    from discreet.api import count as count
    from discreet.api import select as select
    from discreet.api import top_k as top_k
    from discreet.budgets import Budget as Budget
    from discreet.budgets import Ledger as Ledger
    from discreet.certificate import verify as verify
    from discreet.errors import BudgetExceeded as BudgetExceeded
    from discreet.errors import DiscreetError as DiscreetError
    from discreet.mechanisms import CalibratedCounts as CalibratedCounts
    from discreet.mechanisms import ConfirmedCounts as ConfirmedCounts
    from discreet.mechanisms import GaussianThreshold as GaussianThreshold
    from discreet.mechanisms import GaussianTopK as GaussianTopK
    from discreet.mechanisms import GumbelTopK as GumbelTopK
    from discreet.mechanisms import LaplaceThreshold as LaplaceThreshold
    from discreet.mechanisms import LaplaceTopK as LaplaceTopK
    from discreet.mechanisms import OptimalSelection as OptimalSelection
    from discreet.mechanisms import Plume as Plume
    from discreet.mechanisms import PrivateCountRelease as PrivateCountRelease
    from discreet.mechanisms import TruncatedGeometric as TruncatedGeometric
    from discreet.planning.plan import plan as plan
    from discreet.planning.shape import Shape as Shape
    from discreet.privacy import Guarantee as Guarantee
    from discreet.release import Release as Release
    from discreet.streams import BinaryMechanism as BinaryMechanism
    from discreet.streams import Stream as Stream
    from discreet.sums import aggregate as aggregate
    from discreet.sums import sum as sum  # noqa: A004 - the name of the command, and of SQL
    from discreet.tables import Histogram as Histogram
    from discreet.tables import Table as Table
else:
    __getattr__, __dir__, __all__ = lazy(
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
