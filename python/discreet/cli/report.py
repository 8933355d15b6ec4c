"""The output of the command line: tables of released rows, and the guarantee."""

from __future__ import annotations

import sys
from collections.abc import Container
from typing import TYPE_CHECKING

import click

from discreet.cli import endings
from discreet.imports import held
from discreet.release import export
from discreet.release.export import plain_text
from discreet.release.report import ROWS
from discreet.wording import counted, number, shown_up

if TYPE_CHECKING:
    from discreet.release.release import Release

__all__ = ["grid", "guarantee_lines", "table", "write_release"]

_TABLE_ROWS = 40
_WIDE = 100_000
"""A width at which no row of a text table is cut, in characters."""
_LEAST = 4
"""The width to which a column of text can be cut for other columns, in characters."""


def table(release: Release, *, shown: int, columns: dict[str, list[str]] | None = None) -> str:
    """Return the first rows as a text table that fits the terminal.

    `columns` are the cells of the columns after the items: by default ranks, or counts and sigmas.
    """
    from rich.console import Console

    cells = _cells(release, shown) if columns is None else columns
    labels = [item if isinstance(item, tuple) else (item,) for item in release.items[:shown]]
    rows = [[*map(plain_text, own), *(column[i] for column in cells.values())] for i, own in enumerate(labels)]
    title = release.measure if release.clipped else ""
    width, names = Console(file=sys.stdout).width, [*release.item_names, *cells]
    rest = len(release) - shown
    more = f"... and {rest:,} more\n" if rest > 0 else ""
    return grid(names, rows, width=width, labels=len(release.item_names), title=title) + more


def _cells(release: Release, shown: int) -> dict[str, list[str]]:
    """Return the ranks, or the counts, the further numbers and their sigmas, of the first rows as text."""
    cells: dict[str, list[str]] = {}
    if release.ranked:
        cells["rank"] = [f"{rank:,}" for rank in range(1, len(release) + 1)]
    if release.counts is not None and release.sigmas is not None:
        cells[release.quantity] = [number(count) for count in release.counts[:shown].tolist()]
        digits = ",.0f" if release.counts.dtype == "int64" else ",.3g"
        cells["± 2 sigma"] = [f"{2 * sigma:{digits}}" for sigma in release.sigmas[:shown].tolist()]
    for one in release.aggregates:
        pairs = zip(one.values[:shown].tolist(), one.sigmas[:shown].tolist(), strict=True)
        cells[plain_text(one.name)] = [f"{value:,.6g} ± {2 * sigma:,.2g}" for value, sigma in pairs]
    return cells


