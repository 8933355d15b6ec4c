"""Plots of released rows (needs the extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import needs
from discreet.release.export import plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["bars", "curve", "running"]


def bars(items: Sequence[object], counts: NDArray[np.int64], sigmas: NDArray[np.float64], *, title: str) -> Axes:
    """Plot noisy counts as horizontal bars, the largest on top, with error bars of two sigma."""
    axes = _axes(7, 1.2 + 0.25 * len(items))
    positions = np.arange(len(items))
    axes.barh(positions, counts, xerr=2 * sigmas, color="#4c72b0", ecolor="#222222", capsize=2)
    axes.set_yticks(positions, [plain_text(item).replace("$", r"\$") for item in items])
    axes.invert_yaxis()
    axes.set_xlabel("noisy count of users, with error bars of two sigma")
    axes.set_title(title, fontsize="small")
    return axes


def curve(users: Sequence[int], chances: Sequence[float], *, title: str) -> Axes:
    """Plot the probability of a release over the number of users."""
    axes = _axes(7, 4)
    axes.plot(users, chances, marker="o", color="#4c72b0")
    axes.set_xlabel("users of an item")
    axes.set_ylabel("chance of a release")
    axes.set_title(title, fontsize="small", wrap=True)
    return axes


def running(series: Mapping[str | int | bytes, Sequence[tuple[int, int, float]]], *, title: str) -> Axes:
    """Plot released running counts over the rounds, one line for each item, shaded by two sigma on both sides.

    Args:
        series: For each item its rounds, noisy counts and sigmas, from the releases of a `Stream`.
        title: The title of the plot.
    """
    axes = _axes(8, 4.5)
    for item, points in series.items():
        rounds, counts, sigmas = (np.array(column) for column in zip(*points, strict=True))
        (line,) = axes.plot(rounds, counts, label=plain_text(item).replace("$", r"\$"), linewidth=1)
        axes.fill_between(rounds, counts - 2 * sigmas, counts + 2 * sigmas, color=line.get_color(), alpha=0.2)
    axes.set_xlabel("round")
    axes.set_ylabel("running count, with a band of two sigma")
    axes.legend()
    axes.set_title(title, fontsize="small", wrap=True)
    return axes


def _axes(width: float, height: float) -> Axes:
    with needs("matplotlib"):
        from matplotlib.figure import Figure
    return Figure(figsize=(width, height), layout="constrained").subplots()
