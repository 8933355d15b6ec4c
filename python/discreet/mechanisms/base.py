"""The base class of all mechanisms: parameters, a guarantee that does not depend on data, and a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from discreet import _core
from discreet.engines.engine import Label
from discreet.engines.table import Table
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError
from discreet.privacy.guarantee import Guarantee, Sensitivity, require_one, resolve_rho
from discreet.privacy.validation import in_terms_of
from discreet.release.facts import COUNTS, Facts, Kind, Listed, Summed, all_close

__all__ = [
    "Data",
    "FromEpsilon",
    "FromRho",
    "FromRhoAndDelta",
    "Made",
    "Mechanism",
    "Opening",
    "Released",
    "Value",
    "made_for",
    "opened_rng",
]

Opening = Callable[[], _core.Rng]
"""A function that charges the budget for a release and returns the release's random stream."""

Data = TypeVar("Data", contravariant=True)
Released = TypeVar("Released", covariant=True)
Made = TypeVar("Made", covariant=True)


class FromRho(Protocol[Made]):
    """A class whose objects are made for a guarantee in rho."""

    def from_rho(self, *args: Any, **parameters: Any) -> Made:
        """Return the object for a guarantee in rho; each class has parameters of its own."""


class FromEpsilon(FromRho[Made], Protocol):
    """A class whose objects are made for a guarantee in rho or in epsilon."""

    def from_epsilon(self, *args: Any, **parameters: Any) -> Made:
        """Return the object for a guarantee in epsilon; each class has parameters of its own."""


def made_for(kind: FromEpsilon[Made], rho: float | None, epsilon: float | None, **parameters: object) -> Made:
    """Return an object of a class for a guarantee in rho, or in epsilon if there is no rho."""
    require_one(rho, epsilon)
    delta: Any = parameters.get("delta")
    with in_terms_of(rho, epsilon, delta):
        if rho is not None:
            return kind.from_rho(rho=rho, **parameters)
        return kind.from_epsilon(epsilon=epsilon, **parameters)


class Value:
    """A frozen dataclass of parameters. Copy and pickle carry the parameters only; cached values are recomputed."""

    __slots__ = ()

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _set(self, **checked: object) -> None:
        """Set parameters to their validated values, in `__post_init__`."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)


class _Maker(partial[object]):
    """A maker of a class, whose signature has the further parameters of the class."""

    @property
    def __signature__(self) -> Signature:
        (kind,) = self.args
        own = [one for one in signature(self.func).parameters.values() if one.kind is Parameter.KEYWORD_ONLY]
        more = [one for name, one in signature(kind).parameters.items() if name not in ("rho", "delta")]
        return Signature([*own, *more], return_annotation=kind)


if TYPE_CHECKING:
    _making = classmethod
else:

    class _making(classmethod):  # noqa: N801 - as classmethod
        """A class method that shows the parameters of its class."""

        def __get__(self, instance: object, owner: type | None = None) -> _Maker:
            made = _Maker(self.__func__, owner or type(instance))
            made.__doc__, made.__name__ = self.__func__.__doc__, self.__func__.__name__
            made.__qualname__ = f"{made.args[0].__qualname__}.{made.__name__}"
            return made


class FromRhoAndDelta(Value):
    """The makers of mechanisms whose first parameters are rho and delta."""

    __slots__ = ()

    @_making
    def from_rho(cls, *, rho: float, delta: float, **parameters: object) -> Self:  # noqa: N805 - a class method
        """Return the mechanism that guarantees delta-approximate rho-zCDP.

        Further parameters are those of the class.
        """
        return cls(rho=rho, delta=delta, **parameters)  # type: ignore[call-arg]

    @_making
    def from_epsilon(cls, *, epsilon: float, delta: float, **parameters: object) -> Self:  # noqa: N805 - as above
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP.

        Half of delta goes to the conversion from zCDP. Further parameters are those of the class.
        """
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own, **parameters)  # type: ignore[call-arg]


class Mechanism(Value, ABC, Generic[Data, Released]):
    """A mechanism with frozen parameters. The guarantee depends on the parameters alone.

    Most classes have makers. `from_rho(rho=, delta=, ...)` makes the mechanism that is delta-approximate rho-zCDP.
    `from_epsilon(epsilon=, delta=, ...)` makes the one whose total guarantee is (epsilon, delta)-DP. rho is above 0 and
    at most 10,000, epsilon above 0 and at most 1000, and delta above 0 and below 1, unless the maker says otherwise.
    The further parameters are those of the class. A parameter out of range raises ParameterError.

    `reads` is the type that `release` takes. `HistogramMechanism` takes counts, `UnionMechanism` takes users' items and
    `TableMechanism` takes rows. `queries.answers.Answering` takes the values of queries, and `streams.StreamMechanism`
    takes rounds of events.
    """

    __slots__ = ()

    reads: ClassVar[type]
    """The type that `release` takes."""

    releases: ClassVar[Kind] = "users"
    """The unit of the numbers of a release; see `Release.kind`."""

    lists_items: Listed = "none"
    """Which items are public before the release, and are in it even if nobody has them; see `Release.listed`."""

    items_compete: ClassVar[bool] = False
    """Whether items compete for a budget or a number of items, so that the chance of one depends on the others."""

    _columns: ClassVar[tuple[tuple[str, ...], ...]] = (COUNTS,)
    """The columns that may follow the columns of items in a release."""

    _costs_by_step: ClassVar[bool] = False
    """Whether items are drawn one after another, so that a release can cost less than the guarantee."""

    @property
    @abstractmethod
    def protects(self) -> Sensitivity:
        """Return the largest sensitivity for which the guarantee holds."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Return the guarantee of one release. Several releases cost the sum of their guarantees."""

    def _of_table(self, table: Table, only: tuple[Label, ...] | None) -> object:
        """Return what `release` takes of a table; of public items `only` if they are given."""
        return table

    @abstractmethod
    def release(self, data: Data, *, rng: _core.Rng | Opening | None = None) -> Released:
        """Release what the mechanism finds in the data.

        Args:
            data: A value of the type `reads`, with a sensitivity of at most `protects`.
            rng: For tests (`discreet.testing.seeded_rng`). By default every release draws from a fresh stream with a
                key from the operating system.

        Returns:
            A Release. Some query mechanisms return other values.

        Raises:
            ParameterError: The data is of another type.
            EntropyError: The operating system provides no randomness.
        """

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        """Return the facts that follow for a release with this bound and these sums, if the mechanism finds them."""
        return Facts(
            has_sigmas=self._has_sigmas,
            kind=self.releases,
            listed=self.lists_items,
            law=getattr(self, "law", "gaussian"),
            items=frozenset(getattr(self, "items", None) or ()),
            columns=self._columns,
            ranks=getattr(self, "k", 1),
            steps=self._costs_by_step,
        )

    def _has_sigmas(self, rows: Fields, replaced: bool) -> bool:
        """Return whether a release can have the sigmas of these rows; `replaced` says that a user is replaced."""
        sigma = getattr(self, "deviation", getattr(self, "sigma", None))
        return sigma is not None and all_close(rows["sigmas"], np.array([sigma]))


def opened_rng(rng: _core.Rng | Opening | None) -> _core.Rng:
    """Return the random stream of one release, or a fresh one if none is given.

    Mechanisms call this last, after all validation, because opening the stream charges the budget.
    """
    if rng is None:
        return _core.Rng()
    stream = rng() if callable(rng) else rng
    if not isinstance(stream, _core.Rng):
        raise ParameterError("rng must come from discreet.testing.seeded_rng, or be left out")
    return stream
