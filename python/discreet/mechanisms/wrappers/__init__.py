"""Mechanisms around a mechanism: for replaced users, and for items that are known."""

from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.mechanisms.wrappers.replacement import Replacement

__all__ = ["KnownItems", "Replacement"]
