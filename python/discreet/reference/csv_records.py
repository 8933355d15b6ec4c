"""The records of a CSV file, byte by byte; the reference implementation of `rust/csv`."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["records", "rows"]


def records(content: bytes, delimiter: bytes = b",") -> Iterator[list[tuple[bytes, bool]]]:
    """Yield each record as its cells: their bytes, and whether they begin with a quote.

    The header ends with LF, CR LF or CR alone. All other records have the same line ending.
    """
    ends: tuple[bytes, ...] = (b"\n", b"\r")
    cells: list[tuple[bytes, bool]] = []
    cell, quoted, mode = b"", False, "start"
    letters = [content[n : n + 1] for n in range(len(content))]
    for letter, following in zip(letters, [*letters[1:], b""], strict=True):
        if mode == "quoted":
            mode, cell = ("closed", cell) if letter == b'"' else (mode, cell + letter)
        elif letter == b'"' and mode == "start":
            quoted, mode = True, "quoted"
        elif letter == b'"' and mode == "closed":
            cell, mode = cell + letter, "quoted"
        elif letter == b"\r" and ends[0] == b"\n" and following in (b"\n", b""):
            continue
        elif letter in (*ends, delimiter):
            if letter == delimiter or cells or mode != "start":
                cells.append((cell, quoted))
            if letter != delimiter and cells:
                yield cells
                cells, ends = [], ends if len(ends) == 1 else (letter,)
            cell, quoted, mode = b"", False, "start"
        else:
            cell, mode = cell + letter, "plain"
    if cells or mode != "start":
        yield [*cells, (cell, quoted)]


def rows(content: bytes, wanted: list[int], delimiter: bytes = b",") -> list[tuple[str | None, ...]]:
    """Return the wanted cells of all valid records after the header; None for NULL."""
    header, *others = records(content.removeprefix(b"\xef\xbb\xbf"), delimiter)
    found = []
    for record in others:
        try:
            texts = [cell.decode() if cell or quoted else None for cell, quoted in (record[n] for n in wanted)]
        except (IndexError, UnicodeDecodeError):
            continue
        if len(record) >= len(header):
            found.append(tuple(texts))
    return found
