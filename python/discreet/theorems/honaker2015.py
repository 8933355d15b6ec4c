"""Running counts from all nodes of a binary tree: J. Honaker, "Efficient Use of Differentially Private Binary Trees"
(2015), bottom-up.

A complete node's count is estimated by its own noisy count and by the sum of its halves' estimates, weighted
by their precisions; the estimates of the nodes that make up a prefix are independent.
"""

from __future__ import annotations

__all__ = ["node_variance", "own_weight", "prefix_variance"]


def node_variance(level: int) -> float:
    """2^j / (2^(j+1) - 1): the variance of the estimate of a node of level j, where a noise has one.

    1/v_j = 1 + 1/(2 v_(j-1)).
    """
    return 2.0**level / (2.0 ** (level + 1) - 1)


def own_weight(level: int) -> float:
    """How much of a node's estimate is its own noisy count: its precision of one over that of both."""
    return node_variance(level)


def prefix_variance(number: int) -> float:
    """The variance of the running count of a round, where a noise has one."""
    return sum(node_variance(j) for j in range(number.bit_length()) if number >> j & 1)
