"""Times of calls that users make, from planning to the written file, compared with other libraries.

    python benches/api.py [--rounds N] [--only TEXT] [--record FILE]

A row has contestants: this library first, then its peers. Each contestant prepares its input and is then timed, in its
own process. Each round runs all contestants of a row. Figures are medians of the rounds. `wall` and `cpu` are seconds
of one call; `cpu` counts all threads. Rows of the group "start" time whole processes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import records
from cases import make, zipf

ROWS = 10_000_000
ITEMS = 1_000_000
EVENTS = 20_000
PROMISE = {"rho": 1, "delta": 1e-6}
FOLDER = Path(tempfile.gettempdir()) / "discreet-bench-api"


# The following functions prepare a call, and return the function to time.


def from_table(case, **options):
    import discreet as dp

    table = make(case, ROWS)
    return lambda: dp.Histogram.from_table(table, user="u", item="i", **options)


def count(case, l0):
    import discreet as dp

    table = make(case, ROWS)
    return lambda: dp.count(table, user="u", item="i", l0=l0, **PROMISE)


def peer(name, case):
    import contestants

    table = make(case, ROWS)
    return lambda: getattr(contestants, name)(table)


def imported():
    """Import what planning uses."""
    from discreet import mechanisms, planning, queries
    from discreet.planning import choose  # noqa: F401
    from discreet.queries import choose as methods  # noqa: F401

    for module in (mechanisms, planning, queries):
        for name in module.__all__:
            getattr(module, name)


def plan(verb, **promise):
    import discreet as dp

    imported()
    return lambda: dp.plan(verb, **promise)


def mechanism(name, **promise):
    import discreet as dp

    imported()
    return lambda: getattr(dp, name).from_epsilon(**promise)


def released(strings=True):
    """Return a release of a million items."""
    import discreet as dp

    items = [f"page {number:>9}" for number in range(ITEMS)] if strings else np.arange(ITEMS)
    counts = np.random.default_rng(1).integers(1000, 100_000, ITEMS)
    histogram = dp.Histogram.from_counts(items, counts, l0=1, linf=1, complete=True)
    return dp.GaussianThreshold.from_rho(**PROMISE, l0=1), histogram


def threshold_release():
    mechanism, histogram = released()
    return lambda: mechanism.release(histogram)


def write(form, certificate=False):
    mechanism, histogram = released()
    release = mechanism.release(histogram)
    return lambda: release.write(FOLDER / f"release.{form}", certificate=certificate)


def polars_write(form):
    mechanism, histogram = released()
    frame = mechanism.release(histogram).to_polars()
    method = getattr(frame, "write_ndjson" if form == "jsonl" else f"write_{form}")
    return lambda: method(FOLDER / f"frame.{form}")


def verify(form):
    import discreet as dp

    path = FOLDER / f"verified.{form}"
    mechanism, histogram = released()
    mechanism.release(histogram).write(path, certificate=True)
    return lambda: dp.verify(path)


def sha256(form):
    import hashlib

    verify(form)
    return lambda: hashlib.file_digest((FOLDER / f"verified.{form}").open("rb"), "sha256").hexdigest()


def convert(name):
    mechanism, histogram = released()
    release = mechanism.release(histogram)
    return getattr(release, name)


def pyarrow_to(name):
    mechanism, histogram = released()
    table = mechanism.release(histogram).to_arrow()
    if name == "to_pandas":
        import pandas as pd  # noqa: F401

        return table.to_pandas
    import polars as pl

    return lambda: pl.from_arrow(table)


def known(known_items=True):
    import discreet as dp
    from discreet.mechanisms import KnownItems

    mechanism, _ = released()
    random, wanted = np.random.default_rng(2), 3_000_000
    histogram = dp.Histogram.from_counts(
        np.arange(wanted), random.integers(1, 1000, wanted), l0=1, linf=1, complete=True
    )
    if known_items:
        mechanism = KnownItems(mechanism=mechanism, items=tuple(range(0, 2 * wanted, 2)))
    return lambda: mechanism.release(histogram)


def reddit_shape():
    random = np.random.default_rng(3)
    import pyarrow as pa

    from cases import sparse, words

    return pa.table({"u": sparse(zipf(random, ROWS // 2, 200_000), 1), "i": words(zipf(random, ROWS // 2, 100_000), 2)})


def user_items():
    from discreet.tables import UserItems

    table = reddit_shape()
    return lambda: UserItems.from_table(table, user="u", item="i")


def polars_lists():
    import polars as pl

    frame = pl.from_arrow(reddit_shape())
    return lambda: frame.unique().group_by("u").agg("i")


def stream(in_file):
    import discreet as dp

    mechanism = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-9, l0=1, horizon=1000)
    random = np.random.default_rng(4)
    events = [[[item] for item in zipf(random, EVENTS, 10_000).tolist()] for _ in range(2)]
    if in_file:
        path = FOLDER / f"stream-{os.getpid()}"
        made = dp.Stream.open(path, mechanism)
    else:
        made = mechanism.start()
    made.step(events[0])
    return lambda: made.step(events[1])


def sparse_vector():
    from discreet.queries import IterativeSparseVector

    answers = np.zeros(ROWS, np.int64)
    answers[::100_000] = 10**6
    mechanism = IterativeSparseVector.from_rho(k=ROWS, rho=0.5)
    return lambda: mechanism.release(answers)


def ledger():
    import discreet as dp

    path = FOLDER / f"ledger-{os.getpid()}"
    dataset = dp.Ledger.open(path).dataset("visits", rho=1.0, delta=1e-6)
    part = dp.Guarantee(2.0**-40, 2.0**-60)
    os.fsync, kept = lambda file: None, os.fsync
    for _ in range(100_000):
        dataset.charge(part)
    os.fsync = kept
    return lambda: dp.Ledger.open(path)


def logs():
    """Write the logs of the group "start", if they do not exist."""
    import polars as pl

    random = np.random.default_rng(5)
    for rows in (1000, 1_000_000):
        frame = pl.DataFrame({"user": np.arange(rows) // 2, "item": zipf(random, rows, 10_000)})
        frame = frame.with_columns(item=pl.format("page {}", "item"))
        frame.write_csv(FOLDER / f"log_{rows}.csv")
        frame.write_parquet(FOLDER / f"log_{rows}.parquet")


def program(code):
    """Return the command of a Python program."""
    return [sys.executable, "-c", code]


def commands(form, rows):
    """Return the commands that count a log, by contestant."""
    file = str(FOLDER / f"log_{rows}.{form}")
    columns = ["--user", "user", "--item", "item", "--rho", "1", "--delta", "1e-6"]
    sql = f"SELECT item, count(DISTINCT \"user\") FROM '{file}' GROUP BY item"
    query = f"pl.scan_{form}({file!r}).group_by('item').agg(pl.col('user').n_unique()).collect().rows()"
    return {
        "discreet": [sys.executable, "-m", "discreet", "count", file, *columns],
        "duckdb": program(f"import duckdb; duckdb.sql({sql!r}).fetchall()"),
        "polars": program(f"import polars as pl; {query}"),
    }


def counting(case, ours):
    names = ["polars_n_unique", "polars_unique", "duckdb_subquery"]
    return {"discreet": ours} | {name: (peer, name, case) for name in names}


FEW, MANY, STRINGS = "integers, few", "integers, many", "strings, many"
COUNTING = {
    f"count(), {MANY}": counting(MANY, (count, MANY, None)),
    f"Histogram.from_table, {MANY}": counting(MANY, (from_table, MANY)),
    f"Histogram.from_table, {STRINGS}": counting(STRINGS, (from_table, STRINGS)),
    f"count(l0=10), {FEW}": {
        "discreet": (count, FEW, 10),
        **{name: (peer, name, FEW) for name in ("bounded_polars", "bounded_duckdb")},
    },
    "UserItems.from_table": {"discreet": (user_items,), "polars_lists": (polars_lists,)},
}
DP = {"epsilon": 1.0, "delta": 1e-6}
PLANNING = {
    "plan count": {"discreet": (plan, "count", DP)},
    "plan count, l0=3": {"discreet": (plan, "count", DP | {"l0": 3})},
    "plan count, l0=10": {"discreet": (plan, "count", DP | {"l0": 10})},
    "plan select, l0=10": {"discreet": (plan, "select", DP | {"l0": 10})},
    "GaussianThreshold.from_epsilon, l0=10": {
        "discreet": (mechanism, "GaussianThreshold", {"epsilon": 0.1, "delta": 1e-6, "l0": 10})
    },
    **{f"plan answer_queries, k={k}": {"discreet": (plan, "answer_queries", DP | {"k": k})} for k in (3, 1000, 10**6)},
}
OUTPUT = {
    "threshold release of strings": {"discreet": (threshold_release,)},
    **{f"write {form}": {"discreet": (write, form), "polars": (polars_write, form)} for form in ("csv", "jsonl")},
    "write json": {"discreet": (write, "json"), "polars": (polars_write, "json")},
    "write parquet": {"discreet": (write, "parquet"), "polars": (polars_write, "parquet")},
    "write csv with a certificate": {"discreet": (write, "csv", True), "polars": (polars_write, "csv")},
    "write parquet with a certificate": {"discreet": (write, "parquet", True), "polars": (polars_write, "parquet")},
    **{f"verify {form}": {"discreet": (verify, form), "sha256": (sha256, form)} for form in ("csv", "json", "parquet")},
    "to_pandas": {"discreet": (convert, "to_pandas"), "pyarrow": (pyarrow_to, "to_pandas")},
    "to_polars": {"discreet": (convert, "to_polars"), "polars": (pyarrow_to, "to_polars")},
}
STEPS = {
    "KnownItems, 3 million known items": {"discreet": (known,), "threshold alone": (known, False)},
    f"stream step in a file, {EVENTS} events": {"discreet": (stream, True), "in memory": (stream, False)},
    "iterative sparse vector, ten million queries": {"discreet": (sparse_vector,)},
    "open a ledger of 100,000 charges": {"discreet": (ledger,)},
}
START = {
    "import discreet": {"discreet": program("import discreet"), "numpy": program("import numpy")},
    "discreet --help": {
        "discreet": [sys.executable, "-m", "discreet", "--help"],
        "import click": program("import click"),
    },
    **{f"count {rows} rows of {form}": commands(form, rows) for form in ("csv", "parquet") for rows in (1000, 10**6)},
}
GROUPS = {"counting": COUNTING, "planning": PLANNING, "output": OUTPUT, "steps": STEPS, "start": START}


def prepare(task):
    """Return the function that a task times."""
    make_call, *arguments = task
    options = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    return make_call(*arguments, **options)


def call(group, row, name):
    """Print the times of one call, and for repeatable calls of a second one."""
    timed = prepare(GROUPS[group][row][name])
    # A plan is made once in a process. Other calls are timed when memory and caches are in their usual state.
    for _ in range(1 if group == "planning" else 2):
        started, cpu = time.perf_counter(), time.process_time()
        made = timed()
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
        del made
    print(json.dumps({"wall": wall, "cpu": cpu}))


def process(command):
    """Return the times of a whole process."""
    started = time.perf_counter()
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    problem = run.stderr.read()
    _, status, usage = os.wait4(run.pid, 0)
    if status != 0:
        raise SystemExit(problem.decode())
    return {"wall": time.perf_counter() - started, "cpu": usage.ru_utime + usage.ru_stime}


def measure(group, row, name):
    """Return the times of one contestant."""
    if group == "start":
        return process(GROUPS[group][row][name])
    command = [sys.executable, __file__, "--call", group, row, name]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main():
    parser = records.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows of which the name or group contains this text")
    parser.add_argument("--call", nargs=3, help=records.argparse.SUPPRESS)
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if options.call:
        return call(*options.call)
    logs()
    found = {}
    for group, rows in GROUPS.items():
        for row, contestants in rows.items():
            if options.only not in f"{group} {row}":
                continue
            runs = {name: [] for name in contestants}
            for _ in range(options.rounds):
                for name in contestants:
                    runs[name].append(measure(group, row, name))
            medians = {n: {k: statistics.median(r[k] for r in rs) for k in rs[0]} for n, rs in runs.items()}
            found.setdefault(group, {})[row] = medians
            shown = "   ".join(f"{name} {1000 * times['cpu']:.1f}" for name, times in medians.items())
            print(f"{row}: CPU ms: {shown}", flush=True)
    records.write(options.record, {"machine": records.machine("polars", "duckdb", "pyarrow"), "rows": found})
    return None


if __name__ == "__main__":
    main()
