"""Names that a module imports when they are first used, and the deprecated names of version 0.1."""

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module

from discreet.wording import meant

__all__ = ["MODULES", "MOVED", "deprecated", "lazy", "public"]

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
    "mechanisms": "ClippedSums ContributionBound DiscoverAndPeel IteratedSetUnion KnownItems Refinement "
    "Replacement SetUnion",
    "planning": "Plan",
    "privacy": "Sensitivity",
    "queries": "AboveThreshold Answers BoundedAnswers GaussianAnswers GumbelCorrection IterativeSparseVector "
    "LaplaceAnswers PermutedAboveThreshold",
    "streams": "EpochMechanism HonakerMechanism HybridMechanism SquareRootMechanism",
    "tables": "UserItems",
}
"""The names that the package itself exported in version 0.1, by the module that exports them now."""


def lazy(
    module: str,
    names: Mapping[str, str],
    otherwise: Callable[[str], object] | None = None,
    inner: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a module that imports its names when they are first used.

    Args:
        module: The `__name__` of the module.
        names: The names, separated by spaces, by the path under `discreet` of the module that defines them. Names with
            the path of `module` itself are its submodules.
        otherwise: Returns the value of another name, or raises AttributeError.
        inner: The names for the library alone, which are not in `__all__`.
    """
    both = [*names.items(), *(inner or {}).items()]
    paths = {name: f"discreet.{path}".rstrip(".") for path, listed in both for name in listed.split()}
    public = sorted(name for listed in names.values() for name in listed.split() if paths[name] != module)

    def get(name: str) -> object:
        if name not in paths:
            if otherwise is not None:
                return otherwise(name)
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if paths[name] == module:
            return import_module(f"{module}.{name}")
        owner = import_module(paths[name])
        try:
            value = getattr(owner, name)
        except AttributeError as error:
            if error.obj is not owner:
                raise
            value = import_module(f"{paths[name]}.{name}")
        setattr(sys.modules[module], name, value)
        return value

    def shown() -> list[str]:
        return sorted({*public, *(name for name in paths if paths[name] == module)})

    return get, shown, public


def public(name: str) -> Callable[..., object] | None:
    """Return the public class of mechanisms or streams with this name, or None if there is none."""
    for module in map(import_module, ("discreet.mechanisms", "discreet.streams")):
        if name in module.__all__:
            found: Callable[..., object] = getattr(module, name)
            return found
    return None


def deprecated(name: str) -> object:
    """Return a name of version 0.1 with a DeprecationWarning."""
    for path, listed in MOVED.items():
        if name in listed.split():
            warnings.warn(f"discreet.{name} is discreet.{path}.{name} now", DeprecationWarning, stacklevel=3)
            return getattr(import_module(f"discreet.{path}"), name)
    raise _UnknownName(name)


class _UnknownName(AttributeError):
    """The package has no such name. Its text is made on demand, because each import of a module asks for its name."""

    def __str__(self) -> str:
        name, known = self.args[0], [*sys.modules["discreet"].__all__, *MODULES]
        is_mean = name in ("average", "avg", "mean", "means")
        hint = "; discreet.aggregate(..., means=...) publishes means" if is_mean else meant(name, known)
        return f"module 'discreet' has no attribute {name!r}{hint}"
