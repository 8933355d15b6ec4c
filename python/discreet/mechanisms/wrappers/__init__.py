"""Mechanisms that wrap another mechanism: for replaced users, and for items known in advance."""
