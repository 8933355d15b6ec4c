"""Columns of CSV files as an Arrow stream of text. `_core` splits the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet import _core
from discreet.engines import files
from discreet.errors import InputError, SchemaError

__all__ = ["CsvInput", "CsvRows"]


@dataclass(frozen=True)
class CsvRows:
    """Columns of CSV files with a common header; each stream reads the files in their order."""

    paths: Sequence[str]
    delimiter: str
    places: Sequence[int]

    @classmethod
    def of(cls, source: files.Source, columns: list[str]) -> CsvRows:
        """Read the headers of all files.

        Raises:
            SchemaError: The headers differ, or a column is missing or repeated in them.
            InputError: A file cannot be read; the text names the file.
        """
        first = _header(source.paths[0], source.delimiter)
        if any(_header(path, source.delimiter) != first for path in source.paths[1:]):
            raise SchemaError(
                f"the files of {source.shown} do not all have the same header; read files with the same header together"
            )
        return cls(source.paths, source.delimiter, _places(first, columns, source.shown, source.delimiter))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _core.csv_stream(self.paths, ord(self.delimiter), self.places)


class CsvInput:
    """A table of comma-separated values on standard input, which is read once and not stored."""

    shown = "standard input"

    def __init__(self, head: bytes) -> None:
        """Read the header, up to the end of the first block; `head` is the bytes that were read before."""
        try:
            self._table = _core.CsvInput(head, ord(","))
        except InputError as error:
            raise InputError(f"cannot read standard input as CSV: {error}") from None

    def columns(self, columns: list[str]) -> object:
        """Return these columns as an Arrow stream, once; raise SchemaError if one is missing."""
        return self._table.stream(_places(self._table.header, columns, self.shown, ","))


def _header(path: str, delimiter: str) -> list[bytes]:
    try:
        return _core.csv_header(path, ord(delimiter))
    except InputError as error:
        raise InputError(f"cannot read {path} as CSV: {error}") from None


def _places(header: list[bytes], columns: list[str], shown: str, delimiter: str) -> list[int]:
    """Return the indices of columns in a header.

    Raises:
        SchemaError: A column is missing or repeated, or two of the columns differ only by case.
    """
    names = [cell.decode("utf-8", "replace") for cell in header]
    marks = "tabs" if delimiter == "\t" else "commas"
    headless = f"; the first line of a CSV file must be the names of its columns, in UTF-8, separated by {marks}"
    files.require_columns(names, columns, instead="" if {*names} & {*columns} else headless)
    # Other columns are not read, so their names may repeat.
    files.require_distinct(columns, shown)
    return [names.index(column) for column in columns]
