"""Exact facts about a table, for the owner of the data alone. SENSITIVE: no release calls this module."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet import _core
from discreet.engines import files, remote
from discreet.engines.arrow_files import arrow_files
from discreet.engines.arrow_schema import durations
from discreet.engines.batches import BYTES, ArrowStream, SmallBatches
from discreet.engines.csv_rows import CsvFiles, CsvRows
from discreet.engines.engine import require_no_period
from discreet.engines.files import quoted
from discreet.engines.frames import frame, library
from discreet.engines.json_rows import JsonRows
from discreet.engines.local import Reopened, retried_carefully, scan
from discreet.engines.memory import Memory
from discreet.engines.projection import Names, Period, UserUnit, columns_of, require_names
from discreet.engines.sql import connect, require_whole_csv
from discreet.engines.typed_arrays import Foreign
from discreet.engines.validated import interruptible
from discreet.engines.values import of_duckdb
from discreet.errors import DiscreetError, InputError, ParameterError, ResourceError, raise_alone
from discreet.formats import JSON_LINES, PARQUET
from discreet.private import Private
from discreet.wording import counted

if TYPE_CHECKING:
    from ibis.expr.types import Table

__all__ = ["Check", "check"]

_PERCENTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 1)
_TOP = 20
"""The rank of the item whose users tell how common items are."""
_MOST = 200
"""The most columns that are examined if no columns are given."""
_LONG = f"more than {_core.LONGEST:,} bytes"
_NOTHING = r"('', 'null', '\n', 'na', 'n/a', '<na>', 'nan', 'none', 'nil', 'undefined', 'unknown', '-', '?')"
"""The texts, in lower case and as SQL, that programs write if nothing is there."""
_CSV = {"short": "too few cells", "not text": "a cell is not UTF-8", "long": f"a cell has {_LONG}", "unclosed": ""}
"""The reasons for which the reader of CSV drops a row, by their names in `_core`."""
_JSON = {
    "long line": f"the line has more than {_core.LONGEST_LINE:,} bytes",
    "not UTF-8": "the line is not UTF-8",
    "not an object": "the line is not a JSON object",
    "missing": "the object has no key {}",
    "null": "{} is null",
    "type": "{} is a number with a point or exponent, an array or an object",
    "not text": "{} has half of a surrogate pair",
    "long": f"{{}} has {_LONG}",
}
"""The reasons for which the reader of JSON lines leaves out a line, by their names in `_core`."""


@dataclass(frozen=True, kw_only=True)
class Check(Private):
    """Exact facts about the rows of a table. They are as sensitive as the rows."""

    rows: int
    """All rows that were read, with the dropped ones."""
    types: dict[str, str]
    """DuckDB's types of the columns. All columns of CSV and JSON lines are text."""
    dropped: dict[str, int]
    """The numbers of rows that a count leaves out, by reason. A row with several reasons counts for each."""
    decimals: dict[str, int] = field(default_factory=dict)
    """The numbers of cells such as 5.0 in columns of text, by column."""
    missing: dict[str, dict[str, int]] = field(default_factory=dict)
    """The numbers of cells whose text stands for nothing in other programs, such as NULL, by column and text."""
    excluded: int = 0
    """The number of rows that `since` and `until` exclude. They have no other reason."""
    unclosed: int = 0
    """The number of CSV files that end in a quoted cell."""
    lines_of: dict[str, list[str]] = field(default_factory=dict)
    """The lines of the first rows that the reader of CSV or JSON lines drops, by reason; "" is an unclosed quote."""
    counted: int | None = None
    """The number of rows that a count reads; None without columns of users and items."""
    users: int | None = None
    items: int | None = None
    summed: int | None = None
    """The number of rows that a sum reads; None without a column to sum."""
    items_per_user: tuple[tuple[str, int], ...] = ()
    """Percentiles of the number of distinct items of a user."""
    unit: UserUnit = "user"
    """What counts as one user."""
    top20: int | None = None
    """The number of users of the 20th most common item; None if there are fewer items."""

    def __repr__(self) -> str:
        return "Check(SENSITIVE)"

    def lines(self) -> Iterator[str]:
        """Yield the facts as sentences."""
        yield counted(self.rows, "row")
        for name, kind in self.types.items():
            yield f"column {name}: {kind}"
        for name, number in self.decimals.items():
            yield (
                f"column {name}: {counted(number, 'cell')} such as 5.0, a label other than 5. Programs write integers "
                'so if a cell is missing. Write them as integers (pandas: .astype("Int64")), or read the file by --sql '
                f"with try_cast({quoted(name)} AS BIGINT)"
            )
        for name, cells in self.missing.items():
            if found := [f"{text or 'empty text'}: {counted(number, 'row')}" for text, number in cells.items()]:
                yield (
                    f"column {name}: {'; '.join(found)}. Each such text is one user or item, as any other text. If it "
                    "stands for nothing, write NULL instead, in CSV an empty cell without quotes"
                )
        for reason, number in self.dropped.items():
            yield f"{counted(number, 'row')} left out: {reason}{self._where(reason, number)}"
        if self.excluded:
            yield f"{counted(self.excluded, 'row')} excluded by --since and --until"
        if self.unclosed:
            yield (
                f"{counted(self.unclosed, 'file')} with an unclosed quote: the last cell holds the rest of the file"
                f"{self._where('', self.unclosed)}"
            )
        if self.counted is not None:
            yield f"{counted(self.counted, 'row')} counted"
            if self.summed is not None:
                yield f"{counted(self.summed, 'row')} summed"
            yield counted(self.users or 0, self.unit)
            yield counted(self.items or 0, "item")
            for name, number in self.items_per_user:
                yield f"items per {self.unit}, {name}: {number:,}"
            if self.users:
                command = f"discreet plan count --rho 1 --delta 1e-6 --like {self.like}"
                yield f"for a forecast, round what may be published: {command}"

    @property
    def like(self) -> str:
        """The numbers that `discreet plan --like` takes, to two digits."""
        levels = dict(self.items_per_user)
        median, p95 = levels[_named(0.5)], levels[_named(0.95)]
        found = {"users": self.users, "median": median, "p95": p95, "items": self.items, "top20": self.top20}
        return ",".join(f"{name}={float(f'{value:.2g}'):.0f}" for name, value in found.items() if value is not None)

    def _where(self, reason: str, number: int) -> str:
        places = self.lines_of.get(reason, [])
        more = ", ..." if number > len(places) else ""
        return f" ({', '.join(places)}{more})" if places else ""


