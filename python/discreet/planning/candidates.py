"""The mechanisms that a plan compares for a job, and their runs on public data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median_low
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from discreet import mechanisms
from discreet.engines.table import Table
from discreet.errors import DiscreetError, ParameterError
from discreet.mechanisms.base import made_for
from discreet.mechanisms.fewest import users_for
from discreet.mechanisms.parameters import K_BAR, RELATIVE_ERROR
from discreet.mechanisms.union.methods import UNION_METHODS
from discreet.planning.choose import SURE, choose
from discreet.planning.comparison import Outlook, PlanComparison, with_best
from discreet.planning.inverse import bound_of
from discreet.tables.histogram import Histogram
from discreet.tables.user_items import UserItems
from discreet.testing import seeded_rng

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.mechanisms.counts.calibrated_counts import CalibratedSteps
    from discreet.planning.choose import Chosen, Parameters
    from discreet.planning.comparison import Regime
    from discreet.planning.sources import PublicData
    from discreet.release.release import Release

__all__ = ["Job", "compared", "compared_alone", "histogram_for", "outlook"]

L0S = (1, 3, 10, 30, 100)
"""The bounds on a user's items that a plan of counts always shows."""
_OTHER_L0S = (2, 5, 20, 50, 200, 300, 500, 1_000, 3_000)
"""The other bounds among which it looks for the best one."""
_RUNS = 3
_CLOSE = 1.1
"""A number of users within this factor of the least number decides by noise."""
_FEW_LOST = 0.004
"""If one item of each user loses fewer pairs, nearly no user has more."""


class Job(NamedTuple):
    """The task for which a plan compares mechanisms."""

    verb: str
    relative_error: float
    k: int | None


def compared(verb: str, parameters: Parameters, source: PublicData) -> PlanComparison:
    """Return the forecasts of all mechanisms that could do the job of a verb."""
    verb = verb.replace("-", "_")
    job = Job(verb, parameters.get("relative_error", RELATIVE_ERROR), parameters.get("k"))
    rows, notes = [], []
    find: dict[str, Callable[..., Iterator[tuple[str, Chosen]]]] = {
        "count": _for_count,
        "top_k": _for_top_k,
        "select": _for_select,
    }
    for name, mechanism in find[verb](parameters, source):
        found = outlook(name, mechanism, source, job)
        if found is not None:
            rows.append(found)
    if verb == "count":
        rows = _with_best_threshold(rows, source)
    if verb != "count" and source.rows() is None:
        notes.append("Mechanisms that read rows are not compared: the public data has no rows, or too many.")
    lacks_default = verb == "count" and parameters.get("l0") is None and source.held() is None
    if lacks_default:
        notes.append("CalibratedCounts, the default, is not compared: the public data has no rows, or too many.")
    if verb == "count" and source.clipped(1) is None:
        notes.append("Thresholds are not compared: counts do not tell how many items a user has.")
    notes += [
        f"{row.label} missed {100 * row.missed:.2g} % of the items of {SURE} times the users for a 50 % chance: "
        "clipping drops most of their users, or chance does."
        for row in rows
        if row.missed and row.l0 == parameters.get("l0")
    ]
    return PlanComparison(
        like=source.name,
        relative_error=job.relative_error,
        rows=tuple(rows) if lacks_default else with_best(rows),
        notes=tuple(notes),
    )


def compared_alone(mechanism: Chosen, source: PublicData) -> PlanComparison | None:
    """Return the forecast of one mechanism; None if it cannot run on this data."""
    k = getattr(mechanism, "k", None)
    error: float = getattr(mechanism, "relative_error", RELATIVE_ERROR)
    verb = "select" if mechanism.reads is UserItems else "count" if k is None else "top_k"
    found = outlook(type(mechanism).__name__, mechanism, source, Job(verb, error, k))
    if found is None:
        return None
    return PlanComparison(like=source.name, relative_error=error, rows=(found,))


