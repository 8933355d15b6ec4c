"""Tables of rows, counts of users by item, and items by user. SENSITIVE."""

from discreet.tables.histogram import Histogram
from discreet.tables.table import Table
from discreet.tables.user_items import UserItems

__all__ = ["Histogram", "Table", "UserItems"]
