"""Mechanisms that release sums of clipped values."""

from discreet.mechanisms.sums.clipped_sums import ClippedSums

__all__ = ["ClippedSums"]
