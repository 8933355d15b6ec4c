"""The ranges of parameters that many mechanisms have."""

from __future__ import annotations

from discreet.errors import ParameterError
from discreet.privacy.guarantee import RHO_LIMIT
from discreet.privacy.validation import require_number, require_whole

__all__ = ["LINF_LIMIT", "check_threshold_parameters", "require_bounds", "require_delta", "require_rho"]

LINF_LIMIT = 2**30
"""The largest linf: above it counts would soon leave their range."""
_L0_LIMIT = 2**30


def check_threshold_parameters(mechanism: object, scale: str) -> None:
    """Checks and normalises scale, delta, l0 and linf of a frozen mechanism.

    Raises ParameterError.
    """
    checked = {
        scale: require_number(scale, getattr(mechanism, scale), 1e-3, 1e9),
        "delta": require_delta(getattr(mechanism, "delta", None)),
    }
    checked["l0"], checked["linf"] = require_bounds(getattr(mechanism, "l0", None), getattr(mechanism, "linf", None))
    if checked["delta"] / checked["l0"] < 1e-307:
        raise ParameterError("delta is too small for the tails of noise on l0 items; give a larger one")
    for name, value in checked.items():
        object.__setattr__(mechanism, name, value)


def require_bounds(l0: object, linf: object = 1) -> tuple[int, int]:
    """The l0 and linf of a mechanism, as whole numbers in their ranges."""
    return require_whole("l0", l0, 1, _L0_LIMIT), require_whole("linf", linf, 1, LINF_LIMIT)


def require_delta(delta: object) -> float:
    """A delta above zero and below one, as a float."""
    return require_number("delta", delta, 1e-300, 1, open_low=False, open_high=True)


def require_rho(rho: float) -> float:
    """A rho that noise of a legal scale can meet."""
    return require_number("rho", rho, 1e-300, RHO_LIMIT, open_low=False)
