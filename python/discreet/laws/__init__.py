"""The exact law of what a mechanism publishes of a small histogram, from its own thresholds and tails."""

from discreet.laws.joint import joint_law

__all__ = ["joint_law"]
