"""`KnownItems`: a threshold mechanism for which some items are public."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError, SchemaError
from discreet.mechanisms.from_histogram import HistogramMechanism, require_complete
from discreet.mechanisms.parameters import require_list
from discreet.mechanisms.published import published
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_whole
from discreet.release.facts import Facts, Listed, Summed
from discreet.release.intervals import Law
from discreet.release.release import Release
from discreet.tables.histogram import Histogram

__all__ = ["KnownItems"]

_REPEATED = "items must be distinct integers or strings"


@dataclass(frozen=True, kw_only=True)
class KnownItems(HistogramMechanism):
    """A mechanism that adds noise to the counts of public `items`, and applies a threshold to all other items.

    The name of a public item reveals nothing. So all public items are released, even items that no user has. All other
    items must pass the threshold of `mechanism`. `mechanism` gives the guarantee: the noise on each count is the same,
    and fewer items are novel.

    Args:
        mechanism: A mechanism with a threshold, such as a `GaussianThreshold`.
        items: Distinct integers or strings, chosen without the data. Other items are released only if they are of the
            same type.
        least: If given, release a public item only if its noisy count is at least this number. This costs no privacy.

    Raises:
        ParameterError: The mechanism has no threshold, or items repeat.
        SchemaError: The items are of mixed types.

    Example:
        >>> import discreet as dp
        >>> inner = dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=2)
        >>> mechanism = dp.mechanisms.KnownItems(mechanism=inner, items=("help", "home"))
        >>> table = dp.Histogram.from_counts(["home", "jobs"], [9000, 8000], l0=2, linf=1, complete=True)
        >>> sorted(mechanism.release(table).items)
        ['help', 'home', 'jobs']

    Source:
        Rogers (2023), Theorem 7, with fewer novel items; Desfontaines et al. (2020) on public and private partitions.
    """

    mechanism: ThresholdMechanism
    items: tuple[str | int | bytes, ...]
    least: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, ThresholdMechanism):
            raise ParameterError("mechanism must be one with a threshold, such as a GaussianThreshold")
        if not getattr(self.mechanism, "with_counts", True):
            raise ParameterError("mechanism must publish counts: leave out with_counts=False")
        self._set(items=_plain(self.items))
        try:
            _ = self._known
        except (ParameterError, SchemaError):
            if len(set(self.items)) < len(self.items):
                raise ParameterError(_REPEATED) from None
            raise
        if self.least is not None:
            self._set(least=require_whole("least", self.least, -(2**40)))

    @cached_property
    def _known(self) -> _core.KnownLabels:
        """The items with a hash table, so that no release makes Python objects of the labels of a histogram."""
        return _core.KnownLabels.from_sequence(self.items)

    @cached_property
    def _text(self) -> str:
        parts = (f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
        return f"{type(self).__qualname__}({', '.join(parts)})"

    def __repr__(self) -> str:
        # Every release has this text, which takes 56 ns for each item.
        return self._text

    @property
    def lists_items(self) -> Listed:  # type: ignore[override]
        """Return which items are published even if nobody has them: none of them if `least` leaves some out."""
        return "some" if self.least is None else "none"

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity that the wrapped mechanism protects."""
        return self.mechanism.protects

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the wrapped mechanism."""
        return self.mechanism.guarantee

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the noise."""
        return self.mechanism.deviation

    @property
    def law(self) -> Law:
        """Return the law of the noise, which is that of `mechanism`."""
        return self.mechanism.law

    def release_chance(self, users: int) -> float:
        """Return the probability that an item outside `items` is released."""
        return self.mechanism.release_chance(users)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        made, items = self.mechanism._facts(l0, summed), frozenset(self.items)
        return replace(made, listed=self.lists_items, items=items)

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)
        # A copy of this mechanism makes its table now, before the charge, because it can run out of memory.
        self._known.require_like(histogram._in_any_order()[0])

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        every, exact = histogram._for_noise(rng)
        others, counts, places = self._known.split(every, exact)
        rows, passed = self.mechanism.threshold.release(others, rng)
        noisy = counts + rng.sample(self.mechanism.noise, len(counts))
        kept = np.arange(len(noisy)) if self.least is None else np.flatnonzero(noisy >= self.least)
        # If the types differ, only the public items are left. Dropping the others is post-processing and reveals
        # nothing.
        labels, noisy = self._known.join((kept, noisy, places), every, (rows, passed))
        # Public items have no threshold; their intervals become too wide, rather than those of other items too narrow.
        above, rows = self.mechanism.threshold.value, np.arange(len(noisy))
        return published(self, labels, rows, rng, noisy=noisy, sigmas=self.deviation, above=above)


def _plain(items: object) -> tuple[str | int | bytes, ...]:
    """Return items as plain Python values, so that the repr is readable."""
    if isinstance(items, np.ndarray) and items.ndim == 1 and items.dtype.kind in "iuUS":
        return tuple(items.tolist())
    labels: tuple[str | int | bytes, ...] = tuple(require_list(items))
    if {*map(type, labels)} <= {str, bytes, int}:
        return labels
    if not all(isinstance(label, Hashable) for label in labels) or len(set(labels)) < len(labels):
        raise ParameterError(_REPEATED)
    return tuple(_core.Labels.from_sequence(list(labels)).take(np.arange(len(labels))))
