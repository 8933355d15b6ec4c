"""Comparison of runs of a mechanism with its exact output distribution (law). A run is one release."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from discreet import _core
from discreet.audit.findings import LEVEL, Misfit
from discreet.audit.neighbours import centre, unwrapped
from discreet.laws.outcomes import USERS, users_of
from discreet.laws.views import PlainRow, View, plain_rows, views
from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.tables.histogram import Histogram

__all__ = ["compared", "divergence", "histogram_of", "released", "tables"]


def tables(
    mechanism: HistogramMechanism, pairs: Iterable[tuple[Mapping[str, int], Mapping[str, int]]]
) -> list[dict[str, int]]:
    """Return the tables to release: both tables of each pair, and one whose items have about a 50 % chance of release.

    For a mechanism that ranks fewer than 10 items, one more table has one item more than it can rank.
    """
    middle = max(1, centre(mechanism))
    labels = [f"{i}" for i in range(min(mechanism.protects.l0 or 3, 3))]
    found = [{label: middle + 3 * place for place, label in enumerate(labels)}]
    for pair in pairs:
        found += [dict(table) for table in pair]
    most = getattr(unwrapped(mechanism), "k_bar", None)
    if most is not None and most < 10:
        # One item more than the mechanism can rank.
        found.append({f"{i}": middle + 1 + i % 2 for i in range(most)} | {f"{most}": 1})
    return list({tuple(sorted(table.items())): table for table in found}.values())


def compared(
    mechanism: HistogramMechanism, found: Sequence[tuple[Mapping[str, int], Sequence[tuple[PlainRow, ...]]]]
) -> list[Misfit]:
    """Return the misfits between the rows of runs on some tables and the exact laws of these tables.

    A cell is an outcome, or a set of outcomes, that the law gives a probability. The number of runs in a cell of
    probability p is binomial. By Chernoff's bound, the share of n runs is q or further from p, on the same side, with
    probability at most exp(-n KL(q, p)). LEVEL is divided evenly among both sides of all cells of all tables. So a
    correct mechanism has a misfit with probability at most LEVEL. One run in a cell of probability zero is a misfit.
    """
    looked_at = [(table, rows, view) for table, rows in found for view in views(mechanism, table)]
    limit = math.log(2 * sum(len(view.distribution) + 1 for *_, view in looked_at) / LEVEL)
    return [misfit for table, rows, view in looked_at for misfit in _misfits(table, rows, view, limit)]


def _misfits(
    table: Mapping[str, int], rows: Sequence[tuple[PlainRow, ...]], view: View, limit: float
) -> Iterator[Misfit]:
    seen = Counter(map(view.cell, rows))
    runs = max(1, len(rows))
    for cell in {**dict.fromkeys(view.distribution), **seen}:
        chance = min(1.0, max(0.0, view.distribution.get(cell, 0.0)))
        if runs * divergence(seen[cell] / runs, chance) > limit:
            yield Misfit(table=table, view=view.name, cell=str(cell), chance=chance, seen=seen[cell], runs=runs)


def divergence(share: float, chance: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli laws.

    It is infinite if the second law excludes an outcome of the first. Probabilities are known to about 1e-15, so
    smaller ones count as 1e-15.
    """
    slack = 1e-15
    if abs(share - chance) <= slack:
        return 0.0
    if (share > 0 and chance == 0) or (share < 1 and chance == 1):
        return math.inf
    total = 0.0
    for a, b in ((share, chance), (1 - share, 1 - chance)):
        if a > 0:
            total += a * math.log(a / max(b, slack))
    return total


def histogram_of(mechanism: HistogramMechanism, counts: Mapping[str, int]) -> Histogram:
    """Return the histogram of a table, with the sensitivity that the mechanism protects."""
    protected, items = mechanism.protects, {item: n for item, n in counts.items() if item != USERS}
    users = users_of(counts) if isinstance(mechanism, CorrelatedCounts) else None
    return Histogram.from_counts(
        list(items), list(items.values()), l0=protected.l0, linf=protected.linf, complete=True, users=users
    )


def released(
    mechanism: HistogramMechanism, counts: Mapping[str, int], runs: int, rng: _core.Rng
) -> list[tuple[PlainRow, ...]]:
    """Return the rows of `runs` releases of a table."""
    histogram = histogram_of(mechanism, counts)
    return [plain_rows(mechanism.release(histogram, rng=rng)) for _ in range(runs)]
