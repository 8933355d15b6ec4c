"""Files by path or glob: their formats, their column names, and checks before they are read."""

from __future__ import annotations

import glob
import itertools
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_to_bytes

from discreet.engines.first_bytes import LENGTH, require_content
from discreet.errors import InputError, SchemaError
from discreet.formats import CSV, DATA, JSON_LINES, PARQUET, Format, alternatives
from discreet.privacy.validation import require_path
from discreet.wording import meant

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "LOGS",
    "PARSED",
    "MemoryFile",
    "Source",
    "files_in",
    "find",
    "form_of",
    "parquet_schemas",
    "path_text",
    "quoted",
    "require_columns",
    "require_distinct",
    "require_no_log",
    "require_regular",
    "unreadable",
]

_REFUSED = {
    "zst": "discreet does not decompress zstd; decompress it first: zstd -d FILE",
    "bz2": "discreet does not decompress bzip2; decompress it first: bzip2 -dk FILE",
    "xz": "discreet does not decompress xz; decompress it first: xz -dk FILE",
    "json": "discreet reads no JSON document; write one object a line: jq -cs 'flatten[]' FILE.json > FILE.jsonl",
    "xlsx": "save the sheet as CSV",
    "db": "for a database give --database FILE --table T",
    "duckdb": "for a database give --database FILE --table T",
    "sqlite": "for a database give --database FILE --table T",
}
"""The remedies for files of other suffixes."""
LOGS = {
    "Delta Lake": ("_delta_log", "the DuckDB relation of delta_scan or the Spark DataFrame"),
    "Apache Iceberg": ("metadata/*.metadata.json", "the DuckDB relation of iceberg_scan or the Spark DataFrame"),
    "Apache Hudi": (".hoodie", "the Spark DataFrame"),
    "Spark Structured Streaming": ("_spark_metadata", "the Spark DataFrame"),
}
"""Software whose log decides which files of a folder are live: the log as a glob, and what reads it."""
PARSED = {"GEOMETRY", "JSON"}
"""Types of text and bytes that DuckDB parses. A scan of such a column fails at the first invalid cell."""
_OPEN_FILES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""How systems and shells name files that a process has open."""
_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value of a folder whose column is NULL."""


@dataclass(frozen=True, slots=True)
class Source:
    """Regular files of one format."""

    shown: str
    """The paths and globs as given."""
    paths: list[str]
    """All files."""
    form: Format
    delimiter: str = ","

    @property
    def partitions(self) -> set[str]:
        """The keys of folders such as country=DE that all paths have."""
        return set.intersection(*(set(_values(path)) for path in self.paths)) - {""}

    def values(self, key: str) -> list[str | None]:
        """Return the value of a folder's key for each path, as Spark and pyarrow decode it.

        A value whose bytes are not UTF-8 is None, as a missing one is: it is data, so it must not raise.
        """
        return [_values(path)[key] for path in self.paths]

    def texts(self, key: str) -> dict[str, str]:
        """Return the values of a folder's key by their text in the paths, without those that `values` has as None."""
        raw = {value for path in self.paths for name, value in _pairs(path) if name == key}
        return {value: text for value in raw if (text := _decoded(value)) is not None}

    def require_one_key(self, columns: Iterable[str]) -> None:
        """Raise SchemaError if a path has one of the columns as the key of two folders, compared without case."""
        wanted = {name.lower() for name in columns}
        for path in self.paths:
            keys = [key.lower() for key, _ in _pairs(path)]
            if any(keys.count(key) > 1 for key in wanted):
                raise SchemaError(f"{self.shown} has the same key in a folder and in a folder inside it; rename one")

    def require_no_folder(self, columns: Iterable[str]) -> None:
        """Raise SchemaError if a folder's key is one of the columns that the files have, compared without case.

        Libraries differ in which of both they read. A folder could otherwise give one person's rows to many users. The
        files of Parquet win over a key of the same spelling, which polars and others write into both.
        """
        keys = {key for path in self.paths for key, _ in _pairs(path)}
        for name in columns:
            if any(key.lower() == name.lower() and (key != name or self.form is not PARQUET) for key in keys):
                both = "in the files and in the names of folders; rename the folders"
                other = "in the names of folders, which are columns of Parquet files only; rename the folders"
                where = both if self.form is PARQUET else other
                raise SchemaError(f"the column {name!r} of {self.shown} is {where}")

    @property
    def escaped(self) -> list[str]:
        """All files as globs that match only them, because DuckDB takes paths as globs.

        Raises:
            InputError: DuckDB cannot open a path.
        """
        magic = {path for path in self.paths if glob.has_magic(path)}
        for path in self.paths:
            # DuckDB splits a glob at backslashes, so no glob matches such a path.
            if ("\\" in path and path in magic) or not _is_utf8(path):
                raise InputError(
                    f"cannot read {self.shown}: the path of a Parquet file must be UTF-8, and must not have both a "
                    "backslash and one of * ? [; rename the file or the folder"
                )
        return [glob.escape(path) if path in magic else path for path in self.paths]


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """An open file in memory that has no name in the file system."""

    path: str
    shown: str
    form: Format
    size: int
    """The size in bytes."""

    def __fspath__(self) -> str:
        return self.path


