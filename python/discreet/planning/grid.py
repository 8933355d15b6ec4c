"""Forecasts of counts on a grid of parameters and shapes, for the page of sliders.

The numbers of confirmed counts follow from their price list, as in `theorems.confirmed_counts.forecast`. The numbers of
thresholds follow from the Gaussian law of the noise. Both read expected counts on groups of ranks.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.errors import ParameterError
from discreet.mechanisms.counts.confirmed_counts import ConfirmedCounts
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.planning.law import Size, group_sizes
from discreet.planning.law import clipped as clipped_counts
from discreet.theorems.confirmed_counts import scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["AXES", "SHAPE", "Figures", "around", "confirmed", "grid", "inside", "thresholded"]

AXES: dict[str, tuple[float, ...]] = {
    "rho": (0.03, 0.2, 1.4, 10),
    "delta": (1e-10, 1e-4),
    "l0": (1, 3, 10, 30, 100, 300),
    "users": (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    "items": (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    "exponent": (0.4, 0.6, 0.8, 1.0, 1.2),
    "items_per_user": (1, 3, 10, 30, 100),
}
"""The grid. All axes but the exponent are logarithmic."""
SHAPE = ("items", "exponent", "items_per_user", "users")
"""The axes of a shape."""
_FINE: dict[str, tuple[float, ...]] = {
    "rho": (0.03, 0.06, 0.1, 0.2, 0.4, 0.7, 1.4, 3, 5.5, 10),
    "delta": (1e-10, 1e-8, 1e-6, 1e-4),
    "l0": (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200, 300),
}
"""The finer grid for one shape. It has every l0 of the comparison up to 300."""


class Figures(NamedTuple):
    """The expected number of named items, and of those whose counts are within the relative error of the true count."""

    items: float
    within: float


@lru_cache(maxsize=2)
def grid(relative_error: float) -> dict[str, Any]:
    """Return the forecasts at all points of the grid, as lists in the order of the axes.

    Confirmed counts have no l0, so their lists have one axis less.
    """
    promises = list(product(AXES["rho"], AXES["delta"]))
    unbounded, bounded = [], []
    for items, exponent, each, users in product(*(AXES[name] for name in SHAPE)):
        size = Size(int(users), int(items), exponent, each)
        for rho, delta in promises:
            unbounded += [round(number) for number in confirmed(size, rho, delta, relative_error)]
        found = [_thresholded(size, promises, int(l0), relative_error) for l0 in AXES["l0"]]
        bounded += [round(number) for number in np.stack(found, axis=1).ravel().tolist()]
    return {
        "axes": {name: list(AXES[name]) for name in (*SHAPE, "rho", "delta", "l0")},
        "confirmed": unbounded,
        "threshold": bounded,
        "relative_error": relative_error,
        "share": scale(relative_error),
    }


def around(shape: Mapping[str, float], own: Mapping[str, float], relative_error: float) -> dict[str, Any]:
    """Return the forecasts for one shape on a fine grid of rho, delta and l0, which has the own values of a plan.

    Args:
        shape: The numbers of the shape, by the names in `SHAPE`, each inside its axis.
        own: rho, delta and l0 of the plan, each inside its axis.
        relative_error: The error that counts as close, as a fraction of a count.
    """
    size = Size(int(shape["users"]), int(shape["items"]), shape["exponent"], shape["items_per_user"])
    axes = {name: sorted({*values, own[name]}) for name, values in _FINE.items()}
    unbounded, bounded = [], []
    for rho, delta in product(axes["rho"], axes["delta"]):
        unbounded += [round(number, 2) for number in confirmed(size, rho, delta, relative_error)]
        for l0 in axes["l0"]:
            bounded += [round(number, 2) for number in thresholded(size, rho, delta, int(l0), relative_error)]
    return {"shape": {name: shape[name] for name in SHAPE}, "axes": axes, "confirmed": unbounded, "threshold": bounded}


def inside(name: str, value: float) -> float:
    """Return the value of an axis that is closest to a value."""
    return min(max(value, AXES[name][0]), AXES[name][-1])


def confirmed(size: Size, rho: float, delta: float, relative_error: float) -> Figures:
    """Return the forecast of `ConfirmedCounts` on a shape."""
    sizes, counts = _counts(size, None)
    mechanism = _confirmed(rho, delta, relative_error)
    if mechanism is None:
        return Figures(0, 0)
    items, sigma_share = mechanism.forecast_on(counts, sizes)
    return Figures(items, items * math.erf(relative_error / sigma_share / math.sqrt(2)))


def thresholded(size: Size, rho: float, delta: float, l0: int, relative_error: float) -> Figures:
    """Return the forecast of a Gaussian threshold on a shape, whose users are clipped to l0 items."""
    return Figures(*_thresholded(size, [(rho, delta)], l0, relative_error)[0].tolist())


def _thresholded(
    size: Size, promises: list[tuple[float, float]], l0: int, relative_error: float
) -> NDArray[np.float64]:
    """Return the forecasts of Gaussian thresholds, one row for each rho and delta."""
    sizes, true = _counts(size, None)
    _, counts = _counts(size, l0)
    mechanisms = [_threshold(rho, delta, l0) for rho, delta in promises]
    noise = np.array([[mechanism.sigma] for mechanism in mechanisms])
    least = np.array([[mechanism.threshold.value + 0.5] for mechanism in mechanisms])
    # The choice of each user's items adds the variance of a binomial count to that of the noise.
    chosen = counts * np.maximum(1 - counts / true, 0)
    sigma = np.sqrt(noise**2 + chosen)
    named = _above((least - counts) / sigma)
    low, high = np.maximum((1 - relative_error) * true, least), (1 + relative_error) * true
    close = np.maximum(_above((low - counts) / sigma) - _above((high - counts) / sigma), 0)
    present = np.minimum(1, true)  # an item that nobody has is never named
    return np.stack([named, close], axis=1) @ (sizes * present)


@lru_cache(maxsize=256)
def _shares(size: Size, l0: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ranks, shares = clipped_counts(size, l0, coarse=True)
    return group_sizes(ranks, size.items), shares


def _counts(size: Size, l0: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the numbers of items of groups of ranks, and their counts. The law of one user serves any number."""
    sizes, shares = _shares(size._replace(users=1), l0)
    return sizes, shares * size.users


@lru_cache(maxsize=64)
def _confirmed(rho: float, delta: float, relative_error: float) -> ConfirmedCounts | None:
    try:
        return ConfirmedCounts(rho=rho, delta=delta, relative_error=relative_error)
    except ParameterError:  # rho is too small for one measurement
        return None


@lru_cache(maxsize=512)
def _threshold(rho: float, delta: float, l0: int) -> GaussianThreshold:
    return GaussianThreshold.from_rho(rho=rho, delta=delta, l0=l0)


def _above(bars: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability that standard Gaussian noise is above each bar, to four digits."""
    found: NDArray[np.float64] = np.interp(bars, _BARS, _TAILS)
    return found


_BARS = np.linspace(-8, 8, 1601)
_TAILS = np.array([math.erfc(bar / math.sqrt(2)) / 2 for bar in _BARS])
