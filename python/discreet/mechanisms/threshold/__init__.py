"""Threshold mechanisms: noise on every count; items whose noisy count exceeds the threshold are released."""

from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.mechanisms.threshold.laplace import LaplaceThreshold
from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
from discreet.mechanisms.threshold.truncated_geometric import TruncatedGeometric

__all__ = ["GaussianThreshold", "LaplaceThreshold", "OptimalSelection", "TruncatedGeometric"]
