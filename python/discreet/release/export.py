"""Published columns as CSV, JSON and Parquet files, and labels as text that is safe to show."""

from __future__ import annotations

import ast
import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet import _core
from discreet.engines import parquet, untrusted
from discreet.errors import InputError, ParameterError, ResourceError
from discreet.formats import WRITTEN, require_suffix
from discreet.release.aggregates import column_names, read_aggregates
from discreet.release.blocks import Column, Values, blocks, csv_of, distinct_keys, escapes, header_of
from discreet.release.replacing import (
    certificate_path,
    has_room_for_certificate,
    real,
    replace,
    require_absent,
    require_replaceable,
    require_room_for_certificate,
    require_space,
    waiting_path,
)

if TYPE_CHECKING:
    import hashlib

    from numpy.typing import NDArray

__all__ = [
    "Column",
    "ItemType",
    "Values",
    "call",
    "certificate_of",
    "certificate_path",
    "digest",
    "escapes",
    "file_digest",
    "form_of",
    "has_room_for_certificate",
    "item_columns",
    "kind_of",
    "metadata",
    "plain_text",
    "real",
    "require_absent",
    "require_replaceable",
    "require_room_for_certificate",
    "require_space",
    "shortened",
    "shown_call",
    "text",
    "write",
    "write_text",
]

_LISTED, _LONGEST_CALL = 10, 600
"""The most items, and the most characters, in the text of a mechanism for people."""

Numbers: TypeAlias = "NDArray[Any]"
"""Counts as int64, or sums as int64 or float64."""
ItemType: TypeAlias = "str | tuple[tuple[str, str], ...]"
"""The Arrow type of items, or the name and the type of each of their columns."""


def kind_of(item_type: ItemType) -> ItemType:
    """Return the type of items, without the name of a single column."""
    return item_type[0][1] if not isinstance(item_type, str) and len(item_type) == 1 else item_type


def item_columns(items: list[Any] | _core.Labels, kind: ItemType) -> list[Column]:
    """Return the name, values and Arrow type of each column of items, as labels if `items` are labels."""
    if isinstance(kind, str):
        return [("item", items.columns()[0] if isinstance(items, _core.Labels) else items, kind)]
    split: list[Any]
    if isinstance(items, _core.Labels):
        split = items.columns()
        if len(split) == 1 < len(kind) and not split[0].to_list():  # no items have one column
            split *= len(kind)
    elif len(kind) == 1:
        split = [items]
    else:
        split = [[item[place] for item in items] for place in range(len(kind))]
    return [(name, values, one) for (name, one), values in zip(kind, split, strict=True)]


def plain_text(label: object) -> str:
    """Return a label as one line of text without control characters, with bytes that are not UTF-8 escaped."""
    if isinstance(label, tuple):
        return ", ".join(map(plain_text, label))
    shown = label.decode("utf-8", "backslashreplace") if isinstance(label, bytes) else str(label)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def shortened(label: object, length: int = 60) -> str:
    """Return a label as `plain_text` of at most `length` characters; the last is an ellipsis if more are cut off."""
    shown = plain_text(label[: length + 1] if isinstance(label, str | bytes) else label)
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def text(columns: Sequence[Column], header: Mapping[str, object], form: str) -> str:
    """Return the columns in one of the text formats."""
    return b"".join(blocks(columns, header, form, errors="surrogatepass")).decode("utf-8", "surrogatepass")


def form_of(path: str | os.PathLike[str]) -> str:
    """Return the format of a file's suffix.

    Raises:
        ParameterError: The suffix is unknown.
        InputError: The file cannot be written there.
    """
    form = require_suffix(path, WRITTEN)
    target = real(path)
    if not os.path.isdir(target.parent):  # noqa: PTH112 - it raises nothing for a name that is too long
        raise InputError(f"cannot write {target}: make its folder first")
    try:
        certificate_path(target).lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(
                f"cannot write {target}: the name of its certificate would be too long; give a name that is shorter by "
                f"{len(certificate_path('').name)} characters"
            ) from None
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write {target}: its folder is read-only; choose another folder")
    return form


def write(
    path: str | os.PathLike[str],
    columns: Sequence[Column],
    header: Mapping[str, object],
    *,
    overwrite: bool = True,
    rows: bool = False,
    certify: Callable[[str], Mapping[str, object]] | None = None,
) -> None:
    """Write the columns in the format of the file's suffix, and their certificate, both or neither.

    `certify` returns the content of the certificate of rows with this digest. With `rows` an earlier certificate is
    removed if there is no new one.

    Raises:
        InputError: The file cannot be written, or exists and `overwrite` is False.
    """
    form = form_of(path)
    _settle(path)

    def written(draft: Path) -> str | None:
        # The digest of a CSV file is computed while it is written.
        if form == "parquet":
            parquet.write(draft, columns, metadata(header))
            return None
        content, hashed = blocks(columns, header, form), _sha256()
        _write_blocks(draft, content, hashed.update if form == "csv" else None)
        return hashed.hexdigest() if form == "csv" else None

    made = None
    if certify is not None:
        known = None if form == "csv" else digest(columns)
        made = lambda found: json.dumps(certify(known or str(found)), indent=1) + "\n"  # noqa: E731
    replace(path, written, made, overwrite=overwrite, rows=rows)


def write_text(path: str | os.PathLike[str], content: str, *, overwrite: bool = True, rows: bool = False) -> None:
    """Write a file of text, atomically; with `rows`, remove the certificate of earlier rows.

    Raises:
        InputError: The file cannot be written, or exists without `overwrite`.
    """
    form_of(path)
    _settle(path)
    replace(path, lambda draft: _write_blocks(draft, iter([content.encode()]), None), overwrite=overwrite, rows=rows)


