"""Plans of mechanisms and the choice of a mechanism, before any private data is read."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.planning.comparison import Outlook, PlanComparison
    from discreet.planning.inverse import Needed
    from discreet.planning.plan import Plan
    from discreet.planning.shape import Shape
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "planning.comparison": "Outlook PlanComparison",
            "planning.inverse": "Needed",
            "planning.plan": "Plan",
            "planning.shape": "Shape",
        },
    )

__all__ = ["Needed", "Outlook", "Plan", "PlanComparison", "Shape"]
