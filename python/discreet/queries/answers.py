"""Noisy answers to many counting queries, with error bounds, and the base classes of the mechanisms. PUBLIC."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.errors import ParameterError
from discreet.mechanisms.base import Mechanism, Opening, Released, opened_rng
from discreet.privacy.arrays import whole_array
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BOUND_CHANCE",
    "MOST_STEP",
    "Answering",
    "Answers",
    "QueryMechanism",
    "in_steps",
    "require_queries",
    "require_values",
]

BOUND_CHANCE = 1e-6
"""The probability that the largest error exceeds its bound, unless the bound is certain."""
MOST_STEP = 2**20
"""The largest step of answers: noise of the largest scale, 1e9, times this step stays far below 63 bits."""
_VALUE_LIMIT = 2**40
_QUERY_LIMIT = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """Noisy answers to queries, in the order of the queries.

    Args:
        values: The answers: an int64 array with one whole number for each query.
        error_bound: A bound on the largest error, exceeded with probability at most `bound_chance`. Errors are those of
            the noise: differences from the values, each clipped to -2^40 to 2^40.
        bound_chance: The probability that the largest error exceeds the bound: 1e-6, or 0 if the bound is certain.
        expected_error: The expected largest error, approximately.
        guarantee: The guarantee, fixed before any value is read.
        made_by: The mechanism and its parameters.
        seeded: True if the randomness was seeded. Seeded answers give no privacy.
        notes: Notes for the reader, from public parameters only.

    Example:
        >>> import discreet as dp
        >>> answers = dp.queries.GaussianAnswers(k=3, sigma=20).release([100, 200, 300])
        >>> len(answers), answers.error_bound, answers.bound_chance
        (3, 102.0, 1e-06)
    """

    values: NDArray[np.int64]
    error_bound: float
    bound_chance: float
    expected_error: float
    guarantee: Guarantee
    made_by: str
    seeded: bool = False
    notes: tuple[str, ...] = ()

    @property
    def spent(self) -> Guarantee:
        """The privacy cost of the release: all of the guarantee."""
        return self.guarantee

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        promise = self.guarantee.promise if not self.seeded else "no privacy: the randomness was seeded"
        bound = f"{self.error_bound:.6g}"
        chance = self.bound_chance
        most = f"never above {bound}" if chance == 0 else f"above {bound} with a probability of at most {chance:g}"
        lines = [
            f"{len(self)} answers in .values, by {self.made_by}",
            f"guarantee: {promise}",
            f"values are clipped to ±2^40; largest error of the noise: {self.expected_error:.4g} expected, {most}",
        ]
        return "\n".join([*lines, *self.notes])


def in_steps(answers: Answers, step: int) -> Answers:
    """Return answers to queries that were divided by a step and rounded down: in the middle of the steps."""
    if step == 1:
        return answers
    note = (
        f"one user changes a true answer by at most {step:,}; answers are rounded to the middle of such steps, which "
        "the errors include"
    )
    return replace(
        answers,
        values=answers.values * step + step // 2,
        error_bound=answers.error_bound * step + step // 2,
        expected_error=answers.expected_error * step + step / 2,
        notes=(*answers.notes, note),
    )


class QueryMechanism(Mechanism[object, Released]):
    """A mechanism that reads the true answers of queries, which are whole numbers.

    One user may change all true answers at once, each by at most one, up or down.
    """

    __slots__ = ()

    reads = Sequence

    @property
    def protects(self) -> Sensitivity:
        """The sensitivity that the guarantee covers: any number of queries, each changed by at most one."""
        return Sensitivity(l0=None, linf=1)


class Answering(QueryMechanism[Answers]):
    """A mechanism that answers k queries."""

    k: int

    @property
    @abstractmethod
    def expected_error(self) -> float:
        """The expected largest error of the k answers, approximately."""

    @property
    @abstractmethod
    def error_bound(self) -> float:
        """A bound on the largest error, exceeded with probability at most `bound_chance`; rounded up."""

    @property
    def bound_chance(self) -> float:
        """The probability that the largest error exceeds the bound."""
        return BOUND_CHANCE

    @abstractmethod
    def _answer(self, values: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        """Return the noisy values."""

    def release(self, data: object, *, rng: _core.Rng | Opening | None = None) -> Answers:
        """Answer `k` queries.

        Args:
            data: A list or one-dimensional array of `k` whole numbers. Values are clipped to -2^40 to 2^40.
            rng: Randomness for tests (`discreet.testing.seeded_rng`). By default the system provides it.

        Returns:
            The Answers.

        Raises:
            ParameterError: `data` does not hold exactly `k` whole numbers.
            EntropyError: The system provides no randomness.
        """
        whole = require_values(data)
        if len(whole) != self.k:
            raise ParameterError(
                f"the number of values must be k={self.k}, the number of queries that this mechanism answers; "
                "make a mechanism with another k"
            )
        bound, expected = self.error_bound, self.expected_error
        stream = opened_rng(rng)
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
    """Return the number of queries; raise ParameterError unless it is a whole number from 1 to 2^24."""
    return require_whole("k", k, 1, _QUERY_LIMIT)


def require_values(values: object) -> NDArray[np.int64]:
    """Return whole numbers in one dimension, clipped to -2^40 to 2^40.

    Raises ParameterError for other values. Its text is constant, because the values are private.
    """
    if isinstance(values, list | tuple) and all(type(value) is int for value in values):
        # Clip first: numpy converts integers of more than 64 bits to floats or objects.
        values = [max(-_VALUE_LIMIT, min(_VALUE_LIMIT, value)) for value in values]
    array = whole_array(values)
    if array is None or len(array) == 0:
        raise ParameterError("values must be a list or one-dimensional array of whole numbers, one for each query")
    low = 0 if array.dtype.kind == "u" else -_VALUE_LIMIT
    info = np.iinfo(array.dtype)
    cut = np.clip(array, max(low, info.min), min(_VALUE_LIMIT, info.max))
    return np.asarray(cut, np.int64)
