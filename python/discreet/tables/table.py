"""`Table`: rows with the names of their columns, and how to read them. SENSITIVE."""

from __future__ import annotations

from discreet import engines
from discreet.engines.table import Table as GivenTable
from discreet.errors import ParameterError

__all__ = ["Table"]


class Table(GivenTable):
    """Rows of users and items, with the names of their columns. It is as sensitive as its rows.

    Each function that takes rows takes a Table instead. It is checked when it is made, and read when it is used, so
    several releases may share it. Some mechanisms read the rows twice. `read` keeps what one pass finds in memory.

    Args:
        data: Rows of (user, item): a path or glob of Parquet, CSV, JSON lines or Arrow files, a frame or relation
            with `__arrow_c_stream__` (polars, pandas, pyarrow, DuckDB), a dict of arrays of equal length, a list of
            these, a Spark DataFrame or an Ibis table. A list in a dict has the type of most of its cells, and a cell
            that does not fit is left out.
        user: The name of the column of users, or a list of columns that are one user together: integers, text, bytes,
            dates, times or booleans.
        item: The name of the column of items, or a list of columns that are one item together, such as ["country",
            "page"]. They are columns of the release, too. A row with a NULL in one of them is left out.
        time: The name of a column of times: timestamps, dates or text such as 2026-01-31T12:00. A time without a zone
            is in UTC. A row whose cell is no time is left out.
        every: "1h", "1d", "1w" or "1mo": the period of a row becomes the first column of its item, named as the column
            of times. The guarantee is for a user with all periods together. Weeks begin on Monday.
        since: Read only rows from this time on.
        until: Read only rows before this time.
        unit: What counts as one user, and what the guarantee protects: "user", or a user in one period of `time` in
            UTC: "user-hour", "user-day", "user-week" or "user-month". Counts are then numbers of distinct pairs of user
            and period, and l0 bounds the items of a user in one period. The guarantee covers one period of a user; it
            is weaker for users with rows in many periods.
        value: The name of the column to sum: numbers, booleans, or text that holds numbers in ASCII digits. Only sums
            read it.
        memory: Bytes, or text such as "2GB", that reading may use in addition to the data and its counts; half of the
            machine's memory by default. Rows that do not fit spill to encrypted temporary files without a name.
        progress: True for a bar on a terminal or in a notebook, or a function that is called now and then without
            numbers: the number of rows is not public.

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