def certificate_of(path: str | os.PathLike[str]) -> Path:
    """Return the path of the certificate in force: after a kill, a new one may still wait for rows that are there."""
    waiting = waiting_path(path)
    if os.path.lexists(waiting) and has_room_for_certificate(path):
        with suppress(InputError, ParameterError, OSError, ValueError, TypeError, KeyError, RecursionError):
            content = json.loads(untrusted.content(waiting, untrusted.CERTIFICATE))
            if file_digest(path, [str(name) for name in content["columns"]], content) == content["digest"]:
                return waiting
    return certificate_path(path)


def _settle(path: str | os.PathLike[str]) -> None:
    """Finish an earlier write that was killed after it had replaced the rows."""
    waiting = waiting_path(path)
    if certificate_of(path) == waiting:
        with suppress(OSError):
            waiting.replace(certificate_path(path))


def metadata(header: Mapping[str, object]) -> dict[str, str]:
    """Return the header of a release as key-value metadata of Parquet and Arrow: one key with JSON."""
    return {"discreet": json.dumps(header)}


def digest(columns: Sequence[Column]) -> str:
    """Return the SHA-256 of the columns as CSV."""
    hashed = _sha256()
    for block in blocks(columns, {}, "csv"):
        hashed.update(block)
    return hashed.hexdigest()


def file_digest(path: str | os.PathLike[str], names: list[str], header: Mapping[str, object]) -> str:
    """Return the digest of a file that `write` wrote, with columns of these names alone.

    Raises:
        InputError: The file cannot be read, has more than these columns, or has a header that differs from this one.
    """
    source = Path(path)
    try:
        form = require_suffix(path)
        if form == "csv":
            untrusted.require_size(source, None)
            hashed = _sha256()
            with source.open("rb") as file:
                while block := file.read(1 << 18):
                    hashed.update(block)
            return hashed.hexdigest()
        if form == "parquet":
            columns, found_header = parquet.read(source, "discreet")
            own = {} if found_header is None else json.loads(found_header, object_pairs_hook=distinct_keys)
            _require_as_written([[*columns]], names, own, header)
            return digest([(name, columns[name], "") for name in names])
        content = untrusted.content(source)
        numbers = ["rank", "count", "sigma", *column_names(read_aggregates(header, {})), *_sums(header, names)]
        if any(f'{json.dumps(name)}: "'.encode() in content for name in numbers):
            raise ValueError("a number is text")
        if (found := csv_of(content, names, form)) is not None:
            if form == "json":
                _require_as_written([], names, header_of(content), header)
            return _sha256(found).hexdigest()
        own = {}
        if form == "json":
            own = json.loads(content, object_pairs_hook=distinct_keys)
            rows = own.pop("rows")
        else:
            rows = [json.loads(line, object_pairs_hook=distinct_keys) for line in content.splitlines()]
        _require_as_written([[*row] for row in rows], names, own, header)
        if any(isinstance(row.get(name), str) for row in rows for name in numbers):
            raise ValueError("a number is text")
        return digest([(name, [row[name] for row in rows], "") for name in names])
    except ParameterError:
        raise
    except MemoryError:
        raise ResourceError(f"the system gave too little memory to read {source}; read it in another process") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"cannot read the rows of {source}: the file is damaged, or its columns and header are not those that "
            "Release.write wrote with this certificate"
        ) from None


def _sums(header: Mapping[str, object], names: list[str]) -> list[str]:
    """Return the names of the columns of sums, which a header with the fact `summed` ends with."""
    return names[-2:] if header.get("summed") is not None else []


def _require_as_written(
    rows: Iterable[list[str]], names: list[str], own: Mapping[str, object], header: Mapping[str, object]
) -> None:
    """Raise ValueError unless rows have these names alone, and a file's own header says what its certificate says."""
    if any(row != names for row in rows) or any(value != header.get(name) for name, value in own.items()):
        raise ValueError("the file has more than a release, or another header")


def _sha256(content: bytes = b"") -> hashlib._Hash:
    # A release that is only shown needs no hash, and the module takes milliseconds to import.
    import hashlib

    return hashlib.sha256(content)


def call(made_by: str) -> ast.Call:
    """Return the call that made some rows: a name with keyword arguments.

    Raises:
        ParameterError: The text is not a call with keyword arguments.
    """
    try:
        found = ast.parse(made_by, mode="eval").body
    except (SyntaxError, ValueError):
        found = None
    if not isinstance(found, ast.Call) or found.args:
        raise ParameterError(
            "this mechanism's repr does not show all its parameters, so its release can have no certificate"
        )
    return found


class _Shortened(ast.NodeTransformer):
    """Replaces long lists by the number of their items."""

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.Name(f"{len(node.elts):,} items") if len(node.elts) > _LISTED else node


def shown_call(made_by: str) -> str:
    """Return the text of a mechanism for people, with long lists as their numbers of items.

    Files and ledgers have the whole text, from which `verify` makes the mechanism.
    """
    if len(made_by) > _LONGEST_CALL:
        with suppress(ParameterError, RecursionError, MemoryError):  # of a file that somebody wrote
            made_by = ast.unparse(_Shortened().visit(call(made_by)))
    return shortened(made_by, _LONGEST_CALL)


def _write_blocks(draft: Path, content: Iterator[bytes], update: Callable[[bytes], object] | None) -> None:
    """Write a new file, and update a hash with its content."""
    with draft.open("xb") as file:
        for block in content:
            file.write(block)
            if update is not None:
                update(block)
