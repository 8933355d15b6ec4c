"""Guarantees, sensitivities and conversions between notions of privacy."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee, Sensitivity
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "privacy.guarantee": "Guarantee Sensitivity",
        },
    )

__all__ = ["Guarantee", "Sensitivity"]
