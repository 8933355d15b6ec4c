"""Number and accuracy of items that each mechanism releases at the same guarantee.

    python benches/utility.py [--runs N] [--shape NAME ...] [--data FOLDER] [--record FILE] [--picture FILE]

The tables are generated in every shape of shapes.py, or only in the shapes given with --shape. With --data, the
Parquet files in a folder are added if they have the columns user and item.

delta is 1e-6, and rho is 0.1, 0.5 and 1. `named` is the number of released items. A count is good if it is within 10 %
of the number of users who have the item. `good_clipped` compares the count with the number of users after clipping
each user to l0 items. These three figures are means over the runs. `rms` is the root of the mean squared relative
error of the released counts of all runs. Plume gets the true percentiles of items per user, which cost budget in
practice.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

import discreet as dp
import records
from discreet.tables import Table
from discreet.testing import seeded_rng
from shapes import SHAPES

COLUMNS = {"user": "user", "item": "item"}
DELTA = 1e-6
RHOS = (0.1, 0.5, 1.0)
BOUNDS = (3, 10, 30)
DRAWN = {
    "confirmed counts": "confirmed counts",
    "private count release": "private count release",
    "plume p99": "Plume, l0 = p99",
    "threshold l0=10": "Gaussian threshold, l0 = 10",
    "opendp l0=10": "OpenDP, l0 = 10",
}
"""The mechanisms in the picture, with their labels there."""


def exact(data, **options):
    """Return the exact counts by item."""
    histogram = dp.Histogram.from_table(data, **COLUMNS, **options)
    counts = histogram._counts()
    return dict(zip(histogram._labels.take(np.arange(len(counts))), counts.tolist(), strict=True))


def opendp_threshold(rho, l0):
    """Return OpenDP's Gaussian threshold mechanism with the least threshold for delta, or None without OpenDP."""
    try:
        import opendp.prelude as odp
    except ImportError:
        return None
    odp.enable_features("contrib")
    space = (
        odp.map_domain(odp.atom_domain(T="i64"), odp.atom_domain(T="i64")),
        odp.l02inf_distance(odp.absolute_distance(T="f64")),
    )
    scale = math.sqrt(l0 / (2 * rho)) * (1 + 1e-9)

    def made(threshold):
        return odp.m.make_gaussian_threshold(*space, scale=scale, threshold=threshold)

    low, high = 1, 1 << 20
    while low < high:
        middle = (low + high) // 2
        try:
            holds = made(middle).map((l0, math.sqrt(l0) * (1 + 1e-12), 1.0))[1] <= DELTA
        except odp.OpenDPException:
            holds = False
        low, high = (low, middle) if holds else (middle + 1, high)
    return made(low)


def quality(rows, truth, clipped=None):
    """Return the numbers of items, good counts and good clipped counts, and the sum of squared relative errors."""
    if not rows:
        return 0, 0, 0, 0.0
    noisy = np.array(list(rows.values()), float)
    errors = noisy / np.array([truth[item] for item in rows]) - 1
    good = int((abs(errors) <= 0.1).sum())
    kept = good
    if clipped is not None:
        kept = int((abs(noisy / np.array([max(1, clipped.get(item, 0)) for item in rows]) - 1) <= 0.1).sum())
    return len(rows), good, kept, float((errors**2).sum())


def summary(runs):
    """Return the mean numbers of `quality` over all runs, and the relative error over the items of all runs."""
    named, good, kept, squares = np.sum(runs, axis=0)
    rms = math.sqrt(squares / named) if named else None
    return {
        "named": round(named / len(runs), 1),
        "good": round(good / len(runs), 1),
        "good_clipped": round(kept / len(runs), 1),
        "rms": None if rms is None else round(rms, 4),
    }


