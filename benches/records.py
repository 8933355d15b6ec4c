"""What a benchmark that is a script asks for and writes down."""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def parser(text):
    """Options with a place for the figures."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--record", metavar="FILE", help="also write the figures there, as JSON")
    return made


def machine(*peers):
    """What the numbers depend on, with the versions of the peers that are installed."""
    versions = {}
    for name in ("discreet", "numpy", *peers):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"cores": os.cpu_count(), "arch": platform.machine(), "python": platform.python_version(), **versions}


def write(path, record):
    """Writes the figures where they were asked for."""
    if path:
        Path(path).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
