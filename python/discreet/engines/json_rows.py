"""Keys of JSON lines files as an Arrow stream of text. `_core` reads the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet import _core
from discreet.engines import files

__all__ = ["JsonRows"]


@dataclass(frozen=True)
class JsonRows:
    """Keys of JSON lines files; each stream reads the files in their order.

    A line without a usable value of each key but `value` is left out. No key is ever missing from a file: one user's
    line could decide whether a key exists, so a key that no line has gives no rows.
    """

    paths: Sequence[str]
    keys: Sequence[str]
    value: str | None = None
    """The key to sum: its values may be any numbers, and a line without one still has its user and item."""

    @classmethod
    def of(cls, source: files.Source, columns: list[str], value: str | None = None) -> JsonRows:
        """Return the keys of the files, which are not read yet.

        Raises:
            SchemaError: Two of the columns differ only by case, or a folder's name has one.
        """
        files.require_distinct(columns, source.shown)
        source.require_no_folder(columns)
        return cls(source.paths, columns, value)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _core.json_stream(self.paths, self.keys, value=self.value)

    def dropped(self) -> tuple[int, list[tuple[str, int | None, int, list[tuple[int, int]]]]]:
        """Return how many lines are left out, and the lines of each reason. SENSITIVE.

        A reason is its name, the index of its key or None, the number of lines, and the file's number and the line of
        the first ones.
        """
        return _core.json_dropped(self.paths, self.keys, value=self.value)
