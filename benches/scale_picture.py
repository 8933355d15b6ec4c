"""Script that draws docs/scale.png from benches/record/scale.json: time and memory against rows."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).parent
STYLES = {"discreet": "C0o-", "discreet, l0=10": "C2s-", "duckdb": "C1^-"}
LABELS = {"discreet": "discreet", "discreet, l0=10": "discreet, l0 = 10", "duckdb": "DuckDB, count alone"}


def main() -> None:
    """Draw a line for the wall time, CPU time and peak memory of every contestant."""
    mpl.use("Agg")
    from matplotlib import pyplot

    record = json.loads((HERE / "record" / "scale.json").read_text("utf-8"))
    sizes = sorted(record["rows"], key=int)
    figure, panels = pyplot.subplots(3, 1, figsize=(6, 6), sharex=True)
    titles = {"wall": "time, seconds", "cpu": "CPU time, seconds", "peak": "peak memory, GB"}
    for axes, (figure_name, title) in zip(panels, titles.items(), strict=True):
        for name, style in STYLES.items():
            known = [size for size in sizes if name in record["rows"][size]]
            scale = 1e9 if figure_name == "peak" else 1
            values = [record["rows"][size][name][figure_name] / scale for size in known]
            axes.plot([int(size) for size in known], values, style, label=LABELS[name])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(title, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    panels[-1].set_xlabel("rows")
    figure.tight_layout()
    figure.savefig(HERE.parent / "docs" / "scale.png", dpi=110)


if __name__ == "__main__":
    main()
