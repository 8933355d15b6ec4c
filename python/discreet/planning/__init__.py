"""Plans of mechanisms and the choice of a mechanism, before any private data is read."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.planning.comparison import Outlook as Outlook
    from discreet.planning.comparison import PlanComparison as PlanComparison
    from discreet.planning.inverse import Needed as Needed
    from discreet.planning.plan import Plan as Plan
    from discreet.planning.shape import Shape as Shape
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "planning.comparison": "Outlook PlanComparison",
            "planning.inverse": "Needed",
            "planning.plan": "Plan",
            "planning.shape": "Shape",
        },
    )
