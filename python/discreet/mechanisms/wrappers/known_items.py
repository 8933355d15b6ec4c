"""Items that are known without the data beside those that are not."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import _core
from discreet.errors import ParameterError, SchemaError
from discreet.mechanisms.from_histogram import HistogramMechanism, require_complete
from discreet.mechanisms.published import published
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_whole
from discreet.release.release import Release
from discreet.tables.histogram import Histogram

__all__ = ["KnownItems"]


@dataclass(frozen=True, kw_only=True)
class KnownItems(HistogramMechanism):
    """A threshold mechanism for which some `items` are public: their counts need no threshold, only noise.

    That a known item is named tells nothing, so all of them are published, those that nobody has included;
    or with `least` those whose noisy counts are at least so large, a choice of taste that costs nothing. All
    others must pass the mechanism's threshold. The guarantee is that of `mechanism`: noise of the same law
    on all counts, and no more novel items (Rogers 2023, Theorem 7, with fewer of them; Desfontaines et al. 2020
    speak of public and private partitions).

    `items`: distinct, and chosen without the data; unknown items of another type than theirs stay out. Raises
    ParameterError for another mechanism than one with a threshold or repeated items, SchemaError for items of mixed
    types.
    """

    mechanism: ThresholdMechanism
    items: tuple[Any, ...]
    least: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, ThresholdMechanism):
            raise ParameterError("mechanism must be one with a threshold, such as a GaussianThreshold")
        if isinstance(self.items, str | bytes):
            raise ParameterError("items must be a list of labels")
        items = tuple(self.items)
        if not all(isinstance(item, Hashable) for item in items) or len(set(items)) < len(items):
            raise ParameterError("items must be distinct integers or strings")
        # As plain values, whatever they came as, so that the repr can be read.
        plain = _core.Labels.from_sequence(list(items)).take(np.arange(len(items)))
        object.__setattr__(self, "items", tuple(plain))
        if self.least is not None:
            object.__setattr__(self, "least", require_whole("least", self.least, -(2**40)))

    @property
    def protects(self) -> Sensitivity:
        """What the mechanism protects."""
        return self.mechanism.protects

    @property
    def guarantee(self) -> Guarantee:
        """The mechanism's own."""
        return self.mechanism.guarantee

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return self.mechanism.deviation

    def release_chance(self, users: int) -> float:
        """The chance that an item of so many users is released that is not known."""
        return self.mechanism.release_chance(users)

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        known = set(self.items)
        names = histogram._labels.take(np.arange(len(histogram._counts())))
        others = np.where([name in known for name in names], 0, histogram._counts())
        rows, passed = self.mechanism.threshold.release(others, rng)
        noisy = histogram._counts_of(self.items) + rng.sample(self.mechanism.noise, len(self.items))
        kept = np.arange(len(noisy)) if self.least is None else np.flatnonzero(noisy >= self.least)
        found = [*(names[row] for row in rows), *(self.items[row] for row in kept)]
        counts = np.concatenate([passed, noisy[kept]])
        try:
            labels = _core.Labels.from_sequence(found)
        except SchemaError:
            # Of two types the known one: what is left out passed its threshold, so that this tells nothing more.
            found, counts = [self.items[row] for row in kept], noisy[kept]
            labels = _core.Labels.from_sequence(found)
        kind = (labels if found else _core.Labels.from_sequence(list(self.items))).type_name
        return published(self, labels, np.arange(len(found)), rng, noisy=counts, sigmas=self.deviation, item_type=kind)