def _promise(parameters: Parameters) -> dict[str, Any]:
    """Return the parameters that state the guarantee."""
    return {name: value for name, value in parameters.items() if name in ("rho", "epsilon", "delta")}


def _for_count(parameters: Parameters, source: PublicData) -> Iterator[tuple[str, Chosen]]:
    promise, given = _promise(parameters), parameters.get("l0")
    error = parameters.get("relative_error", RELATIVE_ERROR)
    more: dict[str, object] = {"relative_error": error, "delta": promise["delta"]}
    if parameters.get("k_bar", K_BAR) != K_BAR:  # the mechanisms have different defaults
        more["k_bar"] = parameters["k_bar"]
    kinds: tuple[Any, ...] = (mechanisms.ConfirmedCounts, mechanisms.PrivateCountRelease)
    if source.held() is not None:
        kinds = (mechanisms.CalibratedCounts, *kinds)
    for kind in kinds:
        made = partial(made_for, kind, promise.get("rho"), promise.get("epsilon"), **more)
        yield from _possible(kind.__name__, made)
    for l0 in sorted({*L0S, *([given] if given else []), *(l0 for l0 in _OTHER_L0S if l0 < source.unclipped_l0)}):
        if source.clipped(l0) is not None:
            yield from _possible(None, _chosen, "count", l0=l0, **promise)


def _for_top_k(parameters: Parameters, source: PublicData) -> Iterator[tuple[str, Chosen]]:
    promise, k, given = _promise(parameters), parameters["k"], parameters.get("l0")
    k_bar = {"k_bar": parameters["k_bar"]} if "k_bar" in parameters else {}
    yield from _possible("gumbel", _chosen, "top_k", k=k, **k_bar, **promise)
    if source.rows() is not None:
        for l0 in sorted({*L0S, *([given] if given else [])}):
            yield from _possible("discover+peel", _chosen, "top_k", k=k, l0=l0, method="discover+peel", **promise)


def _for_select(parameters: Parameters, source: PublicData) -> Iterator[tuple[str, Chosen]]:
    promise, given = _promise(parameters), parameters.get("l0")
    for l0 in sorted({*([given] if given else []), *(l0 for l0 in L0S if l0 < source.unclipped_l0)}):
        if source.clipped(l0) is not None:
            yield from _possible("threshold", _chosen, "select", l0=l0, method="threshold", **promise)
        if source.rows() is not None:
            for method in ("dp_sips", *UNION_METHODS) if l0 == given else ("dp_sips",):
                yield from _possible(method, _chosen, "select", l0=l0, method=method, **promise)


def _chosen(verb: str, **parameters: Unpack[Parameters]) -> Chosen:
    return choose(verb, **parameters)[0]


def _possible(
    name: str | None, make: Callable[..., Chosen], *arguments: str, **parameters: object
) -> Iterator[tuple[str, Chosen]]:
    """Yield a mechanism with its name, or that of its class, unless the parameters are out of its range."""
    try:
        made = make(*arguments, **parameters)
    except ParameterError:
        return
    yield name or type(made).__name__, made


def _with_best_threshold(rows: list[Outlook], source: PublicData) -> list[Outlook]:
    """Return the rows without the bounds that were only tried, except the best of all."""
    tried = [row for row in rows if row.l0 is not None]
    best = max(tried, key=lambda row: row.score, default=None)
    return [row for row in rows if row.l0 not in _OTHER_L0S or row is best]


def outlook(name: str, mechanism: Chosen, source: PublicData, job: Job) -> Outlook | None:
    """Return the forecast of one mechanism; None if it cannot run on this data.

    The mechanism runs three times with fixed seeds. Each number is the middle one of the three.
    """
    l0 = bound_of(mechanism)
    try:
        seen = list(_runs(mechanism, source, l0))
    except DiscreetError:  # the parameters are out of range for this data
        return None
    if not seen:
        return None
    true = source.drawn if isinstance(mechanism, mechanisms.CalibratedCounts) else source.counts
    figures = [_figures(run, ranks, true, job) for run, ranks, _ in seen]
    middle = {key: _middle([figure.get(key) for figure in figures]) for key in figures[0]}
    missed = None
    if job.verb == "select":
        sure = np.flatnonzero(source.counts >= SURE * users_for(mechanism, 0.5))
        missed = float(np.mean([1 - np.isin(sure, ranks).mean() for _, ranks, _ in seen])) if len(sure) else 0.0
    regime = _regime([(run, steps) for run, _, steps in seen if steps is not None], source.lost(1))
    return Outlook(name=name, l0=l0, clipped_share=source.lost(l0), missed=missed, regime=regime, **middle)


