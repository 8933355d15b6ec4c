"""Generated tables of users and items with the shapes of real tables, and of two invented ones."""

from __future__ import annotations

import sys
from pathlib import Path

from discreet import demo
from discreet.demo import TableShape

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "mechanisms"))

import user_shapes

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


class Drawn:
    """A shape of the tests of calibrated counts: what its users have in common is hard for an estimate."""

    def __init__(self, name):
        self.name = name

    def table(self, seed):
        """Return the rows."""
        return user_shapes.table(self.name, seed)[0]


HARD = {
    name: Drawn(name)
    for name in ("bots", "spike", "outliers", "rare of heavy", "rare of light", "bimodal", "pareto", "Zipf 1.6")
}
"""More shapes for utility.py: bots and heavy users with items of their own, and users of two kinds."""
