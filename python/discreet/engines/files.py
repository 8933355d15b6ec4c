"""Files by path or glob: their formats, their column names, and checks before they are read."""

from __future__ import annotations

import glob
import os
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import InputError, SchemaError

__all__ = [
    "MemoryFile",
    "Source",
    "files_in",
    "find",
    "form_of",
    "quoted",
    "require_columns",
    "require_distinct",
    "require_regular",
    "shown",
    "top_level",
]

_FORMS = {".parquet": "parquet", ".pq": "parquet", ".csv": "CSV", ".tsv": "CSV", ".txt": "CSV"}
_FORMS |= {".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow"}
_FORMS |= {".jsonl": "JSON lines", ".ndjson": "JSON lines"}
_COMPRESSED = {"CSV", "JSON lines"}
"""The formats that may have a second suffix .gz."""
_REFUSED = {
    ".zst": "discreet does not decompress zstd; pipe it: zstd -dc FILE | discreet count - ...",
    ".bz2": "discreet does not decompress bzip2; pipe it: bzip2 -dc FILE | discreet count - ...",
    ".xz": "discreet does not decompress xz; pipe it: xz -dc FILE | discreet count - ...",
    ".json": "discreet reads no single JSON document; write one object a line: jq -c '.[]' FILE.json > FILE.jsonl",
    ".xlsx": "save the sheet as CSV",
    ".db": "for a database give --database FILE --table T",
    ".duckdb": "for a database give --database FILE --table T",
    ".sqlite": "for a database give --database FILE --table T",
}
"""What to do with files of other suffixes."""


@dataclass(frozen=True, slots=True)
class Source:
    """Regular files of one format."""

    shown: str
    """The paths and globs as given."""
    paths: list[str]
    """All files."""
    form: str
    """"parquet", "CSV", "JSON lines" or "Arrow"."""
    delimiter: str = ","

    @property
    def partitions(self) -> set[str]:
        """The keys of folders such as country=DE that all paths have."""
        keys = [{part.partition("=")[0] for part in Path(path).parts[:-1] if "=" in part} for path in self.paths]
        return set.intersection(*keys) - {""}

    def require_plain_folders(self, columns: Sequence[str]) -> None:
        """Raise SchemaError unless each name of a folder such as country=DE has one key and one value of text.

        DuckDB takes no value from a name with two equals signs, a question mark or a line feed, and fails at bytes that
        are not UTF-8. The text has no name, because values are data.
        """
        for path in self.paths:
            named = [part for part in Path(path).parts[:-1] if "=" in part]
            if any(part.count("=") > 1 for part in named):
                raise SchemaError(
                    f"a folder of {self.shown} has a name with two equals signs; write = in a value as %3D, as Spark, "
                    "DuckDB and pyarrow do"
                )
            read = [part for part in named if part.partition("=")[0] in columns]
            if any("?" in part or "\n" in part for part in read):
                raise SchemaError(
                    f"a folder of {self.shown} has a name with a question mark or a line feed; write them in a value "
                    "as %3F and %0A"
                )
            keys = [part.partition("=")[0] for part in named]
            if len({*keys}) < len(keys):
                raise SchemaError(f"{self.shown} has the same key in a folder and in a folder inside it; rename one")
            if not all(map(_is_text, named)):
                raise SchemaError(f"a folder of {self.shown} has a name whose bytes are not UTF-8; rename it")

    @property
    def escaped(self) -> list[str]:
        """All files as globs that match only them, because DuckDB takes paths as globs."""
        return [glob.escape(path) for path in self.paths]


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """An open file in memory that has no name in the file system."""

    path: str
    shown: str
    form: str
    size: int
    """The size in bytes."""

    def __fspath__(self) -> str:
        return self.path


def find(paths: Sequence[str | os.PathLike[str]]) -> Source:
    """Return the files of some paths and globs.

    Raises:
        InputError: There is no file, a file is not regular, the formats differ, or a path is a remote address. The text
            names the path.
    """
    if len(paths) == 1 and isinstance(paths[0], MemoryFile):
        return Source(shown=paths[0].shown, paths=[paths[0].path], form=paths[0].form)
    given = [shown(path) for path in paths]
    found = [name for path in given for name in _matches(path)]
    forms = {form_of(name) for name in found}
    if len(forms) > 1:
        raise InputError(
            f"cannot read {', '.join(given)}: these files have different formats; give files of one format, or a query "
            "that combines both by UNION ALL"
        )
    for name in found:
        _require_readable(name)
    form, delimiter = forms.pop()
    return Source(shown=", ".join(given), paths=found, form=form, delimiter=delimiter)


