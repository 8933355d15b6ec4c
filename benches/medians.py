"""Median times of a module of benchmarks, and a ratio of two of these times for the documentation.

    python benches/medians.py ledger|private_count_release|confirmed_counts [--record FILE]

Times are in seconds, measured by pytest-benchmark.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import records

RATIOS = {
    "ledger": ("ledger_over_sqlite", "test_charge[ledger]", "test_charge[sqlite]"),
    "private_count_release": ("reference_over_core", "test_reference", "test_core"),
    "confirmed_counts": ("reference_over_core", "test_reference", "test_core[20000]"),
}
VERSIONS = {"ledger": {"sqlite": sqlite3.sqlite_version}}
"""The versions of compared programs that are not Python packages, by module."""


def medians(module):
    """Return the median of each benchmark of a module, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        command = [sys.executable, "-m", "pytest", "-q", "--benchmark-only", f"--benchmark-json={found}", module]
        subprocess.run(command, check=True, stdout=sys.stderr)
        return {run["name"]: run["stats"]["median"] for run in json.loads(found.read_text("utf-8"))["benchmarks"]}


def main():
    parser = records.parser(__doc__)
    parser.add_argument("module", choices=RATIOS)
    options = parser.parse_args()
    module = Path(__file__).with_name(f"test_{options.module}.py")
    found = medians(module)
    ratio, over, under = RATIOS[options.module]
    record = {
        "machine": records.machine() | VERSIONS.get(options.module, {}),
        "benchmark": f"benches/{module.name}",
        "medians_seconds": found,
        ratio: found[over] / found[under],
    }
    print(json.dumps(record, indent=1))
    records.write(options.record, record)


if __name__ == "__main__":
    main()
