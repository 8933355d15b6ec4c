"""Exact output distributions (laws) of a mechanism on a small histogram, from its own thresholds and noise tails."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.laws.joint import joint_law as joint_law
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "laws.joint": "joint_law",
        },
    )
