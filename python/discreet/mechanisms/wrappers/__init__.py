"""Mechanisms that wrap another mechanism: for replaced users, and for items known in advance."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.wrappers.counts_with_found_bound import CountsWithFoundBound
    from discreet.mechanisms.wrappers.counts_with_public_items import CountsWithPublicItems
    from discreet.mechanisms.wrappers.counts_with_share import CountsWithShare
    from discreet.mechanisms.wrappers.known_items import KnownItems
    from discreet.mechanisms.wrappers.replacement import Replacement
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.wrappers.counts_with_found_bound": "CountsWithFoundBound",
            "mechanisms.wrappers.counts_with_public_items": "CountsWithPublicItems",
            "mechanisms.wrappers.counts_with_share": "CountsWithShare",
            "mechanisms.wrappers.known_items": "KnownItems",
            "mechanisms.wrappers.replacement": "Replacement",
        },
    )

__all__ = ["CountsWithFoundBound", "CountsWithPublicItems", "CountsWithShare", "KnownItems", "Replacement"]
