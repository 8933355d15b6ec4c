"""The names of the file formats for rows and reports."""

from __future__ import annotations

__all__ = ["FORMATS", "WRITTEN"]

FORMATS = ("csv", "json", "jsonl", "parquet")
"""The file formats for rows."""
WRITTEN = (*FORMATS, "html")
"""The file formats that a release can be written in: rows, or a report for readers."""
