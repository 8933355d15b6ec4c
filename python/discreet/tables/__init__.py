"""Tables of rows, counts of users by item, and items by user. SENSITIVE."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.engines.csv_rows import CsvFiles
    from discreet.engines.databases import open_database
    from discreet.tables.histogram import Histogram
    from discreet.tables.table import Table
    from discreet.tables.user_items import UserItems
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "engines.csv_rows": "CsvFiles",
            "engines.databases": "open_database",
            "tables.histogram": "Histogram",
            "tables.table": "Table",
            "tables.user_items": "UserItems",
        },
    )

__all__ = ["CsvFiles", "Histogram", "Table", "UserItems", "open_database"]