@interruptible()
def check(
    data: str | os.PathLike[str] | CsvFiles | ArrowStream | Table,
    user: Names | None = None,
    item: Names | None = None,
    *,
    value: str | None = None,
    period: Period | None = None,
    memory: int | str | None = None,
) -> Check:
    """Return exact facts about a table: rows, rows that a count leaves out and why, types, users and items.

    Raises:
        ParameterError: Only one of user and item is given, or a period or value without them.
        SchemaError: A column is missing, or cannot be summed.
        InputError: The data cannot be read.
        ResourceError: The facts need more memory.
    """
    if (user is None) != (item is None):
        raise ParameterError.about("give both {user} and {item}, or neither")
    if user is None and period is not None:
        raise ParameterError.about("{time}, {every}, {since} and {until} need {user} and {item}")
    if value is not None:
        if user is None or item is None:
            raise ParameterError.about("a column to sum needs {user} and {item}")
        if value in columns_of(user, item, period):
            raise ParameterError.about("the column to sum must not be a column of users, items or times")
    if library(data) == "ibis":
        require_no_period(period)
    room = Memory.of(memory)

    def attempt(careful: bool) -> Check:
        if user is None or item is None:
            return _of_all(_Tables.open(data, None, room, careful=careful))
        names = require_names(user, item, period)
        columns = [*columns_of(*names, period), *([] if value is None else [value])]
        tables = _Tables.open(data, columns, room, careful=careful, value=value)
        return _of_columns(tables, *names, period, room, value)

    try:
        return retried_carefully([data] if isinstance(data, str | os.PathLike) else [], attempt)
    except (MemoryError, ImportError, DiscreetError):
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryException":
            raise_alone(ResourceError("the check needs more memory; give a larger `memory`"))
        raise_alone(InputError("cannot check the data; check the file and its format"))


