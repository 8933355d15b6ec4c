"""Plans of mechanisms and the choice of a mechanism, before any data is read."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.planning.plan import Plan
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "planning.plan": "Plan",
        },
    )

__all__ = ["Plan"]
