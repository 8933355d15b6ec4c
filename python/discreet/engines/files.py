"""Files by path or glob: what they are, what their columns are called, and what is refused unread."""

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
    "Nameless",
    "Source",
    "find",
    "form_of",
    "quoted",
    "require_columns",
    "require_distinct",
    "shown",
    "top_level",
]

_FORMS = {".parquet": "parquet", ".pq": "parquet", ".csv": "CSV", ".tsv": "CSV", ".txt": "CSV"}


@dataclass(frozen=True, slots=True)
class Source:
    """Regular files of one form."""

    shown: str
    """The paths and globs as they were given."""
    paths: list[str]
    """Every file."""
    form: str
    """"parquet" or "CSV"."""
    delimiter: str = ","

    @property
    def escaped(self) -> list[str]:
        """Every file as a glob that matches it alone, as DuckDB takes paths."""
        return [glob.escape(path) for path in self.paths]


@dataclass(frozen=True, slots=True)
class Nameless:
    """A file in memory that is open in this process and has no name of its own."""

    path: str
    shown: str
    form: str
    size: int
    """In bytes."""

    def __fspath__(self) -> str:
        return self.path


def find(paths: Sequence[str | os.PathLike[str]]) -> Source:
    """The files that some paths and globs name.

    Raises InputError, which names the path, where there are none, one is not a regular file or they are of different
    forms, and for the address of something elsewhere.
    """
    if len(paths) == 1 and isinstance(paths[0], Nameless):
        return Source(shown=paths[0].shown, paths=[paths[0].path], form=paths[0].form)
    given = [shown(path) for path in paths]
    found = [name for path in given for name in _matches(path)]
    forms = {form_of(name) for name in found}
    if len(forms) > 1:
        raise InputError(
            f"cannot read {', '.join(given)}: these are files of different forms; give those of one form, or a query "
            "that makes one table of both by UNION ALL"
        )
    for name in found:
        _require_readable(name)
    form, delimiter = forms.pop()
    return Source(shown=", ".join(given), paths=found, form=form, delimiter=delimiter)


def _matches(given: str) -> list[str]:
    if "://" in given:
        raise InputError(f"cannot read {given}: only files of this machine are read; download it first")
    literal = os.path.exists(given) or "\0" in given  # noqa: PTH110 - a path is text here, and may hold a glob
    found = [given] if literal else sorted(glob.glob(given, recursive=True))  # noqa: PTH207 - as above
    if not found:
        raise InputError(f"cannot read {given}: no such file")
    if Path(found[0]).is_dir():
        raise InputError(f"cannot read {given}: it is a folder; give its files as {given.rstrip('/')}/*.parquet")
    return found


def shown(path: str | os.PathLike[str]) -> str:
    """A path or glob as text."""
    if isinstance(path, Nameless):
        return path.shown
    return os.fsdecode(os.fspath(path))


def form_of(name: str) -> tuple[str, str]:
    """What a file's suffix says that it is: "parquet" or "CSV", and its delimiter; InputError for any other."""
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    if suffix not in _FORMS or (name.lower().endswith(".gz") and _FORMS[suffix] == "parquet"):
        raise InputError(
            f"cannot read {name}: its suffix must be .parquet or .pq, or .csv, .txt or .tsv with or without .gz"
        )
    return _FORMS[suffix], "\t" if suffix == ".tsv" else ","


def _require_readable(name: str) -> None:
    try:
        status = Path(name).stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"cannot read {name}: it is not a regular file")
        with Path(name).open("rb"):
            pass
    except (OSError, ValueError):
        raise InputError(f"cannot read {name}: it does not exist or may not be read") from None
    if status.st_size == 0:
        raise InputError(f"cannot read {name}: it is empty")


def top_level(nodes: Sequence[tuple[str, int | None, str | None]]) -> list[tuple[str, str | None]]:
    """The names and types of the columns of a Parquet file, from its schema's nodes: name, number of children, type."""
    columns, inside = [], 0
    for name, children, kind in nodes[1:]:
        if inside == 0:
            columns.append((name, kind))
        else:
            inside -= 1
        inside += children or 0
    return columns


def require_distinct(names: Sequence[str], given: str) -> None:
    """Raises SchemaError where names differ by case alone: DuckDB would rename one of them."""
    if len({name.lower() for name in names}) < len(names):
        raise SchemaError(f"{given} has columns whose names are the same, or differ by case alone; rename them")


def require_columns(names: Iterable[str], wanted: list[str], *, instead: str = "", is_schema: bool = False) -> None:
    """Raises SchemaError, with the near miss or `instead` of it a hint, unless each wanted name is there once.

    Where none is there, the names may be the first line of a file that has no names, unless they are known to be those
    of a schema: no near miss shows this data.
    """
    import difflib

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
            near = difflib.get_close_matches(name.lower(), shown, n=1)
            hint = f"; did you mean {shown[near[0]]!r}?" if near else instead
            raise SchemaError(f"there is no column {name!r}{hint}")


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
