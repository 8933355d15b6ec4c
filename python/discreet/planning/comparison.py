"""Forecasts of all mechanisms that could do a job, side by side: each runs on public data with seeded noise."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal

__all__ = ["Outlook", "PlanComparison", "Regime", "with_best"]

Regime = Literal["confirmed", "estimated", "one item", "either"]
"""The counts that `CalibratedCounts` releases besides those of the most common items, or in place of them."""
_REGIMES: dict[Regime, str] = {
    "confirmed": "CalibratedCounts confirms all counts here: there are too few users for estimates of rarer items.",
    "estimated": "CalibratedCounts estimates the counts of rarer items here.",
    "one item": "CalibratedCounts counts one item of each user here, and releases the counts above a threshold.",
    "either": "Equal calls of CalibratedCounts can differ by method here: the data is close to the limit of a method.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The forecast of one mechanism on public data.

    Args:
        name: The mechanism, or for "select" the method.
        l0: The bound on the items of a user; None if there is none.
        items: The number of items that are named.
        smallest: The smallest published count. Without counts: the number of users of the rarest named item.
        within: The number of items whose published count is within `relative_error` of the true count, before any
            clipping; None for mechanisms without counts.
        in_top_k: The number of named items that are among the true k most common; None except for "top_k".
        sigma_largest: The standard deviation of the noise of the largest published count; None without counts.
        sigma_smallest: The same for the smallest published count.
        clipped_share: The share of (user, item) pairs that clipping loses: from 0 to 1.
        missed: Of the items with at least 10 times the users that an item needs for a 50 % chance, the share that was
            missed in the runs, by clipping or by chance; None except for "select".
        regime: For `CalibratedCounts`: "estimated" if it estimates the counts of rarer items, "confirmed" if there are
            too few users for it, "one item" if it counts one item of each user, because nearly no user has more, or
            "either" if noise decides; None for other mechanisms.
        recommended: Whether this mechanism does the job best on this data.

    Example:
        >>> import discreet as dp
        >>> shape = dp.Shape(users=5_000, items=2_000, exponent=1.0, items_per_user=10)
        >>> rows = dp.plan("count", rho=1, delta=1e-6, like=shape).comparison.rows
        >>> [(row.label, row.clipped_share) for row in rows if row.l0 is None]
        [('CalibratedCounts', 0.0), ('ConfirmedCounts', 0.0), ('PrivateCountRelease', 0.0)]
    """

    name: str
    l0: int | None = None
    items: int
    smallest: int | None = None
    within: int | None = None
    in_top_k: int | None = None
    sigma_largest: float | None = None
    sigma_smallest: float | None = None
    clipped_share: float = 0.0
    missed: float | None = None
    regime: Regime | None = None
    recommended: bool = False

    @property
    def label(self) -> str:
        """The name and the bound."""
        return self.name if self.l0 is None else f"{self.name}, l0={self.l0:,}"

    @property
    def score(self) -> tuple[int, int]:
        """The number that decides which mechanism is recommended, then the number of items."""
        main = self.within if self.within is not None else self.in_top_k
        return (self.items if main is None else main, self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanComparison:
    """The forecasts of several mechanisms with the same guarantee on the same public data.

    Args:
        like: A description of the public data.
        relative_error: The error that counts as close, as a fraction of the true count.
        rows: One `Outlook` for each mechanism.
        notes: What could not be compared, and why.

    Example:
        >>> import discreet as dp
        >>> shape = dp.Shape(users=5_000, items=2_000, exponent=1.0, items_per_user=10)
        >>> found = dp.plan("count", rho=1, delta=1e-6, like=shape).comparison
        >>> found.recommended.label
        'CalibratedCounts'
    """

    like: str
    relative_error: float
    rows: tuple[Outlook, ...]
    notes: tuple[str, ...] = ()

    @property
    def recommended(self) -> Outlook | None:
        """The recommended mechanism; None if there is only one, or if none names an item."""
        return next((row for row in self.rows if row.recommended), None)

    def to_dict(self) -> dict[str, object]:
        """Return the comparison as plain values, for JSON."""
        return {
            "like": self.like,
            "relative_error": self.relative_error,
            "recommended": None if self.recommended is None else self.recommended.label,
            "mechanisms": [asdict(row) for row in self.rows],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join([self._title, *_aligned(self._table), *self._advice])

    def _repr_html_(self) -> str:
        import html

        head, *rows = ([html.escape(cell) for cell in cells] for cells in self._table)
        cells = "".join(f"<tr><td>{'<td>'.join(row)}</tr>" for row in rows)
        after = "".join(f"<p>{html.escape(line)}</p>" for line in self._advice)
        return (
            f"<table><caption>{html.escape(self._title)}</caption><thead><tr><th>{'<th>'.join(head)}</tr></thead>"
            f"<tbody>{cells}</tbody></table>{after}"
        )

    @property
    def _title(self) -> str:
        return f"Forecast without private data ({self.like}):"

    @property
    def _table(self) -> list[list[str]]:
        return [self._head(), *(self._cells(row) for row in self.rows)]

    @property
    def _advice(self) -> list[str]:
        best = self.recommended
        chosen = [] if best is None else [f"Recommended (*): {best.label}, because it has the most {self.goal}."]
        return [*chosen, *(_REGIMES[row.regime] for row in self.rows if row.regime is not None), *self.notes]

    @property
    def goal(self) -> str:
        """Return the figure that the recommended mechanism maximizes."""
        first = self.rows[0] if self.rows else None
        if first is not None and first.within is not None:
            return f"items within {100 * self.relative_error:.3g} % of the true count"
        return "items among the true top k" if first is not None and first.in_top_k is not None else "items"

    def _head(self) -> list[str]:
        first = self.rows[0] if self.rows else None
        counts, ranks = first and first.within is not None, first and first.in_top_k is not None
        head = ["", "items", "smallest count" if counts else "users of rarest"]
        if counts:
            head += [f"within {100 * self.relative_error:.3g} %", "sigma of largest", "of smallest"]
        if ranks:
            head.append("in true top k")
        return [*head, "lost by clipping"]

    def _cells(self, row: Outlook) -> list[str]:
        mark = "* " if row.recommended else "  "
        cells = [mark + row.label, f"{row.items:,}", "-" if row.smallest is None else f"{row.smallest:,}"]
        if row.within is not None:
            cells += [f"{row.within:,}", _sigma(row.sigma_largest), _sigma(row.sigma_smallest)]
        if row.in_top_k is not None:
            cells.append(f"{row.in_top_k:,}")
        return [*cells, f"{100 * row.clipped_share:.0f} %"]


def with_best(rows: list[Outlook]) -> tuple[Outlook, ...]:
    """Return the rows with the best one marked as recommended, if there are several and it names an item."""
    eligible = [row for row in rows if row.score > (0, 0)]
    if len(rows) < 2 or not eligible:
        return tuple(rows)
    best = max(eligible, key=lambda row: row.score)
    return tuple(replace(row, recommended=row is best) for row in rows)


def _sigma(sigma: float | None) -> str:
    if sigma is None:
        return "-"
    return f"{sigma:,.0f}" if sigma >= 100 else f"{sigma:.3g}"


def _aligned(table: list[list[str]]) -> list[str]:
    """Return the lines of a table: the first column to the left, the others to the right."""
    widths = [max(len(cells[place]) for cells in table) for place in range(len(table[0]))]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in table
    ]
