"""Mechanisms that wrap another mechanism: for replaced users, and for items known in advance."""

from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.mechanisms.wrappers.replacement import Replacement

__all__ = ["KnownItems", "Replacement"]