@dataclass(frozen=True, kw_only=True)
class _Tables(Private):
    """Tables with the same columns, and the rows that their reader drops."""

    all: list[Reopened]
    columns: list[str]
    typed: list[Reopened] | None = None
    """The tables with the columns of labels alone, if DuckDB cannot read the other one."""
    types: Mapping[str, object] = field(default_factory=dict)
    """The types of the other columns."""
    dropped: dict[str, int] = field(default_factory=dict)
    unclosed: int = 0
    lines_of: dict[str, list[str]] = field(default_factory=dict)
    total: int | None = None
    """The number of all rows, if the reader drops some without counting them."""
    unread: int | None = None
    """The number of rows that the reader drops; None for the sum of `dropped`."""

    @classmethod
    def open(
        cls, data: Foreign, wanted: list[str] | None, room: Memory, *, careful: bool = False, value: str | None = None
    ) -> _Tables:
        """Open the tables of `data`; `careful` as in `scan`. The column `value` may hold any numbers."""
        if isinstance(data, str | os.PathLike):
            source = files.find([data])
            if source.form.dataset is not None:
                datasets = arrow_files(source)
                source.require_no_folder(wanted or ())
                columns = wanted or _once(datasets[0].schema.names)[:_MOST]
                tables = [Reopened(partial(frame, one, columns, value)) for one in datasets]
                if value is None:
                    return cls(all=tables, columns=columns)
                labels = [name for name in columns if name != value]
                typed = [Reopened(partial(frame, one, labels)) for one in datasets]
                return cls(
                    all=tables, columns=columns, typed=typed, types={value: datasets[0].schema.field(value).type}
                )
            if source.form is PARQUET:
                columns = wanted or _parquet_columns(source)
                found = scan([data], columns, room, careful=careful, keeps_long=True, value=value)
                total = _total(source) if careful else None
                return cls(all=[Reopened(lambda: SmallBatches(found))], columns=columns, total=total)
            if source.form is JSON_LINES:
                return cls._of_json(source, wanted, value)
            data = CsvFiles(path=data)
        if isinstance(data, CsvFiles):
            return cls._of_csv(data, wanted, value)
        columns = wanted or [*data.columns][:_MOST]
        if library(data) == "ibis":
            rows, mistyped = remote.ibis.readable(data, columns)
            dropped = {"a cell is not of its column's type, or not UTF-8": mistyped}
            return cls(all=[Reopened(_batches_of(rows))], columns=columns, dropped=dropped)
        files.require_columns(data.columns, columns)
        require_whole_csv(data)
        found = data.project(", ".join(map(quoted, columns)))
        found = found if value is None else of_duckdb(found, value)
        return cls(all=[Reopened(lambda: SmallBatches(found))], columns=columns)

    @classmethod
    def _of_csv(cls, data: CsvFiles, columns: list[str] | None, value: str | None) -> _Tables:
        if columns is None and not data.header:
            raise ParameterError.about(
                "a file without a header has no names of columns: give {user} and {item} as numbers"
            )
        if columns is None:
            rows, names = CsvRows.whole(data, _MOST)
            columns = [
                name if name and names.count(name) == 1 else f"{name} (number {place})".lstrip()
                for place, name in enumerate(names, 1)
            ]
        else:
            rows = CsvRows.of_files(data, columns, value)
        (short, long, not_text, unclosed), places = rows.dropped()
        lines_of: dict[str, list[str]] = {}
        for name, file, line in places:
            lines_of.setdefault(_CSV[name], []).append(_place(rows.paths, file, line))
        dropped = {_CSV["short"]: short, _CSV["not text"]: not_text, _CSV["long"]: long}
        return cls(all=[Reopened(lambda: rows)], columns=columns, dropped=dropped, unclosed=unclosed, lines_of=lines_of)

    @classmethod
    def _of_json(cls, source: files.Source, columns: list[str] | None, value: str | None) -> _Tables:
        if columns is None:
            raise ParameterError.about("JSON lines have no line of names: give {user} and {item}, the keys to check")
        rows = JsonRows.of(source, columns, value)
        unread, losses = rows.dropped()
        dropped, lines_of = dict[str, int](), dict[str, list[str]]()
        for name, key, number, places in losses:
            reason = _JSON[name] if key is None else _JSON[name].format(columns[key])
            dropped[reason] = number
            lines_of[reason] = [_place(rows.paths, *place) for place in places]
        return cls(all=[Reopened(lambda: rows)], columns=columns, dropped=dropped, lines_of=lines_of, unread=unread)

    def facts(self, types: dict[str, str], rows: int, dropped: Counter[str]) -> dict[str, Any]:
        """Return what all checks say: `rows` of the tables have these types, and a count drops some of them."""
        unread = dict(self.dropped)
        if self.total is not None:
            unread["a cell is not UTF-8"] = self.total - rows
        all_dropped = {reason: number for reason, number in {**unread, **dropped}.items() if number}
        facts = {"types": types, "unclosed": self.unclosed, "lines_of": self.lines_of}
        all_unread = sum(unread.values()) if self.unread is None else self.unread
        return {**facts, "rows": rows + all_unread, "dropped": all_dropped}


