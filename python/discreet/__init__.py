"""Counts, top-k lists and sets of items with differential privacy, when nobody knows the items in advance."""

from discreet._core import __version__
from discreet.api import count
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
from discreet.histogram import Histogram
from discreet.mechanisms.private_count_release import PrivateCountRelease
from discreet.privacy import Guarantee, Sensitivity
from discreet.release import Release

__all__ = [
    "BudgetExceeded",
    "DiscreetError",
    "EntropyError",
    "Guarantee",
    "Histogram",
    "InputError",
    "LedgerError",
    "ParameterError",
    "PrivateCountRelease",
    "Release",
    "ResourceError",
    "SchemaError",
    "Sensitivity",
    "SensitivityError",
    "StateError",
    "__version__",
    "count",
]
