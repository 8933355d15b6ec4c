"""Exact output distributions (laws) of a mechanism on a small histogram, from its own thresholds and noise tails."""

from discreet.laws.joint import joint_law

__all__ = ["joint_law"]
