"""The rows of all users, for several sums over one choice of each user's items. SENSITIVE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet import _core, engines
from discreet.engines.local import listed_labels, read
from discreet.engines.projection import columns_of
from discreet.engines.weighing import LocalLists
from discreet.errors import ParameterError
from discreet.progress import shown_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.engines.engine import Label
    from discreet.engines.table import Table

__all__ = ["read_pairs", "require_rows"]


def require_rows(table: Table, what: str) -> None:
    """Raise ParameterError for a table without rows on this machine. `what` needs them, and ends in the verb."""
    if isinstance(table.data, LocalLists):
        raise ParameterError(f"{what} the rows: give the Table itself, not what its read() returned")
    if not engines.rows_here(table.data):
        raise ParameterError(
            f"{what} the rows on this machine: give the table as toArrow() of Spark or to_pyarrow() of Ibis returns it"
        )


def read_pairs(
    table: Table, columns: Sequence[tuple[str | None, float]], only: Sequence[Label] | None = None
) -> list[_core.Pairs]:
    """Return the rows of a table with each column of values, all with one choice of each user's items.

    The table is read once for each column.

    `columns` has the name of each column, or None for rows alone, and its unit.

    Raises:
        ParameterError: The rows are not on this machine, can be read only once, or a column of values is also one of
            users, items or times. The other errors are the same as in `sums.clipped_sums`.
    """
    require_rows(table, "aggregates need")
    if table.value is not None:
        raise ParameterError("aggregates name their columns of values in sums and means: leave out value of the Table")
    used = columns_of(table.user, table.item, table.period)
    if any(column in used for column, _ in columns):
        raise ParameterError.about("a column of values must be another column than {user}, {item} and {time}")
    if len(columns) > 1:
        engines.require_rows_again(table.data)
    listed, found = listed_labels(None if only is None else tuple(only)), list[_core.Pairs]()
    with shown_progress(table.progress) as tick:
        for column, resolution in columns:

            def pairs(
                sources: list[object], room: int, column: str | None = column, resolution: float = resolution
            ) -> _core.Pairs:
                return _core.Pairs.read(
                    sources,
                    table.user,
                    table.item,
                    value=column,
                    resolution=resolution,
                    only=listed,
                    like=found[0] if found else None,
                    memory=room // len(columns),
                    times=table.period,
                    progress=tick,
                )

            found.append(read(table, pairs, value=column, only=listed))
    return found
