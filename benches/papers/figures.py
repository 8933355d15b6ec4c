"""Options, record, picture and page of the scripts in this folder. Each script repeats one figure or table of a paper.

    python benches/papers/NAME.py [--small] [--write]

A script prints a table. With --small it takes smaller data. With --write it also changes three files: the figures in
benches/record/papers.json, the picture docs/papers/NAME.svg, and the table in the paper's page.

The tables of users and items are generated. If the variable DISCREET_DATA names a folder, the scripts read the Parquet
files of `FILES` there instead, and add a table of their own to the page.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np

from tables import tables as paper_tables

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "benches"))

import records  # noqa: E402 - the folder of the benchmarks is not on the path before

RECORD = ROOT / "benches" / "record" / "papers.json"
PAGES = ROOT / "docs" / "papers"
PAGE_OF = {"durfee2019": "durfee-rogers2019"}
"""Pages whose names differ from the first part of the names of their scripts."""
FILES = (
    "finance_shape_SYNTHETIC",
    "ubuntu_irc_words",
    "askreddit_1pct_words",
    "wiki_intros_words",
    "online_retail_events",
)
"""The names of the Parquet files."""

MARKERS = list("os^DvP")
SIZES = {
    "axes.labelsize": 9,
    "axes.titlesize": 10,
    "font.size": 9,
    "legend.fontsize": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


def tables(small):
    """Yield the name of every table with its distinct pairs, as columns user and item of whole numbers."""
    folder = os.environ.get("DISCREET_DATA")
    if folder:
        for name in FILES:
            yield name.replace("_", " "), of_file(Path(folder) / f"{name}.parquet")
        return
    yield from paper_tables(small)


def of_file(path):
    """Return the pairs of a Parquet file of rows, or of items with their counts if each user has one item."""
    import duckdb

    rows = duckdb.read_parquet(str(path))
    if "count" in rows.columns:
        counts = rows.fetchnumpy()["count"].astype(np.int64)
        return {"user": np.arange(counts.sum()), "item": np.repeat(np.arange(len(counts)), counts)}
    pairs = 'SELECT DISTINCT hash("user") AS u, hash(item) AS i FROM rows WHERE "user" IS NOT NULL AND item IS NOT NULL'
    found = duckdb.sql(pairs).fetchnumpy()
    return {name: np.unique(found[name[0]], return_inverse=True)[1] for name in ("user", "item")}


def main(header, measure, rows, draw=None):
    """Run a script: print its table, and write it with --write."""
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=f"Repeat the figure {name} of docs/papers.")
    parser.add_argument("--small", action="store_true", help="take smaller data")
    parser.add_argument("--write", action="store_true", help="change the record, the picture and the page")
    given = parser.parse_args()
    found = measure(given.small)
    lines = [line(header), *map(line, rows(found))]
    print("\n".join(lines))
    if given.write:
        write(name, found, lines, draw)


def line(cells):
    """Return one row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def page_of(name):
    """Return the page of a script."""
    paper = name.partition("_")[0]
    return PAGES / f"{PAGE_OF.get(paper, paper)}.md"


def digest(found):
    """Return the SHA-256 of recorded figures, which the picture of them contains."""
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def write(name, found, lines, draw):
    """Write the figures into the record, the picture and the page."""
    of_files = "DISCREET_DATA" in os.environ
    entry = f"{name} of files" if of_files else name
    page = page_of(name)
    before, mark, after = page.read_text("utf-8").partition(f"\n% {entry}\n\n")
    if not mark:
        raise SystemExit(f"{page.name} has no comment '% {entry}', followed by an empty line")
    rest = after.partition("\n\n")[2] if after.startswith("|") else after
    rule = "|" + "---|" * len(lines[0].split(" | "))
    table = "\n".join([lines[0], rule, *lines[1:]])
    page.write_text(f"{before}{mark}{table}\n\n{rest}".rstrip("\n") + "\n", "utf-8")
    found = json.loads(json.dumps(found))
    record = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    made = record.pop("made", {}) | {entry: records.made()}
    record[entry] = found
    written = {"made": dict(sorted(made.items())), **dict(sorted(record.items()))}
    RECORD.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    if draw and not of_files:
        picture(draw, found, PAGES / f"{name}.svg")


def curves(figure, places, lines, *, xlabel, ylabel, scale="linear"):
    """Draw one line for each name, over the same places."""
    axes = figure.subplots()
    for name, values in lines.items():
        axes.plot(places, values, label=name)
    axes.set(xlabel=xlabel, ylabel=ylabel, xscale=scale, yscale=scale)
    axes.minorticks_off()
    if scale == "log":
        axes.set_xticks(places, [f"{place:,g}" for place in places])
    axes.legend()


def picture(draw, found, path):
    """Draw the picture of some figures, in the style of all pictures, with smaller text and a marker for each line."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    with mpl.rc_context(SIZES, fname=PAGES.parent / "matplotlibrc"):
        colours = mpl.rcParams["axes.prop_cycle"]
        mpl.rcParams["axes.prop_cycle"] = colours + mpl.cycler(marker=MARKERS)
        figure = pyplot.figure(figsize=(8, 3.4), layout="constrained")
        draw(figure, found)
        figure.savefig(path, metadata={"Date": None, "Description": digest(found)})
    path.write_text("\n".join(part.rstrip() for part in path.read_text("utf-8").splitlines()) + "\n", "utf-8")
