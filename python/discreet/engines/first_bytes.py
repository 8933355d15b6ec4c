"""The format that a file's first bytes show. It is compared with the file's suffix before any row is read.

A file without a header begins with a user's row, which must not decide whether there is a release. So each pattern has
bytes that UTF-8 has not, or as many fields of its format as it can.
"""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

from discreet.errors import InputError
from discreet.formats import CSV, PARQUET, Format

__all__ = ["LENGTH", "is_parquet", "require_content"]

LENGTH = 4096
"""The number of bytes that are read. Most formats show in far fewer, but gzip may need all to begin."""
_DATABASE = "give --database FILE --table T"
_SHEET = "save the sheet as CSV"
_CONVERT = "convert it to Parquet"
_UNPACK = "decompress it first:"
_DECODE = "convert it to UTF-8: iconv -f"
_GZIP, _UTF_16 = "gzip", "UTF-16"
_BINARY = rb"(?=(?:.{,20}?(?:[\0-\x08]|[\0-\x7f][\x80-\xbf]|[\xc0-\xff][\0-\x7f\xc0-\xff])){4})"
"""Four bytes follow that text has not: control characters, or bytes that are not UTF-8."""


class _Signature(NamedTuple):
    name: str
    pattern: bytes
    remedy: str


_SIGNATURES = (
    _Signature("Parquet", rb"PAR1\x15(?:[\0\x04\x06]\x15|[\x02\x04]\x19)", "rename it to end in .parquet"),
    _Signature("Arrow", rb"ARROW1\0\0\xff{4}", "rename it to end in .arrow"),
    _Signature("an Arrow stream", rb"\xff{4}...\0", "in Python give pyarrow.ipc.open_stream(FILE).read_all()"),
    _Signature("ORC", rb"ORC" + _BINARY, "in Python give pyarrow.orc.read_table(FILE)"),
    _Signature("Feather of version 1", rb"FEA1\0\0\0\0" + _BINARY, _CONVERT),
    _Signature("Avro", rb"Obj\x01.{1,10}?[\x14\x16]avro\.(?:codec|schema)", _CONVERT),
    _Signature("HDF5", rb"\x89HDF\r\n\x1a\n", _CONVERT),
    _Signature("an array of NumPy", rb"\x93NUMPY", _CONVERT),
    _Signature("a pickle of Python", rb"\x80[\x02-\x05]", _CONVERT),
    _Signature(_GZIP, rb"\x1f\x8b\x08", f"{_UNPACK} gzip -dc < FILE > NEW"),
    _Signature("zstd", rb"\x28\xb5\x2f\xfd(?=.{,60}[\0-\x08])", f"{_UNPACK} zstd -dc < FILE > NEW"),
    _Signature("bzip2", rb"BZh[1-9](?:\x17rE8P\x90|1AY&SY" + _BINARY + rb")", f"{_UNPACK} bzip2 -dc < FILE > NEW"),
    _Signature("xz", rb"\xfd7zXZ\0", f"{_UNPACK} xz -dc < FILE > NEW"),
    _Signature("lz4", rb"\x04\x22\x4d\x18[\x40-\x7f][\x40\x50\x60\x70]" + _BINARY, f"{_UNPACK} lz4 -dc < FILE > NEW"),
    _Signature(
        "a zip archive or an Excel sheet",
        rb"PK(?:\x03\x04.\0..[\0-\x63]\0.{17}[\0-\x03].[\0-\x03]|\x05\x06\0{16})",
        f"unzip it first, or {_SHEET}",
    ),
    _Signature("an Excel sheet", rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _SHEET),
    _Signature("SQLite", rb"SQLite format 3\0..[\x01\x02][\x01\x02].@  ", _DATABASE),
    _Signature("DuckDB", rb".{8}DUCK..\0{6}", _DATABASE),
    _Signature("UTF-32", rb"\xff\xfe\0\0|\0\0\xfe\xff", f"{_DECODE} UTF-32 -t UTF-8 FILE > NEW"),
    _Signature(_UTF_16, rb"(?:\xff\xfe|\xfe\xff)(?=.{,62}\0)|(?:[^\0]\0){32}", f"{_DECODE} UTF-16 -t UTF-8 FILE > NEW"),
    _Signature(f"{_UTF_16}BE", rb"(?:\0[^\0]){32}", f"{_DECODE} UTF-16BE -t UTF-8 FILE > NEW"),
)
_PATTERN = re.compile(b"|".join(b"(%b)" % each.pattern for each in _SIGNATURES), re.DOTALL)
_MARK = b"\xef\xbb\xbf"


def is_parquet(head: bytes) -> bool:
    """Return whether a table begins like a Parquet file."""
    return (found := _found(head)) is not None and found.name == PARQUET.name


def _start_of(head: bytes) -> bytes:
    """Return the first bytes of text that gzip compressed, or `head` itself; none of a whole file without any text."""
    if not head.startswith(b"\x1f\x8b"):
        return head
    member = zlib.decompressobj(31)
    try:
        return member.decompress(head, LENGTH) or (b"" if member.eof and not member.unused_data else head)
    except zlib.error:
        return head


def require_content(name: str, head: bytes, form: Format, encoding: str = "utf-8", *, is_file: bool = True) -> bool:
    """Return whether a table that begins with `head` has no text. `name` is the name of a file, or says what it is.

    Raises:
        InputError: The first bytes are those of another format, or of none where there must be one.
    """
    is_compressed = form.is_text and (name.lower().endswith(".gz") if is_file else head.startswith(b"\x1f\x8b"))
    plain = _start_of(head) if is_compressed else head
    found = _found(plain, encoding)
    if is_compressed and plain is head:
        if found is None:
            what = "is not compressed by gzip" if head else "is empty, and even an empty file of gzip has 20 bytes"
            raise InputError(f"cannot read {name}: it {what}; write it again, or rename it to {name[:-3]}")
        if found.name == _GZIP:
            return False  # damaged, or with a long comment
    if found is not None and found.name != form.name:
        if found.name == _UTF_16 and form is CSV:
            remedy = 'give --encoding utf-16, or in Python CsvFiles(path=..., encoding="utf-16")'
        elif found.name == _GZIP and form.is_text and not is_compressed:
            remedy = f"rename it to {name}.gz"
        else:
            remedy = found.remedy.replace("FILE", name) if is_file else "give the file by its name"
        raise InputError(f"cannot read {name} as {form.name}: it holds {found.name}; {remedy}")
    return not plain.removeprefix(_MARK)


def _found(head: bytes, encoding: str = "utf-8") -> _Signature | None:
    match = _PATTERN.match(head)
    if match is None or match.lastindex is None:
        return None
    found = _SIGNATURES[match.lastindex - 1]
    return None if found.name.startswith("UTF-") and encoding == "utf-16" else found
