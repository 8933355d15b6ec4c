"""The public names of the package, and the deprecated names of version 0.1."""

import sys
import warnings
from importlib import import_module

__all__ = ["MODULES", "MOVED", "__dir__", "__getattr__"]

MODULES = (
    "audit",
    "budgets",
    "errors",
    "mechanisms",
    "planning",
    "privacy",
    "queries",
    "release",
    "streams",
    "tables",
    "testing",
)
"""The public modules of the package."""
MOVED = {
    "errors": "EntropyError InputError LedgerError ParameterError ResourceError SchemaError SensitivityError "
    "StateError",
    "mechanisms": "ClippedSums ContributionBound DiscoverAndPeel IteratedSetUnion KnownItems PermuteAndFlip Refinement "
    "Replacement SetUnion",
    "planning": "Plan",
    "privacy": "Sensitivity",
    "queries": "AboveThreshold Answers BoundedAnswers GaussianAnswers GumbelCorrection IterativeSparseVector "
    "LaplaceAnswers PermutedAboveThreshold",
    "queries.experimental": "GuardedCorrection SparseVectorCorrection",
    "streams": "HonakerMechanism HybridMechanism SquareRootMechanism",
    "tables": "UserItems",
}
"""The names that the package itself exported in version 0.1, by the module that exports them now."""


def __dir__() -> list[str]:
    """Return the public names of the package."""
    return sorted([*sys.modules["discreet"].__all__, *MODULES])


def __getattr__(name: str) -> object:
    """Return a public module, or a name of version 0.1 with a DeprecationWarning."""
    if name in MODULES:
        return import_module(f"discreet.{name}")
    for module, names in MOVED.items():
        if name in names.split():
            warnings.warn(f"discreet.{name} is discreet.{module}.{name} now", DeprecationWarning, stacklevel=2)
            return getattr(import_module(f"discreet.{module}"), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")
