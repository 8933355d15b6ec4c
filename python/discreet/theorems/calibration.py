"""Estimates of true counts from noisy weights and measured order statistics, for `CalibratedCounts`.

All functions take published values, so they cost no budget. A weighted count is at most the true count, because a user
with many items weighs less. The items are sorted by their weighted counts and divided into bands. Of each band the
mechanism measures the median of the true counts less an estimate, and two ends of their distribution. The ratio of
true to weighted counts follows from the medians, and the spread of ratios within a band from the ends. A random walk
along the logarithm of the count makes the ratios smooth.

The proof needs that bands, estimates and ranks depend on published values alone. The estimates themselves may be
changed without a change of the guarantee.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Band", "Curve", "Measured", "bands", "curve", "end_ranks", "estimates", "offsets", "unbiased"]

_RATIO = 1.6
_FEWEST = 24
_TAIL = 0.025
_MOST_ALPHA = 4.0
_STEP = 0.3
_CHANGES = (0.02, 0.04, 0.08, 0.16, 0.32)
"""The standard deviations of the change of a ratio's logarithm over a step.

The prior probability of a change is in proportion to 1/change^2. Few noisy bands tell little about the change, and
ratios of real tables are smooth.
"""
_UNKNOWN = 10.0
_LEAST_RATIO = 0.5
_LEAST_ERROR = 0.02
_MAXIMUM = 0.56
"""1/sqrt(pi): the mean of the larger of two standard normal variables."""
_MEDIAN_VARIANCE = 1.57
"""pi/2: the variance of a median of n normal variables, times n, in their variance."""


class Band(NamedTuple):
    """Items of similar weighted counts."""

    start: int
    """The place of the first item, in descending order."""
    stop: int
    """The place after the last item."""
    centre: float
    """The median weighted count."""


class Measured(NamedTuple):
    """The measured values of a band, in users."""

    ratio: float
    """The median of the true counts over the median of the weighted counts."""
    low: float
    """The order statistic of c - floor(ratio t) with rank k, from below."""
    high: float
    """The order statistic of rank k, from above."""
    sigma: float
    """The scale of the noise of the median; the ends have twice this scale."""


class Curve(NamedTuple):
    """The ratio of true to weighted counts as a function of the logarithm of the weighted count."""

    places: NDArray[np.float64]
    """The logarithms of the centres of the bands, ascending."""
    logs: NDArray[np.float64]
    """The logarithms of the ratios."""
    errors: NDArray[np.float64]
    """The covariance of `logs`."""
    spreads: NDArray[np.float64]
    """The standard deviation of the ratios of the items of a band, relative to the ratio."""
    change: float
    """The variance by which the logarithm of the ratio changes over `_STEP` of the logarithm of the count."""


def unbiased(
    noisy: NDArray[np.float64], sigma: float, threshold: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weighted counts less what the selection adds to them on average, and the scales of their errors.

    If noisy weighted counts have a density proportional to y^-alpha, the weighted count of y has the mean
    y - alpha sigma^2/y and the variance sigma^2 (1 + alpha sigma^2/y^2) (Tweedie's formula). Hill's estimator gives
    alpha.

    Args:
        noisy: The noisy weighted counts, in users, all above the threshold.
        sigma: The scale of their noise, in users.
        threshold: The threshold, in users.
    """
    if not len(noisy):
        return noisy, noisy
    alpha = min(_MOST_ALPHA, 1 + len(noisy) / max(float(np.log(noisy / threshold).sum()), 1e-9))
    beyond = alpha * (sigma / noisy) ** 2
    return noisy * np.maximum(1 - beyond, 0.5), sigma * np.sqrt(1 + beyond)


def bands(values: NDArray[np.float64], fewest: int = _FEWEST) -> list[Band]:
    """Return the bands of descending weighted counts: a ratio of 1.6 each, with at least `fewest` items, 24 by default.

    A rest of fewer items joins the last band.
    """
    starts, start = [0], 0
    while start < len(values):
        wide = int(np.searchsorted(-values, -values[start] / _RATIO, side="right"))
        start = max(wide, start + fewest)
        if len(values) - start < fewest:
            break
        starts.append(start)
    stops = [*starts[1:], len(values)]
    return [
        Band(start, stop, float(np.median(values[start:stop])))
        for start, stop in zip(starts, stops, strict=True)
        if stop > start
    ]


def end_ranks(size: int) -> tuple[int, int]:
    """Return the ranks of both ends of a band of `size` items, from 0 in ascending order."""
    rank = math.floor(_TAIL * size)
    return rank, size - 1 - rank


def offsets(values: NDArray[np.float64], ratio: float) -> NDArray[np.int64]:
    """Return floor(ratio t): the public numbers that true counts are compared with."""
    return np.floor(ratio * values).astype(np.int64)


def least_sigma(sigma: float, centre: float) -> float:
    """Return the scale of a median: `sigma`, or 2 % of the centre of the band if that is larger."""
    return max(sigma, _LEAST_ERROR * centre)


def ratio_of(offset: float, median: float, centre: float) -> float:
    """Return the ratio of true to weighted counts from the median of c - floor(offset t)."""
    return max(offset + median / centre, _LEAST_RATIO)


