"""Instructions of one call of each verb under valgrind, compared with the record.

    python benches/instructions.py     # exits with 1 if a call needs a fifth more
    python benches/instructions.py --record benches/record/instructions.json

The number of instructions hardly depends on the machine and its load, but a time does. Each case runs in two processes
on one core: the first makes one call, which imports modules and fills caches, and the second makes two. The difference
is the figure. Data are seeded. The noise is not; figures of two runs differed by at most 6 percent.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import records

RECORD = Path(__file__).resolve().parent / "record" / "instructions.json"
SLOWER = 1.2
VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
ROWS = 200_000
PROMISE = {"rho": 1.0, "delta": 1e-6}


def text():
    """Return rows whose items are text and follow Zipf's law."""
    import numpy as np

    rng = np.random.default_rng(1)
    return {"user": rng.integers(0, ROWS // 10, ROWS), "item": [f"page {n}" for n in rng.zipf(1.3, ROWS) % 20_000]}


def whole():
    """Return rows of integers, and a value for each row."""
    import numpy as np

    rng = np.random.default_rng(2)
    return {
        "user": rng.integers(0, ROWS // 10, ROWS),
        "item": rng.zipf(1.3, ROWS) % 20_000,
        "value": np.arange(ROWS) % 50,
    }


def csv():
    """Return the path of a CSV file in the working folder."""
    path, table = Path("rows.csv"), text()
    path.write_text(
        "user,item\n" + "".join(f"{u},{i}\n" for u, i in zip(table["user"], table["item"], strict=True)), "utf-8"
    )
    return str(path)


def call(verb, data, **options):
    """Return a call of a verb on these rows."""
    import discreet as dp

    rows = data()
    return lambda: getattr(dp, verb)(rows, user="user", item="item", **{**PROMISE, **options})


def step():
    """Return the next round of a stream."""
    import discreet as dp

    events = [[item] for item in text()["item"][:20_000]]
    stream = dp.BinaryMechanism.from_rho(rho=1.0, delta=1e-6, l0=1, horizon=1000).start()
    return lambda: stream.step(events)


CASES = {
    "count, text": lambda: call("count", text),
    "count, integers, l0=10": lambda: call("count", whole, l0=10),
    "count, CSV file, l0=10": lambda: call("count", csv, l0=10),
    "count, public items": lambda: call("count", whole, items=list(range(20_000)), delta=None),
    "top_k, text": lambda: call("top_k", text, k=100),
    "select, text": lambda: call("select", text),
    "sum, integers": lambda: call("sum", whole, value="value", bounds=(0, 50), l0=10),
    "a round of a stream": step,
}


def instructions(case, calls):
    """Return the instructions of a process that makes this many calls."""
    command = [*VALGRIND, sys.executable, __file__, "--calls", str(calls), case]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    options = {"env": environment, "capture_output": True, "text": True, "check": False}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, **options)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"{case} failed under valgrind:\n{done.stderr}")
    return int(found[1].replace(",", ""))


def compared(found, known):
    """Return one line for each case, and whether no case needs a fifth more instructions than its record."""
    lines = []
    for case, number in found.items():
        ratio = number / known[case] if case in known else None
        lines.append(f"{case:30} {number:>15,}  {'new' if ratio is None else f'{ratio:.2f} of the record'}")
    return lines, all(number <= SLOWER * known.get(case, number) for case, number in found.items())


def main():
    parser = records.parser(__doc__)
    parser.add_argument("--calls", type=int, help=records.argparse.SUPPRESS)
    parser.add_argument("case", nargs="*", help="the names of cases (default: all)")
    options = parser.parse_args()
    if options.calls:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # threads that wait for each other count instructions
        made = CASES[options.case[0]]()
        for _ in range(options.calls):
            made()
        return
    known = json.loads(RECORD.read_text("utf-8"))["instructions"] if RECORD.exists() else {}
    found = {case: instructions(case, 2) - instructions(case, 1) for case in options.case or CASES}
    lines, held = compared(found, known)
    print("\n".join(lines))
    records.write(options.record, {"machine": records.machine(), "rows": ROWS, "instructions": known | found})
    if not held and not options.record:
        raise SystemExit("a case needs a fifth more instructions than its record")


if __name__ == "__main__":
    main()
