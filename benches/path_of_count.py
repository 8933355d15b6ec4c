"""The files and functions of the package that one call of each verb passes: `python benches/path_of_count.py`.

The first call of a verb imports modules and fills caches, so the second one is counted.
"""

import json
import sys
from pathlib import Path

import discreet as dp

LOG = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000, "n": [1] * 10_000}
COLUMNS = {"user": "user", "item": "page"}
PROMISE = {"rho": 1, "delta": 1e-6}
VERBS = {
    "count": lambda: dp.count(LOG, **COLUMNS, **PROMISE),
    "count, l0=2": lambda: dp.count(LOG, **COLUMNS, **PROMISE, l0=2),
    "top_k": lambda: dp.top_k(LOG, **COLUMNS, **PROMISE, k=2),
    "select": lambda: dp.select(LOG, **COLUMNS, **PROMISE, l0=2),
    "sum": lambda: dp.sum(LOG, **COLUMNS, value="n", bounds=(0, 2), l0=2, **PROMISE),
}
PACKAGE = str(Path(dp.__file__).parent)


def passed(call):
    """Return the files, the functions and the number of calls of Python functions of the package in a call."""
    found, calls = set(), 0

    def note(frame, event, _argument):
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.add((frame.f_code.co_filename, frame.f_code.co_name, frame.f_code.co_firstlineno))
            calls += 1

    call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {"files": len({file for file, *_ in found}), "functions": len(found), "calls": calls}


if __name__ == "__main__":
    for verb, call in VERBS.items():
        print(json.dumps({"verb": verb, **passed(call)}))