def curve(made: Sequence[Band], measured: Sequence[Measured], sigma: float, users_deviation: float) -> Curve:
    """Return the ratio of true to weighted counts, from the measured values of all bands, at least one.

    Args:
        made: The bands, in descending order.
        measured: The measured values of each band.
        sigma: The scale of the noise of the weighted counts, in users.
        users_deviation: The standard deviation that the measured number of users adds to each count.
    """
    centres = np.array([band.centre for band in made])
    sizes = np.array([band.stop - band.start for band in made])
    ratios = np.array([one.ratio for one in measured])
    scales = ratios * centres
    spreads = np.sqrt(np.maximum(_spreads(made, measured) ** 2 - (sigma / centres) ** 2, 0))
    own = (np.array([one.sigma for one in measured]) / scales) ** 2
    own += _MEDIAN_VARIANCE * (spreads**2 + (sigma / centres) ** 2) / sizes
    common = users_deviation / scales
    order = np.argsort(centres)
    places, logs, own, common = np.log(centres)[order], np.log(ratios)[order], own[order], common[order]
    along = np.concatenate([[0.0], np.cumsum(np.diff(places) / _STEP)])
    error = np.diag(own) + np.outer(common, common)
    level = logs.mean()
    found = [_smoothed(logs - level, error, along, change) for change in _CHANGES]
    evidence = np.array([one.evidence for one in found]) - 2 * np.log(_CHANGES)
    chances = np.exp(evidence - evidence.max())
    chances /= chances.sum()
    mean = np.sum([chance * one.mean for chance, one in zip(chances, found, strict=True)], axis=0)
    errors = [one.errors + np.outer(one.mean - mean, one.mean - mean) for one in found]
    return Curve(
        places=places,
        logs=level + mean,
        errors=np.sum([chance * one for chance, one in zip(chances, errors, strict=True)], axis=0),
        spreads=spreads[order],
        change=float(chances @ np.square(_CHANGES)),
    )


class _Smoothed(NamedTuple):
    """The mean and the covariance of a random walk given its noisy values, and the logarithm of their density."""

    mean: NDArray[np.float64]
    errors: NDArray[np.float64]
    evidence: float


def _smoothed(
    noisy: NDArray[np.float64], error: NDArray[np.float64], along: NDArray[np.float64], change: float
) -> _Smoothed:
    """Return a random walk given noisy values.

    Args:
        noisy: The noisy values.
        error: The covariance of their errors.
        along: The places of the values, in steps of `_STEP`.
        change: The standard deviation of the walk over one step. Its first value may be any number up to about 10.
    """
    prior = _UNKNOWN**2 + change**2 * np.minimum.outer(along, along)
    total = prior + error
    gain = np.linalg.solve(total, prior).T
    _, size = np.linalg.slogdet(total)
    evidence = -0.5 * (float(size) + float(noisy @ np.linalg.solve(total, noisy)))
    return _Smoothed(gain @ noisy, prior - gain @ prior, evidence)


def _spreads(made: Sequence[Band], measured: Sequence[Measured]) -> NDArray[np.float64]:
    """Return the relative spread of c around the estimate in each band, over three neighbouring bands."""
    scales = np.array([one.ratio * band.centre for band, one in zip(made, measured, strict=True)])
    lows = np.array([one.low for one in measured]) / scales
    highs = np.array([one.high for one in measured]) / scales
    scores = np.array([_score(band.stop - band.start) for band in made])
    found = np.empty(len(made))
    noises = 2 * np.array([one.sigma for one in measured]) / scales
    for place in range(len(made)):
        near = slice(max(0, place - 1), place + 2)
        shares = scales[near] ** 2 / np.sum(scales[near] ** 2)
        low, high = (shares @ ends[near] for ends in (lows, highs))
        pooled = max(-low, high) - _MAXIMUM * math.sqrt(float(shares**2 @ noises[near] ** 2))
        own = max(-lows[place], highs[place]) - noises[place]
        found[place] = max(pooled, own, 0.0) / scores[place]
    return found


def _score(size: int) -> float:
    """Return the normal score of the end of a band of this size, at least 1/2."""
    from statistics import NormalDist

    rank, _ = end_ranks(size)
    return max(NormalDist().inv_cdf(1 - (rank + 0.625) / (size + 0.25)), 0.5)


def estimates(
    values: NDArray[np.float64], sigmas: NDArray[np.float64], found: Curve
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return estimates of the true counts and their standard deviations, for unbiased weighted counts.

    Args:
        values: The unbiased weighted counts, in users.
        sigmas: The scales of their errors, in users.
        found: The ratio of true to weighted counts.
    """
    at, places = np.log(values), found.places
    # An item has a share of both neighbouring bands, which is linear in the logarithm, or all of an end.
    shares = np.stack([np.interp(at, places, band) for band in np.eye(len(places))], axis=1)
    width = np.append(np.diff(places), 1.0)[np.searchsorted(places[1:], at)]
    between = np.maximum(shares @ places**2 - (shares @ places) ** 2, 0) / np.maximum(width, 1e-12)
    variance = np.einsum("ij,jk,ik->i", shares, found.errors, shares)
    variance += found.change * (between + np.maximum(places[0] - at, 0)) / _STEP
    ratios = np.exp(shares @ found.logs)
    counts = ratios * values
    return counts, np.sqrt((ratios * sigmas) ** 2 + counts**2 * ((shares @ found.spreads) ** 2 + variance))
