"""`HistogramMechanism`: the base class of mechanisms that take the number of users of each item."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Unpack

from discreet import _core
from discreet.errors import ParameterError, SensitivityError
from discreet.mechanisms.base import Mechanism, Opening, opened_rng
from discreet.mechanisms.published import CountFields, marked_clipped, of_rows, published, raised
from discreet.privacy.guarantee import Sensitivity
from discreet.release.facts import COUNTS, Facts, Summed
from discreet.release.release import Release, changed
from discreet.tables.histogram import Histogram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.engines.engine import Label
    from discreet.engines.table import Table

__all__ = ["HistogramMechanism", "require_complete"]


class HistogramMechanism(Mechanism[Histogram, Release]):
    """A mechanism that takes a `Histogram` and refuses one with a larger sensitivity than it protects."""

    __slots__ = ()

    reads = Histogram

    doubled: ClassVar[tuple[str, ...] | None] = None
    """The bounds to double for `Replacement`; None if the theorem is about users added or removed alone."""

    takes_least: ClassVar[bool] = False
    """Whether it takes a histogram that has only the counts from some number on (`Histogram.from_counts(least=)`)."""

    _columns: ClassVar[tuple[tuple[str, ...], ...]] = (COUNTS, ())  # `select` drops counts

    @abstractmethod
    def release_chance(self, users: int) -> float:
        """Return the probability that an item is released, if no other item can take its place.

        Args:
            users: The number of users of the item. For a mechanism that ranks items, give this number less the
                (k_bar+1)-th largest count.

        Returns:
            A probability from 0 to 1.
        """

    @property
    def cap(self) -> int | None:
        """Return a count from which on all counts have the same effect, or None if there is no such count."""
        return None

    counts_users: ClassVar[bool] = False
    """Whether it needs the number of users (`Histogram.from_table(count_users=)`)."""

    @property
    def rows_needed(self) -> int | None:
        """Return the most rows of a histogram that this can use, or None if it needs all counts."""
        return None

    def _of_table(self, table: Table, only: tuple[Label, ...] | None) -> Histogram:
        rows = self.rows_needed
        return Histogram.from_table(
            table,
            l0=self.protects.l0,
            only=only,
            k_bar=None if rows is None else rows - 1,
            cap=self.cap,
            count_users=self.counts_users,
        )

    def _require(self, histogram: Histogram) -> None:
        """Raise SensitivityError if the histogram lacks counts that this mechanism needs.

        This method also sorts the rows that `_run` reads in order. `release` calls it before `opened_rng` charges the
        budget, because sorting can run out of memory.
        """
        histogram._in_order()

    @abstractmethod
    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        """Return the release of a validated histogram."""

    def _run_replaced(self, histogram: Histogram, rng: _core.Rng) -> Release:
        """Return the release for `Replacement`, which validates the histogram and opens the random stream."""
        return self._run(histogram, rng)

    def _published(
        self, histogram: Histogram, rows: NDArray[np.int64], rng: _core.Rng, **more: Unpack[CountFields]
    ) -> Release:
        """Return the release of these rows, which are places in the order of `Histogram._in_order`; see `published`."""
        labels, _ = histogram._in_order(int(rows.max(initial=-1)) + 1)
        return published(self, labels, rows, rng, **more)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        own, made = super()._facts(l0, summed), self.protects
        return replace(own, linf=made.linf, largest_l0=made.l0, claims_l0=True, is_keyed=True)

    def release(
        self, data: Histogram, *, rng: _core.Rng | Opening | None = None, user: None = None, item: None = None
    ) -> Release:
        """Release what the mechanism finds in a histogram.

        Args:
            data: A Histogram with a sensitivity of at most `protects`.
            rng: For tests (`discreet.testing.seeded_rng`). By default every release draws from a fresh stream with a
                key from the operating system.
            user: Not taken: the names of columns belong to `Histogram.from_table`.
            item: Not taken, for the same reason.

        Returns:
            A Release.

        Raises:
            SensitivityError: One user can change the histogram by more than the mechanism protects, or the histogram
                lacks counts that the mechanism needs.
            ParameterError: The data is not a Histogram.
            EntropyError: The operating system provides no randomness.

        Example:
            >>> import discreet as dp
            >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=2, linf=1, complete=True)
            >>> sorted(dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=2).release(table).items)
            ['a', 'b']
        """
        if user is not None or item is not None:
            raise ParameterError(
                "release takes a Histogram and no names of columns: give Histogram.from_table(data, user=..., item=...)"
            )
        if not isinstance(data, Histogram):
            raise ParameterError(
                "release takes a Histogram: make one with Histogram.from_table, from_pairs or from_counts"
            )
        if not data.sensitivity.within(self.protects):
            raise SensitivityError(_remedy(data.sensitivity, self.protects))
        if data._cap is not None and (self.cap is None or self.cap > data._cap):
            raise SensitivityError(
                f"the counts of this histogram stop at {data._cap}, but the mechanism needs larger counts: "
                "make the histogram without cap, or with the cap of the mechanism"
            )
        if data._below and not self.takes_least:
            raise SensitivityError(
                f"this histogram holds only counts of at least {data._below + 1}, which {type(self).__name__} does not "
                "take: make the histogram of all counts, or use a threshold or top-k mechanism"
            )
        self._require(data)
        release, linf = self._run(data, opened_rng(rng)), data.sensitivity.linf
        if linf > 1 and release.counts is not None and self.releases == "users":
            release = changed(release, kind="events", most=linf)
        release = of_rows(release, data._every, data.unit)
        return raised(marked_clipped(release, data._clipped_to), data._below)


def require_complete(histogram: Histogram) -> None:
    """Raise SensitivityError if the histogram was cut to its largest counts: the release would reveal the cut."""
    if histogram._limit is not None:
        raise SensitivityError(
            "this histogram keeps only its largest counts, but the mechanism needs all counts: "
            "make the histogram without k_bar (complete=True), or use a top-k mechanism"
        )


def _remedy(given: Sensitivity, protected: Sensitivity) -> str:
    """Return an error text that names the exceeded bound and how to meet it."""
    if given.linf > protected.linf:
        return (
            f"one user can change a count by {given.linf}, but the mechanism protects only {protected.linf}: "
            "count each user once per item, or make the mechanism with a larger linf"
        )
    larger = "" if given.l0 is None else f", or make the mechanism with l0={given.l0}"
    return (
        f"one user can change {given.l0 or 'any number of'} counts, but the mechanism protects only {protected.l0}: "
        f"limit each user's items with Histogram.from_table(..., l0={protected.l0}){larger}"
    )
