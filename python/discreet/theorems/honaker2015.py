"""Running counts from all nodes of a binary tree: J. Honaker, "Efficient Use of Differentially Private Binary Trees"
(2015), bottom-up.

The estimate of a complete node's count is a weighted mean of its own noisy count and the sum of its children's
estimates. The weights are their precisions. The estimates of the nodes that make up a prefix are independent.
"""

from __future__ import annotations

__all__ = ["own_weight"]


def own_weight(level: int) -> float:
    """Return 2^j / (2^(j+1) - 1): the weight of a level-j node's own noisy count in the node's estimate.

    It is also the variance of the estimate for noise of variance one: v_j = 1/(1 + 1/(2 v_(j-1))). As a weight it is
    the precision of the node's own count over the sum of both precisions.
    """
    return 2.0**level / (2.0 ** (level + 1) - 1)
