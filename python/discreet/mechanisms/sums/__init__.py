"""Mechanisms that release sums of clipped values."""
