"""Draws the diagrams of the pages on top-k lists, streams, queries, budgets and ledgers, from generated numbers.

`python docs/diagrams/others.py` writes the SVG files. With a folder it writes PNG files there.
"""

import json
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).resolve().parent
mpl.rc_file(HERE.parent / "matplotlibrc")
mpl.use("Agg")
GREY, BLUE, ORANGE, GREEN = "#7a7a7a", "#0072b2", "#d55e00", "#009e73"


def top_k():
    """Draw counts with Gumbel noise and the stop element, in the order of the noisy counts."""
    counts = np.array([940, 850, 700, 560, 420, 400, 180, 120, 90])
    noisy = counts + np.random.default_rng(4).gumbel(0, 45, len(counts))
    stop = 330  # the (k_bar+1)-th count plus the threshold
    names = [f"item {letter}" for letter in "ABCDEFGHI"]
    bars = sorted([*zip(noisy, counts, names, strict=True), (stop + 25, stop, "stop element")], reverse=True)
    figure, axes = plt.subplots(figsize=(7, 3.6))
    ended = False
    for place, (value, count, name) in enumerate(bars):
        colour = ORANGE if name == "stop element" else GREY if ended else BLUE
        axes.barh(place, value, color=colour, alpha=0.35 if colour == GREY else 0.9, height=0.7)
        axes.plot([count, count], [place - 0.42, place + 0.42], color=GREY, linewidth=1.5)
        ended = ended or name == "stop element"
    end = next(place for place, bar in enumerate(bars) if bar[2] == "stop element")
    axes.axhline(end + 0.5, color=ORANGE, linestyle="--", linewidth=1.2)
    axes.text(980, end + 0.75, "below the stop element: not released", ha="right", va="top", color=ORANGE)
    axes.set_yticks(range(len(bars)), [name for *_, name in bars])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("users: bar with Gumbel noise, line without noise")
    return figure


def tree():
    """Draw the nodes of the binary mechanism for eight rounds, and the three nodes of the count in round seven."""
    figure, axes = plt.subplots(figsize=(7, 3.6))
    used = {(1, 4), (5, 6), (7, 7)}
    for level, size in enumerate((1, 2, 4, 8)):
        for start in range(1, 9, size):
            node = (start, start + size - 1)
            colour = BLUE if node in used else GREY
            alpha = 0.85 if node in used else 0.15
            width, label = size - 0.14, f"{start}" if size == 1 else f"{start} to {node[1]}"
            axes.add_patch(plt.Rectangle((start - 0.93, level + 0.1), width, 0.72, color=colour, alpha=alpha, lw=0))
            ink = {"color": "white"} if node in used else {}
            axes.text(start - 1 + size / 2, level + 0.46, label, ha="center", va="center", **ink)
    axes.annotate("", (7, -0.28), (0, -0.28), arrowprops={"arrowstyle": "<->", "color": BLUE, "lw": 1.8})
    axes.text(3.5, -0.42, "running count of rounds 1 to 7: noise of three nodes", ha="center", va="top")
    axes.set(xlim=(-0.05, 8.05), ylim=(-0.95, 4), xticks=[], yticks=[])
    axes.set_ylabel("rounds of a node")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


def sparse_vector():
    """Draw counts with noise against a noisy threshold, up to the first one that reaches it."""
    random = np.random.default_rng(9)
    counts, threshold, epsilon = np.array([120, 180, 90, 240, 150, 210, 430, 200, 510]), 300, 0.5
    line = threshold + random.laplace(0, 2 / epsilon)
    noisy = counts + random.laplace(0, 4 / epsilon, len(counts))
    found = int(np.argmax(noisy >= line))
    figure, axes = plt.subplots(figsize=(7, 3.2))
    axes.axhline(line, color=GREEN, linestyle="--", label="noisy threshold")
    for place, (count, value) in enumerate(zip(counts, noisy, strict=True)):
        colour = ORANGE if place == found else BLUE if place < found else GREY
        alpha = 1 if place <= found else 0.35
        axes.plot([place, place], [0, value], color=colour, alpha=alpha, linewidth=1.2)
        axes.plot(place, value, "o", color=colour, alpha=alpha, markersize=8)
        axes.plot([place - 0.2, place + 0.2], [count, count], color=GREY, linewidth=1.5, alpha=alpha)
    axes.text(found - 0.25, noisy[found], f"index {found}:\nthe only output", ha="right", va="center", color=ORANGE)
    axes.text(2, line + 12, "noisy threshold", ha="center", va="bottom", color=GREEN)
    axes.text(1.1, 245, "below: passed over", ha="center")
    axes.text(7, 225, "not read", ha="center")
    axes.set(xlabel="index of the count", ylabel="users", ylim=(0, 560), xticks=range(len(counts)))
    axes.grid(visible=False, axis="x")
    return figure


