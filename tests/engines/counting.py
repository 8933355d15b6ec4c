"""Helpers of the tests of engines: `counted` returns counts by label, and `csv` and `store` write files."""

import pytest
from pairs import as_dict

from discreet import engines
from discreet.engines import sums
from discreet.formats import DATA

WHOLE = """parallel = false, quote = '"', escape = '"'"""
"""The arguments with which DuckDB guesses neither rows nor quotes of a CSV file."""
BINARY = [suffix for suffix, form in DATA.items() if suffix == form.data[0] and not form.is_text]
"""The formats of data that hold types, by their first suffixes."""


def counted(data, user="user", item="item", **options):
    columns = {name: options.pop(name) for name in engines.Columns.__annotations__ if name in options}
    return as_dict(engines.histogram(engines.Table(data, user=user, item=item, **columns), **options))


def read(data, user="user", item="item", **options):
    """Return the labels, counts and users of a table."""
    return engines.histogram(engines.Table(data, user=user, item=item), **options)


def clipped_sums(data, columns, **options):
    user, item, value = columns
    return sums.clipped_sums(engines.Table(data, user=user, item=item, value=value), **options)[1].tolist()


def read_values(data):
    """Read a table with a column of values as a mechanism does before its charge."""
    return engines.histogram(engines.Table(data, user="user", item="item", value="value").with_values())


def csv(tmp_path, content, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def store(table, path):
    """Write a pyarrow table in a binary format, that of the path's suffix."""
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        pytest.importorskip("pyarrow.feather").write_feather(table, path)
