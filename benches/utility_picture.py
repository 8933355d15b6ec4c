"""Script that draws docs/utility.png from benches/record/utility.json: good counts by mechanism and shape."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np

from shapes import SHAPES
from utility import best

HERE = Path(__file__).parent
RHO = "0.5"
PANELS = {
    "rho = 0.5, delta = 1e-6": {
        "calibrated counts": "calibrated counts",
        "confirmed counts": "confirmed counts",
        "private count release": "private count release",
        "plume p99": "Plume, l0 = p99",
        "threshold": "threshold, best l0",
        "opendp": "OpenDP, best l0",
    },
    "epsilon = 5.76, delta = 2e-6": {
        "discreet": "threshold, best l0",
        "pipelinedp": "PipelineDP, best l0",
        "smartnoise": "SmartNoise, best l0",
        "tumult": "Tumult, best l0",
    },
}
"""The mechanisms in each panel of the picture, with their labels there."""
COLOURS = [["C6", "C0", "C1", "C2", "C3", "C4"], ["C3", "C5", "C7", "C9"]]


def main() -> None:
    """Draw a bar for the number of good items of every mechanism and shape."""
    mpl.use("Agg")
    from matplotlib import pyplot

    record = json.loads((HERE / "record" / "utility.json").read_text("utf-8"))["shapes"]
    shapes = {name: record[name] for name in SHAPES}
    figure, panels = pyplot.subplots(2, 1, figsize=(6, 11), sharex=True, height_ratios=[6, 4])
    for axes, (guarantee, drawn), colours in zip(panels, PANELS.items(), COLOURS, strict=True):
        height = 0.86 / len(drawn)
        for place, (name, label) in enumerate(drawn.items()):
            found = [row[RHO].get(name) or best(row[RHO], name)[0] for row in shapes.values()]
            good = [figures["good"] for figures in found]
            rows = np.arange(len(shapes)) + (place + 0.5) * height - 0.43
            bars = axes.barh(rows, good, height * 0.9, label=label, color=colours[place])
            axes.bar_label(bars, [f"{number:,.0f}" for number in good], fontsize=8, padding=2)
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(0, 30_000)
        axes.set_xlabel(guarantee)
        axes.set_yticks(np.arange(len(shapes)), list(shapes))
        axes.invert_yaxis()
        axes.legend(frameon=False, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("items whose published count is within 10 % of the truth", fontsize=10)
    figure.tight_layout()
    figure.savefig(HERE.parent / "docs" / "utility.png", dpi=110)


if __name__ == "__main__":
    main()
