"""`Private`: a base class that prevents accidental copies and prints of an object's sensitive data."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex

__all__ = ["Private"]


class Private:
    """A base class whose instances do not reveal the values of their attributes to tools that inspect objects.

    Debuggers, notebooks, loggers and test runners inspect objects with `dir`, `vars`, `copy` and `pickle`. Here `dir`
    lists names of methods and slots, but no values. `vars`, `copy` and `pickle` raise TypeError. This prevents
    accidents, not attacks: code that names an attribute, as in `object.name`, still reads it.
    """

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise AttributeError(
            f"a {type(self).__name__} is sensitive: its attributes are not listed; publish a Release of it"
        )

    def __sizeof__(self) -> int:
        # Constant: the size in memory could depend on the data.
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
