"""The methods of set unions."""

from __future__ import annotations

__all__ = ["UNION_METHODS"]

UNION_METHODS = {
    "weighted_gaussian": "even_squares",
    "weighted_laplace": "even",
    "policy_gaussian": "step",
    "policy_laplace": "water",
}
"""The weighting of each method in the Rust kernel."""
