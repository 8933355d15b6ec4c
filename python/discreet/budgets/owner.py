"""`Uncopied` and `Single`: objects that cannot be copied, pickled or changed, because a copy could spend twice."""

from __future__ import annotations

from typing import NoReturn

from discreet import _core
from discreet.errors import ParameterError

__all__ = ["Single", "Uncopied"]


class Uncopied:
    """An object that cannot be copied, pickled or changed. A copy would not know what the original has spent."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} can be neither copied nor pickled, since a copy could spend the same budget "
            "again; share the object between threads, and a Ledger between processes"
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Single(Uncopied):
    """An object with its state in memory. Only the process that made it may use it: a fork has a copy of the state."""

    __slots__ = ("_process",)

    _process: tuple[int, int]

    def _own(self) -> None:
        self._set(_process=_core.process())

    def _require_owner(self) -> None:
        """Raise ParameterError in a process that was forked from the owner."""
        if self._process != _core.process():
            raise ParameterError(
                f"this {type(self).__name__} belongs to the process that made it, and this process was forked from it: "
                "a copy could spend the same budget again. Use a Ledger between processes"
            )
