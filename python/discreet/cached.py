"""A `cached_property` that takes no lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 - the name of the property in functools, which type checkers know
        """A property that an instance computes once, or twice if two threads race.

        On Python 3.11 `functools.cached_property` holds a lock of the class while it computes. A process forked in the
        meantime inherits the held lock and hangs at its first use. The cached values are functions of frozen
        parameters, so computing one twice is harmless.
        """

        def __init__(self, compute: Callable[[object], object]) -> None:
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: object, owner: type | None = None) -> object:
            if instance is None:
                return self
            values = vars(instance)
            if self.name not in values:
                values[self.name] = self.compute(instance)
            return values[self.name]


__all__ = ["cached_property"]
