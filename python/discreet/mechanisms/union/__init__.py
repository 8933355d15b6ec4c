"""Set-union mechanisms: the items of users with many items each, without counts."""

from discreet.mechanisms.union.iterated_set_union import IteratedSetUnion
from discreet.mechanisms.union.set_union import SetUnion, UnionMechanism

__all__ = ["IteratedSetUnion", "SetUnion", "UnionMechanism"]