def _place(paths: Sequence[str], file: int, line: int) -> str:
    return f"line {line:,}" if len(paths) == 1 else f"{paths[file]} line {line:,}"


def _batches_of(rows: Table) -> Callable[[], object]:
    return lambda: frame(rows.to_pyarrow_batches(), rows.columns)


def _total(source: files.Source) -> int:
    asked = "SELECT sum(num_rows) FROM parquet_file_metadata($1)"
    (total,) = connect().execute(asked, [source.escaped]).fetchone() or (0,)
    return int(total)


def _parquet_columns(source: files.Source) -> list[str]:
    """Return the columns of the first file that DuckDB can read as labels, and those in the names of folders."""
    (kinds,) = files.parquet_schemas(connect(), source.escaped[:1])
    known = {name.lower() for name in kinds}
    unread = (
        durations(connect(), source.escaped) | {name for name, kind in kinds.items() if kind in files.PARSED} | {""}
    )
    names = [name for name in kinds if name not in unread]
    return [*names, *sorted(key for key in source.partitions if key.lower() not in known)][:_MOST]


def _once(names: Sequence[str]) -> list[str]:
    """Return the names that do not repeat, compared without case as DuckDB does."""
    numbers = Counter(name.lower() for name in names)
    return [name for name in names if name and numbers[name.lower()] == 1]


def _types(tables: _Tables, labels: Sequence[str]) -> tuple[dict[str, str], dict[str, int], dict[str, dict[str, int]]]:
    """Return facts about columns: the types, and of columns of `labels` that hold text the numbers of some cells.

    These are cells such as 5.0, and by their text cells such as NULL, which programs write if nothing is there.
    """
    types, decimals, missing = dict[str, str](), Counter[str](), dict[str, Counter[str]]()
    for table in tables.typed or tables.all:
        connection = connect()
        connection.execute("SET threads = 1")
        connection.register(
            "given", table.__arrow_c_stream__()
        )  # DuckDB would replace an error of an object by its own
        names = [name for name in tables.columns if name not in tables.types]
        given = connection.sql(f"FROM given AS given({', '.join(_aliases(names).values())})")
        kinds = dict(zip(names, map(str, given.types), strict=True))
        types = types or {name: str(tables.types.get(name, kinds.get(name, ""))) for name in tables.columns}
        texts = {name: alias for name, alias in _aliases(names).items() if name in labels and kinds[name] == "VARCHAR"}
        asked = [f"count(*) FILTER (regexp_full_match({alias}, '-?[0-9]+[.]0'))" for alias in texts.values()]
        asked += [f"histogram({alias}) FILTER (lower({alias}) IN {_NOTHING})" for alias in texts.values()]
        if texts:
            (found,) = given.aggregate(", ".join(asked)).fetchall()
            decimals.update(dict(zip(texts, found[: len(texts)], strict=True)))
            for name, cells in zip(texts, found[len(texts) :], strict=True):
                missing.setdefault(name, Counter()).update(cells or {})
    return types, {name: number for name, number in decimals.items() if number}, {**missing}


