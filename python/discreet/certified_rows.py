"""The rows of a file with a certificate: whether the mechanism of the certificate can have released them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from discreet import mechanisms, streams
from discreet.engines import untrusted
from discreet.errors import InputError
from discreet.release import reading
from discreet.theorems import confirmed_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.privacy.guarantee import Promising

__all__ = ["CALIBRATED", "COUNTS_USERS", "Implied", "contradicted", "rows_of"]

CALIBRATED = mechanisms.CalibratedCounts | mechanisms.CountsWithPublicItems
"""The mechanisms that say how each count was found."""
COUNTS_USERS = mechanisms.ConfirmedCounts | CALIBRATED
"""The mechanisms that publish the number of users, and confirm items one after another."""


class Implied(Protocol):
    """The parts of a mechanism that its rows follow from."""

    @property
    def mechanism(self) -> Promising:
        """The mechanism of the certificate."""

    @property
    def innermost(self) -> object:
        """The mechanism inside any wrappers."""

    @property
    def known(self) -> frozenset[object]:
        """The public items that pass without a threshold."""

    @property
    def replaced(self) -> bool:
        """Whether a user is replaced, and not added."""


def rows_of(path: str) -> untrusted.Fields | None:
    """Return the fields of the release in a file; None for a file that is too large to be read."""
    if not path.lower().endswith(".parquet"):
        try:
            untrusted.content(Path(path))
        except InputError:
            return None
    return reading.read(path, agreeing=True)


def contradicted(rows: untrusted.Fields, facts: Implied) -> str | None:
    """Return the column that a release of the mechanism cannot have, or None."""
    items, counts, ranks, confirmed = rows["items"], rows["counts"], rows["ranks"], rows["confirmed"]
    number = len(items) if rows["part_of"] is None else rows["part_of"]
    given = facts.known | {*(getattr(facts.mechanism, "items", None) or ())}
    made = facts.innermost
    listed = len(made.items) if isinstance(made, mechanisms.CountsWithPublicItems) else 0
    others = np.array([item not in facts.known for item in items], bool)
    ranked = getattr(facts.innermost, "k", 1)
    checks = {
        "item": (rows["listed"] != "all" or not given or {*items} <= given) and len(items) <= number,
        "rank": ranks is None or all(0 < rank <= ranked for rank in ranks),
        "sigma": counts is None or _has_sigmas(facts, rows, number),
        "count": counts is None or rows["above"] is None or bool(np.all(counts[others] > rows["above"])),
        "method": confirmed is None or int(confirmed.sum()) <= rows["calls"] + listed,
    }
    return next((name for name, is_right in checks.items() if not is_right), None)


def _has_sigmas(facts: Implied, rows: untrusted.Fields, number: int) -> bool:
    """Return whether a release can have these sigmas of its rows, of `number` items of the whole release."""
    made, sigmas = facts.innermost, rows["sigmas"]
    if isinstance(made, mechanisms.CountsWithPublicItems):
        # Those of other items depend on a number of users that is not published.
        given = {*made.items}
        public = np.array([item in given for item in rows["items"]], bool)
        are_all = rows["part_of"] is not None or int(public.sum()) == len(given)
        return are_all and _all_close(sigmas[public], np.array([made.public.deviation]))
    if isinstance(made, COUNTS_USERS):
        heads = made.heads if isinstance(made, mechanisms.CalibratedCounts) else made
        factor, common = (1, 0.0) if rows["users"] is None else (2, rows["users"][1] ** 2)
        levels = confirmed_counts.levels(heads.relative_error, factor=factor, replaced=facts.replaced)
        own = (factor * sigmas[slice(None) if rows["confirmed"] is None else rows["confirmed"]]) ** 2 - common
        return _all_close(own, np.array([step.sigma**2 for level in levels for step in level.steps]), common)
    if isinstance(made, mechanisms.PrivateCountRelease):
        return _all_close(sigmas, np.array([level.sigma for level in made.levels]))
    if isinstance(made, mechanisms.PrivateSumRelease):
        return _all_close(sigmas, np.array(made.sigmas))
    if isinstance(made, mechanisms.Aggregates):
        return _has_aggregates(made, rows)
    if isinstance(made, mechanisms.DiscoverAndSum):
        made = made.sums(tuple(map(str, range(max(1, number)))))
    sigma = getattr(made, "deviation", getattr(made, "sigma", None))
    if isinstance(made, streams.StreamMechanism):
        sigma = made.deviation(rows["round"]) if rows["round"] else 0.0
    return sigma is None or _all_close(sigmas, np.array([sigma]))


def _has_aggregates(made: mechanisms.Aggregates, rows: untrusted.Fields) -> bool:
    """Return whether a release can have these bounds and sigmas of its numbers; sigmas of means are claims."""
    expected, found = made.empty(), rows["aggregates"]
    if [one.header for one in found] != [one.header for one in expected]:
        return False
    sigmas = [rows["sigmas"], *(one.sigmas for one in found if one.kind != "mean")]
    units = [1.0, *(1.0 if one.kind == "rows" else one.resolution for one in expected if one.kind != "mean")]
    scales = [scale[0] for scale in made.scales.values() if len(scale) == 1]
    for mean in (one for one in found if one.kind == "mean"):
        low, high = mean.low * mean.resolution, mean.high * mean.resolution
        slack = 1e-9 * (abs(low) + abs(high))
        is_within = (mean.values >= low - slack) & (mean.values <= high + slack)
        if not np.all(is_within & (mean.sigmas > 0) & (mean.sigmas <= (high - low) / 2 + slack)):
            return False
    return all(
        _all_close(own, np.array([scale * unit])) for own, scale, unit in zip(sigmas, scales, units, strict=True)
    )


def _all_close(values: NDArray[np.float64], allowed: NDArray[np.float64], slack: float = 0.0) -> bool:
    """Return whether each value is one of those allowed, up to rounding; `slack` adds to the scale of rounding."""
    near = np.sort(allowed)
    place = np.searchsorted(near, values).clip(1, max(1, len(near) - 1)) if len(near) > 1 else np.ones(len(values), int)
    sides = near[np.minimum(place, len(near) - 1)], near[place - 1]
    error = np.minimum(*(abs(values - side) for side in sides))
    return bool(np.all(error <= 1e-9 * (abs(values) + slack)))
