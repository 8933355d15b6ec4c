"""What exists once: neither copied, pickled nor edited, and of use to the process that made it alone."""

from __future__ import annotations

from typing import NoReturn

from discreet import _core
from discreet.errors import ParameterError

__all__ = ["Single", "Uncopied"]


class Uncopied:
    """An object whose copy could spend again what it has spent."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is neither copied nor pickled: a copy could spend again what was spent; "
            "share the object between threads, and a Ledger between processes"
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is not edited")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is not edited")

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Single(Uncopied):
    """An object whose state is in memory, so that a forked process would have a copy of it."""

    __slots__ = ("_process",)

    _process: tuple[int, int]

    def _own(self) -> None:
        self._set(_process=_core.process())

    def _require_owner(self) -> None:
        """Refuses a process that was forked from the owner."""
        if self._process != _core.process():
            raise ParameterError(
                f"this {type(self).__name__} belongs to the process that made it, and this one was forked from it: "
                "a copy could spend again what was spent. Use a Ledger between processes"
            )
