"""Command-line options and record files of the benchmark scripts."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
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


def made():
    """Return today's date (UTC) and the commit that is checked out, which ends in "-dirty" if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": done.stdout.strip() or "unknown"}


def write(path, record):
    """Write the record, with its date and commit, to `path`, if given."""
    if path:
        now = made()  # first in the file, also in place of the date of a record that is only extended
        Path(path).write_text(json.dumps(now | record | now, indent=1) + "\n", "utf-8")
