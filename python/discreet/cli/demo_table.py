"""The comparison that `discreet demo` shows: a release, the truth, and a release of clipped users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet import api
from discreet.cli import report
from discreet.wording import counted

if TYPE_CHECKING:
    from discreet.release.release import Release

__all__ = ["L0", "clipped_release", "lines", "table"]

L0 = 5
"""The most items of a user in the clipped release."""
_SHOWN = 12


def clipped_release(data: object, *, rho: float, delta: float) -> Release:
    """Return the release in which at most `L0` items of each user count."""
    return api.count(data, user="user", item="item", rho=rho, delta=delta, l0=L0)


def table(release: Release, bounded: Release, truth: dict[str, int]) -> str:
    """Return a table of the first items: intervals, true counts, and the counts of clipped users."""
    shown = release.head(_SHOWN)
    ends = shown.interval(0.95)
    other = {item: (count, sigma) for item, count, sigma in _rows(bounded)}
    columns: dict[str, list[str]] = {"count": [f"{count:,}" for _, count, _ in _rows(shown)]}
    pairs = zip(ends["low"].tolist(), ends["high"].tolist(), strict=True)
    columns["95% interval"] = [f"{low:,} – {high:,}" for low, high in pairs]
    columns["true count"] = [f"{truth[item]:,}" for item in shown.items]
    columns[f"l0={L0} count"] = [f"{other[item][0]:,}" if item in other else "" for item in shown.items]
    columns["± 2 sigma"] = [f"{2 * other[item][1]:,.0f}" if item in other else "" for item in shown.items]
    return report.table(release, shown=_SHOWN, columns=columns)


def lines(release: Release, bounded: Release, truth: dict[str, int]) -> list[str]:
    """Return the sentences that compare both releases with the truth."""
    if not len(release):
        return []
    ends, true = release.interval(0.95), np.array([truth[item] for item in release.items])
    inside = int(np.count_nonzero((ends["low"] <= true) & (true <= ends["high"])))
    found = [f"The 95% interval contains the true count of {inside:,} of {counted(len(release), 'item')}."]
    if len(bounded):
        near = sum(abs(truth[item] - count) <= 2 * sigma for item, count, sigma in _rows(bounded))
        sigma = max(sigma for *_, sigma in _rows(bounded))
        found.append(
            f"A second release, with --l0 {L0}, has {counted(len(bounded), 'item')} and sigma {sigma:.3g}, but its "
            f"counts are those of users clipped to {L0} items each: the true count is within two sigma for {near:,} of "
            "them."
        )
    return found


def _rows(release: Release) -> list[tuple[str, int, float]]:
    assert release.counts is not None
    assert release.sigmas is not None
    return list(zip(release.items, release.counts.tolist(), release.sigmas.tolist(), strict=True))
