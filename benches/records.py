"""Command-line options and record files of the benchmark scripts."""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def parser(text):
    """Return an option parser with `--record`."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--record", metavar="FILE", help="also write the figures to FILE, as JSON")
    return made


def machine(*peers):
    """Return the machine's properties and the versions of the installed packages."""
    versions = {}
    for name in ("discreet", "numpy", *peers):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"cores": os.cpu_count(), "arch": platform.machine(), "python": platform.python_version(), **versions}


def write(path, record):
    """Write the record to `path`, if given."""
    if path:
        Path(path).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