def _regime(runs: list[tuple[Release, CalibratedSteps]], lost: float) -> Regime | None:
    """Return how calibrated counts release these runs: also "either" if a number of users is near a least one.

    `lost` is the share of pairs that is lost if one item of each user is counted.
    """
    ways: set[Regime] = set()
    for run, steps in runs:
        confirmed = run.confirmed is not None and run.confirmed.all()
        ways.add("one item" if steps.single else "confirmed" if confirmed else "estimated")
        margins = (steps.margin, steps.opening if lost < _FEW_LOST else math.nan)
        if any(1 / _CLOSE <= margin <= _CLOSE for margin in margins):
            return "either"
    return ("either" if len(ways) > 1 else ways.pop()) if ways else None


def _runs(
    mechanism: Chosen, source: PublicData, l0: int | None
) -> Iterator[tuple[Release, NDArray[np.int64], CalibratedSteps | None]]:
    """Yield releases of public data with fixed seeds, the ranks of their items, and the steps of calibrated counts."""
    if isinstance(mechanism, mechanisms.CalibratedCounts):
        if (rows := source.held()) is not None:
            for seed in range(1, _RUNS + 1):
                steps = mechanism._steps(rows, seeded_rng(seed))  # noqa: SLF001 - the steps are of public data
                run = steps.release()
                yield run, source.ranks(run.items), steps
        return
    reading = {Histogram: lambda: histogram_for(source, l0), UserItems: source.user_items, Table: source.rows}
    data = reading[mechanism.reads]()
    runs = 0 if data is None else 1 if mechanism.reads is Table else _RUNS  # a table is read twice in each run
    for seed in range(1, runs + 1):
        run = mechanism.release(data, rng=seeded_rng(seed))  # type: ignore[arg-type]
        yield run, np.array(run.items, np.int64) if mechanism.reads is Histogram else source.ranks(run.items), None


def histogram_for(source: PublicData, l0: int | None) -> Histogram | None:
    """Return a histogram of public counts by rank, clipped to l0; None if the counts do not tell how to clip."""
    counts = source.counts if l0 is None else source.clipped(l0)
    if counts is None:
        return None
    present = np.flatnonzero(counts)
    users = source.users if l0 is None else None
    return Histogram.from_counts(present, counts[present], l0=l0, linf=1, complete=True, users=users)


def _figures(run: Release, ranks: NDArray[np.int64], counts: NDArray[np.int64], job: Job) -> dict[str, Any]:
    """Return the numbers of one run."""
    true = np.maximum(counts[ranks], 1)  # the rarest items of a shape have less than half a user
    figures: dict[str, Any] = {"items": len(ranks), "smallest": int(true.min()) if len(ranks) else None}
    if job.verb == "top_k":
        figures["in_top_k"] = int((ranks < (job.k or 0)).sum())
    if job.verb == "count" and run.counts is not None and run.sigmas is not None:
        figures["within"] = int((np.abs(run.counts - true) <= job.relative_error * true).sum())
        figures["sigma_largest"] = figures["sigma_smallest"] = None
        if len(ranks):
            first, last = int(np.argmax(run.counts)), int(np.argmin(run.counts))
            figures["smallest"] = int(run.counts[last])
            figures["sigma_largest"], figures["sigma_smallest"] = float(run.sigmas[first]), float(run.sigmas[last])
    return figures


def _middle(values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    return median_low(known) if known else None
