"""Promises held against runs of the mechanism itself: a lower bound of its delta, at a level of confidence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet import _core
from discreet.audit.findings import Finding, promises
from discreet.histogram import Histogram
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy import require_number, require_whole
from discreet.release import Release

__all__ = ["Trial", "trial"]

_Outcome = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(Finding):
    """What so many runs on each histogram prove: at `confidence`, delta is at least `delta` at `epsilon`."""

    runs: int
    confidence: float

    def __str__(self) -> str:
        verdict = "a VIOLATION" if self.violates else "no violation"
        return f"{self.runs:,} runs each show, at confidence {self.confidence:g}, {verdict}: {Finding.__str__(self)}"


def trial(
    mechanism: Mechanism,
    first: Mapping[str, int],
    second: Mapping[str, int],
    *,
    runs: int = 10_000,
    confidence: float = 0.999,
    rng: _core.Rng | None = None,
) -> Trial:
    """Releases both histograms so often, and bounds from below by how much their releases differ.

    The first half of the runs chooses one promise, one direction and one set of outcomes, the second half
    bounds the chances of that set (Clopper and Pearson 1934), so that nothing was chosen by what decides.
    `first` and `second`: labels and counts; `rng` is for tests. Raises ParameterError for fewer than 100
    runs or a confidence outside 0.5 to 1.
    """
    runs = require_whole("runs", runs, 100, 10**8)
    confidence = require_number("confidence", confidence, 0.5, 1 - 1e-12)
    middle = {label: (first.get(label, 0) + second.get(label, 0)) / 2 for label in {*first, *second}}
    stream = _core.Rng() if rng is None else rng
    halves = [_runs(mechanism, counts, runs, stream, middle) for counts in (first, second)]
    best, chosen = -math.inf, None
    for epsilon, allowed in promises(mechanism.guarantee):
        for way in (0, 1):
            for view in (0, 1):
                p, q = (halves[side][view][0] for side in (way, 1 - way))
                event = {outcome for outcome, seen in p.items() if seen > math.exp(epsilon) * q[outcome]}
                gain = sum(p[outcome] - math.exp(epsilon) * q[outcome] for outcome in event) / (runs // 2)
                if gain / allowed > best:
                    best, chosen = gain / allowed, (epsilon, allowed, way, view, event)
    assert chosen is not None
    epsilon, allowed, way, view, event = chosen
    hits = [sum(halves[side][view][1][outcome] for outcome in event) for side in (way, 1 - way)]
    rest, doubt = runs - runs // 2, (1 - confidence) / 2
    low = _least_chance(hits[0], rest, doubt)
    high = 1 - _least_chance(rest - hits[1], rest, doubt)
    return Trial(
        epsilon=epsilon,
        delta=max(0.0, low - math.exp(epsilon) * high),
        allowed=allowed,
        first=first,
        second=second,
        runs=runs,
        confidence=confidence,
    )


def _runs(
    mechanism: Mechanism, counts: Mapping[str, int], runs: int, rng: _core.Rng, middle: Mapping[str, float]
) -> list[tuple[Counter[_Outcome], Counter[_Outcome]]]:
    """How often each outcome came in both halves of the runs, seen in full and seen coarsely.

    Where noise is wide no outcome comes twice; coarsely, a noisy count is above the middle of its two counts or not.
    """
    protected = mechanism.protects
    histogram = Histogram.from_counts(
        list(counts), list(counts.values()), l0=protected.l0, linf=protected.linf, complete=True
    )
    fine, coarse = [], []
    for _ in range(runs):
        release = mechanism.release(histogram, rng)
        rows = _rows(release)
        fine.append(rows)
        coarse.append(tuple((item, noisy is not None and noisy > middle.get(item, 0.0)) for item, noisy in rows))
    half = runs // 2
    return [(Counter(view[:half]), Counter(view[half:])) for view in (fine, coarse)]


def _rows(release: Release) -> tuple[tuple[str, int | None], ...]:
    """The items with their noisy counts, in the order of their publication."""
    noisy = [None] * len(release) if release.counts is None else release.counts.tolist()
    return tuple(zip(release.items, noisy, strict=True))


def _least_chance(hits: int, runs: int, doubt: float) -> float:
    """The chance at which so many hits or more would come with a probability of `doubt` (Clopper and Pearson 1934)."""
    if hits == 0:
        return 0.0
    steps = np.log(np.arange(1, runs + 1))
    factorials = np.concatenate([[0.0], np.cumsum(steps)])
    k = np.arange(hits, runs + 1)
    ways = factorials[runs] - factorials[k] - factorials[runs - k]
    low, high = 0.0, hits / runs
    for _ in range(60):
        p = (low + high) / 2
        with np.errstate(divide="ignore"):
            terms = ways + k * np.log(p) + (runs - k) * np.log1p(-p)
        low, high = (p, high) if np.exp(terms).sum() < doubt else (low, p)
    return low
