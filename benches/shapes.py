"""Generated tables of users and items with the shapes of real tables, and of two invented ones."""

from __future__ import annotations

from discreet import demo
from discreet.demo import TableShape

SHAPES = {
    "finance": TableShape(users=300_000, items=6_193, exponent=1.0, median=1, most=1),
    "reddit": demo.SHAPES["reddit"],
    "wikipedia": demo.SHAPES["wikipedia"],
    "retail": TableShape(users=4_372, items=3_684, exponent=0.6, median=35, most=202),
    "flat": TableShape(users=20_000, items=1_000, exponent=0.0, median=10, most=20),
    "heavy users": TableShape(users=50_000, items=50_000, exponent=1.0, median=3, most=100),
}
"""Shapes of the benchmarks. finance has fewer users and more popular items than in `discreet.demo`.

The last two are invented."""