def _aliases(names: Sequence[str]) -> dict[str, str]:
    """Return names of columns by number, so that all names work."""
    return {name: f"c{place}" for place, name in enumerate(names)}


def _of_columns(
    tables: _Tables, user: Names, item: Names, period: Period | None, room: Memory, value: str | None
) -> Check:
    """Return the facts of the rows that a count reads, from the functions that a count reads them with."""
    users, items = ([given] if isinstance(given, str) else [*given] for given in (user, item))
    rows, read, excluded, summed = 0, 0, 0, 0
    dropped: Counter[str] = Counter()
    for table in tables.all:
        found = _core.tally(table, user, item, times=period, value=value)
        rows, read, excluded = rows + found["rows"], read + found["counted"], excluded + found["outside"]
        if period is not None:
            dropped[f"{period.column} is NULL or is no time"] += found["untimed"]
        if value is not None:
            summed += found["summed"]
            dropped[f"{value} is NULL"] += found["no_value"]
            dropped[f"{value} is no finite number"] += found["no_number"]
        for name, cells in zip([*users, *items], found["cells"], strict=False):
            reasons = "is NULL", f"has {_LONG}", "is not UTF-8", "is no year from 1 to 9999, or does not fit 64 bits"
            for reason, number in zip(reasons, cells, strict=True):
                dropped[f"{name} {reason}"] += number
        for columns, key in ((users, "long_user"), (items, "long_item")):
            dropped[f"{' and '.join(columns)} have {_LONG} as one label"] += found[key]
    memory = room.beside_scan
    sources: list[object] = [*tables.all]
    many, distinct, levels, top20 = _core.items_per_user(
        sources, user, item, _PERCENTILES, _TOP, memory=memory, times=period
    )
    types, decimals, missing = _types(tables, [*users, *items])
    named = [_named(level) for level in _PERCENTILES]
    return Check(
        **tables.facts(types, rows, dropped),
        decimals=decimals,
        missing=missing,
        excluded=excluded,
        counted=read,
        summed=None if value is None else summed,
        users=many,
        unit="user" if period is None else period.unit,
        items=distinct,
        items_per_user=tuple(zip(named, levels, strict=True)),
        top20=top20 or None,
    )


def _named(level: float) -> str:
    return "most" if level == 1 else f"{level:.0%}"


def _of_all(tables: _Tables) -> Check:
    """Return the facts of all columns, of any types."""
    rows, dropped = 0, Counter[str]()
    types, decimals, missing = _types(tables, tables.columns)
    for table in tables.all:
        connection = connect()
        connection.execute("SET threads = 1")  # SQLite can be read only in the thread that opened it
        connection.register("given", table)
        aliases = _aliases(tables.columns)
        asked = {f"{name} is NULL": f"{alias} IS NULL" for name, alias in aliases.items()}
        asked |= {
            f"{name} has {_LONG}": f"{BYTES[kind]}({aliases[name]}) > {_core.LONGEST}"
            for name, kind in types.items()
            if kind in BYTES
        }
        numbers = ["count(*)", *(f"count(*) FILTER ({condition})" for condition in asked.values())]
        query = f"SELECT {', '.join(numbers)} FROM given AS given({', '.join(aliases.values())})"
        found, *others = map(int, connection.execute(query).fetchone() or ())
        rows += found
        dropped.update(dict(zip(asked, others, strict=True)))
    return Check(**tables.facts(types, rows, dropped), decimals=decimals, missing=missing)
