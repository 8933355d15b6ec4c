"""Number and accuracy of items that each mechanism releases at the same guarantee.

    python benches/utility.py [--runs N] [--shape NAME ...] [--data FOLDER] [--record FILE]
                              [--library NAME ... | --default]

The tables are generated in every shape of shapes.py, or only in the shapes given with --shape. With --data, the
Parquet files in a folder are added if they have the columns user and item.

delta is 1e-6, and rho is 0.1, 0.5 and 1. `named` is the number of released items. A count is good if it is within 10 %
of the number of users who have the item. `good_clipped` compares the count with the number of users after clipping
each user to l0 items. These three figures are means over the runs. `rms` is the root of the mean squared relative
error of the released counts of all runs. Plume gets the true percentiles of items per user, which cost budget in
practice.

With --default, only calibrated counts, the default of `count`, are measured and added to the record.

With --library, only this library of other_libraries.py is measured, on the generated tables and at rho = 0.5. Its
figures are added to the record. The library gets a weaker guarantee, which all other mechanisms satisfy too. Its
epsilon is the one of the textbook conversion, rho + 2 sqrt(rho log(1/delta)), which is 5.76. Its delta is 2e-6: half
is for the conversion, and half for the threshold.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

import discreet as dp
import other_libraries
import records
import shapes
from discreet.privacy.conversion import bun_steinke_epsilon
from discreet.tables import Table
from discreet.testing import seeded_rng

SHAPES = {**shapes.SHAPES, **shapes.HARD}
COLUMNS = {"user": "user", "item": "item"}
DELTA = 1e-6
RHOS = (0.1, 0.5, 1.0)
BOUNDS = (1, 3, 10, 30, 100, 300)
"""The values of l0, for every mechanism that needs one."""
LIBRARY_RHO = 0.5


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
        row = found[f"{rho:g}"] = {}
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
        measure_bound(data, runs, l0, truth, found)
    measure_default(data, runs, truth, found)
    return found


def measure_default(data, runs, truth, found):
    """Add the figures of calibrated counts to the rows in `found`, and the share of 95 % intervals that are right."""
    table = Table(data, **COLUMNS).read()
    for rho in RHOS:
        mechanism, results, inside = dp.CalibratedCounts(rho=rho, delta=DELTA), [], []
        for seed in range(runs):
            release = mechanism.release(table, rng=seeded_rng(seed))
            results.append(quality(dict(release), truth))
            ends, true = release.interval(0.95), np.array([truth[item] for item in release.items])
            inside.append((ends["low"] <= true) & (true <= ends["high"]))
        coverage = {"coverage": round(float(np.concatenate(inside).mean()), 3)}
        found.setdefault(f"{rho:g}", {})["calibrated counts"] = summary(results) | coverage


def measure_bound(data, runs, l0, truth, found):
    """Add the figures of both threshold mechanisms at this l0 to the rows in `found`."""
    tables = []
    for _ in range(runs):  # every histogram keeps other random items of a user
        bounded = dp.Histogram.from_table(data, **COLUMNS, l0=l0)
        counts = bounded._counts()
        tables.append((bounded, dict(zip(bounded._labels.take(np.arange(len(counts))), counts.tolist(), strict=True))))
    for rho in RHOS:
        few, others = [], []
        threshold = dp.GaussianThreshold.from_rho(rho=rho, delta=DELTA, l0=l0)
        opendp = opendp_threshold(rho, l0)
        for seed, (bounded, clipped) in enumerate(tables):
            few.append(quality(dict(threshold.release(bounded, rng=seeded_rng(seed))), truth, clipped))
            if opendp is not None and all(isinstance(item, int) for item in clipped):
                others.append(quality(opendp(clipped), truth, clipped))
        found[f"{rho:g}"][f"threshold l0={l0}"] = summary(few)
        if others:
            found[f"{rho:g}"][f"opendp l0={l0}"] = summary(others)


def measure_library(name, data, runs):
    """Return the figures of another library at every l0. Raise ImportError if it is not installed."""
    prepare, _ = other_libraries.LIBRARIES[name]
    release = prepare(data)
    truth = exact(data)
    epsilon = bun_steinke_epsilon(LIBRARY_RHO, DELTA)
    row = {}
    for l0 in BOUNDS:
        found = summary([quality(release(epsilon, 2 * DELTA, l0), truth) for _ in range(runs)])
        del found["good_clipped"]  # only the library knows which items of a user it kept
        row[f"{name} l0={l0}"] = found | {"runs": runs}
    return row


def best(row, name):
    """Return the figures of a mechanism at the l0 with the most good counts, and this l0."""
    found = {int(key.split("l0=")[1]): figures for key, figures in row.items() if key.startswith(f"{name} l0=")}
    l0 = max(found, key=lambda l0: found[l0]["good"])
    return found[l0], l0


def main():
    options = records.parser(__doc__)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--shape", action="append", choices=list(SHAPES), help="use only this shape; may be repeated")
    options.add_argument("--data", type=Path, help="a folder of Parquet files with columns user and item")
    options.add_argument(
        "--library",
        action="append",
        choices=list(other_libraries.LIBRARIES),
        help="add this library to the record; may be repeated",
    )
    options.add_argument("--default", action="store_true", help="add calibrated counts to the record")
    given = options.parse_args()
    if given.library:
        add_libraries(given)
        return
    if given.default:
        add_default(given)
        return
    record = {"machine": records.machine("opendp"), "delta": DELTA, "runs": given.runs, "shapes": {}, "tables": {}}
    if given.shape and given.record and Path(given.record).exists():  # only these shapes are measured anew
        record = json.loads(Path(given.record).read_text("utf-8"))
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


def add_libraries(given):
    """Measure other libraries and add their figures to the record."""
    record = json.loads(Path(given.record).read_text("utf-8")) if given.record else {"machine": {}, "shapes": {}}
    for library in given.library:
        package = other_libraries.LIBRARIES[library][1]
        for name in given.shape or shapes.SHAPES:
            try:
                row = measure_library(library, SHAPES[name].table(1), given.runs)
            except ImportError as error:
                print(f"{library} is skipped, because {package} is not installed: {error}")
                break
            show(name, {f"{LIBRARY_RHO:g}": row})
            record["machine"] |= {key: value for key, value in records.machine(package).items() if key == package}
            record["shapes"].setdefault(name, {}).setdefault(f"{LIBRARY_RHO:g}", {}).update(row)
            records.write(given.record, record)


def add_default(given):
    """Measure calibrated counts and add their figures to the record."""
    record = json.loads(Path(given.record).read_text("utf-8")) if given.record else {"shapes": {}, "tables": {}}
    paths = sorted(given.data.glob("*.parquet")) if given.data else []
    generated = {name: SHAPES[name].table(1) for name in given.shape or SHAPES}
    for kind, tables in (("shapes", generated), ("tables", {path.stem: path for path in paths})):
        for name, data in tables.items():
            try:
                found = {}
                measure_default(data, given.runs, exact(data), found)
            except dp.errors.SchemaError:
                continue
            show(name, found)
            for rho, row in found.items():
                record[kind].setdefault(name, {}).setdefault(rho, {}).update(row)
            records.write(given.record, record)


def show(name, found):
    """Print one line for each mechanism and rho."""
    for rho, row in found.items():
        for mechanism, figures in row.items():
            rms = "-" if figures["rms"] is None else f"{figures['rms']:.3f}"
            clipped = f"  of clipped {figures['good_clipped']:>9,.1f}" if "good_clipped" in figures else ""
            print(
                f"{name:<30} rho {rho:<4} {mechanism:<22} named {figures['named']:>9,.1f}  within 10 % "
                f"{figures['good']:>9,.1f}{clipped}  rms {rms}",
                flush=True,
            )


if __name__ == "__main__":
    main()