def query_errors():
    """Draw the recorded expected largest error of the methods over the number of queries, at epsilon 1."""
    record = json.loads((HERE.parents[1] / "benches" / "record" / "queries.json").read_text("utf-8"))
    tables = sorted((row for row in record["tables"] if row.get("epsilon") == 1.0), key=lambda row: row["k"])
    figure, axes = plt.subplots(figsize=(7, 3.6))
    methods = ("laplace", "iterative_sparse_vector", "gaussian", "gumbel_correction", "bounded")
    for method, mark in zip(methods, "s^ovD", strict=True):
        shown = [(row["k"], row["methods"][method]["expected"]) for row in tables if method in row["methods"]]
        sizes, errors = np.array(shown).T
        axes.plot(sizes, errors / np.sqrt(sizes), marker=mark, label=method)
    axes.set(xscale="log", xlabel="queries k", ylabel="expected largest error / √k")
    axes.set_ylim(0, None)
    axes.legend(fontsize=9, loc="upper left")
    return figure


def ledger():
    """Draw the chain of a ledger's events, each with a hash of everything before it."""
    figure, axes = plt.subplots(figsize=(7, 2.9))
    events = [
        ("head", "names the\nlast events", GREY),
        ("total", "rho 1\ndelta 1e-5", GREEN),
        ("charge", "rho 0.3", ORANGE),
        ("release", "SHA-256\nof the rows", BLUE),
        ("charge", "rho 0.1", ORANGE),
        ("release", "SHA-256\nof the rows", BLUE),
    ]
    for place, (name, text, colour) in enumerate(events):
        left = place * 1.25
        axes.add_patch(plt.Rectangle((left, 1), 1, 1.2, facecolor=f"{colour}40", edgecolor=colour, lw=1.5))
        axes.text(left + 0.5, 1.95, name, ha="center", va="center", weight="bold")
        axes.text(left + 0.5, 1.42, text, ha="center", va="center", fontsize=9)
        if place > 1:
            arrow = {"arrowstyle": "->", "color": GREY, "lw": 1.5}
            axes.annotate("", (left, 1.6), (left - 0.25, 1.6), arrowprops=arrow)
    for left in (2.5, 5.0):
        axes.text(left + 0.5, 0.9, "on disk,\nthen noise", ha="center", va="top", fontsize=9)
        axes.text(left + 1.75, 0.9, "on disk,\nthen returned", ha="center", va="top", fontsize=9)
    arrow = {"arrowstyle": "->", "color": GREY, "lw": 1.2, "connectionstyle": "arc3,rad=-0.16", "linestyle": "--"}
    for target in (5.5, 6.75):
        axes.annotate("", (target, 2.22), (0.5, 2.22), arrowprops=arrow)
    axes.text(4.1, 0.1, "each line ends with a hash of itself and of all lines before it", ha="center", va="center")
    axes.set(xlim=(-0.1, 7.4), ylim=(-0.1, 3.3), xticks=[], yticks=[])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


DIAGRAMS = {
    "top_k": top_k,
    "stream_tree": tree,
    "sparse_vector": sparse_vector,
    "query_errors": query_errors,
    "ledger": ledger,
}


def main():
    """Write every diagram."""
    for name, draw in DIAGRAMS.items():
        figure = draw()
        if len(sys.argv) > 1:
            figure.savefig(Path(sys.argv[1]) / f"{name}.png", dpi=110)
        else:
            figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
