"""Columns of CSV files as an Arrow stream of text. `_core` splits the records."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from discreet import _core
from discreet.engines import files
from discreet.errors import InputError, ParameterError, SchemaError
from discreet.formats import CSV
from discreet.privacy.validation import require_path

__all__ = ["CsvFiles", "CsvInput", "CsvRows", "Dialect"]

_ENCODINGS = {
    "utf-8": ("utf-8", "utf8"),
    "latin-1": ("latin-1", "latin1", "iso-8859-1", "iso8859-1"),
    "windows-1252": ("windows-1252", "cp1252"),
    "utf-16": ("utf-16", "utf16"),
}
_TEXTS = {"utf-8": "UTF-8", "utf-16": "UTF-16 (without a byte order mark: little-endian)"}
"""The names of encodings in error texts."""
_OTHERWISE = (
    "for other files give --delimiter, --encoding or --no-header, or in Python CsvFiles with delimiter, encoding or "
    "header=False"
)
"""The remedy for a file whose first line has none of the columns."""
_MOST_COLUMNS = 10_000
"""The largest number of a column in a file without a header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How CSV is written.

    Args:
        delimiter: The ASCII character between cells; None for a comma, or a tab in files with the suffix .tsv.
        encoding: utf-8, latin-1, windows-1252 or utf-16.
        header: Whether the first line has the names of the columns. If not, the columns are "1", "2" and so on.

    Raises:
        ParameterError: A parameter is out of range.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool = True

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None and (
            not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0'
        ):
            raise ParameterError.about("{delimiter} must be one ASCII character, and no quote or line end")
        if not isinstance(self.header, bool):
            raise ParameterError("header must be True or False")
        text = self.encoding if isinstance(self.encoding, str) else ""
        known = [name for name, names in _ENCODINGS.items() if text.lower().replace("_", "-") in names]
        if not known:
            raise ParameterError.about("{encoding} must be one of {}", ", ".join(_ENCODINGS))
        object.__setattr__(self, "encoding", known[0])

    @property
    def is_usual(self) -> bool:
        """Whether this is the dialect of paths without a dialect."""
        return self == Dialect()

    def headless(self, columns: list[str]) -> int | None:
        """Return the number of columns of a file without a header, or None for a file with a header.

        The number comes from the caller: a user could otherwise choose it with the first row, and so drop other rows.

        Raises:
            SchemaError: A name is no number.
        """
        if self.header:
            return None
        for name in columns:
            if not (name.isascii() and name.isdigit() and 0 < int(name) <= _MOST_COLUMNS and name[0] != "0"):
                raise SchemaError(
                    f"there is no column {name!r}: without a header the columns are 1, 2 and so on, up to "
                    f"{_MOST_COLUMNS:,}"
                )
        return max(map(int, columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFiles:
    """CSV files that are not written in the usual way, to be counted.

    Args:
        path: A path or glob, or a list of these.
        delimiter: The character between cells, such as ";".
        encoding: utf-8, latin-1, windows-1252 or utf-16.
        header: Whether the first line has the names of the columns. If not, the columns are "1", "2" and so on.

    Raises:
        ParameterError: A parameter is out of range.

    Example:
        >>> import discreet as dp, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "log.csv")
        ...     _ = path.write_bytes("".join(f"{user};Caf\u00e9\\n" for user in range(5000)).encode("latin-1"))
        ...     files = dp.tables.CsvFiles(path=path, delimiter=";", encoding="latin-1", header=False)
        ...     dp.count(files, user="1", item="2", rho=1, delta=1e-6).items
        ['Caf\u00e9']
    """

    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    dialect: Dialect = field(init=False, repr=False)

    def __post_init__(self) -> None:
        several = isinstance(self.path, Sequence) and not isinstance(self.path, str)
        paths: Sequence[object] = self.paths if several else [self.path]
        for path in paths or [self.path]:
            require_path(path)
        dialect = Dialect(delimiter=self.delimiter, encoding=self.encoding, header=self.header)
        object.__setattr__(self, "dialect", dialect)

    @property
    def paths(self) -> list[str | os.PathLike[str]]:
        """The paths and globs."""
        return [self.path] if isinstance(self.path, str | os.PathLike) else [*self.path]

    def found(self) -> files.Source:
        """Return the files; see `files.find`."""
        return files.find(self.paths, encoding=self.dialect.encoding, header=self.header)


class _Options(TypedDict):
    encoding: str
    headless: int | None
    value: int | None


@dataclass(frozen=True)
class CsvRows:
    """Columns of CSV files with a common header; each stream reads the files in their order."""

    paths: Sequence[str]
    delimiter: str
    places: Sequence[int]
    encoding: str = "utf-8"
    headless: int | None = None
    value: int | None = None
    """The index in `places` of the column to sum: a cell of it drops no row."""

    @classmethod
    def of(
        cls, source: files.Source, columns: list[str], dialect: Dialect | None = None, value: str | None = None
    ) -> CsvRows:
        """Read the headers of all files. `value` is the one of the columns that is summed.

        Raises:
            SchemaError: The headers differ, or a column is missing or repeated in them.
            InputError: A file cannot be read; the text names the file.
        """
        dialect = dialect or Dialect()
        delimiter = dialect.delimiter or source.delimiter
        width = dialect.headless(columns)
        source.require_no_folder(columns)
        if width is not None:
            files.require_distinct(columns, source.shown)
            places = [int(column) - 1 for column in columns]
        else:
            first = _common_header(source, delimiter, dialect.encoding)
            places = _places(first, columns, source.shown, dialect, delimiter)
        return cls(source.paths, delimiter, places, dialect.encoding, width, _place_of(value, columns))

    @classmethod
    def of_files(cls, given: CsvFiles, columns: list[str], value: str | None = None) -> CsvRows:
        """Read the headers of files with a dialect; see `of`."""
        source = given.found()
        if source.form is not CSV:
            raise InputError(f"cannot read {source.shown} as CSV: its suffix is that of {source.form.name}")
        return cls.of(source, columns, given.dialect, value)

    @classmethod
    def whole(cls, given: CsvFiles, most: int) -> tuple[CsvRows, list[str]]:
        """Return the first `most` columns of files with a header, and their names, which may repeat; see `of`."""
        source, encoding = given.found(), given.dialect.encoding
        delimiter = given.delimiter or source.delimiter
        header = _common_header(source, delimiter, encoding)[:most]
        names = [cell.decode("utf-8", "replace") for cell in header]
        return cls(source.paths, delimiter, range(len(names)), encoding), names

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _core.csv_stream(self.paths, ord(self.delimiter), self.places, **self._options)

    def dropped(self) -> tuple[tuple[int, int, int, int], list[tuple[str, int, int]]]:
        """Return how many rows have too few cells, a cell that is too long, and a cell that is not UTF-8. SENSITIVE.

        The last number is that of files that end in a quoted cell. The list has the reason, the file's number and the
        line of the first of these rows: "short", "long", "not text" or "unclosed".
        """
        return _core.csv_dropped(self.paths, ord(self.delimiter), self.places, **self._options)

    @property
    def _options(self) -> _Options:
        return {"encoding": self.encoding, "headless": self.headless, "value": self.value}


class CsvInput:
    """A table of comma-separated values on standard input, which is read once and not stored."""

    shown = "standard input"

    def __init__(self, head: bytes, dialect: Dialect | None = None) -> None:
        """Keep the bytes that were read before, `head`."""
        self._head, self._dialect = head, dialect or Dialect()
        self._table: _core.CsvInput | None = None
        if self._dialect.header:
            self._open(None)

    def _open(self, headless: int | None) -> _core.CsvInput:
        """Read the header, up to the end of the first block."""
        if self._table is None:
            delimiter = self._dialect.delimiter or ","
            try:
                self._table = _core.CsvInput(
                    self._head, ord(delimiter), encoding=self._dialect.encoding, headless=headless
                )
            except InputError as error:
                raise InputError(f"cannot read standard input as CSV: {error}") from None
        return self._table

    def columns(self, columns: list[str], value: str | None = None) -> object:
        """Return these columns as an Arrow stream, once; raise SchemaError if one is missing."""
        headless = self._dialect.headless(columns)
        table = self._open(headless)
        if headless is not None:
            places = [int(column) - 1 for column in columns]
        else:
            places = _places(table.header, columns, self.shown, self._dialect)
        return table.stream(places, value=_place_of(value, columns))


def _place_of(value: str | None, columns: list[str]) -> int | None:
    return None if value is None else columns.index(value)


def _header(path: str, delimiter: str, encoding: str) -> list[bytes]:
    try:
        return _core.csv_header(path, ord(delimiter), encoding=encoding)
    except InputError as error:
        raise InputError(f"cannot read {path} as CSV: {error}") from None


def _common_header(source: files.Source, delimiter: str, encoding: str) -> list[bytes]:
    """Return the header of files; raise SchemaError if it is not the same in all."""
    first, *others = source.paths
    header = _header(first, delimiter, encoding)
    if any(_header(path, delimiter, encoding) != header for path in others):
        raise SchemaError(
            f"the files of {source.shown} do not all have the same header; read files with the same header together"
        )
    return header


def _places(header: list[bytes], columns: list[str], shown: str, dialect: Dialect, delimiter: str = ",") -> list[int]:
    """Return the indices of columns in a header.

    Raises:
        SchemaError: A column is missing or repeated, or two of the columns differ only by case.
    """
    names = [cell.decode("utf-8", "replace") for cell in header]
    delimiter = dialect.delimiter or delimiter
    marks = {",": "commas", "\t": "tabs"}.get(delimiter, repr(delimiter))
    text = _TEXTS.get(dialect.encoding, dialect.encoding)
    headless = (
        f"; the first line of a CSV file must be the names of its columns, in {text}, separated by {marks}: "
        f"{_OTHERWISE}"
    )
    is_header = not {name.lower() for name in names}.isdisjoint(column.lower() for column in columns)
    files.require_columns(names, columns, instead="" if is_header else headless)
    # Other columns are not read, so their names may repeat.
    files.require_distinct(columns, shown)
    return [names.index(column) for column in columns]
