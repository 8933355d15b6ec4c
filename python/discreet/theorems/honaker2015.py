"""Running counts from all nodes of a binary tree: J. Honaker, "Efficient Use of Differentially Private Binary Trees"
(2015), bottom-up.

A complete node's count is estimated by its own noisy count and by the sum of its halves' estimates, weighted
by their precisions; the estimates of the nodes that make up a prefix are independent.
"""

from __future__ import annotations

__all__ = ["own_weight"]


def own_weight(level: int) -> float:
    """2^j / (2^(j+1) - 1): how much of the estimate of a node of level j is its own noisy count, and its variance.

    v_j = 1/(1 + 1/(2 v_(j-1))), where a noise has a variance of one: the precision of its own count over that of both.
    """
    return 2.0**level / (2.0 ** (level + 1) - 1)