def find(paths: Sequence[str | os.PathLike[str]], *, encoding: str = "utf-8", header: bool = True) -> Source:
    """Return the files of some paths and globs. CSV has this encoding, and `header` says whether it has a header.

    A file of JSON lines without any line has no rows. So has a file of CSV if it needs no header, or if another file
    has the header.

    Raises:
        InputError: There is no file, a file is not regular, its first bytes are those of another format, the formats
            differ, or a path is a remote address. The text names the path.
    """
    if len(paths) == 1 and isinstance(paths[0], MemoryFile):
        return Source(shown=paths[0].shown, paths=[paths[0].path], form=paths[0].form)
    given = [path_text(path) for path in paths]
    found = [name for path in given for name in _matches(path)]
    forms = {form_of(name) for name in found}
    if len(forms) > 1:
        raise InputError(
            f"cannot read {', '.join(given)}: these files have different formats; give files of one format, or a query "
            "that combines both by UNION ALL"
        )
    form, delimiter = forms.pop()
    empty = {name for name in found if _is_empty(name, form, encoding)}
    if empty and form is not JSON_LINES and (form is not CSV or (header and len(empty) == len(found))):
        other = "; write the line with the names of its columns also if there are no rows" if form is CSV else ""
        raise InputError(f"cannot read {min(empty)}: it is empty{other}")
    require_no_log(found)
    found = [name for name in found if name not in empty] or found
    return Source(shown=", ".join(given), paths=found, form=form, delimiter=delimiter)


def _matches(given: str) -> list[str]:
    if given.startswith("file:/"):
        path = unquote(given.removeprefix("file:").removeprefix("//").removeprefix("localhost"))
        raise InputError(f"cannot read {given}: give the path alone, {path}")
    if given.startswith(_OPEN_FILES):
        raise InputError(
            f"cannot read {given}: a pipe such as <(COMMAND) has no suffix, and is read once. On the command line give "
            "- for FILE: COMMAND | discreet count - ... In Python write the rows to a file"
        )
    if "://" in given:
        raise InputError(
            f"cannot read {given}: it is not a file of this machine. Download it first. Or, in Python, give the "
            "relation of a DuckDB connection that has loaded its extension httpfs: connection.read_parquet(...). "
            "discreet loads and installs no extension"
        )
    literal = os.path.exists(given)  # noqa: PTH110 - a path is text here, and may hold a glob
    found = [given] if literal else sorted(glob.glob(given, recursive=True))  # noqa: PTH207 - as above
    if not found:
        raise InputError(f"cannot read {given}: no such file")
    folders = [name for name in found if os.path.isdir(name)]  # noqa: PTH112 - pathlib is slow for many paths
    if len(folders) < len(found):
        return [name for name in found if name not in folders] if folders else found
    inside = [path for folder in folders for path in files_in(folder)]
    if not inside:
        raise InputError(f"cannot read {given}: the folder has no files of a format that discreet reads")
    return inside


