"""The Ibis engine: counts, weights and sums are pushed down to the warehouse as SQL, and only results are fetched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from discreet.engines import files
from discreet.engines.cluster_jobs import hidden_cells
from discreet.engines.engine import (
    PART,
    Counted,
    Counts,
    Fetched,
    ItemFields,
    Items,
    Label,
    Progress,
    Weighed,
    Weighting,
    counted_from,
    listed,
    tallied,
    with_weights,
)
from discreet.engines.entropy import fresh_key
from discreet.engines.ibis_columns import HERE, between, builtin, kind_of, pairs_of, quotient, well_typed
from discreet.engines.table import Table as GivenTable
from discreet.engines.validated import interruptible
from discreet.errors import DiscreetError, InputError, ParameterError, raise_alone

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibis.backends import BaseBackend
    from ibis.expr.types import BooleanValue, Table, Value
    from numpy.typing import NDArray

__all__ = ["clipped_sums", "counts_users", "histogram", "readable", "users_by_size", "weighed"]

_SHA256 = {
    "datafusion": ("sha256", "string", "binary"),
    "postgres": ("sha256", "binary", "binary"),
    "snowflake": ("sha2", "string", "string"),
}
"""Functions of backends whose SHA-256 Ibis does not know, with the types of their argument and their result."""
_THERE = "To count there, give mechanism=ConfirmedCounts(rho=..., delta=...)"


def histogram(
    table: GivenTable,
    *,
    l0: int | None = None,
    limit: int | None = None,
    cap: int | None = None,
    only: Items | None = None,
    users: bool = False,
    tick: Progress | None = None,
    without: Sequence[Label] = (),
) -> Counted:
    """Return the distinct users of each item of an Ibis table; see `Engine`.

    `l0` needs a backend with SHA-256 and window functions, such as DuckDB. `tick` is not called.
    """
    import ibis

    with _translated_errors():
        pairs, kind, backend = pairs_of(table)
        if only is not None:
            pairs = pairs.filter(_is_in(pairs.item, _wanted(only, kind), backend))
        pairs = _without(pairs, without, kind, backend).select("user", "item").distinct()
        if l0 is not None:
            pairs = _bounded(pairs, l0, backend, table.secret)
        if users and _has_windows(backend):
            # One query counts both, because the table could get another user between two queries.
            of_user = ibis.window(group_by=pairs.user, order_by=pairs.item)
            pairs = pairs.mutate(first=ibis.ifelse(ibis.row_number().over(of_user) == 0, 1, 0))
            counts = pairs.group_by("item").agg(n=lambda rows: rows.count(), first=lambda rows: rows["first"].sum())
            if limit is not None:  # all other rows are fetched, and their users added up here
                counts = counts.mutate(users=counts["first"].sum().over(ibis.window()))
        else:
            counts = pairs.group_by("item").agg(n=lambda rows: rows.count())
        if limit is not None:
            counts = counts.order_by(ibis.desc("n"), ibis.asc("item")).limit(limit)
        return counted_from(_fetched(counts), kind)


def counts_users(source: object) -> bool:
    """Return whether the backend of a table counts users in the query that counts items."""
    import ibis

    with _translated_errors():
        return not isinstance(source, ibis.Table) or _has_windows(ibis.get_backend(source))


def _has_windows(backend: BaseBackend) -> bool:
    from ibis.expr import operations

    return all(map(backend.has_operation, (operations.RowNumber, operations.WindowFunction)))


def weighed(
    table: GivenTable,
    *,
    weighting: Weighting,
    without: Sequence[Label],
    apart: Sequence[Label],
    tick: Progress | None,
    trial: bool = False,
) -> Weighed:
    """Return the weights of items of an Ibis table, and its users; see `Engine`. `tick` is not called."""
    with _translated_errors():
        # Only counts make a trial.
        sums, kind = _weighed(table, weighting, without, apart, f"{HERE}. {_THERE}" if trial else HERE)
        return with_weights(_fetched(sums.limit(0) if trial else sums), kind)


def users_by_size(
    table: GivenTable, *, most: int, without: Sequence[Label], apart: Sequence[Label], tick: Progress | None
) -> NDArray[np.int64]:
    """Return the number of users with each number of items of an Ibis table; see `Engine`. `tick` is not called."""
    import ibis

    with _translated_errors():
        pairs, kind, backend = pairs_of(table)
        pairs = _apart(_without(pairs, without, kind, backend), apart, kind, backend)
        users = pairs.group_by("user").agg(own=lambda rows: rows.own.sum())
        users = users.select(own=ibis.least(users.own, most + 1))
        return tallied(_fetched(users.group_by("own").agg(n=lambda rows: rows.count())), most)


def _weighed(
    table: GivenTable, weighting: Weighting, without: Sequence[Label], apart: Sequence[Label], remedy: str
) -> tuple[Table, str | ItemFields]:
    """Return a query of the weights of items, and the type of the items; see `Engine.weighed`.

    Items set apart have no weight. `first` adds up to the number of users, because each user has one first row. The
    query reads the rows once, so that no row is in a part of it alone.
    """
    import ibis

    pairs, kind, backend = pairs_of(table)
    pairs = _apart(_without(pairs, without, kind, backend), apart, kind, backend)
    pairs = pairs.mutate(size=pairs.own.sum().over(ibis.window(group_by=pairs.user)))
    # A hash of every row would take most of the time, and only users with more than l0 items need one.
    hashed = _hashed_here(pairs) if backend.name == "sqlite" else _place(pairs, backend, remedy)
    pairs = pairs.mutate(place=ibis.ifelse(pairs["size"] > weighting.l0, hashed, ibis.null()))
    of_user = ibis.window(group_by=pairs.user, order_by=[pairs.own.desc(), pairs.place])
    pairs = pairs.mutate(rank=ibis.row_number().over(of_user), size=ibis.least(pairs["size"], weighting.l0))
    pairs = _with_shares(pairs, [0, *weighting.shares], backend)
    weight = ibis.ifelse((pairs.own == 1) & (pairs["rank"] < weighting.l0), pairs.share, 0)
    pairs = pairs.select("item", weight=weight, first=ibis.ifelse(pairs["rank"] == 0, 1, 0))
    sums = {"weight": lambda rows: rows.weight.sum(), "first": lambda rows: rows["first"].sum()}
    sums = pairs.group_by("item").agg(**sums)
    return sums.filter((sums.weight > 0) | (sums["first"] > 0)), kind


def _with_shares(pairs: Table, shares: list[int], backend: BaseBackend) -> Table:
    """Return pairs with the share of a user of their `size`."""
    import ibis
    from ibis.expr import datatypes

    if backend.name != "sqlite":
        return pairs.join(ibis.memtable({"size": range(len(shares)), "share": shares}), "size")

    def share(size: int) -> int:
        return shares[size]

    # A temporary table would commit the caller's transaction.
    of_size: Callable[..., Value] = ibis.udf.scalar.python(share, signature=((datatypes.int64,), datatypes.int64))
    return pairs.mutate(share=of_size(pairs["size"]))


def _without(pairs: Table, without: Sequence[Label], kind: str | ItemFields, backend: BaseBackend) -> Table:
    """Return the pairs without the rows of some items."""
    return pairs.filter(~_is_in(pairs.item, _wanted(without, kind), backend)) if without else pairs


def _apart(pairs: Table, apart: Sequence[Label], kind: str | ItemFields, backend: BaseBackend) -> Table:
    """Return the distinct pairs, with the number `own`: 0 for items that are set apart, and 1 for others."""
    import ibis

    pairs = pairs.select("user", "item").distinct()
    is_apart = _is_in(pairs.item, _wanted(apart, kind), backend) if apart else ibis.literal(False)
    return pairs.mutate(own=ibis.ifelse(is_apart, 0, 1))


def _is_in(items: Value, listed: list[Label], backend: BaseBackend) -> BooleanValue:
    """Return whether an item is one of these cells."""
    import ibis

    if items.type().is_unsigned_integer():  # the type of an integer of 64 bits is not inferred
        return items.isin([ibis.literal(cell, type="uint64") for cell in listed])
    if backend.name == "sqlite" and not items.type().is_binary():
        # A query of SQLite may not contain a NUL, and -2^63 in it is a float.
        items, listed = items.cast("binary"), [str(cell).encode() for cell in listed]
    return items.isin(listed)


def clipped_sums(
    table: GivenTable,
    *,
    items: Sequence[Label],
    bounds: tuple[int, int],
    resolution: float,
    shift: int,
    l0: int | None,
    tick: Progress | None,
) -> Counts:
    """Return the sum over users of their clipped sums for each of `items`; see `Engine`. `tick` is not called."""
    with _translated_errors():
        rows, kind, backend = pairs_of(table.with_values(), resolution)
        rows = rows.filter(_is_in(rows.item, _wanted(items, kind), backend))
        pairs = rows.group_by("user", "item").agg(**{name: rows[name].sum() for name in ("high", "middle", "low")})
        middle, rest = pairs.middle + quotient(pairs.low, PART), pairs.low % PART
        high = between(pairs.high + quotient(middle, PART), -(2**30), 2**30) * PART + middle % PART
        total = between(between(high, -(2**30), 2**30) * PART + rest, *bounds)
        part = quotient(total.abs(), 2**shift)
        pairs = pairs.select("user", "item", total=(total < 0).ifelse(-part, part))
        if l0 is not None and l0 < len(items):
            pairs = _bounded(pairs, l0, backend)
        sums = pairs.group_by("item").agg(n=lambda rows: rows.total.sum())
        found, totals, _ = counted_from(_fetched(sums), kind)
        return found, totals


def readable(source: Table, columns: list[str]) -> tuple[Table, int]:
    """Return these columns of the rows whose cells are NULL or of their column's type, and the number of other rows.

    The number is SENSITIVE. It is zero unless the backend is SQLite.
    """
    import ibis

    files.require_columns(source.columns, columns)
    cells = source.select(*columns)
    if ibis.get_backend(source).name != "sqlite":
        return cells, 0
    labels_of = [name for name in columns if source[name].type().is_primitive() or source[name].type().is_string()]
    kinds = {name: kind_of(source[name], name) for name in labels_of if not source[name].type().is_floating()}
    with _translated_errors():
        typed = well_typed(cells, kinds, keeps_null=True)
        return typed, int(cells.count().execute()) - int(typed.count().execute())


def _wanted(values: Items, kind: str | ItemFields) -> list[Label]:
    """Return listed items as the cells of the column `item`."""
    found = listed(values, kind)
    return found if isinstance(kind, str) else [label.decode() for label in found]


def _fetched(query: Table) -> dict[str, Fetched]:
    table = query.to_pyarrow()
    return {name: table[name].to_pylist() for name in table.column_names}


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate a backend's errors, without their texts."""
    with interruptible(), hidden_cells():
        try:
            yield
        except (DiscreetError, MemoryError, ImportError):
            raise
        except Exception:  # the backend's text may quote cells
            raise_alone(InputError("the Ibis table could not be counted; check its connection and its query"))


