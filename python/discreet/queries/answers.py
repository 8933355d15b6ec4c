"""What many queries are answered with: noisy values and how far off they may be. PUBLIC."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.errors import ParameterError
from discreet.mechanisms.base import Mechanism, Opening, Released, opened
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BOUND_CHANCE", "Answering", "Answers", "QueryMechanism", "require_queries", "require_values"]

BOUND_CHANCE = 1e-6
"""The chance that the largest error is beyond its bound, where the bound is not certain."""
_VALUE_LIMIT = 2**40
_QUERY_LIMIT = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """Noisy answers to queries, in the order of the queries."""

    values: NDArray[np.int64]
    """The answers."""
    error_bound: float
    """What no answer is off by more than, but for a chance of `bound_chance`."""
    bound_chance: float
    """Zero where the bound is certain."""
    expected_error: float
    """About what the largest error is on average."""
    guarantee: Guarantee
    """What was promised before any value was seen."""
    made_by: str
    """The mechanism and its parameters."""
    seeded: bool = False
    """True where the randomness was seeded, so that the answers protect nobody."""
    notes: tuple[str, ...] = ()
    """What a reader should know, from public parameters alone."""

    @property
    def spent(self) -> Guarantee:
        """What was paid: the guarantee."""
        return self.guarantee

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        promise = self.guarantee.promise if not self.seeded else "no privacy: seeded"
        chance = "with certainty" if self.bound_chance == 0 else f"but for a chance of {self.bound_chance:g}"
        lines = [
            f"{len(self)} answers by {self.made_by}",
            f"guarantee: {promise}",
            f"largest error: {self.expected_error:.4g} expected, at most {self.error_bound:.6g} {chance}",
        ]
        return "\n".join([*lines, *self.notes])


class QueryMechanism(Mechanism[object, Released]):
    """A mechanism that takes the values of whole-number queries, each of which one user moves by at most one.

    All values may move at once, up or down.
    """

    __slots__ = ()

    reads = Sequence

    @property
    def protects(self) -> Sensitivity:
        """Any number of queries, each moved by one."""
        return Sensitivity(l0=None, linf=1)


class Answering(QueryMechanism[Answers]):
    """A frozen value: how k queries are answered."""

    k: int

    @property
    @abstractmethod
    def expected_error(self) -> float:
        """About the expected largest error of the k answers."""

    @property
    @abstractmethod
    def error_bound(self) -> float:
        """What the largest error does not exceed, but for a chance of `bound_chance`, rounded up."""

    @property
    def bound_chance(self) -> float:
        """The chance that the largest error is beyond the bound."""
        return BOUND_CHANCE

    @abstractmethod
    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        """The noisy values."""

    def release(self, data: object, *, rng: _core.Rng | Opening | None = None) -> Answers:
        """Answers `k` queries: a list or an array of whole numbers. Values beyond 2^40 count as 2^40.

        `rng` is for tests (`discreet.testing.seeded_rng`). Raises ParameterError where there are not k
        whole numbers, EntropyError where the system gives no randomness.
        """
        whole = require_values(data)
        if len(whole) != self.k:
            raise ParameterError(
                f"this mechanism answers {self.k} queries at a time; make one for as many as there are"
            )
        bound, expected = self.error_bound, self.expected_error
        stream = opened(rng)
        return Answers(
            values=self._answer(whole, stream),
            error_bound=bound,
            expected_error=expected,
            bound_chance=self.bound_chance,
            guarantee=self.guarantee,
            made_by=repr(self),
            seeded=stream.is_seeded,
        )


def require_queries(k: object) -> int:
    """The number of queries: a whole number from 1 to 2^24."""
    return require_whole("k", k, 1, _QUERY_LIMIT)


def require_values(values: object) -> NDArray[np.int64]:
    """One dimension of whole numbers, cut at 2^40; ParameterError, with a constant text, for other types."""
    error = ParameterError("values must be a list or one-dimensional array of whole numbers, one for each query")
    try:
        if isinstance(values, list | tuple) and all(type(value) is int for value in values):
            # What numpy would make of a number of 65 bits is no whole number any more.
            values = [max(-_VALUE_LIMIT, min(_VALUE_LIMIT, value)) for value in values]
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise error from None
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) == 0:
        raise error
    low = 0 if array.dtype.kind == "u" else -_VALUE_LIMIT
    info = np.iinfo(array.dtype)
    cut = np.clip(array, max(low, info.min), min(_VALUE_LIMIT, info.max))
    return np.asarray(cut, np.int64)