def files_in(folder: str) -> list[str]:
    """Return the files of known formats in a folder and its folders, except those whose names begin with _ or a dot.

    Links to folders are followed, as globs follow them, except a link to a folder that contains it.

    Raises:
        InputError: A folder cannot be read, or links lead to it more than once: its rows would be read twice.
    """
    found, waiting = list[str](), [(Path(folder), frozenset[tuple[int, int]]())]
    seen = dict[tuple[int, int], Path]()
    while waiting:
        place, above = waiting.pop()
        try:
            # This fails if the permission to search the folder is missing: its files could not be opened.
            status = os.stat(os.path.join(place, "."))  # noqa: PTH116, PTH118 - pathlib removes the dot
            with os.scandir(place) as entries:
                inside = [(entry.name, *_kinds(entry)) for entry in entries]
        except OSError:
            raise InputError(f"cannot read {place}: its permissions forbid reading, or it was removed") from None
        here = status.st_dev, status.st_ino
        if here in above:
            continue
        if (first := seen.setdefault(here, place)) is not place:
            raise InputError(f"cannot read {place}: {first} is the same folder; remove the link to it")
        before = str(place / "_")[:-1]
        for name, is_folder, is_file in inside:
            if name.startswith(("_", ".")):
                continue
            if is_folder:
                waiting.append((place / name, above | {here}))
            elif is_file and _suffix(name) in DATA:
                found.append(before + name)
    return sorted(found, key=lambda path: path.split(os.sep))  # noqa: PTH206 - pathlib is slow for many paths


def _kinds(entry: os.DirEntry[str]) -> tuple[bool, bool]:
    """Return whether an entry is a folder, and whether it is a file. Links are followed, and may have no end."""
    followed = Path(entry.path) if entry.is_symlink() else entry
    return followed.is_dir(), followed.is_file()


def require_no_log(names: Iterable[str]) -> None:
    """Raise InputError if a log in a folder of the paths decides which files of the folder are live.

    Such a table keeps files of deleted rows.
    """
    paths = {*names}
    paths |= {os.path.realpath(path) for path in paths if os.path.islink(path)}  # noqa: PTH114 - these are many
    inner = {os.path.dirname(path) for path in paths}  # noqa: PTH120 - as above
    folders = {real(folder) for folder in inner for real in (os.path.abspath, os.path.realpath)}
    while folders:
        for folder in folders:
            for kind, (log, reader) in LOGS.items():
                if glob.glob(log, root_dir=folder, include_hidden=True):  # noqa: PTH207 - as above
                    raise InputError(
                        f"cannot read the files of {folder}: it is a table of {kind}, which keeps files of deleted "
                        f"rows; give {reader} of the table"
                    )
        folders = {os.path.dirname(folder) for folder in folders} - folders  # noqa: PTH120 - as above


def _suffix(name: str) -> str:
    """Return the suffix of a file's format, in lower case and without its dot."""
    return os.path.splitext(name.lower().removesuffix(".gz"))[1][1:]  # noqa: PTH122 - pathlib is slow for many paths


def path_text(path: str | os.PathLike[str]) -> str:
    """Return a path or glob as text."""
    if isinstance(path, MemoryFile):
        return path.shown
    return require_path(path)


def form_of(name: str) -> tuple[Format, str]:
    """Return the format of a file's suffix, and its delimiter.

    Raises:
        InputError: The suffix is another one.
    """
    suffix = _suffix(name)
    form = DATA.get(suffix)
    if form is None or (name.lower().endswith(".gz") and not form.is_text):
        raise InputError(f"cannot read {name}: {_REFUSED.get(suffix) or _known()}")
    return form, "\t" if suffix == "tsv" else ","


def _known() -> str:
    plain, texts = ([f".{suffix}" for suffix in DATA if DATA[suffix].is_text is text] for text in (False, True))
    return f"its suffix must be {alternatives(plain)}, or {alternatives(texts)} with or without .gz"


def require_regular(name: str | os.PathLike[str]) -> os.stat_result:
    """Return the status of a file; raise InputError unless it is regular. Opening a pipe could wait forever.

    Raises:
        OSError: There is no such file.
    """
    status = os.stat(name)  # noqa: PTH116 - pathlib is slow for many paths
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"cannot read {os.fspath(name)}: it is not a regular file; give the path of a file")
    return status


def _pairs(path: str) -> list[tuple[str, str]]:
    """Return the keys and values of the folders of a path that are named such as country=DE."""
    if "=" not in path:
        return []
    cut = (part.partition("=") for part in Path(path).parts[:-1])
    return [(key, value) for key, equals, value in cut if equals]


