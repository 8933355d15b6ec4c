"""Sums of values, each clipped."""

from discreet.mechanisms.sums.clipped_sums import ClippedSums

__all__ = ["ClippedSums"]
