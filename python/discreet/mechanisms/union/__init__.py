"""Set-union mechanisms: the items of users with many items each, without counts."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.union.iterated_set_union import IteratedSetUnion
    from discreet.mechanisms.union.set_union import SetUnion, UnionMechanism
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.union.iterated_set_union": "IteratedSetUnion",
            "mechanisms.union.set_union": "SetUnion UnionMechanism",
        },
    )

__all__ = ["IteratedSetUnion", "SetUnion", "UnionMechanism"]
