"""Mechanisms that wrap another mechanism: for replaced users, and for items known in advance."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.wrappers.known_items import KnownItems
    from discreet.mechanisms.wrappers.replacement import Replacement
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.wrappers.known_items": "KnownItems",
            "mechanisms.wrappers.replacement": "Replacement",
        },
    )

__all__ = ["KnownItems", "Replacement"]
