"""Verification of a guarantee with runs: a lower bound of delta at a confidence level. A run is one release."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet import _core
from discreet.audit.findings import Finding, Misfit, promises, runs_text
from discreet.audit.runs import compared, released
from discreet.errors import ParameterError
from discreet.laws.views import PlainRow
from discreet.mechanisms.base import opened_rng
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.privacy.validation import require_number, require_whole

__all__ = ["Trial", "trial"]

_Outcome = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(Finding):
    """A lower bound of delta at `epsilon` that holds with a given confidence, from runs on two histograms.

    Args:
        epsilon: The epsilon at which delta was bounded.
        delta: The lower bound of delta.
        allowed: The largest delta that the guarantee allows at `epsilon`.
        first: The labels and counts of one histogram.
        second: The labels and counts of the other histogram.
        runs: The number of runs on each histogram.
        confidence: The confidence of the lower bound.
        compared: Whether the exact law of the mechanism is known, and the runs were compared with it.
        misfits: The differences between the runs and the exact law.

    Example:
        >>> import discreet as dp
        >>> rng = dp.testing.seeded_rng(1)
        >>> mechanism = dp.TruncatedGeometric(epsilon=1.0, delta=1e-2)
        >>> found = dp.audit.trial(mechanism, {"a": 4}, {"a": 5}, runs=1000, rng=rng)
        >>> found.runs, found.compared, found.failed
        (1000, True, False)
    """

    runs: int
    confidence: float
    compared: bool = False
    misfits: tuple[Misfit, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the runs violate the guarantee, or do not follow the exact law."""
        return self.violates or bool(self.misfits)

    def __str__(self) -> str:
        verdict = "a VIOLATION" if self.violates else "no violation"
        text = f"{self.runs:,} runs on each table: {verdict} at confidence {self.confidence:g}; {Finding.__str__(self)}"
        return f"{runs_text(self.runs, self.misfits)}\n{text}" if self.compared else text


def trial(
    mechanism: HistogramMechanism,
    first: Mapping[str, int],
    second: Mapping[str, int],
    *,
    runs: int = 10_000,
    confidence: float = 0.999,
    rng: _core.Rng | None = None,
) -> Trial:
    """Release two neighbouring histograms many times, and bound delta from below.

    The first half of the runs chooses a guaranteed (epsilon, delta), an order of the two histograms and a set of
    outcomes. The second half bounds the probabilities of this set (Clopper and Pearson 1934), so the choice does not
    bias the bound. If the exact output distribution of the mechanism is known, all runs are compared with it, at a
    family-wise level of 1e-9.

    Args:
        mechanism: The mechanism to run.
        first: The labels and counts of one histogram.
        second: The labels and counts of a neighbouring histogram.
        runs: The number of runs on each histogram, from 100 to 1e8.
        confidence: The confidence of the lower bound, above 0.5 and below 1.
        rng: Randomness for tests (`discreet.testing.seeded_rng`). By default the system provides it.

    Returns:
        A Trial.

    Raises:
        ParameterError: `runs` or `confidence` is out of range, a table is no mapping of labels to counts, or the
            mechanism does not read a histogram.

    Example:
        >>> import discreet as dp
        >>> rng = dp.testing.seeded_rng(1)
        >>> mechanism = dp.TruncatedGeometric(epsilon=1.0, delta=1e-2)
        >>> found = dp.audit.trial(mechanism, {"a": 4}, {"a": 5}, runs=1000, rng=rng)
        >>> found.delta <= found.allowed
        True
    """
    if not isinstance(mechanism, HistogramMechanism):
        raise ParameterError(
            f"a trial releases histograms, which {type(mechanism).__name__} does not read; use audit, which releases "
            "tables"
        )
    runs = require_whole("runs", runs, 100, 10**8)
    confidence = require_number("confidence", confidence, 0.5, 1 - 1e-12)
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        raise ParameterError('a table of a trial must be counts by label, such as {"a": 4}')
    first, second = ({label: require_whole("a count", n, 0) for label, n in t.items()} for t in (first, second))
    stream = opened_rng(rng)
    sides = [(counts, released(mechanism, counts, runs, stream)) for counts in (first, second)]
    middle = {label: (first.get(label, 0) + second.get(label, 0)) / 2 for label in {*first, *second}}
    halves = [_halves(rows, middle) for _, rows in sides]
    try:
        misfits: list[Misfit] | None = compared(mechanism, sides)
    except ParameterError:  # the law is not known, or has too many outcomes
        misfits = None
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
        compared=misfits is not None,
        misfits=tuple(misfits or ()),
    )


def _halves(
    found: Sequence[tuple[PlainRow, ...]], middle: Mapping[str, float]
) -> list[tuple[Counter[_Outcome], Counter[_Outcome]]]:
    """Return the number of runs with each outcome, for each half of the runs, in a fine and in a coarse view.

    The fine view is the items and their noisy counts. With wide noise few fine outcomes occur twice. So the
    coarse view replaces a noisy count by whether it is above `middle`, the mean of the item's two exact counts.
    """
    fine: list[_Outcome] = [tuple((item, noisy) for item, noisy, _ in rows) for rows in found]
    coarse: list[_Outcome] = [
        tuple((item, noisy is not None and noisy > middle.get(item, 0.0)) for item, noisy, _ in rows) for rows in found
    ]
    half = len(found) // 2
    return [(Counter(view[:half]), Counter(view[half:])) for view in (fine, coarse)]


def _least_chance(hits: int, runs: int, doubt: float) -> float:
    """Return the probability at which `hits` or more hits have probability `doubt` (Clopper and Pearson 1934)."""
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
