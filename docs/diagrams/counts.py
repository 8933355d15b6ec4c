"""Diagrams of the pages on counts, selections and sums. A run without arguments writes the SVG files.

The library computes thresholds, scales and chances. The counts are invented, and the noise has a fixed seed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import discreet as dp

FOLDER = Path(__file__).resolve().parent
BLUE, RED, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#7a7a7a"
SMALL: dict[str, Any] = {"fontsize": 9}


def bars(axes: Any, labels: list[str], counts: Any, kept: Any) -> None:
    """Draw the true counts as pale bars: blue if the item is released, red if it is not."""
    colours = [BLUE if keep else RED for keep in kept]
    axes.bar(labels, counts, color=colours, alpha=0.35, width=0.6)
    axes.grid(visible=False, axis="x")


def line(axes: Any, height: float, text: str) -> None:
    """Draw a dashed line with its name at the right end."""
    axes.axhline(height, color=GREY, linestyle="--", linewidth=1.5)
    axes.text(1.0, height, text, transform=axes.get_yaxis_transform(), ha="right", va="bottom", **SMALL)


def private_count_release(figure: Figure) -> None:
    """Draw the noisy counts of six calls. A call selects the highest mark: an item or the stop element."""
    random = np.random.default_rng(6)
    levels = dp.PrivateCountRelease(rho=1, delta=1e-6).levels
    left = {"home": 1400, "search": 900, "help": 620, "login": 410}
    axes = figure.subplots()
    number, names = 11, []
    for call in range(6):
        level = levels[number]
        scale, stop = 1 / level.gamma, level.offset / level.gamma
        noisy = {name: count + random.gumbel(0, scale) for name, count in left.items()}
        bar = stop + random.gumbel(0, scale)
        axes.plot([call - 0.3, call + 0.3], [bar, bar], color=RED, linewidth=3, label="" if call else "stop element")
        axes.plot([call] * len(noisy), [*noisy.values()], "o", color=BLUE, label="" if call else "items")
        best = max(noisy, key=lambda name: noisy[name])
        for name, value in noisy.items():
            axes.text(call + 0.09, value, f" {name}", va="center", **SMALL)
        if noisy[best] > bar:
            axes.plot(call, noisy[best], "o", markersize=13, markerfacecolor="none", markeredgecolor=GREEN)
            count = left.pop(best) + round(random.normal(0, level.sigma))
            names.append(f"epsilon {level.gamma:.3f}\npublish {best}:\n{count:,} ± {level.sigma:.0f}")
        else:
            names.append(f"epsilon {level.gamma:.3f}\nnothing")
            number += 1
    axes.set(xlim=(-0.5, 5.7), ylim=(0, None), ylabel="noisy count", xticks=range(6))
    axes.set_xticklabels(names, **SMALL)
    axes.grid(visible=False, axis="x")
    axes.legend(loc="upper right")


def plume(figure: Figure) -> None:
    """Draw both stages of Plume for six items of 60 users, who have at most four items each."""
    random = np.random.default_rng(4)
    labels = ["home", "search", "help", "login", "map", "rare"]
    has = random.random((60, 6)) < [0.95, 0.8, 0.6, 0.4, 0.12, 0.1]
    mechanism = dp.Plume(rho=1, delta=1e-6, m=3, m_prime=2)

    def bounded(most: int, columns: Any) -> Any:
        chosen = np.zeros_like(has)
        for user, row in enumerate(has):
            items = np.flatnonzero(row & columns)
            chosen[user, random.permutation(items)[:most]] = True
        return chosen.sum(axis=0)

    first, second = figure.subplots(1, 2, sharey=True)
    counts = bounded(mechanism.m, np.ones(6, bool))
    noisy = counts + np.round(random.normal(0, mechanism.discovery.sigma, 6))
    least = mechanism.discovery.threshold.value
    found = noisy > least
    bars(first, labels, counts, found)
    first.plot(labels, noisy, "o", color=GREY, label="with noise")
    line(first, least, f"threshold {least}")
    first.set(title="1. Find: at most m = 3 items of a user", ylabel="users")
    counts = bounded(mechanism.m_prime, found)[found]
    kept = [label for label, keep in zip(labels, found, strict=True) if keep]
    bars(second, kept, counts, [True] * len(kept))
    noisy = counts + np.round(random.normal(0, mechanism.sigma, len(kept)))
    second.errorbar(kept, noisy, 2 * mechanism.sigma, fmt="o", color=GREY, capsize=4, label="published, 2 sigma")
    second.set(title="2. Count: at most m' = 2 found items")
    for axes in (first, second):
        axes.title.set_fontsize(10)
        axes.tick_params(labelsize=9)
        axes.legend(fontsize=9)


def thresholds(figure: Figure) -> None:
    """Draw noisy counts with the threshold, and the law of the noisy count of an item of one user."""
    random = np.random.default_rng(2)
    mechanism = dp.GaussianThreshold(sigma=3, delta=1e-6, l0=2)
    least = mechanism.threshold.value
    first, second = figure.subplots(1, 2)
    counts = np.array([42, 31, 24, 17, 11, 6, 2, 1])
    noisy = counts + np.round(random.normal(0, mechanism.sigma, len(counts)))
    labels = [*"abcdefgh"]
    bars(first, labels, counts, noisy > least)
    first.plot(labels, noisy, "o", color=GREY, label="with noise")
    line(first, least, f"threshold {least}")
    first.set(title="Blue items are published", xlabel="item", ylabel="users")
    first.legend(fontsize=9)
    values = np.arange(-14, 24)
    chances = np.exp(-((values - 1.0) ** 2) / (2 * mechanism.sigma**2))
    chances /= chances.sum()
    second.bar(values, chances, color=[RED if value > least else BLUE for value in values], width=0.8)
    second.axvline(least + 0.5, color=GREY, linestyle="--", linewidth=1.5)
    second.set(yscale="log", ylim=(1e-10, 1), xlabel="noisy count", ylabel="probability")
    second.text(least + 1, 0.05, f"above {least}:\n{mechanism.release_chance(1):.1e}", **SMALL)
    second.set(title="Noisy count of an item of one user")
    second.minorticks_off()
    for axes in (first, second):
        axes.title.set_fontsize(10)


def partition_selection(figure: Figure) -> None:
    """Draw the chance of release by number of users: on a logarithmic and on a linear scale."""
    optimal = dp.OptimalSelection(epsilon=1, delta=1e-5)
    laws = {
        "optimal": optimal,
        "truncated geometric": dp.TruncatedGeometric(epsilon=1, delta=1e-5),
        "Laplace threshold": dp.LaplaceThreshold.from_epsilon(epsilon=1, delta=1e-5, l0=1),
        "Gaussian threshold": dp.GaussianThreshold.from_epsilon(epsilon=1, delta=1e-5, l0=1),
    }
    users = range(1, 31)
    first, second = figure.subplots(1, 2)
    turn = optimal.crossovers[0]
    shown = range(1, 21)
    first.plot(shown, [optimal.release_chance(n) for n in shown], "o-", markersize=4)
    first.axvline(turn, color=GREY, linestyle="--", linewidth=1.5)
    first.text(turn + 0.5, 3e-5, f"from {turn} on, misses\nshrink by e^epsilon", va="bottom", **SMALL)
    first.text(turn - 1, 0.4, "grows by\ne^epsilon", ha="right", va="center", **SMALL)
    first.set(yscale="log", xlabel="users", ylabel="chance of release", title="Optimal selection")
    for (name, law), style in zip(laws.items(), ("-", ":", "--", "-."), strict=True):
        second.plot(users, [law.release_chance(n) for n in users], style, label=name)
    second.plot(optimal.cap, 1, "o", color=BLUE)
    second.text(optimal.cap, 0.93, f"always from\n{optimal.cap} users on", va="top", **SMALL)
    second.set(xlabel="users", title="Four mechanisms", xlim=(0, 38))
    second.legend(fontsize=8, loc="lower right")
    for axes in (first, second):
        axes.title.set_fontsize(10)
        axes.minorticks_off()


def sums(figure: Figure) -> None:
    """Draw the clipping of the sums of twelve users, and the noisy sums of four shops."""
    random = np.random.default_rng(5)
    first, second = figure.subplots(1, 2)
    own = np.array([4, 9, 12, 18, 22, 25, 31, 38, 44, 61, 88, 140])
    places = np.arange(len(own))
    first.bar(places, own, color=RED, alpha=0.35, label="cut off")
    first.bar(places, np.minimum(own, 50), color=BLUE, alpha=0.8, label="counts")
    line(first, 50, "")
    first.text(0, 52, "high = 50", **SMALL)
    first.set(title="1. Clip the sum of each user for an item", xlabel="users of one shop", ylabel="sum of one user")
    first.set_xticks([])
    first.legend(fontsize=9)
    shops = ["a", "b", "c", "d"]
    mechanism = dp.mechanisms.ClippedSums(items=tuple(shops), rho=0.5, low=0, high=50, l0=2)
    true = np.array([2600, 1900, 1200, 700])
    noisy = true + np.round(random.normal(0, mechanism.sigma, 4))
    bars(second, shops, true, [True] * 4)
    second.errorbar(shops, noisy, 2 * mechanism.sigma, fmt="o", color=GREY, capsize=4, label="published, 2 sigma")
    second.set(title=f"2. Add noise: sigma = {mechanism.sigma:.1f}", xlabel="shop", ylabel="sum over users")
    second.legend(fontsize=9)
    for axes in (first, second):
        axes.title.set_fontsize(10)


DIAGRAMS = {
    "private-count-release": private_count_release,
    "plume": plume,
    "thresholds": thresholds,
    "partition-selection": partition_selection,
    "sums": sums,
}


def main(folder: Path, kind: str) -> None:
    """Write all diagrams into a folder, as svg or as png."""
    for name, draw in DIAGRAMS.items():
        with mpl.rc_context(fname=FOLDER.parent / "matplotlibrc"):
            figure = Figure(figsize=(7, 3.6))
            draw(figure)
            metadata = {"Date": None} if kind == "svg" else {}
            figure.savefig(folder / f"{name}.{kind}", metadata=metadata)


if __name__ == "__main__":
    # Without arguments, the pictures of the pages. Else a folder and a kind.
    main(Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else main(FOLDER, "svg")
