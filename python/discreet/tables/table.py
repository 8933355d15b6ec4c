"""`Table`: rows with the names of their columns, and how to read them. SENSITIVE."""

from __future__ import annotations

from discreet import engines
from discreet.engines.table import Columns
from discreet.engines.table import Table as GivenTable
from discreet.errors import ParameterError
from discreet.signatures import showing

__all__ = ["Table"]


@showing(Columns)
class Table(GivenTable):
    """Rows of users and items, with the names of their columns. It is as sensitive as its rows.

    Each function that takes rows takes a Table instead. It is checked when it is made, and read when it is used, so
    several releases may share it. Some mechanisms read the rows twice. `read` keeps what one pass finds in memory.

    Args:
        data: Rows of (user, item): a path or glob of Parquet, CSV, JSON lines or Arrow files, a frame or relation
            with `__arrow_c_stream__` (polars, pandas, pyarrow, DuckDB), a dict of arrays of equal length, a list of
            these, a Spark DataFrame or an Ibis table. A list in a dict has the type of most of its cells, and a cell
            that does not fit is left out.
        **columns: The columns of rows.
        value: The name of the column to sum: numbers, booleans, or text that holds numbers in ASCII digits. Only sums
            read it.

    Raises:
        ParameterError: A name is no string, two names are the same, or another parameter is out of range.

    Example:
        >>> import discreet as dp
        >>> visits = dp.Table({"user": [*range(5000)], "page": ["home"] * 5000}, user="user", item="page")
        >>> visits
        Table(SENSITIVE)
        >>> found = visits.read()
        >>> dp.count(found, rho=1, delta=1e-6).items, dp.top_k(found, k=1, rho=1, delta=1e-6).items
        (['home'], ['home'])
    """

    def read(self) -> Table:
        """Read the rows once, and return a Table of what was found, for further releases.

        It holds the distinct items of every user: four bytes for each pair of a user and an item, 16 for each user, and
        8 for each item besides its name. Items beyond half of `memory` are in an encrypted temporary file. Files that
        change later do not change it. Sums need the rows.

        Returns:
            A Table that reads no rows, with the same names.

        Raises:
            ParameterError: The Table has a column to sum, or its rows are in a cluster or a warehouse.
            ResourceError: The folder for temporary files is full. The other errors are the same as in
                `Histogram.from_table`.
        """
        if self.value is not None:
            raise ParameterError("read keeps users and items, and no values: make the Table without value")
        return self._changed(data=engines.held(self), memory=None, progress=None)
