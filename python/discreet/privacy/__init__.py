"""Guarantees, sensitivities and conversions between notions of privacy."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee as Guarantee
    from discreet.privacy.guarantee import Sensitivity as Sensitivity
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "privacy.guarantee": "Guarantee Sensitivity",
        },
    )