def grid(
    names: list[str],
    rows: list[list[str]],
    *,
    width: int = _WIDE,
    kept: Container[str] = (),
    labels: int | None = None,
    title: str = "",
) -> str:
    """Return a text table with one line for each row; columns of numbers are right-aligned.

    If it is wider than `width`, the widest columns of text are cut, and the `kept` ones only if others do not suffice.
    Numbers are never cut: the lines are then longer than `width`. `labels` is the number of columns of text, which are
    first; without it, columns with a cell that is no number are text.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[plain_text(cell) for cell in row] for row in (names, *rows)]
    right = [all(_is_number(row[i]) for row in rows) if labels is None else i >= labels for i in range(len(names))]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    texts = [i for i, is_right in enumerate(right) if not is_right]
    while sum(widths) + 2 * len(widths) - 2 > width and any(widths[i] > _LEAST for i in texts):
        widths[max(texts, key=lambda i: (names[i] not in kept and widths[i] > 10, widths[i]))] -= 1
    style = "" if labels is None else "bold"
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=style, collapse_padding=True)
    if title:
        grid.title, grid.title_justify, grid.title_style = Text(plain_text(title)), "left", "italic"
    for name, is_right, most in zip(cells[0], right, widths, strict=True):
        grid.add_column(Text(name), justify="right" if is_right else "left", no_wrap=True, width=most)
    for row in cells[1:]:
        grid.add_row(*map(Text, row))
    console = Console(file=sys.stdout, width=_WIDE)
    with console.capture() as captured:
        console.print(grid)
    return "".join(line.rstrip() + "\n" for line in captured.get().splitlines())


def _is_number(cell: str) -> bool:
    return not cell or cell.replace(".", "").replace("e-", "").replace("e+", "").isdigit()


def write_release(
    release: Release,
    output: str | None,
    form: str | None,
    *,
    quiet: bool,
    certificate: bool = False,
    overwrite: bool = True,
    title: str | None = None,
) -> None:
    """Write the rows to a file or to standard output (a table on a terminal), and the guarantee to standard error."""
    if output is not None:
        chosen = export.form_of(output)
        _write(release, output, certificate, overwrite, title)
    elif (chosen := form or ("table" if sys.stdout.isatty() else "csv")) == "table":
        _print(table(release, shown=_TABLE_ROWS), "The rows are on standard output.")
    else:
        _print(export.text(release.columns, release.header, chosen), "The rows are on standard output.")
    if chosen == "html" and len(release) > ROWS:
        click.echo(
            f"Note: the report has {ROWS:,} of the {len(release):,} items, and the others are lost. -o FILE.csv keeps "
            "all.",
            err=True,
        )
    if quiet:
        return
    for line in guarantee_lines(release):
        click.echo(line, err=True)
    if chosen == "csv" and export.escapes(release.columns):
        click.echo(
            "Note: the CSV has an extra apostrophe before items that begin with one or that a spreadsheet could run as "
            "a formula. Parquet and JSON hold these items unchanged.",
            err=True,
        )


def _print(text: str, where: str) -> None:
    """Print rows, and note where they are once they are all written."""
    ending = endings.current()
    ending.begun = True
    click.echo(text, nl=False)
    sys.stdout.flush()
    ending.where = where


def _write(release: Release, output: str, certificate: bool, overwrite: bool, title: str | None) -> None:
    """Write the rows to a file, or to standard output if that fails, because their cost is already charged."""
    ending = endings.current()
    ending.begun = True
    try:
        with held():
            release.write(output, certificate=certificate, overwrite=overwrite, title=title)
            ending.where = f"The rows are in {export.plain_text(output)}."
    except Exception:
        if sys.stdout is not None and not ending.where:
            _print(
                export.text(release.columns, release.header, "csv"),
                "These rows were released. They are on standard output as CSV, because the file was not written.",
            )
        raise


def guarantee_lines(release: Release) -> list[str]:
    """Return the lines about a release: its guarantee, the cost spent, and notes."""
    spent = release.spent
    lines = [f"{counted(len(release), 'item')} released. Guarantee: {release.promise}."]
    costs = [(shown_up(cost.rho), shown_up(cost.delta, 3)) for cost in (spent, release.guarantee)]
    if costs[0] != costs[1]:
        each = "" if release.methods else " A step draws at most one item."
        lines.append(
            f"Spent: rho {costs[0][0]} of {shown_up(release.guarantee.rho)}, "
            f"delta {costs[0][1]} of {shown_up(release.guarantee.delta)} in {counted(release.calls, 'step')}.{each}"
        )
    if not len(release):
        lines.append(
            "No item is common enough to be released. Raise --rho (or --epsilon) or --delta, or use data of more "
            f"users. {_forecast(release)}Rows without a user or item (NULL, or an empty CSV cell) are skipped, and so "
            "are CSV rows that are not UTF-8, and invalid JSON lines: check --user and --item, the encoding of the "
            "file, and that each quote in "
            "it is closed. With --time, rows whose time is not written like 2026-01-31T12:00 are skipped too, and "
            "--since and --until may select no rows. If items are times, give --time ts --every 1d to count periods. "
            "`discreet check` shows the owner of the data which rows are read, and with --column which values. Another "
            "release is charged again."
        )
    if release.stopped_early:
        lines.append("The release stopped early: the truncated table ran out of rows before the budget was spent.")
    return lines + [f"Note: {note}." for note in release.notes]


def _forecast(release: Release) -> str:
    """Return a sentence about the plan of the command that made a release; a stream has no such command."""
    if release.round is not None:
        return ""
    if release.quantity == "sum":
        return ""  # no plan knows sums, and a note of the release states the threshold
    if release.aggregates and release.above is None:
        return ""  # no plan knows numbers without bounds
    if release.aggregates:
        return f"An item needs a noisy count of more than {release.above} users. Fewer numbers need fewer users. "
    if release.counts is not None and release.above is None:  # without a threshold, items are drawn one by one
        return "`discreet plan count` with the same parameters forecasts how many items are released. "
    return "`discreet plan` with the same command and parameters says how many users an item needs. "
