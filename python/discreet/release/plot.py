"""Plots of public values (needs the extra `plot`)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet.errors import ParameterError, needs
from discreet.release.export import Numbers, shortened

if TYPE_CHECKING:
    from datetime import datetime

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

__all__ = ["bars", "curve", "picture", "running", "shares", "steps"]

PlotOptions: TypeAlias = Mapping[str, Any]
"""Options of a function of matplotlib."""

_FIRST = "C0"
"""The first colour of the reader's style."""


def bars(
    items: Sequence[object],
    counts: Numbers,
    sigmas: NDArray[np.float64],
    *,
    title: str,
    measure: str,
    estimated: NDArray[np.bool_] | None = None,
    ax: Axes | None = None,
    options: PlotOptions | None = None,
) -> Axes:
    """Plot noisy counts as horizontal bars, the largest on top, with error bars of two sigma.

    Bars of estimated counts are pale.

    `estimated` says of each count whether it is an estimate. Without `ax` the plot is in pyplot's current axes if they
    are empty, else in a new figure.

    Raises:
        ParameterError: The axes have the bars of another release, whose labels these would replace.
    """
    if ax is not None and any(getattr(bars, "of_a_release", False) for bars in ax.containers):
        raise ParameterError.about("{ax} has the bars of a release, whose labels would change: give other axes")
    axes = _axes(ax, 7, 1.4 + 0.25 * len(items))
    positions = np.arange(len(items))
    style = {"color": _FIRST, "ecolor": axes.yaxis.label.get_color(), "capsize": 2, **(options or {})}
    drawn = axes.barh(positions, counts, xerr=2 * sigmas, **style)
    drawn.of_a_release = True  # type: ignore[attr-defined]
    what = f"noisy {measure}"
    if estimated is not None and estimated.any():
        for bar in np.array(drawn.patches)[estimated]:
            bar.set_alpha(0.45)
        what += " (pale: estimated)"
    axes.set_yticks(positions, [_label(item) for item in items])
    axes.invert_yaxis()
    axes.set_xlabel(f"{what}\nerror bars: two sigma", fontsize="small")
    axes.set_title(title, fontsize="small", wrap=True)
    return axes


def curve(
    users: Sequence[int], chances: Sequence[float], *, title: str, ax: Axes | None = None, options: PlotOptions
) -> Axes:
    """Plot the probability of a release over the number of users."""
    axes = _axes(ax, 7, 4)
    axes.plot(users, chances, **{"marker": "o", "color": _FIRST, **options})
    axes.set_xlabel("users of an item")
    axes.set_ylabel("chance of a release")
    axes.set_title(title, fontsize="small", wrap=True)
    return axes


def running(
    series: Mapping[object, Sequence[tuple[int, int, float]]],
    *,
    title: str,
    ax: Axes | None = None,
    options: PlotOptions | None = None,
) -> Axes:
    """Plot released running counts over the rounds, one line for each item, shaded by two sigma on both sides.

    `series` has for each item its rounds, noisy counts and sigmas.
    """
    axes = _axes(ax, 8, 4.5)
    lines: list[Line2D] = []
    for item, points in series.items():
        rounds, counts, sigmas = (np.array(column) for column in zip(*points, strict=True))
        (line,) = axes.plot(rounds, counts, **{"label": _label(item), "linewidth": 1, **(options or {})})
        lines.append(line)
        axes.fill_between(rounds, counts - 2 * sigmas, counts + 2 * sigmas, color=line.get_color(), alpha=0.2)
    axes.set_xlabel("round")
    axes.set_ylabel("running count, with a band of two sigma")
    if series:
        _add_legend(axes, lines)
    axes.set_title(title, fontsize="small", wrap=True)
    return axes


def shares(
    names: Sequence[str],
    values: Sequence[float],
    *,
    title: str,
    label: str,
    ax: Axes | None,
    options: PlotOptions,
) -> Axes:
    """Plot the parts of a budget as horizontal bars, the first on top."""
    axes = _axes(ax, 7, 1.2 + 0.25 * len(names))
    positions = np.arange(len(names))
    axes.barh(positions, values, **{"color": _FIRST, **options})
    axes.set_yticks(positions, [_label(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlabel(label, fontsize="small")
    axes.set_title(title, fontsize="small", wrap=True)
    return axes


def steps(
    series: Mapping[str, Sequence[tuple[datetime, float]]],
    *,
    title: str,
    ax: Axes | None,
    options: PlotOptions,
) -> Axes:
    """Plot how much of each budget is spent over time, one stepped line for each budget.

    `series` has for each budget its times and the percentage that is spent then.
    """
    axes = _axes(ax, 8, 4)
    lines: list[Line2D] = []
    for name, points in series.items():
        times, values = zip(*points, strict=True) if points else ((), ())
        lines += axes.step(
            times, values, **{"where": "post", "marker": "o", "markersize": 3, "label": _label(name), **options}
        )
    if any(series.values()):
        _add_legend(axes, lines)
    axes.axhline(100, color=axes.yaxis.label.get_color(), linewidth=0.8, linestyle="--")
    axes.set_ylim(0, 105)
    axes.tick_params(axis="x", labelrotation=30)
    axes.set_ylabel("spent, percent of the total")
    axes.set_title(title, fontsize="small", wrap=True)
    return axes


def _add_legend(axes: Axes, lines: Sequence[Line2D]) -> None:
    """Add a legend of all lines. matplotlib leaves out labels that begin with an underscore, so texts are set last."""
    legend = axes.legend(lines, ["-"] * len(lines))
    for text, line in zip(legend.get_texts(), lines, strict=True):
        text.set_text(str(line.get_label()))


def _label(item: object) -> str:
    """Return a label as one short line, without the mathematics that matplotlib finds between dollar signs."""
    return shortened(item).replace("$", r"\$")


def _axes(given: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or pyplot's current ones if they are empty, or those of a new figure of these inches."""
    with needs("matplotlib"):
        from matplotlib import pyplot
    if given is None:
        if not pyplot.get_fignums() or pyplot.gca().has_data():
            pyplot.figure(figsize=(width, height), layout="constrained")
        given = pyplot.gca()
    # A notebook shows the value of a cell with this method. Axes have none, and their text says nothing.
    given._repr_png_ = partial(_png, given.figure)  # type: ignore[attr-defined]
    return given


def picture(draw: Callable[[Axes], object]) -> bytes:
    """Return what `draw` draws into new axes, as PNG.

    Raises:
        ImportError: matplotlib is not installed.
    """
    with needs("matplotlib"):
        from matplotlib.figure import Figure as NewFigure
    figure = NewFigure(figsize=(7, 4), layout="constrained")
    draw(figure.subplots())
    return _png(figure)


def _png(figure: Figure | SubFigure) -> bytes:
    """Return a figure as PNG, and close it if the backend of notebooks would show it a second time."""
    import matplotlib
    from matplotlib import pyplot

    content, figure = io.BytesIO(), figure.figure
    figure.savefig(content, format="png")
    if "inline" in str(matplotlib.get_backend()):
        pyplot.close(figure)
    return content.getvalue()
