"""Threshold mechanisms: noise on every count; items whose noisy count exceeds the threshold are released."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.threshold.gaussian import GaussianThreshold
    from discreet.mechanisms.threshold.laplace import LaplaceThreshold
    from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
    from discreet.mechanisms.threshold.truncated_geometric import TruncatedGeometric
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.threshold.gaussian": "GaussianThreshold",
            "mechanisms.threshold.laplace": "LaplaceThreshold",
            "mechanisms.threshold.optimal_selection": "OptimalSelection",
            "mechanisms.threshold.truncated_geometric": "TruncatedGeometric",
        },
    )

__all__ = ["GaussianThreshold", "LaplaceThreshold", "OptimalSelection", "TruncatedGeometric"]