def _bounded(pairs: Table, l0: int, backend: BaseBackend, secret: bytes | None = None) -> Table:
    """Keep at most l0 items of each user, the first ones in the order of `_place`."""
    import ibis

    window = ibis.window(group_by=pairs.user, order_by=_place(pairs, backend, secret=secret))
    return pairs.mutate(rank=ibis.row_number().over(window)).filter(ibis._.rank < l0)


def _place(pairs: Table, backend: BaseBackend, remedy: str = HERE, secret: bytes | None = None) -> Value:
    """Return the SHA-256 of a key, new or secret, the user and the item, which orders the items of a user.

    Each value is hashed with its type and its length, so two different pairs are never hashed as the same text."""
    import ibis
    from ibis.expr import operations

    def refused(needed: str) -> ParameterError:
        return ParameterError(f"a choice of each user's items needs {needed}; {remedy}")

    def framed(column: Value) -> list[Value]:
        if column.type().is_binary():
            if backend.name not in ("duckdb", "pyspark"):
                raise refused(f"text or integers in {backend.name}")
            cell = builtin("hex", "binary", "string")(column)
        else:
            cell = column.cast("string")
        return [ibis.literal(f"{kind_of(column, '')}:"), cell.length().cast("string"), ibis.literal(":"), cell]

    message = ibis.literal(secret.hex() if secret else fresh_key()).concat(*framed(pairs.user), *framed(pairs.item))
    hashes = {operations.HexDigest: message.hexdigest, operations.HashBytes: message.hashbytes}
    place = next((make("sha256") for operation, make in hashes.items() if backend.has_operation(operation)), None)
    if backend.name in _SHA256:
        name, given, made = _SHA256[backend.name]
        place = builtin(name, given, made)(message.cast(given))
    if place is None or not backend.has_operation(operations.RowNumber):
        raise refused(f"SHA-256 and row_number, which {backend.name} does not have")
    return place


def _hashed_here(pairs: Table) -> Value:
    """Return the hash of `_place` for SQLite, which runs in this process and has no SHA-256 of its own."""
    import ibis
    from ibis.expr import datatypes

    kinds = [kind_of(pairs[name], "") for name in ("user", "item")]

    def place(key: str, user: bytes, item: bytes) -> str:
        for kind, cell in zip(kinds, (user, item), strict=True):
            text = cell.hex().upper() if kind == "binary" else cell.decode()
            key += f"{kind}:{len(text)}:{text}"
        return hashlib.sha256(key.encode()).hexdigest()

    given = (datatypes.string, datatypes.binary, datatypes.binary)
    hashed: Callable[..., Value] = ibis.udf.scalar.python(place, signature=(given, datatypes.string))
    return hashed(ibis.literal(fresh_key()), pairs.user.cast("binary"), pairs.item.cast("binary"))