def measure(data, runs):
    """Return the figures of every mechanism at every rho."""
    truth = exact(data)
    histogram = dp.Histogram.from_table(data, **COLUMNS, count_users=True)
    swapped = dp.Histogram.from_table(data, user="item", item="user")._counts()
    tails = {f"plume p{p}": max(1, int(np.percentile(swapped, p))) for p in (95, 99)}
    found = {}
    for rho in RHOS:
        promise = {"rho": rho, "delta": DELTA}
        row = {}
        for name, mechanism in (
            ("confirmed counts", dp.ConfirmedCounts(**promise)),
            ("private count release", dp.PrivateCountRelease(**promise)),
        ):
            row[name] = summary(
                [quality(dict(mechanism.release(histogram, rng=seeded_rng(seed))), truth) for seed in range(runs)]
            )
        for name, m in tails.items():
            plume = dp.Plume.from_rho(**promise, m=m, m_prime=m, relative_error=0.1)
            table = Table(data, **COLUMNS)
            row[name] = summary(
                [quality(dict(plume.release(table, rng=seeded_rng(seed))), truth) for seed in range(runs)]
            )
            row[name]["l0"] = m
        for l0 in BOUNDS:
            few, peers = [], []
            threshold, other = dp.GaussianThreshold.from_rho(**promise, l0=l0), opendp_threshold(rho, l0)
            for seed in range(runs):
                bounded = dp.Histogram.from_table(data, **COLUMNS, l0=l0)
                counts = bounded._counts()
                clipped = dict(zip(bounded._labels.take(np.arange(len(counts))), counts.tolist(), strict=True))
                few.append(quality(dict(threshold.release(bounded, rng=seeded_rng(seed))), truth, clipped))
                if other is not None and all(isinstance(item, int) for item in clipped):
                    peers.append(quality(other(clipped), truth, clipped))
            row[f"threshold l0={l0}"] = summary(few)
            if peers:
                row[f"opendp l0={l0}"] = summary(peers)
        found[f"{rho:g}"] = row
    return found


def draw(record, path):
    """Draw a bar for the number of good items of every mechanism and shape at rho = 0.5."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shapes = list(record["shapes"])
    figure, axes = pyplot.subplots(figsize=(8, 5.2))
    height = 0.8 / len(DRAWN)
    for place, (name, label) in enumerate(DRAWN.items()):
        good = [record["shapes"][shape]["0.5"].get(name, {}).get("good", 0) for shape in shapes]
        rows = np.arange(len(shapes)) + place * height
        bars = axes.barh(rows, good, height, label=label)
        axes.bar_label(bars, [f"{number:,.0f}" for number in good], fontsize=7, padding=2)
    axes.set_yticks(np.arange(len(shapes)) + 0.4 - height / 2, shapes)
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xlim(0, 30_000)
    axes.set_xlabel("items whose published count is within 10 % of the truth; rho = 0.5, delta = 1e-6")
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    options = records.parser(__doc__)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--shape", action="append", choices=list(SHAPES), help="use only this shape; may be repeated")
    options.add_argument("--data", type=Path, help="a folder of Parquet files with columns user and item")
    options.add_argument("--picture", type=Path, help="draw the number of good items to this file")
    given = options.parse_args()
    record = {"machine": records.machine("opendp"), "delta": DELTA, "runs": given.runs, "shapes": {}, "tables": {}}
    for name in given.shape or SHAPES:
        record["shapes"][name] = measure(SHAPES[name].table(1), given.runs)
        show(name, record["shapes"][name])
    for path in sorted(given.data.glob("*.parquet")) if given.data else []:
        try:
            record["tables"][path.stem] = measure(path, given.runs)
        except dp.errors.SchemaError:
            continue
        show(path.stem, record["tables"][path.stem])
    records.write(given.record, record)
    if given.picture:
        draw(record, given.picture)


def show(name, found):
    """Print one line for each mechanism and rho."""
    for rho, row in found.items():
        for mechanism, figures in row.items():
            rms = "-" if figures["rms"] is None else f"{figures['rms']:.3f}"
            print(
                f"{name:<30} rho {rho:<4} {mechanism:<22} named {figures['named']:>9,.1f}  within 10 % "
                f"{figures['good']:>9,.1f}  of clipped {figures['good_clipped']:>9,.1f}  rms {rms}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