def _matches(given: str) -> list[str]:
    if "://" in given:
        raise InputError(
            f"cannot read {given}: it is not a file of this machine. Download it first. Or, in Python, give the "
            "relation of a DuckDB connection that has loaded its extension httpfs: connection.read_parquet(...). "
            "discreet loads and installs no extension"
        )
    literal = os.path.exists(given) or "\0" in given  # noqa: PTH110 - a path is text here, and may hold a glob
    found = [given] if literal else sorted(glob.glob(given, recursive=True))  # noqa: PTH207 - as above
    if not found:
        raise InputError(f"cannot read {given}: no such file")
    folders = [name for name in found if Path(name).is_dir()]
    if len(folders) < len(found):
        return [name for name in found if name not in folders] if folders else found
    inside = [str(path) for folder in folders for path in files_in(folder)]
    if not inside:
        raise InputError(f"cannot read {given}: the folder has no files of a format that discreet reads")
    return inside


def files_in(folder: str) -> list[Path]:
    """Return the files of known formats in a folder and its folders, except those whose names begin with _ or a dot."""
    below = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return [path for path in below if _is_data(path.relative_to(folder))]


def _is_data(path: Path) -> bool:
    if any(part.startswith(("_", ".")) for part in path.parts):
        return False
    return Path(path.name.lower().removesuffix(".gz")).suffix in _FORMS


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path or glob as text."""
    if isinstance(path, MemoryFile):
        return path.shown
    return os.fsdecode(os.fspath(path))


def form_of(name: str) -> tuple[str, str]:
    """Return the format of a file's suffix, "parquet", "CSV", "JSON lines" or "Arrow", and its delimiter.

    Raises:
        InputError: The suffix is another one.
    """
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    if suffix not in _FORMS or (name.lower().endswith(".gz") and _FORMS[suffix] not in _COMPRESSED):
        remedy = _REFUSED.get(
            suffix,
            "its suffix must be .parquet or .pq, .arrow or .feather, or .csv, .txt, .tsv, .jsonl or .ndjson with or "
            "without .gz",
        )
        raise InputError(f"cannot read {name}: {remedy}")
    return _FORMS[suffix], "\t" if suffix == ".tsv" else ","


def require_regular(name: str | os.PathLike[str]) -> os.stat_result:
    """Return the status of a file; raise InputError unless it is regular. Opening a pipe could wait forever.

    Raises:
        OSError: There is no such file.
        ValueError: The name is no path.
    """
    status = Path(name).stat()
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"cannot read {os.fspath(name)}: it is not a regular file; give the path of a file")
    return status


def _is_text(name: str) -> bool:
    from urllib.parse import unquote_to_bytes

    try:
        unquote_to_bytes(os.fsencode(name)).decode()
    except UnicodeDecodeError:
        return False
    return True


def _require_readable(name: str) -> None:
    try:
        status = require_regular(name)
        with Path(name).open("rb"):
            pass
    except (OSError, ValueError):
        raise InputError(f"cannot read {name}: it does not exist, or its permissions forbid reading") from None
    if status.st_size == 0:
        raise InputError(f"cannot read {name}: it is empty")


def top_level(nodes: Sequence[tuple[str, int | None, str | None]]) -> list[tuple[str, str | None]]:
    """Return the names and types of a Parquet file's columns.

    Args:
        nodes: The nodes of the file's schema: name, number of children and type.
    """
    columns, inside = [], 0
    for name, children, kind in nodes[1:]:
        if inside == 0:
            columns.append((name, kind))
        else:
            inside -= 1
        inside += children or 0
    return columns


def require_distinct(names: Sequence[str], given: str) -> None:
    """Raise SchemaError if names differ only by case, because DuckDB would rename one of them."""
    if len({name.lower() for name in names}) < len(names):
        raise SchemaError(f"{given} has columns whose names are the same, or differ by case alone; rename them")


def require_columns(names: Iterable[str], wanted: list[str], *, instead: str = "", is_schema: bool = False) -> None:
    """Raise SchemaError unless each wanted name occurs exactly once. The text suggests a similar name or `instead`.

    If no wanted name occurs, the names may be the first row of data in a file without a header, and so private. The
    text then has no similar name, unless the names are known to come from a schema (`is_schema`).
    """
    known = Counter(list(names))
    are_names = is_schema or any(known[name] for name in wanted)
    if not (are_names or instead) and len(wanted) > 1:
        missing = " and ".join(map(repr, wanted))
        raise SchemaError(f"there are no columns {missing}: give the names as the data has them, upper and lower case")
    shown = {name.lower(): name for name in reversed([*known])} if are_names and not instead else {}
    for name in wanted:
        if known[name] > 1:
            raise SchemaError(f"there is more than one column {name!r}; rename all but one")
        if not known[name]:
            import difflib

            near = difflib.get_close_matches(name.lower(), shown, n=1)
            hint = f"; did you mean {shown[near[0]]!r}?" if near else instead
            raise SchemaError(f"there is no column {name!r}{hint}")


def quoted(name: str) -> str:
    """Return a name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
