"""What every mechanism is: parameters, a guarantee known before any data, and a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import ClassVar, Generic, TypeVar

from discreet import _core
from discreet.errors import ParameterError
from discreet.privacy.guarantee import Guarantee, Sensitivity

__all__ = ["Data", "Mechanism", "Opening", "Released", "Value", "opened"]

Opening = Callable[[], _core.Rng]
"""Opens the stream of a release, and has it paid for."""

Data = TypeVar("Data", contravariant=True)
Released = TypeVar("Released", covariant=True)


class Value:
    """A frozen dataclass of parameters: what is computed of them is neither copied nor pickled, but computed anew."""

    __slots__ = ()

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class Mechanism(Value, ABC, Generic[Data, Released]):
    """A frozen value whose guarantee is a function of its parameters alone.

    `reads` says what `release` takes. Every mechanism of the package has this shape: `HistogramMechanism` takes
    counts, `UnionMechanism` the items of users, `TableMechanism` rows, `queries.Answering` the values of queries,
    and `streams.StreamMechanism` rounds of events.
    """

    __slots__ = ()

    reads: ClassVar[type]
    """What `release` takes."""

    @property
    @abstractmethod
    def protects(self) -> Sensitivity:
        """The largest sensitivity for which the guarantee holds."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What every release of this mechanism promises."""

    @abstractmethod
    def release(self, data: Data, *, rng: _core.Rng | Opening | None = None) -> Released:
        """Publishes what the mechanism finds in the data."""


def opened(rng: _core.Rng | Opening | None) -> _core.Rng:
    """The stream of one release, opened when nothing is left that could be refused; a fresh one where none is given."""
    if rng is None or isinstance(rng, _core.Rng):
        return rng or _core.Rng()
    if not callable(rng):
        raise ParameterError("rng must come from discreet.testing.seeded_rng, or be left out")
    return rng()