def _values(path: str) -> dict[str, str | None]:
    """Return the decoded values of the folders of a path by their keys."""
    return {key: _decoded(value) for key, value in _pairs(path)}


def _decoded(value: str) -> str | None:
    if value == _NULL:
        return None
    try:
        return unquote_to_bytes(os.fsencode(value)).decode()
    except UnicodeDecodeError:
        return None


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def unreadable(name: str | os.PathLike[str], error: OSError) -> InputError:
    """Return the error for a file that cannot be opened, with the system's reason."""
    reason = error.strerror or "the system reported an error"
    return InputError(f"cannot read {os.fspath(name)}: {reason}; check its path")


def _is_empty(name: str, form: Format, encoding: str) -> bool:
    """Return whether a file has no text; raise InputError unless it can be read and has the bytes of its format."""
    try:
        require_regular(name)
        with open(name, "rb", buffering=0) as file:
            head = file.read(LENGTH)
    except OSError as error:
        raise unreadable(name, error) from None
    return require_content(name, head, form, encoding)


def parquet_schemas(
    connection: DuckDBPyConnection, paths: Sequence[str], kind: str = "duckdb_type", *, given: str = "a Parquet file"
) -> list[dict[str, str | None]]:
    """Return the columns of Parquet files, without those of their folders: the types by name, each schema once.

    `kind` is the type of a column, as SQL about the columns of `parquet_schema`; `given` names the files in an error.

    Raises:
        SchemaError: Names of a file's columns are the same, or differ by case alone.
    """
    asked = f"SELECT file_name, name, num_children, {kind} FROM parquet_schema($1) ORDER BY file_name, column_id"
    rows = connection.execute(asked, [[*dict.fromkeys(paths)]]).fetchall()
    nodes = (tuple(row[1:] for row in file) for _, file in itertools.groupby(rows, key=itemgetter(0)))
    return [_top_level(file, given) for file in dict.fromkeys(nodes)]


def _top_level(nodes: Sequence[tuple[str, int | None, str | None]], given: str) -> dict[str, str | None]:
    """Return the types of a Parquet file's columns by name, from the name, children and type of each node."""
    columns, inside = [], 0
    for name, children, kind in nodes[1:]:
        if inside == 0:
            columns.append((name, kind))
        else:
            inside -= 1
        inside += children or 0
    require_distinct([name for name, _ in columns], given)
    return dict(columns)


def require_distinct(names: Sequence[str], given: str) -> None:
    """Raise SchemaError if names differ only by case, because DuckDB would rename one of them."""
    if len({name.lower() for name in names}) < len(names):
        raise SchemaError(f"{given} has columns whose names are the same, or differ by case alone; rename them")


def require_columns(names: Iterable[str], wanted: list[str], *, instead: str = "", is_schema: bool = False) -> None:
    """Raise SchemaError unless each wanted name occurs exactly once. The text suggests a similar name or `instead`.

    If no wanted name occurs, in any case, the names may be the first row of data in a file without a header, and so
    private. The text then has no similar name, unless the names are known to come from a schema (`is_schema`).
    """
    known = Counter(list(names))
    shown = {name.lower(): name for name in reversed([*known])}
    are_names = is_schema or any(name.lower() in shown for name in wanted)
    if not (are_names or instead) and len(wanted) > 1:
        missing = " and ".join(map(repr, wanted))
        raise SchemaError(f"there are no columns {missing}: give the names of columns of the data")
    for name in wanted:
        if known[name] > 1:
            raise SchemaError(f"there is more than one column {name!r}; rename all but one")
        if not known[name]:
            near = _similar(name, shown) if are_names and not instead else instead
            raise SchemaError(f"there is no column {name!r}{near}")


def _similar(name: str, shown: Mapping[str, str]) -> str:
    """Return which of the `shown` names, by their lower case, a wrong name may mean; empty if none is similar."""
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and all(part.lower() in shown for part in parts):
        listed = [shown[part.lower()] for part in parts]
        return f"; to join several columns give them one by one, in Python {listed}, in a command with one option each"
    return meant(name, shown.values())


def quoted(name: str) -> str:
    """Return a name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
