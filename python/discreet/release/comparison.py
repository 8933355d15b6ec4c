"""`Comparison`: the differences between the counts of two releases, and which of them exceed the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.errors import ParameterError, needs
from discreet.release import export, markup
from discreet.release.intervals import score
from discreet.wording import counted, number

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray

    from discreet.privacy.guarantee import Guarantee
    from discreet.release.export import ItemType
    from discreet.release.facts import Summed

__all__ = ["Comparison", "compared"]

_SHOWN = 20
_NOISE_ALONE = "; sigma is the noise alone"
_CHOSEN_ANEW = (
    "which items of a clipped user count can differ between the releases, so items can look changed that did not change"
)
_NAMES = ("item", "before", "after", "difference", "sigma", "larger than noise")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """The change of each item's count from one release to another, as `Release.compare` returns it.

    Items of both releases come first, the clearest change at the top. Items of only one release follow, without a
    difference: an item that was not released may have had too few users, or may not exist.

    Each change is compared with its own noise. So of 100 items that did not change, at most about five are called
    changed at a confidence of 0.95. If users are clipped, releases can count other items of a user. This is no part of
    sigma, and far more items can be called changed: see the notes.

    Args:
        items: The items.
        before: The noisy count in the first release; None if the item is not in it.
        after: The noisy count in the second release; None if the item is not in it.
        differences: The second count less the first; None if one is missing.
        sigmas: The standard deviation of the noise of each difference; None if there is no difference.
        changed: Whether the difference is larger than the noise; None if there is no difference.
        confidence: The probability that the noise alone does not make an item look changed.
        notes: Notes for the reader.

    Example:
        >>> import discreet as dp
        >>> days = []
        >>> for visitors in (3000, 9000):
        ...     log = {"user": [*range(visitors)], "page": ["home"] * visitors}
        ...     days.append(dp.count(log, user="user", item="page", rho=1, delta=1e-6))
        >>> change = days[0].compare(days[1])
        >>> change.items, change.changed
        (['home'], [True])
    """

    items: list[Any]
    before: list[int | None] | list[float | None]
    after: list[int | None] | list[float | None]
    differences: list[int | None] | list[float | None]
    sigmas: list[float | None]
    changed: list[bool | None]
    confidence: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas.DataFrame with missing values for items of one release (needs pandas).

        Returns:
            A frame with the columns item, before, after, difference, sigma and changed.
        """
        with needs("pandas"):
            import pandas
        kind = "Float64" if any(isinstance(cell, float) for cell in (*self.before, *self.after)) else "Int64"
        return pandas.DataFrame(
            {
                "item": self.items,
                "before": pandas.array(self.before, dtype=kind),
                "after": pandas.array(self.after, dtype=kind),
                "difference": pandas.array(self.differences, dtype=kind),
                "sigma": np.array([np.nan if sigma is None else sigma for sigma in self.sigmas], np.float64),
                "changed": pandas.array(self.changed, dtype="boolean"),
            }
        )

    @property
    def _title(self) -> str:
        both = sum(changed is not None for changed in self.changed)
        larger = sum(changed is True for changed in self.changed)
        ends = {"before": self.after.count(None), "after": self.before.count(None)}
        alone = "".join(f"; {counted(number, 'item')} only {end}" for end, number in ends.items() if number)
        return (
            f"{larger:,} of {counted(both, 'item')} of both releases changed by more than the noise "
            f"(confidence {self.confidence:g} for each item){alone}"
        )

    def _cells(self) -> list[list[str]]:
        """Return the first rows as text."""
        verdicts = {True: "yes", False: "no"}
        rows = zip(self.items, self.before, self.after, self.differences, self.sigmas, self.changed, strict=True)
        shown = []
        for _, (item, before, after, difference, sigma, changed) in zip(range(_SHOWN), rows, strict=False):
            cells = ["" if count is None else number(count) for count in (before, after)]
            change = "" if difference is None else f"{'+' if difference >= 0 else ''}{number(difference)}"
            only = "only before" if after is None else "only after"
            verdict = only if changed is None else verdicts[changed]
            error = "" if sigma is None else f"{sigma:,.1f}" if isinstance(difference, int) else f"{sigma:,.6g}"
            shown.append([export.shortened(item), *cells, change, error, verdict])
        return shown

    def __repr__(self) -> str:
        cells = [list(_NAMES), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        more = [f"and {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        return "\n".join([self._title, *self.notes, *lines, *more])

    def _repr_html_(self) -> str:
        return markup.table(_NAMES, self._cells(), title=self._title, notes=self.notes, more=len(self) - _SHOWN)


class Comparable(Protocol):
    """The part of a `Release` that a comparison reads."""

    @property
    def items(self) -> list[Any]: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def item_type(self) -> ItemType: ...
    @property
    def every(self) -> str | None: ...
    @property
    def measure(self) -> str: ...
    @property
    def summed(self) -> Summed | None: ...
    @property
    def clipped(self) -> bool: ...
    @property
    def seeded(self) -> bool: ...
    @property
    def claimed(self) -> bool: ...
    def __len__(self) -> int: ...
    def _measured(self, what: str) -> tuple[export.Numbers, NDArray[np.float64]]: ...


def compared(first: Comparable, second: Comparable, confidence: float) -> Comparison:
    """Return the comparison of two releases.

    Raises:
        ParameterError: A release has no counts, or the counts cannot be compared.
    """
    _require_one_kind_of_items(first, second)
    (counts, sigmas), (after, after_sigmas) = first._measured("compare"), second._measured("compare")
    bounds = [release.summed and release.summed[:3] for release in (first, second)]
    if first.measure != second.measure or bounds[0] != bounds[1]:
        before, later = (release.measure.removesuffix(_NOISE_ALONE) for release in (first, second))
        raise ParameterError(
            f"one release has {before}, and the other has {later}. These differ even if the data does not change, so "
            "they cannot be compared. Release both with the same bound, such as the same l0 or bounds of sums"
        )
    items, others = first.items, second.items
    places = dict(zip(others, range(len(others)), strict=True))
    pairs = [(row, places[item]) for row, item in enumerate(items) if item in places]
    here, there = np.array(pairs, np.int64).reshape(-1, 2).T
    change = after[there] - counts[here]
    sigma = np.sqrt(sigmas[here] ** 2 + after_sigmas[there] ** 2)
    # The noise of a difference lies between Laplace and Gaussian noise of the same deviation. Both have the probability
    # 1 - confidence beyond these bounds, so the larger one is safe.
    bound = sigma * max(score(confidence), -np.log(1 - confidence) / np.sqrt(2))
    order = np.argsort(-np.abs(change) / np.maximum(sigma, 1e-300), kind="stable")
    both = {items[row] for row, _ in pairs}
    gone = [(item, count) for item, count in zip(items, counts.tolist(), strict=True) if item not in both]
    new = [(item, count) for item, count in zip(others, after.tolist(), strict=True) if item not in both]
    missing = [None] * (len(gone) + len(new))
    notes = _notes(first, second)
    if items and others and not pairs:
        notes = (*notes, "the releases have no item in common: are they of the same column?")
    return Comparison(
        items=[*(items[row] for row in here[order]), *(item for item, _ in [*gone, *new])],
        before=[*counts[here[order]].tolist(), *(count for _, count in gone), *[None] * len(new)],
        after=[*after[there[order]].tolist(), *[None] * len(gone), *(count for _, count in new)],
        differences=[*change[order].tolist(), *missing],
        sigmas=[*sigma[order].tolist(), *missing],
        changed=[*(np.abs(change) > bound)[order].tolist(), *missing],
        confidence=confidence,
        notes=notes,
    )


def _require_one_kind_of_items(first: Comparable, second: Comparable) -> None:
    """Raise ParameterError if the units, the items or the periods of two releases differ in kind."""
    if first.guarantee.unit != second.guarantee.unit:
        raise ParameterError(f"counts of {first.guarantee.unit}s and of {second.guarantee.unit}s cannot be compared")
    kinds = [export.kind_of(release.item_type) for release in (first, second)]
    if len(first) and len(second) and kinds[0] != kinds[1]:
        raise ParameterError(f"items of type {kinds[0]} and {kinds[1]} cannot be compared")
    if None not in (first.every, second.every) and first.every != second.every:
        raise ParameterError(
            f"counts per {first.every} and per {second.every} cannot be compared; release with one every"
        )


def _notes(first: Comparable, second: Comparable) -> tuple[str, ...]:
    """Return the notes of a comparison, from the public metadata of two releases of one measure."""
    notes: tuple[str, ...] = (first.measure, _CHOSEN_ANEW) if first.clipped else ()
    if first.every != second.every:
        notes += ("only one release says the length of its periods: are both of the same length?",)
    if first.seeded or second.seeded:
        notes += ("the randomness of a release was seeded, so its rows give no privacy",)
    if first.claimed or second.claimed:
        notes += ("a release was read from a file, so its guarantee is what the file claims",)
    return notes
