"""Tables of rows, counts of users by item, and items by user. SENSITIVE."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.engines.csv_rows import CsvFiles as CsvFiles
    from discreet.engines.databases import open_database as open_database
    from discreet.tables.histogram import Histogram as Histogram
    from discreet.tables.table import Table as Table
    from discreet.tables.user_items import UserItems as UserItems
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "engines.csv_rows": "CsvFiles",
            "engines.databases": "open_database",
            "tables.histogram": "Histogram",
            "tables.table": "Table",
            "tables.user_items": "UserItems",
        },
    )
