"""Helpers of the tests of engines: `counted` returns counts by label, and `csv` writes a file."""

import numpy as np

from discreet import engines

WHOLE = """parallel = false, quote = '"', escape = '"'"""
"""The arguments with which DuckDB guesses neither rows nor quotes of a CSV file."""


def counted(data, user="user", item="item", **options):
    labels, counts, _ = engines.histogram(data, user, item, **options)
    return dict(zip(labels.take(np.arange(len(counts))), counts.tolist(), strict=True))


def csv(tmp_path, content, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
