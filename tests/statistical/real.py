"""Real datasets, in the folder that the variable DISCREET_DATA names."""

import os
from pathlib import Path

import pytest

__all__ = ["dataset"]


def dataset(name):
    """Return the path of a dataset, or skip the test without it."""
    folder = os.environ.get("DISCREET_DATA")
    path = Path(folder or "") / f"{name}.parquet"
    if not folder or not path.exists():
        pytest.skip(f"DISCREET_DATA names no folder with {path.name}")
    return path
