"""`Private`: a base class that hides the data of an object from Python's introspection."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex

__all__ = ["Private"]


class Private:
    """A base class that shows no attribute of its instances.

    Debuggers, notebooks, loggers and test runners inspect objects by `dir`, `vars`, `repr`, `copy` and `pickle`. None
    of these shows an attribute here. Only code that names an attribute reads it.
    """

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise AttributeError(f"a {type(self).__name__} is sensitive and does not show its attributes")

    def __sizeof__(self) -> int:
        return 64

    def __getstate__(self) -> NoReturn:
        self._refuse()

    def __reduce__(self) -> NoReturn:
        self._refuse()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self._refuse()

    def __copy__(self) -> NoReturn:
        self._refuse()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is sensitive and is neither copied nor pickled; publish a Release of it"
        )
