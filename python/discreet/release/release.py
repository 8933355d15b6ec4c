"""`Release`: published rows with the guarantee under which they were made. PUBLIC."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np

from discreet import _core
from discreet.errors import ParameterError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_flag, require_number, require_path
from discreet.release import export, intervals, markup, plot, reading, report
from discreet.release.aggregates import Aggregate
from discreet.release.comparison import Comparison, compared
from discreet.release.export import ItemType
from discreet.release.facts import Kind, Listed, Summed, measure_of
from discreet.release.kept import KeptShare
from discreet.release.provenance import Provenance, require_label
from discreet.release.rows import Rows
from discreet.wording import counted

if TYPE_CHECKING:
    import os

    import pyarrow
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["ItemType", "Release", "changed", "later"]

_SHOWN = 10
_EMPTY = (
    "no item is common enough to be released: raise rho, epsilon or delta, or use data of more users. Rows with a "
    "missing user or item are skipped, and so are rows whose time cannot be read, such as a number, or is outside of "
    "since and until. Times are rare items: give time= and every= to count periods. `discreet check` shows the owner "
    "of the data which rows are read. Another release is charged again"
)


def later(labels: _core.Labels) -> list[Any]:
    """Return labels as the argument `items` of a Release, which makes a list of them when somebody reads `items`.

    No other object may hold these labels, because the release publishes all of them.
    """
    return cast("list[Any]", labels)


def changed(release: Release, **changes: Any) -> Release:
    """Return a copy of a release with some fields replaced, without making the list of its items."""
    given = release._given  # noqa: SLF001 - of the class below
    return replace(release, **{"items": given, **changes})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release(Rows):
    """Published rows: item `items[i]` has the noisy count `counts[i]`, with noise of standard deviation `sigmas[i]`.

    The rows are sorted by noisy count, then by item. Without counts, `counts` and `sigmas` are None, and the rows are
    sorted by rank (`ranked`) or by item. A release holds its rows: reading it again gives the same rows and costs no
    budget.

    A release is a table. `release[item]` is the item's count, or its rank; `item in release` says whether it was
    released. `release[:10]` and `head` are releases of fewer rows. Iteration gives pairs of item and count.

    Args:
        items: Labels, all of one type: str, int or bytes.
        counts: Noisy counts as int64. If `quantity` is "sum", sums in the unit of their column: as int64 of integers,
            else as float64. They may differ from the true ones by a few sigma, and may be negative.
        sigmas: The standard deviation of the noise of each count.
        confirmed: Whether each count was confirmed, in a release that also has estimates; None for other releases.
            An estimate corrects a weighted count, and its sigma includes the error of the correction.
        ranked: Whether the rows are ranks 1, 2, 3 and so on.
        guarantee: The guarantee, fixed before any data was read.
        spent: The privacy cost of the steps that the mechanism took; at most the guarantee.
        calls: The number of steps that draw an item, including steps that release none; 1 for other mechanisms.
        made_by: The mechanism and its parameters.
        stopped_early: Whether a truncated histogram ran out of rows before the budget was used.
        seeded: True if the randomness was seeded, so that the rows give no privacy.
        notes: Notes for the reader, from public parameters and published values.
        kind: What a number counts: "users", "events" or "pairs" of user and item; or "sums".
        listed: Which of the items were listed in advance and need no threshold: "none", "some" or "all".
            Other items of few users are left out.
        clipped: Whether the release was made with a bound on what each user contributes. Counts may then be below the
            numbers of users, and sigma does not include the difference.
        l0: The most items of a user that were counted, given or found with privacy; None if there is no such bound.
        most: The most items of a user that counts of pairs include, or the most events of a user for an item in counts
            of events of a table; None for others.
        summed: The column, the bounds and the resolution of sums, a `Summed`; None for other kinds.
        kept_share: A private estimate of the share of (user, item) pairs that `l0` kept, a `KeptShare`; None if
            it was not paid for (`dp.count(kept_share=True)` or `l0="auto"`).
        users: A noisy number of users who have any counted item, and the standard deviation of its noise; None if not
            measured.
        round: The round of a stream; None if the release is not from a stream.
        item_type: The Arrow type of the items: string, binary, int64 or uint64. If the release knows the names of its
            columns, a tuple with the name and the type of each. Items of several columns are tuples; dates, times and
            booleans are text here, and keep their type in Arrow, pandas, polars and Parquet.
        noise: The law of the noise of the counts, "gaussian" or "laplace", for `interval`.
        above: The threshold, if only items with noisy counts above it were released; None otherwise.
        ranks: The rank of each row of a part of a ranked list; None if the ranks are 1, 2, 3 and so on.
        version: The version of discreet that made the rows.
        every: The length of the periods in the first column of items: 1h, 1d, 1w or 1mo; None without periods.
        part_of: The number of items of the whole release, if this is a part of it; None otherwise.
        aggregates: Further numbers of each item, each an `Aggregate` with `values` and `sigmas` in the order of the
            rows; empty unless they were asked for (`dp.aggregate`).
        provenance: What the release was made from and is called, a `Provenance`; None if a mechanism made it alone.
        claimed: Whether the release was read from a file. The guarantee and `seeded` are then what the file claims.

    Example:
        >>> import discreet as dp
        >>> histogram = dp.Histogram.from_counts(["a", "b"], [9000, 5000], l0=2, linf=1, complete=True)
        >>> release = dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=2).release(histogram)
        >>> release.items
        ['a', 'b']
        >>> len(release), len(release.counts), len(release.sigmas)
        (2, 2, 2)
        >>> "a" in release, "z" in release, abs(release["a"] - 9000) < 100
        (True, False, True)
        >>> release.head(1).items
        ['a']
    """

    items: list[Any]
    counts: export.Numbers | None = None
    sigmas: NDArray[np.float64] | None = None
    confirmed: NDArray[np.bool_] | None = None
    ranked: bool = False
    guarantee: Guarantee
    spent: Guarantee
    calls: int = 1
    made_by: str
    stopped_early: bool = False
    seeded: bool = False
    notes: tuple[str, ...] = ()
    clipped: bool = False
    l0: int | None = None
    kept_share: KeptShare | None = None
    users: tuple[int, float] | None = None
    round: int | None = None
    item_type: ItemType = field(default="string", repr=False)
    noise: intervals.Law = "gaussian"
    above: int | None = None
    ranks: NDArray[np.int64] | None = None
    version: str = _core.__version__
    claimed: bool = False
    every: str | None = None
    kind: Kind = "users"
    listed: Listed = "none"
    most: int | None = None
    summed: Summed | None = None
    part_of: int | None = None
    provenance: Provenance | None = None
    aggregates: tuple[Aggregate, ...] = ()

    def __post_init__(self) -> None:
        given: object = self.items
        if isinstance(given, _core.Labels):
            object.__delattr__(self, "items")
            object.__setattr__(self, "_labels", given)

    def _part(self, rows: NDArray[np.int64]) -> Self:
        """Return the release of some rows. Its labels stay in the engine if the list of items has not been made."""
        given, notes, whole = self._given, self.notes, self.part_of
        if len(rows) < len(self) and whole is None:
            whole = len(self)
            notes = (*notes, f"a part of a release of {counted(whole, 'item')}")
        chosen = later(given.select(rows)) if isinstance(given, _core.Labels) else [given[row] for row in rows]
        return replace(
            self,
            items=chosen,
            counts=None if self.counts is None else self.counts[rows],
            sigmas=None if self.sigmas is None else self.sigmas[rows],
            confirmed=None if self.confirmed is None else self.confirmed[rows],
            ranks=self._rank[rows] if self.ranked else None,
            aggregates=tuple(one.part(rows) for one in self.aggregates),
            notes=notes,
            part_of=whole,
        )

    @property
    def promise(self) -> str:
        """The guarantee in one line."""
        if self.seeded:
            return "no privacy: the randomness was seeded"
        return f"claimed by a file: {self.guarantee.promise}" if self.claimed else self.guarantee.promise

    @property
    def measure(self) -> str:
        """The meaning of the counts: "counts of users", or which clipped counts or sums; "items" without counts."""
        if self.counts is None:
            return "items by rank" if self.ranked else "items"
        bounds = {"l0": self.l0, "most": self.most}
        return measure_of(self.kind, clipped=self.clipped, **bounds, summed=self.summed, unit=self.guarantee.unit)

    @property
    def quantity(self) -> Literal["count", "sum"]:
        """The meaning of a number in `counts`: "sum" in a release of sums, "count" in all others."""
        return "sum" if self.kind == "sums" else "count"

    def __repr__(self) -> str:
        made_by = export.shown_call(self.made_by)
        lines = [f"Release of {self._size} by {made_by}", f"guarantee: {self.promise}", *self.notes, *self._empty]
        # The column after the items, a count or a rank, is printed before them.
        end = len(self.item_names)
        others = {end + 2 + 2 * place: one.name for place, one in enumerate(self.aggregates)}
        for cells in self._shown(_SHOWN):
            more = "".join(
                f", {export.shortened(name, 20)} {cells[place]} ± {cells[place + 1]}" for place, name in others.items()
            )
            lines.append(f"{(cells[end:] or [''])[0]:>12}  {', '.join(cells[:end])}{more}")
        if len(self) > _SHOWN:
            lines.append(f"{'...':>12}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        own = [
            self.quantity if (name, self.quantity) == ("count", "sum") else name
            for name, _, _ in self._columns[len(self.item_names) :]
        ]
        names = [export.shortened(name) for name in (*self.item_names, *own)]
        title, more = f"{self._size}, {self.promise}", len(self) - _SHOWN
        return markup.table(names, self._shown(_SHOWN), title=title, notes=(*self.notes, *self._empty), more=more)

    @property
    def _empty(self) -> tuple[str, ...]:
        """The explanation of a release without items. It depends on nothing else."""
        return (_EMPTY,) if not len(self) and self.part_of is None and self.round is None else ()

    @property
    def _size(self) -> str:
        return counted(len(self), "item")

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as a pyarrow.Table with the header as metadata (needs pyarrow)."""
        return Rows.to_arrow(self).replace_schema_metadata(export.metadata(self.header))

    def interval(self, confidence: float = 0.95) -> dict[str, NDArray[np.int64]]:
        """Return an interval of each item's true count.

        Over many releases, an interval contains its true count with the given probability. Noise of less than about
        five users cannot have exactly this probability, because counts are whole numbers; its interval is wider. So is
        that of a count just above a threshold, since the item was perhaps released only for its noise.

        Args:
            confidence: The probability, above 0 and below 1.

        Returns:
            A dict of two arrays, `low` and `high`, in the order of the rows.

        Raises:
            ParameterError: The release has no counts, or its counts are clipped: the noise then says nothing about the
                distance to the true count.

        Example:
            >>> import discreet as dp
            >>> log = {"user": [*range(5000)], "page": ["home"] * 5000}
            >>> found = dp.count(log, user="user", item="page", rho=1, delta=1e-6).interval(0.99)
            >>> bool(found["low"][0] < found["high"][0])
            True
        """
        confidence = require_number("confidence", confidence, 0, 1, open_high=True)
        counts, sigmas = self._measured("interval")
        if self.clipped:
            raise ParameterError(
                f"no interval of the true {self.quantity}s: these are {self.measure}. "
                + (
                    "A true sum can be higher or lower by any number; give wider bounds to clip less"
                    if self.quantity == "sum"
                    else "A true count can be higher by any number"
                    + ("" if self.round is not None else "; release without a bound, such as l0")
                )
            )
        return intervals.interval(counts, sigmas, confidence, self.noise, self.above)

    def compare(self, other: Release, confidence: float = 0.95) -> Comparison:
        """Return the change of each item's count from this release to another one.

        Args:
            other: The release after.
            confidence: The probability that noise alone does not make an item look changed: above 0 and below 1.

        Returns:
            A `Comparison`: differences with their sigma, and which of them are larger than the noise.

        Raises:
            ParameterError: A release has no counts, or the items differ in type or columns, or the counts in unit, in
                bound or in the length of their periods.

        Example:
            >>> import discreet as dp
            >>> log = {"user": [*range(5000)], "page": ["home"] * 5000}
            >>> week = [dp.count(log, user="user", item="page", rho=1, delta=1e-6) for _ in range(2)]
            >>> week[0].compare(week[1]).items
            ['home']
        """
        confidence = require_number("confidence", confidence, 0, 1, open_high=True)
        if not isinstance(other, Release):
            raise ParameterError("other must be a Release, such as dp.count returns")
        return compared(self, other, confidence)

    def _measured(self, what: str) -> tuple[export.Numbers, NDArray[np.float64]]:
        """Return the counts and their sigmas; raise ParameterError if there are none."""
        if self.counts is None or self.sigmas is None:
            raise ParameterError(f"this release has no counts to {what}; {what} a release of dp.count")
        return self.counts, self.sigmas

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the release in a file that `write` wrote, in any format but .html.

        CSV and JSON lines have rows alone, so they need the certificate next to the file (`write(certificate=True)`).
        The others have the header in the file. If the file has a certificate, the rows must have its digest.

        A file is not proof: whoever can write it can write any guarantee into it, and hide that rows were seeded. So
        the release is `claimed`, and its promise says so. `verify` recomputes the guarantee from the mechanism.

        Args:
            path: The file.

        Returns:
            A Release with `claimed` True.

        Raises:
            ParameterError: The suffix is another one.
            InputError: The file or its certificate is missing or damaged, or another program changed one of them.

        Example:
            >>> import discreet as dp, tempfile
            >>> log = {"user": [*range(5000)], "page": ["home"] * 5000}
            >>> release = dp.count(log, user="user", item="page", rho=1, delta=1e-6)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     release.write(f"{folder}/pages.csv", certificate=True)
            ...     dp.Release.read(f"{folder}/pages.csv").to_dict() == release.to_dict()
            True
        """
        return cls(**reading.read(path))

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        certificate: bool = False,
        overwrite: bool = True,
        title: str | None = None,
    ) -> None:
        """Write the release to a file in the format of its suffix: .csv, .json, .jsonl, .parquet or .html.

        Rows and certificate are replaced together or neither. A link is kept, and so is the mode of a file.

        A file has a header with the guarantee, the mechanism, its parameters and the version. CSV and JSON lines have
        rows alone; the certificate has their header. A file of .html is a report for readers, in one
        file without scripts, which loads nothing from a network.

        Args:
            path: The file.
            certificate: Also write a certificate, a second file whose name adds .certificate.json. The certificate
                contains the mechanism and its parameters, the guarantee and the digest of the rows. `discreet verify`
                checks it against the rows. With False, an existing certificate of this path is removed, because it
                does not match these rows.
            overwrite: Whether existing files are replaced. With False, an error is raised if the file or its
                certificate exists, even if another program creates it at the same time.
            title: The title of a report, printable text of at most 200 characters; by default the number of items.

        Raises:
            ParameterError: The suffix is another one, the title is no such text or is given for rows, or a certificate
                is requested for a report, or for a release that was seeded or read from a file.
            InputError: A file cannot be written, exists despite `overwrite=False`, is a ledger, a stream or a database,
                or another kind of file has the name of the certificate.
        """
        if require_flag("certificate", certificate):
            self._require_certifiable()
        path = require_path(path)
        export.require_room_for_certificate(path)
        if not require_flag("overwrite", overwrite):
            export.require_absent(path)
        if export.form_of(path) == "html":
            if certificate:
                raise ParameterError("a report has no certificate; write the rows as .csv or .parquet with one")
            export.write_text(path, report.page(self, require_label("title", title)), overwrite=overwrite, rows=True)
        else:
            if title is not None:
                raise ParameterError("only a report has a title: leave it out, or give a path that ends in .html")
            certify = self._certificate if certificate else None
            export.write(path, self._columns, self.header, overwrite=overwrite, rows=True, certify=certify)

    @property
    def certificate(self) -> dict[str, object]:
        """The content of a certificate of this release; raises ParameterError if it cannot have one."""
        self._require_certifiable()
        return self._certificate(self.digest)

    def _require_certifiable(self) -> None:
        if self.seeded:
            raise ParameterError(
                "the randomness was seeded, so this release gives no privacy and no certificate; release without rng"
            )
        if self.claimed:
            raise ParameterError(
                "this release was read from a file, so its guarantee is a claim; copy the file with its certificate"
            )
        export.call(self.made_by)

    def _certificate(self, digest: str) -> dict[str, object]:
        return {**self.header, "digest": digest}

    @property
    def digest(self) -> str:
        """The SHA-256 of the rows as CSV, independent of the format in which they are written."""
        return export.digest(self._columns)

    @property
    def header(self) -> dict[str, object]:
        """The metadata in a file of this release."""
        return {
            "made_by": self.made_by,
            "guarantee": self.promise,
            "rho": self.guarantee.rho,
            "delta": self.guarantee.delta,
            "unit": self.guarantee.unit,
            "neighbours": self.guarantee.neighbours,
            **dict(zip(("epsilon", "total_delta"), self.guarantee.dp or (), strict=False)),
            "seeded": self.seeded,
            "clipped": self.clipped,
            "kind": self.kind,
            "listed": self.listed,
            **({} if self.most is None else {"most": self.most}),
            **({} if self.summed is None else {"summed": self.summed._asdict()}),
            **({} if self.part_of is None else {"part_of": self.part_of}),
            **({} if self.l0 is None else {"l0": self.l0}),
            **({} if self.kept_share is None else {"kept_share": [*self.kept_share]}),
            **({} if self.round is None else {"round": self.round}),
            **({} if self.every is None else {"every": self.every}),
            **({"aggregates": [one.header for one in self.aggregates]} if self.aggregates else {}),
            **({} if self.provenance is None else {"provenance": dict(self.provenance)}),
            "measure": self.measure,
            "version": self.version,
            "columns": [name for name, _, _ in self._columns],
            "item_type": self.item_type,
            "noise": self.noise,
            "above": self.above,
            "spent_rho": self.spent.rho,
            "spent_delta": self.spent.delta,
            "calls": self.calls,
            "stopped_early": self.stopped_early,
            "users": None if self.users is None else [*self.users],
            "notes": [*self.notes],
            **({"claimed": True} if self.claimed else {}),
        }

    def plot(self, ax: Axes | None = None, *, top: int = 30, **options: object) -> Axes:
        """Plot the largest counts with error bars of two sigma (needs matplotlib).

        Args:
            ax: The axes to draw into; by default pyplot's current ones if they are empty, else a new figure.
            top: The number of counts to draw.
            options: Options of `Axes.barh`, such as a color.

        Returns:
            Matplotlib Axes, which a notebook shows.

        Raises:
            ParameterError: The release has no counts.
        """
        counts, sigmas = self._measured("plot")
        items = self.head(min(top, len(self))).items
        estimated = None if self.confirmed is None else ~self.confirmed[:top]
        style = {"title": self.promise, "measure": self.measure}
        return plot.bars(items, counts[:top], sigmas[:top], estimated=estimated, ax=ax, options=options, **style)
