"""`Plotted`: the released counts that an open stream remembers for its plot. PUBLIC, unlike the stream."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from discreet.private import Private
from discreet.release import plot
from discreet.release.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plotted"]

_ROUNDS = 1000
"""The most rounds to remember."""
_ITEMS = 30
"""The most items of a round to remember: the largest counts."""


class Plotted(Private):
    """A base class that remembers the largest counts of released rounds, and plots them."""

    _shown: deque[Release]

    def _forget_shown(self) -> None:
        self._shown = deque(maxlen=_ROUNDS)

    def _remember(self, release: Release) -> None:
        """Remember the largest counts of a release, as new labels without those of the other rows."""
        self._shown.append(release.head(_ITEMS))

    def plot(self, ax: Axes | None = None, *, top: int = 8, **options: object) -> Axes:
        """Plot the running counts of the last release's largest items over the rounds (needs matplotlib).

        The plot shows what was released since the stream was opened: at most the last 1,000 rounds, and the 30 largest
        counts of each. It costs no budget.

        Args:
            ax: The axes to draw into; by default pyplot's current ones if they are empty, else a new figure.
            top: The most items to draw.
            options: Options of `Axes.plot`, such as a line width.

        Returns:
            Matplotlib Axes, which a notebook shows.
        """
        releases = [*self._shown]
        series: dict[object, list[tuple[int, int, float]]] = {}
        if releases:
            series = {item: [] for item in releases[-1].items[:top]}
        for release in releases:
            for row in release:
                if row.item in series:
                    series[row.item].append((release.round or 0, row.count, row.sigma))
        title = releases[-1].promise if releases else "no round was released yet"
        return plot.running(series, title=title, ax=ax, options=options)
