"""Exact laws of what a mechanism publishes about a small histogram, from its own thresholds and tails."""

from discreet.laws.joint import joint_law

__all__ = ["joint_law"]
