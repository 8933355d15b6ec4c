"""The names of the file formats for rows."""

from __future__ import annotations

__all__ = ["FORMATS"]

FORMATS = ("csv", "json", "jsonl", "parquet")
"""The file formats for rows."""
