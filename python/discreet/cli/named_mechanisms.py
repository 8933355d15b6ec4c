"""The mechanisms that `discreet count --mechanism` names, instead of the one that `count` chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet import mechanisms
from discreet.cli.options import PLUME
from discreet.errors import ParameterError
from discreet.mechanisms.base import made_for
from discreet.privacy.validation import require_whole

if TYPE_CHECKING:
    from discreet.mechanisms import ConfirmedCounts, Plume, PrivateCountRelease

__all__ = ["mechanism_named"]


def mechanism_named(
    name: str,
    rho: float | None,
    epsilon: float | None,
    *,
    delta: float,
    l0: int | None,
    relative_error: float,
    k_bar: int,
) -> ConfirmedCounts | PrivateCountRelease | Plume:
    """Return the mechanism of a name for a guarantee. Plume uses l0 as m and as m_prime.

    Raises:
        ParameterError: l0 is missing or has no use, or a parameter is out of range.
    """
    if (selection := PLUME.get(name)) is not None:
        if l0 is None:
            raise ParameterError.about("{} needs {l0}: the most items of a user that count", name)
        require_whole("l0", l0, 1, 2**30 if name == "plume" else 4096)
        return made_for(mechanisms.Plume, rho, epsilon, delta=delta, m=l0, m_prime=l0, selection=selection)
    if l0 is not None:
        raise ParameterError.about("{} counts all items of a user: leave out {l0}", name)
    limits = {"relative_error": relative_error, "k_bar": k_bar}
    if name == "confirmed-counts":
        return made_for(mechanisms.ConfirmedCounts, rho, epsilon, delta=delta, **limits)
    return made_for(mechanisms.PrivateCountRelease, rho, epsilon, delta=delta, **limits)
